"""Tokenizes long texts in pieces. The tokens are equal to the tokens of the whole text.

Pieces save memory and time: the encoding of a whole prompt takes about a hundred bytes of memory for each character,
and more time than the encodings of its parts. If a prompt is far too long, most of it need not be tokenized at all.

The tokens are the same because a text is only cut at a boundary that no token can cross. Each piece is encoded together
with some of the text around it, and the tokens of that surrounding text are then dropped. A position is a boundary if

- a letter stands before it and a space after it (or another punctuation mark, where no space is near), and
- the pre-tokenizer splits there, seen with the text around it; or the model is a BPE, and no token of its vocabulary
  contains the two characters around the position, so that no merge can cross it.

The tokens after a boundary must not depend on the text before it. This holds for tokenizers whose steps all work on
single characters or go forward through the text (`_NORMALIZERS`, `_SPLITTERS`), and whose pre-tokenizer finds the same
splits wherever it starts (`_splits_alike`). Any other tokenizer gets the text in one piece. So does a text if one of
the chosen positions is not a boundary.
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

_SIZE = 8192
"""Smallest number of characters of a piece. Larger pieces cost memory; smaller ones cost time for the text around them.
"""

_AROUND = 128
"""Characters of surrounding text on each side of a piece. Pre-tokenizers look at a few neighbouring characters."""

# Normalizers that map single characters or short runs of characters. "Precompiled" is sentencepiece's character map.
# Any other normalizer could move text across a boundary.
_NORMALIZERS = {
    "Sequence",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Lowercase",
    "BertNormalizer",
    "StripAccents",
    "Strip",
}
_NORMALIZERS |= {"Replace", "Prepend", "Precompiled", "Nmt"}

# Pre-tokenizers that decide about a split by the characters near it. "UnicodeScripts", for example, does not belong
# here, because it remembers the script of the last letter over any number of characters.
_SPLITTERS = {
    "Sequence",
    "ByteLevel",
    "Split",
    "Whitespace",
    "WhitespaceSplit",
    "BertPreTokenizer",
    "Metaspace",
}
_SPLITTERS |= {"Punctuation", "Digits"}

# Boundaries are searched after letters, because tokenizers treat digits, spaces and marks in groups.
_BEFORE_SPACE = re.compile(r"(?<=[^\W\d_])(?=\s)")
# Only marks after letters count, and not the apostrophe, because patterns join "'s" and "'t" to the word.
_BEFORE_MARK = re.compile(r"(?<=[^\W\d_])(?=[.,:;!?，。！？；：、])")
_NEAR = 1024
"""Number of characters in which a space is searched. Chinese and Japanese have no spaces, so marks count there."""

# Has every kind of character that split patterns distinguish: contractions, quotes, digits, letters with accents,
# Chinese characters and marks, runs of white space, brackets and underscores.
_SAMPLE = (
    "It's \"the king\" (of 1987), 'they' [12345678] said: «Łódź»\n\n  “北京，城市。” [a-b]"
    " {c} `d` <e> $f$ \t*g*  _h_ " * 4
)

_Result = TypeVar("_Result")


class NotApartError(Exception):
    """A token crosses a position at which a text was to be cut."""


class _Piece(NamedTuple):
    """The characters [start, end) of a text, and [begin, stop), with the text around them."""

    begin: int
    start: int
    end: int
    stop: int


class PieceTokenizer:
    """Tokenizes texts in pieces with a copy of a fast tokenizer. Several threads can use it at a time."""

    def __init__(self, tokenizer: Tokenizer, size: int = _SIZE):
        self.size = size
        # The class is taken from the object, so that this module need not import tokenizers.
        self.tokenizer: Tokenizer = type(tokenizer).from_str(tokenizer.to_str())
        # A saved tokenizer can have settings for truncation and padding, and these would change the tokens of a piece.
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        # Post-processors add the same tokens to every single text, so any text can be used here.
        encoding = self.tokenizer.encode("a")
        ids = encoding.ids
        special = encoding.special_tokens_mask
        before = next((n for n, mask in enumerate(special) if not mask), len(ids))
        after = next((n for n, mask in enumerate(reversed(special)) if not mask), 0)
        self.before = ids[:before]
        self.after = ids[len(ids) - after :]

    def read(self, text: str, read: Callable[[LongText], _Result]) -> _Result:
        """Apply `read` (it must keep no state) to a text in pieces, or in one if a position is no boundary."""
        if self.is_local:
            try:
                return read(LongText(self, text, self.size))
            # A token that crosses a chosen boundary is rare, but all results so far are then useless, so the whole text is
            # read again.
            except NotApartError:
                pass
        return read(LongText(self, text, len(text)))

    def encode(self, text: str, offsets: bool = False) -> Any:
        """Encode a text without the special tokens at its ends. Offsets take a quarter more time."""
        # A batch of one releases the GIL. The method for one text does not.
        if offsets:
            encode = self.tokenizer.encode_batch
        else:
            encode = self.tokenizer.encode_batch_fast
        return encode([text], add_special_tokens=False)[0]

    def tokens_before(self, text: str, position: int) -> int:
        """Count the tokens of a text before a position. Raises a `NotApartError` if it is no boundary."""
        encoding = self.encode(text, offsets=True)
        # A character that a normalizer drops has no token. Then the next character with a token counts.
        tokens = (
            encoding.char_to_token(character)
            for character in range(position, len(text))
        )
        # This is 0 if no character from the position on has a token. Then the text is read as a whole.
        token = next((token for token in tokens if token is not None), 0)
        if not token:
            raise NotApartError
        _, end_before = encoding.token_to_chars(token - 1)
        start, _ = encoding.token_to_chars(token)
        # One token covers both sides of the position.
        if end_before > position or start < position:
            raise NotApartError
        # If the pre-tokenizer did not split here, both tokens belong to one "word". Then other text farther left could
        # merge across the position, unless the vocabulary has no token for that, since every merge makes a token.
        if encoding.token_to_word(token - 1) == encoding.token_to_word(token):
            # `id_to_token` returns the vocabulary's form of a token. In it, byte-level models replace bytes by other
            # characters.
            left = str(self.tokenizer.id_to_token(encoding.ids[token - 1]))
            right = str(self.tokenizer.id_to_token(encoding.ids[token]))
            if not self.only_merges or left[-1] + right[0] in self._vocabulary:
                raise NotApartError
        return int(token)

    @cached_property
    def is_local(self) -> bool:
        """Whether the tokens after a boundary are independent of the text before it."""
        tokenizer = self.tokenizer
        return (
            # The decoder and the post-processor do not matter: pieces are encoded without special tokens and are not
            # decoded.
            _component_types(tokenizer.normalizer) <= _NORMALIZERS
            and _component_types(tokenizer.pre_tokenizer) <= _SPLITTERS
            and _splits_alike(tokenizer.pre_tokenizer)
            # BPE dropout omits merges at random, so two encodings can differ.
            and not getattr(tokenizer.model, "dropout", None)
        )

    @cached_property
    def only_merges(self) -> bool:
        """Whether the model only joins neighbouring tokens.

        WordPiece and Unigram choose among segmentations of whole words, and with a prefix or suffix a token depends on
        its position in the word. For these models, the vocabulary does not prove that a position is a boundary.
        """
        model = self.tokenizer.model
        if type(model).__name__ != "BPE":
            return False
        return not (model.continuing_subword_prefix or model.end_of_word_suffix)

    @cached_property
    def _vocabulary(self) -> str:
        # This is one string, because searching it for two characters is faster than checking each token. If the second
        # character is a newline, the search can find the separator. Such a false hit only costs time: the text is then
        # read in one piece.
        return "\n".join(self.tokenizer.get_vocab())


class LongText:
    """A text in pieces, each of which is encoded when it is needed."""

    def __init__(
        self,
        tokenizer: PieceTokenizer,
        text: str,
        size: int,
    ):
        self._tokenizer = tokenizer
        self._text = text
        self._boundaries = list(_find_boundaries(text, size))
        # The cutters ask for the same sizes and boundaries several times. Token ids are not kept: they take memory.
        self._sizes: dict[_Piece, int] = {}
        self._before: dict[tuple[int, int, int], int] = {}

    def pieces(self, low: int = 0, high: int | None = None) -> list[_Piece]:
        """Return the pieces of the characters [low, high), as if they were a text of their own.

        A piece at an end gets no surrounding text beyond that end, because HELMET tokenizes the context of a prompt as
        a text of its own.
        """
        high = len(self._text) if high is None else high
        boundaries = []
        for boundary in self._boundaries:
            if low < boundary < high:
                boundaries.append(boundary)
        pieces = []
        for start, end in pairwise([low, *boundaries, high]):
            pieces.append(
                _Piece(max(low, start - _AROUND), start, end, min(high, end + _AROUND))
            )
        return pieces

    def ids(self, piece: _Piece) -> list[int]:
        """Return a piece's token ids without special tokens. Raises a `NotApartError` if an end is no boundary."""
        first = self._first_token(piece)
        ids: list[int] = self._encode(piece).ids[first:]
        self._sizes[piece] = len(ids)
        return ids

    def size(self, piece: _Piece) -> int:
        """Count a piece's tokens, by encoding it once. Raises a `NotApartError` if an end is no boundary."""
        if piece not in self._sizes:
            first = self._first_token(piece)
            self._sizes[piece] = len(self._encode(piece)) - first
        return self._sizes[piece]

    def span(self, pieces: list[_Piece], token: int) -> tuple[int, int]:
        """Return the characters [start, end) of a token of a text in pieces.

        Args:
            token: the token's number, with special tokens counted. Special tokens have an empty span at the start of
                the text, as in the offsets of the tokenizers library.
        """
        token -= len(self._tokenizer.before)
        for piece in pieces if token >= 0 else ():
            if token < self.size(piece):
                # Only the piece with the token must be encoded with offsets.
                start, end = self._encode(piece, offsets=True).token_to_chars(
                    self._first_token(piece) + token
                )
                return piece.begin + start, piece.begin + end
            token -= self.size(piece)
        return pieces[0].start, pieces[0].start

    def _encode(self, piece: _Piece, offsets: bool = False) -> Any:
        # A piece is encoded with the text before it, but without the text after it: tokens after a boundary cannot
        # change those before it, and `_first_token` checks the boundary at the piece's end.
        return self._tokenizer.encode(self._text[piece.begin : piece.end], offsets)

    def _first_token(self, piece: _Piece) -> int:
        """Return the number of a piece's first token in the encoding from `begin`. Checks both ends of the piece."""
        begin, start, end, stop = piece
        if end < stop:
            self._tokens_before(max(begin, end - _AROUND), end, stop)
        if begin < start:
            return self._tokens_before(begin, start, min(start + _AROUND, stop))
        return 0

    def _tokens_before(
        self,
        begin: int,
        position: int,
        stop: int,
    ) -> int:
        # The end of one piece is the start of the next, so each boundary is checked only once.
        key = (begin, position, stop)
        if key not in self._before:
            text = self._text[begin:stop]
            self._before[key] = self._tokenizer.tokens_before(text, position - begin)
        return self._before[key]


def _find_boundaries(text: str, size: int) -> Iterator[int]:
    """Yield positions that are likely to be boundaries, at least `size` characters apart."""
    least = size
    while least < len(text):
        # The second search goes to the end of the text, because a text without spaces and marks is one piece anyway.
        match = _BEFORE_SPACE.search(text, least, least + _NEAR) or _BEFORE_MARK.search(
            text, least
        )
        if match is None:
            return
        yield match.start()
        least = match.start() + size


def _component_types(component: Any) -> set[str]:
    """Return the types of a normalizer or pre-tokenizer and of all its parts."""
    types: set[str] = set()

    def note(value: dict[str, Any]) -> None:
        if "type" in value:
            types.add(value["type"])

    # A component has no attribute for its parts, but its pickled state is JSON that contains all of them.
    if component is not None:
        json.loads(component.__getstate__(), object_hook=note)
    return types


def _splits_alike(splitter: PreTokenizer | None) -> bool:
    """Whether a pre-tokenizer splits the second half of a sample alike, wherever in the first half it starts.

    Its type does not show whether a split pattern counts or pairs characters from the start of the text.
    """
    if splitter is None:
        return True
    middle = len(_SAMPLE) // 2
    ends = set()
    # The sample repeats one text four times. So every position of that text is a start, and a whole copy of the
    # text lies between the last start and the part that is compared.
    for begin in range(middle // 2):
        splits = splitter.pre_tokenize_str(_SAMPLE[begin:])
        starts = [begin + start for _, (start, _) in splits]
        ends.add(tuple(start for start in starts if start >= middle))
    return len(ends) == 1
