"""Exports the answers of a suite's runs, with everything that is needed to score them again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

from helm_longctx.errors import InputError
from helm_longctx.results.boards import label
from helm_longctx.results.reading import Result, Run, read_runs
from helm_longctx.runs.files import STATES, State, find_sample, read_states, reading
from helm_longctx.runs.scores import InstanceScore, read_scores
from helm_longctx.tasks.arguments import arguments_of
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import Entry, check_entry

Trial = tuple[str, str, int]
"""An answer's instance id, task and repeat, from 0."""


class Answer(NamedTuple):
    """A model's answer to one instance.

    Args:
        repeat: the number of the repeat, from 1.
        references: the accepted answers, separated by ` | `.
        score: None if the answer has no score.
        error: the server's message if the request has no answer.
        failure: the statistic that counts requests without an answer for this reason, e.g. `request_too_long`.
        depth: position of the evidence in the context, 0 to 1.
        tokens: number of tokens of the prompt.
        package, comparability: see `Score`.
        record: everything that the scorer reads besides the answer, as a JSON object, so that it can be scored again.
        entry: the run entry that asks for this task alone; empty if this version does not know the run's arguments.
        group: the name of what the instance shares with others of its task; see `Example.group`.
        seconds: how long the model took; None if it is not known.
        finish_reason: why the model ended its answer; empty if it is not known.
    """

    run: str
    model: str
    task: str
    length: str
    instance: str
    repeat: int
    question: str
    references: str
    answer: str
    score: float | None
    package: str = ""
    comparability: str = ""
    error: str = ""
    failure: str = ""
    depth: float | None = None
    tokens: int | None = None
    record: str = ""
    entry: str = ""
    group: str = ""
    seconds: float | None = None
    finish_reason: str = ""


def answers(results: Iterable[Result], benchmarks: Iterable[Benchmark]) -> Iterator[Answer]:
    """Yield every answer of every run, holding one request state in memory at a time.

    Args:
        results: the results of tasks of a suite; see `read_results`. Their answers are read again.
        benchmarks: the benchmarks whose tasks can have a score of several metrics.

    Raises:
        InputError: a file of a run is damaged.
    """
    by_name = {each.name: each for each in benchmarks}
    for run, rows in read_runs(result for result in results if result.benchmark):
        benchmark, path = by_name[rows[0].benchmark], run.path / STATES
        answered = {(row.instance, row.task, row.repeat): row for row in read_scores(run.path, [benchmark])}
        entry_text = cache(partial(_entry_text, benchmark, run.spec))
        count = 0
        for state in read_states(path):
            count += 1
            with reading(path):
                answer = _answer(run, rows[0], state, answered, entry_text(state["instance"].get("sub_split", "")))
            yield answer
        if count < len(answered):
            raise InputError(f"{path} lacks instances that have a score; repeat that run")


def _entry_text(benchmark: Benchmark, spec: Mapping[str, Any], task: str) -> str:
    """Return the entry of a task; empty if this version does not know the run's arguments."""
    with suppress(InputError):
        return entry_of(benchmark, spec, task).description
    return ""


def _answer(run: Run, about: Result, state: State, answered: Mapping[Trial, InstanceScore], entry: str) -> Answer:
    instance, task = state["instance"], state["instance"].get("sub_split", "")
    sample = find_sample(instance)
    result = state.get("result") or {}
    completions = result.get("completions") or [{}]
    repeat = state.get("train_trial_index", 0)
    row = None if instance.get("perturbation") else answered.get((instance["id"], task, repeat))
    return Answer(
        run.path.name,
        about.model,
        task,
        label(about.length),
        instance["id"],
        repeat + 1,
        (sample.question if sample else None) or "",
        " | ".join(reference["output"]["text"] for reference in instance["references"]),
        completions[0].get("text", ""),
        row.score if row else None,
        run.package,
        run.comparability,
        result.get("error") or "",
        row.failure if row else "",
        row.depth if row else sample.depth if sample else None,
        row.tokens if row else None,
        answer_record(state),
        entry,
        (sample.group if sample else None) or "",
        result.get("request_time"),
        (completions[0].get("finish_reason") or {}).get("reason") or "",
    )


def answer_record(state: State) -> str:
    """Return everything that the scorer reads in addition to the answer, as JSON.

    These are the references, the fields of the sample, `notes` with the judges' annotations, and `answer_prefix` with
    the text that is scored before the answer.
    """
    sample = find_sample(state["instance"])
    scores_prefix = sample is not None and sample.style == "completion" and sample.prefix_scored
    prefix = {"answer_prefix": sample.answer_prefix} if sample and scores_prefix and sample.answer_prefix else {}
    references = [reference["output"]["text"] for reference in state["instance"]["references"]]
    notes = {"notes": state["annotations"]} if state.get("annotations") else {}
    record = {**prefix, "references": references, **(sample.record if sample else {}), **notes}
    return json.dumps(record, ensure_ascii=False)


def entry_of(benchmark: Benchmark, spec: Mapping[str, Any], task: str) -> Entry:
    """Return the entry that asks for one task of a run.

    Args:
        spec: content of `run_spec.json`.

    Raises:
        InputError: the installed version does not know the run's arguments.
    """
    given, adapter = spec["scenario_spec"]["args"], spec["adapter_spec"]
    arguments = {name: given[name] for name in arguments_of(benchmark) if name in given}
    arguments |= {benchmark.task_argument: benchmark.task(task).argument}
    _, *parts = adapter["method"].split("_")
    arguments |= {"truncation" if part == "error" else "style": part for part in parts}
    if benchmark.task(task).has_judge:
        judges = (each.get("args", {}).get("judge", "auto") for each in spec.get("annotators") or [])
        arguments["judge"] = next(judges, "none")
    entry = check_entry(benchmark, given["entry"], arguments)
    if adapter.get("num_trials", 1) not in (1, entry.repeats):
        entry = check_entry(benchmark, given["entry"], {**arguments, "repeats": adapter["num_trials"]})
    return entry
