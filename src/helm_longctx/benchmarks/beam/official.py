"""The texts of the official code. They are read from its files, because the code has no license.

Source: mohammadtavakoli78/BEAM at 2e44c8d, prompts.py (`unified_llm_judge_base_prompt`), evaluation.py
(`llm_equivalence`) and long_term_methods.py (`probing_question_evaluation`).
"""

import ast
from functools import cache, partial
from typing import NamedTuple

from helm_longctx.tasks import DataRoot, InputError, PinnedFile

_pinned_file = partial(
    PinnedFile.of_repository, "mohammadtavakoli78/BEAM/2e44c8d0f7801ae28bd004482dabdf75f03d5665", place="beam"
)
PROMPTS = _pinned_file("prompts.py", "2f630cc983ab0c34cfa80b1b4d340f5b51a9b4a3baa5af8aea9503c585eda06a")
EVALUATION = _pinned_file("evaluation.py", "07098b60ed5c46d4bbafaced898c0abeb052d7e98c6d7631b120e4058c6897bb")
METHODS = _pinned_file("long_term_methods.py", "db86199808295faf06ec313d9dfe1931d44d264b82d9b017c6effb5c417b321d")


class Texts(NamedTuple):
    """The official texts. A text around values is the list of its parts.

    Args:
        question: stands before a question.
        judge: what the judge is asked about an item of a rubric.
        system: the system message of the question whether two events are the same.
        same: that question, around the two events.
    """

    question: str
    judge: str
    system: str
    same: list[str]


@cache
def read_texts(root: DataRoot) -> Texts:
    """Read the official texts. The files are parsed, and no code of them is executed.

    Raises:
        InputError: a file is not the official one.
    """
    try:
        prompts, evaluation, methods = (
            ast.parse((root.path / each.path).read_text(encoding="utf-8")) for each in (PROMPTS, EVALUATION, METHODS)
        )
        (judge,) = (
            ast.literal_eval(each.value)
            for each in prompts.body
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "unified_llm_judge_base_prompt"
        )
        ((question,),) = _find_contents(methods, "probing_question_evaluation")
        (system,), same = _find_contents(evaluation, "llm_equivalence")
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{root.path / 'beam'}: not BEAM's files; get them with: helm-longctx fetch beam") from error
    return Texts(question, judge, system, same)


def _find_contents(module: ast.Module, function: str) -> list[list[str]]:
    """Return the texts of messages that a function writes out, each as the parts around its values."""
    (found,) = (each for each in module.body if isinstance(each, ast.FunctionDef) and each.name == function)
    pairs = [
        (ast.unparse(key), value)
        for node in ast.walk(found)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if key
    ]
    texts = [
        value.values if isinstance(value, ast.JoinedStr) else [value]
        for name, value in pairs
        if name == "'content'" and isinstance(value, ast.Constant | ast.JoinedStr)
    ]
    return [[str(part.value) for part in text if isinstance(part, ast.Constant)] for text in texts]
