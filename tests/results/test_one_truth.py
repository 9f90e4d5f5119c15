"""Tests that HELM's pages, the report, printed tables, `compare` and exports show the same scores."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from helm.benchmark.model_metadata_registry import get_model_metadata
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from helm_longctx.apps.comparison.sections import comparison_sections
from helm_longctx.apps.exchange.command import export_suite
from helm_longctx.apps.report.leaderboard import leaderboard_sections
from helm_longctx.cli.main import main
from helm_longctx.documents.document import Answer, Figure, Table
from helm_longctx.documents.numbers import percent
from helm_longctx.results.boards import OVERALL, Board, label, read_suite
from helm_longctx.results.cells import leaderboard_rows, score_numbers, score_tables, write_scores
from helm_longctx.results.comparison import by_instance, describe_best, describe_pair, find_differences
from helm_longctx.results.reading import Result
from helm_longctx.results.suite import write_reference
from helm_longctx.tasks.groups import group_name
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from tests.results.report.suites import write_run, write_suite
from tests.support.leaderboards import summarize_suite

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


class Cell(NamedTuple):
    """A score in a place that shows it. Numbers that the place does not have are None."""

    mean: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    is_marked: bool | None = None


Key = tuple[str, str, str, str, str, str, str]
"""Benchmark, folder, part, model, length, context, and the judge if it is not the official one."""


@st.composite
def suites(draw: st.DrawFn) -> list[tuple[str, str, int]]:
    """Draw the runs of a suite: entry, model and number of instances of each task."""
    entries = draw(st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=5, unique=True))
    runs = [(entry, model, draw(st.integers(1, 8))) for entry in entries for model in MODELS]
    chosen = draw(st.lists(st.sampled_from(runs), min_size=1, max_size=8, unique_by=lambda run: run[:2]))
    return [(entry, model, 2 if "num_samples=2" in entry else count) for entry, model, count in chosen]


@example([("helmet_longqa:length=8k,judge=longctx/lexical", "a/weak", 3)], True)  # a column that names a judge
@example([("helmet_recall:length=8k,retry_cut=4x", "a/weak", 6), ("helmet_recall:length=8k", "a/weak", 6)], False)
@example(
    [("helmet_recall:length=8k,method=retrieve,chunks=4", "a/weak", 6), ("helmet_recall:length=8k", "a/weak", 6)], False
)
@example([("graphwalks:task=openai_parents,length=128k", "a/strong", 8)], False)  # questions with known errors
@example([("longbench_v2:mode=cot", "longctx/lexical", 1)], True)  # the only request fails
@example(
    [("longbench_v2:mode=0shot", model, count) for model, count in (("a/strong", 1), ("longctx/lexical", 2))], True
)
@example([(ENTRIES[-1], "a/weak", 3), (ENTRIES[-2], "a/weak", 3)], False)
@given(suites(), st.booleans())
# A failing suite is not made smaller, because each example takes seconds.
@settings(
    max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
def test_every_place_shows_the_same_scores(runs: list[tuple[str, str, int]], has_published: bool) -> None:
    """Value, interval, number of instances and mark are equal in every place, and no score is left out."""
    with TemporaryDirectory() as name:
        output = Path(name)
        suite = output / "runs/s"
        for entry, model, count in runs:
            skill = 0.2 + 0.3 * MODELS.index(model)
            write_run(suite, f"{entry}{',' if ':' in entry else ':'}model={model}", model, skill, count, "", flaws=True)
        if has_published:
            write_reference(find_benchmark("helmet"), suite, ["GPT-4o-08*", "Llama-3.1-8B"])
        boards = read_suite(suite, BENCHMARKS).boards
        own = cells_of_boards(boards)
        tasks = {key: cell for key, cell in own.items() if is_task(boards, key) and not is_published(key)}
        assert own_means(suite) == {key: pytest.approx(cell.mean) for key, cell in tasks.items()}
        check(own, cells_of_helm(output, boards))
        chosen = {key: own[key] for key in chosen_keys(boards)}
        check(chosen, cells_of_report(output, boards), parts=chosen.__contains__)
        for kind in ("csv", "parquet"):
            check(chosen, cells_of_wide_tables(output, kind))
            # A task of LongBench v2 has the name of its run entry.
            means = {key: cell for key, cell in cells_of_averages(output, kind).items() if not is_task(boards, key)}
            check(own, means, parts=lambda key: not is_task(boards, key) and key[2] != OVERALL)
            check(own, cells_of_scores(output, kind), parts=lambda key: is_task(boards, key))
        for cells in (cells_of_lm_eval(output, boards), cells_of_every_eval_ever(output, boards)):
            check(own, cells, parts=lambda key: is_task(boards, key) and not is_published(key))
        compare_printed(boards)
        compare_json(boards)
        compare_numbers(suite, boards, output)


def check(own: Mapping[Key, Cell], shown: Mapping[Key, Cell], parts: Any = None) -> None:
    """Check that the cells of a place are equal to the cells of the boards.

    Args:
        parts: says of a key whether the place shows it; None if it shows all.
    """
    expected = {key: cell for key, cell in own.items() if parts is None or parts(key)}
    assert shown.keys() == expected.keys()
    for key, cell in shown.items():
        for name in Cell._fields:
            value, right = getattr(cell, name), getattr(expected[key], name)
            assert value is None or value == pytest.approx(right), (key, name)


def is_published(key: Key) -> bool:
    return key[3].startswith("published/")


def is_task(boards: Iterable[Board], key: Key) -> bool:
    return any(key[2] == task.name for board in boards for task in board.benchmark.tasks)


def key_of(board: Board, result: Result, judge: str) -> Key:
    place = (result.model, label(result.length), result.context)
    return (board.benchmark.name, board.folder, result.part, *place, judge)


def cells_of_boards(boards: Iterable[Board]) -> dict[Key, Cell]:
    """Return the scores of tasks, categories and benchmarks of each judge."""
    cells = {}
    for board in boards:
        for result in (*board.tasks, *board.categories, *board.overalls):
            is_repeated = result.part == OVERALL and len(board.benchmark.categories) == 1
            if result.has_score and not is_repeated:
                interval = result.interval
                cells[key_of(board, result, _judge_of(result))] = Cell(
                    interval.mean, interval.low, interval.high, interval.n, bool(result.caveats)
                )
    return cells


def chosen_keys(boards: Iterable[Board]) -> list[Key]:
    """Return the keys of the scores in places without columns for judges, without means of one task, which repeat the task."""
    return [
        key_of(board, result, _judge_of(result))
        for board in boards
        for result in board.scores.values()
        # Of published models often only the category is known.
        if result.task or not result.parts or result.part == OVERALL or _has_tasks(board, result)
        if not (result.part == OVERALL and len(board.benchmark.categories) == 1)
    ]


def _has_tasks(board: Board, result: Result) -> bool:
    return len(board.benchmark.entries[result.part].tasks) > 1


def _judge_of(result: Result) -> str:
    """Return the judge of a task or a category, if it is not the official one."""
    if result.part == OVERALL:
        return ""
    return result.other_judge if result.task else next((run.judge for run in result.runs), "")


def own_means(suite: Path) -> dict[Key, float]:
    """Return the means of tasks, computed from the files without the package; the run with the most instances counts."""
    best: dict[Key, tuple[int, float]] = {}
    for path in sorted(suite.glob("*/run_spec.json")):
        spec = json.loads(path.read_text())
        arguments = spec["scenario_spec"]["args"]
        if "published" in arguments:
            continue
        values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in json.loads((path.parent / "per_instance_stats.json").read_text()):
            for stat in row["stats"]:
                values[stat["name"]["sub_split"]][stat["name"]["name"]].append(stat["mean"])
        benchmark = next(each for each in BENCHMARKS if arguments["entry"] in each.entries)
        judge = next((each["args"].get("judge", "") for each in spec.get("annotators", [])), "")
        for name, found in values.items():
            task = benchmark.task(name)
            if not all(metric in found for metric in task.headline):
                continue
            score = fmean(fmean(found[metric]) for metric in task.headline)
            given = ("method", "chunks", "retry_cut")
            marks = " ".join(f"{name}={arguments[name]}" for name in given if name in arguments)
            model = spec["adapter_spec"]["model"] + (f" ({marks})" if marks else "")
            place = (arguments.get("path", ""), name, model)
            other = "" if not judge or task.is_official(judge) else judge
            at = (label(arguments.get("length")), arguments.get("context", "full"))
            key = (benchmark.name, *place, *at, other)
            if key not in best or len(found[task.headline[0]]) > best[key][0]:
                best[key] = (len(found[task.headline[0]]), score)
    return {key: score for key, (_, score) in best.items()}


def cells_of_helm(output: Path, boards: Iterable[Board]) -> dict[Key, Cell]:
    """Return the cells of HELM's tables of single categories and tasks."""
    suite = output / "runs/s"
    summarize_suite("s", output)
    tables = {path.stem: json.loads(path.read_text()) for path in (suite / "groups").glob("*.json")}
    cells: dict[Key, Cell] = {}
    for board in boards:
        for result in (*board.tasks, *board.categories, *board.overalls):
            judge = _judge_of(result)
            name = board.benchmark.entries[result.part].name if result.part in board.benchmark.entries else result.part
            closed = result.context == "none"
            group = group_name(
                board.benchmark, name, label(result.length), closed, judge, board.folder_at(result.length)
            )
            found = _helm_cell(tables.get(group, []), result)
            if found is None and result.is_published and result.task:
                # A task that only published models have is a column of its category.
                category = board.benchmark.entries[result.entry].name
                group = group_name(board.benchmark, category, label(result.length), closed, judge, "")
                found = _helm_cell(tables.get(group, []), result, f"{board.titles[result.task]} {label(result.length)}")
            if found:
                cells[key_of(board, result, judge)] = found
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
    for table in (each for each in tables if each["title"] != "Conditions"):
        titles = [each["value"] for each in table["header"]]
        column = titles.index(title) if title in titles else 0 if title else 1
        for row in table["rows"]:
            if column and row[0]["value"] == shown and len(row) > column and "number" in row[column]:
                cell = row[column]
                assert percent(cell["number"]) in cell["value"]
                return Cell(cell["number"], cell.get("low"), cell.get("high"), cell.get("n"), bool(cell.get("lacking")))
    return None


def read_table(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV or Parquet file as texts; a missing value is an empty text."""
    if path.suffix == ".parquet":
        for row in parquet.read_table(path).to_pylist():
            yield {name: "" if value is None else str(value) for name, value in row.items()}
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


def cells_of_wide_tables(output: Path, kind: str) -> dict[Key, Cell]:
    boards = {board.file_name: board for board in read_suite(output / "runs/s", BENCHMARKS).boards}
    cells = {}
    for name, board in boards.items():
        for row in read_table(export(output, kind) / f"wide_{name}.{kind}"):
            for part in [column[: -len("_failed")] for column in row if column.endswith("_failed")]:
                length = next((each for each in board.lengths if label(each) == row["length"]), None)
                result = board.score(row["model"], part, length, row["context"])
                if row[part] and result:
                    n = int(row[f"{part}_instances"])
                    ends = (number(row[f"{part}_low"]), number(row[f"{part}_high"]))
                    cells[key_of(board, result, _judge_of(result))] = Cell(float(row[part]), *ends, n)
    return cells


def cells_of_averages(output: Path, kind: str) -> dict[Key, Cell]:
    """Return the means over the tasks of a run entry."""
    return {
        (*_place(row), row["entry"], row["model"], row["length"], row["context"], _other_judge(row)): _cell(row)
        for row in read_table(export(output, kind) / f"averages.{kind}")
        if row["task"] == "average"
    }


def cells_of_scores(output: Path, kind: str) -> dict[Key, Cell]:
    return {
        (*_place(row), row["task"], row["model"], row["length"], row["context"], _other_judge(row)): _cell(row)
        for row in read_table(export(output, kind) / f"scores.{kind}")
        if row["metric"] == "longctx_score" and row["counts"] == "True" and row["task"]
    }


def _place(row: Mapping[str, str]) -> tuple[str, str]:
    return next(each.name for each in BENCHMARKS if row["entry"] in each.entries), row["folder"]


def _other_judge(row: Mapping[str, str]) -> str:
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
            values = (row["score"], row["low"], row["high"], row["n"], bool(row["lacking"]))
            cells[key_of(board, result, _judge_of(result))] = Cell(*values)
    repeated = cells.keys() - set(chosen_keys(boards))
    return {key: cell for key, cell in cells.items() if key not in repeated}


def _cell(row: Mapping[str, str]) -> Cell:
    n = row.get("instances")
    ends = (number(row["low"]), number(row["high"]))
    return Cell(float(row["score"]), *ends, int(n) if n else None, bool(row["lacking"]))


def cells_of_lm_eval(output: Path, boards: Iterable[Board]) -> dict[Key, Cell]:
    cells = {}
    for path in export(output, "lm-eval").glob("*/results_*.json"):
        content = json.loads(path.read_text())
        for group, found in content["results"].items():
            if "longctx_score,none" in found and group in content["configs"]:
                about = content["configs"][group]["metadata"]
                ends, is_marked = about["interval_95"] or (None, None), bool(about["not_comparable"])
                cells[content["model_name"], group] = Cell(
                    found["longctx_score,none"], *ends, found["sample_len"], is_marked
                )
    return _by_key(cells, boards)


def cells_of_every_eval_ever(output: Path, boards: Iterable[Board]) -> dict[Key, Cell]:
    cells = {}
    for path in export(output, "every-eval-ever").glob("data/*/*/*/*.json"):
        content = json.loads(path.read_text())
        for each in content["evaluation_results"]:
            if each["metric_config"]["metric_id"].endswith(".longctx_score"):
                found = each["score_details"]
                interval = found["uncertainty"].get("confidence_interval", {})
                cells[content["model_info"]["id"], each["evaluation_name"]] = Cell(
                    found["score"],
                    interval.get("lower"),
                    interval.get("upper"),
                    found["uncertainty"]["num_samples"],
                    "not_comparable" in found["details"],
                )
    return _by_key(cells, boards)


def _by_key(cells: Mapping[tuple[str, str], Cell], boards: Iterable[Board]) -> dict[Key, Cell]:
    """Return the cells of models and groups by the keys of their tasks. Each cell is of one task."""
    found = {}
    for board in boards:
        for result in board.tasks:
            closed, judge = result.context == "none", result.other_judge
            group = group_name(
                board.benchmark, result.task, label(result.length), closed, judge, board.folder_at(result.length)
            )
            if (result.model, group) in cells:
                found[key_of(board, result, judge)] = cells[result.model, group]
    assert len(found) == len(cells)
    return found


def compare_printed(boards: list[Board]) -> None:
    """Check that the printed tables have the scores of the user's models in percent."""
    titles = {}
    for table in score_tables(boards, published=0):
        about, _, folder = table.title.partition(", models of ")
        for name, *cells in table.rows:
            model = name.text if name.text.startswith("longctx/") else f"{folder}{name.text}"
            for title, cell in zip(table.header[1:], cells, strict=True):
                heading, _, counts = title.rpartition("\n")
                titles[about, heading, model] = cell.line, counts.removeprefix("n=").partition("–")
    for board in boards:
        for place, score in board.scores.items():
            is_repeated = len(board.benchmark.categories) == 1 and place.part == OVERALL
            category = board.benchmark.entries.get(place.part)
            if score.is_published or is_repeated or (category and len(category.tasks_at(place.length)) < 2):
                continue
            closed = "closed book" if place.context == "none" else ""
            title = " ".join(filter(None, (board.title, closed, label(place.length))))
            text, (low, _, high) = titles[
                f"{title}: scores in % (95 % intervals)", board.titles[place.part], place.model
            ]
            ends = f"{percent(score.interval.low)}–{percent(score.interval.high)}"
            assert text == f"{percent(score.interval.mean)}{' †' if score.caveats else ''} ({ends})"
            assert int(low) <= score.interval.n <= int(high or low)


def compare_json(boards: list[Board]) -> None:
    """Check that the JSON of `summarize` has the scores of all models by column."""
    rows = {(row["leaderboard"], row["model"]): row["scores"] for row in leaderboard_rows(boards)}
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
            found = score_numbers(result)
            if result.run and result.has_score:
                expected = own_numbers(result.run.path, board, result.task)
                assert {name: found[name] for name in expected} == pytest.approx(expected, nan_ok=True)
                assert found["cut_wrong"] <= result.interval.mean <= found["cut_best"]
    rows = json.loads((output / "scores.json").read_bytes())
    shown = [{name: row[name] for name in NUMBERS} for row in rows]
    assert shown == [score_numbers(result) for board in boards for result in board.results.values()]
    averages = {
        (row["entry"], row["model"], row["length"], row["context"], _other_judge(row)): row
        for row in read_table(export(output, "csv") / "averages.csv")
        if row["task"] == "average"
    }
    for board in boards:
        for result in board.categories:
            key = (result.entry, result.model, label(result.length), result.context, _judge_of(result))
            if result.has_score and not board.folder:
                row = {name: number(averages[key][name]) for name in NUMBERS}
                assert row == pytest.approx(score_numbers(result), nan_ok=True)


NUMBERS = ("cut_wrong", "cut_left_out", "cut_best", "without_errors")


def own_numbers(run: Path, board: Board, task: str) -> dict[str, float | None]:
    """Return the numbers of a task, computed from the files of its run without the package."""
    answers = []
    for row in json.loads((run / "per_instance_stats.json").read_text()):
        values = {stat["name"]["name"]: stat["mean"] for stat in row["stats"] if stat["name"]["sub_split"] == task}
        if values:
            answers.append((row["instance_id"], values))
    states = json.loads((run / "scenario_state.json").read_text())["request_states"]
    wrong = {each["instance"]["id"] for each in states if each["instance"]["extra_data"].get("errata")}

    def mean(kept: Any, value: float | None) -> float | None:
        """Return the mean of the task's metrics over the answers that are kept, with another value of cut ones."""
        means = []
        for metric in board.benchmark.task(task).headline:
            found = [
                value if value is not None and values["output_truncated"] else values[metric]
                for name, values in answers
                if metric in values and kept(name, values)
            ]
            means.append(fmean(found) if found else None)
        return None if None in means else fmean(means)

    def every(*_: object) -> bool:
        return True

    return {
        "cut_wrong": mean(every, 0.0),
        "cut_left_out": mean(lambda name, values: not values["output_truncated"], None),
        "cut_best": mean(every, 1.0),
        "without_errors": mean(lambda name, values: name not in wrong, None) if wrong else None,
    }


def compare_models(output: Path, models: Iterable[str]) -> Any:
    """Call `compare`, and return its JSON."""
    arguments = ["compare", "--suite", "s", "-o", str(output), "--json", str(output / "compare.json"), *models]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["helm-longctx", *arguments])
        with pytest.raises(SystemExit, match="0"):
            main()
    return json.loads((output / "compare.json").read_bytes())


def answers_of_report(board: Board) -> dict[str, Answer]:
    """Return the headline of each length."""
    sections = leaderboard_sections(board)
    return {section.choice: block for section in sections for block in section.blocks if isinstance(block, Answer)}


@pytest.mark.parametrize(
    "skills",
    [
        {"a/strong": 0.9, "a/weak": 0.5},
        {"a/strong": 0.7, "a/weak": 0.66},
        {"a/strong": 0.9, "a/same": 0.9, "a/weak": 0.3},
        {f"a/{place}": 0.9 - 0.06 * place for place in range(6)},
    ],
)
def test_verdicts_agree_in_every_place(
    skills: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`compare` and the report, beside 63 published models, say of each pair and length the same: better, worse or tied."""
    write_suite(tmp_path / "runs/s", [f"helmet_recall:length={each}" for each in ("8k", "32k")], skills, instances=20)
    content = compare_models(tmp_path, skills)
    printed = " ".join(capsys.readouterr().out.split())
    (board,) = read_suite(tmp_path / "runs/s", BENCHMARKS, published=True).boards
    answers = answers_of_report(board)
    for length in (8192, 32768):
        differences = find_differences(board, "helmet_recall", length)
        pairs = [each for each in content["pairings"] if (each["by"], each["part"]) == ("length", label(length))]
        assert len(pairs) == len(skills) * (len(skills) - 1) / 2
        for each in pairs:
            pair = each["one"], each["other"]
            decision = differences[pair]
            winner = pair[decision.comparison.effect.mean < 0] if decision.is_different else ""
            assert (each["better"], each["adjusted"]) == (winner, pytest.approx(decision.adjusted))
        best, *others = (each.model for each in board.ranking(length, "helmet_recall") if not each.is_published)
        answer = answers[label(length)]
        assert answer.verdict.startswith(f"{best} has the highest score in Recall of your models: ")
        tied = [other for other in others if not differences[best, other].is_different]
        assert answer.is_sure == (not tied)
        assert answer.certainty.startswith(
            f"Statistical tie with {', '.join(tied[:4])}" if tied else "It is better than"
        )
        verdict = describe_pair(best, others[0], differences[best, others[0]])
        sentence = (
            verdict
            if len(skills) == 2
            else f"{best} has the highest mean. {describe_best(best, [each for each in skills if each != best], differences)}"
        )
        assert f"At {label(length)} {sentence}" in printed


def test_a_mean_over_other_tasks_has_no_rank_in_any_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model with the easiest of four tasks is not above one with all four; on that task both are compared."""
    suite = tmp_path / "runs/s"
    write_run(suite, "helmet_recall:length=8k,model=a/whole", "a/whole", 0.8, 30, "")
    write_run(suite, "helmet_recall:length=8k,model=a/second", "a/second", 0.6, 30, "")
    write_run(suite, "helmet_recall:task=json_kv,length=8k,model=a/part", "a/part", 1.5, 30, "")
    (board,) = read_suite(suite, BENCHMARKS, published=True).boards
    part, *_ = board.unranked(8192, "helmet_recall")
    assert part.model == "a/part"
    assert part.interval.mean > max(
        each.interval.mean for each in board.ranking(8192, "helmet_recall") if not each.is_published
    )
    differences = find_differences(board, "helmet_recall", 8192)
    found = differences["a/part", "a/whole"].comparison
    both = [board.score(model, "json_kv", 8192) for model in ("a/part", "a/whole")]
    shared = [by_instance(each.answers if each else ()) for each in both]
    assert found.wins + found.losses + found.ties == len(shared[0].keys() & shared[1].keys())
    # The published models have scores of the same task.
    assert any(one == "a/part" and other.startswith("published/") for one, other in differences)
    answer = answers_of_report(board)["8k"]
    assert answer.verdict.startswith("a/whole has the highest score in Recall of your models: ")
    assert (
        "a/part has no rank, because its mean is over other tasks (JSON KV); on the tasks that both have, a/part is "
        in answer.note
    )
    table = next(block for block in leaderboard_sections(board)[0].blocks if isinstance(block, Table))
    assert [(row[0].text, row[1].text) for row in table.rows[2:3]] == [("–", "a/part")]
    assert [kind for kind, _ in table.bodies][:2] == ["own", "unranked"]
    ranks = comparison_sections(board)[0].blocks[1]
    assert isinstance(ranks, Figure)
    assert "a/part †" not in {row["model"] for row in ranks.rows}
    summarize_suite("s", tmp_path)
    for name in ("helmet_recall_8k", "helmet_8k"):
        rows = json.loads((suite / f"groups/{name}.json").read_text())[0]["rows"]
        assert [row[0]["value"] for row in rows][-1] == "a/part"
        # HELM's page sorts the texts, in which a space comes before digits.
        assert max(rows, key=lambda row: row[1]["value"])[0]["value"] == "a/whole"
    printed = next(score_tables([board]))
    assert [row[0].text for row in printed.rows][:3] == ["whole", "second", "part"]
    content = compare_models(tmp_path, ["a/part", "a/whole"])
    assert {each["part"] for each in content["pairings"] if each["by"] == "task"} == {"json_kv"}
    (pairing,) = (each for each in content["pairings"] if each["by"] == "length")
    assert pairing["comparison"]["effect"]["mean"] == pytest.approx(found.effect.mean)


def test_compare_does_not_pool_benchmarks_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`compare` has a verdict for each benchmark, and one mean over all only with `--pool`."""
    for entry in ("helmet_recall:length=8k", "lv_eval:dataset=factrecall_en,length=16k"):
        write_suite(tmp_path / "runs/s", [entry], {"a/strong": 0.9, "a/weak": 0.3}, instances=40)
    models = ["a/strong", "a/weak"]
    content = compare_models(tmp_path, models)
    assert {each["benchmark"] for each in content["standings"]} == {"helmet", "lv_eval"}
    printed = capsys.readouterr().out.splitlines()
    heads = [place for place, line in enumerate(printed) if line.endswith("instances that all 2 models answered")]
    assert [printed[place].partition(":")[0] for place in heads] == ["HELMET", "LV-Eval"]
    assert all(printed[place + 1].startswith("a/strong is better than a/weak (+") for place in heads)
    assert {each["benchmark"] for each in compare_models(tmp_path, [*models, "--pool"])["standings"]} == {""}
    assert "HELMET and LV-Eval: " in capsys.readouterr().out


def test_compare_has_the_scores_of_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where both models answered everything, `compare` has the same means as the tables, and their differences."""
    suite = tmp_path / "runs/s"
    for model, skill in (("a/strong", 0.9), ("a/weak", 0.3)):
        for entry in ("helmet_recall:length=8k", "helmet_ruler:length=8k", "helmet_rag:length=8k"):
            write_run(suite, f"{entry},model={model}", model, skill, 6, "")
    content = compare_models(tmp_path, ["a/strong", "a/weak"])
    (board,) = read_suite(suite, BENCHMARKS).boards
    by_task = {each["part"]: each["comparison"]["effect"] for each in content["pairings"] if each["by"] == "task"}
    shared = 0
    for task, effect in by_task.items():
        one, other = (board.score(model, task, 8192) for model in ("a/strong", "a/weak"))
        if one and other and one.interval.n == other.interval.n == effect["n"]:
            assert effect["mean"] == pytest.approx(one.interval.mean - other.interval.mean)
            shared += 1
    assert shared > 3
    assert "Not in the means, because the benchmark leaves them out: ruler_niah_s_1" in capsys.readouterr().out
