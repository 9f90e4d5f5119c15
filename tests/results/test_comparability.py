"""Tests of the reasons that make scores incomparable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from helm_longctx.benchmarks.ada_leval import BENCHMARK as ADA_LEVAL
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.results.comparability import (
    Caveat,
    describe,
    task_caveats,
)
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.stored_entry import read_entry
from helm_longctx.tasks.task import Task

RECALL = HELMET.entries["helmet_recall"].tasks
LONGQA = HELMET.entries["helmet_longqa"].tasks
OFFICIAL = "openai/gpt-4o-2024-05-13"


def make_entry(
    name: str = "helmet_recall", judge: str = "auto", **arguments: Any
) -> Entry:
    """Return what a run was asked with."""
    spec = {
        "scenario_spec": {
            "args": {"entry": name, "revision": "r", "length": 8192, **arguments}
        },
        "annotators": [{"class_name": "x", "args": {"judge": judge}}],
    }
    entry = read_entry(spec)
    assert entry
    return entry


def find_caveats(
    tasks: Iterable[Task], entry: Entry, values: Mapping[str, float] | None = None
) -> list[Caveat]:
    """Return the reasons of several tasks of a run that have these statistics."""
    caveats: list[Caveat] = []
    for task in tasks:
        means = {"longctx_score": 0.5, **(values or {})}
        caveats += task_caveats(task, entry, means)
    return caveats


def test_a_whole_run_lacks_nothing() -> None:
    """Statistics of zero, the benchmark's own sample and its own judge give no reasons."""
    zero = {
        "request_failed": 0.0,
        "prompt_cut": 0.0,
        "judge_failed": 0.0,
        "subsampled": 0.0,
        "generated_data": 0.0,
    }
    assert find_caveats(RECALL, make_entry(num_samples=100), zero) == []
    for judge in ("auto", OFFICIAL):
        assert find_caveats(LONGQA, make_entry("helmet_longqa", judge=judge)) == []


@pytest.mark.parametrize(
    ("values", "arguments", "code", "text"),
    [
        ({"request_failed": 0.02}, {}, "request_failed:json_kv=0.02", "failed requests: 2 % (json_kv)"),
        ({"request_refused": 0.01}, {}, "request_refused:json_kv=0.01", "refused requests: 1 % (json_kv)"),
        ({"request_too_long": 1.0}, {}, "request_too_long:json_kv=1", "requests too long for the model: 100 % (json_kv)"),
        ({"prompt_cut": 0.125}, {}, "prompt_cut:json_kv=0.125", "cut prompts: 12.5 % (json_kv)"),
        ({"prompt_cut_by_server": 1.0}, {}, "prompt_cut_by_server:json_kv=1", "prompts that the server cut: 100 % (json_kv)"),
        ({"other_model": 1.0}, {}, "other_model:json_kv=1", "answers of another model: 100 % (json_kv)"),
        ({"answer_empty": 0.5, "num_instances": 100, "request_failed": 0.0}, {}, "answer_empty:json_kv=50/100", "50 of 100 answers are empty (json_kv)"),
        ({"answer_in_reasoning": 1.0, "num_instances": 4}, {}, "answer_in_reasoning:json_kv=4/4", "4 of 4 answers have all their text in the reasoning field; check the server's reasoning parser (json_kv)"),
        ({"reasoning_suspected": 0.25, "num_instances": 4}, {}, "reasoning_suspected:json_kv=1/4", "1 of 4 answers may contain reasoning (json_kv)"),
        ({"subsampled": 1.0}, {}, "subsampled:json_kv", "instances drawn by -m (json_kv)"),
        ({"generated_data": 1.0}, {"length": 8192}, "generated:json_kv=helmet_recall:length=8k", "generated questions, not the benchmark's own (json_kv)"),
        ({}, {"length": 9216}, "length:json_kv=9k", "9k is not a length of the benchmark (json_kv)"),
        ({}, {"num_samples": 6}, "num_samples:json_kv=6/100", "6 of the benchmark's 100 examples (json_kv)"),
        ({}, {"num_samples": "99"}, "num_samples:json_kv=99/100", "99 of the benchmark's 100 examples (json_kv)"),
    ],
)  # fmt: skip
def test_reasons(
    values: dict[str, float], arguments: dict[str, Any], code: str, text: str
) -> None:
    """Each reason has a code for programs and a text for people."""
    entry = make_entry(task="json_kv", **arguments)
    caveats = find_caveats(RECALL[:1], entry, values)
    assert [caveat.code for caveat in caveats] == [code]
    assert describe(caveats) == [text]


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ({"length": 16384, "num_samples": 200}, ["num_samples:stackselect=200/1000"]),
        ({"length": 32768, "num_samples": 200}, []),
        ({"length": 32768, "num_samples": 50}, ["num_samples:stackselect=50/200"]),
        ({"length": 32768, "num_samples": 50, "protocol": "api"}, []),
    ],
)
def test_official_samples_by_length_and_protocol(
    arguments: dict[str, Any], codes: list[str]
) -> None:
    """A sample is compared with the official one of the run's length and protocol."""
    task = ADA_LEVAL.task("stackselect")
    entry = make_entry("ada_leval_bestanswer", **arguments)
    assert [caveat.code for caveat in find_caveats([task], entry)] == codes


def test_another_judge() -> None:
    """Only judged tasks have the reason of another judge, which names all judges of a jury."""
    judged: list[Task] = [task for task in LONGQA if task.has_judge]
    assert 0 < len(judged) < len(LONGQA)
    caveats = find_caveats(LONGQA, make_entry("helmet_longqa", judge=f"{OFFICIAL}+a/b"))
    assert caveats == [Caveat("judge", task.name, f"{OFFICIAL}+a/b") for task in judged]
    assert describe(caveats) == [f"judged by {OFFICIAL}+a/b (narrativeqa)"]


def test_own_questions_have_no_official_number() -> None:
    """A part of a user's own questions is marked, without a number that the file does not have."""
    entry = make_entry("any_jsonl", metric="contains", path="x", num_samples=2)
    caveats = find_caveats(entry.tasks, entry)
    assert describe(caveats) == ["2 of your questions (contains)"]


def test_own_questions_have_no_official_tasks() -> None:
    """A run of one metric on a user's own questions lacks no other metric."""
    entry = make_entry("any_jsonl", metric="rubric", path="x")
    assert [task.name for task in entry.tasks] == ["rubric"]
