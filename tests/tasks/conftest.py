"""Fixtures of tests of cutting."""

from __future__ import annotations

from typing import Any

import pytest

from helm_longctx.tasks.cutting.pieces import PieceTokenizer


@pytest.fixture
def encoded_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the size of each text, in characters, that is tokenized in pieces."""
    sizes: list[int] = []
    encode = PieceTokenizer.encode

    def encode_and_note(self: PieceTokenizer, text: str, *a: Any, **k: Any) -> Any:
        sizes.append(len(text))
        return encode(self, text, *a, **k)

    monkeypatch.setattr(PieceTokenizer, "encode", encode_and_note)
    return sizes
