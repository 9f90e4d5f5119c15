"""The answers of the lexical model to questions on logs: it counts a name of the question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from helm_longctx.benchmarks.agentlongbench.prompts import MASKED, POKEMON
from helm_longctx.tasks import Message
from helm_longctx.tasks.prompt import message_text

_WORD = re.compile(r"[\w-]+")


def answer_by_counting(messages: Sequence[Message]) -> str | None:
    """Answer with the rarest word of the question, its number or what follows it. Returns None for other conversations."""
    system = message_text(messages[0])
    kinds: dict[str, str] = {}
    for prompts in (POKEMON, MASKED):
        for kind, prompt in prompts.items():
            kinds.setdefault(prompt, kind)
    kind = kinds.get(system, "")
    if not kind:
        return None
    words = []
    for message in messages[1:-1]:
        words += _WORD.findall(message_text(message))
    counts = Counter(words)
    asked = set(_WORD.findall(message_text(messages[-1]))) & counts.keys()
    rarest = min(sorted(asked), key=lambda word: counts[word], default="")
    return f"<answer>{_answer(kind, rarest, words, counts[rarest])}</answer>"


def _answer(
    kind: str,
    word: str,
    words: Sequence[str],
    count: int,
) -> str:
    if kind == "find_duplicates_tool":
        return "yes" if count > 1 else "no"
    if kind == "find_target_offsets_tool":
        position = words.index(word) if word else 0
        return " and ".join(words[position + 1 : position + 3])
    if kind in ("final_guess", "intersection"):
        return word
    return str(count)
