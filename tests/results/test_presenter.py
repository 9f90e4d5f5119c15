"""Tests that everything which shows scores formats them by the same code."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

import helm_longctx.plugin  # noqa: F401  # our run entries
from helm_longctx.apps.exchange.command import export_suite
from helm_longctx.apps.report.build import write_report
from helm_longctx.documents import numbers
from helm_longctx.documents.terminal import print_blocks
from helm_longctx.results.boards import read_suite
from helm_longctx.results.cells import score_tables
from helm_longctx.results.comparison import SharedTable, find_differences
from helm_longctx.tasks.registry import BENCHMARKS
from tests.apps.report.suites import write_suite
from tests.support.leaderboards import summarize_suite

ENTRY = "helmet_recall:length=8k"


def wrong_range(low: float, high: float, show: object = None) -> str:
    """An interval that is formatted wrongly."""
    return "from-here-to-there"


def test_a_wrong_interval_is_seen_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault in the format of intervals is seen in the terminal, the report, the leaderboard and the exports."""
    suite = tmp_path / "runs/s"
    write_suite(suite, [ENTRY], {"a/one": 0.9, "a/two": 0.5}, instances=6)
    monkeypatch.setattr(numbers.format_range, "__code__", wrong_range.__code__)
    fault = wrong_range(0, 0)
    print_blocks(score_tables(summarize_suite("s", tmp_path)))
    assert fault in capsys.readouterr().out
    assert fault in "".join(
        path.read_text("utf-8") for path in (suite / "groups").glob("*.json")
    )
    index = write_report(
        suite, BENCHMARKS, tmp_path / "report", "html", published=False, server=""
    )
    assert fault in index.read_text("utf-8")
    for form in ("markdown", "latex"):
        ((path, _),) = export_suite(form, suite, BENCHMARKS, tmp_path / form)
        assert fault in path.read_text("utf-8")


def test_the_page_and_compare_agree_with_unequal_samples(tmp_path: Path) -> None:
    """Three models, of which one was asked fewer questions: `compare` and the page compare each pair on what it shares."""
    suite = tmp_path / "runs/s"
    write_suite(suite, [ENTRY], {"a/one": 0.9, "a/two": 0.5}, instances=30)
    write_suite(suite, [ENTRY], {"a/three": 0.7}, instances=20)
    write_suite(
        suite, [ENTRY.replace("8k", "16k")], {"a/one": 0.9, "a/two": 0.5}, instances=10
    )
    boards = read_suite(suite, BENCHMARKS).boards
    models = ["a/one", "a/two", "a/three"]
    table = SharedTable(boards, models)
    pairings = table.pairings()
    of_length = {
        (pairing.one, pairing.other): pairing
        for pairing in pairings
        if (pairing.by, pairing.part) == ("length", "8k")
    }
    page = find_differences(boards[0], boards[0].main_part(8192), 8192)
    for pair in combinations(models, 2):
        shown = page[pair]
        printed = of_length[pair]
        assert printed.comparison.effect == pytest.approx(shown.comparison.effect)
        assert printed.decision.adjusted == pytest.approx(shown.adjusted)
        assert printed.comparison.wins == shown.comparison.wins
    sizes = [row.comparison.effect.n for row in of_length.values()]
    assert sizes[0] > max(sizes[1:])
    # At 16k the third model has no answers, so there is no verdict over all three.
    assert not any(
        "At" in line for line in table.describe(pairings, table.standings(pairings))
    )
