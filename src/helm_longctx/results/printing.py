"""What `run` and `summarize` print: the scores, what to know about them, and where the answers are."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from helm_longctx.documents.numbers import MARK, interval_text
from helm_longctx.documents.terminal import print_blocks
from helm_longctx.redaction.abbreviation import escape_invisible
from helm_longctx.results.boards import Board, ScoreKey, label, score_key
from helm_longctx.results.cells import score_tables
from helm_longctx.results.comparability import describe
from helm_longctx.results.reading import Result
from helm_longctx.results.score_rows import find_wide_bounds, own_scores, without_errors
from helm_longctx.runs.files import STATES

SERVER = "http://127.0.0.1:8000"
"""Default address of `helm-longctx serve`."""

_MOST_RUNS = 12
"""Number of runs whose names are printed."""

_MOST_LINES = 12
"""Number of lines about cut answers of a benchmark."""


def print_scores(folder: Path, boards: Sequence[Board]) -> None:
    """Print the scores of a suite, and where its answers and pages are."""
    print_blocks(score_tables(boards))
    for line in (*map(escape_invisible, notes(boards)), *answer_addresses(folder, boards)):
        print(line)
    print(f"The leaderboard: helm-longctx serve --suite {folder.name} --output-path {folder.parent.parent}")


def leaderboard_rows(boards: Iterable[Board]) -> Iterator[dict[str, Any]]:
    """Yield a row for each model of each board: its scores in 0 to 1 by column, and why some are not comparable."""
    for board in boards:
        for model in board.models:
            found = _columns(board, model)
            yield {
                "leaderboard": board.title,
                "model": model,
                "scores": {name: score.interval.mean for name, score in found.items()},
                "cut_answers": {name: asdict(cut) for name, score in found.items() if (cut := find_wide_bounds(score))},
                "without_known_errors": {
                    name: right.mean for name, score in found.items() if (right := without_errors(score))
                },
                "notes": _notes(found),
            }


def notes(boards: Iterable[Board]) -> Iterator[str]:
    """Yield a line for each reason why scores are not comparable, for each score that cut answers can move by more than
    its interval, for each task with known errors, and one for generated data."""
    generated: dict[str, None] = {}
    for board in boards:
        reasons: dict[str, list[str]] = defaultdict(list)
        for model in board.own_models:
            if text := _notes(_columns(board, model)):
                reasons[text].append(model)
        for text, models in reasons.items():
            names = f"all {len(models)} models" if len(models) == len(board.own_models) > 1 else ", ".join(models)
            yield f"{MARK} Not comparable: {board.title}, {names}: {text}"
        yield from _notes_on_results(board)
        rows = (each for _, results in board.runs for each in results)
        shares = ((row.task, row.statistics.get("generated_data")) for row in rows)
        generated |= dict.fromkeys(task for task, share in shares if share and share.interval.mean > 0)
    if generated:
        yield f"Generated data, not official files: {', '.join(generated)}"


def _notes_on_results(board: Board) -> Iterator[str]:
    """Yield a line for each score that several judges gave, as a table has one of them, for cut answers and errors."""
    found: dict[ScoreKey, list[Result]] = defaultdict(list)
    for result in (*board.tasks, *board.categories):
        # A mean of a single task repeats it.
        if result.has_score and result.judges and len(result.parts) != 1:
            found[score_key(result)].append(result)
    for key, results in found.items():
        if len(results) > 1:
            scores = [
                f"{interval_text(each.interval, is_marked=each.caveats)} by {' and '.join(sorted(each.judges))}"
                + " (in the table)" * (each is board.scores.get(key))
                for each in results
            ]
            yield f"Several judges: {board.title}, {key.model}, {_heading(board, results[0])}: {'; '.join(scores)}"
    wide = [(score, cut) for score in own_scores(board) if (cut := find_wide_bounds(score))]
    for score, cut in wide[:_MOST_LINES]:
        yield f"Cut answers: {board.title}, {score.model}, {_heading(board, score)}: {cut.text}"
    if len(wide) > _MOST_LINES:
        yield f"Cut answers: {len(wide) - _MOST_LINES} more scores, which the report lists"
    wrong: dict[str, set[tuple[int | None, str]]] = defaultdict(set)
    for result in board.tasks:
        wrong[result.task] |= {(result.length, instance) for instance in result.errata}
    for task, instances in wrong.items():
        if instances:
            title = f"{board.title}, {board.titles[task]}"
            yield f"Known errors: {title}: {len(instances)} questions, which the report lists"


def answer_addresses(folder: Path, boards: Iterable[Board]) -> Iterator[str]:
    """Yield lines that say where the answers of runs are: their files, and their pages on HELM's server."""
    names = [run.path.name for board in boards for run, _ in board.runs]
    if names:
        yield f"Answers: {folder}/RUN/{STATES}; with `serve`, {SERVER}/#/runs/RUN. RUN is one of"
        yield from (f"  {name}" for name in names[:_MOST_RUNS])
    if len(names) > _MOST_RUNS:
        yield f"  and {len(names) - _MOST_RUNS} more"


def _columns(board: Board, model: str) -> dict[str, Result]:
    """Return the scores of a model by heading, such as `Recall 8k` and `closed book Recall 8k`."""
    found = {}
    for length in board.lengths:
        for context in ("full", "none"):
            for part in board.parts_at(length, context):
                if score := board.score(model, part, length, context):
                    found[_heading(board, score)] = score
    return found


def _heading(board: Board, score: Result) -> str:
    closed = "closed book" if score.context == "none" else ""
    return " ".join(filter(None, (closed, board.titles[score.part], label(score.length))))


def _notes(scores: dict[str, Result]) -> str:
    columns: dict[str, list[str]] = {}
    for heading, score in scores.items():
        for reason in describe(score.caveats):
            columns.setdefault(reason, []).append(heading)
    return "; ".join(f"{', '.join(headings)}: {reason}" for reason, headings in columns.items())
