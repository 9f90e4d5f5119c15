"""Programs without a model that search a prompt for the words of its question, and answer what they find.

They are stronger than real ones: whatever the search finds is read without a mistake by a program that knows the
benchmark (`endpoints.solve`).
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from helm_longctx.tasks.methods.chunks import find_best, find_words, split
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.support.endpoints import STARTS, Messages, solve

FOUND_TOKENS = 1900

CHUNKS = (80, 400, 1600)
"""Sizes of chunks in characters, about a line, five lines and an answer of a conversation."""


def search_words(text: str, question: str, size: int, tokens: int) -> str:
    """Return the chunks that match the question's words best (BM25), up to so many tokens, in the text's order."""
    chunks = _split(text, size)
    count = max(1, round(tokens * len(chunks) / max(estimate_tokens(text), 1)))
    return "\n".join(
        chunks[position]
        for position in find_best(chunks, question, min(count, len(chunks)))
    )


def search_rare(text: str, question: str, size: int, tokens: int) -> str:
    """Return the chunks with the rarest words of the text, up to so many tokens, in the text's order."""
    chunks = _split(text, size)
    words = [
        [word for word in find_words(chunk) if word.isalpha() and word.islower()]
        for chunk in chunks
    ]
    counts = Counter(word for chunk_words in words for word in chunk_words)
    rarity = [
        max((-math.log(counts[word]) for word in chunk_words), default=-math.inf)
        for chunk_words in words
    ]
    count = max(1, round(tokens * len(chunks) / max(estimate_tokens(text), 1)))
    best = sorted(range(len(chunks)), key=lambda position: -rarity[position])[:count]
    return "\n".join(chunks[position] for position in sorted(best))


def match_words(text: str, question: str, size: int, tokens: int) -> str:
    """Return the lines with the most of the question's words, a regular expression for each, up to so many tokens."""
    asked = [
        re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
        for word in set(find_words(question))
        if len(word) > 3
    ]
    lines = text.split("\n")
    hits = [sum(bool(pattern.search(line)) for pattern in asked) for line in lines]
    count = max(1, round(tokens * len(lines) / max(estimate_tokens(text), 1)))
    best = sorted(range(len(lines)), key=lambda position: -hits[position])[:count]
    return "\n".join(lines[position] for position in sorted(best))


SEARCHES = {
    "BM25": search_words,
    "rare words": search_rare,
    "regular expressions": match_words,
}


@dataclass(frozen=True)
class SearchingModel:
    """Answers from what a search finds, to questions of some kinds, and gives up on the others.

    Args:
        search: one of `SEARCHES`.
        kinds: the kinds that are tried.
        size: the size of chunks in characters.
        tokens: the tokens that are found and read.
    """

    search: str
    kinds: Sequence[str]
    size: int = CHUNKS[0]
    tokens: int = FOUND_TOKENS

    def answer(self, messages: Messages) -> tuple[str, int]:
        """Return the answer, and the tokens of the prompt."""
        *earlier, last = [
            f"{message['role']}: {message['content']}" for message in messages
        ]
        head, _, question = last.rpartition("\n\n") if not earlier else ("", "", last)
        text = "\n".join([*earlier, head])
        tokens = estimate_tokens(f"{text}\n{question}")
        kind = next((kind for kind, start in STARTS.items() if start in question), "")
        if kind not in self.kinds:
            return "I do not know.", tokens
        text_parts = SEARCHES[self.search](text, question, self.size, self.tokens)
        return solve(text_parts, question) or "I do not know.", tokens


def _split(text: str, size: int) -> list[str]:
    # Its warnings would be repeated for each prompt.
    logging.getLogger("bm25s").setLevel(logging.ERROR)
    return split(text, size)
