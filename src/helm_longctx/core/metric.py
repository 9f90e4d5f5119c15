"""A benchmark's metric: the task's scores as HELM statistics, whole and by depth, and what went wrong beside them."""

from __future__ import annotations

from collections.abc import Iterator

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric import Metric, MetricMetadata
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.metric_service import MetricService
from helm.benchmark.metrics.statistic import Stat

from helm_longctx.core.metric_names import (
    DEPTHS,
    FAILURE_METRICS,
    OTHER_FAILURES,
    depth_score,
    metric_fields,
    task_score,
)
from helm_longctx.core.task import MAIN_METRIC, Benchmark, Record
from helm_longctx.core.thinking import without_thinking
from helm_longctx.failures import Failure, failure_of


class LongContextMetric(Metric):
    """Scores by the task that an instance's sub-split names. A benchmark's metric is a subclass that names its table.

    A request without an answer has no score: it is counted by why it has none, and means are over the others.
    """

    benchmark: Benchmark

    def evaluate_generation(
        self,
        adapter_spec: AdapterSpec,
        request_state: RequestState,
        metric_service: MetricService,
        eval_cache_path: str,
    ) -> list[Stat]:
        """The statistics of one answer."""
        return [Stat(MetricName(name)).add(value) for name, value in self._values(request_state)]

    def derive_stats(self, stats_dict: dict[MetricName, Stat]) -> list[Stat]:
        """The task's score under its own name, so that a run of several tasks can show each in its own column.

        Args:
            stats_dict: statistics of one split and sub-split.
        """
        context = next(iter(stats_dict))
        if not context.sub_split or context.perturbation:
            return []
        task = self.benchmark.task(context.sub_split)
        means = {name.name: stat.mean for name, stat in stats_dict.items() if stat.mean is not None}
        if not all(name in means for name in task.headline):
            return []
        score = sum(means[name] for name in task.headline) / len(task.headline)
        several = [Stat(MetricName(MAIN_METRIC)).add(score)] if len(task.headline) > 1 else []
        return [Stat(MetricName(task_score(task.name))).add(score), *several]

    def get_metadata(self) -> list[MetricMetadata]:
        """What each statistic means."""
        return [
            MetricMetadata(
                f["name"], f["display_name"], f.get("short_display_name"), f["description"], f["lower_is_better"]
            )
            for f in metric_fields(self.benchmark)
        ]

    def _values(self, state: RequestState) -> Iterator[tuple[str, float]]:
        extra = state.instance.extra_data or {}
        failure = failure_of(state.result) if state.result else Failure.UNKNOWN
        if state.result and failure is None:
            yield "request_cached", float(state.result.cached)
            yield from self._scores(state, extra.get("depth"))
        for name in ("depth", "input_tokens", "prompt_tokens"):
            if name in extra:
                yield name, extra[name]
        counted = failure and FAILURE_METRICS.get(failure, OTHER_FAILURES)
        for name in (*FAILURE_METRICS.values(), OTHER_FAILURES):
            yield name, float(name == counted)
        if notes := [note for note in (state.annotations or {}).values() if note]:
            yield "judge_failed", max(float(note.get("failed", 0)) for note in notes)
        yield "prompt_cut", float(state.prompt_truncated)
        yield "generated_data", float(extra["source"] == "generated")
        yield "subsampled", float("drawn_from" in extra)
        # Caches and runs of before hold negative times: the system's clock was set back during the request.
        if state.result and state.result.request_time is not None and state.result.request_time >= 0:
            yield "request_seconds", state.result.request_time

    def _scores(self, state: RequestState, depth: float | None) -> Iterator[tuple[str, float]]:
        assert state.instance.sub_split
        task = self.benchmark.task(state.instance.sub_split)
        scores = task.scores(scored_record(state))
        score = scores.pop(MAIN_METRIC, None)
        # A mean of several metrics is taken of their means, since they may be over different instances.
        if score is not None and len(task.headline) == 1:
            yield MAIN_METRIC, score
            if depth is not None:
                yield depth_score(min(DEPTHS, key=lambda percent: abs(percent - 100 * depth))), score
        yield from scores.items()


def scored_record(state: RequestState) -> Record:
    """What the scorer gets: the output, after a completion the answer's prefix before it (HELMET eval.py:101)."""
    extra = state.instance.extra_data or {}
    assert state.result
    prefix = extra["answer_prefix"] if extra["style"] == "completion" else ""
    return {
        **extra["record"],
        **(state.annotations or {}),
        "prediction": without_thinking(prefix + state.result.completions[0].text),
        "references": [reference.output.text for reference in state.instance.all_correct_references],
    }
