"""Scores functions that a model repeats from a repository, as RepoQA does.

Source: microsoft/MInference at fb56c91, scbench/repo_qa_utils.py (`needle_evaluator`, `compute_score`), after
evalplus/repoqa.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from helm_longctx.tasks.task import Shape, are_all, is_text

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

THRESHOLD = 0.8
"""The least similarity of an answer to the function."""
QUERIES = {
    "python": "(function_definition name: (_)) @fdef",
    "java": "(method_declaration name: (_)) @fdef",
    "typescript": "(function_declaration name: (_)) @fdef",
    "rust": "(function_item name: (_)) @fdef",
    "cpp": "(function_definition declarator: (function_declarator declarator: (identifier))) @fdef",
    "go": "(function_declaration name: (_)) @fdef",
}
"""The tree-sitter query that finds functions, by language."""

_PAIRS = are_all(lambda pair: are_all(is_text)(pair) and len(pair) == len(("name", "code")))
_BLOCK = re.compile(r"^```(?:\w+)?\s*\n(.*?)(?=^```)```", re.DOTALL | re.MULTILINE)


FUNCTION = Shape(
    "a function's `name`, `lang` and all `functions` of its repository, pairs of name and code",
    lambda value: isinstance(value, dict) and value.get("lang") in [*QUERIES] and _PAIRS(value.get("functions")),
)


def is_right_function(output: str, answer: Mapping[str, Any]) -> bool:
    """Return whether the right function is the most similar one, with a similarity of at least `THRESHOLD`.

    Args:
        answer: an object of the kind `FUNCTION`. Its `functions` are all that the questions on the repository ask for.
    """
    function = find_function(output.strip(), answer["lang"])
    similarities = ((compare_functions(function, code), name) for name, code in answer["functions"])
    best, name = max(similarities, key=itemgetter(0), default=(0.0, None))
    return name == answer.get("name") and best >= THRESHOLD


def find_function(output: str, language: str) -> str:
    """Return the first function in a code block of the output; the first block, or the output, if there is none."""
    from tree_sitter import QueryCursor

    blocks = _BLOCK.findall(output)
    for block in blocks:
        parser, query = _grammar(language)
        # A lone surrogate ends the search in a block of the official code; here it is replaced.
        code = block.encode(errors="replace")
        if nodes := QueryCursor(query).captures(parser.parse(code).root_node).get("fdef"):
            return code[nodes[0].start_byte : nodes[0].end_byte].decode(errors="replace")
    return str(blocks[0]) if blocks else output


def compare_functions(function: str, other: str) -> float:
    """Return the BLEU of the words of two functions, with NLTK's smoothing method 4."""
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu  # late, because nltk takes a second

    words, wanted = (re.split(r"\s+", text.strip()) for text in (function, other))
    return float(sentence_bleu([wanted], words, smoothing_function=SmoothingFunction().method4))


@cache
def _grammar(language: str) -> tuple[Parser, Query]:
    from tree_sitter import Language, Parser, Query

    module = import_module(f"tree_sitter_{language}")
    # The package of TypeScript has two languages.
    grammar = Language((module.language_typescript if language == "typescript" else module.language)())
    return Parser(grammar), Query(grammar, QUERIES[language])
