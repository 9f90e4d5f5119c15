"""Estimates the number of tokens of a text, for models whose tokenizer is not available.

Today's tokenizers split texts at the same boundaries: words, groups of up to three digits, punctuation and line breaks. A
Chinese character takes a little less than a token. So the weighted sum of their counts is close to the number of
tokens. Words of random letters have more tokens: they are recognized by pairs of consonants that words of languages hardly
have. The weights were fitted to the tokenizers of GPT-4o (o200k_base), Llama 3 and 4, and DeepSeek; docs/costs.md has
the errors. In some tokenizers (Qwen, Mistral, Gemma, Gemini) each digit is a token.
"""

import re
from collections.abc import Iterable
from itertools import product

import numpy as np

_KIND_COUNT = 7
_SPACE, _BREAK, _LETTER, _DIGIT, _MARK, _CJK, _OTHER = range(_KIND_COUNT)

_WORD = 1.05
_FURTHER_LETTER = 0.07
_WHOLE_LETTERS = 4
"""Tokens of a word, and tokens of each letter after the first four."""

_RARE_PAIR = 0.8
"""Tokens of each pair of consonants in a word of more than four letters that is not one of the common pairs."""

_COMMON_PAIRS = (
    "bb bl br bs cc ch ck cl cr cs ct dd dg dl dr ds dv ff fl fr fs ft gg gh gl gn gr"
    " gs ht kl kn ks lb lc ld lf lg lk ll lm ln lp lr ls lt lv lw mb mm mn mp ms nc nd"
    " nf ng nh nj nk nl nm nn np nq nr ns nt nv nw nz ph pl pp pr ps pt rb rc rd rf rg"
    " rh rj rk rl rm rn rp rq rr rs rt rv rw sb sc sf sg sh sk sl sm sn sp sq ss st sw"
    " tc tf th tl tm tn tr ts tt tw tz wh wl wn wr ws xc xp xt zz"
)

_DIGIT_GROUP = 1.1
_GROUP_SIZE = 3
"""Tokens of a group of digits, and the number of digits in a group. Without groups, each digit is a token."""

_MARKS = 0.6
_FURTHER_MARK = 0.2
"""Tokens of a run of punctuation marks, and tokens of each mark after the first. Many marks join the next word."""

_LINE_BREAK = 1.0
_CJK_CHARACTER = 0.8
_OTHER_CHARACTER = 1.2

_SAMPLE = 512
_SAMPLES = 16
"""Characters of a sample of a long text, and how many samples are taken."""

_TO_SPACES = bytes.maketrans(b"\t\n\v\f\r\x1c\x1d\x1e\x1f", b" " * 9)
"""ASCII's white space as `str.split` knows it."""

_GOLDEN = (5**0.5 - 1) / 2
"""The multiples of the golden ratio are spread evenly between whole numbers."""

_FEWEST_OF_OTHER = 0.15
"""Fewest tokens of a character that is not ASCII, on average."""

_SINGLE_DIGITS = re.compile("qwen|mistral|mixtral|gemma|gemini|llama-?2", re.IGNORECASE)


def splits_digits(model: str) -> bool:
    """Whether each digit is a token in a model's tokenizer, by the model's name."""
    return bool(_SINGLE_DIGITS.search(model))


def estimate_tokens(text: str, single_digits: bool = False) -> int:
    """Estimate the number of tokens of a text.

    Args:
        single_digits: whether each digit is a token; see `splits_digits`.
    """
    if not text:
        return 0
    if text.isascii():  # a quarter of the memory
        codes = np.frombuffer(text.encode("ascii"), np.uint8)
    else:
        # "surrogatepass" is needed because a text can contain lone surrogates. UTF-32 does not allow them.
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        codes = np.minimum(codes, len(_KINDS) - 1)
    kinds = _KINDS.take(codes)
    is_start = np.empty(len(text), bool)
    is_start[0] = True
    np.not_equal(kinds[1:], kinds[:-1], out=is_start[1:])
    # Each run of characters of one kind is counted as a whole.
    starts = np.flatnonzero(is_start)
    sizes = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=sizes[:-1])
    sizes[-1] = len(text) - starts[-1]
    kinds = kinds.take(starts)
    is_word = kinds == _LETTER
    in_long_word = is_word & (sizes > _WHOLE_LETTERS)
    # Rare pairs are few, so their runs are looked up.
    runs = starts.searchsorted(_find_rare_pairs(codes), side="right") - 1
    rare = np.count_nonzero(in_long_word.take(runs))
    words = sizes[is_word]
    digits = sizes[kinds == _DIGIT]
    if single_digits:
        digit_groups = digits.sum()
    else:
        digit_groups = _DIGIT_GROUP * np.ceil(digits / _GROUP_SIZE).sum()
    runs_by_kind = np.bincount(kinds, minlength=_KIND_COUNT)
    characters = np.bincount(kinds, weights=sizes, minlength=_KIND_COUNT)
    tokens = (
        _WORD * len(words)
        + _FURTHER_LETTER * np.maximum(words - _WHOLE_LETTERS, 0).sum()
        + _RARE_PAIR * rare
        + digit_groups
        + _MARKS * runs_by_kind[_MARK]
        + _FURTHER_MARK * (characters[_MARK] - runs_by_kind[_MARK])
        + _LINE_BREAK * runs_by_kind[_BREAK]
        + _CJK_CHARACTER * characters[_CJK]
        + _OTHER_CHARACTER * characters[_OTHER]
    )
    # The weight of a text of only spaces is 0, but it has at least one token.
    return max(round(float(tokens)), 1)


def estimate_fewest_tokens(texts: Iterable[str]) -> int:
    """Return a number of tokens below which texts have hardly any tokenizer's count. Long texts are sampled.

    It is half of the estimate for what is ASCII. The estimate for other scripts can be several times too high.
    """
    total = 0.0
    for text in texts:
        if len(text) <= _SAMPLE * _SAMPLES:
            pieces = [text]
        else:
            pieces = _draw_samples(text)
        ascii_pieces = pieces
        if not text.isascii():
            ascii_pieces = []
            for piece in pieces:
                ascii_pieces.append(piece.encode("ascii", "ignore").decode())
        size = sum(map(len, pieces))
        others = size - sum(map(len, ascii_pieces))
        # One estimate of all pieces takes a third of the time.
        joined = _breaks_to_spaces(" ".join(ascii_pieces))
        tokens = estimate_tokens(joined) / 2 + _FEWEST_OF_OTHER * others
        total += tokens * len(text) / max(1, size)
    return int(total)


def _draw_samples(text: str) -> list[str]:
    """Draw a sample from each of equal parts of a long text.

    The offsets in the parts differ. Otherwise all samples of a text of equal documents could be, for example, titles.
    """
    part = len(text) / _SAMPLES
    samples = []
    for number in range(_SAMPLES):
        offset = (part - _SAMPLE) * (_GOLDEN * number % 1)
        start = int(part * number + offset)
        samples.append(text[start : start + _SAMPLE])
    return samples


def _breaks_to_spaces(text: str) -> str:
    """Return an ASCII text with its line breaks as spaces, which tokenizers join; empty for one of only such characters."""
    spaced = text.encode("ascii").translate(_TO_SPACES)
    return "" if spaced.isspace() else spaced.decode("ascii")


def _find_rare_pairs(codes: np.ndarray) -> np.ndarray:
    """Return the places of the characters that are a rare pair with the one before, in a text of characters' codes."""
    if codes.dtype != np.uint8:  # characters of other scripts are as the last of ASCII
        codes = np.minimum(codes, 0x7F)
    letters = codes.astype(np.uint16)
    pairs = letters[:-1] << 7
    pairs |= letters[1:]
    return np.flatnonzero(_RARE.take(pairs)) + 1


def _make_rare() -> np.ndarray:
    """Return for each pair of ASCII characters, numbered by 14 bits, whether it is two consonants and no common pair."""
    consonants = "bcdfghjklmnpqrstvwxz"
    common = set(_COMMON_PAIRS.split())
    rare = np.zeros(0x80 * 0x80, bool)
    for first, second in product(consonants + consonants.upper(), repeat=2):
        rare[ord(first) << 7 | ord(second)] = (first + second).lower() not in common
    return rare


def _make_kinds() -> np.ndarray:
    """Return the kind of each code point of the first plane. All other code points have the kind of the last one."""
    kinds = np.full(0x10000, _OTHER, np.uint8)
    kinds[:0x80] = _MARK
    for first, last, kind in (
        ("\t", "\r", _BREAK),
        (" ", " ", _SPACE),
        ("0", "9", _DIGIT),
        ("A", "Z", _LETTER),
        ("a", "z", _LETTER),
        ("\u00c0", "\u024f", _LETTER),  # Latin letters with accents
        ("\u2000", "\u206f", _MARK),  # dashes, quotation marks
        ("\u2e80", "\u9fff", _CJK),  # radicals, kana, ideographs, and their punctuation
        ("\uac00", "\ud7af", _CJK),  # Hangul
        ("\uf900", "\ufaff", _CJK),
        ("\uff00", "\uffef", _CJK),  # full-width punctuation
    ):
        kinds[ord(first) : ord(last) + 1] = kind
    return kinds


_RARE = _make_rare()
_KINDS = _make_kinds()
