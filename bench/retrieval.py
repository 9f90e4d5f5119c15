"""Measures the time and the memory of `method=retrieve` on prompts of 128k and 1M tokens: split, search, join."""

from __future__ import annotations

import random
import time

from bench.cost import peak_mb

from helm_longctx.tasks.methods.chunks import find_best, join, split
from helm_longctx.tasks.methods.prompts import RETRIEVE
from helm_longctx.tasks.token_estimate import estimate_tokens

WORDS = 50_000
"""Number of different words of the text, as of long texts of several books."""

QUESTION = (
    "Who built the bridge over the river in the north of the town, and in which year?"
)


def main() -> None:
    """Print a line for each length."""
    for length in (128_000, 1_000_000):
        context = make_text(length)
        before = peak_mb()
        start = time.perf_counter()
        chunks = split(context, int(RETRIEVE.arguments["chunk_size"]))
        excerpts = join(
            chunks, find_best(chunks, QUESTION, int(RETRIEVE.arguments["chunks"]))
        )
        seconds = time.perf_counter() - start
        print(
            f"{estimate_tokens(context):,} tokens, {len(context) / 1e6:.2f} M characters, {len(chunks):,} chunks:"
            f" {seconds:.2f} s, peak memory {before:.0f} MB before, {peak_mb():.0f} MB after;"
            f" {len(excerpts):,} characters found"
        )


def make_text(tokens: int) -> str:
    """Return a text of about so many tokens, whose words are as frequent as in a language."""
    rng = random.Random(1)
    words = [
        "".join(rng.choices("abcdefghilmnoprstuv", k=rng.randint(2, 8)))
        for _ in range(WORDS)
    ]
    frequencies = [1 / (rank + 2) for rank in range(WORDS)]
    drawn = rng.choices(words, frequencies, k=round(tokens / 1.89))
    return "\n\n".join(
        " ".join(drawn[at : at + 80]) + "." for at in range(0, len(drawn), 80)
    )


if __name__ == "__main__":
    main()
