"""Compares models on the instances that all of them answered: in pairs, and as a ranking."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.protocol.lengths import length_label
from helm_longctx.protocol.metric_names import DEPTHS
from helm_longctx.report.results import Result
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.statistics.comparison import SIGNIFICANCE, Comparison, Pairs, compare_parts, holm
from helm_longctx.statistics.ranking import (
    Cell,
    Rank,
    borda,
    interquartile_mean,
    kemeny,
    performance_profile,
    rank_intervals,
)

THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(21))
"""Scores at which performance profiles are computed."""


class Item(NamedTuple):
    """An instance of a task at a length, on which models are compared."""

    entry: str
    task: str
    length: int | None
    context: str
    instance: str


@dataclass(frozen=True)
class Pairing:
    """A comparison of two models on a part of the instances.

    Args:
        one, other: the models; the effect is the score of `one` minus that of `other`.
        by: `all`, `task`, `length` or `depth`.
        part: the task, the length's label, or the depth in percent.
        comparison: the comparison. Its effect is the mean over tasks and lengths of their mean differences.
        adjusted: the p-value that is adjusted by Holm's method over all pairs and parts with the same `by`.
    """

    one: str
    other: str
    by: str
    part: str
    comparison: Comparison
    adjusted: float

    @property
    def better(self) -> str:
        """The better model; empty if they are tied."""
        # NaN, the p-value without instances, must be a tie, so the condition is not `>=`.
        if not self.adjusted < SIGNIFICANCE:
            return ""
        return self.one if self.comparison.effect.mean > 0 else self.other


@dataclass(frozen=True)
class Standing:
    """A model's place in the ranking.

    Args:
        mean: the mean over tasks and lengths of their means.
        rank: the rank by the mean.
        borda: the number of models that this one is better than, as a mean over tasks and lengths.
        kemeny: the place in Kemeny's order, from 1.
        interquartile_mean: the mean of the middle half of the scores in tasks and lengths.
        profile: for each of `THRESHOLDS` the share of tasks and lengths with a higher score.
    """

    model: str
    mean: float
    rank: Rank
    borda: float
    kemeny: int
    interquartile_mean: float
    profile: tuple[float, ...]


class Difference(NamedTuple):
    """The scores of two models on an instance, and the addresses of both answers on HELM's pages."""

    item: Item
    one: float
    other: float
    links: tuple[str, str]


class Table:
    """The scores of models on the instances for which each of them has a score.

    Args:
        results: the results of tasks; see `read_results`.
        models: names of models in the results.

    Raises:
        InputError: a model is unknown, or the models have no scored instance in common.
    """

    def __init__(self, results: Iterable[Result], models: Sequence[str]):
        results = [result for result in results if result.rows]
        known = list(dict.fromkeys(result.model for result in results))
        for model in models:
            if model not in known:
                raise InputError(
                    f"compare: model={shorten(model)} has no scored instance in this suite; allowed: "
                    f"{list_choices(model, known) or 'none, because the suite has no run with instances'}"
                )
        by_model = {
            model: _by_item(r for result in results if result.model == model for r in result.rows) for model in models
        }
        self.models = tuple(models)
        # A paired comparison needs all answers, so an instance that one model lacks counts for no model.
        self.items = [item for item in by_model[models[0]] if all(item in rows for rows in by_model.values())]
        if not self.items:
            raise InputError(f"compare: {', '.join(models)} have no scored instance in common; run the same tasks")
        self._rows = {model: [rows[item] for item in self.items] for model, rows in by_model.items()}
        self.scores = {model: np.array([_mean(rows) for rows in found]) for model, found in self._rows.items()}
        self.groups = [rows[0].group for rows in self._rows[models[0]]]

    def pairings(self) -> list[Pairing]:
        """Compare every two models on everything, and by task, length and depth."""
        parts: list[tuple[str, Callable[[int], str | None]]] = [
            ("all", lambda place: ""),
            ("task", lambda place: self.items[place].task or self.items[place].entry),
            ("length", lambda place: _label(self.items[place].length)),
            ("depth", self._depth),
        ]
        return [pairing for by, part in parts for pairing in self._adjust(by, self._split(part))]

    def standings(self) -> list[Standing]:
        """Rank the models, best first."""
        cells = [
            Cell([self.scores[model][places] for model in self.models], [self.groups[place] for place in places])
            # The first four fields of an item are all but the instance.
            for places in self._split(lambda place: str(self.items[place][:4])).values()
        ]
        # A row for each model and a column for each task and length.
        table = np.array([np.mean(np.asarray(cell.scores), axis=1) for cell in cells]).T
        order = kemeny(table)
        rows = zip(self.models, table, rank_intervals(cells), borda(table), strict=True)
        standings = [
            Standing(
                model,
                float(means.mean()),
                rank,
                float(points),
                order.index(place) + 1,
                interquartile_mean(means),
                tuple(float(share) for share in performance_profile(means, THRESHOLDS)),
            )
            for place, (model, means, rank, points) in enumerate(rows)
        ]
        return sorted(standings, key=lambda standing: standing.rank.rank)

    def differences(self, one: str, other: str, most: int, address: str) -> list[Difference]:
        """Return the instances with the largest differences between two models, with wins and losses in turn.

        Args:
            most: largest number of instances.
            address: address of helm-server.
        """
        gaps = self.scores[one] - self.scores[other]
        wins = [int(place) for place in np.argsort(-gaps, kind="stable") if gaps[place] > 0]
        losses = [int(place) for place in np.argsort(gaps, kind="stable") if gaps[place] < 0]
        turns = [place for pair in zip(wins, losses, strict=False) for place in pair]
        # If one model wins more often, its further wins follow.
        rest = [*wins[len(losses) :], *losses[len(wins) :]]
        return [
            Difference(
                self.items[place],
                float(self.scores[one][place]),
                float(self.scores[other][place]),
                (_link(address, self._rows[one][place][0]), _link(address, self._rows[other][place][0])),
            )
            for place in [*turns, *rest][:most]
        ]

    def _depth(self, place: int) -> str | None:
        depth = self._rows[self.models[0]][place][0].depth
        return None if depth is None else f"{min(DEPTHS, key=lambda percent: abs(percent - 100 * depth))} %"

    def _split(self, part: Callable[[int], str | None]) -> dict[str, list[int]]:
        parts: dict[str, list[int]] = defaultdict(list)
        for place in range(len(self.items)):
            if (name := part(place)) is not None:
                parts[name].append(place)
        return parts

    def _adjust(self, by: str, parts: Mapping[str, list[int]]) -> Iterator[Pairing]:
        """Yield the comparisons by one criterion, with p-values that are adjusted for their number."""
        pairings = [
            Pairing(one, other, by, part, self._compare(one, other, places), 1.0)
            for part, places in parts.items()
            for one, other in combinations(self.models, 2)
        ]
        adjusted = holm([pairing.comparison.p_value for pairing in pairings])
        return (replace(pairing, adjusted=p) for pairing, p in zip(pairings, adjusted, strict=True))

    def _compare(self, one: str, other: str, places: Sequence[int]) -> Comparison:
        cells: dict[object, list[int]] = defaultdict(list)
        for place in places:
            cells[self.items[place][:4]].append(place)
        # Equal weights of tasks and lengths, as in the leaderboard.
        return compare_parts([self._pair(one, other, cell, 1 / len(cells)) for cell in cells.values()])

    def _pair(self, one: str, other: str, cell: Sequence[int], weight: float) -> Pairs:
        groups = [self.groups[place] for place in cell]
        return Pairs(self.scores[one][cell], self.scores[other][cell], groups, weight)


def _by_item(rows: Iterable[InstanceScore]) -> dict[Item, list[InstanceScore]]:
    """Return the repeats of each instance that have a score."""
    found: dict[Item, list[InstanceScore]] = defaultdict(list)
    for row in rows:
        if row.score is not None:
            found[Item(row.entry, row.task, row.length, row.context, row.instance)].append(row)
    return found


def _mean(repeats: Sequence[InstanceScore]) -> float:
    return fmean(row.score for row in repeats if row.score is not None)


def _label(length: int | None) -> str | None:
    return None if length is None else length_label(length)


def _link(address: str, row: InstanceScore) -> str:
    """Return the address of an instance on HELM's page of its run."""
    return f"{address}/#/runs/{quote(row.run, safe='')}?instance={quote(row.instance, safe='')}"
