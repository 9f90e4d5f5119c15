"""Writes and reads CSV and Parquet files: long tables of all statistics and answers, and wide tables of models.

A wide table has a row for each model. The long tables can be read again: answers become runs, and scores become
published results.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.errors import InputError, is_format_error, shorten
from helm_longctx.formats.answers import LENGTH, RECORD, Answer, make_runs
from helm_longctx.protocol.benchmark import Benchmark, Published
from helm_longctx.protocol.lengths import length_label, parse_length
from helm_longctx.protocol.outputs import Found, Output, OutputReader, OutputScore
from helm_longctx.protocol.task import MAIN_METRIC
from helm_longctx.report.answers import Answer as AnswerRow
from helm_longctx.report.answers import answers
from helm_longctx.report.export import Average, Score, averages, scores, write_csv
from helm_longctx.report.results import Result, category_results, overall_results, read_results, split_folders
from helm_longctx.statistics.intervals import Interval

Row = Mapping[str, Any]

ROWS_AT_ONCE = 1000
"""Number of rows in a group of a Parquet file, which are read together."""

_LONGEST_FIELD = 1 << 28
"""Largest number of characters of a field in a CSV file, such as a prompt."""


class Cell(NamedTuple):
    """A score in a wide table.

    Args:
        failed: number of requests without an answer.
        lacking: codes of the reasons why it is not comparable, separated by `;`.
    """

    interval: Interval
    failed: int
    lacking: str


@dataclass(frozen=True)
class Wide:
    """The scores of a benchmark at a length: a row for each model, a column for each task and mean.

    Args:
        columns: from names to titles.
        rows: from models to cells by the columns' names. A cell without a score can be missing.
    """

    benchmark: Benchmark
    length: int | None
    context: str
    columns: Mapping[str, str]
    rows: Mapping[str, Mapping[str, Cell]]

    @property
    def title(self) -> str:
        """The title, such as `HELMET 8k`."""
        label = "" if self.length is None else length_label(self.length)
        return " ".join(filter(None, (self.benchmark.title, label, "closed book" if self.context == "none" else "")))


def wide_tables(suite: Path, benchmarks: Iterable[Benchmark]) -> Iterator[Wide]:
    """Yield the wide tables of a suite: by benchmark, context and length.

    Raises:
        InputError: a file of a run is damaged.
    """
    benchmarks = tuple(benchmarks)
    results = read_results(suite, benchmarks)
    for benchmark, own in chain.from_iterable(split_folders(results, benchmark) for benchmark in benchmarks):
        categories = category_results(own, benchmark) if len(benchmark.tasks) > 1 else []
        rows: dict[tuple[str, int], dict[str, dict[str, Cell]]] = defaultdict(lambda: defaultdict(dict))
        for result in [*own, *categories]:
            rows[result.context, result.length or 0][result.model][_column(benchmark, result)] = _cell(result)
        for model, length, interval, _ in overall_results(categories, benchmark):
            if interval:
                rows["full", length or 0][model][benchmark.overall] = Cell(interval, 0, "")
        for (context, length), by_model in sorted(rows.items()):
            used = {name for cells in by_model.values() for name in cells}
            columns = {name: title for name, title in _columns(benchmark).items() if name in used}
            yield Wide(benchmark, length or None, context, columns, dict(sorted(by_model.items())))


def _columns(benchmark: Benchmark) -> dict[str, str]:
    """Return all columns in their order: the overall score, and each category before its tasks."""
    columns = {benchmark.overall: benchmark.overall} if benchmark.overall else {}
    for category in benchmark.categories:
        columns[_category_column(category.name)] = category.title
        columns |= {task.name: task.title for task in (*category.tasks, *category.variants)}
    return columns


def _column(benchmark: Benchmark, result: Result) -> str:
    return result.task or _category_column(result.category)


def _category_column(category: str) -> str:
    return f"{category}_mean" if category else "mean"


def _cell(result: Result) -> Cell:
    lacking = ";".join(lack.code for lack in result.lacks)
    return Cell(result.interval, sum(bool(row.failure) for row in result.rows), lacking)


def write_tables(suite: Path, benchmarks: Sequence[Benchmark], folder: Path, kind: str) -> Iterator[tuple[Path, int]]:
    """Write the long and the wide tables of a suite, and yield the files and their numbers of rows.

    Args:
        kind: `csv` or `parquet`.

    Raises:
        InputError: a file of a run is damaged.
    """
    rows = list(scores(suite, benchmarks))
    write = write_csv if kind == "csv" else write_parquet
    contents: dict[str, tuple[Sequence[str], Iterable[Sequence[Any]]]] = {
        "scores": (Score._fields, rows),
        "averages": (Average._fields, averages(rows, benchmarks)),
        "answers": (AnswerRow._fields, answers(suite, benchmarks)),
    }
    by_benchmark: dict[str, list[Wide]] = defaultdict(list)
    for table in wide_tables(suite, benchmarks):
        by_benchmark[table.benchmark.name].append(table)
    contents |= {f"wide_{name}": _flat(tables) for name, tables in by_benchmark.items()}
    for name, (columns, content) in contents.items():
        path = folder / f"{name}.{kind}"
        if path.is_dir():
            raise InputError(f"to={str(path)!r} is a folder; allowed: a file")
        yield path, write(path, columns, content)


def _flat(tables: Sequence[Wide]) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and rows of wide tables as one table, with five columns for each score."""
    names = list(dict.fromkeys(name for table in tables for name in table.columns))
    parts = ("", "_low", "_high", "_instances", "_failed")
    rows: list[list[Any]] = []
    for table in tables:
        label = "" if table.length is None else length_label(table.length)
        for model, cells in table.rows.items():
            values = [value for name in names for value in _values(cells.get(name))]
            rows.append([model, label, table.context, *values])
    return ["model", "length", "context", *(f"{name}{part}" for name in names for part in parts)], rows


def _values(cell: Cell | None) -> list[Any]:
    if cell is None:
        return [None] * 5
    ends = (cell.interval.mean, cell.interval.low, cell.interval.high)
    return [*(None if math.isnan(end) else end for end in ends), cell.interval.n or None, cell.failed]


def write_parquet(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write a Parquet file and return the number of rows. A column's type is that of its first value.

    Raises:
        InputError: a column has values of several kinds.
    """
    import pyarrow
    from pyarrow import parquet

    content = [list(row) for row in rows]
    try:
        table = pyarrow.table({name: [row[place] for row in content] for place, name in enumerate(columns)})
        parquet.write_table(table, path, compression="zstd", row_group_size=ROWS_AT_ONCE)
    except (pyarrow.ArrowException, UnicodeError) as error:
        raise InputError(f"{path}: {error}") from error
    return len(content)


def _read(path: Path, entry: str) -> Iterator[Found]:
    """Yield the rows of a table as answers of models or as scores."""
    found: list[Answer] = []
    for number, row in enumerate(_rows(path), 2 if path.suffix == ".csv" else 1):
        place = f"{path}: row {number}"
        if "answer" in row:
            found.append(_answer(row, place, entry))
        elif "score" in row:
            yield from _score(row, place)
        else:
            raise InputError(f"{place}: it has neither a column 'answer' nor a column 'score'")
    yield from make_runs(found, entry)


def _rows(path: Path) -> Iterator[Row]:
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            for batch in parquet.ParquetFile(path).iter_batches(ROWS_AT_ONCE):
                yield from batch.to_pylist()
            return
        csv.field_size_limit(_LONGEST_FIELD)
        with path.open(encoding="utf-8-sig", errors="surrogatepass", newline="") as file:
            yield from csv.DictReader(file, strict=True)
    except (OSError, csv.Error, UnicodeError) as error:
        raise InputError(f"{path}: not a readable table: {error}") from error
    except Exception as error:
        if not is_format_error(error):
            raise
        raise InputError(f"{path}: not a readable table: {type(error).__name__}") from error


def _answer(row: Row, place: str, entry: str) -> Answer:
    """Return a row of our table of answers, or of one with at least `answer`, `references` and `task` or an entry."""
    record, failure = _record(row, place), row.get("failure") or row.get("error")
    repeat, length = _whole(row, "repeat", place, 1), row.get("length")
    fields: dict[str, Any] = {"entry": row.get("entry"), "question": row.get("question")}
    fields |= {RECORD: record} if record is not None else {"references": _texts(row.get("references"))}
    fields |= {LENGTH: parse_length(length, place)} if length else {}
    output = Output(
        id=str(row.get("instance") or place.rpartition(" ")[2]),
        prediction=None,
        references=(),
        repeat=repeat - 1,
        error=str(row.get("error") or ""),
        input_tokens=_whole(row, "tokens", place, 0) or None,
        depth=_number(row, "depth", place),
        group=str(row.get("group") or ""),
    )
    text = row.get("answer")
    model = str(row.get("model") or "")
    return Answer(
        place, str(row.get("task") or ""), None if failure or text is None else str(text), fields, output, model
    )


def _record(row: Row, place: str) -> dict[str, Any] | None:
    if not (text := row.get(RECORD)):
        return None
    try:
        record = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{place}: {RECORD} is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise InputError(f"{place}: {RECORD} must be a JSON object, found {shorten(record)}")
    return record


def _texts(value: Any) -> Any:
    """Return the accepted answers of a cell, which are separated by ` | ` as in our tables."""
    return value.split(" | ") if isinstance(value, str) else value


def _score(row: Row, place: str) -> Iterator[OutputScore]:
    """Yield the task's score in a row of our table of scores. Rows of other statistics are not needed."""
    if (row.get("metric") or MAIN_METRIC) != MAIN_METRIC:
        return
    name, value = str(row.get("entry") or ""), _number(row, "score", place)
    benchmark = next((each for each in BENCHMARKS if name in each.entries), None)
    if benchmark is None or value is None or not 0 <= value <= 1:
        raise InputError(
            f"{place}: it must have a score from 0 to 1, and the name of a run entry in the column 'entry'"
        )
    length = parse_length(row["length"], place) if row.get("length") else None
    model = str(row.get("model") or "").removeprefix("published/")
    scores = {str(row.get("task") or ""): value}
    yield OutputScore(name, place, Published(model, benchmark.entries[name].name, length, scores))


def _number(row: Row, name: str, place: str) -> float | None:
    value = row.get(name)
    if value in (None, ""):
        return None
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{place}: {name}={shorten(value)} is not a number") from error


def _whole(row: Row, name: str, place: str, default: int) -> int:
    number = _number(row, name, place)
    if number is None:
        return default
    if not number.is_integer() or number < default:
        raise InputError(f"{place}: {name}={shorten(row[name])} must be a whole number from {default}")
    return int(number)


READER = OutputReader(
    "tables of answers or scores (answers.csv, scores.parquet)",
    re.compile(r".*(?:answers|scores)[^/]*\.(?:csv|parquet)"),
    _read,
)
