"""HELM's `-m` can draw from a benchmark's sample: scores then compare with nothing published, and that is said."""

from __future__ import annotations

import functools
from dataclasses import replace

from helm.benchmark import runner
from helm.benchmark.scenarios.scenario import Instance
from helm.common.hierarchical_logger import hwarn

from helm_longctx.protocol.sample import Sample


def warn_of_subsamples() -> None:
    """Make HELM say when it leaves out some of our instances, whichever runner is used. Idempotent."""
    draw = runner.downsample_eval_instances
    if hasattr(draw, "warns"):
        return

    @functools.wraps(draw)
    def warning(instances: list[Instance], max_eval_instances: int, eval_splits: list[str]) -> list[Instance]:
        kept: list[Instance] = draw(instances, max_eval_instances, eval_splits)
        if len(kept) < len(instances) and Sample.is_in(instances[0].extra_data):
            hwarn(
                f"-m {max_eval_instances} draws {len(kept)} of {len(instances)} instances, which is not the benchmark's"
                " sample: give -m 10000, or num_samples= for fewer as the benchmark draws them"
            )
            drawn = {"drawn_from": len(instances)}
            kept = [replace(each, extra_data={**(each.extra_data or {}), **drawn}) for each in kept]
        return kept

    warning.warns = True  # type: ignore[attr-defined]
    runner.downsample_eval_instances = warning
