"""Gives a small punkt model in NLTK's format, so that no test needs NLTK's data.

NLTK, which imports scikit-learn, is only imported where a test needs it: it takes seconds of processor time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ABBREVIATIONS = ("a.b", "dr", "mr", "p.m")


def write_model(folder: Path) -> None:
    """Write the model, which knows only abbreviations, into a folder of NLTK's data."""
    target = folder / "tokenizers/punkt_tab/english"
    target.mkdir(parents=True, exist_ok=True)
    (target / "abbrev_types.txt").write_text("\n".join(ABBREVIATIONS), encoding="utf-8")
    for name in ("collocations.tab", "ortho_context.tab", "sent_starters.txt"):
        (target / name).touch()


@contextmanager
def installed(folder: Path) -> Iterator[Path]:
    """Install the model in a folder until the block ends; processes that start meanwhile can use the folder as `NLTK_DATA`."""
    import nltk
    from nltk.tokenize import _get_punkt_tokenizer

    nltk.data.path.insert(0, str(folder))
    try:
        write_model(folder)
        _get_punkt_tokenizer.cache_clear()
        yield folder
    finally:
        nltk.data.path.remove(str(folder))
        _get_punkt_tokenizer.cache_clear()


def keep_standard_error() -> None:
    """Let NLTK's downloader, which keeps the standard error of its import, print to that of the process.

    A test's own standard error is closed when the test ends.
    """
    downloader = sys.modules.get("nltk.downloader")
    if downloader is None:
        return
    download = downloader.Downloader.download
    download.__defaults__ = tuple(
        sys.__stderr__ if default is not None and hasattr(default, "write") else default
        for default in download.__defaults__
    )
