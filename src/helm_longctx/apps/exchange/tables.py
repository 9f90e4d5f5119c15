"""Writes and reads tables: long ones of all statistics and answers as CSV and Parquet, and wide ones of models.

A wide table has a row for each model; for papers it is also written as LaTeX with booktabs, and as Markdown. The long
tables can be read again: answers become runs, and scores become published results.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from helm_longctx.apps.exchange.answers import LENGTH, RECORD, ForeignAnswer, make_runs
from helm_longctx.apps.exchange.export import (
    AnswerRow,
    Average,
    ScoreRow,
    answers,
    averages,
    scores,
)
from helm_longctx.documents.document import (
    Cell,
    Column,
    Table,
    read_csv,
    write_csv,
)
from helm_longctx.documents.numbers import (
    MARK,
    escape_markdown,
    escape_tex,
    format_amount,
)
from helm_longctx.documents.site import latex_table, markdown_table
from helm_longctx.errors import InputError, bad_argument, is_format_error, shorten
from helm_longctx.failures import Failure
from helm_longctx.results.boards import Board, Suite, label
from helm_longctx.results.cells import score_cell, unread_share
from helm_longctx.results.reading import Result
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.lengths import parse_length, sort_lengths
from helm_longctx.tasks.outputs import Output, OutputReader, OutputScore, RunOrScore
from helm_longctx.tasks.publications import Published
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import GENERATED_SOURCE, MAIN_METRIC, Task
from helm_longctx.writing import replace_file, replacing

_Row = Mapping[str, Any]

_ROWS_AT_ONCE = 1000

_OWN_COLUMN = "comparability"
"""A column of the tables that this package exports; see `read_csv`."""


@dataclass(frozen=True)
class _Wide:
    """The scores of a board at a length: a row for each model, a column for each task and mean.

    Args:
        rows: from models to results by part. A result without a score can be missing.
    """

    board: Board
    length: int | None
    context: str
    columns: Mapping[str, str]
    rows: Mapping[str, Mapping[str, Result]]

    @property
    def title(self) -> str:
        """The title, such as `HELMET 8k`."""
        closed = "closed book" if self.context == "none" else ""
        return " ".join(filter(None, (self.board.title, label(self.length), closed)))


def wide_tables(boards: Iterable[Board]) -> Iterator[_Wide]:
    """Yield the wide tables of boards: by context and length."""
    for board in boards:
        # Models and tasks whose requests all failed have a row, too.
        models = dict.fromkeys((*board.models, *(key.model for key in board.results)))
        lengths = sort_lengths(key.length for key in board.results)
        for context in ("full", "none"):
            for length in lengths:
                parts = board.table_parts(models, length, context)
                rows: dict[str, dict[str, Result]] = defaultdict(dict)
                for model, part in product(models, parts):
                    result = board.find(model, part, length, context)
                    if result and not board.repeats_task(result):
                        rows[model][part] = result
                if parts:
                    columns = {part: board.titles[part] for part in parts}
                    yield _Wide(
                        board=board,
                        length=length,
                        context=context,
                        columns=columns,
                        rows=rows,
                    )


def write_tables(
    suite: Suite,
    benchmarks: Sequence[Benchmark],
    folder: Path,
    kind: str,
) -> Iterator[tuple[Path, int]]:
    """Write the long and the wide tables of a suite, and yield the files and their numbers of rows.

    Raises:
        InputError: a file of a run is damaged.
    """
    write = write_csv if kind == "csv" else _write_parquet
    contents: dict[str, tuple[Sequence[str], Iterable[Sequence[Any]]]] = {
        "scores": (ScoreRow._fields, scores(suite)),
        "averages": (Average._fields, averages(suite.boards)),
        "answers": (AnswerRow._fields, answers(suite.results, benchmarks)),
    }
    by_board: dict[str, list[_Wide]] = defaultdict(list)
    for table in wide_tables(suite.boards):
        by_board[table.board.file_name].append(table)
    # The wide tables of a board are one, with five columns for each score.
    for board_name, tables in by_board.items():
        names: dict[str, None] = {}
        for table in tables:
            names |= dict.fromkeys(table.columns)
        heads: list[str] = []
        for name in names:
            heads.append(name)
            for end in ("low", "high", "instances", "failed"):
                heads.append(f"{name}_{end}")
        rows: list[list[Any]] = []
        for table in tables:
            for model, cells in table.rows.items():
                row = [model, label(table.length), table.context]
                for name in names:
                    row += _wide_values(cells.get(name))
                rows.append(row)
        contents[f"wide_{board_name}"] = (["model", "length", "context", *heads], rows)
    for name, (columns, content) in contents.items():
        path = folder / f"{name}.{kind}"
        if path.is_dir():
            raise InputError(f"to={str(path)!r} is a folder; give a file")
        yield path, write(path, columns, content)


def _wide_values(result: Result | None) -> list[Any]:
    """Return the five columns of a score in a wide table."""
    if result is None:
        return [None] * 5
    interval = result.interval
    ends = (interval.mean, interval.low, interval.high)
    values = []
    for end in ends:
        values.append(None if math.isnan(end) else end)
    return [*values, interval.n or None, result.failed]


def _write_parquet(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
) -> int:
    """Write a Parquet file and return the number of rows. A column has the type of its first value.

    Raises:
        InputError: a column has values of several kinds.
    """
    import pyarrow
    from pyarrow import parquet

    content = [list(row) for row in rows]
    try:
        values = {}
        for index, name in enumerate(columns):
            values[name] = [row[index] for row in content]
        table = pyarrow.table(values)
        with replacing(path) as part:
            parquet.write_table(
                table, part, compression="zstd", row_group_size=_ROWS_AT_ONCE
            )
    except (pyarrow.ArrowException, UnicodeError) as error:
        raise InputError(f"{path}: {error}") from error
    return len(content)


def _read(path: Path, entry: str) -> Iterator[RunOrScore]:
    rows: list[ForeignAnswer] = []
    for number, row in enumerate(_rows(path), 2 if path.suffix == ".csv" else 1):
        location = f"{path}: row {number}"
        if "answer" in row:
            rows.append(_answer(row, location, entry))
        elif "score" in row:
            yield from _score(row, location)
        else:
            raise InputError(
                f"{location}: it has neither a column 'answer' nor a column 'score'"
            )
    yield from make_runs(rows, entry)


def _rows(path: Path) -> Iterator[_Row]:
    if path.suffix != ".parquet":
        yield from read_csv(path, _OWN_COLUMN)
        return
    from pyarrow import parquet

    try:
        for batch in parquet.ParquetFile(path).iter_batches(_ROWS_AT_ONCE):
            yield from batch.to_pylist()
    except Exception as error:
        if not (isinstance(error, OSError) or is_format_error(error)):
            raise
        raise InputError(f"{path}: not a readable table: {error}") from error


def _answer(row: _Row, location: str, entry: str) -> ForeignAnswer:
    """Return a row of our table of answers, or of one with at least `answer`, `references` and `task` or an entry."""
    record = row.get(RECORD) or None
    failure = row.get("failure") or row.get("error")
    kind = row.get("failure_kind") or None
    if kind is not None and kind not in [*Failure]:
        raise bad_argument(
            location, "failure_kind", kind, [known.value for known in Failure]
        )
    if record is not None:
        try:
            record = json.loads(record)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"{location}: {RECORD} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise InputError(
                f"{location}: {RECORD} must be a JSON object, found {shorten(record)}"
            )
    repeat = _whole(row, "repeat", location, 1)
    length = row.get("length")
    references = row.get("references")
    # The cells of our tables have the accepted answers in one text.
    if isinstance(references, str):
        references = references.split(" | ")
    fields: dict[str, Any] = {
        "entry": row.get("entry"),
        "question": row.get("question"),
    }
    if record is None:
        fields["references"] = references
    else:
        fields[RECORD] = record
    if length:
        fields[LENGTH] = parse_length(length, location)
    output = Output(
        id=str(row.get("instance") or location.rpartition(" ")[2]),
        prediction=None,
        references=(),
        repeat=repeat - 1,
        error=str(row.get("error") or ""),
        failure=None if kind is None else Failure(kind),
        input_tokens=_whole(row, "tokens", location, 0) or None,
        depth=_number(row, "depth", location),
        group=str(row.get("group") or ""),
        is_generated=row.get("source") == GENERATED_SOURCE,
        location=location,
    )
    if failure or row["answer"] is None:
        text = None
    else:
        text = str(row["answer"])
    task = str(row.get("task") or "")
    model = str(row.get("model") or "")
    return ForeignAnswer(
        task=task,
        text=text,
        fields=fields,
        output=output,
        model=model,
    )


def _score(row: _Row, location: str) -> Iterator[OutputScore]:
    """Yield the task's score in a row of our table of scores, or an official metric of which the score is a mean.

    Rows of other statistics, and of runs that do not count, are not needed.
    """
    published_model = str(row.get("published_model") or "")
    model = published_model or str(row.get("model") or "")
    # A published score that stands in two categories counts in one of them, and is a part of both means.
    if str(row.get("counts")) == "False" and not published_model:
        return
    name = str(row.get("entry") or "")
    value = _number(row, "score", location)
    benchmark = next((owner for owner in BENCHMARKS if name in owner.entries), None)
    metric = str(row.get("metric") or MAIN_METRIC)
    task = str(row.get("task") or "")
    if benchmark:
        tasks = []
        for known in benchmark.tasks:
            if known.name == task:
                tasks.append(known)
    else:
        tasks = []
    if metric != MAIN_METRIC and not _is_needed(metric, tasks, bool(published_model)):
        return
    if benchmark is None or value is None or not 0 <= value <= 1:
        raise InputError(
            f"{location}: it must have a score from 0 to 1, and the name of a run entry"
            " in the column 'entry'"
        )
    if row.get("length"):
        length = parse_length(row["length"], location)
    else:
        length = None
    scores: dict[str, float] = {}
    metrics: dict[str, dict[str, float]] = {}
    if metric == MAIN_METRIC:
        scores[task] = value
    else:
        metrics[task] = {metric: value}
    published = Published(
        model=model,
        category=benchmark.entries[name].name,
        length=length,
        scores=scores,
        # A score of a run is marked, because nobody can see its answers.
        source="" if published_model else Path(location.rpartition(":")[0]).name,
        metrics=metrics,
    )
    yield OutputScore(
        entry=name,
        location=location,
        row=published,
        context=str(row.get("context") or "full"),
    )


def _is_needed(metric: str, tasks: Iterable[Task], is_published: bool) -> bool:
    """Whether a metric is one of several of which a task's score is a mean, or a further one of a published row."""
    for task in tasks:
        if len(task.headline) > 1 and metric in task.headline:
            return True
        # A published row can have further metrics. Its score is no mean of them.
        if is_published and metric in task.metrics:
            return True
    return False


def _number(row: _Row, name: str, location: str) -> float | None:
    value = row.get(name)
    if value in (None, ""):
        return None
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{location}: {name}={shorten(value)} is not a number"
        ) from error


def _whole(
    row: _Row,
    name: str,
    location: str,
    default: int,
) -> int:
    number = _number(row, name, location)
    if number is None:
        return default
    if not number.is_integer() or number < default:
        raise InputError(
            f"{location}: {name}={shorten(row[name])} must be a whole number from {default}"
        )
    return int(number)


READER = OutputReader(
    "tables of answers or scores (answers.csv, scores.parquet)",
    re.compile(r".*(?:answers|scores)[^/]*\.(?:csv|parquet)"),
    _read,
)


_ABOUT = (
    f"Scores in percent, with {LEVEL_TEXT} intervals in parentheses. † marks a score"
    " that is not comparable. Requests without an answer are in no score; their number"
    " follows as “n failed”. “n % unread” is the share of answers in which the scorer"
    " found nothing that it could read."
)


def write_paper_tables(
    suite: Suite,
    benchmarks: Sequence[Benchmark],
    folder: Path,
    kind: str,
) -> Iterator[tuple[Path, int]]:
    """Write `scores.md`, or `scores.tex` for papers with booktabs, with a table for each benchmark and length.

    Yields the file and its number of rows.
    """
    tables = list(map(_table, wide_tables(suite.boards)))
    if kind == "md":
        texts = [escape_markdown(_ABOUT)]
        for table in tables:
            if table.about:
                reasons = f"\n\n{escape_markdown(table.about)}"
            else:
                reasons = ""
            texts.append(
                f"**{escape_markdown(table.title)}**\n\n{markdown_table(table)}{reasons}"
            )
    else:
        texts = [f"% {escape_tex(_ABOUT)}"]
        for table in tables:
            about = " ".join(filter(None, [_ABOUT, table.about]))
            texts.append(latex_table(replace(table, about=about)))
    path = folder / f"scores.{kind}"
    replace_file(path, "\n\n".join(texts).encode(), b"\n")
    yield path, sum(len(table.rows) for table in tables)


def _table(wide: _Wide) -> Table:
    heads = [Column("Model", is_number=False), *map(Column, wide.columns.values())]
    rows = []
    for model, results in wide.rows.items():
        cells = [Cell(model)]
        for score in map(results.get, wide.columns):
            # Such a cell is `41.2 † (3 failed)`, with the interval before the number of failed requests.
            cell = score_cell(score)
            if score and score.failed:
                failed = f"{score.failed} failed"
            else:
                failed = ""
            if score and score.has_score:
                share = unread_share(score)
            else:
                share = None
            if share:
                unread = f"{format_amount(100 * share)} % unread"
            else:
                unread = ""
            details = ", ".join(filter(None, (cell.detail, failed, unread)))
            cells.append(replace(cell, detail=details))
        rows.append(cells)
    return Table(
        name="scores",
        title=wide.title,
        columns=heads,
        rows=rows,
        about=_list_reasons(wide),
    )


def _list_reasons(wide: _Wide) -> str:
    """Return why marked scores are not comparable, with the columns that each reason is about. It is empty for none."""
    columns: dict[str, dict[str, None]] = defaultdict(dict)
    for results in wide.rows.values():
        for part, result in results.items():
            # A score that is missing has a dash, not a mark.
            if not result.has_score:
                continue
            for caveat in result.caveats:
                columns[caveat.text][wide.columns[part]] = None
    texts = []
    for reason, titles in columns.items():
        texts.append(f"{reason} ({', '.join(titles)})")
    return f"{MARK} {'; '.join(texts)}." if texts else ""
