"""`subset`: find a cheaper part of a benchmark that ranks models as the whole does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Annotated

import numpy as np
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
from helm_longctx.documents.numbers import format_ends
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import InputError
from helm_longctx.models.apis.prices import find_prices
from helm_longctx.results.boards import category_results, make_boards
from helm_longctx.results.reading import Result, published_results, read_results
from helm_longctx.results.statistics.intervals import Floats, normal_quantile
from helm_longctx.results.statistics.ranking import Correlation, spearman
from helm_longctx.results.suite import suite_folder
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.answer import Usage
from helm_longctx.tasks.benchmark import Benchmark, Category
from helm_longctx.tasks.lengths import length_label, sort_lengths
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import Settings, Task
from helm_longctx.writing import write_json, write_output

_SHARES = (1.0, 0.5, 0.25, 0.1, 0.05)
"""Shares of a task's questions that are tried."""

_FEWEST = 10
"""Smallest number of questions that a task keeps."""

_DRAWS = 30
"""Number of draws of half of the models, and of questions. A subset must agree in each draw. With fewer draws, subsets
would be chosen that are good only for these models."""

MOST_SETS = 4096
"""Largest number of sets of rows, and of columns, that are tried: all sets of up to 12."""

_BLOCK = 4096
"""Number of subsets that are tried at once. It limits the memory."""

_Choices = NDArray[np.bool_]


@dataclass(frozen=True)
class CellScores:
    """Models' scores in all cells of a benchmark.

    Args:
        table: shape (models, rows, columns): rows are tasks or categories, columns are lengths. No score is missing.
        questions: shape (rows, columns): number of different questions of each score.
        price: shape (rows, columns): the price of each cell, in any unit.
    """

    table: Floats
    questions: Floats
    price: Floats

    def of_models(self, models: NDArray[np.intp]) -> CellScores:
        """Return the scores of some of the models."""
        return CellScores(self.table[models], self.questions, self.price)

    def question_counts(self, share: float) -> Floats:
        """Return the number of questions in a share of each cell's questions: shape (rows, columns)."""
        return np.minimum(self.questions, np.maximum(self.questions * share, _FEWEST))

    def noise(self, share: float) -> Floats:
        """Return the standard deviation of each cell's score if only a share of its questions is asked.

        It is the variance of right and wrong answers. Continuous scores vary less.
        """
        spread = np.maximum(self.table * (1 - self.table), 0)
        return np.asarray(
            np.sqrt(spread * (1 / self.question_counts(share) - 1 / self.questions))
        )

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


def find_subset(
    scores: CellScores,
    wish: float,
    most: float,
    seed: int = 0,
) -> Subset | None:
    """Return the cheapest rows, columns and share of questions with an agreement, or None if there is no such subset.

    All combinations are tried, up to `MOST_SETS` sets of rows and of columns. Agreement is Spearman's correlation of
    the mean over the subset with the mean over all cells. It must be reached in `_DRAWS` draws of half of the models,
    with the noise of fewer questions.

    Args:
        wish: the lowest agreement.
        most: the highest price, as a share of the whole.
    """
    best: Subset | None = None
    for share in _SHARES:
        # All shares have the same draws, so that they differ only in their noise.
        random = np.random.default_rng(seed)
        draws = [_draw(scores, share, random) for _ in range(_DRAWS)]
        cost = scores.cost(share) / scores.price.sum()
        of_rows, of_columns = map(_sets, cost.shape)
        # All combinations of sets of rows and sets of columns, in blocks.
        count = len(of_rows) * len(of_columns)
        for start in range(0, count, _BLOCK):
            numbers = np.arange(start, min(start + _BLOCK, count))
            rows = of_rows[numbers // len(of_columns)]
            columns = of_columns[numbers % len(of_columns)]
            price = np.einsum("sr,rc,sc->s", rows, cost, columns)
            cheap = np.flatnonzero(price < best.price if best else price <= most)
            agreements = _agreements(draws, rows[cheap], columns[cheap], wish)
            for index, least in zip(cheap, agreements.tolist(), strict=True):
                if least >= wish and (best is None or price[index] < best.price):
                    best = Subset(
                        _indices(rows[index]),
                        _indices(columns[index]),
                        share,
                        float(price[index]),
                        least,
                    )
    return best


def agreement(
    scores: CellScores,
    subset: Subset,
    reference: Floats,
    seed: int = 1,
) -> Correlation:
    """Correlate a subset's means with a reference over the same models, with its interval.

    The result is the mean over `_DRAWS` draws of the questions. The interval is for the choice of models.

    Args:
        reference: shape (models,). NaN for a missing value.
    """
    # The default seed differs from the seed of `find_subset`, whose draws were used to choose the subset.
    random = np.random.default_rng(seed)
    noise = scores.noise(subset.share)
    correlations = []
    for _ in range(_DRAWS):
        table = scores.table + noise * random.standard_normal(noise.shape)
        chosen = table[:, subset.rows][:, :, subset.columns]
        correlations.append(spearman(chosen.mean(axis=(1, 2)), reference))
    rows = []
    for drawn in correlations:
        rows.append((drawn.rho, drawn.p_value, drawn.low, drawn.high))
    rho, p_value, low, high = (float(mean) for mean in np.mean(rows, axis=0))
    return Correlation(rho, p_value, low, high, correlations[0].n)


def _indices(chosen: _Choices) -> tuple[int, ...]:
    return tuple(int(index) for index in np.flatnonzero(chosen))


def _agreements(
    draws: list[tuple[Floats, Floats]],
    rows: _Choices,
    columns: _Choices,
    wish: float,
) -> Floats:
    """Return the least agreement of each subset in the draws: 0 for one whose means do not differ.

    A subset that agrees less than wished in a draw is not computed for the further ones.
    """
    from scipy.stats import rankdata

    if not len(rows):
        return np.zeros(0)
    # Each subset has a weight for each cell, so that one product of matrices gives the means of all subsets.
    weights = np.einsum("sr,sc->rcs", rows * 1.0, columns * 1.0)
    weights = weights.reshape(-1, len(rows)) / weights.sum(axis=(0, 1))
    least = np.ones(len(rows))
    left = np.arange(len(rows))
    for part, full in draws:
        if not len(left):
            break
        # Spearman's correlation of each column. `spearmanr` would correlate all pairs of up to 4,096 columns.
        ranks = rankdata(part @ weights[:, left], axis=0)
        expected = rankdata(full)
        ranks = ranks - ranks.mean(axis=0)
        expected = expected - expected.mean()
        scale = np.sqrt((ranks**2).sum(axis=0) * (expected**2).sum())
        correlations = np.divide(
            expected @ ranks, scale, out=np.zeros(len(left)), where=scale > 0
        )
        least[left] = np.minimum(least[left], correlations)
        left = left[least[left] >= wish]
    return least


def _draw(
    scores: CellScores,
    share: float,
    random: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return some models' scores with the noise of fewer questions, one row for each, and their overall means."""
    # Two models always correlate perfectly, so a draw has at least three.
    models = random.choice(
        len(scores.table), max(3, len(scores.table) // 2), replace=False
    )
    part = scores.of_models(np.sort(models))
    noise = part.noise(share)
    table = part.table + noise * random.standard_normal(noise.shape)
    # The reference has no noise, because few questions should repeat the published ranking.
    return table.reshape(len(table), -1), part.table.mean(axis=(1, 2))


def _sets(size: int) -> _Choices:
    """Return all non-empty sets of `size` things. If there are too many, the small ones (they are cheap) and the whole."""
    # The whole set is always included, because only it is certain to agree.
    by_size = chain.from_iterable(
        combinations(range(size), count) for count in range(1, size)
    )
    chosen = [*islice(by_size, MOST_SETS - 1), tuple(range(size))]
    sets = np.zeros((len(chosen), size), dtype=bool)
    for row, indices in zip(sets, chosen, strict=True):
        row[list(indices)] = True
    return sets


FEWEST_MODELS = 16
"""Smallest number of models with all scores: eight to find a subset and eight to check it. With four, an agreement of
0.99 on these was one of 0.71 to 0.85 on others."""

_Price = Callable[[Task, int | None], float]
"""(task, length) → the price of a request."""


@dataclass(frozen=True)
class SubsetPart:
    """A part that a subset can contain: a category, or one of its tasks."""

    entry: str
    title: str
    category: Category
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class _Proposal:
    """A subset with its agreement.

    Args:
        checks: its correlation with several reference rankings, by their names, on the models that the search did not
            use. The first ranking is by the mean of everything.
    """

    subset: Subset | None
    benchmark: Benchmark
    rows: tuple[SubsetPart, ...]
    lengths: tuple[int | None, ...]
    scores: CellScores
    checks: Mapping[str, Correlation]

    @property
    def agreement(self) -> Correlation | None:
        """The agreement with the mean of everything, on the models that the search did not use."""
        return next(iter(self.checks.values()), None)

    def selection(self) -> Iterator[tuple[SubsetPart, int | None, float]]:
        """Yield the rows and lengths of the subset, and the share of the questions that is asked."""
        if self.subset:
            shares = (
                self.scores.question_counts(self.subset.share) / self.scores.questions
            )
            for row in self.subset.rows:
                for column in self.subset.columns:
                    yield (
                        self.rows[row],
                        self.lengths[column],
                        float(shares[row, column]),
                    )

    def cost(self, price: _Price, whole: bool = False) -> float:
        """Return the price of the subset, or of everything, in the unit of `price`."""
        cells = list(self.selection())
        if whole:
            cells = []
            for row in self.rows:
                for length in self.lengths:
                    cells.append((row, length, 1.0))
        prices = []
        for row, length, share in cells:
            prices.append(share * _price_of(row.tasks, length, price))
        return sum(prices)

    def conf(self) -> str:
        """Return the file with its run entries, for `helm-run --conf-paths`."""
        about = f"A part of {self.benchmark.title}, from `helm-longctx subset`. Name the models: --models-to-run …"
        entries = []
        for row, length, share in self.selection():
            tasks = _find_tasks(row.tasks, length)
            samples = {}
            for task in tasks:
                # It is rounded first, because a share of a number can exceed a whole number in the last digit.
                count = round(task.sample(Settings(length)) * share, 6)
                samples[task.name] = math.ceil(count)
            # A whole category is one entry, if all its tasks are asked equally many questions.
            whole = row.tasks == row.category.tasks and len(set(samples.values())) == 1
            for task in tasks[:1] if whole else tasks:
                arguments = []
                if not whole and len(row.category.tasks) > 1:
                    arguments.append(f"{self.benchmark.task_argument}={task.argument}")
                if length is not None:
                    arguments.append(f"length={length_label(length)}")
                if share < 1:
                    arguments.append(f"num_samples={samples[task.name]}")
                entries.append(f"{row.entry}:{','.join([*arguments, 'model=text'])}")
        return entry_file(about, entries)


def _propose(
    benchmark: Benchmark,
    results: Iterable[Result],
    wish: float,
    most: float,
    price: _Price,
    seed: int = 0,
) -> _Proposal:
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
            f"subset: benchmark={benchmark.name!r} has {len(table)} models with a score"
            f" in every task and length. These are not enough models: {FEWEST_MODELS}"
            " are needed; add runs with --suite"
        )
    questions = np.zeros((len(rows), len(lengths)))
    prices = np.zeros(questions.shape)
    for index, row in enumerate(rows):
        for column, length in enumerate(lengths):
            tasks = _find_tasks(row.tasks, length)
            questions[index, column] = sum(
                task.sample(Settings(length)) for task in tasks
            )
            prices[index, column] = _price_of(row.tasks, length, price)
    scores = CellScores(table, questions, prices)
    subset, rest = search_half(scores, wish, most, seed)
    # The rankings that a subset should keep.
    flat = rest.table.reshape(len(rest.table), -1)
    references = {"the mean of everything": flat.mean(axis=1)}
    for column, length in enumerate(lengths):
        if length is not None:
            of_length = rest.table[:, :, column]
            references[f"the mean at {length_label(length)}"] = of_length.mean(axis=1)
    checks = {}
    if subset:
        for name, values in references.items():
            checks[name] = agreement(rest, subset, values)
    return _Proposal(subset, benchmark, rows, lengths, scores, checks)


def search_half(
    scores: CellScores,
    wish: float,
    most: float,
    seed: int = 0,
) -> tuple[Subset | None, CellScores]:
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
    subset = find_subset(
        scores.of_models(one), _raise_wish(wish, len(other)), most, seed
    )
    return subset, scores.of_models(other)


def _raise_wish(wish: float, models: int) -> float:
    """Return the rank correlation whose interval has a lower end of about the wish; see `spearman`."""
    if wish >= 1:
        return wish
    error = math.sqrt((1 + wish**2 / 2) / (models - 3))
    return math.tanh(math.atanh(wish) + normal_quantile() * error)


def tokens(task: Task, length: int | None) -> float:
    """Return the tokens of a request: a prompt of the whole length, and the output budget."""
    return (length or 0) + task.output_tokens(Settings(length))


def _arrange(
    benchmark: Benchmark,
    results: Iterable[Result],
) -> tuple[tuple[SubsetPart, ...], tuple[int | None, ...], Floats]:
    """Return the scores of models that have all of them, by tasks if all results have tasks, else by categories."""
    own = []
    for result in results:
        if result.benchmark == benchmark.name:
            own.append(result)
    own = [result for result in own if result.context == "full"]
    by_task = all(result.task for result in own)
    cells = own if by_task else category_results(own, benchmark)
    rows = []
    for entry, category in benchmark.entries.items():
        if not category.averaged:
            continue
        if by_task:
            for task in category.tasks:
                rows.append(SubsetPart(entry, task.title, category, (task,)))
        else:
            rows.append(SubsetPart(entry, category.title, category, category.tasks))
    keys = []
    for row in rows:
        keys.append((row.entry, row.tasks[0].name if by_task else ""))
    scores = {}
    models: dict[ShownModel, None] = {}
    used = set()
    for cell in cells:
        key = (cell.entry, cell.task)
        models[cell.model] = None
        scores[cell.model, key, cell.length] = cell.interval.mean
        if key in keys:
            used.add(cell.length)
    lengths = sort_lengths(used)
    table = np.full((len(models), len(keys), len(lengths)), math.nan)
    for index, model in enumerate(models):
        for row_index, key in enumerate(keys):
            for column, length in enumerate(lengths):
                table[index, row_index, column] = scores.get(
                    (model, key, length), math.nan
                )
    # Means over different cells could not be ranked.
    if table.size:
        complete = table[~np.isnan(table).any(axis=(1, 2))]
    else:
        complete = table
    return tuple(rows), tuple(lengths), complete


def _find_tasks(tasks: Iterable[Task], length: int | None) -> list[Task]:
    return [task for task in tasks if task.exists_at(length)]


def _price_of(tasks: Iterable[Task], length: int | None, price: _Price) -> float:
    settings = Settings(length)
    total = 0.0
    for task in _find_tasks(tasks, length):
        total += (
            task.sample(settings) * task.depths * task.repeats * price(task, length)
        )
    return total


def subset(
    benchmark: Annotated[
        str, typer.Argument(help="Benchmark, e.g. helmet or lv_eval.")
    ],
    suite: Annotated[
        str | None,
        typer.Option(
            help="Also use the models of this suite.", autocompletion=complete_suite
        ),
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
        float,
        typer.Option(
            min=0.001,
            max=1,
            help="Maximum price, as a share of the whole.",
        ),
    ] = 0.25,
    to: Annotated[Path, typer.Option(help="File of run entries to write.")] = Path(
        "subset.conf"
    ),
    model: Annotated[
        str | None,
        typer.Option(help="Deployment whose prices are used, e.g. openai/gpt-6-luna."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the split of the models.")
    ] = 0,
    json_path: JsonPath = None,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Find the cheapest tasks, lengths and number of questions that keep the ranking of models.

    The models are all models of the published results and of a suite that have all scores. The search uses one half of
    them, and the check the other half. The price is for prompts of full length and outputs, without judges. The exit
    status is 1 if there is no such subset.
    """
    chosen = find_benchmark(benchmark, "subset", "benchmark")
    check_folder("to", to)
    check_folder("json", json_path)
    dollars = _dollars(model, local_path) if model else None
    own: Sequence[Result] = ()
    if suite:
        own = read_results(
            suite_folder(output_path, suite), [chosen], keep_answers=False
        )
    boards = make_boards([*own, *published_results(chosen)], [chosen])
    results: list[Result] = []
    for board in boards:
        results += board.tasks
        # Some publications have only the scores of categories.
        results += [category for category in board.categories if not category.parts]
    proposal = _propose(chosen, results, agreement, price, dollars or tokens, seed)
    if json_path:
        parts = []
        for row, length, share in proposal.selection():
            part = {
                "entry": row.entry,
                "title": row.title,
                "length": length,
                "questions": share,
            }
            parts.append(part)
        content = {
            "parts": parts,
            "price": proposal.subset.price if proposal.subset else None,
            "agreement": {name: vars(check) for name, check in proposal.checks.items()},
        }
        write_json(json_path, content)
    if proposal.subset is None or proposal.agreement is None:
        print(
            f"No subset of {chosen.title} for at most {price:.0%} of the price keeps an"
            f" agreement of {agreement:g}."
        )
        raise typer.Exit(1)
    _print(proposal, dollars)
    # NaN, without an interval, must not pass, so the condition is not `<`.
    if not proposal.agreement.low >= agreement:
        print(
            "No subset is proposed: the agreement of this one can be as low as"
            f" {proposal.agreement.low:.3f} on models that the search did not use."
        )
        raise typer.Exit(1)
    write_output(to, proposal.conf().encode())
    print(f"Run it: helm-longctx run --conf-path {to} --model …")


def _dollars(deployment: str, local_path: Path) -> _Price:
    """Return a function that gives the price of a request by the deployment's prices."""
    fill_registries(local_path)
    try:
        prices = find_prices(deployment)
    except ValueError as error:
        raise InputError(
            f"subset: model={deployment!r} is not a deployment that HELM knows; see"
            " `helm-longctx models`"
        ) from error
    if prices is None:
        raise InputError(
            f"subset: the prices of model={deployment!r} are unknown; leave --model out"
            " to count tokens"
        )

    def price(task: Task, length: int | None) -> float:
        usage = Usage(
            input_tokens=length or 0, output_tokens=task.output_tokens(Settings(length))
        )
        return prices.dollars(usage) or 0.0

    return price


def _print(proposal: _Proposal, dollars: _Price | None) -> None:
    lengths: dict[tuple[str, str], list[str]] = {}
    for row, length, share in proposal.selection():
        key = (row.title, f"{share:.0%}")
        lengths.setdefault(key, []).append(
            "" if length is None else length_label(length)
        )
    rows = []
    for (title, questions), labels in lengths.items():
        rows.append((title, questions, ", ".join(labels)))
    title = f"A part of {proposal.benchmark.title}"
    print_table(text_table(title, ("part", "questions", "lengths"), rows))
    unit = proposal.benchmark.axis.unit if proposal.benchmark.axis else "tokens"
    for name, price in ((unit, tokens), ("dollars", dollars)):
        if price:
            part = proposal.cost(price)
            whole = proposal.cost(price, whole=True)
            print(f"Price: {part:,.0f} of {whole:,.0f} {name} ({part / whole:.1%})")
    for name, check in proposal.checks.items():
        interval = f"{check.rho:.3f} ({format_ends(check, '{:.3f}'.format)})"
        print(
            f"Agreement with the ranking by {name}: {interval}, on {check.n} models"
            " that the search did not use"
        )
