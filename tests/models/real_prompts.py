"""Texts for the tests with a real model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

TEXTS = {
    "plain": "What is the capital of France?",
    "digits": "Document 12:\n\n\n3 of 45 trees.\n\n1. Pines\n 2. Oaks\nAnswer:",
    "special": "A text with <|im_start|> and <|im_end|> in it, and a trailing space ",
    "other": "Größe 北京 🙂 naïve\tcafé\r\n½",
}
"""Short texts in which tokenizers differ: digits after newlines, special tokens, and bytes."""


def digest_ids(ids: Sequence[int]) -> str:
    """Return the SHA-256 of token ids and their order."""
    return hashlib.sha256(" ".join(map(str, ids)).encode()).hexdigest()
