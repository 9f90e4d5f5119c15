"""`export`: write a suite's scores and answers as CSV, and a plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.cli.shared import OutputPath, Suite, check_folder, check_picture
from helm_longctx.environment import require
from helm_longctx.errors import InputError
from helm_longctx.report.export import Answer, Average, Score, answers, averages, scores, write_csv
from helm_longctx.report.plot import curves, plot
from helm_longctx.report.suite import suite_folder

DEFAULT_PICTURE = "scores.png"


def export(
    suite: Suite,
    to: Annotated[Path, typer.Option(file_okay=False, help="Folder to write to.")] = Path("export"),
    picture: Annotated[
        str | None, typer.Option("--plot", help="Plot file; the extension selects the format. [default: scores.png]")
    ] = None,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    r"""Write scores.csv (every statistic of every task), averages.csv, answers.csv and a plot over length.

    Averages are over the tasks at each length, and over the lengths of each task.
    The column "lacking" says why a score is not comparable. In the plot such a score is a hollow point.
    The plot needs matplotlib: pip install 'helm-longctx\[plot]'. Without it only the tables are written.
    --plot '' turns the plot off.
    """
    if picture is None:
        picture = _default_picture()
    if picture:
        check_picture("export", Path(picture))
    folder = suite_folder(output_path, suite)
    to.mkdir(parents=True, exist_ok=True)
    rows = list(scores(folder, BENCHMARKS))
    means = list(averages(rows, BENCHMARKS))
    tables: dict[str, tuple[Sequence[str], Iterable[Sequence[Any]]]] = {
        "scores.csv": (Score._fields, rows),
        "averages.csv": (Average._fields, means),
        "answers.csv": (Answer._fields, answers(folder, BENCHMARKS)),
    }
    for option, name in (*(("to", table) for table in tables), ("plot", picture)):
        check_folder(option, to / name if name else None)
    for name, (columns, content) in tables.items():
        print(f"{to / name}: {write_csv(to / name, columns, content)} rows")
    if picture:
        plot(curves(means), to / picture)
        print(to / picture)


def _default_picture() -> str:
    """The default plot file. If matplotlib is missing, print how to install it and return an empty name."""
    try:
        require("plot", DEFAULT_PICTURE)
    except InputError as error:
        print(f"no plot: {error}")
        return ""
    return DEFAULT_PICTURE
