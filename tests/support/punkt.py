"""Gives a small punkt model in NLTK's format, so that no test needs NLTK's data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nltk
from nltk.tokenize import _get_punkt_tokenizer
from nltk.tokenize.punkt import PunktParameters, save_punkt_params

ABBREVIATIONS = {"dr", "mr", "p.m", "a.b"}


def write_model(folder: Path) -> None:
    """Write the model into a folder of NLTK's data. NLTK only writes to folders in `nltk.data.path`."""
    target = folder / "tokenizers/punkt_tab/english"
    target.mkdir(parents=True, exist_ok=True)
    parameters = PunktParameters()
    parameters.abbrev_types = set(ABBREVIATIONS)
    save_punkt_params(parameters, str(target))


@contextmanager
def installed(folder: Path) -> Iterator[Path]:
    """Install the model in a folder until the block ends; processes that start meanwhile can use the folder as `NLTK_DATA`."""
    nltk.data.path.insert(0, str(folder))
    try:
        write_model(folder)
        _get_punkt_tokenizer.cache_clear()
        yield folder
    finally:
        nltk.data.path.remove(str(folder))
        _get_punkt_tokenizer.cache_clear()
