"""All scores of a board as rows for files and programs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from helm_longctx.results.boards import Board
from helm_longctx.results.notes import score_numbers


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
