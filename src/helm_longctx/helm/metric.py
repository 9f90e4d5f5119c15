"""The metric of all benchmarks: scores as HELM statistics, in all and by depth, and counts of what went wrong."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from statistics import fmean
from typing import cast

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.augmentations.perturbation_description import (
    PERTURBATION_WORST,
    PerturbationDescription,
)
from helm.benchmark.metrics.metric import (
    Metric,
    MetricMetadata,
    MetricResult,
    PerInstanceStats,
    add_context,
)
from helm.benchmark.metrics.metric_name import MetricContext, MetricName
from helm.benchmark.metrics.metric_service import MetricService
from helm.benchmark.metrics.statistic import Stat, merge_stat

from helm_longctx.failures import Failure
from helm_longctx.models.apis.prices import Prices, find_prices
from helm_longctx.models.results import answer_of, failure_of, usage_of
from helm_longctx.tasks.answer import Answer, Usage
from helm_longctx.tasks.judge_scores import JUDGED, cohen_kappa, krippendorff_alpha
from helm_longctx.tasks.metric_names import (
    GENERATED_DATA,
    depth_score,
    metric_fields,
    nearest_depth,
    pass_at,
    task_score,
)
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.sample import RecordKey, Sample, find_cut, find_limit
from helm_longctx.tasks.statistic_names import kappa_of, read_statistic
from helm_longctx.tasks.task import (
    GENERATED_SOURCE,
    MAIN_METRIC,
    MOST_SCORED,
    UNREAD,
    ScorerInput,
    limit_prediction,
)

_FAILURE_METRICS = {
    Failure.TOO_LONG: "request_too_long",
    Failure.REFUSED: "request_refused",
}
"""Failures that have their own counts, because they depend on the model and repeat."""

_OTHER_FAILURES = "request_failed"


class LongContextMetric(Metric):
    """Scores answers with the task that the instance's sub-split names.

    A request without an answer has no score. It is counted by the reason, and means are over the other requests. Each
    repeat is a trial in HELM. A statistic is the mean over questions of their means over repeats.

    Args:
        package: the version of this package that made the run spec. It is only recorded.
    """

    def __init__(self, benchmark: str, package: str = ""):
        self.benchmark = find_benchmark(benchmark)
        # A look-up takes half a millisecond, and a run has up to a million answers of one deployment.
        self._find_prices = cache(find_prices)
        self._limit: float | None = None

    def evaluate(
        self,
        scenario_state: ScenarioState,
        metric_service: MetricService,
        eval_cache_path: str,
        parallelism: int,
    ) -> MetricResult:
        """Return all statistics of a run."""
        repeats = scenario_state.adapter_spec.num_trials
        # The server's counts of a run's prompts can stop at a number of tokens.
        answered = []
        for state in scenario_state.request_states:
            if state.result and failure_of(state.result) is None:
                answered.append(state)
        counted_prompts = []
        for state in answered:
            usage = usage_of(state.result) if state.result else None
            if usage:
                sample = Sample.from_json(state.instance.extra_data)
                counted_prompts.append((sample, usage.counted_tokens))
        self._limit = find_limit(counted_prompts)
        if any(instance.perturbation for instance in scenario_state.instances):
            # Each repeat is a trial of our adapter. HELM's `evaluate` takes the number of trials from this field.
            spec = replace(scenario_state.adapter_spec, num_train_trials=repeats)
            result = super().evaluate(
                replace(scenario_state, adapter_spec=spec),
                metric_service,
                eval_cache_path,
                parallelism,
            )
        else:
            result = self._evaluate_trials(scenario_state)
        rows = result.per_instance_stats
        stats = self._over_questions(result.aggregated_stats, rows, repeats)
        # HELM's `InstancesPerSplitMetric` counts the same; its module imports packages of 100 MB, in 1.5 seconds.
        first_trial = (
            request_state.instance
            for request_state in scenario_state.request_states
            if request_state.train_trial_index == 0
        )
        counts = Counter(map(MetricContext.from_instance, first_trial)).items()
        numbers = []
        for context, count in counts:
            numbers.append(
                add_context(Stat(MetricName("num_instances")).add(count), context)
            )
        # To read the rows takes as long as to score an exact match.
        has_judges = any(read_statistic(stat.name.name).judge for stat in stats)
        jury = jury_stats(rows) if has_judges else []
        passes = self._passes(rows, repeats)
        return MetricResult([*stats, *jury, *passes, *numbers], rows)

    def _evaluate_trials(self, scenario_state: ScenarioState) -> MetricResult:
        """Return what HELM's `evaluate` returns for a run without perturbations, in less time.

        HELM's threads slow down scorers, and its search for the worst perturbations takes as long as the scores.
        """
        moments: dict[int, dict[MetricName, _Moments]] = defaultdict(dict)
        rows = AnswerRows()
        for state in sorted(
            scenario_state.request_states, key=lambda state: state.train_trial_index
        ):
            instance = state.instance
            values = []
            for text, value in self.answer_values(state):
                name = _metric_name(text, instance.split, instance.sub_split)
                values.append((name, value))
            rows.add(state, values)
            by_name = moments[state.train_trial_index]
            for name, value in values:
                if name not in by_name:
                    by_name[name] = _Moments()
                by_name[name].add(value)
        total: dict[MetricName, Stat] = {}
        for by_name in moments.values():
            of_trial = {}
            for name, of_name in by_name.items():
                of_trial[name] = of_name.to_stat(name)
            worst = [*_worst_cases(of_trial.values())]
            contexts: dict[MetricContext, dict[MetricName, Stat]] = defaultdict(dict)
            for name, stat in of_trial.items():
                contexts[MetricContext.from_metric_name(name)][name] = stat
            for context, of_context in contexts.items():
                for stat in self.derive_stats(of_context):
                    merge_stat(of_trial, add_context(stat, context))
            of_trial |= {stat.name: stat for stat in worst}
            for stat in of_trial.values():
                merge_stat(total, stat.take_mean())
        return MetricResult([*total.values()], cast("list[PerInstanceStats]", rows))

    def evaluate_generation(
        self,
        adapter_spec: AdapterSpec,
        request_state: RequestState,
        metric_service: MetricService,
        eval_cache_path: str,
    ) -> list[Stat]:
        """Return the statistics of one answer."""
        stats = []
        for name, value in self.answer_values(request_state):
            stats.append(Stat(MetricName(name)).add(value))
        return stats

    def derive_stats(self, stats_dict: dict[MetricName, Stat]) -> list[Stat]:
        """Return the task's score under its own name, so that each task of a run can have its own column."""
        # All names in `stats_dict` have the same split and sub-split.
        context = next(iter(stats_dict))
        if not context.sub_split or context.perturbation:
            return []
        task = self.benchmark.task(context.sub_split)
        means = {}
        for name, stat in stats_dict.items():
            if stat.mean is not None:
                means[name.name] = stat.mean
        score = task.headline_mean(means)
        if score is None:
            score = means.get(MAIN_METRIC)  # gold answers have no official metric
        if score is None:
            return []
        # With a single headline metric, each answer has this statistic already.
        if MAIN_METRIC in means:
            several = []
        else:
            several = [Stat(MetricName(MAIN_METRIC)).add(score)]
        return [Stat(MetricName(task_score(task.name))).add(score), *several]

    def get_metadata(self) -> list[MetricMetadata]:
        """Return the title and the meaning of each statistic."""
        fields = []
        for metric_field in metric_fields(self.benchmark):
            fields.append(
                MetricMetadata(**{"short_display_name": None, **metric_field})
            )
        return fields

    def answer_values(self, state: RequestState) -> Iterator[tuple[str, float | None]]:
        """Yield the name and the value of each statistic of one answer."""
        sample = Sample.from_json(state.instance.extra_data)
        if state.result:
            answer = answer_of(state.result)
        else:
            answer = Answer(failure=Failure.UNKNOWN)
        failure = answer.failure
        if state.result and failure is None:
            yield "request_cached", float(answer.is_cached)
            yield "output_truncated", float(answer.is_any_cut)
            yield "thinking_unfinished", float(answer.is_thinking_unfinished)
            yield "answer_empty", float(answer.is_empty)
            yield "answer_in_reasoning", float(answer.is_only_in_reasoning)
            yield (
                "reasoning_suspected",
                float(answer.suspects_reasoning(references(state))),
            )
            yield "answer_repeats", float(bool(answer.is_repeating))
            yield "answer_scored_in_part", float(len(answer.text) > MOST_SCORED)
            if answer.usage is not None:
                counted = answer.usage.counted_tokens
                is_cut = find_cut(sample, counted, self._limit) is not None
                yield "prompt_cut_by_server", float(is_cut)
                steps = answer.steps.usages if answer.steps else ()
                prices = self._find_prices(state.request.model_deployment)
                yield from _usage_values(answer.usage, steps, prices)
            yield from _step_values(answer, sample, len(state.result.completions))
            if answer.served_model:
                yield "other_model", float(answer.other_model is not None)
            yield from self._scores(state, sample, answer)
        for name in ("depth", "input_tokens", "prompt_tokens"):
            if (value := getattr(sample, name)) is not None:
                yield name, value
        # Each request has all three statistics, so that their means are shares of all requests.
        own = _FAILURE_METRICS.get(failure, _OTHER_FAILURES) if failure else None
        for name in (*_FAILURE_METRICS.values(), _OTHER_FAILURES):
            yield name, float(name == own)
        if notes := [note for note in (state.annotations or {}).values() if note]:
            # An answer has one annotator. If it had several, the largest value would be right.
            yield "judge_failed", max(float(note.get("failed", 0)) for note in notes)
        yield "prompt_cut", float(state.prompt_truncated)
        yield GENERATED_DATA, float(sample.source == GENERATED_SOURCE)
        yield "subsampled", float(sample.drawn_from is not None)
        # Older caches and runs have negative times where the system's clock was set back during a request.
        if (
            state.result
            and state.result.request_time is not None
            and state.result.request_time >= 0
        ):
            yield "request_seconds", state.result.request_time
            if failure is None:
                yield from _efficiency(answer, state.result.request_time)

    def _scores(
        self,
        state: RequestState,
        sample: Sample,
        answer: Answer,
    ) -> Iterator[tuple[str, float]]:
        assert state.instance.sub_split
        assert state.result
        task = self.benchmark.task(state.instance.sub_split)
        record = scored_record(state, sample, answer)
        # A scored answer prefix would be the text of an empty answer.
        is_empty_text = not state.result.completions[0].text.strip()
        yield UNREAD, float(is_empty_text or not task.can_read(record))
        scores = task.scores(record)
        score = scores.pop(MAIN_METRIC, None)
        # A score of several metrics is the mean of their means (`derive_stats`), and these can be over different instances.
        if score is not None and len(task.headline) == 1:
            yield MAIN_METRIC, score
            if (depth := sample.depth) is not None:
                yield depth_score(nearest_depth(depth)), score
        yield from scores.items()

    def _over_questions(
        self,
        stats: list[Stat],
        rows: Collection[PerInstanceStats],
        repeats: int,
    ) -> list[Stat]:
        """Return the statistics, with means over questions where some answers have no value.

        HELM's mean of the trials' means is the same only if every answer has a value.
        """
        values: dict[MetricName, dict[str, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row in rows if repeats > 1 else ():
            for stat in row.stats:
                if stat.mean is not None:
                    values[stat.name][row.instance_id].append(stat.mean)
        gaps = {}
        for name, by_question in values.items():
            if any(len(of_question) < repeats for of_question in by_question.values()):
                gaps[name] = Stat(name).add(fmean(map(fmean, by_question.values())))
        replaced = {stat.name: gaps.get(stat.name, stat) for stat in stats}
        # Statistics that are derived from the replaced means must be derived again.
        for context in {replace(name, name="") for name in gaps}:
            of_context = {}
            for name, stat in replaced.items():
                if replace(name, name="") == context:
                    of_context[name] = stat
            for derived in self.derive_stats(of_context):
                name = replace(context, name=derived.name.name)
                replaced[name] = Stat(name).add(derived.mean)
        return [*replaced.values()]

    def _passes(
        self,
        rows: Collection[PerInstanceStats],
        repeats: int,
    ) -> Iterator[Stat]:
        """Yield pass@k of each metric that is a success or a failure: the share of questions with a success."""
        if repeats < 2:
            return
        best: dict[MetricName, dict[str, float]] = defaultdict(dict)
        for row in rows:
            for stat in row.stats:
                name = stat.name
                if stat.mean is None or not name.sub_split or name.perturbation:
                    continue
                is_headline = self.benchmark.task(name.sub_split).headline == (
                    name.name,
                )
                if is_headline and self.benchmark.metric(name.name).success:
                    of_question = best[name]
                    of_question[row.instance_id] = max(
                        stat.mean, of_question.get(row.instance_id, 0.0)
                    )
        for name, by_question in best.items():
            stat = Stat(replace(name, name=pass_at(repeats)))
            for value in by_question.values():
                stat.add(value)
            yield stat


class _Moments:
    """Adds up values as HELM's `Stat` does, which computes mean and variance anew with each value, in a third of the time.

    Only the last value is given to a `Stat`, because it is enough to make it compute them.
    """

    __slots__ = ("_count", "_highest", "_last", "_lowest", "_squares", "_sum")

    def __init__(self) -> None:
        self._last: float | None = None
        self._count = 0
        self._sum: float = 0
        self._squares: float = 0
        self._lowest: float | None = None
        self._highest: float | None = None

    def add(self, value: float | None) -> None:
        """Add a value. None counts as no value, as in HELM."""
        if value is None:
            return
        last = self._last
        self._last = +value  # True is 1
        if last is None:
            return
        self._count += 1
        self._sum += last
        self._squares += last * last
        if self._lowest is None or self._highest is None:
            self._lowest = last
            self._highest = last
        elif last < self._lowest:
            self._lowest = last
        elif last > self._highest:
            self._highest = last

    def to_stat(self, name: MetricName) -> Stat:
        """Return HELM's object for the values."""
        stat = Stat(
            name=name,
            count=self._count,
            sum=self._sum,
            sum_squared=self._squares,
            min=self._lowest,
            max=self._highest,
        )
        return stat.add(self._last)


class AnswerRows:
    """A list of the statistics of answers, whose HELM objects, ten times as large, are made when it is read."""

    def __init__(self) -> None:
        self._rows: list[
            tuple[str, int, tuple[MetricName, ...], tuple[float | None, ...]]
        ] = []
        self._names: dict[tuple[MetricName, ...], tuple[MetricName, ...]] = {}

    def add(
        self,
        state: RequestState,
        values: Sequence[tuple[MetricName, float | None]],
    ) -> None:
        """Add the values of an answer."""
        assert state.instance.id is not None
        if values:
            names = tuple(name for name, _ in values)
            # Most answers have the same statistics, so their names are stored once.
            names = self._names.setdefault(names, names)
            numbers = tuple(value for _, value in values)
            self._rows.append(
                (state.instance.id, state.train_trial_index, names, numbers)
            )

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[PerInstanceStats]:
        for instance, trial, names, values in self._rows:
            stats = []
            for name, value in zip(names, values, strict=True):
                stats.append(Stat(name).add(value))
            yield PerInstanceStats(instance, None, trial, stats)

    def read_values(self) -> Iterator[tuple[RecordKey, dict[str, float]]]:
        """Yield for each answer the statistics that have a value, by name, without HELM's objects."""
        for instance, trial, names, numbers in self._rows:
            values = {}
            for name, number in zip(names, numbers, strict=True):
                # HELM writes no statistic without a value, and none that is not a number.
                if number is not None and not math.isnan(number):
                    values[name.name] = float(number)
            yield (names[0].sub_split or "", instance, trial), values


@cache
def _metric_name(name: str, split: str | None, sub_split: str | None) -> MetricName:
    """Return HELM's name of a statistic. A run has few names, and each answer needs all of them."""
    return MetricName(name, split, sub_split)


def _worst_cases(stats: Iterable[Stat]) -> Iterator[Stat]:
    """Yield HELM's statistics of the worst perturbations. Without perturbations, they are the statistics themselves."""
    worst = [
        PerturbationDescription(
            "robustness", robustness=True, computed_on=PERTURBATION_WORST
        ),
        PerturbationDescription(
            "fairness", fairness=True, computed_on=PERTURBATION_WORST
        ),
    ]
    for stat in stats:
        if stat.count:
            for perturbation in worst:
                yield replace(stat, name=replace(stat.name, perturbation=perturbation))


def _efficiency(answer: Answer, seconds: float) -> Iterator[tuple[str, float]]:
    """Yield the speed and the memory of an answer, as far as they were measured."""
    usage = answer.usage
    first = answer.first_token_seconds
    if first is not None:
        yield "first_token_seconds", first
    if answer.peak_memory is not None:
        yield "peak_memory", answer.peak_memory
    if usage is None:
        return
    if first:
        yield (
            "prefill_tokens_per_second",
            (usage.input_tokens - usage.cached_tokens) / first,
        )
    # An answer of one token has no second one whose time could be measured.
    tokens = usage.output_tokens
    rest = seconds
    if first is not None:
        tokens -= 1
        rest -= first
    if tokens > 0 and rest > 0:
        yield "decode_tokens_per_second", tokens / rest


def _step_values(
    answer: Answer,
    sample: Sample,
    outputs: int,
) -> Iterator[tuple[str, float]]:
    """Yield the numbers of an answer of several requests: how many, and what its method has noted.

    Args:
        outputs: the number of outputs in the result. Without a program, each one answers a request.
    """
    requests = outputs
    if answer.steps:
        requests = answer.steps.requests
    if answer.steps or requests > 1:
        yield "requests", float(requests)
    notes = answer.steps.notes if answer.steps else {}
    for name in ("compactions", "retained_tokens"):
        if name in notes:
            yield name, float(notes[name])
    if sample.read:
        yield "stream_tokens", float(sample.read[0])
        if sample.read[1] is not None:
            yield "evidence_read", float(sample.read[1])
    if "cuts" in notes and sample.depth is not None:
        yield (
            "fact_compactions",
            float(sum(cut > sample.depth for cut in notes["cuts"])),
        )


def _usage_values(
    usage: Usage,
    steps: Sequence[Usage],
    prices: Prices | None,
) -> Iterator[tuple[str, float]]:
    """Yield an answer's token counts by the provider, and their cost, as each of `steps` can have another price."""
    values = dict(vars(usage))
    yield "cached_share", usage.cached_tokens / usage.input_tokens
    yield "billed_prompt_tokens", values.pop("input_tokens")
    yield from values.items()
    if prices:
        parts = [prices.dollars(step) for step in steps or [usage]]
    else:
        parts = [None]
    if prices and None not in parts:
        yield "cost", sum(part or 0.0 for part in parts)
        if prices.date:
            yield "price_date", float(f"{prices.date:%Y%m%d}")


def scored_record(
    state: RequestState,
    sample: Sample,
    answer: Answer | None = None,
) -> ScorerInput:
    """Return the record that the task's scorer and its judges get (see `tasks/task.py`).

    Args:
        answer: that of the state, if it was read before.
    """
    # The model continued the prefix, and the official code scores both together (HELMET eval.py:101).
    if sample.style == "completion" and sample.prefix_scored:
        prefix = sample.answer_prefix
    else:
        prefix = ""
    if answer is None:
        assert state.result
        answer = answer_of(state.result)
    # As in the official code, the prefix comes before the reasoning, and is removed with it.
    has_reasoning = answer.reasoning is not None and not answer.has_open_reasoning
    prediction = answer.text if has_reasoning else prefix + answer.text
    record = {
        **sample.record,
        **(state.annotations or {}),
        "prediction": prediction,
        "references": references(state),
    }
    return limit_prediction(record)


def references(state: RequestState) -> list[str]:
    """Return the reference answers of an instance."""
    texts = []
    for reference in state.instance.all_correct_references:
        texts.append(reference.output.text)
    return texts


def jury_stats(rows: Iterable[PerInstanceStats]) -> list[Stat]:
    """Return `jury_alpha` by task, and `jury_kappa:a|b` by pair of judges with grades, where they are defined."""
    # Each judge's scores by instance, for each headline metric and place (split and sub-split).
    every: dict[tuple[str, MetricName], dict[str, dict[str, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in rows:
        for stat in row.stats:
            named = read_statistic(stat.name.name)
            # HELM also has statistics without a value, whose mean is None.
            if named.judge and stat.mean is not None:
                split_name = MetricName(
                    "", split=stat.name.split, sub_split=stat.name.sub_split
                )
                every[named.metric, split_name][named.judge][row.instance_id] = (
                    stat.mean
                )
    jury = []
    for (headline, name), by_judge in every.items():
        instances = sorted(
            {instance for scores in by_judge.values() for instance in scores}
        )
        ratings = {}
        for judge, scores in sorted(by_judge.items()):
            ratings[judge] = [scores.get(i, math.nan) for i in instances]
        # The judged score is a grade (the correctness of a fluent answer, 0 to 3). An F1 is none.
        has_grades = headline == JUDGED[0]
        values = {
            "jury_alpha": krippendorff_alpha(
                list(ratings.values()), "ordinal" if has_grades else "interval"
            )
        }
        for one, other in combinations(ratings, 2) if has_grades else ():
            values[kappa_of(one, other)] = cohen_kappa(
                ratings[one], ratings[other], "quadratic"
            )
        for metric, value in values.items():
            if not math.isnan(value):
                jury.append(
                    Stat(
                        MetricName(metric, split=name.split, sub_split=name.sub_split)
                    ).add(value)
                )
    return jury
