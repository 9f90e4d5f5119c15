"""Tests of the scores of tasks, categories and whole benchmarks, and of what the authors printed of them."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.apps.exchange.export import AVERAGE
from helm_longctx.results.boards import (
    category_results,
    choose_tasks,
    make_boards,
    mean_of_results,
    overall_results,
    shorten_folders,
)
from helm_longctx.results.comparability import Caveat, describe
from helm_longctx.results.reading import (
    Result,
    Statistic,
    published_results,
    read_results,
)
from helm_longctx.results.statistics.intervals import (
    Interval,
    mean_interval,
    mean_of_means,
)
from helm_longctx.results.suite import write_reference
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC
from tests.benchmarks.lv_eval.printed import PRINTED
from tests.support.commands import Command

TESTS = Path(__file__).parents[1]
HELMET = find_benchmark("helmet")
LV_EVAL = find_benchmark("lv_eval")


def test_figures_3_to_5_of_helmet(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command finds all 60 correlations that HELMET's figures print, over the 35 models of the figures."""
    monkeypatch.chdir(tmp_path)
    assert (
        command(
            "correlations", "helmet", "--models", "instruct", "--json", "found.json"
        )
        == 0
    )
    assert "60 of 60 printed correlations are equal within 0.01" in command.out
    comparison = json.loads(Path("found.json").read_bytes())
    assert (len(comparison["models"]), comparison["length"]) == (35, 131072)
    by_figure = Counter(
        row["figure"] for row in comparison["printed"] if row["is_equal"]
    )
    assert by_figure == {"5": 21, "3": 36, "4": 3}
    # The page's own model table says which models the figures leave out.
    assert "published/Llama-2-7B-32k-Inst" not in comparison["models"]


def test_correlations_of_other_models(command: Command) -> None:
    """Over all models other correlations are found, and a choice of too few models is an error that says so."""
    assert command("correlations", "helmet") == 0
    assert "60 of 60" not in command.out
    assert command("correlations", "helmet", "--models", "GPT-4*") == 2
    assert "a correlation needs 5" in command.err


def test_helmet_averages() -> None:
    """All 287 averages of models with scores of tasks equal the printed ones, the other 24 within 0.1, and two models have
    eight averages more, which a figure of the authors prints."""
    with (TESTS / "benchmarks/helmet/published_averages.csv").open() as file:
        printed = {
            (row["model"], parse_length(row["length"])): float(row["average"])
            for row in csv.DictReader(file)
        }
    rows = overall_results(category_results(published_results(HELMET), HELMET), HELMET)
    means = {
        (row.model.removeprefix("published/"), row.length): row.interval for row in rows
    }
    # Source: static/images/results_length_main.png at aaab7dc (gh-pages).
    figure = {
        "Qwen2.5-7B-Inst-1M": (56.4, 53.3, 48.0, 44.6),
        "Qwen2.5-14B-Inst-1M": (60.9, 59.9, 59.0, 57.2),
    }
    more = {
        (model, 8192 << index): value
        for model, row in figure.items()
        for index, value in enumerate(row)
    }
    assert len(printed) == 311
    assert means.keys() == {**printed, **more}.keys()
    for key, value in {**printed, **more}.items():
        # Only category scores of one decimal are known of these models.
        rounding = 0.05 if key[0].startswith(("Gemma-3", "Llama-4")) else 0
        assert 100 * means[key].mean == pytest.approx(value, abs=0.05 + rounding + 2e-6)


def test_lv_eval_averages() -> None:
    """The averages over data sets are within 0.01 of LV-Eval's printed ones."""
    rows = overall_results(
        category_results(published_results(LV_EVAL), LV_EVAL), LV_EVAL
    )
    # The averages of this model are not printed.
    rows = [row for row in rows if row.model != "published/Qwen2-72B-Instruct"]
    labels = {
        length: ["16k", "32k", "64k", "128k", "256k"][index]
        for index, length in enumerate(LV_EVAL.lengths)
    }
    for row in rows:
        assert row.length
        key = (row.model.removeprefix("published/"), AVERAGE, labels[row.length])
        assert 100 * row.interval.mean == pytest.approx(PRINTED[key], abs=0.01)  # type: ignore[index]
    assert len(rows) == 50


def result(entry: str, task: str, mean: float = 0.5, judge: str = "") -> Result:
    return Result(
        "helmet",
        entry,
        task,
        ShownModel("a/b"),
        8192,
        "full",
        Interval(mean, mean - 0.1, mean + 0.1, 100),
        frozenset(filter(None, [judge])),
    )


def everything(judges: dict[str, str]) -> list[Result]:
    """Return a result for each task of the seven categories."""
    return [
        result(entry, task.name, judge=judges.get(category.name, ""))
        for entry, category in HELMET.entries.items()
        if category.averaged
        for task in category.tasks_at(8192)
    ]


def test_an_overall_score_has_an_interval() -> None:
    """The interval of an overall score is narrower than the interval of one task."""
    (overall,) = overall_results(category_results(everything({}), HELMET), HELMET)
    assert overall.interval
    assert overall.interval.mean == pytest.approx(0.5)
    assert 0.45 < overall.interval.low < 0.5


@given(
    st.sampled_from([(2, 2), (2, 3), (3, 2), (1, 4), (4, 1), (2, 1)]),
    st.integers(1, 12),
    st.randoms(use_true_random=False),
)
def test_the_grouping_of_tasks_does_not_change_an_interval(
    shape: tuple[int, int], questions: int, random: Random
) -> None:
    """Tasks with equal weights have one mean and one interval, however they are grouped into categories."""
    groups, size = shape
    tasks = []
    for number in range(groups * size):
        scores = [float(random.random() < 0.5) for _ in range(questions)]
        interval = mean_interval(scores)
        tasks.append(
            replace(
                result("helmet_recall", str(number)),
                interval=interval,
                statistics={MAIN_METRIC: Statistic(interval)},
            )
        )
    whole = result("helmet_recall", "")
    flat = replace(whole, parts=tuple(tasks))
    categories = [
        replace(whole, parts=tuple(tasks[start : start + size]))
        for start in range(0, len(tasks), size)
    ]
    nested = replace(whole, parts=tuple(categories))
    mean = mean_of_results(nested.weighted_tasks)
    expected = mean_of_results(flat.weighted_tasks)
    assert (mean.mean, mean.low, mean.high) == pytest.approx(
        (expected.mean, expected.low, expected.high)
    )
    plain = mean_of_means([task.interval for task in tasks])
    assert (mean.low, mean.high, mean.n) == pytest.approx(
        (plain.low, plain.high, plain.n)
    )


def test_why_there_is_no_overall_score() -> None:
    """A missing category, a missing task or two different judges leave no overall score, and other lacks are only marks."""
    whole = everything({})
    (missing,) = overall_results(
        category_results([r for r in whole if r.entry != "helmet_cite"], HELMET), HELMET
    )
    assert (missing.has_score, describe(missing.caveats)) == (
        False,
        ["no score (cite)"],
    )
    (partial,) = overall_results(
        category_results([r for r in whole if r.task != "qampari"], HELMET), HELMET
    )
    assert (partial.has_score, describe(partial.caveats)) == (
        False,
        ["no score (qampari)"],
    )
    judged = everything({"longqa": "x/one", "summ": "x/two"})
    (judges,) = overall_results(category_results(judged, HELMET), HELMET)
    assert not judges.has_score
    assert describe(judges.caveats) == [
        "judged by x/one and x/two, so the parts do not compare"
    ]
    same = everything({"longqa": "x/one", "summ": "x/one"})
    assert overall_results(category_results(same, HELMET), HELMET)[0].has_score
    few = [replace(r, caveats=(Caveat("num_samples", r.task, "5/100"),)) for r in whole]
    (marked,) = overall_results(category_results(few, HELMET), HELMET)
    assert marked.has_score
    assert {caveat.kind for caveat in marked.caveats} == {"num_samples"}


def test_of_equal_runs_the_official_judge_s_counts() -> None:
    """The official judge's run counts among equal runs in any order, and each judge's best run counts for its own column."""
    official = replace(
        result("helmet_longqa", "narrativeqa"), judges=frozenset(["official"])
    )
    other = replace(
        official, caveats=(Caveat("judge", "narrativeqa"),), judges=frozenset(["x/one"])
    )
    more = replace(other, interval=Interval(0.5, 0.4, 0.6, 101))
    for rows, best in (
        ([other, official], official),
        ([official, other], official),
        ([official, more], more),
    ):
        (board,) = make_boards(rows, BENCHMARKS)
        assert board.score("a/b", "narrativeqa", 8192) == best
    assert choose_tasks([other, more, official]) == [more, official]


def test_a_smaller_run_changes_no_mean() -> None:
    """A second run of a task with fewer instances is in no score."""
    rows = [name for name in everything({}) if name.entry == "helmet_recall"]
    small = replace(rows[0], interval=Interval(1.0, 0.4, 1.0, 3))
    (before,), (after,) = (
        make_boards(rows, BENCHMARKS),
        make_boards([small, *rows], BENCHMARKS),
    )
    assert before.score("a/b", "helmet_recall", 8192) == after.score(
        "a/b", "helmet_recall", 8192
    )


def test_variants_are_in_no_mean() -> None:
    """The modes of LongBench v2 are columns of their own, and not in the mean."""
    v2 = find_benchmark("longbench_v2")
    (category,) = v2.categories
    tasks = (*category.tasks, *category.variants)
    rows = [
        replace(
            result("longbench_v2", task.name, mean),
            benchmark="longbench_v2",
            length=None,
        )
        for task, mean in zip(tasks, (0.5, 0.7, 0.2), strict=True)
    ]
    (board,) = make_boards(rows, BENCHMARKS)
    assert board.score("a/b", "longbench_v2", None).interval.mean == 0.5  # type: ignore[union-attr]
    assert board.parts_at(None) == [task.name for task in tasks]


def test_the_users_own_questions_have_a_score_of_each_metric() -> None:
    """The score of own questions includes every metric that was asked for, also those that are not the default."""
    rows = [
        replace(
            result("any_jsonl", task, mean),
            benchmark="any_jsonl",
            folder="my/questions",
        )
        for task, mean in (("rubric", 0.25), ("exact_match", 0.75))
    ]
    (board,) = make_boards(rows, BENCHMARKS)
    assert board.title.endswith(" questions")
    assert board.parts_at(8192) == ["overall", "exact_match", "rubric"]
    assert board.score("a/b", "overall", 8192).interval.mean == 0.5  # type: ignore[union-attr]


def test_a_suite(tmp_path: Path) -> None:
    """Own runs have intervals and judges, and published results have the widest intervals that the sample allows."""
    shutil.unpack_archive(
        TESTS / "runs/old_run.zip", tmp_path / "helmet_longqa:task=narrativeqa"
    )
    write_reference(HELMET, tmp_path, ["ProLong"], 8192)
    rows = read_results(tmp_path, BENCHMARKS)
    (own,) = [row for row in rows if not row.is_published]
    assert (own.model, own.interval.mean, own.judges) == (
        "longctx/lexical",
        1.0,
        {"tests/plain"},
    )
    assert own.interval.low < 0.5
    assert [caveat.kind for caveat in own.caveats] == ["num_samples", "judge"]
    rag = [row for row in rows if row.entry == "helmet_rag"]
    assert {(row.model, row.interval.n, row.length) for row in rag} == {
        ("published/ProLong", 100, 8192)
    }
    assert len(rag) == 4
    assert all(0.11 < row.interval.high - row.interval.low < 0.2 for row in rag)
    assert len(category_results(rows, HELMET)) == 9


@pytest.mark.parametrize("judge", ["vllm/a--b", f"vllm/{'long-name-' * 9}"])
def test_a_judge_has_the_name_that_its_run_entry_gives(
    judge: str, tmp_path: Path
) -> None:
    """A judge's name comes from the run entry, and not from the run group, whose name is shortened and has no slashes."""
    run = tmp_path / "helmet_longqa:task=narrativeqa"
    shutil.unpack_archive(TESTS / "runs/old_run.zip", run)
    spec = json.loads((run / "run_spec.json").read_text())
    spec["scenario_spec"]["args"]["judge"] = spec["annotators"][0]["args"]["judge"] = (
        judge
    )
    (run / "run_spec.json").write_text(json.dumps(spec))
    (own,) = read_results(tmp_path, BENCHMARKS)
    assert (own.judges, own.other_judge, own.run and own.run.judge) == (
        {judge},
        judge,
        judge,
    )


def test_short_names_of_folders() -> None:
    """A folder is named by its last part, unless two folders share that part."""
    assert shorten_folders(["", "a/law", "b/law", "law/bills"]) == {
        "": "",
        "a/law": "a/law",
        "b/law": "b/law",
        "law/bills": "bills",
    }
