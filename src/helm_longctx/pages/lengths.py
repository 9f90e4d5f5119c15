"""The page of scores by length and depth: curves, means, drop, effective length, and scores by place of evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helm_longctx.pages.document import Block, Cell, Column, Figure, Section, Table
from helm_longctx.pages.leaderboard import interval_row, interval_text, percent
from helm_longctx.pages.plots import curves, depth_maps
from helm_longctx.pages.results import FLOORS, OVERALL, Board, Score, label, show_model
from helm_longctx.protocol.metric_names import DEPTHS
from helm_longctx.report.lengths import by_depth, splits
from helm_longctx.report.results import PUBLISHED
from helm_longctx.runs.scores import InstanceScore
from helm_longctx.statistics.intervals import Interval
from helm_longctx.statistics.lengths import NOLIMA_SHARE, drop, effective_length, length_means, share_of_shortest


def length_sections(board: Board) -> list[Section]:
    """Return curves over length by category, and a table with means and drop; nothing for a single length."""
    if len(board.lengths) < 2:
        return []
    name = f"length-{board.benchmark.name}"
    parts = [OVERALL, *board.columns]
    blocks: list[Block] = [_curves(board, parts, f"{name}-curves"), _table(board, f"{name}-table")]
    sections = [Section(name, "Scores over length", blocks)]
    rows = list(_split_rows(board))
    if rows:
        sections.append(_split_section(board, rows))
    return sections


def depth_sections(board: Board) -> list[Section]:
    """Return heat maps of scores by depth and length, for the user's runs of tasks whose evidence has a place."""
    rows = list(_depth_rows(board))
    if not rows:
        return []
    lengths = [label(length) for length in board.lengths if any(row["length"] == label(length) for row in rows)]
    depths = [f"{depth} %" for depth in DEPTHS]
    about = (
        "The mean score in percent of all tasks whose evidence has a place in the context, by that place and by length."
        " A weaker middle row than first and last row means that a model loses what stands in the middle."
    )
    spec = depth_maps(depths, lengths, _unit(board))
    figure = Figure(f"depth-{board.benchmark.name}", "Score by depth and length", about, spec, rows, by_model=True)
    return [Section(f"depth-{board.benchmark.name}", "Scores over depth", [figure])]


def _curves(board: Board, parts: Sequence[str], name: str) -> Figure:
    rows = [
        {**_curve_row(board, model, part, length, result)}
        for part in parts
        for model in board.models
        for length in board.lengths
        if (result := board.score(model, part, length))
    ]
    rows += list(_closed_rows(board, parts))
    about = (
        "Each panel is a category; vertical lines are 95 % intervals. Dotted lines are floors: the null and the lexical"
        " baseline, and models without the context (closed book), where these were run."
    )
    titles, labels = [board.titles[part] for part in parts], [label(length) for length in board.lengths]
    spec = curves(titles, labels, _unit(board))
    return Figure(name, "Score over length", about, spec, rows, by_model=True)


def _curve_row(board: Board, model: str, part: str, length: int | None, result: Score) -> dict[str, Any]:
    kind = "floor" if model in FLOORS else "published" if result.is_published else "own"
    name = {"model": show_model(model), "part": board.titles[part], "length": label(length)}
    return {**name, **interval_row(result), "kind": kind}


def _closed_rows(board: Board, parts: Sequence[str]) -> Iterator[dict[str, Any]]:
    for place, result in board.closed.items():
        if place.part in parts:
            row = _curve_row(board, place.model, place.part, place.length, result)
            yield {**row, "model": f"{row['model']}, closed book", "kind": "floor"}


def _table(board: Board, name: str) -> Table:
    part = OVERALL if any(board.ranking(length) for length in board.lengths) else board.columns[0]
    columns = [
        Column("Model", is_number=False),
        *(Column(label(length)) for length in board.lengths),
        Column("Mean", "The mean over the lengths that the model has."),
        Column("Mean (inc)", "The same mean with weights that increase linearly with the length (arXiv 2404.06654)."),
        Column("Mean (dec)", "The same mean with weights that decrease linearly with the length (arXiv 2404.06654)."),
        Column("Drop", "The score at the shortest length minus that at the longest."),
        Column(
            "Effective length",
            f"The longest length at which the score is at least {_threshold(board)}.",
        ),
    ]
    scores = {model: _scores(board, model, part) for model in board.models}
    found = {model: each for model, each in scores.items() if len(each) > 1}
    # The models are sorted by the score at the longest length.
    models = sorted(found, key=lambda model: (max(found[model]), found[model][max(found[model])].mean), reverse=True)
    rows = [_length_row(board, model, found[model]) for model in models]
    about = f"{board.titles[part]} in percent, with the change from the shortest to the longest length."
    return Table(name, "Means, drop and effective length", columns, rows, about, search=True)


def _threshold(board: Board) -> str:
    own = board.benchmark.effective_score
    return f"{NOLIMA_SHARE:.0%} of that at the shortest" if own is None else f"{own:.1%}, as the publication has it"


def _scores(board: Board, model: str, part: str) -> dict[int, Interval]:
    found = {length: board.score(model, part, length) for length in board.lengths if length}
    return {length: score.interval for length, score in found.items() if score}


def _length_row(board: Board, model: str, scores: Mapping[int, Interval]) -> list[Cell]:
    found = [scores.get(length or 0) for length in board.lengths]
    cells = [Cell("–", -1.0) if score is None else Cell(percent(score.mean), 100 * score.mean) for score in found]
    means = {length: score.mean for length, score in scores.items()}
    cells += [Cell(percent(mean), 100 * mean) for mean in length_means(means)]
    threshold, loss = board.benchmark.effective_score or share_of_shortest(means), drop(scores)
    effective = effective_length(means, threshold)
    return [
        Cell(show_model(model), detail=FLOORS.get(model, "")),
        *cells,
        Cell(percent(loss.mean), 100 * loss.mean, note=f"95 % interval {interval_text(loss)}"),
        # With a score of zero at the shortest length, every length would reach 85 % of it.
        Cell(label(effective) if means[min(means)] else "–", float(effective or 0)),
    ]


def _split_rows(board: Board) -> Iterator[dict[str, Any]]:
    """Yield the means over tasks with a trait and without it."""
    for split in splits(board.tasks, board.benchmark):
        for part, interval in ((f"With {split.trait}", split.with_it), (f"Without {split.trait}", split.without)):
            score = Score(interval, is_published=split.model.startswith(PUBLISHED))
            yield {**_curve_row(board, split.model, OVERALL, split.length, score), "part": part}


def _split_section(board: Board, rows: Sequence[Mapping[str, Any]]) -> Section:
    parts = list(dict.fromkeys(row["part"] for row in rows))
    about = "Means over the tasks with a trait and over the others; dotted lines are the baselines."
    spec = curves(parts, [label(length) for length in board.lengths], _unit(board))
    name = f"traits-{board.benchmark.name}"
    figure = Figure(name, " and ".join(parts), about, spec, rows, by_model=True)
    return Section(name, "Tasks with a trait and without", [figure])


def _depth_rows(board: Board) -> Iterator[dict[str, Any]]:
    groups: dict[tuple[str, int], list[InstanceScore]] = defaultdict(list)
    for place, values in board.values.items():
        groups[place.model, place.length or 0] += values.values()
    for (model, length), answers in sorted(groups.items()):
        for depth, interval in by_depth(answers).items():
            about = {"model": show_model(model), "length": label(length or None), "depth": f"{depth} %"}
            yield {**about, **interval_row(Score(interval)), "n": interval.n}


def _unit(board: Board) -> str:
    return f"length in {board.benchmark.axis.unit}" if board.benchmark.axis else "length"
