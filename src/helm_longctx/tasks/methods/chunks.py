"""Splits texts into chunks, and finds those that match a question best by BM25.

Chunks have characters, so that all models get the same ones. BM25 is Lucene's, with k1 = 1.5 and b = 0.75 (the package
bm25s).
"""

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

GAP = "\n[...]\n"
"""The text between two chunks that are not neighbours."""

ENDS = ("\n\n", "\n", ". ", "。", " ")
"""Texts after which a chunk ends, the best first: a paragraph, a line, a sentence, a word."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana and Chinese characters."""

_WORD = re.compile(rf"([{_UNSPACED}]+)|[^\W_{_UNSPACED}]+")


def split(text: str, size: int) -> list[str]:
    """Split a text into chunks of at most `size` characters, which joined are the text. None is empty.

    A chunk ends after the last paragraph of the second half of its room; without one after a line, a sentence or a
    word, and otherwise at its largest size.
    """
    chunks = []
    start = 0
    while len(text) - start > size:
        most = start + size
        places = ((text.rfind(mark, (start + most) // 2, most), len(mark)) for mark in ENDS)
        end = next((place + width for place, width in places if place >= 0), most)
        chunks.append(text[start:end])
        start = end
    return [*chunks, text[start:]] if text[start:] else chunks


def find_best(chunks: Sequence[str], question: str, most: int) -> list[int]:
    """Return the places of at most `most` chunks that match a question best, ascending; of equal ones the first."""
    from bm25s import BM25

    # The package shows what it does to the user.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    words = [list(find_words(chunk)) for chunk in chunks]
    asked = list(find_words(question))
    scores = np.zeros(len(chunks))
    # The package fails without words.
    if asked and any(words):
        index = BM25(method="lucene", k1=1.5, b=0.75)
        index.index(words, show_progress=False)
        scores = index.get_scores(asked)
    return sorted(int(place) for place in np.argsort(-scores, kind="stable")[:most])


def find_words(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case; in scripts without spaces, each two neighbouring characters."""
    for match in _WORD.finditer(text.lower()):
        run = match[1]
        if run is None:
            yield match[0]
        else:
            yield from (run[at : at + 2] for at in range(max(len(run) - 1, 1)))


def join(chunks: Sequence[str], places: Sequence[int]) -> str:
    """Return the chunks at some places, ascending, with a mark where others are left out between them."""
    gaps = [GAP if after > place + 1 else "" for place, after in pairwise(places)]
    return "".join(gap + chunks[place] for gap, place in zip(["", *gaps], places, strict=False))
