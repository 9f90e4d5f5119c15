"""A benchmark's metric: the task's scores as HELM statistics, whole and by depth, and what went wrong beside them."""

from __future__ import annotations

from collections.abc import Iterator

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.metrics.metric import Metric, MetricMetadata
from helm.benchmark.metrics.metric_name import MetricName
from helm.benchmark.metrics.metric_service import MetricService
from helm.benchmark.metrics.statistic import Stat

from helm_longctx.core.metric_names import DEPTHS, depth_score, metric_fields, task_score
from helm_longctx.core.task import MAIN_METRIC, Benchmark, Record


class LongContextMetric(Metric):
    """Scores by the task that an instance's sub-split names. A benchmark's metric is a subclass that names its table.

    A request that failed has no score: it is counted in `request_failed`, and means are over the others.
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
        """The task's score under its own name, so that a run of several tasks can show each in its own column."""
        return [
            Stat(MetricName(task_score(name.sub_split))).add(stat.mean)
            for name, stat in stats_dict.items()
            if name.name == MAIN_METRIC and name.sub_split and not name.perturbation
        ]

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
        answered = bool(state.result and state.result.success and state.result.completions)
        if answered:
            yield from self._scores(state, extra.get("depth"))
        for name in ("depth", "input_tokens"):
            if name in extra:
                yield name, extra[name]
        yield "request_failed", float(not answered)
        yield "prompt_cut", float(state.prompt_truncated)
        yield "generated_data", float(extra["source"] == "generated")
        if state.result and state.result.request_time is not None:
            yield "request_seconds", state.result.request_time

    def _scores(self, state: RequestState, depth: float | None) -> Iterator[tuple[str, float]]:
        assert state.instance.sub_split
        task = self.benchmark.task(state.instance.sub_split)
        scores = task.scores(scored_record(state))
        if MAIN_METRIC in scores:
            yield MAIN_METRIC, scores.pop(MAIN_METRIC)
            if depth is not None:
                nearest = min(DEPTHS, key=lambda percent: abs(percent - 100 * depth))
                yield depth_score(nearest), scores[task.headline]
        yield from scores.items()


def scored_record(state: RequestState) -> Record:
    """What the scorer gets: the output, after a completion the answer's prefix before it (HELMET eval.py:101)."""
    extra = state.instance.extra_data or {}
    assert state.result
    prefix = extra["answer_prefix"] if extra["style"] == "completion" else ""
    return {
        **extra["record"],
        "prediction": prefix + state.result.completions[0].text,
        "references": [reference.output.text for reference in state.instance.all_correct_references],
    }
