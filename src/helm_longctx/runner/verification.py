"""Checks the files of a run against each other: digests of answers and prompts, and statistics against their parts."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import zstandard
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.statistic import merge_stat

from helm_longctx.errors import InputError
from helm_longctx.helm.metric import LongContextMetric
from helm_longctx.helm_api import PerInstanceStats, RequestState, Stat
from helm_longctx.models.results import failure_of
from helm_longctx.runner.rejudge import load_object, load_state
from helm_longctx.runs.files import (
    INSTANCE_STATS,
    RUN_SPEC,
    STATES,
    STATS,
    find_incomplete_files,
    read_run_spec,
)
from helm_longctx.runs.journal import answer_files, read_answers
from helm_longctx.runs.ledger import NAME as LEDGER
from helm_longctx.runs.ledger import ledgers
from helm_longctx.runs.prompts import read_prompts
from helm_longctx.runs.records import find_difference
from helm_longctx.tasks.metric_names import FAILURES
from helm_longctx.tasks.registry import benchmark_of

StatisticKey = tuple[str, str, int]
"""An answer: instance id, task and repeat."""

_CLOSE = 1e-9
"""Largest relative difference of equal means. Other versions of the package can have added in another order."""


def find_runs(suite: Path) -> list[Path]:
    """Return the folders of a suite's runs, also of those that are not complete."""
    runs = []
    for path in sorted(suite.iterdir()):
        if (path / RUN_SPEC).is_file() or [*answer_files(path), *path.glob(LEDGER)]:
            runs.append(path)
    return runs


def find_faults(run: Path) -> Iterator[str]:
    """Yield what is wrong in the files of a run, one line each. Files that do not exist yet are not wrong.

    Scores are not computed again, because another version of the package may have computed them.
    """
    answers: dict[str, Any] = {}
    for path in answer_files(run):
        try:
            answers |= read_answers(path)
        except InputError as error:
            yield str(error)
    try:
        list(ledgers([run]))  # a damaged record raises an error when it is opened
    except InputError as error:
        yield str(error)
    try:
        for _ in read_prompts(run):
            pass
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        zstandard.ZstdError,
    ) as error:
        yield f"the stored prompts are damaged: {type(error).__name__}"
    try:
        if (run / INSTANCE_STATS).is_file():
            yield from _check_results(run, answers)
    except InputError as error:
        yield str(error)


def _check_results(run: Path, answers: Mapping[str, Any]) -> Iterator[str]:
    if incomplete := find_incomplete_files(run):
        yield f"{', '.join(incomplete)}: missing or cut off; repeat that run"
        return
    if difference := find_difference(run):
        yield difference
    rows: list[PerInstanceStats] = load_object(
        run / INSTANCE_STATS, list[PerInstanceStats]
    )
    for row in rows:
        for stat in row.stats:
            if stat.count and not _is_close(stat.mean, stat.sum / stat.count):
                label = f"{_label(_row_key(row))} has the mean {stat.mean} of {_title(stat.name)}"
                yield f"{INSTANCE_STATS}: {label}, and the sum {stat.sum} of {stat.count}"
    stats = load_object(run / STATS, list[Stat])
    entry = read_run_spec(run)["scenario_spec"].get("args", {}).get("entry")
    if entry is None:
        # The means of HELM's own metrics are over all instances. Of several trials they are not compared.
        merged: dict[MetricName, Stat] = {}
        for row in () if any(row.train_trial_index for row in rows) else rows:
            for stat in row.stats:
                merge_stat(merged, stat)
        yield from _compare(stats, {name: stat.mean for name, stat in merged.items()})
        return
    state = load_state(run)
    stored = _StoredMetric(benchmark_of(entry).name, rows)
    expected = {}
    for stat in stored.evaluate(state, None, "", 1).aggregated_stats:
        expected[stat.name] = stat.mean
    yield from _compare(stats, expected, is_all=True)
    yield from _check_states(state.request_states, stored.rows)
    for key, count in Counter(map(_row_key, rows)).items():
        if count > 1:
            yield f"{INSTANCE_STATS}: {_label(key)} is there {count} times"
    if not answers:
        return
    texts: set[str] = set()
    for result in answers.values():
        if result:
            texts.update(completion.text for completion in result.completions)
    for request_state in state.request_states:
        result = request_state.result
        if not result or failure_of(result) is not None:
            continue
        if result.completions[0].text not in texts:
            key = _state_key(request_state)
            yield f"{STATES}: the answer to {_label(key)} is not in the journal"


class _StoredMetric(LongContextMetric):
    """The metric of a run with the stored statistics of each answer in the place of new ones."""

    def __init__(self, benchmark: str, rows: Iterable[PerInstanceStats]):
        super().__init__(benchmark)
        self.rows = {_row_key(row): row for row in rows}

    def answer_values(self, state: RequestState) -> Iterator[tuple[str, float | None]]:
        """Yield the stored statistics of one answer."""
        if row := self.rows.get(_state_key(state)):
            for stat in row.stats:
                yield (stat.name.name, stat.mean)


def _state_key(state: RequestState) -> StatisticKey:
    return (
        str(state.instance.id),
        state.instance.sub_split or "",
        state.train_trial_index,
    )


def _row_key(row: PerInstanceStats) -> StatisticKey:
    return (
        str(row.instance_id),
        next((stat.name.sub_split or "" for stat in row.stats), ""),
        row.train_trial_index,
    )


def _compare(
    stats: Iterable[Stat],
    expected: Mapping[MetricName, float | None],
    is_all: bool = False,
) -> Iterator[str]:
    """Compare stored means with expected ones. `is_all`: whether these are all statistics, and not only some."""
    stored = {stat.name: stat.mean for stat in stats}
    for name in stored if is_all else stored.keys() & expected.keys():
        if name not in expected:
            yield f"{STATS}: {_title(name)} is {stored[name]}, but no answer has it in {INSTANCE_STATS}"
        elif not _is_close(stored[name], expected[name]):
            yield f"{STATS}: {_title(name)} is {stored[name]}, but {INSTANCE_STATS} gives {expected[name]}"
    for name in expected.keys() - stored.keys():
        yield f"{STATS}: {_title(name)} is missing, but {INSTANCE_STATS} gives {expected[name]}"


def _check_states(
    states: Iterable[RequestState],
    rows: Mapping[StatisticKey, PerInstanceStats],
) -> Iterator[str]:
    """Check that the answers and the statistics are of the same instances, and agree on failures."""
    left = dict(rows)
    for state in states:
        key = _state_key(state)
        row = left.pop(key, None)
        if row is None:
            yield f"{INSTANCE_STATS}: {_label(key)} is missing"
            continue
        is_failure = any(stat.mean for stat in row.stats if stat.name.name in FAILURES)
        if is_failure == (
            state.result is not None and failure_of(state.result) is None
        ):
            yield f"{STATES} and {INSTANCE_STATS}: only one of them has an answer to {_label(key)}"
    for key in left:
        yield f"{STATES}: {_label(key)} is missing"


def _is_close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)


def _title(name: MetricName) -> str:
    return " ".join(filter(None, (name.name, name.split, name.sub_split)))


def _label(key: StatisticKey) -> str:
    instance, task, repeat = key
    return (
        f"instance {instance}"
        + (f" of {task}" if task else "")
        + (f", repeat {repeat + 1}" if repeat else "")
    )
