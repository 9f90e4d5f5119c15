"""Measures how many requests `run --stop-when better` saves, and how often it names the wrong model.

    python -m bench.stopping [--rounds 1000] [--babilong FOLDER] [--json FILE]

Pairs of models are drawn from HELMET's published averages at 128k: each answer is right with the probability of the
model's average. With `--babilong`, pairs are also the outputs of real models on the same questions, from a clone of
booydar/babilong, scored by our scorer. A model that is compared with itself, with new answers, shows the error. Each
question is looked at after 32 instances, then after half as many more, and so on (`runner/stopping.py`).
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from helm_longctx.results.statistics.comparison import Pairs, compare_parts
from helm_longctx.results.statistics.level import SIGNIFICANCE
from helm_longctx.runner.stopping import FIRST, GROWTH

Scores = NDArray[np.float64]

SAMPLE = 600
"""Questions of a whole run on published averages, about as many as HELMET's tasks have together."""

BINS = ((0, 0), (0, 5), (5, 10), (10, 20), (20, 100))
"""Differences of two models in points: above the first number, and at most the second."""


class Outcome(NamedTuple):
    """Args: the true difference in points, the questions asked, all questions, and the sign that was decided."""

    difference: float
    asked: int
    of: int
    sign: float


def ask(first: Scores, second: Scores, difference: float) -> Outcome:
    """Look at paired scores in growing rounds until the difference is decided or no questions are left."""
    looks: list[int] = []
    while True:
        size = min(math.ceil(GROWTH * looks[-1]) if looks else FIRST, len(first))
        looks.append(size)
        comparison = compare_parts(
            [Pairs(first[:size], second[:size], range(size), 1.0)], tuple(looks)
        )
        is_decided = comparison.p_value < SIGNIFICANCE
        if is_decided or size == len(first):
            return Outcome(
                difference,
                size,
                len(first),
                np.sign(comparison.effect.mean) if is_decided else 0,
            )


def published_outcomes(rounds: int, rng: np.random.Generator) -> Iterator[Outcome]:
    """Yield outcomes of random pairs of published models, and as many of a model with itself."""
    text = (
        resources.files("helm_longctx.benchmarks.helmet")
        .joinpath("published.csv")
        .read_text()
    )
    rows = [row for row in csv.DictReader(text.splitlines()) if row["length"] == "128k"]
    names = [name for name in rows[0] if name not in ("model", "length")]
    means = [
        fmean(float(row[name]) for name in names) / 100
        for row in rows
        if all(row[name] for name in names)
    ]
    for number in range(rounds):
        first, second = rng.choice(means, 2) if number % 2 else [rng.choice(means)] * 2
        answers = [
            (rng.random(SAMPLE) < mean).astype(float) for mean in (first, second)
        ]
        yield ask(answers[0], answers[1], 100 * (first - second))


def babilong_outcomes(
    folder: Path, rounds: int, rng: np.random.Generator
) -> Iterator[Outcome]:
    """Yield outcomes of random pairs of real models on the same questions, in random order."""
    from helm_longctx.benchmarks.babilong.outputs import READER
    from helm_longctx.benchmarks.babilong.tasks import BABILONG
    from helm_longctx.tasks.outputs import OutputRun

    tables: dict[str, dict[str, Scores]] = defaultdict(dict)
    for path in sorted(folder.rglob("qa*.csv")):
        for run in READER.read(path, ""):
            assert isinstance(run, OutputRun)
            task = BABILONG.task(path.name.partition("_")[0])
            scores = [
                task.scores(
                    {
                        **output.record,
                        "prediction": output.prediction or "",
                        "references": output.references,
                    }
                )["accuracy"]
                for output in run.outputs
            ]
            tables[f"{run.entry} {len(scores)}"][run.model] = np.array(scores)
    shared = [models for models in tables.values() if len(models) > 1]
    for _ in range(rounds):
        models = shared[rng.integers(len(shared))]
        first, second = (
            models[name] for name in rng.choice(sorted(models), 2, replace=False)
        )
        order = rng.permutation(len(first))
        yield ask(first[order], second[order], 100 * float(np.mean(first - second)))


def summarize(outcomes: list[Outcome]) -> list[dict[str, float]]:
    """Return the pairs, the share of questions asked, and the shares of decisions and errors, for each bin."""
    rows = []
    for low, high in BINS:
        chosen = [
            outcome
            for outcome in outcomes
            if low < abs(outcome.difference) <= high
            or (high == 0 == outcome.difference)
        ]
        decided = [outcome for outcome in chosen if outcome.sign]
        if chosen:
            rows.append(
                {
                    "above": low,
                    "at most": high,
                    "pairs": len(chosen),
                    "asked": sum(outcome.asked for outcome in chosen)
                    / sum(outcome.of for outcome in chosen),
                    "decided": len(decided) / len(chosen),
                    "wrong": sum(not _is_right(outcome) for outcome in decided)
                    / len(chosen),
                }
            )
    return rows


def _is_right(outcome: Outcome) -> bool:
    return outcome.difference * outcome.sign > 0


def main() -> None:
    """Print a line for each source of pairs and bin of differences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--babilong", type=Path, help="a clone of booydar/babilong")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    summaries = {
        "published averages": summarize(list(published_outcomes(args.rounds, rng)))
    }
    if args.babilong:
        summaries["BABILong's outputs"] = summarize(
            list(babilong_outcomes(args.babilong, args.rounds, rng))
        )
    for name, rows in summaries.items():
        for row in rows:
            print(
                f"{name}: {row['above']:3g} to {row['at most']:3g} points, {row['pairs']:4g} pairs:"
                f" {row['asked']:4.0%} of the requests, {row['decided']:4.0%} decided, {row['wrong']:5.1%} wrong"
            )
    if args.json:
        args.json.write_text(json.dumps(summaries, indent=1) + "\n")


if __name__ == "__main__":
    main()
