"""Answers the requests of runs in batches: rounds of sending and collecting, first of models and then of judges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from helm_longctx.helm_api import RunSpec
from helm_longctx.runner.batches.collection import Batches
from helm_longctx.runner.batches.submission import (
    AsBatches,
    BatchPlan,
    JudgesAsBatches,
    make_batch_runner,
)


def answer_in_batches(
    specs: Sequence[RunSpec],
    plan: BatchPlan,
    output_path: Path,
    suite: str,
    local_path: Path,
    *,
    waits: bool,
) -> Batches:
    """Collect what has ended, and send what is in no batch, for models and then for their judges.

    Args:
        waits: whether to wait for the answers. Requests that failed temporarily, or that follow from other answers, are
            sent again as long as a round answers some. Otherwise this ends as soon as there are open batches.

    Raises:
        InputError: a model or a judge cannot be asked, a batch cannot be collected, or there is a limit on the cost.
    """
    folder = output_path / "runs" / suite
    batches = Batches(local_path, [folder / spec.name for spec in specs])
    batches.collect()
    for strategy in (AsBatches(plan), JudgesAsBatches(plan, local_path)):
        runner = make_batch_runner(strategy, output_path, suite, local_path)
        runner.run_all(list(specs))
        if waits:
            while batches.wait(strategy.has_programs):
                runner.run_all(list(specs))
        if batches.are_open:
            break
    return batches
