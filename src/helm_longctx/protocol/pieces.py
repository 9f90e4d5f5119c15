"""Tokens of long texts, piece by piece, the same as those of the whole text.

A whole prompt's encoding takes about a hundred bytes a character and is slower than those of its parts; and where a
prompt is far too long, most of it need not be read. So a text is cut at places where its tokens come apart, each piece
is encoded with a little of what stands before it, whose tokens are left out again. A place is one where

- a letter stands before a space, or before another mark where no space is near;
- the tokenizer's pre-tokenizer splits, seen with the text around it, or else the model is a BPE and no token of its
  vocabulary holds the two characters at that place, so that no merge can cross it.

What follows such a place does not depend on what stands before it, as every step of the tokenizers that are read so
goes forward through the text, or works on characters (`_NORMALIZERS`, `_SPLITTERS`), and soon forgets where it began
(`_forgets`). For another tokenizer, or where one place of a text is not such a one, the text is one piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

SIZE = 8192
AROUND = 128
"""Characters of the text around a piece that are looked at."""

_NORMALIZERS = {"Sequence", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "BertNormalizer", "StripAccents", "Strip"}
_NORMALIZERS |= {"Replace", "Prepend", "Precompiled", "Nmt"}
_SPLITTERS = {"Sequence", "ByteLevel", "Split", "Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Metaspace"}
_SPLITTERS |= {"Punctuation", "Digits"}
_SPACES = re.compile(r"(?<=[^\W\d_])(?=\s)")
_MARKS = re.compile(r"(?<=[^\W\d_])(?=[.,:;!?，。！？；：、])")
_NEAR = 1024
_SAMPLE = (
    "It's \"the king\" (of 1987), 'they' [12345678] said: «Łódź»\n\n  “北京，城市。” [a-b] {c} `d` <e> $f$ \t*g*  _h_ "
    * 4
)

Result = TypeVar("Result")


class NotApartError(Exception):
    """A place is not one where tokens come apart."""


class Piece(NamedTuple):
    """Characters [start, end) of a text, with some of the text around them: [begin, stop)."""

    begin: int
    start: int
    end: int
    stop: int


class PieceTokenizer:
    """Reads texts with a fast tokenizer, also in several threads at a time.

    Args:
        tokenizer: it is copied, since its settings can change while other threads use it.
        size: characters of a piece, at least.
    """

    def __init__(self, tokenizer: Tokenizer, size: int = SIZE):
        self.size = size
        self.tokenizer: Tokenizer = type(tokenizer).from_str(tokenizer.to_str())
        self.tokenizer.no_truncation()  # which a saved tokenizer may have set
        self.tokenizer.no_padding()
        self.before, self.after = self._special_tokens()

    def read(self, text: str, read: Callable[[LongText], Result]) -> Result:
        """What `read` makes of a text in pieces; of the whole text if it finds that they are not apart."""
        if self._local:
            try:
                return read(LongText(self, text, self.size))
            except NotApartError:
                pass
        return read(LongText(self, text, len(text)))

    def encode(self, text: str, offsets: bool = False) -> Any:
        """The encoding of a text without the special tokens at its ends; its offsets take a quarter more time."""
        # As a batch, which lets other threads run meanwhile.
        encode = self.tokenizer.encode_batch if offsets else self.tokenizer.encode_batch_fast
        return encode([text], add_special_tokens=False)[0]

    def tokens_before(self, text: str, place: int) -> int:
        """How many tokens of a text stand before a place.

        Raises:
            NotApartError: tokens do not come apart there.
        """
        encoding = self.encode(text, offsets=True)
        tokens = (encoding.char_to_token(character) for character in range(place, len(text)))
        token = next((token for token in tokens if token is not None), 0)
        if not token or encoding.token_to_chars(token - 1)[1] > place or encoding.token_to_chars(token)[0] < place:
            raise NotApartError
        if encoding.token_to_word(token - 1) == encoding.token_to_word(token):
            left, right = (str(self.tokenizer.id_to_token(id)) for id in encoding.ids[token - 1 : token + 1])
            if not self._merges or left[-1] + right[0] in self._vocabulary:
                raise NotApartError
        return int(token)

    @cached_property
    def _local(self) -> bool:
        """Whether every step of the tokenizer is known to be local, and none is left to chance."""
        tokenizer = self.tokenizer
        return (
            _kinds(tokenizer.normalizer) <= _NORMALIZERS
            and _kinds(tokenizer.pre_tokenizer) <= _SPLITTERS
            and _forgets(tokenizer.pre_tokenizer)
            and not getattr(tokenizer.model, "dropout", None)
        )

    @cached_property
    def _merges(self) -> bool:
        """Whether tokens are merged of what stands side by side and of nothing else."""
        model = self.tokenizer.model
        return type(model).__name__ == "BPE" and not (model.continuing_subword_prefix or model.end_of_word_suffix)

    @cached_property
    def _vocabulary(self) -> str:
        return "\n".join(self.tokenizer.get_vocab())

    def _special_tokens(self) -> tuple[list[int], list[int]]:
        """What the tokenizer puts before and after every text."""
        encoding = self.tokenizer.encode("a")
        ids, special = encoding.ids, encoding.special_tokens_mask
        before = next((n for n, mask in enumerate(special) if not mask), len(ids))
        after = next((n for n, mask in enumerate(reversed(special)) if not mask), 0)
        return ids[:before], ids[len(ids) - after :]


class LongText:
    """A text that is read in pieces.

    Args:
        size: characters of a piece, at least.
    """

    def __init__(self, tokenizer: PieceTokenizer, text: str, size: int):
        self._tokenizer, self._text = tokenizer, text
        self._places = list(_places(text, size))
        self._sizes: dict[Piece, int] = {}
        self._before: dict[tuple[int, int, int], int] = {}

    def pieces(self, low: int = 0, high: int | None = None) -> list[Piece]:
        """Pieces of what stands between two characters, as if it were a text of its own."""
        high = len(self._text) if high is None else high
        places = [low, *(place for place in self._places if low < place < high), high]
        return [Piece(max(low, start - AROUND), start, end, min(high, end + AROUND)) for start, end in pairwise(places)]

    def ids(self, piece: Piece) -> list[int]:
        """The piece's tokens, without the special ones at a text's ends.

        Raises:
            NotApartError: its ends are not places where tokens come apart.
        """
        first = self._first(piece)
        ids: list[int] = self._encode(piece).ids[first:]
        self._sizes[piece] = len(ids)
        return ids

    def size(self, piece: Piece) -> int:
        """How many tokens a piece has; each is read once. Raises as `ids` does."""
        if piece not in self._sizes:
            first = self._first(piece)
            self._sizes[piece] = len(self._encode(piece)) - first
        return self._sizes[piece]

    def span(self, pieces: list[Piece], token: int) -> tuple[int, int]:
        """Where a token of a text in pieces stands, special tokens counted; these stand at its start, as if empty."""
        token -= len(self._tokenizer.before)
        for piece in pieces if token >= 0 else ():
            if token < self.size(piece):
                start, end = self._encode(piece, offsets=True).token_to_chars(self._first(piece) + token)
                return piece.begin + start, piece.begin + end
            token -= self.size(piece)
        return pieces[0].start, pieces[0].start

    def _encode(self, piece: Piece, offsets: bool = False) -> Any:
        return self._tokenizer.encode(self._text[piece.begin : piece.end], offsets)

    def _first(self, piece: Piece) -> int:
        """The first token of a piece in the encoding of what begins before it; both its ends are looked at."""
        begin, start, end, stop = piece
        if end < stop:
            self._tokens_before(max(begin, end - AROUND), end, stop)
        return self._tokens_before(begin, start, min(start + AROUND, stop)) if begin < start else 0

    def _tokens_before(self, begin: int, place: int, stop: int) -> int:
        key = begin, place, stop
        if key not in self._before:
            self._before[key] = self._tokenizer.tokens_before(self._text[begin:stop], place - begin)
        return self._before[key]


def _places(text: str, size: int) -> Iterator[int]:
    """Where tokens may come apart, at least so far from each other."""
    place = 0
    while (at := place + size) < len(text):
        found = _SPACES.search(text, at, at + _NEAR) or _MARKS.search(text, at)
        if found is None:
            return
        place = found.start()
        yield place


def _kinds(component: Any) -> set[str]:
    """The types of a normalizer or pre-tokenizer and of its parts."""
    found: set[str] = set()

    def note(value: dict[str, Any]) -> None:
        if "type" in value:
            found.add(value["type"])

    if component is not None:
        json.loads(component.__getstate__(), object_hook=note)
    return found


def _forgets(splitter: PreTokenizer | None) -> bool:
    """Whether a pre-tokenizer splits the end of a sample at the same places wherever it began to read."""
    if splitter is None:
        return True
    middle = len(_SAMPLE) // 2
    ends = {
        tuple(begin + start for _, (start, _) in splitter.pre_tokenize_str(_SAMPLE[begin:]) if begin + start >= middle)
        for begin in range(middle // 2)
    }
    return len(ends) == 1
