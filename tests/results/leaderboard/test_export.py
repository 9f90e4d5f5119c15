"""Tests of the export of a suite's scores to other programs."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.apps.exchange.export import (
    Average,
    answers,
    averages,
    length_plot,
    scores,
)
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.documents.document import unquote_formula, write_csv
from helm_longctx.errors import InputError
from helm_longctx.results.boards import make_boards, read_suite
from helm_longctx.results.comparability import Caveat
from helm_longctx.results.reading import Result, Run
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.results.suite import write_reference
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from tests.apps.report.suites import write_suite
from tests.support.fabricate_runs import ENTRY, long_prompts, repeat_run, write_run

LV_EVAL = find_benchmark("lv_eval")


def score(
    task: str, length: str, value: float, model: str = "m", **changes: Any
) -> Result:
    """Return a score in a task of LV-Eval without an interval."""
    interval = Interval(value, math.nan, math.nan, 9)
    row = Result(
        "lv_eval",
        "lv_eval",
        task,
        ShownModel(model),
        parse_length(length),
        "full",
        interval,
    )
    return replace(row, **changes)


def means(*rows: Result) -> list[Average]:
    return list(averages(make_boards(rows, BENCHMARKS)))


def test_averages() -> None:
    """Averages are over the tasks at each length and the lengths of each task, without weights, and count their scores."""
    one, other = [task.name for task in LV_EVAL.tasks[:2]]
    rows = means(
        score(one, "16k", 0.2), score(other, "16k", 0.6), score(one, "32k", 0.3)
    )
    assert {(row.task, row.length): row[5:7] for row in rows} == {
        ("average", "16k"): (pytest.approx(0.4), 2),
        ("average", "32k"): (0.3, 1),
        (one, "average"): (0.25, 2),
        (other, "average"): (0.6, 1),
    }
    assert (rows[0].model, rows[0].entry, rows[0].context, rows[0].judge) == (
        "m",
        "lv_eval",
        "full",
        "",
    )


def test_judges_are_not_mixed() -> None:
    """The runs of each judge have their own averages."""
    (official, judged) = [
        score(
            "narrativeqa",
            "16k",
            value,
            benchmark="helmet",
            entry="helmet_longqa",
            judges=frozenset([judge]),
            **more,
        )
        for value, judge, more in (
            (0.2, "x", {}),
            (
                0.8,
                "y",
                {
                    "caveats": (Caveat("judge", "narrativeqa", "y"),),
                    "run": Run(Path(), {}, (), "y"),
                },
            ),
        )
    ]
    rows = means(official, replace(judged, run=replace_run(judged.run)))
    assert {row.judge: row.score for row in rows if row.task == "average"} == {
        "x": 0.2,
        "y": 0.8,
    }
    assert length_plot(rows)["facet"]["sort"] == [
        "helmet_longqa, judge=x",
        "helmet_longqa, judge=y",
    ]


def replace_run(run: Run | None) -> Run | None:
    return run and replace(
        run, spec={"name": "r", "scenario_spec": {}, "metric_specs": []}
    )


def test_folders_are_not_mixed(tmp_path: Path) -> None:
    """Each folder of the user's own files has its own averages and its own panel in the plot."""
    entries = [f"any_jsonl:path={path},length=8k" for path in ("fires", "floods")]
    write_suite(tmp_path, entries, {"a/good": 0.9}, instances=5)
    rows = list(averages(read_suite(tmp_path, BENCHMARKS).boards))
    assert {(row.folder, row.task == "average") for row in rows} == {
        (folder, is_mean) for folder in ("fires", "floods") for is_mean in (True, False)
    }
    assert length_plot(rows)["facet"]["sort"] == [
        "any_jsonl, path=fires",
        "any_jsonl, path=floods",
    ]


def test_contexts_are_not_mixed() -> None:
    """Closed-book runs have their own averages."""
    task = LV_EVAL.tasks[0].name
    rows = means(score(task, "16k", 0.2), score(task, "16k", 0.4, context="none"))
    assert {row.context: row.score for row in rows if row.length == "average"} == {
        "full": 0.2,
        "none": 0.4,
    }


def test_instances_are_counted(tmp_path: Path) -> None:
    """An instance that has the statistic counts once, however often it was asked, and a failed one does not count."""
    run = write_run(tmp_path, ENTRY, long_prompts(4, 500))
    path = run / "per_instance_stats.json"
    rows = json.loads(path.read_text())
    failed = {
        "name": {"name": "request_failed", "split": "test", "sub_split": "json_kv"},
        "mean": 1.0,
    }
    rows[0]["stats"] = [failed]
    path.write_text(json.dumps([*rows, *rows]))
    stats = json.loads((run / "stats.json").read_text())
    names = ("request_failed", "json_kv_score", "num_instances", "jury_alpha")
    stats += [{"name": {**failed["name"], "name": name}, "mean": 4.0} for name in names]
    (run / "stats.json").write_text(json.dumps(stats))
    counts = {
        row.metric: row.instances for row in scores(read_suite(tmp_path, BENCHMARKS))
    }
    assert counts == {
        "longctx_score": 3,
        "request_failed": 1,
        "json_kv_score": 3,
        "num_instances": 4,
        "jury_alpha": 4,
    }


def test_repeats_are_told_apart(tmp_path: Path) -> None:
    """Each repeated answer has its own score, and its instance counts once."""
    repeat_run(tmp_path)
    rows = list(answers(read_suite(tmp_path, BENCHMARKS).results, BENCHMARKS))
    assert [(row.instance, row.repeat, row.score) for row in rows] == [
        ("json_kv-0", 1, 1.0), ("json_kv-1", 1, 1.0), ("json_kv-0", 2, 0.0), ("json_kv-1", 2, 0.0)
    ]  # fmt: skip
    assert {row.instances for row in scores(read_suite(tmp_path, BENCHMARKS))} == {2}


def test_answers_say_what_went_wrong(tmp_path: Path) -> None:
    """The table of answers has the depth and the tokens of each answer, and the error and its kind where there is none."""
    run = write_run(tmp_path, ENTRY, long_prompts(2, 500))
    states = json.loads((run / "scenario_state.json").read_text())
    states["request_states"][0]["result"] |= {
        "success": False,
        "error": "too many tokens",
        "completions": [],
    }
    rows = json.loads((run / "per_instance_stats.json").read_text())
    name = {"split": "test", "sub_split": "json_kv"}
    rows[0]["stats"] = [{"name": {"name": "request_too_long", **name}, "mean": 1.0}]
    rows[1]["stats"] += [
        {"name": {"name": statistic, **name}, "mean": value}
        for statistic, value in (("depth", 0.5), ("input_tokens", 321.0))
    ]
    for stem, content in (("scenario_state", states), ("per_instance_stats", rows)):
        (run / f"{stem}.json").write_text(json.dumps(content, indent=2))
    exported = [
        (row.error, row.failure, row.score, row.depth, row.tokens)
        for row in answers(read_suite(tmp_path, BENCHMARKS).results, BENCHMARKS)
    ]
    assert exported[0][:3] == ("too many tokens", "request_too_long", None)
    assert exported[1] == ("", "", 1.0, 0.5, 321)


def test_versions_are_exported(tmp_path: Path) -> None:
    """Every table has the package version and the comparability number of the run spec."""
    run = write_run(tmp_path, ENTRY, long_prompts(2, 500))
    spec = json.loads((run / "run_spec.json").read_text())
    spec["scenario_spec"]["args"] |= {"comparability": 3}
    spec["metric_specs"][0]["args"] |= {"package": "9.8.7"}
    (run / "run_spec.json").write_text(json.dumps(spec))
    suite = read_suite(tmp_path, BENCHMARKS)
    for table in (
        scores(suite),
        averages(suite.boards),
        answers(suite.results, BENCHMARKS),
    ):
        assert {(row.package, row.comparability) for row in table} == {("9.8.7", "3")}


def test_what_is_lacking_is_said(tmp_path: Path) -> None:
    """The rows of scores and averages say what is lacking, including the tasks that no run has."""
    write_run(tmp_path, ENTRY, long_prompts(4, 500))
    suite = read_suite(tmp_path, BENCHMARKS)
    assert {row.caveats for row in scores(suite)} == {"num_samples:json_kv=4/100"}
    others = [
        task.name
        for task in HELMET.entries["helmet_recall"].tasks
        if task.name != "json_kv"
    ]
    assert {row.task: row.caveats.split(";") for row in averages(suite.boards)} == {
        "average": [
            *(f"missing:{name}" for name in others),
            "num_samples:json_kv=4/100",
        ],
        "json_kv": ["num_samples:json_kv=4/100"],
    }


def test_published_scores_lack_nothing(tmp_path: Path) -> None:
    """Published scores have no marks, and their intervals are the widest that the size of the sample allows."""
    write_reference(HELMET, tmp_path, ["GPT-4o-08*"], 131072)
    suite = read_suite(tmp_path, BENCHMARKS)
    means = [row for row in averages(suite.boards) if row.task == "average"]
    assert means
    rows = [row for row in scores(suite) if row.metric == "longctx_score"]
    assert {row.caveats for row in (*rows, *means)} == {""}
    assert {
        row.task: row.instances for row in rows if row.entry == "helmet_rag"
    } == dict.fromkeys(("nq", "triviaqa", "hotpotqa", "popqa"), 100)
    assert all(row.low is not None and row.low < row.score for row in rows)


def test_a_run_that_does_not_count_is_marked(tmp_path: Path) -> None:
    """A second, smaller run of a task is in the table of scores with the mark that it is in no mean."""
    write_run(tmp_path, ENTRY, long_prompts(4, 500))
    write_run(
        tmp_path, ENTRY.replace("num_samples=4", "num_samples=2"), long_prompts(2, 500)
    )
    suite = read_suite(tmp_path, BENCHMARKS)
    assert {(row.instances, row.counts) for row in scores(suite)} == {
        (4, True),
        (2, False),
    }


@pytest.mark.parametrize(
    "name", ["run_spec", "stats", "per_instance_stats", "scenario_state"]
)
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-40],
        lambda data: b"[1]",
        lambda data: b'{"request_states": [3]}',
    ],
)
def test_a_damaged_file_is_named(
    name: str, damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """One line names a damaged file, and no table is left half written."""
    run = write_run(tmp_path / "s", ENTRY, long_prompts(2, 500))
    path = run / f"{name}.json"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        InputError, match=rf"{name}\.json cannot be read \(\w+\); repeat that run"
    ):
        write_csv(tmp_path / "x.csv", (), _rows(tmp_path / "s"))
    assert not list(tmp_path.glob("x*"))


def _rows(folder: Path) -> Iterator[Sequence[Any]]:
    suite = read_suite(folder, BENCHMARKS)
    yield from chain(scores(suite), answers(suite.results, BENCHMARKS))


def test_tables_are_whole_or_not_there(tmp_path: Path) -> None:
    """The earlier table stays if writing a new one fails."""
    path = tmp_path / "x.csv"
    assert write_csv(path, ("a",), [(1,)]) == 1
    with pytest.raises(ZeroDivisionError):
        write_csv(path, ("a",), ((1 / number,) for number in (1, 0)))
    assert list(csv.reader(path.read_text("utf-8-sig").splitlines())) == [["a"], ["1"]]
    assert list(tmp_path.iterdir()) == [path]


FORMULAS = (
    "=cmd|' /C calc'!A0",
    "+1",
    "-1",
    "@SUM(1,2)",
    "\t=1+1",
    "\r=1",
    "\n=1",
    " =1",
    "- a list",
    "＝1",
    "'=1",
    "''=1",
    "=",
)
STARTS = st.sampled_from(
    ["", "'", "''", "=", "+", "-", "@", "\t", "\r", "\n", " ", "＝", "＠", "\ufeff"]
)
TEXTS = st.builds(
    "".join,
    st.tuples(
        STARTS, STARTS, st.text(st.characters(exclude_characters="\0"), max_size=9)
    ),
)


def cells(path: Path) -> list[list[str]]:
    """Return the cells of a file as a spreadsheet reads them."""
    with path.open(encoding="utf-8-sig", errors="surrogatepass", newline="") as file:
        return list(csv.reader(file))


def test_texts_are_no_formulas(tmp_path: Path) -> None:
    """Texts that a spreadsheet would compute as formulas are quoted."""
    texts = [*FORMULAS, "x=1", "'quoted'", "it's", "", "-"]
    write_csv(tmp_path / "x.csv", ["=model", "y"], [(text, text) for text in texts])
    header, *rows = cells(tmp_path / "x.csv")
    assert header == ["'=model", "y"]
    assert [row[0] for row in rows] == [
        *(f"'{text}" for text in FORMULAS),
        "x=1",
        "'quoted'",
        "it's",
        "",
        "'-",
    ]


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    """Negative numbers are not quoted as formulas."""
    write_csv(
        tmp_path / "x.csv",
        ["x"],
        [(-1,), (-0.5,), (1e-300,), (None,), (True,), (float("-inf"),)],
    )
    assert cells(tmp_path / "x.csv")[1:] == [
        ["-1"],
        ["-0.5"],
        ["1e-300"],
        [""],
        ["True"],
        ["-inf"],
    ]


@given(st.lists(TEXTS, min_size=1))
def test_quoting_is_undone(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    """Quoted texts are restored exactly, even if they start with a quotation mark."""
    path = tmp_path_factory.mktemp("quoted") / "x.csv"
    write_csv(path, ["text", "end"], [(text, 1) for text in texts])
    assert [unquote_formula(row[0]) for row in cells(path)[1:]] == texts
    assert not any(
        row[0].lstrip().startswith(("=", "+", "-", "@")) for row in cells(path)
    )
