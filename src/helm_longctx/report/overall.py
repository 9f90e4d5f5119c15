"""Makes overall scores into results in the form of runs, and chooses the first table of the leaderboard."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from helm_longctx.protocol.benchmark import Benchmark
from helm_longctx.protocol.entry import group_name
from helm_longctx.protocol.lengths import length_label
from helm_longctx.protocol.task import MAIN_METRIC
from helm_longctx.report.reference import ResultRun, make_run_spec, make_stat
from helm_longctx.report.results import PUBLISHED, Overall, Result
from helm_longctx.report.schema import OVERALL

ModelLength = tuple[str, int]
"""A model that has a score at a length."""


class OverallRun(NamedTuple):
    """A model's overall score or the reason why it has none, and the score in the form of a run."""

    overall: Overall
    run: ResultRun


def overall_runs(
    benchmark: Benchmark, overalls: Iterable[Overall], deployments: Mapping[str, Collection[str]]
) -> Iterator[OverallRun]:
    """Yield the overall scores of a benchmark with several categories, for each deployment of a model.

    Args:
        deployments: the deployments of each model that has runs.
    """
    for overall in overalls if len(benchmark.categories) > 1 else ():
        label = "" if overall.length is None else length_label(overall.length)
        groups = [group_name(benchmark, OVERALL, label)]
        stats = [make_stat(MAIN_METRIC, "", overall.interval.mean)] if overall.interval else []
        # HELM's tables have a row for each deployment of a model.
        for deployment in deployments.get(overall.model, [overall.model]):
            spec = make_run_spec("", (overall.model, deployment), {OVERALL: benchmark.name, "length": label}, groups)
            yield OverallRun(overall, ResultRun(spec, stats))


def first_table(benchmark: Benchmark, categories: Sequence[Result], overalls: Iterable[Overall]) -> str | None:
    """Return the group of the leaderboard's first table: the longest common length, with the overall score if any.

    Returns:
        None if there is no score by length.
    """
    whole = [(each.model, each.length) for each in overalls if each.interval and each.length is not None]
    any_score = [(each.model, each.length) for each in categories if each.length is not None]
    length = common_length(whole) or common_length(any_score)
    if length is None:
        return None
    several = len(benchmark.categories) > 1
    folder = next((each.folder for each in categories if each.length == length), "")
    name = "" if several else benchmark.categories[0].name
    return group_name(benchmark, name, length_label(length), folder=folder)


def common_length(scored: Iterable[ModelLength]) -> int | None:
    """Return the longest length at which more than half of the models have a score.

    Published models count only where no other model has a score.
    """
    every = set(scored)
    own = {each for each in every if not each[0].startswith(PUBLISHED)}
    models: dict[int, set[str]] = defaultdict(set)
    for model, length in own or every:
        models[length].add(model)
    all_models = set().union(*models.values())
    # With a longer length that few models have, the first table would be almost empty.
    return max((length for length, having in models.items() if 2 * len(having) > len(all_models)), default=None)
