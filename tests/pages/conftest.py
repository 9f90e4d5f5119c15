"""A small suite, and its report."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.pages.build import write_report
from tests.pages.suites import write_suite

SERVER = "http://localhost:8000"

ENTRIES = [f"helmet_recall:task=json_kv,length={length}" for length in ("8k", "32k")]
SKILLS = {"acme/one": 0.95, "acme/two": 0.5, "longctx/null": 0.0}


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models at two lengths, and a run without context."""
    folder = tmp_path_factory.mktemp("output") / "runs" / "mine"
    write_suite(folder, ENTRIES, SKILLS, instances=12)
    write_suite(folder, ["helmet_rag:task=nq,length=8k,context=none"], {"acme/one": 0.4}, instances=6)
    return folder


@pytest.fixture(scope="session")
def site(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of its site."""
    folder = tmp_path_factory.mktemp("site")
    write_report(suite, BENCHMARKS, folder, "html", published=False, server=SERVER)
    return folder
