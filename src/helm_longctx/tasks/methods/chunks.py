"""Splits texts into chunks, and finds those that match a question best by BM25.

Chunks have characters, so that all models get the same ones. BM25 is Lucene's, with k1 = 1.5 and b = 0.75 (the package
bm25s).
"""

import logging
import re
from collections.abc import Iterator, Sequence

import numpy as np

GAP = "\n[...]\n"
"""The text between two chunks that are not neighbours."""

_ENDS = ("\n\n", "\n", ". ", "。", " ")
"""Texts after which a chunk ends, the best first: a paragraph, a line, a sentence, a word."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
)
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana and Chinese characters."""

_WORD = re.compile(rf"([{_UNSPACED}]+)|[^\W_{_UNSPACED}]+")


def split(text: str, size: int) -> list[str]:
    """Split a text into chunks of at most `size` characters that together are the text. None is empty.

    A chunk ends after the last paragraph of the second half of its room, without one after a line, a sentence or a
    word, and otherwise at its largest size.
    """
    chunks = []
    start = 0
    while len(text) - start > size:
        most = start + size
        end = _find_end(text, start, most)
        chunks.append(text[start:end])
        start = end
    if start < len(text):
        chunks.append(text[start:])
    return chunks


def _find_end(text: str, start: int, most: int) -> int:
    """Return where a chunk ends that starts at `start` and may go up to `most`."""
    for mark in _ENDS:
        position = text.rfind(mark, (start + most) // 2, most)
        if position >= 0:
            return position + len(mark)
    return most


def find_best(chunks: Sequence[str], question: str, most: int) -> list[int]:
    """Return the indices of at most `most` chunks that match a question best, ascending. Of equal ones the first count."""
    from bm25s import BM25

    # The package shows what it does to the user.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    words = [list(find_words(chunk)) for chunk in chunks]
    asked = list(find_words(question))
    scores = np.zeros(len(chunks))
    # The package fails without words.
    if asked and any(words):
        index = BM25(
            method="lucene",
            k1=1.5,
            b=0.75,
        )
        index.index(words, show_progress=False)
        scores = index.get_scores(asked)
    return sorted(int(index) for index in np.argsort(-scores, kind="stable")[:most])


def find_words(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case; in scripts without spaces, each two neighbouring characters."""
    for match in _WORD.finditer(text.lower()):
        run = match[1]
        if run is None:
            yield match[0]
        else:
            for at in range(max(len(run) - 1, 1)):
                yield run[at : at + 2]


def join(chunks: Sequence[str], indices: Sequence[int]) -> str:
    """Return the chunks with some indices, ascending, with a mark where others are left out between them."""
    parts = []
    previous = None
    for index in indices:
        if previous is not None and index > previous + 1:
            parts.append(GAP)
        parts.append(chunks[index])
        previous = index
    return "".join(parts)
