"""Finds the cheapest part of a benchmark that ranks models as the whole does."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from helm_longctx.results.statistics.intervals import Floats
from helm_longctx.results.statistics.ranking import Correlation, spearman

SHARES = (1.0, 0.5, 0.25, 0.1, 0.05)
"""Shares of a task's questions that are tried."""

FEWEST = 10
"""Smallest number of questions that a task keeps."""

DRAWS = 30
"""Number of draws of half of the models, and of questions. A subset must agree in each draw. With fewer draws, subsets
would be found that are good only for these models."""

MOST_SETS = 4096
"""Largest number of sets of rows, and of columns, that are tried: all sets of up to 12."""

_BLOCK = 4096
"""Number of subsets that are tried at once, which limits the memory."""

Choices = NDArray[np.bool_]


@dataclass(frozen=True)
class Scores:
    """Models' scores in all cells of a benchmark.

    Args:
        table: shape (models, rows, columns): rows are tasks or categories, columns are lengths. No score is missing.
        questions: shape (rows, columns): number of different questions of each score.
        price: shape (rows, columns): the price of each cell, in any unit.
    """

    table: Floats
    questions: Floats
    price: Floats

    def of_models(self, models: NDArray[np.intp]) -> Scores:
        """Return the scores of some of the models."""
        return Scores(self.table[models], self.questions, self.price)

    def question_counts(self, share: float) -> Floats:
        """Return the number of questions in a share of each cell's questions: shape (rows, columns)."""
        return np.minimum(self.questions, np.maximum(self.questions * share, FEWEST))

    def noise(self, share: float) -> Floats:
        """Return the standard deviation of each cell's score if only a share of its questions is asked.

        It is the variance of right and wrong answers. Continuous scores vary less.
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
        rows, columns: the numbers of the rows and columns in it.
        share: the share of the questions that are asked.
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
        wish: the lowest agreement.
        most: the highest price, as a share of the whole.
    """
    best: Subset | None = None
    for share in SHARES:
        # All shares have the same draws, so that they differ only in their noise.
        random = np.random.default_rng(seed)
        draws = [_draw(scores, share, random) for _ in range(DRAWS)]
        cost = scores.cost(share) / scores.price.sum()
        of_rows, of_columns = map(_sets, cost.shape)
        # All combinations of sets of rows and sets of columns, in blocks.
        for start in range(0, len(of_rows) * len(of_columns), _BLOCK):
            places = np.arange(start, min(start + _BLOCK, len(of_rows) * len(of_columns)))
            rows, columns = of_rows[places // len(of_columns)], of_columns[places % len(of_columns)]
            price = np.einsum("sr,rc,sc->s", rows, cost, columns)
            cheap = np.flatnonzero(price < best.price if best else price <= most)
            agreements = _agreements(draws, rows[cheap], columns[cheap])
            for place, found in zip(cheap, agreements.tolist(), strict=True):
                if found >= wish and (best is None or price[place] < best.price):
                    best = Subset(_places(rows[place]), _places(columns[place]), share, float(price[place]), found)
    return best


def agreement(scores: Scores, subset: Subset, reference: Floats, seed: int = 1) -> Correlation:
    """Correlate a subset's means with a reference over the same models, with its interval.

    The result is the mean over `DRAWS` draws of the questions. The interval is for the choice of models.

    Args:
        reference: shape (models,); NaN for a missing value.
    """
    # The default seed differs from the seed of `find_subset`, whose draws were used to choose the subset.
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
    """Return the least agreement of each subset in all draws: 0 for one whose means do not differ."""
    from scipy.stats import rankdata

    if not len(rows):
        return np.zeros(0)
    # Each subset has a weight for each cell, so that one product of matrices gives the means of all subsets.
    weights = np.einsum("sr,sc->rcs", rows * 1.0, columns * 1.0)
    weights = weights.reshape(-1, len(rows)) / weights.sum(axis=(0, 1))
    found = []
    for part, full in draws:
        # Spearman's correlation of each column. `spearmanr` would correlate all pairs of up to 4,096 columns.
        ranks, expected = rankdata(part @ weights, axis=0), rankdata(full)
        ranks, expected = ranks - ranks.mean(axis=0), expected - expected.mean()
        scale = np.sqrt((ranks**2).sum(axis=0) * (expected**2).sum())
        found.append(np.divide(expected @ ranks, scale, out=np.zeros(len(rows)), where=scale > 0))
    return np.asarray(np.min(found, axis=0))


def _draw(scores: Scores, share: float, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return some models' scores with the noise of fewer questions, one row for each, and their overall means."""
    # Two models always correlate perfectly, so a draw has at least three.
    models = random.choice(len(scores.table), max(3, len(scores.table) // 2), replace=False)
    part = scores.of_models(np.sort(models))
    noise = part.noise(share)
    table = part.table + noise * random.standard_normal(noise.shape)
    # The reference has no noise, because few questions should repeat the published ranking.
    return table.reshape(len(table), -1), part.table.mean(axis=(1, 2))


def _sets(size: int) -> Choices:
    """Return all non-empty sets of `size` things; if there are too many, the small ones, which are cheap, and all."""
    # The whole set is always included, because only it is certain to agree.
    by_size = (chosen for count in range(1, size) for chosen in combinations(range(size), count))
    chosen = [*islice(by_size, MOST_SETS - 1), tuple(range(size))]
    sets = np.zeros((len(chosen), size), dtype=bool)
    for row, places in zip(sets, chosen, strict=True):
        row[list(places)] = True
    return sets
