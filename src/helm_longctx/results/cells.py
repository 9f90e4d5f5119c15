"""What terminals and pages show alike: columns of scores with intervals and marks, and models' order and names."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from helm_longctx.documents.document import Cell, Column, Table
from helm_longctx.documents.numbers import (
    DASH,
    MARK,
    decimals,
    interval_text,
    marked,
    p_sentence,
    percent,
    range_text,
)
from helm_longctx.results.boards import FLOORS, OVERALL, Board, label, own_boards, show_model
from helm_longctx.results.comparability import Caveat, describe
from helm_longctx.results.reading import Result
from helm_longctx.results.score_rows import score_notes, without_errors
from helm_longctx.results.statistics.correlation import Correlation
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.results.statistics.ranking import Rank

SHOWN = 12
"""Number of models in plots: the user's own, and the best published ones in the remaining places."""

FEWEST_PUBLISHED = 4
"""Number of published models in plots, however many own models there are."""

PUBLISHED_MODELS = 2
"""Number of published models in terminals, beside the user's models: the best ones. The leaderboard has all."""


class ScoreColumn(NamedTuple):
    """A column of scores: its heading, its cells, and the intervals that they show, if any; None for an empty cell."""

    head: Column
    cells: list[Cell]
    intervals: Sequence[Interval | None] = ()


def score_columns(
    board: Board,
    length: int | None,
    parts: Iterable[str],
    lines: Iterable[tuple[str, str]],
    ranked_by: str = "",
    with_errata: bool = False,
) -> Iterator[ScoreColumn]:
    """Yield the columns of scores in a table of models, which the terminal and the report show alike.

    Args:
        parts: tasks, categories, or the overall score. One without a score has no column.
        lines: the model and the context of each row.
        ranked_by: the part by which the rows are ranked.
        with_errata: whether scores without known errors have columns. On pages the notes of cells tell them.
    """
    lines = list(lines)
    for part in parts:
        results = [board.find(model, part, length, context) for model, context in lines]
        scores = [result if result and result.has_score else None for result in results]
        title, is_ranked = board.titles[part], part == ranked_by
        if any(scores):
            # A score that is not comparable cannot be the best of its column, and a single one is none.
            comparable = [each for each in board.ranking(length, part) if not each.caveats]
            best = comparable[0].interval.mean if len(comparable) > 1 else None
            head = Column(title, "The ranks are by this column." if is_ranked else "", is_ranked=is_ranked)
            pairs = zip(results, lines, strict=True)
            cells = [score_cell(each, best if context == "full" else None) for each, (_, context) in pairs]
            yield ScoreColumn(head, cells, [each.interval if each else None for each in scores])
        right = [without_errors(each) if each else None for each in scores]
        if with_errata and any(right):
            cells = [Cell(interval_text(each), each.mean) if each else Cell(DASH) for each in right]
            yield ScoreColumn(Column(f"{title} without\nknown errors"), cells, right)


def score_tables(boards: Iterable[Board], published: int = PUBLISHED_MODELS) -> Iterator[Table]:
    """Yield the tables of own boards for terminals, by length and context, with a column for each mean and each task.

    The user's models come first by rank, then floors, then published models.
    """
    for board in own_boards(boards):
        for context, length in product(("full", "none"), board.lengths):
            models = _choose_models(board, length, context, published)
            if not models:
                continue
            own = [model for model in models if model in board.own_models and not board.is_floor(model)]
            folders = {model.rpartition("/")[0] for model in own}
            # The models of one endpoint share the first part of their names, e.g. `my/`.
            shared = f"{folders.pop()}/" if len(folders) == 1 < len(own) else ""
            title = " ".join(filter(None, (board.title, "closed book" * (context == "none"), label(length))))
            about = f"{title}: scores in % (95 % intervals)" + (f", models of {shared}" if shared else "")
            categories = board.benchmark.entries
            parts = board.table_parts(models, length, context)
            # With a single category, the overall score is that category's.
            if sum(each.averaged for each in categories.values()) < 2:
                parts = [part for part in parts if part != OVERALL]
            parts.sort(key=lambda part: part != OVERALL and part not in categories)
            lines = [(model, context) for model in models]
            columns = list(score_columns(board, length, parts, lines, with_errata=True))
            heads = [Column("", is_number=False), *(Column(_title_with_count(each)) for each in columns)]
            names = [Cell(model.removeprefix(shared)) for model in models]
            rows = list(zip(names, *(each.cells for each in columns), strict=True))
            yield Table(f"scores-{board.file_name}", about, heads, rows)


def _title_with_count(column: ScoreColumn) -> str:
    title, counts = column.head.title, sorted({each.n for each in column.intervals if each})
    numbers = "–".join(map(str, dict.fromkeys((*counts[:1], *counts[-1:]))))
    between = ", " if "\n" in title else "\n"
    return f"{title}{between}n={numbers}" if counts else title


def _choose_models(board: Board, length: int | None, context: str, published: int) -> list[str]:
    """Return the user's models with a score, and the best published ones if there is one of the user's."""
    part, having = board.main_part(length), [place for place in board.scores if place.length == length]
    models = {place.model for place in having if place.context == context}
    ranked = [each.model for each in (*board.ranking(length, part), *board.unranked(length, part))]
    floors = sorted(board.floors(part, length), key=lambda each: -each.interval.mean)
    order = dict.fromkeys([*ranked, *(each.model for each in floors), *board.own_models])
    own = [model for model in order if model in board.own_models and model in models]
    if board.runs and not own:
        return []
    best = [each.model for each in board.competing(length, part) if each.is_published]
    return [*own, *(best[:published] if context == "full" else [])]


def caveat_kinds(caveats: Iterable[Caveat]) -> str:
    """Return the reasons without their numbers and tasks."""
    return ", ".join(dict.fromkeys(caveat.brief for caveat in caveats))


def own_first(board: Board, models: Iterable[str]) -> list[str]:
    """Return the models in the same order, the user's own first."""
    return sorted(models, key=lambda model: model in board.published)


def shown_models(ranking: Sequence[Result]) -> list[str]:
    """Return the models that plots show, best first: the user's own, and then the best published ones."""
    own = [each.model for each in ranking if not each.is_published]
    published = [each.model for each in ranking if each.is_published]
    return [*own, *published[: max(SHOWN - len(own), FEWEST_PUBLISHED)]]


def all_models(board: Board) -> list[str]:
    """Return the user's models, the floors, and the published models, each by rank."""
    part = board.main_part(board.main_length)
    scores = [*board.ranking(board.main_length, part), *board.unranked(board.main_length, part)]
    ranked = [each.model for each in scores]
    kinds = ("own", "floor", "published")
    return sorted(dict.fromkeys([*ranked, *board.models]), key=lambda model: kinds.index(kind_of(board, model)))


def kind_of(board: Board, model: str) -> str:
    """Return the kind of a model in the data of plots: `own`, `published` or `floor`."""
    return "floor" if board.is_floor(model) else "published" if model in board.published else "own"


def short_name(model: str) -> str:
    """Return the name of a model in plots."""
    return FLOORS.get(model, show_model(model))


def model_cell(board: Board, model: str, context: str = "full") -> Cell:
    """Return a model's name. Its tag puts the row among the rows of its kind."""
    if context == "none":
        return Cell(show_model(model), detail="closed book", tag="floor")
    kind = kind_of(board, model)
    details = {"own": "", "published": "published", "floor": "floor"}
    return Cell(show_model(model), detail=details[kind], tag="" if kind == "published" else kind)


def score_cell(result: Result | None, best: float | None = None, note: str = "not run") -> Cell:
    """Return a score with its interval and mark. `best` is the best of its column; `note` explains a dash."""
    if result is None or not result.has_score:
        return Cell(DASH, note=note if result is None else "; ".join(describe(result.caveats)) or "no scored answer")
    interval = result.interval
    notes = [f"n = {interval.n}" if interval.n else "the number of questions is not known"]
    notes += [*score_notes(result), *describe(result.caveats)]
    tag = "lacking" if result.caveats else "best" if interval.mean == best else ""
    text, ends = marked(percent(interval.mean), result.caveats), range_text(interval.low, interval.high)
    return Cell(text, interval.mean, ends, "; ".join(notes), tag=tag)


def rho_cell(each: Correlation) -> Cell:
    """Return a correlation with its interval; its p-value is a tooltip."""
    if math.isnan(each.rho):
        return Cell(DASH, note="too few different values")
    return Cell(decimals(each.rho), each.rho, range_text(each.low, each.high, decimals), note=p_sentence(each.p_value))


def rank_cell(rank: Rank | None, note: str = "no rank") -> Cell:
    """Return a rank with its range, or a dash for None, with a note that says why there is none."""
    if rank is None:
        return Cell(DASH, note=note)
    return Cell(f"{rank.rank:g}", rank.rank, detail=f"{rank.low}–{rank.high}" if rank.high > rank.low else "")


def plot_row(board: Board, result: Result, **about: str) -> dict[str, Any]:
    """Return a score with its model, its interval and its mark for the data of a plot."""
    marks = {"mark": MARK, "note": caveat_kinds(result.caveats)} if result.caveats else {}
    kind = kind_of(board, result.model)
    return {"model": short_name(result.model), **about, **interval_row(result.interval), **marks, "kind": kind}


def interval_row(interval: Interval) -> dict[str, float | None]:
    """Return a mean with its interval for the data of a plot."""
    ends = {"score": interval.mean, "low": interval.low, "high": interval.high}
    # Six digits are exact enough for every use, and keep pages small.
    return {name: None if math.isnan(value) else round(value, 6) for name, value in ends.items()}
