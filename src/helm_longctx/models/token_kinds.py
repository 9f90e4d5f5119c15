"""Kinds of text that tokenizers and servers treat apart: digits, scripts, runs of white space, and so on."""

import re
from typing import NamedTuple


class TokenKind(NamedTuple):
    """A kind of text.

    Args:
        pattern: what a token of the kind contains.
        sample: a text of the kind.
    """

    pattern: re.Pattern[str]
    sample: str


KINDS = {
    "markers": TokenKind(
        re.compile(r"<\|[^|>]+\|>|</?s>|\[/?INST\]|<(bos|eos|pad|unk)>"),
        "<|im_end|> </s> [INST] <eos> <|endoftext|>",
    ),
    # A part of a character is shown as the replacement character.
    "emoji and parts of characters": TokenKind(
        re.compile("[\ufffd\u2600-\u27bf\U0001f000-\U0001faff]"),
        "🙂 🚀 👩\u200d👩\u200d👧 ☂ ✂ 🦊🦊🦊 𝄞",
    ),
    "CJK": TokenKind(
        re.compile("[\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]"),
        "河边的老磨坊有红色的屋顶。川のそばの古い水車小屋。강가의 오래된 방앗간。",
    ),
    "other scripts": TokenKind(
        re.compile("[\u0370-\u1fff\u2c00-\u2dff\ua640-\uabff]"),
        "Старая мельница у реки. طاحونة قديمة. पुरानी चक्की।",
    ),
    "accents": TokenKind(
        re.compile("[\u00c0-\u024f]"),
        "Crème brûlée à Zürich, smörgåsbord, żółć, señor, façade, naïve.",
    ),
    "digits": TokenKind(
        re.compile(r"\d"),
        "0071 3.14159 1,000,000 2026-11-28 00000 98765432109876543210",
    ),
    "white space": TokenKind(
        re.compile(r"\s{2}|^[\t\n\r]$"),
        "one        two\t\tthree\n\n\n\nfour    \n        five",
    ),
}
"""The kinds. A token is of the first one whose pattern it contains."""

WORDS = "words and punctuation"
"""All other tokens."""


def find_kind(token: str) -> str:
    """Return the kind of a token."""
    for name, kind in KINDS.items():
        if kind.pattern.search(token):
            return name
    return WORDS
