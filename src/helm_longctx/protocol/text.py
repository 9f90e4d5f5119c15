"""Token counts: a tokenizer's where one is there, else an estimate."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from helm_longctx.errors import InputError
from helm_longctx.protocol.cutting.pieces import LongText, PieceTokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_DIGIT, _LETTER, _MARK = 1, 2, 3
_KINDS = np.zeros(256, np.uint8)
_KINDS[[*range(33, 127)]] = _MARK
_KINDS[[*range(48, 58)]] = _DIGIT
_KINDS[[*range(65, 91), *range(97, 123), *range(128, 256)]] = _LETTER
_KINDS[10] = _MARK

LETTERS_PER_TOKEN = 6


def estimate_tokens(text: str) -> int:
    """About how many Llama 2 tokens `text` has, without a tokenizer.

    Every digit, mark and newline is a token; a run of letters is one for each six or part of six; spaces are free.
    Characters outside ASCII count as letters by their UTF-8 bytes. See docs/data.md for how close it comes.
    """
    kinds = _KINDS[np.frombuffer(text.encode("utf-8"), np.uint8)]
    single = int(np.count_nonzero((kinds == _DIGIT) | (kinds == _MARK)))
    edges = np.flatnonzero(np.diff(np.concatenate(([0], (kinds == _LETTER).astype(np.int8), [0]))))
    runs = edges[1::2] - edges[::2]
    return single + int(np.sum(-(-runs // LETTERS_PER_TOKEN))) + 1


@dataclass(frozen=True)
class TokenCounter:
    """Counts tokens of texts, special tokens included.

    Args:
        name: what counts: a tokenizer's name, or `estimate`.
        count: number of tokens of each text.
    """

    name: str
    count: Callable[[Sequence[str]], list[int]]


ESTIMATE = TokenCounter("estimate", lambda texts: [estimate_tokens(text) for text in texts])


def tokenizer_counter(name: str, file: Path) -> TokenCounter:
    """A counter by a saved fast tokenizer (`tokenizer.json`); texts are tokenized outside the GIL, in parallel.

    Raises:
        InputError: the file is not a tokenizer.
    """
    tokenizer = _load(file)
    return TokenCounter(
        name, lambda texts: [len(encoding.ids) for encoding in tokenizer.encode_batch_fast(list(texts))]
    )


class TextCutter:
    """Measures texts by a saved fast tokenizer and finds where the long ones are cut.

    A text of more than `limit` tokens keeps so many characters that it has `limit` with the ending put after it. Both
    counts include the special token at the start (HELMET data.py truncate_llama2).

    Args:
        file: `tokenizer.json`.
        limit: in tokens.
        ending: what is put where a text was cut.

    Raises:
        InputError: the file is not a tokenizer, or the ending alone is longer than the limit.
    """

    def __init__(self, file: Path, limit: int, ending: str):
        tokenizer = _load(file)
        self._tokenizer, self._limit = PieceTokenizer(tokenizer), limit
        self._place = limit - len(tokenizer.encode(ending).ids)
        if self._place < 0:
            raise InputError(f"{file}: its tokens are so short that a text of {limit} has no room for its ending")
        self._known: dict[bytes, tuple[int, int | None]] = {}

    def measure(self, texts: Sequence[str]) -> list[tuple[int, int | None]]:
        """For each text its tokens, and the character to cut at, None if it fits. Equal texts are tokenized once."""
        keys = [hashlib.sha256(text.encode("utf-8")).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self._known.update(zip(new, pool.map(self._measure, new.values()), strict=True))
        return [self._known[key] for key in keys]

    def _measure(self, text: str) -> tuple[int, int | None]:
        return self._tokenizer.read(text, self._read)

    def _read(self, text: LongText) -> tuple[int, int | None]:
        pieces = text.pieces()
        tokens = len(self._tokenizer.before) + sum(map(text.size, pieces)) + len(self._tokenizer.after)
        return tokens, text.span(pieces, self._place)[1] if tokens > self._limit else None


def _load(file: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises bare Exception
        raise InputError(f"{file}: not a fast tokenizer file") from error
