"""The first page: which model is better at a length, how certain that is, and the leaderboard of each length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from helm_longctx.pages.differences import Differences, find_differences, rank_range
from helm_longctx.pages.document import Answer, Cell, Column, Figure, Section, Table
from helm_longctx.pages.plots import interval_plot
from helm_longctx.pages.results import FLOORS, OVERALL, Board, Place, Score, label, lack_kinds, show_model
from helm_longctx.report.comparability import MARK
from helm_longctx.report.results import PUBLISHED
from helm_longctx.statistics.intervals import Interval

BEST = 12
"""Number of models in the first plot: the best ones, and all of the user's own."""

WIDEST = (
    "Only means were published. The intervals of published models are the widest that the benchmark's sample allows."
)


def leaderboard_sections(board: Board) -> list[Section]:
    """Return a section for each length, that of the main length first."""
    return [_section(board, length) for length in board.main_length_first]


def _section(board: Board, length: int | None) -> Section:
    part = best_part(board, length)
    ranking = board.ranking(length, part)
    models = [model for model, _ in ranking]
    differences = find_differences(board, part, length)
    name = f"leaderboard-{board.benchmark.name}-{label(length)}".rstrip("-")
    blocks = [
        _answer(board, part, length, ranking, differences),
        _plot(board, part, length, ranking, name),
        _table(board, part, length, models, differences, name),
    ]
    title = f"{board.benchmark.title} {label(length)}".strip()
    return Section(name, title, [block for block in blocks if block], choice=label(length))


def best_part(board: Board, length: int | None) -> str:
    """Return the part by which models are ranked: the overall score, or the column with most of the user's models."""
    # `max` returns the first of equal parts, so the overall score is preferred.
    return max((OVERALL, *board.columns_at(length)), key=lambda part: board.count(part, length)[0])


def percent(value: float) -> str:
    """Return a score in percent with one decimal."""
    return f"{100 * value:.1f}"


def interval_text(interval: Interval) -> str:
    """Return an interval in percent."""
    return f"{percent(interval.low)} to {percent(interval.high)}"


def _answer(
    board: Board, part: str, length: int | None, ranking: Sequence[tuple[str, Score]], differences: Differences
) -> Answer | None:
    if not ranking:
        return None
    at = f" at {label(length)}" if length else ""
    (best, result), what = ranking[0], "overall score" if part == OVERALL else f"score in {board.titles[part]}"
    tied = [show_model(other) for other, _ in ranking[1:] if differences[best, other].is_tied]
    verdict = (
        f"{show_model(best)} has the highest {what}: {percent(result.interval.mean)}"
        f" (95 % interval {interval_text(result.interval)})."
    )
    note = WIDEST if any(each.is_published for _, each in ranking) else ""
    if result.lacks:
        note = f"{MARK} The scores of {show_model(best)} are not comparable: {lack_kinds(result.lacks)}. {note}"
    return Answer(f"Which model is better{at}?", verdict, _certainty(ranking, tied, differences), not tied, note)


def _certainty(ranking: Sequence[tuple[str, Score]], tied: Sequence[str], differences: Differences) -> str:
    if len(ranking) == 1:
        return "There is no other model to compare it with."
    (best, _), (second, _) = ranking[:2]
    if not tied:
        effect = differences[best, second].effect
        return f"That is sure: its lead over {show_model(second)} is {percent(effect.mean)} ({interval_text(effect)})."
    names = ", ".join(tied[:4]) + (f" and {len(tied) - 4} more" if len(tied) > 4 else "")
    return f"That is not sure: {names} cannot be told apart from it at the 5 % level."


def plot_models(ranking: Sequence[tuple[str, Score]]) -> list[str]:
    """Return the models that plots show at first, by score: the user's own and the best published ones."""
    chosen = {model for model, result in ranking if not result.is_published}
    for model, _ in ranking:
        if len(chosen) >= BEST:
            break
        chosen.add(model)
    return [model for model, _ in ranking if model in chosen]


def _plot(
    board: Board, part: str, length: int | None, ranking: Sequence[tuple[str, Score]], name: str
) -> Figure | None:
    scores, models = dict(ranking), plot_models(ranking)
    rows: list[dict[str, Any]] = [
        {"model": show_model(model), **interval_row(scores[model]), "kind": _kind(scores[model])} for model in models
    ]
    if len(rows) < 2:
        return None
    floors = board.floors(part, length)
    rows += [{"model": name, **interval_row(floor), "kind": "floor"} for name, floor in floors]
    about = f"The best {len(models)} of {len(ranking)} models with 95 % intervals."
    if any(score.is_published for score in scores.values()):
        about += " Full points were run here; hollow points are published."
    if floors:
        about += f" Dashed lines are baselines: {', '.join(name for name, _ in floors)}."
    spec = interval_plot(f"{board.titles[part]} in %", [show_model(model) for model in models], bool(floors))
    return Figure(f"{name}-plot", f"{board.titles[part]} {label(length)}".strip(), about, spec, rows)


def interval_row(result: Score) -> dict[str, float]:
    """Return a score in percent with its interval, for the data of a plot."""
    interval = result.interval
    ends = {"score": interval.mean, "low": interval.low, "high": interval.high}
    return {name: round(100 * value, 2) for name, value in ends.items()}


def _kind(result: Score) -> str:
    return "published" if result.is_published else "own"


def _table(
    board: Board, part: str, length: int | None, ranked: Sequence[str], differences: Differences, name: str
) -> Table:
    columns = _columns(board, length)
    models = [
        *ranked,
        *(model for model in board.models if model not in ranked and _has_any(board, model, columns, length)),
    ]
    best = {each: _best(board, each, length) for each in columns}
    floor = board.floor(part, length)
    rows = []
    for model in models:
        score = board.score(model, part, length)
        cells = [_score_cell(board.score(model, each, length), best[each]) for each in columns]
        above = [] if floor is None else [_above(score, floor)]
        rank = _rank_cell(model, ranked, differences, board.reasons.get(Place(model, part, length), ""))
        rows.append([rank, _model_cell(board, model, columns, length), *cells, *above])
    return Table(
        f"{name}-table",
        f"All models {f'at {label(length)}' if length else ''}".strip(),
        _headings(board, columns, floor),
        rows,
        about=_about(board, columns),
        search=True,
    )


def _best(board: Board, part: str, length: int | None) -> float | None:
    """Return the best comparable score."""
    # A score that is not comparable cannot be the best of its column.
    scores = [result for _, result in board.ranking(length, part) if not result.lacks]
    return scores[0].interval.mean if scores else None


def _headings(board: Board, columns: Sequence[str], floor: float | None) -> list[Column]:
    above = Column("Above floor", "The score minus that of the better of the null and the lexical baseline.")
    rank = "The rank by score. The range has the ranks that the comparisons between every two models leave open."
    heads = [Column("Rank", rank), Column("Model", is_number=False)]
    return [*heads, *(Column(board.titles[each]) for each in columns), *([above] if floor is not None else [])]


def _about(board: Board, columns: Sequence[str]) -> str:
    others = [board.titles[each] for each in columns if each != OVERALL and each not in board.columns]
    note = f" Not in the mean: {', '.join(others)}." if others else ""
    return (
        f"Scores in percent with half the width of their 95 % interval. {board.titles[OVERALL]} is the mean of all"
        f" columns; a model that lacks one has none.{note} {MARK} marks scores that are not comparable."
    )


def _columns(board: Board, length: int | None) -> list[str]:
    """Return the columns of the table: overall, those of the mean, and other categories with results."""
    of_mean = board.columns_at(length)
    others = [
        name
        for name, category in board.benchmark.entries.items()
        if not category.averaged
        and any((found := board.score(model, name, length)) and found.is_complete for model in board.models)
    ]
    return [OVERALL, *of_mean, *others]


def _has_any(board: Board, model: str, columns: Sequence[str], length: int | None) -> bool:
    return any(board.score(model, each, length) for each in columns)


def _model_cell(board: Board, model: str, columns: Sequence[str], length: int | None) -> Cell:
    results = [found for each in columns if (found := board.score(model, each, length))]
    detail = "published" if all(result.is_published for result in results) else FLOORS.get(model, "")
    return Cell(show_model(model), detail=detail + (" baseline" if model in FLOORS else ""))


def _rank_cell(model: str, ranked: Sequence[str], differences: Differences, reason: str) -> Cell:
    if model not in ranked:
        # These rows come after all ranks.
        return Cell("–", sort=float(len(ranked) + 1), note=reason or "no score")
    rank = ranked.index(model) + 1
    first, last = rank_range(model, ranked, differences)
    return Cell(str(rank), sort=float(rank), detail=f"{first}–{last}" if last > first else "")


def _score_cell(result: Score | None, best: float | None) -> Cell:
    if result is None:
        return Cell("–", sort=-1.0, note="no score")
    interval = result.interval
    # This is the longer side, because intervals need not be symmetric.
    half = max(interval.high - interval.mean, interval.mean - interval.low)
    note = f"95 % interval {interval_text(interval)}, n = {interval.n}" + "".join(f"; {lack}" for lack in result.lacks)
    tag = "lacking" if result.lacks else "best" if interval.mean == best else ""
    mark = f" {MARK}" if result.lacks else ""
    return Cell(percent(interval.mean) + mark, 100 * interval.mean, f"±{percent(half)}", note, tag=tag)


def _above(score: Score | None, floor: float) -> Cell:
    if score is None:
        return Cell("–", sort=-1.0)
    return Cell(f"{100 * (score.interval.mean - floor):+.1f}", 100 * (score.interval.mean - floor))


def leading_models(board: Board) -> Iterator[tuple[str, bool]]:
    """Yield the models that readers can choose, and whether pages show them at first: own ones and some of the best."""
    ranking = board.ranking(board.main_length, best_part(board, board.main_length))
    own = [model for model in board.competitors if not model.startswith(PUBLISHED)]
    shown = {*own[:8], *[model for model, _ in ranking][: max(2, 6 - len(own))]}
    for model in dict.fromkeys([*own, *(model for model, _ in ranking), *board.competitors]):
        yield model, model in shown
