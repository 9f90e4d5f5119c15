"""What terminals, pages and files show alike: columns of scores with intervals and marks, notes, and rows."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import chain, product
from pathlib import Path
from statistics import fmean
from typing import Any

from helm_longctx.documents.document import (
    Cell,
    Column,
    Table,
    dump_json,
    interval_cell,
    number_cell,
    write_csv,
)
from helm_longctx.documents.numbers import (
    DASH,
    MARK,
    add_mark,
    format_amount,
    format_decimals,
    format_ends,
    format_interval,
    format_p_statement,
    format_percent,
)
from helm_longctx.documents.terminal import print_blocks
from helm_longctx.errors import describe_all, describe_count
from helm_longctx.redaction.abbreviation import escape_invisible
from helm_longctx.results.boards import (
    FLOORS,
    OVERALL,
    Board,
    ScoreKey,
    Suite,
    label,
    own_boards,
    score_key,
    show_model,
)
from helm_longctx.results.comparability import (
    GENERATED,
    Caveat,
    ColumnReason,
    describe,
    describe_columns,
)
from helm_longctx.results.guests import guest_table
from helm_longctx.results.reading import (
    BEST,
    CUT,
    LEFT_OUT,
    VALUES,
    WITHOUT_ERRORS,
    WRONG,
    Result,
)
from helm_longctx.results.statistics.intervals import Interval, mean_of_means
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.results.statistics.ranking import Correlation, Rank
from helm_longctx.runs.files import STATES
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.entry_data import fetch_line
from helm_longctx.tasks.metric_names import KEY_LOGPROB, MEAN_LOGPROB, SCORE_NAMES
from helm_longctx.tasks.request_settings import LONGPPL, PERPLEXITIES, PERPLEXITY
from helm_longctx.tasks.task import UNREAD
from helm_longctx.writing import replace_file


def score_rows(board: Board) -> list[dict[str, Any]]:
    """Return a row for each place of a board: the result that counts, or one without a score.

    `metric` is `score`, `likelihood` or `token probability`; `part` is a task, a run entry, or `overall`; `length` is None
    without lengths; `context` is `full` or `none`. The score and the ends of its interval are in 0 to 1, or None;
    `n` counts instances. `caveats` has the codes of `Caveat`: why the score is not comparable, or why there is
    none. `score_numbers` describes `cut_wrong`, `cut_left_out`, `cut_best` and `without_errors`, and `unread_share`
    `unread`. `perplexity` is None except for tasks with `metric=perplexity` or `metric=longppl`, and `longppl` except
    for the latter.
    """
    models = {key.model for key in board.results}
    floors = set()
    for model in models:
        if board.is_floor(model):
            floors.add(model)
    rows = []
    for key, result in board.results.items():
        interval = result.interval
        # Of official metrics, which nearly all results have, there is no perplexity.
        perplexity = find_perplexity(result) if result.metric else None
        longppl = find_longppl(result) if result.metric else None
        # Of published scores no answers are known.
        numbers = _NO_NUMBERS if result.is_published else score_numbers(result)
        caveats = []
        for caveat in result.caveats:
            caveats.append(caveat.code)
        row = {
            "benchmark": board.benchmark.name,
            "folder": board.folder,
            "metric": SCORE_NAMES[board.metric],
            "part": key.part,
            "model": key.model,
            "length": key.length,
            "context": key.context,
            "score": interval.mean if result.has_score else None,
            "low": None if math.isnan(interval.low) else interval.low,
            "high": None if math.isnan(interval.high) else interval.high,
            "n": interval.n,
            "caveats": caveats,
            "judges": sorted(result.judges),
            "published": result.is_published,
            "floor": key.model in floors,
            **numbers,
            "unread": None if result.is_published else unread_share(result),
            "perplexity": perplexity.mean if perplexity else None,
            "longppl": longppl.mean if longppl else None,
        }
        rows.append(row)
    return rows


_NO_NUMBERS: dict[str, Any] = {
    "cut_wrong": None,
    "cut_left_out": None,
    "cut_best": None,
    "without_errors": None,
}
"""What `score_numbers` returns for a score without answers."""


def write_scores(boards: Iterable[Board], folder: Path) -> None:
    """Write all scores of the boards to `scores.json` and `scores.csv`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(chain.from_iterable(map(score_rows, boards)))
    replace_file(folder / "scores.json", dump_json(rows))
    cells = []
    for row in rows:
        lists = {"caveats": ";".join(row["caveats"]), "judges": ";".join(row["judges"])}
        cells.append(list((row | lists).values()))
    write_csv(folder / "scores.csv", list(rows[0]), cells)


def own_scores(board: Board) -> list[Result]:
    """Return the scores of the user's models, without means of a single score: they would repeat it."""
    scores = []
    for score in board.scores.values():
        if not score.is_published and len(score.parts) != 1:
            scores.append(score)
    return scores


def score_notes(result: Result) -> list[str]:
    """Return a sentence each about unread and cut answers, and about known errors, if they matter."""
    notes = []
    if share := unread_share(result):
        notes.append(f"{format_amount(100 * share)} % of the answers are unread")
    if cut := find_wide_bounds(result):
        notes.append(cut.text)
    if right := without_errors(result):
        notes.append(
            f"{format_percent(right.mean)} without questions with known errors (n = {right.n})"
        )
    return notes


def score_numbers(result: Result) -> dict[str, Any]:
    """Return for programs, in 0 to 1, what `score_notes` says about cut answers and known errors.

    `cut_wrong`, `cut_left_out` and `cut_best` are the score if cut answers are wrong, left out, or right, or None if it is
    not known which were cut. `without_errors` is the score without questions that have known errors, or None without any.
    """
    cut = bounds(result)
    right = without_errors(result)
    numbers = dict(_NO_NUMBERS)
    if cut:
        numbers["cut_wrong"] = cut.wrong
        numbers["cut_left_out"] = None if math.isnan(cut.left_out) else cut.left_out
        numbers["cut_best"] = cut.best
    if right:
        numbers["without_errors"] = right.mean
    return numbers


def unread_share(result: Result) -> float | None:
    """Return the share of answers, 0 to 1, in which the scorer found nothing that it could read.

    Of a mean it is the mean of its parts' shares.

    Returns:
        None if it is not known: of published scores, likelihoods, and HELM's own scenarios.
    """
    if result.is_published:
        return None
    if not result.parts:
        if UNREAD in result.statistics:
            return result.statistics[UNREAD].interval.mean
        return None
    shares = []
    for part in result.parts:
        if part.has_score:
            shares.append(unread_share(part))
    known = []
    for share in shares:
        if share is not None:
            known.append(share)
    if known and len(known) == len(shares):
        return fmean(known)
    return None


@dataclass(frozen=True)
class _CutBounds:
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
        without = (
            "unknown" if math.isnan(self.left_out) else format_percent(self.left_out)
        )
        return (
            f"{format_amount(100 * self.share)} % of the answers are cut:"
            f" {format_percent(self.wrong)} if they are wrong, {without} without them,"
            f" {format_percent(self.best)} at best"
        )


def bounds(result: Result) -> _CutBounds | None:
    """Return the bounds of a score of a task, a category or a whole benchmark.

    All three are the score itself if no answer was cut. Of a mean they are the means of its parts' bounds, so bounds of
    other means, such as over lengths, can be computed in the same way.

    Returns:
        None if there is no score, or if it is not known which answers were cut: of published scores, and of HELM's
        own scenarios.
    """
    if not result.has_score or result.is_published:
        return None
    if result.parts:
        parts = []
        for part in result.parts:
            if part.has_score:
                parts.append(bounds(part))
        known = [part for part in parts if part is not None]
        if not known or len(known) < len(parts):
            return None
        return _CutBounds(
            wrong=fmean(part.wrong for part in known),
            left_out=fmean(part.left_out for part in known),
            best=fmean(part.best for part in known),
            share=fmean(part.share for part in known),
        )
    if result.run is None or not result.run.tasks or CUT not in result.statistics:
        return None
    score = result.interval.mean
    means = {}
    for name in VALUES:
        interval = result.find_interval(name)
        means[name] = interval.mean if interval else score
    # A sum in another order can differ in its last digit.
    return _CutBounds(
        wrong=min(means[WRONG], score),
        left_out=means[LEFT_OUT],
        best=max(means[BEST], score),
        share=result.statistics[CUT].interval.mean,
    )


def find_wide_bounds(result: Result) -> _CutBounds | None:
    """Return the bounds of a score if one of them is outside its interval; else None."""
    cut = bounds(result)
    interval = result.interval
    if cut is None or cut.wrong == cut.best:
        return None
    # The interval of a single answer is not known.
    is_inside = cut.wrong >= interval.low and cut.best <= interval.high
    return None if is_inside else cut


def without_errors(result: Result) -> Interval | None:
    """Return a score, or a mean of tasks, without the questions that have known errors, or None if none have."""
    if result.is_published or not (result.has_score and _has_errors(result)):
        return None
    if not result.parts:
        interval = result.statistics[WITHOUT_ERRORS].interval
        if math.isnan(interval.mean):
            return None
        return interval
    intervals = []
    clusters = []
    weights = []
    for task, weight in result.weighted_tasks:
        known = without_errors(task) if _has_errors(task) else task.interval
        if known is None:
            return None
        intervals.append(known)
        clusters.append(task.clusters_of())
        weights.append(weight)
    return mean_of_means(intervals, clusters, weights)


def find_perplexity(result: Result) -> Interval | None:
    """Return the perplexity of a task's texts, or None for other metrics and for means of tasks.

    It is the exponential of minus the mean log-probability of a token, over texts.
    """
    if result.metric not in PERPLEXITIES or result.parts:
        return None
    return _invert(result.find_interval(MEAN_LOGPROB))


def find_longppl(result: Result) -> Interval | None:
    """Return the perplexity of the key tokens of a task's texts.

    None if they were not asked for, if no text has one, and for means of tasks. Each key token counts the same.
    """
    if result.metric != LONGPPL or result.parts:
        return None
    return _invert(result.find_interval(KEY_LOGPROB))


def _invert(logprob: Interval | None) -> Interval | None:
    """Return the perplexity that belongs to a mean log-probability."""
    if logprob is None:
        return None
    return Interval(
        mean=math.exp(-logprob.mean),
        low=math.exp(-logprob.high),
        high=math.exp(-logprob.low),
        n=logprob.n,
    )


def _has_errors(result: Result) -> bool:
    return WITHOUT_ERRORS in result.statistics or any(map(_has_errors, result.parts))


SHOWN = 12
"""Number of models in plots: the user's own, and the best published ones in the remaining places."""

_FEWEST_PUBLISHED = 4
"""Number of published models in plots, however many own models there are."""

_PUBLISHED_MODELS = 2
"""Number of published models in terminals, beside the user's models: the best ones. The leaderboard has all."""


def score_columns(
    board: Board,
    length: int | None,
    parts: Iterable[str],
    lines: Iterable[tuple[ShownModel, str]],
    ranked_by: str = "",
    for_terminal: bool = False,
    link_unread: Callable[[Result], str] = lambda result: "",
) -> Iterator[tuple[Column, list[Cell]]]:
    """Yield the columns of scores in a table of models, each with its cells. The terminal and the report show them alike.

    Args:
        parts: tasks, categories, or the overall score. One without a score has no column.
        lines: the model and the context of each row.
        ranked_by: the part by which the rows are ranked.
        for_terminal: whether titles have the number of instances, and scores without known errors have columns. On
            pages the notes of cells tell both.
        link_unread: returns the address of the unread answers of a score; an empty text without a page.
    """
    lines = list(lines)

    def make_title(title: str, intervals: Iterable[Interval | None]) -> str:
        return _title_with_count(title, intervals) if for_terminal else title

    for part in parts:
        results = []
        for model, context in lines:
            results.append(board.find(model, part, length, context))
        scores = [result if result and result.has_score else None for result in results]
        title = board.titles[part]
        is_ranked = part == ranked_by
        if any(scores):
            # A score that is not comparable cannot be the best of its column, and a single one is none.
            ranking = board.ranking(length, part)
            comparable = []
            for score in ranking:
                if not score.caveats:
                    comparable.append(score)
            best = comparable[0].interval.mean if len(comparable) > 1 else None
            heading = title
            if board.metric in PERPLEXITIES:
                heading += f":\n{SCORE_NAMES[PERPLEXITY]}"
            about = "The ranks are by this column." if is_ranked else ""
            cells = []
            for result, (_, context) in zip(results, lines, strict=True):
                cells.append(score_cell(result, best if context == "full" else None))
            intervals = [result.interval if result else None for result in scores]
            heading = make_title(heading, intervals)
            yield Column(heading, about, is_ranked=is_ranked), cells
        own: list[Result | None] = []
        for result in scores:
            # Published scores have no answers.
            own.append(None if result is None or result.is_published else result)
        shares = [unread_share(result) if result else None for result in own]
        if any(shares):
            head = Column(
                f"{title}\nunread",
                "Share of answers in which the scorer found nothing that it could read.",
            )
            cells = []
            for result, share in zip(scores, shares, strict=True):
                address = link_unread(result) if result and share else ""
                cells.append(replace(number_cell(share), link=address))
            yield head, cells
        perplexities = [find_perplexity(result) if result else None for result in own]
        if any(perplexities):
            cells = [
                interval_cell(value, format_decimals, "not run")
                for value in perplexities
            ]
            yield Column(make_title(f"{title}:\nperplexity", perplexities)), cells
        longppls = [find_longppl(result) if result else None for result in own]
        if any(longppls):
            about = "Perplexity of the key tokens: those that need what is far back."
            cells = [
                interval_cell(value, format_decimals, "not run") for value in longppls
            ]
            yield Column(make_title(f"{title}:\nLongPPL", longppls), about), cells
        right = [without_errors(result) if result else None for result in own]
        if for_terminal and any(right):
            cells = []
            for interval in right:
                if interval:
                    cells.append(Cell(format_interval(interval), interval.mean))
                else:
                    cells.append(Cell(DASH))
            yield Column(make_title(f"{title} without\nknown errors", right)), cells


_MOST_COLUMNS = 3
"""Columns of scores that fit a terminal. If there are more, and fewer models, the models are the columns."""


def score_tables(
    boards: Iterable[Board],
    published: int = _PUBLISHED_MODELS,
) -> Iterator[Table]:
    """Yield the tables of own boards for terminals, by length and context, with what the user has run.

    The user's models come first by rank, then floors, then published models. Means and tasks that only published models
    have are left out. Where there are many of them and few models, the models are the columns.
    """
    for board in own_boards(boards):
        for context, length in product(("full", "none"), board.lengths):
            models = _choose_models(board, length, context, published)
            if not models:
                continue
            parts = _choose_parts(board, models, length, context)
            lines = [(model, context) for model in models]
            columns = list(
                score_columns(board, length, parts, lines, for_terminal=True)
            )
            shared = _shared_folder(board, models)
            names = [model.removeprefix(shared) for model in models]
            title = _describe_scores(board, length, context, shared)
            heads, rows = _arrange(names, columns)
            yield Table(f"scores-{board.file_name}", title, heads, rows)


def _choose_parts(
    board: Board,
    models: Sequence[ShownModel],
    length: int | None,
    context: str,
) -> list[str]:
    """Return the means and tasks that a table shows: those in which one of the user's models has a score."""
    categories = board.benchmark.entries
    parts = board.table_parts(models, length, context)
    # With a single category, the overall score is that category's.
    if sum(category.averaged for category in categories.values()) < 2:
        parts = [part for part in parts if part != OVERALL]
    parts.sort(key=lambda part: part != OVERALL and part not in categories)
    own = []
    for model in models:
        if model in board.own_models:
            own.append(model)

    def is_run(part: str) -> bool:
        results = [board.find(model, part, length, context) for model in own]
        return any(result is not None and result.has_score for result in results)

    run = [part for part in parts if is_run(part)]
    return run or parts


def _shared_folder(board: Board, models: Sequence[ShownModel]) -> str:
    """Return the first part that the names of all own models share, as those of one endpoint do; else nothing."""
    own = []
    for model in models:
        if model in board.own_models and not board.is_floor(model):
            own.append(model)
    folders = {model.rpartition("/")[0] for model in own}
    if len(folders) == 1 < len(own):
        return f"{folders.pop()}/"
    return ""


def _describe_scores(
    board: Board,
    length: int | None,
    context: str,
    shared: str,
) -> str:
    parts = [board.title, "closed book" if context == "none" else "", label(length)]
    title = " ".join(part for part in parts if part)
    about = f"{title}: scores in % ({LEVEL_TEXT} intervals)"
    if shared:
        return f"{about}, models of {shared}"
    return about


def _arrange(
    names: Sequence[str],
    columns: Sequence[tuple[Column, list[Cell]]],
) -> tuple[list[Column], list[list[Cell]]]:
    """Return the columns and the rows of a table of models and scores."""
    heads = [Column(head.title) for head, _ in columns]
    if len(columns) <= max(_MOST_COLUMNS, len(names)):
        rows = []
        for number, name in enumerate(names):
            rows.append([Cell(name), *(cells[number] for _, cells in columns)])
        return [Column("", is_number=False), *heads], rows
    rows = []
    for head, cells in columns:
        rows.append([Cell(head.title.replace("\n", " ")), *cells])
    # A long name folds after its first part.
    titles = [name.replace("/", "/\n", 1) for name in names]
    return [Column("", is_number=False), *map(Column, titles)], rows


def _title_with_count(title: str, intervals: Iterable[Interval | None]) -> str:
    counts = sorted({interval.n for interval in intervals if interval})
    if not counts:
        return title
    numbers = str(counts[0])
    if len(counts) > 1:
        numbers += f"–{counts[-1]}"
    between = ", " if "\n" in title else "\n"
    return f"{title}{between}n={numbers}"


def _choose_models(
    board: Board,
    length: int | None,
    context: str,
    published: int,
) -> list[ShownModel]:
    """Return the user's models with a score, and the best published ones if there is one of the user's."""
    part = board.main_part(length)
    keys = [key for key in board.scores if key.length == length]
    models = set()
    for key in keys:
        if key.context == context:
            models.add(key.model)
    floors = sorted(board.floors(part, length), key=lambda floor: -floor.interval.mean)
    scores = [
        *board.ranking(length, part),
        *board.without_rank(length, part),
        *floors,
    ]
    order = dict.fromkeys([*(score.model for score in scores), *board.own_models])
    own = []
    for model in order:
        if model in board.own_models and model in models:
            own.append(model)
    if board.runs and not own:
        return []
    if context != "full":
        return own
    competing = board.competing(length, part)
    best = []
    for score in competing:
        if score.is_published:
            best.append(score.model)
    return [*own, *best[:published]]


def caveat_kinds(caveats: Iterable[Caveat]) -> str:
    """Return the reasons without their numbers and tasks."""
    return ", ".join(dict.fromkeys(caveat.brief for caveat in caveats))


def shown_models(ranking: Sequence[Result]) -> list[ShownModel]:
    """Return the models that plots show, best first: the user's own, and then the best published ones."""
    own = []
    for score in ranking:
        if not score.is_published:
            own.append(score.model)
    published = []
    for score in ranking:
        if score.is_published:
            published.append(score.model)
    return [*own, *published[: max(SHOWN - len(own), _FEWEST_PUBLISHED)]]


@cache
def short_name(model: ShownModel) -> str:
    """Return the name of a model in plots."""
    return FLOORS.get(model, show_model(model))


def model_cell(board: Board, model: ShownModel, context: str = "full") -> Cell:
    """Return a model's name. Its tag puts the row among the rows of its kind."""
    if context == "none":
        return Cell(show_model(model), detail="closed book", tag="floor")
    kind = board.kinds[model]
    return Cell(
        show_model(model),
        detail="" if kind == "own" else kind,
        tag="" if kind == "published" else kind,
    )


def score_cell(result: Result | None, best: float | None = None) -> Cell:
    """Return a score with its interval and mark. `best` is the best of its column. The note of a dash explains it."""
    if result is None:
        return Cell(DASH, note="not run")
    reasons = describe(result.caveats) if result.caveats else []
    if not result.has_score:
        return Cell(DASH, note="; ".join(reasons) or "no scored answer")
    interval = result.interval
    if interval.n:
        notes = [f"n = {interval.n}"]
    else:
        notes = ["the number of questions is not known"]
    if not result.is_published:
        notes += score_notes(result)
    notes += reasons
    text = format_percent(interval.mean)
    tag = ""
    if result.caveats:
        text = add_mark(text)
        tag = "caveats"
    elif interval.mean == best:
        tag = "best"
    ends = format_ends(interval)
    return Cell(text, interval.mean, ends, "; ".join(notes), tag=tag)


def rho_cell(correlation: Correlation) -> Cell:
    """Return a correlation with its interval; its p-value is a tooltip."""
    if math.isnan(correlation.rho):
        return Cell(DASH, note="too few different values")
    return Cell(
        format_decimals(correlation.rho),
        correlation.rho,
        format_ends(correlation, format_decimals),
        note=format_p_statement(correlation.p_value),
    )


def rank_cell(rank: Rank | None, note: str = "no rank") -> Cell:
    """Return a rank with its range, or a dash for None, with a note that says why there is none."""
    if rank is None:
        return Cell(DASH, note=note)
    return Cell(
        f"{rank.rank:g}",
        rank.rank,
        detail=f"{rank.low}–{rank.high}" if rank.high > rank.low else "",
    )


def plot_row(board: Board, result: Result, **about: str) -> dict[str, Any]:
    """Return a score with its model, its interval and its mark for the data of a plot."""
    row: dict[str, Any] = {"model": short_name(result.model), **about}
    row |= interval_row(result.interval)
    if result.caveats:
        row |= {"mark": MARK, "note": caveat_kinds(result.caveats)}
    row["kind"] = board.kinds[result.model]
    return row


def interval_row(interval: Interval) -> dict[str, float | None]:
    """Return a mean with its interval for the data of a plot."""
    ends = {"score": interval.mean, "low": interval.low, "high": interval.high}
    # Six digits are exact enough for every use, and keep pages small.
    row = {}
    for name, value in ends.items():
        row[name] = None if math.isnan(value) else round(value, 6)
    return row


SERVER = "http://127.0.0.1:8000"
"""Default address of `helm-longctx serve`."""

_MOST_RUNS = 3
"""Number of runs whose names are printed."""

_MOST_NAMES = 4
"""Number of columns, and of tasks, that a line names for a reason why scores are not comparable."""

_MOST_LINES = 12
"""Number of lines about cut answers of a benchmark."""


def print_scores(folder: Path, suite: Suite) -> None:
    """Print the scores of a suite, with HELM's other scenarios, and where its answers and pages are."""
    print_blocks([*score_tables(suite.boards), guest_table(folder, suite.results)])
    for note in notes(suite.boards):
        print(escape_invisible(note))
    for line in _answer_addresses(folder, suite.boards):
        print(line)
    print(
        f"The leaderboard: helm-longctx serve --suite {folder.name} --output-path"
        f" {folder.parent.parent}"
    )


def leaderboard_rows(boards: Iterable[Board]) -> Iterator[dict[str, Any]]:
    """Yield a row for each model of each board: its scores in 0 to 1 by column, and why some are not comparable."""
    for board in boards:
        for model in board.models:
            scores = _columns(board, model)
            cut_answers = {}
            without_known_errors = {}
            unread = {}
            for name, score in scores.items():
                if cut := find_wide_bounds(score):
                    cut_answers[name] = asdict(cut)
                if right := without_errors(score):
                    without_known_errors[name] = right.mean
                share = unread_share(score)
                if share is not None:
                    unread[name] = share
            yield {
                "leaderboard": board.title,
                "model": model,
                "scores": {name: score.interval.mean for name, score in scores.items()},
                "cut_answers": cut_answers,
                "without_known_errors": without_known_errors,
                "unread": unread,
                "notes": _notes(scores),
            }


def notes(boards: Iterable[Board]) -> Iterator[str]:
    """Yield a line for each reason why scores are not comparable, for each score that cut answers can move by more than
    its interval, for each task with known errors, and for generated questions with the command that gets others."""
    generated: dict[str, list[str]] = {}
    for board in boards:
        reasons: dict[str, list[str]] = defaultdict(list)
        for model in board.own_models:
            if text := _notes(_columns(board, model), _MOST_NAMES):
                reasons[text].append(model)
        for text, models in reasons.items():
            if len(models) == len(board.own_models) > 1:
                names = describe_all(len(models), "model")
            else:
                names = ", ".join(models)
            yield f"{MARK} Not comparable: {board.title}, {names}: {text}"
        yield from _notes_on_results(board)
        for _, results in board.runs:
            for result in results:
                for caveat in result.caveats:
                    if caveat.kind == GENERATED:
                        generated.setdefault(caveat.task, []).append(caveat.detail)
    if generated:
        yield f"Generated questions, not the benchmarks' own: {', '.join(generated)}"
        entries = dict.fromkeys(chain.from_iterable(generated.values()))
        if any(entries):
            line = fetch_line(filter(None, entries))
            yield f"The benchmarks' own questions: {line}"


def _notes_on_results(board: Board) -> Iterator[str]:
    """Yield a line for each score that several judges gave, as a table has one of them, for cut answers and errors."""
    by_key: dict[ScoreKey, list[Result]] = defaultdict(list)
    for result in (*board.tasks, *board.categories):
        # A mean of a single task repeats it.
        if result.has_score and result.judges and len(result.parts) != 1:
            by_key[score_key(result)].append(result)
    for key, results in by_key.items():
        if len(results) > 1:
            scores = []
            for result in results:
                score_text = format_interval(result.interval, is_marked=result.caveats)
                score_text += f" by {' and '.join(sorted(result.judges))}"
                if result is board.scores.get(key):
                    score_text += " (in the table)"
                scores.append(score_text)
            yield f"Several judges: {board.title}, {key.model}, {_heading(board, results[0])}: {'; '.join(scores)}"
    wide = []
    for score in own_scores(board):
        if cut := find_wide_bounds(score):
            wide.append((score, cut))
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
            yield f"Known errors: {title}: {describe_count(len(instances), 'question')}, which the report lists"


def _answer_addresses(folder: Path, boards: Iterable[Board]) -> Iterator[str]:
    """Yield lines that say where the answers of runs are: their files, and their pages on HELM's server."""
    names = []
    for board in boards:
        for run, _ in board.runs:
            names.append(run.path.name)
    if names:
        yield f"Answers: {folder}/RUN/{STATES}; with `serve`, {SERVER}/#/runs/RUN. RUN is one of"
        for name in names[:_MOST_RUNS]:
            yield f"  {name}"
    if len(names) > _MOST_RUNS:
        yield f"  and {len(names) - _MOST_RUNS} more"


def _columns(board: Board, model: ShownModel) -> dict[str, Result]:
    """Return the scores of a model by heading, such as `Recall 8k` and `closed book Recall 8k`."""
    scores = {}
    for length in board.lengths:
        for context in ("full", "none"):
            for part in board.parts_at(length, context):
                if score := board.score(model, part, length, context):
                    scores[_heading(board, score)] = score
    return scores


def _heading(board: Board, score: Result) -> str:
    closed = "closed book" if score.context == "none" else ""
    words = [closed, board.titles[score.part], label(score.length)]
    return " ".join(word for word in words if word)


def _notes(scores: dict[str, Result], most: int | None = None) -> str:
    reasons = []
    for heading, score in scores.items():
        for caveat in score.caveats:
            reasons.append(ColumnReason(heading, caveat.text, caveat.task))
    return describe_columns(reasons, most)
