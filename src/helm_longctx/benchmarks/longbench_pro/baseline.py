"""What `longctx/lexical` answers."""

import re
from collections.abc import Sequence

from helm_longctx.benchmarks.longbench_pro.prompts import SEPARATOR
from helm_longctx.benchmarks.longbench_pro.scoring import MARKERS
from helm_longctx.tasks.prompt import Message

_OPTION = re.compile(r"^\s*\(?([A-Z])[.、):：）]\s*(.+)$", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]{4,}|[\u4e00-\u9fff]{2}")
_FEWEST_LINES = 3


def answer_lines(messages: Sequence[Message]) -> str | None:
    """Answer with the option whose words are most often in the text, or with the lines that share most words.

    There are as many lines as the question's own example has. Returns None if the prompt is not one of LongBench Pro's.
    """
    context, _, question = messages[-1]["content"].rpartition(SEPARATOR)
    marker = next((marker for marker in MARKERS if marker in question), None)
    if not context or marker is None:
        return None
    if options := dict(_OPTION.findall(question)):
        words = set(_find_words(context))
        return f"{marker}\n{max(options, key=lambda letter: _share(options[letter], words))}"
    asked = set(_find_words(question.partition(marker)[0]))
    # A dictionary has each line once.
    lines = dict.fromkeys(line.strip() for line in context.split("\n") if line.strip())
    count = max(_FEWEST_LINES, question.rpartition(marker)[2].strip().count("\n") + 1)
    best = sorted(lines, key=lambda line: len(asked.intersection(_find_words(line))), reverse=True)[:count]
    return "\n".join([marker, *best])


def _find_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _share(option: str, words: set[str]) -> float:
    found = _find_words(option)
    return sum(word in words for word in found) / max(len(found), 1)
