"""The scores of a board as rows for files and programs, and what readers must know of a score besides its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from helm_longctx.documents.data import dump_json, write_csv
from helm_longctx.documents.numbers import percent
from helm_longctx.results.boards import Board
from helm_longctx.results.cut_bounds import bounds, find_wide_bounds
from helm_longctx.results.errata import without_errors
from helm_longctx.results.reading import Result


def score_rows(board: Board) -> Iterator[dict[str, Any]]:
    """Yield a row for each place of a board: the result that counts, or one without a score.

    `part` is a task, a run entry, or `overall`; `length` is None without lengths; `context` is `full` or `none`. The
    score and the ends of its 95 % interval are in 0 to 1, or None; `n` counts instances. `lacking` has the codes of
    `Caveat`, which say why the score is not comparable, or why there is none. `cut_wrong`, `cut_left_out`, `cut_best`
    and `without_errors` are those of `score_numbers`.
    """
    for place, result in board.results.items():
        interval = result.interval
        numbers = {"score": interval.mean, "low": interval.low, "high": interval.high}
        yield {
            "benchmark": board.benchmark.name,
            "folder": board.folder,
            "part": place.part,
            "model": place.model,
            "length": place.length,
            "context": place.context,
            **{name: None if math.isnan(value) else value for name, value in numbers.items()},
            "n": interval.n,
            "lacking": [caveat.code for caveat in result.caveats],
            "judges": sorted(result.judges),
            "published": result.is_published,
            "floor": board.is_floor(place.model),
            **score_numbers(result),
        }


def write_scores(boards: Iterable[Board], folder: Path) -> None:
    """Write all scores of the boards to `scores.json` and `scores.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [row for board in boards for row in score_rows(board)]
    (folder / "scores.json").write_bytes(dump_json(rows))
    cells = [[";".join(each) if isinstance(each, list) else each for each in row.values()] for row in rows]
    write_csv(folder / "scores.csv", list(rows[0]), cells)


def own_scores(board: Board) -> list[Result]:
    """Return the scores of the user's models, without means of a single score, which would repeat it."""
    return [each for each in board.scores.values() if not each.is_published and len(each.parts) != 1]


def score_notes(result: Result) -> list[str]:
    """Return a sentence each about cut answers and about known errors, if they matter."""
    cut, right = find_wide_bounds(result), without_errors(result)
    notes = [cut.text] if cut else []
    return [*notes, f"{percent(right.mean)} without questions with known errors (n = {right.n})"] if right else notes


def score_numbers(result: Result) -> dict[str, Any]:
    """Return the same for programs, in 0 to 1.

    `cut_wrong`, `cut_left_out` and `cut_best` are the score if cut answers are wrong, left out, or right; None if it is
    not known which were cut. `without_errors` is the score without questions that have known errors; None without any.
    """
    cut, right = bounds(result), without_errors(result)
    values = {f"cut_{name}": getattr(cut, name) if cut else math.nan for name in ("wrong", "left_out", "best")}
    values["without_errors"] = right.mean if right else math.nan
    return {name: None if math.isnan(value) else value for name, value in values.items()}
