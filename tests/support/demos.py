"""Configures the demo for tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from helm_longctx.cli import demo


def configure(monkeypatch: pytest.MonkeyPatch, folder: Path, **values: object) -> None:
    """Let the demo run other entries than the package's file, in a folder of its own."""
    monkeypatch.chdir(folder)
    config = yaml.safe_load(demo.RUNS.read_text())
    (folder / "small.yaml").write_text(yaml.safe_dump({**config, **values}))
    monkeypatch.setattr(demo, "RUNS", folder / "small.yaml")
