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
from helm_longctx.runs.answers import Answer, read_answers
from helm_longctx.runs.files import STATES, reading
from helm_longctx.runs.scores import read_scores
from helm_longctx.tasks.arguments import arguments_of
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import Entry, arguments_of_method, check_entry


class AnswerRow(NamedTuple):
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


def answers(results: Iterable[Result], benchmarks: Iterable[Benchmark]) -> Iterator[AnswerRow]:
    """Yield every answer of every run, holding one request state in memory at a time.

    Args:
        results: the results of tasks of a suite; see `read_results`. Their answers are read again.
        benchmarks: the benchmarks whose tasks can have a score of several metrics.

    Raises:
        InputError: a file of a run is damaged.
    """
    by_name = {each.name: each for each in benchmarks}
    for run, rows in read_runs(result for result in results if result.benchmark):
        benchmark = by_name[rows[0].benchmark]
        entry_text = cache(partial(_entry_text, benchmark, run.spec))
        for answer in read_answers(run.path, read_scores(run.path, [benchmark])):
            with reading(run.path / STATES):
                row = _row(run, rows[0], answer, entry_text(answer.key[0]))
            yield row


def _entry_text(benchmark: Benchmark, spec: Mapping[str, Any], task: str) -> str:
    """Return the entry of a task; empty if this version does not know the run's arguments."""
    with suppress(InputError):
        return entry_of(benchmark, spec, task).description
    return ""


def _row(run: Run, about: Result, answer: Answer, entry: str) -> AnswerRow:
    task, instance, repeat = answer.key
    sample, score = answer.sample, answer.score
    return AnswerRow(
        run.path.name,
        about.model,
        task,
        label(about.length),
        instance,
        repeat + 1,
        answer.question,
        " | ".join(answer.references),
        answer.text,
        score.score if score else None,
        run.package,
        run.comparability,
        answer.error,
        score.failure if score else "",
        score.depth if score else sample.depth if sample else None,
        score.tokens if score else None,
        answer_record(answer),
        entry,
        (sample.group if sample else None) or "",
    )


def answer_record(answer: Answer) -> str:
    """Return everything that the scorer reads in addition to the answer, as JSON.

    These are the references, the fields of the sample, `notes` with the judges' annotations, and `answer_prefix` with
    the text that is scored before the answer.
    """
    sample, annotations = answer.sample, answer.state.get("annotations")
    scores_prefix = sample is not None and sample.style == "completion" and sample.prefix_scored
    prefix = {"answer_prefix": sample.answer_prefix} if sample and scores_prefix and sample.answer_prefix else {}
    notes = {"notes": annotations} if annotations else {}
    record = {**prefix, "references": answer.references, **(sample.record if sample else {}), **notes}
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
    arguments |= arguments_of_method(adapter["method"])
    if benchmark.task(task).has_judge:
        judges = (each.get("args", {}).get("judge", "auto") for each in spec.get("annotators") or [])
        arguments["judge"] = next(judges, "none")
    entry = check_entry(benchmark, given["entry"], arguments)
    if adapter.get("num_trials", 1) not in (1, entry.repeats):
        entry = check_entry(benchmark, given["entry"], {**arguments, "repeats": adapter["num_trials"]})
    return entry
