"""What several pages show alike: scores with intervals and marks, the order and the names of models."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from helm_longctx.documents.document import Cell
from helm_longctx.documents.numbers import DASH, MARK, decimals, marked, p_sentence, percent, range_text
from helm_longctx.results.boards import FLOORS, Board, show_model
from helm_longctx.results.comparability import Caveat, describe
from helm_longctx.results.reading import Result
from helm_longctx.results.score_rows import score_notes
from helm_longctx.results.statistics.correlation import Correlation
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.results.statistics.ranking import Rank

SHOWN = 12
"""Number of models in plots: the user's own, and the best published ones in the remaining places."""

FEWEST_PUBLISHED = 4
"""Number of published models in plots, however many own models there are."""


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
    cell = interval_cell(interval)
    return replace(cell, text=marked(cell.text, result.caveats), note="; ".join(notes), tag=tag)


def interval_cell(interval: Interval) -> Cell:
    """Return a share in percent with its interval."""
    return Cell(percent(interval.mean), interval.mean, range_text(interval.low, interval.high))


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
