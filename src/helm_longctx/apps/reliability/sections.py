"""The pages that say what cut answers and known errors can change."""

from collections import defaultdict

from helm_longctx.documents.document import (
    Cell,
    Column,
    Section,
    Table,
    number_cell,
    text_columns,
)
from helm_longctx.documents.numbers import format_count
from helm_longctx.results.boards import Board, label
from helm_longctx.results.cells import (
    find_wide_bounds,
    model_cell,
    own_scores,
    score_cell,
    without_errors,
)
from helm_longctx.results.comparison import by_instance, mean_of
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.level import LEVEL_TEXT

_CUT = (
    f"Scores that could be outside their {LEVEL_TEXT} interval if the token limit had"
    " not cut answers. `helm-longctx run --retry-cut 4x` asks only for these answers"
    " again, with a larger budget."
)
_ERRATA = (
    "Scores are as published, with all questions. Beside them are the scores without"
    " the questions whose data is known to be wrong."
)


def scrutiny_sections(board: Board) -> list[Section]:
    """Return a section about cut answers and one about known errors, if there are such scores."""
    sections = []
    rows = []
    for score in own_scores(board):
        cut = find_wide_bounds(score)
        if cut:
            rows.append(
                [
                    *_about(board, score),
                    score_cell(score),
                    *map(number_cell, (cut.share, cut.wrong, cut.left_out, cut.best)),
                ]
            )
    if rows:
        name = f"cut-{board.file_name}"
        table = Table(
            f"{name}-table", "Bounds of scores", _CUT_HEADS, rows, search=True
        )
        sections.append(Section(name, "Cut answers", [table], _CUT))
    rows = []
    for score in own_scores(board):
        right = without_errors(score)
        if right:
            rows.append(
                [
                    *_about(board, score),
                    score_cell(score),
                    number_cell(right.mean),
                    number_cell(right.n, format_count),
                ]
            )
    if rows:
        name = f"errata-{board.file_name}"
        table = Table(
            f"{name}-table",
            "Scores without known errors",
            _ERRATA_HEADS,
            rows,
            search=True,
        )
        blocks = [table, _make_question_table(board, f"{name}-questions")]
        sections.append(Section(name, "Known errors", blocks, _ERRATA))
    return sections


def _about(board: Board, score: Result) -> list[Cell]:
    part = board.titles[score.part] + (
        " (closed book)" if score.context == "none" else ""
    )
    return [
        model_cell(board, score.model),
        Cell(part),
        Cell(label(score.length), score.length or 0),
    ]


_HEADS = text_columns("Model", "Score of", "Length")
_CUT_HEADS = [
    *_HEADS,
    Column("Score", "As published: cut answers are scored as they are."),
    Column("Cut", "Share of answers that end at the token limit."),
    Column("Cut answers wrong", "The score if each cut answer is wrong."),
    Column("Without cut answers", "The score of the other answers."),
    Column("Best case", "The score if each cut answer is right."),
]
_ERRATA_HEADS = [
    *_HEADS,
    Column("Score", "As published, with all questions."),
    Column("Without known errors", "The score of the other questions."),
    Column("n", "Number of the other questions."),
]


def _make_question_table(board: Board, name: str) -> Table:
    questions: dict[tuple[str, int | None, str], dict[str, Result]] = defaultdict(dict)
    for result in board.tasks:
        for instance in result.errata:
            questions[result.task, result.length, instance][result.model] = result
    models = list(
        dict.fromkeys(model for by_model in questions.values() for model in by_model)
    )
    heads = [
        *text_columns(
            "Task", "Length", "Question", "What is wrong", "Known since", "Source"
        ),
        *(
            Column(model, "The model's score of the question; the mean over repeats.")
            for model in models
        ),
    ]
    rows = []
    for (task, length, instance), by_model in questions.items():
        errata = next(iter(by_model.values())).errata[instance]
        repeats = {}
        for model, result in by_model.items():
            repeats[model] = by_instance(result.answers).get(instance)
        scores = []
        for model in models:
            scores.append(mean_of(answers) if (answers := repeats.get(model)) else None)
        about = [
            Cell(board.titles[task]),
            Cell(label(length), length or 0),
            Cell(instance),
        ]
        texts = (
            "; ".join(erratum.what for erratum in errata),
            min(erratum.since for erratum in errata).isoformat(),
            ", ".join(dict.fromkeys(erratum.source for erratum in errata)),
        )
        rows.append([*about, *map(Cell, texts), *map(number_cell, scores)])
    return Table(name, "Questions that are left out", heads, rows, search=True)
