"""Plans the sample of a gate, and sends the same requests to two deployments, or twice to one, in both orders."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from helm.benchmark.executor import Executor

from helm_longctx.apps.gate.answers import part_name
from helm_longctx.apps.gate.folder import BASE, CANDIDATE, GateFolder
from helm_longctx.apps.gate.gate import DEPTHS
from helm_longctx.errors import InputError
from helm_longctx.helm_api import RunSpec
from helm_longctx.results.statistics.comparison import level_of_look
from helm_longctx.results.statistics.noninferiority import (
    ONE_SIDED,
    changed_outcomes,
    count_needed_clusters,
    power_to_fail,
    power_to_pass,
    smallest_drop,
    visible_drop,
)
from helm_longctx.runner.cache import digest_cache
from helm_longctx.runner.estimate import Estimate, TaskSample
from helm_longctx.runner.machines.shards import OneShard
from helm_longctx.runner.prepared import PreparedRun
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runner.spending import Limit
from helm_longctx.runner.spool import RunSpools
from helm_longctx.runs.journal import Shard
from helm_longctx.tasks.lengths import sort_lengths


@dataclass(frozen=True)
class Goal:
    """What a gate must be able to show.

    Args:
        margin: the largest drop that is accepted, above 0 and below 1.
        power: the probability with which a candidate without a drop passes, below 1.
        noise: the share of right and wrong answers that is expected to differ.
    """

    margin: float
    power: float
    noise: float


@dataclass(frozen=True)
class LengthPlan:
    """The sample of a gate at a length.

    Args:
        part: the length's label.
        questions, clusters: numbers of questions, and of the clusters in which they are.
        needed: number of questions that the goal needs.
        power: the probability that a candidate without a drop is shown to be no worse at this length.
        worse_from: the smallest drop that is called worse with the wanted power.
    """

    part: str
    questions: int
    clusters: int
    needed: int
    power: float
    worse_from: float

    @property
    def share(self) -> float:
        """The share of the questions that the goal needs, at most 1."""
        return min(1.0, self.needed / self.questions)


def plan_lengths(samples: Iterable[TaskSample], goal: Goal) -> list[LengthPlan]:
    """Plan the sample at each length, by simulations of the decision.

    A candidate passes only if it passes at each length. So the probability to fail is divided among the lengths, after
    what the tests of depths need.

    Args:
        samples: the questions of each task that can be asked.
    """
    samples = list(samples)
    lengths: dict[int | None, list[TaskSample]] = defaultdict(list)
    for sample in samples:
        lengths[sample.length].append(sample)
    depths = _count_depths(samples)
    count = max(len(lengths), 1)
    power = min((goal.power + bool(depths) * ONE_SIDED) ** (1 / count), 0.999)
    parts = count + (count > 1) + len(depths)
    level = level_of_look((1,), ONE_SIDED)
    outcomes = changed_outcomes(goal.noise)
    plans = []
    for length in sort_lengths(lengths):
        tasks = lengths[length]
        sizes = [task.clusters for task in tasks]
        cells = tuple(zip(_weigh(tasks), sizes, strict=True))
        questions = sum(task.questions for task in tasks)
        clusters = sum(sizes)
        needed = count_needed_clusters(cells, goal.noise, goal.margin, power, ONE_SIDED)
        passes = power_to_pass(cells, outcomes, goal.margin, level)
        worse = smallest_drop(
            clusters, goal.noise, goal.margin, level / parts, goal.power
        )
        needed = math.ceil(needed * questions / clusters)
        plans.append(
            LengthPlan(
                part=part_name(length),
                questions=questions,
                clusters=clusters,
                needed=needed,
                power=passes,
                worse_from=worse,
            )
        )
    return plans


def _weigh(samples: Sequence[TaskSample]) -> list[float]:
    """Return the weight of each task at a length: equal run entries, and equal tasks of an entry."""
    tasks = Counter(sample.entry for sample in samples)
    weights = []
    for sample in samples:
        weights.append(1 / (len(tasks) * tasks[sample.entry]))
    return weights


def _count_depths(samples: Iterable[TaskSample]) -> dict[str, int]:
    """Return the number of clusters at each depth that a gate tests, if there are several."""
    numbers: Counter[str] = Counter()
    for sample in samples:
        for depth, clusters in sample.depths:
            name = next(name for name, percents in DEPTHS.items() if depth in percents)
            numbers[name] += clusters
    return numbers if len(numbers) > 1 else {}


@dataclass(frozen=True)
class DepthPlan:
    """What the tests of depths find.

    Args:
        visible_drop: the smallest drop at one depth that is shown with the wanted power.
        false_alarm: the largest probability that they keep a candidate without a drop from passing.
    """

    visible_drop: float
    false_alarm: float


def plan_depths(samples: Iterable[TaskSample], goal: Goal) -> DepthPlan | None:
    """Plan the tests of depths, or return None if the questions have no depths, or all the same."""
    depths = _count_depths(samples)
    if not depths:
        return None
    outcomes = changed_outcomes(goal.noise)
    level = ONE_SIDED / len(depths)
    alarm = 0.0
    for clusters in depths.values():
        alarm += power_to_fail(((1.0, clusters),), outcomes, 0.0, level)
    return DepthPlan(
        visible_drop(min(depths.values()), goal.noise, len(depths), goal.power), alarm
    )


def overall_power(lengths: Sequence[LengthPlan], depths: DepthPlan | None) -> float:
    """Return the least probability that a candidate without a drop passes at all lengths and depths."""
    return max(
        0.0,
        math.prod(plan.power for plan in lengths)
        - (depths.false_alarm if depths else 0),
    )


def limit_specs(
    specs: Sequence[RunSpec],
    estimates: Sequence[Estimate],
    plans: Sequence[LengthPlan],
) -> list[RunSpec]:
    """Return the run specs with as many instances as the goal needs, divided among the runs of a length by their sizes.

    Args:
        estimates: the estimate of each spec with all its instances.
        plans: the plans for all instances.
    """
    shares = {plan.part: plan.share for plan in plans}
    limited = []
    for spec, estimate in zip(specs, estimates, strict=True):
        needed = 0
        for sample in estimate.samples:
            needed += math.ceil(sample.questions * shares[part_name(sample.length)])
        adapter = spec.adapter_spec
        most = min(needed, adapter.max_eval_instances or needed)
        limited.append(
            replace(spec, adapter_spec=replace(adapter, max_eval_instances=most))
        )
    return limited


def check_samples(base: Sequence[Estimate], candidate: Sequence[Estimate]) -> None:
    """Check that both deployments get the same requests, and that no task is asked twice.

    Raises:
        InputError: they do not, because their windows, tokenizers or styles of prompts differ; or a task at a length is
            in several run entries.
    """
    for one, other in zip(base, candidate, strict=True):
        if one.requests_digest != other.requests_digest:
            raise InputError(
                f"gate: {one.deployment} and {other.deployment} get different requests"
                f" in {one.run}, because their windows, tokenizers or styles of prompts"
                " differ; give both deployments the same max_sequence_length,"
                " tokenizer_name and style"
            )
    tasks = Counter[tuple[str, str, int | None]]()
    for estimate in base:
        tasks.update(
            (sample.entry, sample.task, sample.length) for sample in estimate.samples
        )
    for (entry, task, length), count in tasks.items():
        if count > 1:
            name = " ".join(part for part in (entry, task, part_name(length)) if part)
            raise InputError(
                f"gate: {name} is in several run entries; give each task and length once"
            )


class _FirstHalf(OneShard):
    """Sends the first half of each run's requests, and writes down which requests these are.

    Args:
        folder: the gate's folder, or None for the candidate: its first half is the same as the base's.
    """

    def __init__(self, folder: GateFolder | None):
        # Prompts of one context are in the same half.
        super().__init__(Shard(1, 2))
        self._folder = folder

    def ask(self, run: PreparedRun) -> None:
        """Write down the requests, and send them."""
        if self._folder:
            keys = []
            for request in run.requests:
                instance = request.state.instance
                repeat = request.state.train_trial_index
                keys.append((instance.sub_split or "", str(instance.id), repeat))
            self._folder.write_first_half(run.path.name, keys)
        super().ask(run)


class _Arm:
    """Sends the requests of one arm of a gate: the first half of a run, or what is left of it.

    The request cache belongs to the arm and the gate, so that neither the other arm nor an earlier gate answers.
    Judges use the ordinary cache, so that equal answers get equal verdicts.

    Args:
        name: `base` or `candidate`.
        folder: the gate's folder.
        arguments: the arguments of `LongContextRunner`, with the arm's suite.
        limit: the limit in dollars of both arms.
        spools: the spools of both arms.

    Attributes:
        limit: the limit in dollars.
        spools: gives the runs of both arms their spools.
        has_asked: whether a run was not complete.
    """

    def __init__(
        self,
        name: str,
        folder: GateFolder,
        arguments: Mapping[str, Any],
        limit: Limit | None = None,
        spools: RunSpools | None = None,
    ):
        strategy = _FirstHalf(folder if name == BASE else None)
        self._half = LongContextRunner(**arguments, strategy=strategy)
        self._whole = LongContextRunner(**arguments)
        self._whole.logs_scores = False
        self.limit = limit or self._whole.limit
        self.spools = spools or self._whole.spools
        self.has_asked = False
        spec = self._whole.executor.execution_spec
        own = replace(
            spec, sqlite_cache_backend_config=digest_cache(str(folder.cache(name)))
        )
        for runner in (self._half, self._whole):
            runner.limit = self.limit
            runner.spools = self.spools
            runner.executor = Executor(own)

    def ask_first_half(self, spec: RunSpec) -> None:
        """Send the first half of a run's requests."""
        self._half.run_all([spec])

    def complete(self, spec: RunSpec) -> Path:
        """Send the requests of a run that are left, write the run's files, and return its folder."""
        self.has_asked |= not self._whole.is_made(spec)
        self._whole.run_all([spec])
        return self._whole.run_path(spec)


def make_arms(
    folder: GateFolder,
    base: Mapping[str, Any],
    candidate: Mapping[str, Any],
) -> tuple[_Arm, _Arm]:
    """Return both arms. They share the limit in dollars, and the prompts of a run.

    Args:
        base, candidate: the arguments of the runners.
    """
    first = _Arm(BASE, folder, base)
    second = _Arm(CANDIDATE, folder, candidate, first.limit, first.spools)
    return first, second


def ask_in_both_orders(
    arms: tuple[_Arm, _Arm],
    specs: Iterable[tuple[RunSpec, RunSpec]],
) -> list[tuple[str, str]]:
    """Make each run with both arms: the first half with the base first, and the second half with the candidate first.

    Drift over time and a shared prefix cache then affect both arms equally.

    Returns:
        The names of the folders of each run of the base and of the candidate.

    Raises:
        InputError: a run cannot be made. Answers that have arrived are kept.
    """
    base, candidate = arms
    names = []
    for one, other in specs:
        with base.spools.share_between([one, other, other, one]):
            base.ask_first_half(one)
            candidate.ask_first_half(other)
            path = candidate.complete(other)
            names.append((base.complete(one).name, path.name))
    return names
