"""The formats in which a suite can be exported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from helm_longctx.apps.exchange import every_eval_ever, lm_eval, tables, typeset
from helm_longctx.errors import bad_argument
from helm_longctx.results.boards import Suite, read_suite
from helm_longctx.tasks.benchmark import Benchmark

Exporter = Callable[[Suite, Sequence[Benchmark], Path], Iterator[tuple[Path, int]]]
"""(suite, benchmarks, folder to write to) → the files with their numbers of rows, as they are written."""

EXPORTERS: Mapping[str, Exporter] = {
    "csv": partial(tables.write_tables, kind="csv"),
    "parquet": partial(tables.write_tables, kind="parquet"),
    "markdown": typeset.write_markdown,
    "latex": typeset.write_latex,
    "lm-eval": lm_eval.write_results,
    "every-eval-ever": every_eval_ever.write_logs,
}


def export_suite(format: str, suite: Path, benchmarks: Sequence[Benchmark], folder: Path) -> Iterator[tuple[Path, int]]:
    """Write a suite in a format, and yield the files with their numbers of rows.

    Args:
        format: a key of `EXPORTERS`.
        suite: the suite's folder.
        folder: where to write; it is made if it does not exist.

    Raises:
        InputError: the format is not known, the suite has no score, or a file of a run is damaged.
    """
    if format not in EXPORTERS:
        raise bad_argument("export", "format", format, EXPORTERS)
    folder.mkdir(parents=True, exist_ok=True)
    yield from EXPORTERS[format](read_suite(suite, benchmarks, keep_answers=False), benchmarks, folder)
