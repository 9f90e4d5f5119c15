"""Splits OneRuler's books into sentences with Stanza, and keeps the sentences.

Source: mungg/OneRuler at a3fe6af, OneRuler/synthetic/niah.py.
"""

import json
import re
from importlib import import_module

from helm_longctx.data.download import place_file
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.task import TEXTS

WITHOUT_MODEL = frozenset({"st", "sw"})
"""Languages for which Stanza has no model. The official code then splits after full stops, and so do we."""

_END = re.compile(r"(?<=[?.!])\s+")


def find_sentences(code: str, book: str, root: DataRoot) -> list[str]:
    """Return the sentences of a book: those in `oneruler/sentences/<code>.json` if it exists, or else Stanza's.

    Stanza needs minutes for a long book, so its sentences are written into that file unless the data is in a mirror.

    Args:
        code: the language.
        book: the text with single spaces.

    Raises:
        InputError: the file is malformed, or Stanza or its model of the language is missing.
    """
    path = root / f"oneruler/sentences/{code}.json"
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))
        TEXTS.check(str(path), found)
        return list(found)
    if code in WITHOUT_MODEL:
        return [sentence.strip() for sentence in _END.split(book.strip())]
    sentences = _split(code, book, str(path))
    if not root.mirror:
        with place_file(path) as (part, record):
            record |= {"made_by": "stanza"}
            part.write_text(json.dumps(sentences, ensure_ascii=False), encoding="utf-8")
    return sentences


def _split(code: str, book: str, path: str) -> list[str]:
    try:
        pipeline = import_module("stanza").Pipeline(lang=code, processors="tokenize", download_method=None)
    except Exception as error:  # without a model Stanza raises errors of several kinds
        raise InputError(
            f"the book in {code} cannot be split into sentences ({type(error).__name__}): install stanza, run"
            f" python -c \"import stanza; stanza.download('{code}')\", or write the sentences as a JSON list to {path}"
        ) from error
    return [sentence.text.strip() for sentence in pipeline(book).sentences]
