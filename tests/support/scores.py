"""Scores of fabricated answers."""

from __future__ import annotations

from collections.abc import Mapping

from helm_longctx.runs.scores import Score


def make_score(
    score: float | None,
    instance: str = "id0",
    *,
    run: str = "run",
    entry: str = "entry",
    task: str = "task",
    length: int | None = None,
    repeat: int = 0,
    group: str | None = None,
    depth: float | None = None,
    failure: str = "",
    values: Mapping[str, float] | None = None,
) -> Score:
    """Return the score of an answer, which is a cluster of its own unless a `group` is given."""
    return Score(
        run=run,
        entry=entry,
        task=task,
        length=length,
        instance=instance,
        repeat=repeat,
        score=score,
        group=instance if group is None else group,
        depth=depth,
        failure=failure,
        tokens=None,
        values={} if values is None else values,
    )
