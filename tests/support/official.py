"""Reads golden files, which have the results of official code (`tests/golden_makers`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def read_golden(script: str, name: str = "golden.json") -> Any:
    """Return what the golden file beside a script has."""
    return json.loads(Path(script).with_name(name).read_text(encoding="utf-8"))


def digest(texts: Iterable[str]) -> str:
    """Return one SHA-256 of all texts and their order."""
    return hashlib.sha256(
        b"".join(hashlib.sha256(text.encode()).digest() for text in texts)
    ).hexdigest()
