"""Finds the cheapest part of a benchmark that ranks models as the whole does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from helm_longctx.statistics.correlation import Correlation, spearman
from helm_longctx.statistics.intervals import Floats

SHARES = (1.0, 0.5, 0.25, 0.1, 0.05)
"""Shares of a task's questions that are tried."""

FEWEST = 10
"""Questions that a task keeps at least."""

DRAWS = 30
"""Draws of half of the models, and of questions, in each of which a subset must agree. Fewer draws find subsets that
are good for the models at hand only."""

MOST_SETS = 4096
"""Sets of rows, and of columns, that are tried: all of up to 12."""

_BLOCK = 4096
"""Subsets that are tried at once, which bounds the memory."""

Choices = NDArray[np.bool_]


@dataclass(frozen=True)
class Scores:
    """Models' scores in all cells of a benchmark.

    Args:
        table: shape (models, rows, columns): rows are tasks or categories, columns lengths. Without gaps.
        questions: shape (rows, columns): numbers of different questions behind the scores.
        price: shape (rows, columns): what a cell costs, in any unit.
    """

    table: Floats
    questions: Floats
    price: Floats

    def of_models(self, models: NDArray[np.intp]) -> Scores:
        """Return the same of some models."""
        return Scores(self.table[models], self.questions, self.price)

    def question_counts(self, share: float) -> Floats:
        """Return the numbers of questions that are left of a share: shape (rows, columns)."""
        return np.minimum(self.questions, np.maximum(self.questions * share, FEWEST))

    def noise(self, share: float) -> Floats:
        """Return what a cell's score varies by if only a share of its questions is asked: standard deviations.

        For right and wrong answers, which vary most: continuous scores vary less.
        """
        spread = np.maximum(self.table * (1 - self.table), 0)
        return np.asarray(np.sqrt(spread * (1 / self.question_counts(share) - 1 / self.questions)))

    def cost(self, share: float) -> Floats:
        """Return the price of each cell with a share of its questions."""
        return np.asarray(self.price * self.question_counts(share) / self.questions)


@dataclass(frozen=True)
class Subset:
    """A part of a benchmark.

    Args:
        rows, columns: which are in it.
        share: the share of the questions that are asked.
        price: its share of the price of the whole benchmark.
        agreement: rank correlation with the whole in the worst draw.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    share: float
    price: float
    agreement: float


def find_subset(scores: Scores, wish: float, most: float, seed: int = 0) -> Subset | None:
    """Return the cheapest rows, columns and share of questions with an agreement; None if there is no such subset.

    All combinations are tried, up to `MOST_SETS` sets of rows and of columns. Agreement is Spearman's correlation of
    the mean over the subset with the mean over all cells. It must be reached in `DRAWS` draws of half of the models,
    with the noise of fewer questions.

    Args:
        wish: the least agreement.
        most: the highest price, as a share of the whole.
    """
    best: Subset | None = None
    for share in SHARES:
        # The same draws for each share, so that shares differ only in their noise.
        random = np.random.default_rng(seed)
        draws = [_draw(scores, share, random) for _ in range(DRAWS)]
        cost = scores.cost(share) / scores.price.sum()
        for rows, columns in _choices(*cost.shape):
            price = np.einsum("sr,rc,sc->s", rows, cost, columns)
            cheap = np.flatnonzero(price < best.price if best else price <= most)
            agreements = _agreements(draws, rows[cheap], columns[cheap])
            for place, found in zip(cheap, agreements.tolist(), strict=True):
                if found >= wish and (best is None or price[place] < best.price):
                    best = Subset(_places(rows[place]), _places(columns[place]), share, float(price[place]), found)
    return best


def agreement(scores: Scores, subset: Subset, reference: Floats, seed: int = 1) -> Correlation:
    """Correlate a subset's means with a reference over the same models, with its interval.

    Of `DRAWS` draws of the questions the mean is returned; the interval is for the choice of models.

    Args:
        reference: shape (models,); NaN where a model has none.
    """
    # The default seed differs from that of `find_subset`, whose draws the subset was chosen by.
    random = np.random.default_rng(seed)
    noise = scores.noise(subset.share)
    found = []
    for _ in range(DRAWS):
        table = scores.table + noise * random.standard_normal(noise.shape)
        found.append(spearman(table[:, subset.rows][:, :, subset.columns].mean(axis=(1, 2)), reference))
    rows = [(each.rho, each.p_value, each.low, each.high) for each in found]
    rho, p_value, low, high = (float(mean) for mean in np.mean(rows, axis=0))
    return Correlation(rho, p_value, low, high, found[0].n)


def _places(chosen: Choices) -> tuple[int, ...]:
    return tuple(int(place) for place in np.flatnonzero(chosen))


def _agreements(draws: list[tuple[Floats, Floats]], rows: Choices, columns: Choices) -> Floats:
    """Return the least agreement of each subset in all draws."""
    if not len(rows):
        return np.zeros(0)
    # A subset is a weight for each cell, so that one product of matrices gives all subsets' means.
    weights = np.einsum("sr,sc->rcs", rows * 1.0, columns * 1.0)
    weights = weights.reshape(-1, len(rows)) / weights.sum(axis=(0, 1))
    return np.asarray(np.min([_correlate(part @ weights, full) for part, full in draws], axis=0))


def _draw(scores: Scores, share: float, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Some models' scores with the noise of fewer questions, in a row for each, and their means over everything."""
    # Two models always correlate perfectly, so a draw has at least three.
    models = random.choice(len(scores.table), max(3, len(scores.table) // 2), replace=False)
    part = scores.of_models(np.sort(models))
    noise = part.noise(share)
    table = part.table + noise * random.standard_normal(noise.shape)
    # The whole is the reference without noise: the question is how well few questions repeat the published ranking.
    return table.reshape(len(table), -1), part.table.mean(axis=(1, 2))


def _choices(rows: int, columns: int) -> Iterator[tuple[Choices, Choices]]:
    """Sets of rows with sets of columns, in blocks."""
    of_rows, of_columns = _sets(rows), _sets(columns)
    total = len(of_rows) * len(of_columns)
    for start in range(0, total, _BLOCK):
        places = np.arange(start, min(start + _BLOCK, total))
        yield of_rows[places // len(of_columns)], of_columns[places % len(of_columns)]


def _sets(size: int) -> Choices:
    """Return all non-empty sets of so many things; of many things the small sets, which are cheap, and the whole."""
    # The whole is always among the sets, because it is the only one that agrees with certainty.
    by_size = (chosen for count in range(1, size) for chosen in combinations(range(size), count))
    chosen = [*islice(by_size, MOST_SETS - 1), tuple(range(size))]
    sets = np.zeros((len(chosen), size), dtype=bool)
    for row, places in zip(sets, chosen, strict=True):
        row[list(places)] = True
    return sets


def _correlate(means: Floats, reference: Floats) -> Floats:
    """Spearman's correlation of each column with the reference; 0 for a column without differences."""
    from scipy.stats import rankdata

    # Not `spearmanr`, which would correlate all pairs of up to 4,096 columns.
    ranks, expected = rankdata(means, axis=0), rankdata(reference)
    ranks, expected = ranks - ranks.mean(axis=0), expected - expected.mean()
    scale = np.sqrt((ranks**2).sum(axis=0) * (expected**2).sum())
    return np.asarray(np.divide(expected @ ranks, scale, out=np.zeros(means.shape[1]), where=scale > 0))
