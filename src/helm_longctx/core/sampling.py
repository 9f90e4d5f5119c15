"""The official code's random orders."""

from __future__ import annotations

import hashlib

import numpy as np


def shuffled(count: int, seed: int) -> list[int]:
    """Row numbers as `datasets.Dataset.shuffle(seed)` orders them (NumPy's permutation, not Python's shuffle)."""
    order: list[int] = np.random.default_rng(seed).permutation(count).tolist()
    return order


def text_seed(text: str, seed: int = 0) -> int:
    """A seed that depends on a text alone: SHA-256 plus `seed`, modulo 2**31 (HELMET data.py)."""
    return (int(hashlib.sha256(text.encode("utf-8")).hexdigest(), 16) + seed) % 2**31
