"""Configurations of `helm-longctx run`."""

from __future__ import annotations

from pathlib import Path


def write(text: str) -> Path:
    """Write a configuration to the test's folder."""
    path = Path("run.yaml")
    path.write_text(text, encoding="utf-8")
    return path
