"""What commands and functions write for the leaderboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from helm.benchmark.presentation.schema import Schema
from helm.benchmark.run_spec import RunSpec

from helm_longctx.helm.codec import from_json
from helm_longctx.results.boards import Board, make_suite
from helm_longctx.results.leaderboard.display import OUTPUTS, write_display
from helm_longctx.results.leaderboard.pages import write_leaderboard
from helm_longctx.results.reading import read_results
from helm_longctx.tasks.registry import BENCHMARKS


def summarize_suite(suite: str, output_path: Path) -> list[Board]:
    """Write the tables and pages of a suite, as `summarize` does, and return its boards."""
    results = read_results(output_path / "runs" / suite, BENCHMARKS, keep_answers=False)
    scores = make_suite(results, BENCHMARKS)
    write_leaderboard(scores, suite, output_path)
    return list(scores.boards)


def stats(suite: Path, name: str) -> dict[tuple[str, str | None], float]:
    rows = json.loads(
        (suite / f"benchmark_output/runs/s/{name}/stats.json").read_text()
    )
    return {
        (row["name"]["name"], row["name"].get("sub_split")): row["mean"] for row in rows
    }


def table(suite: Path, group: str, title: str) -> dict[str, dict[str, float]]:
    """Return a leaderboard table that helm-summarize wrote, from row to column to value."""
    tables = json.loads(
        (suite / f"benchmark_output/runs/s/groups/{group}.json").read_text()
    )
    texts = next(t for t in tables if t["title"] == title)
    names = [cell["value"] for cell in texts["header"]]
    return {
        row[0]["value"]: dict(
            zip(
                names[1:],
                [c.get("number", c.get("value")) for c in row[1:]],
                strict=True,
            )
        )
        for row in texts["rows"]
    }


def display(run: Path, skip_completed: bool = False) -> tuple[list[Any], ...]:
    """The three display files that are written for a run."""
    spec = from_json((run / "run_spec.json").read_text(), RunSpec)
    write_display(run, spec, Schema(), skip_completed)
    return tuple(json.loads((run / name).read_text()) for name in OUTPUTS)
