"""The pages of rank correlations: of tasks over models, of scores with models' properties, of judges with rules."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from statistics import fmean
from typing import Any, NamedTuple

from helm_longctx.apps.app import for_each_length
from helm_longctx.documents.document import (
    Block,
    Cell,
    Column,
    Figure,
    Section,
    Table,
    number_cell,
    text_columns,
)
from helm_longctx.documents.numbers import (
    DASH,
    add_in_brackets,
    format_count,
    format_decimals,
    format_ends,
    format_p_statement,
)
from helm_longctx.documents.plots import matrix, mirror, property_scatter, scatter
from helm_longctx.results.boards import OVERALL, Board, label, show_model
from helm_longctx.results.cells import rho_cell, score_cell, short_name
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.results.statistics.ranking import (
    Correlation,
    correlate_pairs,
    spearman,
)
from helm_longctx.runs.scores import Score
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.publications import ModelProperties
from helm_longctx.tasks.statistic_names import read_statistic
from helm_longctx.tasks.task import Task

_FEWEST_MODELS = 5

ScoresByShownModel = Mapping[ShownModel, Mapping[str, float]]

_Correlations = Mapping[tuple[str, str], Correlation]


def task_sections(board: Board) -> list[Section]:
    """Return the sections of the lengths with enough models.

    Where the publication prints correlations over instruction-tuned models, these are a choice of their own.
    """
    sections = _sections_of_all(board)
    instruct = set()
    for name, model in board.benchmark.models().items():
        if model.in_figures:
            instruct.add(name)
    for length in dict.fromkeys(row.length for row in board.benchmark.correlations()):
        section = _task_section(board, length, instruct)
        if section is not None:
            sections.append(section)
    return sections


@for_each_length
def _sections_of_all(board: Board, length: int | None) -> Section | None:
    return _task_section(board, length)


def _task_section(
    board: Board,
    length: int | None,
    instruct: Collection[str] = (),
) -> Section | None:
    """Return the section of a length with enough models.

    Args:
        instruct: the published models that count besides the user's own, empty for all.
    """
    columns = board.columns_at(length)
    # A category with one task has that task's scores.
    tasks = []
    for part in columns:
        if len(of := board.tasks_of(part, length)) > 1:
            tasks.extend(of)
    parts = [
        OVERALL,
        *columns,
        *(task for task in dict.fromkeys(tasks) if task not in board.columns),
    ]
    scores: dict[ShownModel, dict[str, float]] = {}
    results_of = {part: board.scores_of(part, length) for part in parts}
    # A model without understanding is the worst everywhere, so it would raise all correlations.
    for model in board.competitors:
        is_left_out = (
            model in board.published_models and short_name(model) not in instruct
        )
        if instruct and is_left_out:
            continue
        values = {}
        for part, results in results_of.items():
            if model in results:
                values[part] = round(results[model].interval.mean, 6)
        if values:
            scores[model] = values
    counts = Counter(chain.from_iterable(scores.values()))
    parts = [part for part in parts if counts[part] >= _FEWEST_MODELS]
    if len(parts) < 3:
        return None
    by_part = {}
    for part in parts:
        by_part[part] = [values.get(part, math.nan) for values in scores.values()]
    correlations = correlate_pairs(by_part)
    choice = f"{label(length)}, instruction-tuned" if instruct else label(length)
    ending = "-instruct" if instruct else ""
    name = f"tasks-{board.file_name}-{label(length)}".rstrip("-") + ending
    figures = [
        _heat_map(board, parts, correlations, name),
        _draw_points(board, parts, scores, correlations, name),
    ]
    about = f"Over {len(scores)} models. Floors are left out."
    if instruct:
        about += " Published models are those of the publication's figures, which are instruction-tuned."
    return Section(
        name, f"Correlations {choice}".strip(), figures, about, choice=choice
    )


def _draw_points(
    board: Board,
    parts: Sequence[str],
    scores: ScoresByShownModel,
    correlations: _Correlations,
    name: str,
) -> Figure:
    rows: list[dict[str, Any]] = []
    for model, by_part in scores.items():
        values = {part: by_part.get(part) for part in parts}
        rows.append({"model": show_model(model), **values})
    for (one, other), correlation in correlations.items():
        if not math.isnan(correlation.rho):
            p_value = format_p_statement(correlation.p_value)
            text = f"rho = {format_decimals(correlation.rho)}, {p_value}, n = {correlation.n}"
            rows.append({"row": one, "column": other, "label": text})
    about = "Each point is a model. Choose the two parts below the plot; the correlation is Spearman's."
    spec = scatter({part: board.titles[part] for part in parts}, parts[1], parts[2])
    return Figure(f"{name}-scatter", "Any part against any other", about, spec, rows)


def _heat_map(
    board: Board,
    parts: Sequence[str],
    correlations: _Correlations,
    name: str,
) -> Figure:
    rows = []
    for (one, other), correlation in correlations.items():
        if not math.isnan(correlation.rho):
            row = {
                "row": board.titles[one],
                "column": board.titles[other],
                "rho": round(correlation.rho, 4),
                "p": float(f"{correlation.p_value:.3g}"),
                "low": round(correlation.low, 3),
                "high": round(correlation.high, 3),
                "n": correlation.n,
            }
            rows.append(row)
    about = (
        "Spearman's rank correlation between the scores of models in two parts of the"
        " benchmark. Parts with a high correlation rank models alike."
    )
    formats = {"rho": ".2f", "low": ".2f", "high": ".2f", "p": ".2~g", "n": None}
    spec = matrix(
        [board.titles[part] for part in parts],
        "rho",
        1.0,
        "format(datum.rho, '.2f')",
        formats,
        ".1f",
    )
    return Figure(
        f"{name}-correlations", "Rank correlations", about, mirror(spec), rows
    )


_LARGE = 10
"""Billions of active parameters above which a model is called large."""


class _ModelScore(NamedTuple):
    """A score and the properties of its model."""

    result: Result
    properties: ModelProperties

    @property
    def texts(self) -> dict[str, str]:
        """The properties that are texts, by the name of the plot's field."""
        return {
            "positions": self.properties.positions or UNKNOWN,
            "architecture": self.properties.architecture or UNKNOWN,
            "family": self.properties.family,
            "training": "instruction-tuned" if self.properties.instruct else "base",
        }


def _find_model_scores(
    board: Board,
    part: str,
    length: int | None,
) -> list[_ModelScore]:
    """Return the scores of a part whose models have properties, the best first, without floors."""
    models = board.benchmark.models()
    scores = []
    for result in board.competing(length, part):
        properties = models.get(show_model(result.model))
        if properties and result.is_published:
            scores.append(_ModelScore(result, properties))
    return scores


UNKNOWN = "unknown"

_ABOUT_MODELS = (
    "What the publication says about its models, beside their published scores. The"
    " window is the training length or, if that is unknown, the claimed context window."
    " Models of one family are similar, so none of this shows what a property causes."
    " Your own models are not here, because the publication does not describe them."
)

_MODEL_HEADS = (
    Column("Model", is_number=False),
    Column("Score"),
    Column(
        "Window",
        "Tokens of the training length or, if that is unknown, of the claimed context window.",
    ),
    Column(
        "Parameters",
        "Billions; of a mixture of experts the active ones, and after the slash all of them.",
    ),
    *text_columns("Architecture"),
    Column("Positions", "How positions are encoded or extrapolated.", is_number=False),
    *text_columns("Training", "Family"),
    Column(
        "Source",
        "The table from which the window and the other properties are.",
        is_number=False,
    ),
)


@for_each_length
def model_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which enough models with properties have a score."""
    part = board.main_part(length)
    scores = _find_model_scores(board, part, length)
    if len(scores) < _FEWEST_MODELS:
        return None
    name = f"models-{board.file_name}-{label(length)}".rstrip("-")
    scatter = _property_plot(board, part, length, scores, name)
    about = "The search finds models by any property, such as YaRN, MoE or base."
    unknown = Cell(DASH, note=UNKNOWN)
    rows = []
    for row in scores:
        texts = row.texts
        properties = row.properties
        window = (
            number_cell(properties.window, format_count)
            if properties.window
            else unknown
        )
        size = unknown
        if properties.parameters:
            size = Cell(properties.parameters, properties.active)
        cells = [
            Cell(show_model(row.result.model)),
            score_cell(row.result),
            window,
            size,
            Cell(texts["architecture"]),
            Cell(texts["positions"]),
            Cell(texts["training"]),
            Cell(texts["family"]),
            Cell(properties.source),
        ]
        rows.append(cells)
    table = Table(f"{name}-table", "Models", _MODEL_HEADS, rows, about, search=True)
    blocks: list[Block] = [scatter, _property_table(scores, name), table]
    title = f"{board.titles[part]} and the models' properties {label(length)}".strip()
    return Section(name, title, blocks, _ABOUT_MODELS, choice=label(length))


def _property_plot(
    board: Board,
    part: str,
    length: int | None,
    scores: Sequence[_ModelScore],
    name: str,
) -> Figure:
    parts = []
    for other in board.parts_at(length):
        if _find_model_scores(board, other, length):
            parts.append(other)
    results = {other: board.scores_of(other, length) for other in parts}
    rows = []
    for score in scores:
        model = score.result.model
        row = {
            "model": show_model(model),
            "window": score.properties.window,
            "parameters": score.properties.active,
            **score.texts,
        }
        for other in parts:
            if result := results[other].get(model):
                row[other] = round(result.interval.mean, 6)
        rows.append(row)
    filters = {}
    for field in ("positions", "architecture", "family", "training"):
        filters[field] = sorted({str(row[field]) for row in rows})
    about = (
        "Each point is a model. Choose the axes, and which models are shown, below the"
        " plot. Both properties have logarithmic axes; models whose property is unknown"
        " have no point. Colours show how positions are encoded."
    )
    spec = property_scatter(
        {"window": "window in tokens", "parameters": "billions of active parameters"},
        {other: board.titles[other] for other in parts},
        part,
        filters,
    )
    return Figure(f"{name}-plot", "Score and claimed window", about, spec, rows)


def _property_table(scores: Sequence[_ModelScore], name: str) -> Table:
    heads = [
        Column("Models", is_number=False),
        Column(
            "Score and window",
            f"Spearman's rank correlation with its {LEVEL_TEXT} interval.",
        ),
        Column("Models with a window"),
        Column(
            "Score and parameters",
            "Spearman's rank correlation with the active parameters.",
        ),
        Column("Models with parameters"),
    ]
    groups = {
        "All models": [*scores],
        "Instruction-tuned": [row for row in scores if row.properties.instruct],
        "Base": [row for row in scores if not row.properties.instruct],
        f"Up to {_LARGE} billion parameters": [
            row for row in scores if 0 < (row.properties.active or 0) <= _LARGE
        ],
        f"More than {_LARGE} billion parameters": [
            row for row in scores if (row.properties.active or 0) > _LARGE
        ],
    }
    for family in dict.fromkeys(row.properties.family for row in scores):
        groups[family] = [row for row in scores if row.properties.family == family]
    rows = []
    for group, models in groups.items():
        means = [row.result.interval.mean for row in models]
        cells = [Cell(group)]
        most = 0
        for values in (
            [row.properties.window for row in models],
            [row.properties.active for row in models],
        ):
            numbers = [math.nan if value is None else value for value in values]
            correlation = spearman(numbers, means)
            most = max(most, correlation.n)
            cells += [rho_cell(correlation), number_cell(correlation.n, format_count)]
        if most >= _FEWEST_MODELS:
            rows.append(cells)
    about = (
        "Rank correlations over models, by training, size and family, for at least"
        f" {_FEWEST_MODELS} models. The p-values in the tooltips are not adjusted for"
        " the number of groups."
    )
    return Table(
        f"{name}-correlations",
        "Does a larger window or a larger model score higher?",
        heads,
        rows,
        about,
    )


@dataclass(frozen=True)
class _JudgedAnswers:
    """The answers of all of the user's models to a judged task at a length, without floors.

    Args:
        others: the other metrics of a share, of which each differs between answers.
        answers: by model, those that have all these metrics.
    """

    task: str
    metric: str
    others: tuple[str, ...]
    answers: Mapping[ShownModel, Sequence[Score]]

    def over_answers(self, one: str, other: str) -> Correlation:
        """Correlate two metrics over answers. The interval counts all answers to a question or book as one."""
        rows = list(chain.from_iterable(self.answers.values()))
        first = [row.values[one] for row in rows]
        second = [row.values[other] for row in rows]
        return spearman(first, second, len({row.group for row in rows}))

    def over_models(self, one: str, other: str) -> Correlation:
        """Correlate the models' means of two metrics."""
        first = []
        second = []
        for rows in self.answers.values():
            first.append(fmean(row.values[one] for row in rows))
            second.append(fmean(row.values[other] for row in rows))
        return spearman(first, second)


def _judged_answers(
    board: Board,
    task: Task,
    length: int | None,
    shares: set[str],
) -> _JudgedAnswers | None:
    rows: dict[ShownModel, list[Score]] = defaultdict(list)
    for model, result in board.scores_of(task.name, length).items():
        if not result.is_published and not board.is_floor(model):
            rows[model] += result.answers
    values: dict[str, set[float]] = defaultdict(set)
    for answer in chain.from_iterable(rows.values()):
        for name in shares.intersection(answer.values):
            values[name].add(answer.values[name])
    # A metric that is the same for all answers has no correlation.
    metrics = []
    for name in task.metrics:
        if len(values[name]) > 1:
            metrics.append(name)
    judges = [name for name in metrics if read_statistic(name).is_judged]
    others = tuple(name for name in metrics if name not in judges)
    if not judges or not others:
        return None
    # The judged metric is the task's score, if a judge gives that.
    headline = [name for name in task.headline if name in judges]
    judged = [*headline, *judges][0]
    complete = {}
    for model, of_model in rows.items():
        answers = []
        for row in of_model:
            if row.values.keys() >= {judged, *others}:
                answers.append(row)
        if answers:
            complete[model] = answers
    return _JudgedAnswers(task.name, judged, others, complete)


_ABOUT_JUDGED = (
    "The same answers of your models, by a judge and by the metrics that need none. A"
    " low correlation means that the other metric says little about what the judge"
    " sees, such as ROUGE for long answers (arXiv 2410.02694). It does not say which of"
    " the two is right. Floors are left out."
)


_JUDGED_HEADS = [
    *text_columns("Task", "By the judge", "Other metric"),
    Column(
        "Over answers",
        f"Spearman's rank correlation over all answers, with its {LEVEL_TEXT} interval.",
    ),
    Column("Answers", "Number of answers with both metrics."),
    Column(
        "Over models",
        f"Spearman's rank correlation over the models' means, with its {LEVEL_TEXT} interval.",
    ),
    Column("Models"),
]

_ABOUT_TABLE = (
    "Correlations over answers say whether both metrics see the same answers as good;"
    " those over models say whether they rank models alike. Several answers to a"
    " question, or about a book, count once in the intervals."
)


@for_each_length
def judged_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which answers have a judged score and another metric."""
    shares = set()
    for metric in board.benchmark.metrics:
        if metric.range == (0.0, 1.0):
            shares.add(metric.name)
    judged_tasks = []
    for task in board.benchmark.tasks:
        if judged := _judged_answers(board, task, length, shares):
            judged_tasks.append(judged)
    if not judged_tasks:
        return None
    name = f"judged-{board.file_name}-{label(length)}".rstrip("-")
    titles = {metric.name: metric.title for metric in board.benchmark.metrics}
    figures = [_judged_plot(board, judged, titles, name) for judged in judged_tasks]
    rows = []
    for judged in judged_tasks:
        for other in judged.others:
            answers = judged.over_answers(judged.metric, other)
            models = judged.over_models(judged.metric, other)
            row = [
                Cell(board.titles[judged.task]),
                Cell(titles[judged.metric]),
                Cell(titles[other]),
                rho_cell(answers),
                number_cell(answers.n, format_count),
                rho_cell(models),
                number_cell(models.n, format_count),
            ]
            rows.append(row)
    table = Table(
        f"{name}-table",
        "Rank correlations with the judge",
        _JUDGED_HEADS,
        rows,
        _ABOUT_TABLE,
        search=True,
    )
    title = f"The same answers by two metrics {label(length)}".strip()
    return Section(name, title, [table, *figures], _ABOUT_JUDGED, choice=label(length))


def _judged_plot(
    board: Board,
    judged: _JudgedAnswers,
    titles: dict[str, str],
    name: str,
) -> Figure:
    metrics = [judged.metric, *judged.others]
    rows: list[dict[str, Any]] = []
    for model, answers in judged.answers.items():
        for answer in answers:
            values = {}
            for metric in metrics:
                values[metric] = round(answer.values[metric], 4)
            row = {"model": short_name(model), "instance": answer.instance, **values}
            rows.append(row)
    for one, other in combinations(metrics, 2):
        correlation = judged.over_answers(one, other)
        if not math.isnan(correlation.rho):
            ends = format_ends(correlation, format_decimals)
            rho = add_in_brackets(format_decimals(correlation.rho), ends)
            text = f"rho = {rho}, n = {correlation.n}"
            rows.append({"row": one, "column": other, "label": text})
    rhos = {}
    for other in judged.others:
        rho_with_judge = judged.over_answers(judged.metric, other).rho
        rhos[other] = -math.inf if math.isnan(rho_with_judge) else rho_with_judge
    best = max(rhos, key=rhos.__getitem__)
    about = (
        f"{board.titles[judged.task]}: each point is the answers with these two values;"
        " its area is their number. Choose the metrics below the plot. The correlation"
        " is Spearman's."
    )
    spec = scatter(
        {metric: titles[metric] for metric in metrics},
        best,
        judged.metric,
        counts="answers",
    )
    return Figure(f"{name}-{judged.task}", board.titles[judged.task], about, spec, rows)
