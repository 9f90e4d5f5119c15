"""The official code's random orders."""

from __future__ import annotations

import hashlib

import numpy as np


def shuffle_order(count: int, seed: int) -> list[int]:
    """Row numbers as `datasets.Dataset.shuffle(seed)` orders them (NumPy's permutation, not Python's shuffle)."""
    order: list[int] = np.random.default_rng(seed).permutation(count).tolist()
    return order


class UnseededShuffles:
    """What successive `Dataset.shuffle()` calls without a seed give after `numpy.random.seed(seed)`.

    The library takes such a call's seed from NumPy's global state, and steps that state once.
    """

    def __init__(self, seed: int):
        self._state = np.random.RandomState(seed)

    def next(self, count: int) -> list[int]:
        """The order of `count` rows that the next call gives."""
        state = self._state.get_state(legacy=False)["state"]
        keys, position = state["key"], state["pos"]
        seed = keys[position] if position < len(keys) else keys[0]
        self.skip(1)
        return shuffle_order(count, int(seed))

    def skip(self, calls: int) -> None:
        """As if so many calls had been made."""
        self._state.random_sample(calls)


def text_seed(text: str, seed: int = 0) -> int:
    """A seed that depends on a text alone: SHA-256 plus `seed`, modulo 2**31 (HELMET data.py)."""
    return (int(hashlib.sha256(text.encode("utf-8")).hexdigest(), 16) + seed) % 2**31
