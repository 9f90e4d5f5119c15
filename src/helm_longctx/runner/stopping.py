"""Makes runs with more and more instances until a question about their scores is decided.

HELM draws the instances of a smaller limit also for a larger one, so each round sends only the requests that are new,
and a stopped run can be completed later. The other answers come from the request cache.
"""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from helm_longctx.documents.numbers import format_ends, format_percent
from helm_longctx.errors import InputError
from helm_longctx.helm_api import RunSpec
from helm_longctx.helm_log import helm_log
from helm_longctx.results.stopping import StoppingQuestion, StoppingVerdict
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runs.files import read_looks, write_looks
from helm_longctx.runs.scores import read_scores
from helm_longctx.tasks.entry import ADAPTER_METHOD
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.stop_rules import Rule
from helm_longctx.tasks.stored_entry import OF_REQUESTS

FIRST = 32
GROWTH = 1.5
"""Instances of the first round, and the factor by which each further round is larger."""


@dataclass(frozen=True)
class Stop:
    """How a question about runs, one for each model, ended. The verdict's text is empty if the question is open."""

    specs: Sequence[RunSpec]
    verdict: StoppingVerdict
    instances: int

    def __str__(self) -> str:
        interval = self.verdict.interval
        mean = format_percent(interval.mean)
        ends = format_ends(interval)
        entry = self.specs[0].scenario_spec.args.get("entry", self.specs[0].name)
        return (
            f"{entry}: {self.verdict}: {mean} ({ends}) after {self.instances} instances"
        )


def group_specs(rule: Rule, specs: Sequence[RunSpec]) -> list[list[RunSpec]]:
    """Return the runs that each question is about: one, or for `better` the two models' runs of an entry.

    Raises an `InputError` if an entry does not have the models that the question needs.
    """
    groups: dict[str, list[RunSpec]] = defaultdict(list)
    for spec in specs:
        groups[spec.name if rule.models == 1 else _questions_of(spec)].append(spec)
    for group in groups.values():
        if len(group) != rule.models:
            names = ", ".join(spec.adapter_spec.model_deployment for spec in group)
            raise InputError(
                f"run: stop_when={rule.kind} compares two models, but {group[0].name} has {names}"
            )
    return list(groups.values())


def _limit(spec: RunSpec, size: int) -> RunSpec:
    """Return a run of at most `size` instances."""
    most = spec.adapter_spec.max_eval_instances
    limit = size if most is None else min(size, most)
    return replace(
        spec, adapter_spec=replace(spec.adapter_spec, max_eval_instances=limit)
    )


def _questions_of(spec: RunSpec) -> str:
    """Return what runs with the same questions share. Each model can have a style and a sampling of its own."""
    scenario = asdict(spec.scenario_spec)
    if spec.adapter_spec.method == ADAPTER_METHOD:
        for name in OF_REQUESTS:
            scenario["args"].pop(name, None)
    return json.dumps(scenario, sort_keys=True)


def run_until_decided(
    runner: LongContextRunner,
    specs: Sequence[RunSpec],
    rule: Rule,
) -> list[Stop]:
    """Make the runs, and return how each question ended.

    Args:
        specs: runs with the largest number of instances.

    Raises:
        InputError: a run failed, or has scores that are not between 0 and 1. The answers are kept.
        RunnerError: a run of HELM's own failed.
    """
    questions = []
    for group in group_specs(rule, specs):
        looks: set[int] = set()
        for spec in group:
            looks.update(read_looks(runner.run_path(spec)))
        models = [spec.adapter_spec.model_deployment for spec in group]
        questions.append((group, StoppingQuestion(rule, models, looks)))
    stops = []
    size = FIRST
    while questions:
        limited: list[RunSpec] = []
        for group, _ in questions:
            limited += [_limit(spec, size) for spec in group]
        runner.run_all(limited)
        still_open = []
        for group, question in questions:
            paths = [runner.run_path(spec) for spec in group]
            rows = [read_scores(path, BENCHMARKS) for path in paths]
            question.observe(rows)
            for path in paths:
                write_looks(path, question.looks)
            stop = Stop(group, question.decide(), question.asked)
            # A run can have all instances that there are, or that the user allows.
            most = group[0].adapter_spec.max_eval_instances
            made = len({score.instance for score in rows[0]})
            if stop.verdict.text or made < size or (most is not None and size >= most):
                stops.append(stop)
                helm_log.info(str(stop))
            else:
                still_open.append((group, question))
        questions = still_open
        size = math.ceil(GROWTH * size)
    return stops
