"""Tests that HELM's pages, the report, printed tables and exports show the same scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from helm_longctx.documents.document import Cell as TableCell
from helm_longctx.documents.document import Table
from helm_longctx.documents.numbers import format_percent
from helm_longctx.results.boards import OVERALL, Board, label, read_suite
from helm_longctx.results.cells import leaderboard_rows, score_numbers, score_tables
from helm_longctx.results.suite import write_reference
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from tests.apps.report.suites import write_run
from tests.results import places
from tests.results.places import Cell, Key

ENTRIES = (
    "helmet_recall:length=4k",
    "helmet_recall:length=8k",
    "helmet_recall:length=8k,num_samples=2",
    "helmet_recall:length=8k,retry_cut=4x",
    "helmet_recall:length=8k,method=retrieve,chunks=4",
    "graphwalks:task=openai_parents,length=128k",
    "helmet_recall:task=json_kv,length=8k,num_samples=7",
    "helmet_rag:length=8k,context=none",
    "helmet_longqa:length=8k",
    "helmet_longqa:length=8k,judge=longctx/lexical",
    "helmet_longqa:task=narrativeqa,length=8k,judge=longctx/lexical",
    "helmet_cite:length=8k",
    "helmet_ruler:length=8k",
    "lv_eval:length=16k",
    "lv_eval:dataset=factrecall_en,length=16k",
    "longbench_v2:mode=0shot",
    "longbench_v2:mode=cot",
    "any_jsonl:path=my/law,length=8k",
    "any_jsonl:path=my/bills,length=8k,metric=rubric,judge=longctx/lexical",
)
MODELS = ("a/strong", "a/weak", "longctx/lexical")

NUMBERS = ("cut_wrong", "cut_left_out", "cut_best", "without_errors")


@st.composite
def suites(draw: st.DrawFn) -> list[tuple[str, str, int]]:
    """Draw the runs of a suite: entry, model and number of instances of each task."""
    entries = draw(
        st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=5, unique=True)
    )
    runs = [
        (entry, model, draw(st.integers(1, 8))) for entry in entries for model in MODELS
    ]
    chosen = draw(
        st.lists(
            st.sampled_from(runs), min_size=1, max_size=8, unique_by=lambda run: run[:2]
        )
    )
    return [
        (entry, model, 2 if "num_samples=2" in entry else count)
        for entry, model, count in chosen
    ]


@example(
    [("helmet_longqa:length=8k,judge=longctx/lexical", "a/weak", 3)], True
)  # a column that names a judge
@example(
    [
        ("helmet_recall:length=8k,retry_cut=4x", "a/weak", 6),
        ("helmet_recall:length=8k", "a/weak", 6),
    ],
    False,
)
@example(
    [
        ("helmet_recall:length=8k,method=retrieve,chunks=4", "a/weak", 6),
        ("helmet_recall:length=8k", "a/weak", 6),
    ],
    False,
)
@example(
    [("graphwalks:task=openai_parents,length=128k", "a/strong", 8)], False
)  # questions with known errors
@example(
    [("longbench_v2:mode=cot", "longctx/lexical", 1)], True
)  # the only request fails
@example(
    [
        ("longbench_v2:mode=0shot", model, count)
        for model, count in (("a/strong", 1), ("longctx/lexical", 2))
    ],
    True,
)
@example([(ENTRIES[-1], "a/weak", 3), (ENTRIES[-2], "a/weak", 3)], False)
@given(suites(), st.booleans())
# A failing suite is not made smaller, because each example takes seconds.
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
def test_every_place_shows_the_same_scores(
    runs: list[tuple[str, str, int]], has_published: bool
) -> None:
    """Value, interval, number of instances and mark are equal in every place, and no score is left out."""
    with TemporaryDirectory() as name:
        output = Path(name)
        suite = output / "runs/s"
        for entry, model, count in runs:
            skill = 0.2 + 0.3 * MODELS.index(model)
            write_run(
                suite,
                f"{entry}{',' if ':' in entry else ':'}model={model}",
                model,
                skill,
                count,
                "",
                flaws=True,
            )
        if has_published:
            write_reference(
                find_benchmark("helmet"), suite, ["GPT-4o-08*", "Llama-3.1-8B"]
            )
        boards = read_suite(suite, BENCHMARKS).boards
        own = places.cells_of_boards(boards)
        tasks = {
            key: cell
            for key, cell in own.items()
            if places.is_task(boards, key) and not places.is_published(key)
        }
        assert places.own_means(suite) == {
            key: pytest.approx(cell.mean) for key, cell in tasks.items()
        }
        check(own, places.cells_of_helm(output, boards))
        chosen = {key: own[key] for key in places.chosen_keys(boards)}
        check(chosen, places.cells_of_report(output, boards), parts=chosen.__contains__)
        for kind in ("csv", "parquet"):
            check(chosen, places.cells_of_wide_tables(output, kind, boards))
            # A task of LongBench v2 has the name of its run entry.
            means = {
                key: cell
                for key, cell in places.cells_of_averages(output, kind).items()
                if not places.is_task(boards, key)
            }
            check(
                own,
                means,
                parts=lambda key: not places.is_task(boards, key) and key[2] != OVERALL,
            )
            check(
                own,
                places.cells_of_scores(output, kind),
                parts=lambda key: places.is_task(boards, key),
            )
        for cells in (
            places.cells_of_lm_eval(output, boards),
            places.cells_of_every_eval_ever(output, boards),
        ):
            check(
                own,
                cells,
                parts=lambda key: (
                    places.is_task(boards, key) and not places.is_published(key)
                ),
            )
        compare_printed(boards)
        compare_json(boards)
        compare_numbers(suite, boards, output)


def check(
    own: Mapping[Key, Cell], shown: Mapping[Key, Cell], parts: Any = None
) -> None:
    """Check that the cells of a place are equal to the cells of the boards.

    Args:
        parts: says of a key whether the place shows it; None if it shows all.
    """
    expected = {key: cell for key, cell in own.items() if parts is None or parts(key)}
    assert shown.keys() == expected.keys()
    for key, cell in shown.items():
        for name in Cell._fields:
            value = getattr(cell, name)
            right = getattr(expected[key], name)
            assert value is None or value == pytest.approx(right), (key, name)


def list_printed(table: Table) -> Iterator[tuple[str, str, TableCell]]:
    """Yield the model, the heading and the cell of each score of a table, whose rows are models or tasks."""
    for first, *cells in table.rows:
        for head, cell in zip(table.header[1:], cells, strict=True):
            if "n=" in first.text:
                yield head.replace("/\n", "/"), first.text, cell
            else:
                yield first.text, head, cell


def compare_printed(boards: list[Board]) -> None:
    """Check that the printed tables have the scores of the user's models in percent."""
    titles = {}
    for table in score_tables(boards, published=0):
        about, _, folder = table.title.partition(", models of ")
        for name, title, cell in list_printed(table):
            model = name if name.startswith("longctx/") else f"{folder}{name}"
            heading, _, counts = title.rpartition("n=")
            titles[about, heading.rstrip(), model] = cell.line, counts.partition("–")
    for board in boards:
        for cell_key, score in board.scores.items():
            is_repeated = (
                len(board.benchmark.categories) == 1 and cell_key.part == OVERALL
            )
            category = board.benchmark.entries.get(cell_key.part)
            if (
                score.is_published
                or is_repeated
                or (category and len(category.tasks_at(cell_key.length)) < 2)
            ):
                continue
            closed = "closed book" if cell_key.context == "none" else ""
            title = " ".join(
                filter(None, (board.title, closed, label(cell_key.length)))
            )
            text, (low, _, high) = titles[
                f"{title}: scores in % (95 % intervals)",
                board.titles[cell_key.part],
                cell_key.model,
            ]
            ends = f"{format_percent(score.interval.low)}–{format_percent(score.interval.high)}"
            assert (
                text
                == f"{format_percent(score.interval.mean)}{' †' if score.caveats else ''} ({ends})"
            )
            assert int(low) <= score.interval.n <= int(high or low)


def compare_json(boards: list[Board]) -> None:
    """Check that the JSON of `summarize` has the scores of all models by column."""
    rows = {
        (row["leaderboard"], row["model"]): row["scores"]
        for row in leaderboard_rows(boards)
    }
    for board in boards:
        for model in board.models:
            expected = [
                score.interval.mean
                for length in board.lengths
                for context in ("full", "none")
                for part in board.parts_at(length, context)
                if (score := board.score(model, part, length, context))
            ]
            assert sorted(rows[board.title, model].values()) == sorted(expected)


def compare_numbers(suite: Path, boards: list[Board], output: Path) -> None:
    """Check the bounds of tasks' scores, and the scores without known errors, against the files; and all places."""
    for board in boards:
        for result in board.tasks:
            numbers = score_numbers(result)
            if result.run and result.has_score:
                expected = places.own_numbers(result.run.path, board, result.task)
                assert {name: numbers[name] for name in expected} == pytest.approx(
                    expected, nan_ok=True
                )
                assert (
                    numbers["cut_wrong"] <= result.interval.mean <= numbers["cut_best"]
                )
    rows = json.loads((output / "scores.json").read_bytes())
    shown = [{name: row[name] for name in NUMBERS} for row in rows]
    assert shown == [
        score_numbers(result) for board in boards for result in board.results.values()
    ]
    averages = {
        (
            row["entry"],
            row["model"],
            row["length"],
            row["context"],
            places.other_judge(row),
        ): row
        for row in places.read_table(places.export(output, "csv") / "averages.csv")
        if row["task"] == "average"
    }
    for board in boards:
        for result in board.categories:
            key = (
                result.entry,
                result.model,
                label(result.length),
                result.context,
                places.judge_of(result),
            )
            if result.has_score and not board.folder:
                row = {name: places.number(averages[key][name]) for name in NUMBERS}
                assert row == pytest.approx(score_numbers(result), nan_ok=True)
