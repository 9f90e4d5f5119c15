"""Reads files of other programs into a suite: answers become runs, and scores without answers published results."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from helm.common.object_spec import get_class_by_name

from helm_longctx.apps.exchange import inspect_logs, lm_eval, tables
from helm_longctx.apps.exchange.entries import resolve_entry
from helm_longctx.apps.exchange.run_folders import check_answers, write_run
from helm_longctx.errors import InputError, bad_argument, is_format_error, shorten
from helm_longctx.results.reference import add_rows
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.outputs import OutputReader, OutputRun, OutputScore, RunOrScore
from helm_longctx.tasks.publications import Published

_MODEL = re.compile(r"[\w.-]+/[\w.:-]+")
"""Matches a model's name in HELM: an organization and a name."""

ORGANIZATION = "imported"
"""The organization of a model whose name has none."""


class Imported(NamedTuple):
    """The result of an import.

    Args:
        runs: the folders of the runs, with the numbers of their answers.
        scores: number of scores without answers, by the benchmark's name.
        left_out: number of scores that the runs have already.
    """

    runs: dict[Path, int]
    scores: dict[str, int]
    left_out: int


def find_readers(benchmarks: Iterable[Benchmark]) -> dict[str, OutputReader]:
    """Return the readers by the names of their formats: first readers of benchmarks, then readers of programs."""
    own = {each.name: get_class_by_name(each.outputs) for each in benchmarks if each.outputs}
    return {**own, "inspect": inspect_logs.READER, "lm-eval": lm_eval.READER, "csv": tables.READER}


def import_files(
    paths: Iterable[Path],
    suite: Path,
    benchmarks: Sequence[Benchmark],
    format: str | None = None,
    entry: str = "",
    model: str = "",
) -> Imported:
    """Read files, and all files of known formats in folders, and write their results into a suite.

    Nothing is written before all files have been read.

    Args:
        suite: the suite's folder, which need not exist.
        format: a key of `find_readers`; None to choose it by the files' names.
        entry: the run entry of the answers, instead of that in the files.
        model: the model's name, instead of that in the files.

    Raises:
        InputError: a file is malformed, or does not name its task.
    """
    found = [each for path in paths for each in _read(path, find_readers(benchmarks), format, entry)]
    runs = [(_check_run(benchmarks, each), each) for each in found if isinstance(each, OutputRun)]
    named = [(run_entry, run, _model_name(model or run.model, run.places[0])) for run_entry, run in runs]
    scores = [each for each in found if isinstance(each, OutputScore)]
    answered = {_run_key(run_entry, run) for run_entry, run, _ in named}
    alone = [each for each in scores if not answered & set(_score_keys(each))]
    left_out = sum(len(each.row.scores) for each in scores) - sum(len(each.row.scores) for each in alone)
    rows = _published_rows(benchmarks, alone, model)
    for benchmark in benchmarks:
        if benchmark.name in rows:
            add_rows(benchmark, suite, rows[benchmark.name])
    folders = {write_run(suite, run_entry, run, name): len(run.outputs) for run_entry, run, name in named}
    counts = {name: sum(len(row.scores) for row in added) for name, added in rows.items()}
    return Imported(folders, counts, left_out)


_Key = tuple[str, str, str, int | None, str]
"""Model, run entry, task, length and context: what a run and a score have in common."""


def _run_key(entry: Entry, run: OutputRun) -> _Key:
    return run.model, entry.name, entry.tasks[0].name, entry.settings.length, entry.settings.context


def _score_keys(score: OutputScore) -> Iterator[_Key]:
    for task in (*score.row.scores, *score.row.metrics):
        yield score.row.model, score.entry, task, score.row.length, score.context


def _read(path: Path, readers: Mapping[str, OutputReader], format: str | None, entry: str) -> Iterator[RunOrScore]:
    """Yield the content of a file or of the files in a folder. A file has the first format that matches its name."""
    if format is not None and format not in readers:
        raise bad_argument("import", "format", format, readers)
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder")
    seen: set[Path] = set()
    for reader in [readers[format]] if format else readers.values():
        for file in reader.files(path):
            if file not in seen and (format or reader.fits(file)):
                seen.add(file)
                yield from _read_file(reader, file, entry)
    if not seen:
        known = "; ".join(f"{name}: {reader.title}" for name, reader in readers.items())
        raise InputError(f"{path}: no file has a known name ({known}); give --format for another name")


def _read_file(reader: OutputReader, file: Path, entry: str) -> Iterator[RunOrScore]:
    """Yield the content of a file. An unexpected structure is also an `InputError`."""
    try:
        yield from reader.read(file, entry)
    except InputError:
        raise
    except Exception as error:
        if not is_format_error(error):
            raise
        raise InputError(f"{file}: not in the format of {reader.title} ({type(error).__name__})") from error


def _check_run(benchmarks: Sequence[Benchmark], run: OutputRun) -> Entry:
    if not run.places:
        raise InputError(f"{run.entry}: there are no answers")
    entry = _check_entry(benchmarks, run.entry, run.places[0])
    check_answers(entry, run)
    return entry


def _check_entry(benchmarks: Sequence[Benchmark], text: str, place: str) -> Entry:
    try:
        return resolve_entry(benchmarks, text)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _model_name(name: str, place: str) -> str:
    """Return a model's name in HELM's form. For a path, only the last part is used."""
    if _MODEL.fullmatch(name):
        return name
    last = name.rstrip("/").rpartition("/")[2]
    if not re.fullmatch(r"[\w.:-]+", last):
        raise InputError(f"{place}: model {shorten(name)} is not a name; give --model, such as meta/llama-3.1-8b")
    return f"{ORGANIZATION}/{last}"


def _published_rows(
    benchmarks: Sequence[Benchmark], scores: Iterable[OutputScore], model: str
) -> dict[str, list[Published]]:
    """Return the scores as published results, by benchmark: scores of one model, category and length are in one row."""
    rows: dict[str, dict[tuple[str, str, int | None], Published]] = defaultdict(dict)
    for score in scores:
        benchmark = next(each for each in benchmarks if score.entry in each.entries)
        row = replace(score.row, model=model or score.row.model)
        if score.context != "full":
            raise InputError(f"{score.place}: a closed-book score can only be imported with its answers")
        if not row.model:
            raise InputError(f"{score.place}: it names no model; give --model")
        length = "" if row.length is None else f",length={length_label(row.length)}"
        for task in filter(None, row.scores):
            argument = f"{benchmark.task_argument}={benchmark.task(task).argument}"
            _check_entry(benchmarks, f"{score.entry}:{argument}{length}", score.place)
        key = (row.model, row.category, row.length)
        rows[benchmark.name][key] = rows[benchmark.name].get(key, row).update(row)
    return {name: list(by_key.values()) for name, by_key in rows.items()}
