"""Ranks the user's models by all instances of all benchmarks, of which each can lack some, as ONEBench does.

Source: ONEBench (arXiv 2412.06745): each instance orders the models that have a score, and a Plackett-Luce model is
fitted to the pairs of these orders. Its code (`analysis/elo.py` at 9c31edb) fits it with the package choix, too.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from helm_longctx.documents.document import (
    Cell,
    Column,
    Figure,
    HeadlineAnswer,
    Section,
    Table,
    interval_cell,
    number_cell,
)
from helm_longctx.documents.numbers import (
    DASH,
    MARK,
    add_in_brackets,
    format_count,
    format_decimals,
    format_ends,
    format_signed_decimals,
    one_line,
)
from helm_longctx.documents.plots import interval_plot
from helm_longctx.environment import require
from helm_longctx.errors import InputError, list_first
from helm_longctx.results.boards import Board
from helm_longctx.results.cells import interval_row, rank_cell
from helm_longctx.results.comparison import by_instance, by_question, mean_of
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.comparison import (
    FAILURES_DECIDE,
    Comparison,
    Failures,
    SideFailures,
    find_differences,
    two_sided_p_value,
)
from helm_longctx.results.statistics.intervals import (
    Floats,
    Interval,
    cluster_sums,
    group_codes,
    normal_quantile,
)
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.results.statistics.ranking import (
    Correlation,
    Rank,
    rank_ranges,
    spearman,
)

PRIOR = 0.5
"""Number of wins and of losses that each model is given against the others together. Otherwise the strength of a model
that always wins would be infinite."""


@dataclass(frozen=True)
class _Pooling:
    """The ranking of models over all instances.

    Args:
        strengths: the strength of each model with its interval. Their mean is 0. A model of strength a beats one
            of strength b with the probability 1 / (1 + exp(b - a)) on an instance on which they differ.
        ranks: the rank by the strength, with the range that all pairs allow.
        open_pairs: the pairs that differ in their answers, but not with failures as wrong or as right.
    """

    strengths: Mapping[str, Interval]
    ranks: Mapping[str, Rank]
    open_pairs: tuple[tuple[str, str], ...] = ()

    def agreement(self, means: Mapping[str, float]) -> Correlation:
        """Return the rank correlation with other scores of the same models, such as their means."""
        return spearman(
            [self.strengths[model].mean for model in means], list(means.values())
        )


def pool(
    scores: Mapping[str, ArrayLike],
    groups: Sequence[object],
    failed: Mapping[str, ArrayLike] | None = None,
) -> _Pooling:
    """Rank models by the instances on which they differ.

    The intervals are from the sandwich estimate of the variance over groups. It is at least the variance of
    independent comparisons.

    Args:
        scores: for each of two or more models shape (n,): its score on each instance; NaN if it has none.
        groups: the group of each instance.
        failed: for each model shape (n,): whether it was asked and has no answer. A pair is decided only if it is
            decided with failures as the worst and as the best answers, too.

    Raises:
        InputError: the package choix is not installed.
        ValueError: a model differs from no other model on any instance.
    """
    names = list(scores)
    table = np.array([np.asarray(score, dtype=float) for score in scores.values()])
    codes = group_codes(groups, table.shape[1])
    strengths, errors, comparisons = _fit(table, codes, names)
    if failed is not None and any(np.any(rows) for rows in failed.values()):
        is_failed = np.array([np.asarray(failed[name], dtype=bool) for name in names])
        worst = _fit(np.where(is_failed, -math.inf, table), codes, names)[2]
        best = _fit(np.where(is_failed, math.inf, table), codes, names)[2]
        for pair, comparison in comparisons.items():
            comparisons[pair] = _add_failures(
                pair, comparison, worst[pair], best[pair], failed
            )
    decisions = find_differences(comparisons)
    ranks = rank_ranges(dict(zip(names, strengths, strict=True)), decisions)
    counts = (~np.isnan(table)).sum(axis=1)
    rows = zip(names, strengths, normal_quantile() * errors, counts, strict=True)
    return _Pooling(
        strengths={
            name: Interval(float(s), float(s - h), float(s + h), int(n))
            for name, s, h, n in rows
        },
        ranks=ranks,
        open_pairs=tuple(
            pair for pair, decision in decisions.items() if decision.is_left_to_failures
        ),
    )


def _add_failures(
    pair: tuple[str, str],
    comparison: Comparison,
    as_wrong: Comparison,
    as_right: Comparison,
    failed: Mapping[str, ArrayLike],
) -> Comparison:
    shares = []
    for model in pair:
        shares.append(float(np.mean(np.asarray(failed[model], dtype=bool))))
    if not any(shares):
        return comparison
    failures = Failures(
        asked=comparison.effect.n,
        one=SideFailures(shares[0]),
        other=SideFailures(shares[1]),
        p_value=math.nan,
        as_wrong=as_wrong,
        as_right=as_right,
    )
    return replace(comparison, failures=failures)


def _fit(
    table: Floats,
    codes: NDArray[np.intp],
    names: Sequence[str],
) -> tuple[Floats, Floats, dict[tuple[str, str], Comparison]]:
    """Return the strengths of models, their standard errors, and the comparisons of all pairs.

    Args:
        table: shape (models, instances).
    """
    require("pooling", "the ranking over all instances")
    from choix import ilsr_pairwise_dense

    wins = np.array([(row > table).sum(axis=1) for row in table], dtype=float)
    compared = wins + wins.T
    if not compared.sum(axis=1).all():
        raise ValueError("a model differs from no other model on any instance")
    prior = PRIOR / (len(names) - 1) * (1 - np.eye(len(names)))
    strengths = np.asarray(ilsr_pairwise_dense(wins + prior), dtype=float)
    covariances = _covariances(table, compared + 2 * prior, strengths, codes)
    comparisons = {}
    for i, j in combinations(range(len(names)), 2):
        difference = float(strengths[i] - strengths[j])
        error = math.sqrt(
            max(float(c[i, i] + c[j, j] - 2 * c[i, j]) for c in covariances)
        )
        half = normal_quantile() * error
        interval = Interval(difference, difference - half, difference + half, 0)
        comparisons[names[i], names[j]] = Comparison(
            interval, two_sided_p_value(abs(difference) / error)
        )
    errors = np.sqrt(
        np.max([np.diag(covariance) for covariance in covariances], axis=0)
    )
    return strengths, errors, comparisons


def _covariances(
    table: Floats,
    compared: Floats,
    strengths: Floats,
    codes: NDArray[np.intp],
) -> tuple[Floats, Floats]:
    """Return the covariances of the strengths: for independent comparisons, and over groups.

    Args:
        table: shape (models, instances).
        compared: shape (models, models): the number of instances on which two models differ.
    """
    chances = 1 / (1 + np.exp(strengths[None] - strengths[:, None]))
    information = -compared * chances * (1 - chances)
    np.fill_diagonal(information, -information.sum(axis=1) + np.diag(information))
    inverse = np.linalg.pinv(information)
    # The derivative of the likelihood: how much more each model won in a group than expected.
    gradients = np.array(
        [
            cluster_sums(
                (row > table).T @ (1 - chance) - (row < table).T @ chance, codes
            )
            for row, chance in zip(table, chances, strict=True)
        ]
    )
    clusters = gradients.shape[1]
    clustered = (
        inverse @ (gradients @ gradients.T) @ inverse * clusters / max(clusters - 1, 1)
    )
    return np.asarray(inverse, dtype=float), np.asarray(clustered, dtype=float)


class _Cell(NamedTuple):
    """A task at a length, with the judge and the arguments of the prompts."""

    board: str
    task: str
    length: int | None
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class _PooledRanking:
    """The ranking of the user's models over all instances.

    Args:
        means: the mean of each model over the tasks and lengths that it has.
        cells: the number of these tasks and lengths.
        most_cells: the number of tasks and lengths that all models together have.
        instances: the number of instances that at least two models answered.
        left_out: the models that differ from no other model on any instance.
    """

    pooling: _Pooling
    means: Mapping[str, float]
    cells: Mapping[str, int]
    most_cells: int
    instances: int
    left_out: tuple[str, ...]


def pool_boards(boards: Iterable[Board]) -> _PooledRanking | None:
    """Rank the user's models, without floors and closed books, or None if no two of them differ on an instance.

    Instances are clustered by their groups. Equal questions at several lengths are one cluster.

    Raises:
        InputError: the package choix is not installed.
    """
    # Each model's results of tasks whose answers were kept.
    results: dict[str, dict[_Cell, Result]] = defaultdict(dict)
    for board in boards:
        for key, result in board.scores.items():
            is_counted = result.answers and key.context == "full"
            if is_counted and not board.is_floor(key.model):
                cell = _Cell(board.name, result.task, key.length, result.conditions)
                results[key.model][cell] = result
    # The group of each instance, and the score of each model on it.
    groups: dict[tuple[_Cell, str], str] = {}
    pooled: dict[str, dict[tuple[_Cell, str], float]] = defaultdict(dict)
    failed: dict[str, set[tuple[_Cell, str]]] = defaultdict(set)
    for model, cells in results.items():
        for cell, result in cells.items():
            answered = by_instance(result.answers)
            for name, repeats in by_question(result.answers).items():
                groups[cell, name] = f"{cell.board} {repeats[0].group}"
                if name in answered:
                    pooled[model][cell, name] = mean_of(answered[name])
                else:
                    failed[model].add((cell, name))
    table = {}
    for model, by_instance_name in pooled.items():
        values = []
        for instance in groups:
            values.append(by_instance_name.get(instance, math.nan))
        table[model] = np.array(values)
    models = []
    for model, scores in table.items():
        # A comparison with NaN is false.
        if any(((scores > other) | (scores < other)).any() for other in table.values()):
            models.append(model)
    if not models:
        return None
    shared = np.sum([~np.isnan(table[model]) for model in table], axis=0) > 1
    has_failed = {}
    means = {}
    all_cells: set[tuple[object, ...]] = set()
    for model in models:
        has_failed[model] = [instance in failed[model] for instance in groups]
        of_model = results[model]
        means[model] = fmean(result.interval.mean for result in of_model.values())
        all_cells.update(cell[:3] for cell in of_model)
    ranked = {model: table[model] for model in models}
    return _PooledRanking(
        pool(ranked, list(groups.values()), has_failed),
        means,
        {model: len(results[model]) for model in models},
        len(all_cells),
        int(shared.sum()),
        tuple(model for model in table if model not in models),
    )


NAME = "all-instances"

_QUESTION = "Which model is best over all instances?"

_ABOUT = (
    "Each instance orders the models that answered it, and a Plackett-Luce model is"
    " fitted to these orders, as ONEBench does (arXiv 2412.06745). A model can lack"
    " tasks, lengths or whole benchmarks: it is compared on what it shares with others."
    " Each instance counts once, so tasks with many instances count most. The size of a"
    " difference does not count."
)


def pooling_sections(boards: Iterable[Board]) -> list[Section]:
    """Return the section of the ranking, or nothing if no two of the user's models differ on an instance."""
    try:
        pooled = pool_boards(boards)
    except InputError as error:
        return [
            Section(
                NAME,
                _QUESTION,
                [
                    HeadlineAnswer(
                        _QUESTION, "This ranking was not computed.", str(error), False
                    )
                ],
            )
        ]
    if not pooled:
        return []
    order = sorted(
        pooled.means, key=lambda model: -pooled.pooling.strengths[model].mean
    )
    rows = []
    for model in order:
        rows.append(
            {
                "model": one_line(model),
                **interval_row(_chance(pooled.pooling.strengths[model])),
                "kind": "own",
            }
        )
    about = (
        "The chance that a model is better than a model of average strength on an"
        f" instance on which they differ, with {LEVEL_TEXT} intervals. {_ABOUT}"
    )
    spec = interval_plot(
        "chance to beat an average model", [one_line(model) for model in order]
    )
    figure = Figure(f"{NAME}-plot", "Strength over all instances", about, spec, rows)
    return [
        Section(
            NAME, _QUESTION, [_answer(pooled, order), figure, _table(pooled, order)]
        )
    ]


def _answer(pooled: _PooledRanking, order: Sequence[str]) -> HeadlineAnswer:
    best = order[0]
    ranks = pooled.pooling.ranks
    verdict = f"{one_line(best)} ranks first of {len(order)} models over {format_count(pooled.instances)} instances."
    is_sure = ranks[best].high == 1
    if is_sure:
        others = "leave it no other rank"
    else:
        others = f"also leave it the ranks up to {ranks[best].high}"
    certainty = f"The comparisons of all pairs {others}."
    if open_pairs := pooled.pooling.open_pairs:
        pairs = list_first(
            (" and ".join(map(one_line, pair)) for pair in open_pairs), 4
        )
        certainty += f" {FAILURES_DECIDE.capitalize()} about {pairs}."
    left_out = ", ".join(map(one_line, pooled.left_out))
    note = ""
    if left_out:
        note = f"Not ranked, because they differ from no other model on any instance: {left_out}."
    agreement = pooled.pooling.agreement(pooled.means)
    text = "A rank correlation with the means needs three models."
    if not math.isnan(agreement.rho):
        ends = format_ends(agreement, format_decimals)
        rho = add_in_brackets(
            format_decimals(agreement.rho), ends and f"{LEVEL_TEXT} interval {ends}"
        )
        text = f"Spearman's rank correlation with the means over tasks and lengths is {rho}, over {agreement.n} models."
    return HeadlineAnswer(
        _QUESTION, verdict, certainty, is_sure, f"{text} {note}".strip()
    )


def _chance(strength: Interval) -> Interval:
    """Return the chance to beat a model of mean strength."""

    def logistic(logit: float) -> float:
        return 1 / (1 + math.exp(-logit))

    return Interval(
        mean=logistic(strength.mean),
        low=logistic(strength.low),
        high=logistic(strength.high),
        n=strength.n,
    )


def _table(pooled: _PooledRanking, order: Sequence[str]) -> Table:
    # Means over other tasks and lengths have no rank beside means over all.
    cells = pooled.cells
    whole = []
    for model in pooled.means:
        if cells[model] == pooled.most_cells:
            whole.append(model)
    by_mean = sorted(whole, key=lambda model: -pooled.means[model])
    heads = [
        Column(
            "Rank",
            "The rank by strength. The range has the ranks that the comparisons of all"
            " pairs leave open.",
        ),
        Column("Model", is_number=False),
        Column(
            "Strength",
            "A model of strength a beats one of strength b with the probability 1 / (1"
            " + exp(b − a)).",
        ),
        Column("Chance", "The chance to beat a model of average strength."),
        Column("Instances", "Number of instances with a score."),
        Column("Mean", "The mean over the tasks and lengths that the model has."),
        Column("Rank by mean"),
    ]
    about = f"{MARK} marks means over fewer tasks and lengths than the {pooled.most_cells} that all models together have."
    rows = []
    for model in order:
        strength = pooled.pooling.strengths[model]
        if model in whole:
            caveats = ""
            rank = number_cell(by_mean.index(model) + 1, format_count)
        else:
            caveats = f"over {cells[model]} of {pooled.most_cells}"
            rank = Cell(DASH, note="a mean over fewer tasks and lengths")
        row = [
            rank_cell(pooled.pooling.ranks[model]),
            Cell(one_line(model), tag="own"),
            interval_cell(strength, format_signed_decimals),
            number_cell(_chance(strength).mean),
            number_cell(strength.n, format_count),
            number_cell(pooled.means[model], caveats=caveats),
            rank,
        ]
        rows.append(row)
    return Table(
        f"{NAME}-table",
        "Ranks over all instances and by means",
        heads,
        rows,
        about,
        search=True,
    )
