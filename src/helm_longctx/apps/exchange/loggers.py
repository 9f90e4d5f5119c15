"""Logs the scores of a suite to the programs in which trainers look at their runs, with intervals and the step."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from helm_longctx.environment import require
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.results.boards import Board, label
from helm_longctx.results.comparability import GENERATED, Caveat
from helm_longctx.tasks.steps import find_step

_Points = Mapping[int, Mapping[str, float]]
"""For each step the values by their names."""


@dataclass
class _Series:
    """The scores of a training or a model.

    Args:
        points: the values of each step.
        has_generated: whether some scores are of questions that this package made instead of the benchmark's own.
    """

    points: dict[int, dict[str, float]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    has_generated: bool = False


class Target(NamedTuple):
    """Where scores are logged.

    Args:
        text: the target as the user wrote it, such as `wandb:my-project`.
    """

    text: str
    program: str
    address: str


def parse_target(text: str) -> Target:
    """Return the target that a user wrote. The program's extra is installed.

    Raises:
        InputError: the program is unknown, the target is missing, or a package is missing.
    """
    program, _, address = text.partition(":")
    if program not in ("wandb", "mlflow", "tensorboard", "trackio") or not address:
        allowed = "wandb:PROJECT, mlflow:ADDRESS-OR-FOLDER, tensorboard:FOLDER or trackio:PROJECT"
        raise bad_argument("log-to", "target", text, allowed)
    require(program, f"--log-to {program}")
    return Target(text=text, program=program, address=address)


def log_scores(
    boards: Iterable[Board],
    targets: Iterable[Target],
    suite: str,
) -> list[str]:
    """Log the scores of the user's models. The checkpoints of a training are one run with several steps.

    Args:
        suite: the suite's name.

    Returns:
        A line for each run of a program.

    Raises:
        InputError: a program fails.
    """
    trainings = find_series(boards)
    lines = []
    for target in targets:
        for name, series in trainings.items():
            points = series.points
            try:
                _log(target, f"{suite}/{name}", points)
            except Exception as error:  # the programs raise any type
                raise InputError(
                    f"--log-to {target.text}: {type(error).__name__}: {error}; the suite is complete"
                ) from error
            values = sum(map(len, points.values()))
            if series.has_generated:
                mark = f" ({Caveat(kind=GENERATED, task='').text})"
            else:
                mark = ""
            lines.append(
                f"{target.text}: {name}: {values} values of {len(points)} steps{mark}"
            )
    return lines


def _log(target: Target, name: str, points: _Points) -> None:
    if target.program == "wandb":
        import wandb

        with wandb.init(
            project=target.address,
            name=name,
            config={"program": "helm-longctx"},
        ) as run:
            for step, values in points.items():
                run.log(dict(values), step=step)
    elif target.program == "mlflow":
        import mlflow

        mlflow.set_tracking_uri(target.address)
        mlflow.set_experiment("helm-longctx")
        with mlflow.start_run(run_name=name):
            for step, values in points.items():
                mlflow.log_metrics(dict(values), step=step)
    elif target.program == "tensorboard":
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        writer = EventFileWriter(str(Path(target.address) / name.replace("*", "")))
        for step, values in points.items():
            points_of_step = []
            for tag, value in values.items():
                points_of_step.append(Summary.Value(tag=tag, simple_value=value))
            writer.add_event(Event(step=step, summary=Summary(value=points_of_step)))
        writer.close()
    else:
        import trackio

        trackio.init(
            project=target.address,
            name=name,
            resume="never",
        )
        for step, values in points.items():
            trackio.log(dict(values), step=step)
        trackio.finish()


def find_series(boards: Iterable[Board]) -> dict[str, _Series]:
    """Return the scores with the ends of their intervals of each training, and of each model without a step at step 0.

    Values have names such as `helmet/json_kv/8k/score`, `…/low`, `…/high` and `…/generated`. The last is 1 if the score
    is of questions that this package made instead of the benchmark's own, else 0.
    """
    trainings: dict[str, _Series] = defaultdict(_Series)
    for board in boards:
        for cell, result in board.scores.items():
            if result.is_published or cell.context != "full":
                continue
            facts = next((run.model_facts for run in result.runs), {})
            step = find_step(cell.model, facts.get("step"))
            name, number = (step.family, step.number) if step else (cell.model, 0)
            if cell.part:
                start = f"{board.name}/{cell.part}"
            else:
                start = board.name
            if cell.length:
                start += f"/{label(cell.length)}"
            interval = result.interval
            values = {
                "score": interval.mean,
                "low": interval.low,
                "high": interval.high,
            }
            values[GENERATED] = float(result.is_generated)
            series = trainings[name]
            series.has_generated |= result.is_generated
            for key, value in values.items():
                if not math.isnan(value):
                    series.points[number][f"{start}/{key}"] = value
    for series in trainings.values():
        series.points = dict(sorted(series.points.items()))
    return dict(trainings)
