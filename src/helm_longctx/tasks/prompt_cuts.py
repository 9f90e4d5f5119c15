"""The rule by which a server has cut a prompt without an error: it counts far fewer tokens than the prompt has."""

from __future__ import annotations

from helm_longctx.tasks.sample import Sample

CUT = 0.9
"""A prompt is cut if the server counts fewer tokens than this share of what it must have."""

OTHER_TOKENIZER = 0.75
"""Smallest ratio of the counts of two tokenizers, or of two chat templates."""


def is_cut(counted: float, expected: float, usual: float = OTHER_TOKENIZER) -> bool:
    """Whether a server has cut a prompt.

    Args:
        counted: the prompt's tokens as the server counts them.
        expected: the prompt's tokens by another count.
        usual: the ratio of both counts in prompts that are not cut. If it is not known, the smallest one is assumed.
    """
    return counted < CUT * usual * expected


def find_cut(sample: Sample, counted: float) -> int | None:
    """Return how many tokens a prompt has at least if the server has cut it; None if it has not, or if that is unknown.

    Args:
        counted: the prompt's tokens as the server counts them, and the cached ones once more, because some servers
            leave them out.
    """
    if sample.prompt_tokens is not None:
        return sample.prompt_tokens if is_cut(counted, sample.prompt_tokens) else None
    fewest = sample.fewest_tokens or 0
    return fewest if is_cut(counted, fewest, usual=1.0) else None
