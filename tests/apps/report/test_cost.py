"""What a report costs: the calls of our own functions, because seconds depend on the machine."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import helm_longctx
from helm_longctx.apps.report.build import write_report
from helm_longctx.tasks.registry import BENCHMARKS
from tests.apps.report.suites import write_suite

MOST_CALLS = 330_000
"""Most calls of our own functions. In November 2026 they were 298,000 beside 65 published models."""


def test_a_small_report_makes_few_calls_beside_all_published_models(
    tmp_path: Path,
) -> None:
    """A report of two runs of five questions does not compute anew for each cell what published models share."""
    suite = tmp_path / "runs" / "two"
    skills = {"acme/one": 0.9, "longctx/null": 0.1}
    write_suite(suite, ["helmet_recall:length=8k"], skills, instances=5)
    profile = cProfile.Profile()
    profile.enable()
    write_report(
        suite, BENCHMARKS, tmp_path / "report", "html", published=True, server=""
    )
    profile.disable()
    package = str(Path(helm_longctx.__file__).parent)
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    calls = {
        f"{Path(file).name}:{line} {function}": numbers[1]
        for (file, line, function), numbers in stats.items()
        if file.startswith(package)
    }
    most = sorted(calls.items(), key=lambda item: -item[1])[:12]
    assert sum(calls.values()) < MOST_CALLS, most
