"""The page of relations between tasks: rank correlations over models, and a plot of any task against any other."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from helm_longctx.apps.app import for_each_length
from helm_longctx.documents.document import Figure, Section
from helm_longctx.documents.numbers import decimals, p_sentence
from helm_longctx.documents.plots import matrix, mirror, scatter
from helm_longctx.results.boards import OVERALL, Board, label, show_model
from helm_longctx.results.statistics.ranking import Correlation, spearman

FEWEST = 5

Scores = Mapping[str, Mapping[str, float]]

Correlations = Mapping[tuple[str, str], Correlation]


@for_each_length
def task_sections(board: Board, length: int | None) -> Section | None:
    """Return the section of a length with enough models."""
    columns = board.columns_at(length)
    # A category with one task has that task's scores.
    tasks = [task for part in columns if len(of := board.tasks_of(part, length)) > 1 for task in of]
    parts = [OVERALL, *columns, *(task for task in dict.fromkeys(tasks) if task not in board.columns)]
    scores: dict[str, dict[str, float]] = {}
    # A model without understanding is the worst everywhere, so it would raise all correlations.
    for model in board.competitors:
        results = {part: board.score(model, part, length) for part in parts}
        if values := {part: round(result.interval.mean, 6) for part, result in results.items() if result}:
            scores[model] = values
    counts = {part: sum(part in each for each in scores.values()) for part in parts}
    parts = [part for part in parts if counts[part] >= FEWEST]
    if len(parts) < 3:
        return None
    scores_of = {part: [each.get(part, math.nan) for each in scores.values()] for part in parts}
    found = {(one, other): spearman(scores_of[one], scores_of[other]) for one, other in combinations(parts, 2)}
    name = f"tasks-{board.file_name}-{label(length)}".rstrip("-")
    figures = [_heat_map(board, parts, found, name), _draw_points(board, parts, scores, found, name)]
    about = f"Over {len(scores)} models. Floors are left out."
    return Section(name, f"Correlations {label(length)}".strip(), figures, about, choice=label(length))


def _draw_points(board: Board, parts: Sequence[str], scores: Scores, found: Correlations, name: str) -> Figure:
    rows: list[dict[str, Any]] = [
        {"model": show_model(model), **{part: each.get(part) for part in parts}} for model, each in scores.items()
    ]
    rows += [
        {"row": one, "column": other, "label": f"rho = {decimals(each.rho)}, {p_sentence(each.p_value)}, n = {each.n}"}
        for (one, other), each in found.items()
        if not math.isnan(each.rho)
    ]
    about = "Each point is a model. Choose the two parts below the plot; the correlation is Spearman's."
    spec = scatter({part: board.titles[part] for part in parts}, parts[1], parts[2])
    return Figure(f"{name}-scatter", "Any part against any other", about, spec, rows)


def _heat_map(board: Board, parts: Sequence[str], found: Correlations, name: str) -> Figure:
    rows = [
        {
            **{"row": board.titles[one], "column": board.titles[other], "rho": round(each.rho, 4)},
            **{"p": float(f"{each.p_value:.3g}"), "low": round(each.low, 3), "high": round(each.high, 3), "n": each.n},
        }
        for (one, other), each in found.items()
        if not math.isnan(each.rho)
    ]
    about = (
        "Spearman's rank correlation between the scores of models in two parts of the benchmark. Parts with a high"
        " correlation rank models alike."
    )
    formats = {"rho": ".2f", "low": ".2f", "high": ".2f", "p": ".2~g", "n": None}
    spec = matrix([board.titles[part] for part in parts], "rho", 1.0, "format(datum.rho, '.2f')", formats, ".1f")
    return Figure(f"{name}-correlations", "Rank correlations", about, mirror(spec), rows)
