"""What makes scores incomparable."""

from __future__ import annotations

from typing import Any

import pytest

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.benchmarks.ada_leval import BENCHMARK as ADA_LEVAL
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.protocol.task import Task
from helm_longctx.report.comparability import Lack, Outcome, cell_lacks, describe, find_lacks, find_outcome

RECALL = HELMET.entries["helmet_recall"].tasks
LONGQA = HELMET.entries["helmet_longqa"].tasks
OFFICIAL = "openai/gpt-4o-2024-05-13"


def outcome(
    entry: str = "helmet_recall", values: dict[str, float] | None = None, judge: str = "auto", **arguments: Any
) -> Outcome:
    """Of a run that scored all its tasks, with these statistics of each."""
    category = HELMET.entries[entry]
    tasks = [arguments["task"]] if "task" in arguments else [task.name for task in category.tasks]
    found = find_outcome(
        {
            "scenario_spec": {"args": {"entry": entry, "revision": "r", **arguments}},
            "annotators": [{"class_name": "x", "args": {"judge": judge}}],
        },
        [
            {"name": {"name": name, "split": "test", "sub_split": task}, "mean": value}
            for task in tasks
            for name, value in {"longctx_score": 0.5, "exact_match": 0.5, **(values or {})}.items()
        ],
        [HELMET],
    )
    assert found
    return found


def test_a_whole_run_lacks_nothing() -> None:
    """Statistics that are zero, the benchmark's own sample and its own judge are nothing to tell."""
    zero = {"request_failed": 0.0, "prompt_cut": 0.0, "judge_failed": 0.0, "subsampled": 0.0, "generated_data": 1.0}
    assert find_lacks(RECALL, [outcome(values=zero, num_samples=100)]) == []
    for judge in ("auto", OFFICIAL):
        assert find_lacks(LONGQA, [outcome("helmet_longqa", judge=judge)]) == []


@pytest.mark.parametrize(
    ("values", "arguments", "code", "text"),
    [
        ({"request_failed": 0.02}, {}, "request_failed:json_kv=0.02", "failed requests: 2 % (json_kv)"),
        ({"request_refused": 0.01}, {}, "request_refused:json_kv=0.01", "refused requests: 1 % (json_kv)"),
        ({"request_too_long": 1.0}, {}, "request_too_long:json_kv=1", "requests too long for the model: 100 % (json_kv)"),
        ({"prompt_cut": 0.125}, {}, "prompt_cut:json_kv=0.125", "cut prompts: 12.5 % (json_kv)"),
        ({"subsampled": 1.0}, {}, "subsampled:json_kv", "instances drawn by -m (json_kv)"),
        ({}, {"num_samples": 6}, "num_samples:json_kv=6/100", "6 of the benchmark's 100 examples (json_kv)"),
        ({}, {"num_samples": "99"}, "num_samples:json_kv=99/100", "99 of the benchmark's 100 examples (json_kv)"),
    ],
)  # fmt: skip
def test_reasons(values: dict[str, float], arguments: dict[str, Any], code: str, text: str) -> None:
    """Each has a code for programs and a text for people."""
    lacks = find_lacks(RECALL[:1], [outcome(values=values, task="json_kv", **arguments)])
    assert [lack.code for lack in lacks] == [code]
    assert describe(lacks) == [text]


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ({"length": 16384, "num_samples": 200}, ["num_samples:stackselect=200/1000"]),
        ({"length": 32768, "num_samples": 200}, []),
        ({"length": 32768, "num_samples": 50}, ["num_samples:stackselect=50/200"]),
        ({"length": 32768, "num_samples": 50, "protocol": "api"}, []),
    ],
)
def test_official_samples_by_length_and_protocol(arguments: dict[str, Any], codes: list[str]) -> None:
    """A sample is compared with the official one of the run's length and protocol."""
    task = ADA_LEVAL.task("stackselect")
    spec = {"scenario_spec": {"args": {"entry": "ada_leval_bestanswer", "revision": "r", **arguments}}}
    stats = [{"name": {"name": "longctx_score", "split": "test", "sub_split": task.name}, "mean": 0.5}]
    found = find_outcome(spec, stats, [ADA_LEVAL])
    assert found
    assert [lack.code for lack in find_lacks([task], [found])] == codes


def test_another_judge() -> None:
    """Only tasks that are judged have one; of a jury all are named."""
    judged: list[Task] = [task for task in LONGQA if task.has_judge]
    assert 0 < len(judged) < len(LONGQA)
    lacks = find_lacks(LONGQA, [outcome("helmet_longqa", judge=f"{OFFICIAL}+a/b")])
    assert lacks == [Lack("judge", task.name, f"{OFFICIAL}+a/b") for task in judged]
    assert describe(lacks) == [f"judged by {OFFICIAL}+a/b (narrativeqa)"]


def test_runs_with_different_samples() -> None:
    """A score that is the mean of a small and of a whole run says so; other lengths have their own samples."""
    small, whole = outcome(task="json_kv", num_samples=5), outcome(task="json_kv")
    lacks = find_lacks(RECALL[:1], [small, whole])
    assert [lack.code for lack in lacks] == ["pooled:json_kv=5+100", "num_samples:json_kv=5/100"]
    assert describe(lacks)[0] == "mean of runs with 5 and 100 examples (json_kv)"
    longer = outcome(task="json_kv", num_samples=5, length=131072)
    assert [lack.kind for lack in find_lacks(RECALL[:1], [longer, whole])] == ["num_samples"]


def test_cells() -> None:
    """A category's mean needs all its tasks, of whichever runs; a task's own column only that task."""
    one, other = outcome(task="json_kv", num_samples=6), outcome(task="ruler_niah_mv")
    names = [task.name for task in RECALL]
    lacks = cell_lacks("longctx_score", None, [one, other])
    missing = [Lack("missing", name) for name in names if name not in ("json_kv", "ruler_niah_mv")]
    assert set(lacks) == {*missing, Lack("num_samples", "json_kv", "6/100")}
    assert cell_lacks("longctx_score_at_depth_40", None, [one, other]) == lacks
    assert cell_lacks("json_kv_score", None, [one]) == [Lack("num_samples", "json_kv", "6/100")]
    assert cell_lacks("ruler_niah_mv_score", None, [one, other]) == []
    assert cell_lacks("longctx_score", "json_kv", [one, other]) == [Lack("num_samples", "json_kv", "6/100")]
    assert cell_lacks("longctx_score", None, [outcome(task=name) for name in names]) == []
    assert cell_lacks("prompt_cut", None, [one]) == cell_lacks("longctx_score", None, []) == []
    assert [lack.kind for lack in cell_lacks("exact_match", None, [one])] == ["num_samples"] + ["missing"] * (
        sum("exact_match" in task.metrics for task in RECALL) - 1
    )


def test_variants_in_a_mean() -> None:
    """A task that the category does not count makes its mean another one."""
    (variant, *_) = [task for entry in HELMET.categories for task in entry.variants]
    (entry,) = [f"helmet_{each.name}" for each in HELMET.categories if variant in each.variants][:1]
    runs = [outcome(entry), outcome(entry, task=variant.name)]
    assert cell_lacks("longctx_score", None, runs) == [Lack("extra", variant.name)]


def test_other_runs_have_no_outcome() -> None:
    """Runs of other scenarios, and published results, are nothing that this can tell of."""
    for arguments in ({}, {"entry": "mmlu"}, {"entry": "helmet_recall", "published": "url"}):
        assert find_outcome({"scenario_spec": {"args": arguments}}, [], [HELMET]) is None


def test_own_questions_have_no_official_tasks() -> None:
    """A run of one metric on a user's own questions lacks no other metric."""
    spec = {"scenario_spec": {"args": {"entry": "any_jsonl", "revision": "r", "metric": "rubric", "path": "x"}}}
    stats = [{"name": {"name": "longctx_score", "split": "test", "sub_split": "rubric"}, "mean": 0.5}]
    found = find_outcome(spec, stats, BENCHMARKS)
    assert found
    assert cell_lacks("longctx_score", None, [found]) == []
