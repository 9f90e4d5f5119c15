"""Reads the scores of a suite in every place that shows them: HELM's pages, the report and exports; and from the files."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from helm.benchmark.model_metadata_registry import get_model_metadata
from pyarrow import parquet

from helm_longctx.apps.exchange.command import export_suite
from helm_longctx.documents.numbers import format_percent
from helm_longctx.results.boards import OVERALL, Board, label
from helm_longctx.results.cells import write_scores
from helm_longctx.results.reading import Result
from helm_longctx.tasks.groups import group_name
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.leaderboards import summarize_suite


class Cell(NamedTuple):
    """A score in a place that shows it. Numbers that the place does not have are None."""

    mean: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    is_marked: bool | None = None


Key = tuple[str, str, str, str, str, str, str]
"""Benchmark, folder, part, model, length, context, and the judge if it is not the official one."""


def is_published(key: Key) -> bool:
    return key[3].startswith("published/")


def is_task(boards: Iterable[Board], key: Key) -> bool:
    return any(
        key[2] == task.name for board in boards for task in board.benchmark.tasks
    )


def key_of(board: Board, result: Result, judge: str) -> Key:
    cell_key = (result.model, label(result.length), result.context)
    return (board.benchmark.name, board.folder, result.part, *cell_key, judge)


def cells_of_boards(boards: Iterable[Board]) -> dict[Key, Cell]:
    """Return the scores of tasks, categories and benchmarks of each judge."""
    cells = {}
    for board in boards:
        for result in (*board.tasks, *board.categories, *board.overalls):
            is_repeated = (
                result.part == OVERALL and len(board.benchmark.categories) == 1
            )
            if result.has_score and not is_repeated:
                interval = result.interval
                cells[key_of(board, result, judge_of(result))] = Cell(
                    interval.mean,
                    interval.low,
                    interval.high,
                    interval.n,
                    bool(result.caveats),
                )
    return cells


def chosen_keys(boards: Iterable[Board]) -> list[Key]:
    """Return the keys of the scores in places without columns for judges, without means of one task, which repeat the task."""
    return [
        key_of(board, result, judge_of(result))
        for board in boards
        for result in board.scores.values()
        # Of published models often only the category is known.
        if result.task
        or not result.parts
        or result.part == OVERALL
        or _has_tasks(board, result)
        if not (result.part == OVERALL and len(board.benchmark.categories) == 1)
    ]


def _has_tasks(board: Board, result: Result) -> bool:
    return len(board.benchmark.entries[result.part].tasks) > 1


def judge_of(result: Result) -> str:
    """Return the judge of a task or a category, if it is not the official one."""
    if result.part == OVERALL:
        return ""
    return (
        result.other_judge
        if result.task
        else next((run.judge for run in result.runs), "")
    )


def own_means(suite: Path) -> dict[Key, float]:
    """Return the means of tasks, computed from the files without the package; the run with the most instances counts."""
    best: dict[Key, tuple[int, float]] = {}
    for path in sorted(suite.glob("*/run_spec.json")):
        spec = json.loads(path.read_text())
        arguments = spec["scenario_spec"]["args"]
        if "published" in arguments:
            continue
        values: dict[str, dict[str, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row in json.loads((path.parent / "per_instance_stats.json").read_text()):
            for stat in row["stats"]:
                values[stat["name"]["sub_split"]][stat["name"]["name"]].append(
                    stat["mean"]
                )
        benchmark = next(
            benchmark
            for benchmark in BENCHMARKS
            if arguments["entry"] in benchmark.entries
        )
        judge = next(
            (
                annotator["args"].get("judge", "")
                for annotator in spec.get("annotators", [])
            ),
            "",
        )
        for name, metrics in values.items():
            task = benchmark.task(name)
            if not all(metric in metrics for metric in task.headline):
                continue
            score = fmean(fmean(metrics[metric]) for metric in task.headline)
            given = ("method", "chunks", "retry_cut")
            marks = " ".join(
                f"{name}={arguments[name]}" for name in given if name in arguments
            )
            model = spec["adapter_spec"]["model"] + (f" ({marks})" if marks else "")
            entry_key = (arguments.get("path", ""), name, model)
            other = "" if not judge or task.is_official(judge) else judge
            at = (label(arguments.get("length")), arguments.get("context", "full"))
            key = (benchmark.name, *entry_key, *at, other)
            if key not in best or len(metrics[task.headline[0]]) > best[key][0]:
                best[key] = (len(metrics[task.headline[0]]), score)
    return {key: score for key, (_, score) in best.items()}


def cells_of_helm(output: Path, boards: Iterable[Board]) -> dict[Key, Cell]:
    """Return the cells of HELM's tables of single categories and tasks."""
    suite = output / "runs/s"
    summarize_suite("s", output)
    tables = {
        path.stem: json.loads(path.read_text())
        for path in (suite / "groups").glob("*.json")
    }
    cells: dict[Key, Cell] = {}
    for board in boards:
        for result in (*board.tasks, *board.categories, *board.overalls):
            judge = judge_of(result)
            name = (
                board.benchmark.entries[result.part].name
                if result.part in board.benchmark.entries
                else result.part
            )
            closed = result.context == "none"
            group = group_name(
                board.benchmark,
                name,
                label(result.length),
                closed,
                judge,
                board.folder_at(result.length),
            )
            helm_cell = _helm_cell(tables.get(group, []), result)
            if helm_cell is None and result.is_published and result.task:
                # A task that only published models have is a column of its category.
                category = board.benchmark.entries[result.entry].name
                group = group_name(
                    board.benchmark, category, label(result.length), closed, judge, ""
                )
                helm_cell = _helm_cell(
                    tables.get(group, []),
                    result,
                    f"{board.titles[result.task]} {label(result.length)}",
                )
            if helm_cell:
                cells[key_of(board, result, judge)] = helm_cell
    return cells


def _helm_cell(tables: list[Any], result: Result, title: str = "") -> Cell | None:
    """Return the cell of a model in the first table of a group that has its score.

    Args:
        title: the title of the column; empty for the first one.
    """
    shown = result.model
    with suppress(ValueError):  # HELM does not know the model
        shown = get_model_metadata(result.model).display_name
    # A model without any answer is only in the table of conditions.
    for table in (table for table in tables if table["title"] != "Conditions"):
        titles = [heading["value"] for heading in table["header"]]
        column = titles.index(title) if title in titles else 0 if title else 1
        for row in table["rows"]:
            if (
                column
                and row[0]["value"] == shown
                and len(row) > column
                and "number" in row[column]
            ):
                cell = row[column]
                assert format_percent(cell["number"]) in cell["value"]
                return Cell(
                    cell["number"],
                    cell.get("low"),
                    cell.get("high"),
                    cell.get("n"),
                    bool(cell.get("caveats")),
                )
    return None


def read_table(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV or Parquet file as texts; a missing value is an empty text."""
    if path.suffix == ".parquet":
        for row in parquet.read_table(path).to_pylist():
            yield {
                name: "" if value is None else str(value) for name, value in row.items()
            }
        return
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def export(output: Path, format: str) -> Path:
    folder = output / format
    if not folder.is_dir():
        list(export_suite(format, output / "runs/s", BENCHMARKS, folder))
    return folder


def number(text: str) -> float | None:
    return float(text) if text else None


def cells_of_wide_tables(
    output: Path, kind: str, boards: Iterable[Board]
) -> dict[Key, Cell]:
    cells = {}
    for board in boards:
        name = board.file_name
        for row in read_table(export(output, kind) / f"wide_{name}.{kind}"):
            for part in [
                column[: -len("_failed")]
                for column in row
                if column.endswith("_failed")
            ]:
                length = next(
                    (
                        length
                        for length in board.lengths
                        if label(length) == row["length"]
                    ),
                    None,
                )
                result = board.score(row["model"], part, length, row["context"])
                if row[part] and result:
                    n = int(row[f"{part}_instances"])
                    ends = (number(row[f"{part}_low"]), number(row[f"{part}_high"]))
                    cells[key_of(board, result, judge_of(result))] = Cell(
                        float(row[part]), *ends, n
                    )
    return cells


def cells_of_averages(output: Path, kind: str) -> dict[Key, Cell]:
    """Return the means over the tasks of a run entry."""
    rows = (
        row
        for row in read_table(export(output, kind) / f"averages.{kind}")
        if row["task"] == "average"
    )
    return _cells_of_rows(rows, "entry")


def cells_of_scores(output: Path, kind: str) -> dict[Key, Cell]:
    """Return the scores of tasks, without other metrics."""
    rows = (
        row
        for row in read_table(export(output, kind) / f"scores.{kind}")
        if row["counts"] == "True" and row["task"]
    )
    return _cells_of_rows(
        (row for row in rows if row["metric"] == "longctx_score"), "task"
    )


def _cells_of_rows(rows: Iterable[Mapping[str, str]], part: str) -> dict[Key, Cell]:
    cells = {}
    for row in rows:
        benchmark = next(
            benchmark.name
            for benchmark in BENCHMARKS
            if row["entry"] in benchmark.entries
        )
        row_key = (
            row["folder"],
            row[part],
            row["model"],
            row["length"],
            row["context"],
        )
        cells[(benchmark, *row_key, other_judge(row))] = _cell(row)
    return cells


def other_judge(row: Mapping[str, str]) -> str:
    return "longctx/lexical" if "longctx/lexical" in row["judge"].split("+") else ""


def cells_of_report(output: Path, boards: list[Board]) -> dict[Key, Cell]:
    """Return the cells of a report's file of all scores, without means of one task, which repeat the task."""
    write_scores(boards, output)
    by_name = {(board.benchmark.name, board.folder): board for board in boards}
    cells = {}
    for row in json.loads((output / "scores.json").read_bytes()):
        board = by_name[row["benchmark"], row["folder"]]
        result = board.score(row["model"], row["part"], row["length"], row["context"])
        if result:
            values = (
                row["score"],
                row["low"],
                row["high"],
                row["n"],
                bool(row["caveats"]),
            )
            cells[key_of(board, result, judge_of(result))] = Cell(*values)
    repeated = cells.keys() - set(chosen_keys(boards))
    return {key: cell for key, cell in cells.items() if key not in repeated}


def _cell(row: Mapping[str, str]) -> Cell:
    n = row.get("instances")
    ends = (number(row["low"]), number(row["high"]))
    return Cell(float(row["score"]), *ends, int(n) if n else None, bool(row["caveats"]))


def cells_of_lm_eval(output: Path, boards: Iterable[Board]) -> dict[Key, Cell]:
    cells = {}
    for path in export(output, "lm-eval").glob("*/results_*.json"):
        content = json.loads(path.read_text())
        for group, values in content["results"].items():
            if "longctx_score,none" in values and group in content["configs"]:
                about = content["configs"][group]["metadata"]
                ends = about["interval_95"] or (None, None)
                is_marked = bool(about["not_comparable"])
                cells[content["model_name"], group] = Cell(
                    values["longctx_score,none"], *ends, values["sample_len"], is_marked
                )
    return _by_key(cells, boards)


def cells_of_every_eval_ever(output: Path, boards: Iterable[Board]) -> dict[Key, Cell]:
    cells = {}
    for path in export(output, "every-eval-ever").glob("data/*/*/*/*.json"):
        content = json.loads(path.read_text())
        for record in content["evaluation_results"]:
            if record["metric_config"]["metric_id"].endswith(".longctx_score"):
                details = record["score_details"]
                interval = details["uncertainty"].get("confidence_interval", {})
                cells[content["model_info"]["id"], record["evaluation_name"]] = Cell(
                    details["score"],
                    interval.get("lower"),
                    interval.get("upper"),
                    details["uncertainty"]["num_samples"],
                    "not_comparable" in details["details"],
                )
    return _by_key(cells, boards)


def _by_key(
    cells: Mapping[tuple[str, str], Cell], boards: Iterable[Board]
) -> dict[Key, Cell]:
    """Return the cells of models and groups by the keys of their tasks. Each cell is of one task."""
    cells_by_task = {}
    for board in boards:
        for result in board.tasks:
            closed = result.context == "none"
            judge = result.other_judge
            group = group_name(
                board.benchmark,
                result.task,
                label(result.length),
                closed,
                judge,
                board.folder_at(result.length),
            )
            if (result.model, group) in cells:
                cells_by_task[key_of(board, result, judge)] = cells[result.model, group]
    assert len(cells_by_task) == len(cells)
    return cells_by_task


def own_numbers(run: Path, board: Board, task: str) -> dict[str, float | None]:
    """Return the numbers of a task, computed from the files of its run without the package."""
    answers = []
    for row in json.loads((run / "per_instance_stats.json").read_text()):
        values = {
            stat["name"]["name"]: stat["mean"]
            for stat in row["stats"]
            if stat["name"]["sub_split"] == task
        }
        if values:
            answers.append((row["instance_id"], values))
    states = json.loads((run / "scenario_state.json").read_text())["request_states"]
    wrong = {
        state["instance"]["id"]
        for state in states
        if state["instance"]["extra_data"].get("errata")
    }

    def mean(kept: Any, value: float | None) -> float | None:
        """Return the mean of the task's metrics over the answers that are kept, with another value of cut ones."""
        means = []
        for metric in board.benchmark.task(task).headline:
            kept_values = [
                value
                if value is not None and values["output_truncated"]
                else values[metric]
                for name, values in answers
                if metric in values and kept(name, values)
            ]
            means.append(fmean(kept_values) if kept_values else None)
        return None if None in means else fmean(means)

    def every(*_: object) -> bool:
        return True

    return {
        "cut_wrong": mean(every, 0.0),
        "cut_left_out": mean(lambda name, values: not values["output_truncated"], None),
        "cut_best": mean(every, 1.0),
        "without_errors": mean(lambda name, values: name not in wrong, None)
        if wrong
        else None,
    }
