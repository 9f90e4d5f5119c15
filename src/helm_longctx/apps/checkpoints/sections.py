"""The page with the scores of trainings over their steps."""

from collections import defaultdict
from collections.abc import Sequence

from helm_longctx.apps.checkpoints.curves import SPAN, Curve, find_curves
from helm_longctx.documents.document import Block, Cell, Column, Figure, Section, Table, number_cell, text_columns
from helm_longctx.documents.numbers import MARK, range_text, signed_percent
from helm_longctx.documents.plots import curves
from helm_longctx.results.boards import Board, label
from helm_longctx.results.cells import plot_row, score_cell

ABOUT = (
    "The score at the first and at the last step, and the step from which on the whole 95 % interval of each score is"
    " above the floor. The floor is the best score that needs no understanding, such as the score of longctx/null and"
    f" longctx/lexical if they are in the suite, and otherwise 0. The change is from the first to the last of the last"
    f" {SPAN} steps, on the questions that both answered. Scores rise or fall if this change is significant."
)


def checkpoint_sections(board: Board) -> list[Section]:
    """Return a section for each training with several steps: curves, and when scores leave the floor and still rise."""
    families: dict[str, list[Curve]] = defaultdict(list)
    for curve in find_curves(board):
        families[curve.family].append(curve)
    columns = [
        *text_columns("Task", "Length"),
        *(Column(title) for title in ("Steps", "First", "Last", "Floor", "Above the floor from")),
        *(Column("Change", "Of the last steps, in points."), Column("At the end", is_number=False)),
    ]
    sections = []
    for number, (family, found) in enumerate(families.items()):
        name = f"checkpoints-{board.file_name}-{number}"
        rows = [_row(board, each) for each in found]
        table = Table(f"{name}-table", f"{board.title}: steps of {family}", columns, rows, ABOUT)
        blocks: list[Block] = [_draw_curves(board, name, family, found), table]
        sections.append(Section(name, f"Scores over the steps of {family}", blocks))
    return sections


def _draw_curves(board: Board, name: str, family: str, found: Sequence[Curve]) -> Figure:
    steps = sorted({step for curve in found for step in curve.scores})
    # Each length is a curve, in the place of a model.
    rows = [
        {
            **plot_row(board, result, part=board.titles[curve.part], step=str(step)),
            "model": board.titles[curve.part] if curve.length is None else label(curve.length),
        }
        for curve in found
        for step, result in curve.scores.items()
    ]
    parts = list(dict.fromkeys(board.titles[curve.part] for curve in found))
    spec = curves(parts, list(map(str, steps)), "step", over="step")
    about = f"A curve for each length; vertical lines are 95 % intervals. {MARK} marks scores that are not comparable."
    return Figure(f"{name}-curves", f"Score over the steps of {family}", about, spec, rows)


def _row(board: Board, curve: Curve) -> list[Cell]:
    first, *_, last = curve.scores.values()
    start, change = curve.start, curve.trend and curve.trend.comparison.effect
    earlier, latest = curve.trend_steps
    return [
        Cell(board.titles[curve.part]),
        Cell(label(curve.length)),
        Cell(f"{min(curve.scores)} to {max(curve.scores)}", len(curve.scores)),
        score_cell(first),
        score_cell(last),
        number_cell(curve.floor, note="no floor was run; 0 is used"),
        number_cell(start, str, note="no step"),
        Cell(signed_percent(change.mean), change.mean, detail=range_text(change.low, change.high))
        if change
        else number_cell(None, note="no question in common"),
        Cell(f"{curve.direction} ({earlier} to {latest})" if curve.direction else ""),
    ]
