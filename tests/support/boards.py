"""Boards of results that no run gave."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from helm_longctx.results.boards import Board, make_boards
from helm_longctx.results.reading import Result, Run
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.entry import Entry, parse_entry
from helm_longctx.tasks.groups import folder_name
from helm_longctx.tasks.registry import BENCHMARKS


def make_entry_boards(*entries: str) -> list[Board]:
    """The boards of a suite that has a run of each entry."""
    return make_boards(
        [
            result
            for entry in entries
            for result in _results(parse_entry(BENCHMARKS, entry))
        ],
        BENCHMARKS,
    )


def _results(entry: Entry) -> Iterator[Result]:
    judge = (
        ""
        if all(task.is_official(entry.settings.judge) for task in entry.tasks)
        else entry.settings.judge
    )
    spec = {"name": entry.description, "groups": entry.groups}
    run = Run(Path(entry.description), spec, entry.tasks, judge)
    for task in entry.tasks:
        about = (
            entry.benchmark.name,
            entry.name,
            task.name,
            ShownModel("m"),
            entry.settings.length,
            entry.settings.context,
        )
        score = Interval(0.5, math.nan, math.nan, 1)
        yield Result(*about, score, folder=folder_name(entry.settings.path), run=run)
