"""`subset`: find a cheaper part of a benchmark that ranks models as the whole does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import Annotated

import numpy as np
import orjson
import typer
from numpy.typing import NDArray

from helm_longctx.config.shared import (
    JsonPath,
    LocalPath,
    OutputPath,
    check_folder,
    complete_suite,
    entry_file,
    fill_registries,
)
from helm_longctx.documents.document import text_table
from helm_longctx.documents.numbers import range_text
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.models.apis.prices import find_prices
from helm_longctx.results.boards import category_results, make_boards
from helm_longctx.results.reading import Result, published_results, read_results
from helm_longctx.results.statistics.intervals import Floats, normal_quantile
from helm_longctx.results.statistics.ranking import Correlation, spearman
from helm_longctx.results.suite import suite_folder
from helm_longctx.tasks.answer import Usage
from helm_longctx.tasks.benchmark import Benchmark, Category
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Settings, Task

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
            rows = of_rows[places // len(of_columns)]
            columns = of_columns[places % len(of_columns)]
            price = np.einsum("sr,rc,sc->s", rows, cost, columns)
            cheap = np.flatnonzero(price < best.price if best else price <= most)
            agreements = _agreements(draws, rows[cheap], columns[cheap])
            for place, found in zip(cheap, agreements.tolist(), strict=True):
                if found >= wish and (best is None or price[place] < best.price):
                    best = Subset(
                        _places(rows[place]),
                        _places(columns[place]),
                        share,
                        float(price[place]),
                        found,
                    )
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
        found.append(
            spearman(table[:, subset.rows][:, :, subset.columns].mean(axis=(1, 2)), reference)
        )
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
        ranks = rankdata(part @ weights, axis=0)
        expected = rankdata(full)
        ranks = ranks - ranks.mean(axis=0)
        expected = expected - expected.mean()
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


FEWEST_MODELS = 16
"""Smallest number of models with all scores: eight to find a subset and eight to check it. With four, an agreement of
0.99 on these was one of 0.71 to 0.85 on others."""

Price = Callable[[Task, int | None], float]
"""(task, length) → the price of a request."""


@dataclass(frozen=True)
class Row:
    """A part that a subset can contain: a category, or one of its tasks."""

    entry: str
    title: str
    category: Category
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Proposal:
    """A subset with its agreement.

    Args:
        checks: its correlation with several reference rankings, by their names, on the models that the search did not
            use. The first ranking is by the mean of everything.
    """

    subset: Subset | None
    benchmark: Benchmark
    rows: tuple[Row, ...]
    lengths: tuple[int | None, ...]
    scores: Scores
    checks: Mapping[str, Correlation]

    @property
    def agreement(self) -> Correlation | None:
        """The agreement with the mean of everything, on the models that the search did not use."""
        return next(iter(self.checks.values()), None)

    def selection(self) -> Iterator[tuple[Row, int | None, float]]:
        """Yield the rows and lengths of the subset, and the share of the questions that is asked."""
        if self.subset:
            shares = self.scores.question_counts(self.subset.share) / self.scores.questions
            for row in self.subset.rows:
                for column in self.subset.columns:
                    yield self.rows[row], self.lengths[column], float(shares[row, column])

    def cost(self, price: Price, whole: bool = False) -> float:
        """Return the price of the subset, or of everything, in the unit of `price`."""
        cells = (
            ((row, length, 1.0) for row in self.rows for length in self.lengths)
            if whole
            else self.selection()
        )
        return sum(share * _price_of(row.tasks, length, price) for row, length, share in cells)

    def conf(self) -> str:
        """Return the file with its run entries, for `helm-run --conf-paths`."""
        about = f"A part of {self.benchmark.title}, from `helm-longctx subset`. Name the models: --models-to-run …"
        entries = []
        for row, length, share in self.selection():
            tasks = _find_tasks(row.tasks, length)
            # It is rounded first, because a share of a number can exceed a whole number in the last digit.
            samples = {
                task.name: math.ceil(round(task.sample(Settings(length)) * share, 6))
                for task in tasks
            }
            at = [] if length is None else [f"length={length_label(length)}"]
            # A whole category is one entry, if all its tasks are asked equally many questions.
            whole = row.tasks == row.category.tasks and len(set(samples.values())) == 1
            for task in tasks[:1] if whole else tasks:
                is_alone = whole or len(row.category.tasks) == 1
                name = [] if is_alone else [f"{self.benchmark.task_argument}={task.argument}"]
                count = [f"num_samples={samples[task.name]}"] if share < 1 else []
                entries.append(f"{row.entry}:{','.join([*name, *at, *count, 'model=text'])}")
        return entry_file(about, entries)


def propose(
    benchmark: Benchmark,
    results: Iterable[Result],
    wish: float,
    most: float,
    price: Price,
    seed: int = 0,
) -> Proposal:
    """Find the cheapest subset on half of the models, and check it on the other half.

    Args:
        results: the results of tasks, or of categories if only they were published.
        wish: the lowest rank correlation.
        most: the highest price, as a share of the whole.

    Raises:
        InputError: too few models have all scores.
    """
    rows, lengths, table = _arrange(benchmark, results)
    if len(table) < FEWEST_MODELS:
        raise InputError(
            f"subset: benchmark={benchmark.name!r} has {len(table)} models with a score in every task and length. These"
            f" are not enough models: {FEWEST_MODELS} are needed; add runs with --suite"
        )
    shape = [[(row.tasks, length) for length in lengths] for row in rows]
    questions = np.array(
        [
            [sum(t.sample(Settings(at)) for t in _find_tasks(tasks, at)) for tasks, at in row]
            for row in shape
        ]
    )
    prices = np.array([[_price_of(tasks, length, price) for tasks, length in row] for row in shape])
    scores = Scores(table, questions.astype(float), prices)
    subset, rest = search_half(scores, wish, most, seed)
    # The rankings that a subset should keep.
    flat = rest.table.reshape(len(rest.table), -1)
    references = {"the mean of everything": flat.mean(axis=1)}
    for place, length in enumerate(lengths):
        if length is not None:
            references[f"the mean at {length_label(length)}"] = rest.table[:, :, place].mean(axis=1)
    checks = (
        {name: agreement(rest, subset, values) for name, values in references.items()}
        if subset
        else {}
    )
    return Proposal(subset, benchmark, rows, lengths, scores, checks)


def search_half(
    scores: Scores, wish: float, most: float, seed: int = 0
) -> tuple[Subset | None, Scores]:
    """Find the cheapest subset on half of the models, and return it with the scores of the other half.

    Args:
        wish: the lowest rank correlation that the interval on the other half shall contain.
        most: the highest price, as a share of the whole.
    """
    models = np.random.default_rng(seed).permutation(len(scores.table))
    # The subset is checked on other models, because it agrees by construction on the models of the search.
    one = np.sort(models[: len(models) // 2])
    other = np.sort(models[len(models) // 2 :])
    # The lower end of the interval on the other models decides, so the search asks for more.
    subset = find_subset(scores.of_models(one), _raise_wish(wish, len(other)), most, seed)
    return subset, scores.of_models(other)


def _raise_wish(wish: float, models: int) -> float:
    """Return the rank correlation whose 95 % interval has a lower end of about the wish; see `spearman`."""
    if wish >= 1:
        return wish
    error = math.sqrt((1 + wish**2 / 2) / (models - 3))
    return math.tanh(math.atanh(wish) + normal_quantile() * error)


def tokens(task: Task, length: int | None) -> float:
    """Return the tokens of a request: a prompt of the whole length, and the output budget."""
    return (length or 0) + task.output_tokens(Settings(length))


def _arrange(
    benchmark: Benchmark, results: Iterable[Result]
) -> tuple[tuple[Row, ...], tuple[int | None, ...], Floats]:
    """Return the scores of models that have all of them, by tasks if all results have tasks, else by categories."""
    found = [
        result
        for result in results
        if result.benchmark == benchmark.name and result.context == "full"
    ]
    by_task = all(each.task for each in found)
    cells = found if by_task else category_results(found, benchmark)
    averaged = [(entry, each) for entry, each in benchmark.entries.items() if each.averaged]
    rows = [
        Row(
            entry,
            task.title if by_task else category.title,
            category,
            (task,) if by_task else category.tasks,
        )
        for entry, category in averaged
        for task in (category.tasks if by_task else category.tasks[:1])
    ]
    keys = [(row.entry, row.tasks[0].name if by_task else "") for row in rows]
    scores = {
        (cell.model, (cell.entry, cell.task), cell.length): cell.interval.mean for cell in cells
    }
    lengths = sorted(
        {length for _, key, length in scores if key in keys}, key=lambda length: length or 0
    )
    table = np.array(
        [
            [[scores.get((model, key, length), math.nan) for length in lengths] for key in keys]
            for model in dict.fromkeys(model for model, _, _ in scores)
        ]
    )
    # Means over different cells could not be ranked.
    complete = table[~np.isnan(table).any(axis=(1, 2))] if table.size else table
    return tuple(rows), tuple(lengths), complete


def _find_tasks(tasks: Iterable[Task], length: int | None) -> list[Task]:
    return [task for task in tasks if task.exists_at(length)]


def _price_of(tasks: Iterable[Task], length: int | None, price: Price) -> float:
    settings = Settings(length)
    return sum(
        t.sample(settings) * t.depths * t.repeats * price(t, length)
        for t in _find_tasks(tasks, length)
    )


def subset(
    benchmark: Annotated[str, typer.Argument(help="Benchmark, e.g. helmet or lv_eval.")],
    suite: Annotated[
        str | None,
        typer.Option(help="Also use the models of this suite.", autocompletion=complete_suite),
    ] = None,
    agreement: Annotated[
        float,
        typer.Option(
            min=0.5,
            max=1,
            help="Minimum rank correlation with the whole: the lower end of its interval.",
        ),
    ] = 0.95,
    price: Annotated[
        float, typer.Option(min=0.001, max=1, help="Maximum price, as a share of the whole.")
    ] = 0.25,
    to: Annotated[Path, typer.Option(help="File of run entries to write.")] = Path("subset.conf"),
    model: Annotated[
        str | None, typer.Option(help="Deployment whose prices are used, e.g. openai/gpt-6-luna.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split of the models.")] = 0,
    json_path: JsonPath = None,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Find the cheapest tasks, lengths and number of questions that keep the ranking of models.

    The models are all models of the published results and of a suite that have all scores. The search uses one half of
    them, and the check the other half. The price is for prompts of full length and outputs, without judges. The exit
    status is 1 if there is no such subset.
    """
    by_name = {each.name: each for each in BENCHMARKS}
    if benchmark not in by_name:
        raise bad_argument("subset", "benchmark", benchmark, list(by_name))
    check_folder("to", to)
    check_folder("json", json_path)
    chosen = by_name[benchmark]
    dollars = _dollars(model, local_path) if model else None
    own = (
        read_results(suite_folder(output_path, suite), [chosen], keep_answers=False)
        if suite
        else []
    )
    boards = make_boards([*own, *published_results(chosen)], [chosen])
    # Some publications have only the scores of categories.
    results = [
        each
        for board in boards
        for each in (*board.tasks, *(c for c in board.categories if not c.parts))
    ]
    proposal = propose(chosen, results, agreement, price, dollars or tokens, seed)
    if json_path:
        content = {
            "parts": [
                {"entry": row.entry, "title": row.title, "length": length, "questions": share}
                for row, length, share in proposal.selection()
            ],
            "price": proposal.subset.price if proposal.subset else None,
            "agreement": {name: vars(found) for name, found in proposal.checks.items()},
        }
        json_path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    if proposal.subset is None or proposal.agreement is None:
        print(
            f"No subset of {chosen.title} for at most {price:.0%} of the price keeps an agreement of {agreement:g}."
        )
        raise typer.Exit(1)
    _print(proposal, dollars)
    # NaN, without an interval, must not pass, so the condition is not `<`.
    if not proposal.agreement.low >= agreement:
        print(
            f"No subset is proposed: the agreement of this one can be as low as {proposal.agreement.low:.3f} on models"
            " that the search did not use."
        )
        raise typer.Exit(1)
    to.write_text(proposal.conf(), encoding="utf-8")
    print(f"Run it: helm-longctx run --conf-path {to} --model …")


def _dollars(deployment: str, local_path: Path) -> Price:
    """Return a function that gives the price of a request by the deployment's prices."""
    fill_registries(local_path)
    try:
        prices = find_prices(deployment)
    except ValueError as error:
        raise InputError(
            f"subset: model={deployment!r} is not a deployment that HELM knows; see `helm-longctx models`"
        ) from error
    if prices is None:
        raise InputError(
            f"subset: the prices of model={deployment!r} are unknown; leave --model out to count tokens"
        )

    def price(task: Task, length: int | None) -> float:
        usage = Usage(input_tokens=length or 0, output_tokens=task.output_tokens(Settings(length)))
        return prices.dollars(usage) or 0.0

    return price


def _print(proposal: Proposal, dollars: Price | None) -> None:
    lengths: dict[tuple[str, str], list[str]] = {}
    for row, length, share in proposal.selection():
        lengths.setdefault((row.title, f"{share:.0%}"), []).append(
            "" if length is None else length_label(length)
        )
    rows = [(title, questions, ", ".join(labels)) for (title, questions), labels in lengths.items()]
    print_table(
        text_table(f"A part of {proposal.benchmark.title}", ("part", "questions", "lengths"), rows)
    )
    unit = proposal.benchmark.axis.unit if proposal.benchmark.axis else "tokens"
    for name, price in ((unit, tokens), ("dollars", dollars)):
        if price:
            part = proposal.cost(price)
            whole = proposal.cost(price, whole=True)
            print(f"Price: {part:,.0f} of {whole:,.0f} {name} ({part / whole:.1%})")
    for name, found in proposal.checks.items():
        interval = f"{found.rho:.3f} ({range_text(found.low, found.high, '{:.3f}'.format)})"
        print(
            f"Agreement with the ranking by {name}: {interval}, on {found.n} models that the search did not use"
        )
