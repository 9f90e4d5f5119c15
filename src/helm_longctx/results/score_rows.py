"""The scores of a board as rows for files and programs, and what readers must know of a score besides its interval."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from helm_longctx.documents.data import dump_json, write_csv
from helm_longctx.documents.numbers import amount, percent
from helm_longctx.results.boards import Board
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.intervals import Interval, mean_of_means
from helm_longctx.results.task_statistics import CUT, VALUES, WITHOUT_ERRORS


def score_rows(board: Board) -> Iterator[dict[str, Any]]:
    """Yield a row for each place of a board: the result that counts, or one without a score.

    `metric` is `score`, `likelihood` or `perplexity`; `part` is a task, a run entry, or `overall`; `length` is None
    without lengths; `context` is `full` or `none`. The score and the ends of its 95 % interval are in 0 to 1, or None;
    `n` counts instances. `lacking` has the codes of `Caveat`: why the score is not comparable, or why there is
    none. `cut_wrong`, `cut_left_out`, `cut_best` and `without_errors` come from `score_numbers`.
    """
    for place, result in board.results.items():
        interval = result.interval
        numbers = {"score": interval.mean, "low": interval.low, "high": interval.high}
        yield {
            "benchmark": board.benchmark.name,
            "folder": board.folder,
            "metric": board.metric or "score",
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


@dataclass(frozen=True)
class CutBounds:
    """A score, 0 to 1, under three assumptions about the answers that the token limit cut.

    Args:
        wrong: the score if they are wrong.
        left_out: the score of the other answers; NaN if there are none.
        best: the score if they are right.
        share: the share of answers that were cut.
    """

    wrong: float
    left_out: float
    best: float
    share: float

    @property
    def text(self) -> str:
        """The bounds in percent, for people."""
        without = "unknown" if math.isnan(self.left_out) else percent(self.left_out)
        return (
            f"{amount(100 * self.share)} % of the answers are cut: {percent(self.wrong)} if they are wrong,"
            f" {without} without them, {percent(self.best)} at best"
        )


def bounds(result: Result) -> CutBounds | None:
    """Return the bounds of a score of a task, a category or a whole benchmark.

    All three are the score itself if no answer was cut. Of a mean they are the means of its parts' bounds, so bounds of
    other means, such as over lengths, can be computed in the same way.

    Returns:
        None if there is no score, or if it is not known which answers were cut: of published scores, of HELM's own
        scenarios, and of runs of versions that did not count them.
    """
    if not result.has_score:
        return None
    if result.parts:
        parts = [bounds(part) for part in result.parts if part.has_score]
        known = [part for part in parts if part is not None]
        if not known or len(known) < len(parts):
            return None
        return CutBounds(*map(fmean, zip(*map(astuple, known), strict=True)))
    if result.run is None or not result.run.tasks or CUT not in result.statistics:
        return None
    score, found = result.interval.mean, result.statistics
    wrong, left_out, best = (found[name].interval.mean if name in found else score for name in VALUES)
    # A sum in another order can differ in its last digit.
    return CutBounds(min(wrong, score), left_out, max(best, score), found[CUT].interval.mean)


def find_wide_bounds(result: Result) -> CutBounds | None:
    """Return the bounds of a score if one of them is outside its 95 % interval; else None."""
    found, interval = bounds(result), result.interval
    if found is None or found.wrong == found.best:
        return None
    # The interval of a single answer is not known.
    is_inside = found.wrong >= interval.low and found.best <= interval.high
    return None if is_inside else found


def without_errors(result: Result) -> Interval | None:
    """Return a score, or a mean of tasks, without the questions that have known errors; None if none have."""
    if not (result.has_score and _has_errors(result)):
        return None
    if not result.parts:
        interval = result.statistics[WITHOUT_ERRORS].interval
        return None if math.isnan(interval.mean) else interval
    parts = [part for part in result.parts if part.has_score]
    intervals = [without_errors(part) if _has_errors(part) else part.interval for part in parts]
    known = [each for each in intervals if each is not None]
    return mean_of_means(known, [part.clusters_of() for part in parts]) if len(known) == len(parts) else None


def _has_errors(result: Result) -> bool:
    return WITHOUT_ERRORS in result.statistics or any(map(_has_errors, result.parts))
