"""Fixtures of a small suite and its report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from helm_longctx.apps.report.build import write_report
from helm_longctx.results.boards import Board, published_boards, read_suite
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from tests.apps.report.suites import write_suite

SERVER = "http://localhost:8000"

ENTRIES = [f"helmet_recall:task=json_kv,length={length}" for length in ("8k", "32k")]
SKILLS = {"acme/one": 0.95, "acme/two": 0.5, "longctx/null": 0.0}


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a suite of three models at two lengths, with a run without context."""
    folder = tmp_path_factory.mktemp("output") / "runs" / "mine"
    write_suite(folder, ENTRIES, SKILLS, instances=12)
    write_suite(
        folder,
        ["helmet_rag:task=nq,length=8k,context=none"],
        {"acme/one": 0.4},
        instances=6,
    )
    return folder


@pytest.fixture(scope="session")
def site(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the suite's site."""
    folder = tmp_path_factory.mktemp("site")
    write_report(suite, BENCHMARKS, folder, "html", published=False, server=SERVER)
    return folder


@pytest.fixture(scope="session")
def beside(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the same suite's site with published results."""
    folder = tmp_path_factory.mktemp("beside")
    write_report(suite, BENCHMARKS, folder, "html", published=True, server="")
    return folder


@pytest.fixture(scope="session")
def mixed(suite: Path) -> Board:
    """Return the board of the suite with HELMET's published results."""
    (board,) = read_suite(suite, BENCHMARKS, published=True).boards
    return board


@pytest.fixture(scope="session")
def published() -> Board:
    """Return the board of HELMET's published results."""
    (board,) = published_boards([find_benchmark("helmet")])
    return board


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Return the board of three models and a baseline in all of LV-Eval."""
    suite = tmp_path_factory.mktemp("own")
    skills = {"acme/one": 0.9, "acme/same": 0.88, "acme/two": 0.3, "longctx/null": 0.05}
    write_suite(suite, ["lv_eval:length=16k"], skills, instances=6)
    (board,) = read_suite(suite, [find_benchmark("lv_eval")]).boards
    return board


@pytest.fixture
def board_of(tmp_path: Path) -> Callable[..., Board]:
    """Return a function that adds runs of entries by models to a suite, and returns its board."""

    def make(
        entries: list[str],
        skills: dict[str, float],
        published: bool = False,
        instances: int = 12,
    ) -> Board:
        write_suite(tmp_path / "runs", entries, skills, instances)
        (board,) = read_suite(tmp_path / "runs", BENCHMARKS, published=published).boards
        return board

    return make
