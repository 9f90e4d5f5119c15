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
    count,
    decimals,
    in_brackets,
    p_sentence,
    range_text,
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
from helm_longctx.runs.scores import InstanceScore
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
    instruct = {
        name for name, model in board.benchmark.models().items() if model.in_figures
    }
    for length in dict.fromkeys(row.length for row in board.benchmark.correlations()):
        section = _task_section(board, length, instruct)
        if section is not None:
            sections.append(section)
    return sections


@for_each_length
def _sections_of_all(board: Board, length: int | None) -> Section | None:
    return _task_section(board, length)


def _task_section(
    board: Board, length: int | None, instruct: Collection[str] = ()
) -> Section | None:
    """Return the section of a length with enough models.

    Args:
        instruct: the published models that count besides the user's own; empty for all.
    """
    columns = board.columns_at(length)
    # A category with one task has that task's scores.
    tasks = [
        task
        for part in columns
        if len(of := board.tasks_of(part, length)) > 1
        for task in of
    ]
    parts = [
        OVERALL,
        *columns,
        *(task for task in dict.fromkeys(tasks) if task not in board.columns),
    ]
    scores: dict[ShownModel, dict[str, float]] = {}
    results_of = {part: board.scores_of(part, length) for part in parts}
    # A model without understanding is the worst everywhere, so it would raise all correlations.
    for model in board.competitors:
        is_left_out = model in board.published and short_name(model) not in instruct
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
    found = correlate_pairs(
        {
            part: [values.get(part, math.nan) for values in scores.values()]
            for part in parts
        }
    )
    choice = f"{label(length)}, instruction-tuned" if instruct else label(length)
    ending = "-instruct" if instruct else ""
    name = f"tasks-{board.file_name}-{label(length)}".rstrip("-") + ending
    figures = [
        _heat_map(board, parts, found, name),
        _draw_points(board, parts, scores, found, name),
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
    found: _Correlations,
    name: str,
) -> Figure:
    rows: list[dict[str, Any]] = [
        {"model": show_model(model), **{part: each.get(part) for part in parts}}
        for model, each in scores.items()
    ]
    rows += [
        {
            "row": one,
            "column": other,
            "label": f"rho = {decimals(each.rho)}, {p_sentence(each.p_value)}, n = {each.n}",
        }
        for (one, other), each in found.items()
        if not math.isnan(each.rho)
    ]
    about = "Each point is a model. Choose the two parts below the plot; the correlation is Spearman's."
    spec = scatter({part: board.titles[part] for part in parts}, parts[1], parts[2])
    return Figure(f"{name}-scatter", "Any part against any other", about, spec, rows)


def _heat_map(
    board: Board, parts: Sequence[str], found: _Correlations, name: str
) -> Figure:
    rows = [
        {
            **{
                "row": board.titles[one],
                "column": board.titles[other],
                "rho": round(each.rho, 4),
            },
            **{
                "p": float(f"{each.p_value:.3g}"),
                "low": round(each.low, 3),
                "high": round(each.high, 3),
                "n": each.n,
            },
        }
        for (one, other), each in found.items()
        if not math.isnan(each.rho)
    ]
    about = (
        "Spearman's rank correlation between the scores of models in two parts of the benchmark. Parts with a high"
        " correlation rank models alike."
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
    board: Board, part: str, length: int | None
) -> list[_ModelScore]:
    """Return the scores of a part whose models have properties, the best first, without floors."""
    models = board.benchmark.models()
    found = (
        (result, models.get(show_model(result.model)))
        for result in board.competing(length, part)
    )
    return [
        _ModelScore(result, properties)
        for result, properties in found
        if properties and result.is_published
    ]


UNKNOWN = "unknown"

_ABOUT_MODELS = (
    "What the publication says about its models, beside their published scores. The window is the training length or,"
    " if that is unknown, the claimed context window. Models of one family are similar, so none of this shows what a"
    " property causes. Your own models are not here, because the publication does not describe them."
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
        found = row.properties
        window = number_cell(found.window, count) if found.window else unknown
        size = Cell(found.parameters, found.active) if found.parameters else unknown
        rest = [
            *(
                texts[each]
                for each in ("architecture", "positions", "training", "family")
            ),
            found.source,
        ]
        rows.append(
            [
                Cell(show_model(row.result.model)),
                score_cell(row.result),
                window,
                size,
                *map(Cell, rest),
            ]
        )
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
    parts = [
        each
        for each in board.parts_at(length)
        if _find_model_scores(board, each, length)
    ]
    rows = [
        {
            "model": show_model(row.result.model),
            "window": row.properties.window,
            "parameters": row.properties.active,
            **row.texts,
            **{
                each: round(result.interval.mean, 6)
                for each in parts
                if (result := board.score(row.result.model, each, length))
            },
        }
        for row in scores
    ]
    about = (
        "Each point is a model. Choose the axes, and which models are shown, below the plot. Both properties have"
        " logarithmic axes; models whose property is unknown have no point. Colours show how positions are encoded."
    )
    spec = property_scatter(
        {"window": "window in tokens", "parameters": "billions of active parameters"},
        {each: board.titles[each] for each in parts},
        part,
        {
            field: sorted({str(row[field]) for row in rows})
            for field in ("positions", "architecture", "family", "training")
        },
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
        found = [
            spearman([math.nan if value is None else value for value in values], means)
            for values in (
                [row.properties.window for row in models],
                [row.properties.active for row in models],
            )
        ]
        if max(each.n for each in found) >= _FEWEST_MODELS:
            cells = [
                cell
                for each in found
                for cell in (rho_cell(each), number_cell(each.n, count))
            ]
            rows.append([Cell(group), *cells])
    about = (
        f"Rank correlations over models, by training, size and family, for at least {_FEWEST_MODELS} models. The"
        " p-values in the tooltips are not adjusted for the number of groups."
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
    answers: Mapping[ShownModel, Sequence[InstanceScore]]

    def over_answers(self, one: str, other: str) -> Correlation:
        """Correlate two metrics over answers. The interval counts all answers to a question or book as one."""
        rows = [answer for answers in self.answers.values() for answer in answers]
        first, second = (
            [row.values[metric] for row in rows] for metric in (one, other)
        )
        return spearman(first, second, len({row.group for row in rows}))

    def over_models(self, one: str, other: str) -> Correlation:
        """Correlate the models' means of two metrics."""
        first, second = (
            [
                fmean(row.values[metric] for row in rows)
                for rows in self.answers.values()
            ]
            for metric in (one, other)
        )
        return spearman(first, second)


def _judged_answers(
    board: Board, task: Task, length: int | None, shares: set[str]
) -> _JudgedAnswers | None:
    rows: dict[ShownModel, list[InstanceScore]] = defaultdict(list)
    for model, result in board.scores_of(task.name, length).items():
        if not result.is_published and not board.is_floor(model):
            rows[model] += result.answers
    answers = [row.values for each in rows.values() for row in each]
    values = {
        name: {answer[name] for answer in answers if name in answer}
        for name in shares.intersection(task.metrics)
    }
    # A metric that is the same for all answers has no correlation.
    values = {name: found for name, found in values.items() if len(found) > 1}
    # The judged metric is the task's score, if a judge gives that.
    judged = next(
        (
            name
            for name in (*task.headline, *task.metrics)
            if read_statistic(name).is_judged and name in values
        ),
        "",
    )
    others = tuple(
        name
        for name in task.metrics
        if name in values and not read_statistic(name).is_judged
    )
    if not judged or not others:
        return None
    complete = {
        model: [row for row in each if row.values.keys() >= {judged, *others}]
        for model, each in rows.items()
    }
    return _JudgedAnswers(
        task.name,
        judged,
        others,
        {model: each for model, each in complete.items() if each},
    )


_ABOUT_JUDGED = (
    "The same answers of your models, by a judge and by the metrics that need none. A low correlation means that the"
    " other metric says little about what the judge sees, such as ROUGE for long answers (arXiv 2410.02694). It"
    " does not say which of the two is right. Floors are left out."
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
    "Correlations over answers say whether both metrics see the same answers as good; those over models say whether"
    " they rank models alike. Several answers to a question, or about a book, count once in the intervals."
)


@for_each_length
def judged_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length at which answers have a judged score and another metric."""
    shares = {
        metric.name for metric in board.benchmark.metrics if metric.range == (0.0, 1.0)
    }
    found = [
        each
        for task in board.benchmark.tasks
        if (each := _judged_answers(board, task, length, shares))
    ]
    if not found:
        return None
    name = f"judged-{board.file_name}-{label(length)}".rstrip("-")
    titles = {metric.name: metric.title for metric in board.benchmark.metrics}
    figures = [_judged_plot(board, each, titles, name) for each in found]
    rows = [
        [
            *map(Cell, names),
            rho_cell(answers),
            number_cell(answers.n, count),
            rho_cell(models),
            number_cell(models.n, count),
        ]
        for each in found
        for other in each.others
        for names in [(board.titles[each.task], titles[each.metric], titles[other])]
        for answers, models in [
            (
                each.over_answers(each.metric, other),
                each.over_models(each.metric, other),
            )
        ]
    ]
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
    board: Board, found: _JudgedAnswers, titles: dict[str, str], name: str
) -> Figure:
    metrics = [found.metric, *found.others]
    rows: list[dict[str, Any]] = [
        {
            **{"model": short_name(model), "instance": answer.instance},
            **{metric: round(answer.values[metric], 4) for metric in metrics},
        }
        for model, answers in found.answers.items()
        for answer in answers
    ]
    rows += [
        {
            "row": one,
            "column": other,
            "label": f"rho = {in_brackets(decimals(each.rho), ends)}, n = {each.n}",
        }
        for one, other in combinations(metrics, 2)
        if not math.isnan((each := found.over_answers(one, other)).rho)
        for ends in [range_text(each.low, each.high, decimals)]
    ]
    rho = {other: found.over_answers(found.metric, other).rho for other in found.others}
    best = max(
        rho, key=lambda other: -math.inf if math.isnan(rho[other]) else rho[other]
    )
    about = (
        f"{board.titles[found.task]}: each point is the answers with these two values; its area is their number. Choose"
        " the metrics below the plot. The correlation is Spearman's."
    )
    spec = scatter(
        {metric: titles[metric] for metric in metrics},
        best,
        found.metric,
        counts="answers",
    )
    return Figure(f"{name}-{found.task}", board.titles[found.task], about, spec, rows)
