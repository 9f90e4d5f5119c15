"""`export` and `import`: write a suite's results for other programs, and read theirs into a suite."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from helm_longctx.apps.exchange import (
    effective_context,
    every_eval_ever,
    lm_eval,
    score_files,
    tables,
)
from helm_longctx.apps.exchange.export import averages, length_plot
from helm_longctx.config.shared import (
    OutputPath,
    SuiteOption,
    check_folder,
    check_picture,
)
from helm_longctx.documents.plots import write_picture
from helm_longctx.environment import require
from helm_longctx.errors import InputError, bad_argument, describe_count
from helm_longctx.results import boards
from helm_longctx.results.suite import suite_folder, suite_path
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.registry import BENCHMARKS

_DEFAULT_PICTURE = "scores.png"


def export(
    suite: SuiteOption,
    to: Annotated[
        Path, typer.Option(file_okay=False, help="Folder to write to.")
    ] = Path("export"),
    format: Annotated[
        str,
        typer.Option(
            help="Format: csv, parquet, markdown, latex, lm-eval, official,"
            " every-eval-ever, eval-results or effective-context."
        ),
    ] = "csv",
    picture: Annotated[
        str | None,
        typer.Option(
            "--plot",
            help="Plot file; the extension selects the format. [default: scores.png with csv]",
        ),
    ] = None,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    r"""Write a suite's scores and answers for other programs.

    csv and parquet: scores (every statistic of every task), averages, answers, and for each benchmark a wide table with
    a row for each model. markdown and latex: the wide tables, for papers. lm-eval: results and samples as
    lm-evaluation-harness writes them. official: the files of scores that a benchmark's own code writes.
    every-eval-ever: the schema of Every Eval Ever. eval-results: for each model .eval_results/BENCHMARK.yaml for its
    repository on the hub.
    effective-context: for each model one JSON file with scores by length, for programs that choose how much to send.

    All but official have confidence intervals or standard errors, and the number of requests without an answer. These are
    in no score.
    The column "caveats" says why a score is not comparable. The format csv also draws a plot of the scores by length,
    where these scores have the mark †. The plot needs vl_convert: pip install 'helm-longctx\[plot]'. --plot '' turns it
    off.
    """
    is_asked = picture is not None
    if picture is None and format == "csv":
        try:
            require("plot", _DEFAULT_PICTURE)
            picture = _DEFAULT_PICTURE
        except InputError as error:
            print(f"no plot: {error}")
    if picture:
        check_picture("export", Path(picture))
    folder = suite_folder(output_path, suite)
    to.mkdir(parents=True, exist_ok=True)
    check_folder("plot", to / picture if picture else None)
    plot = None
    if picture:
        try:
            plot = length_plot(
                averages(
                    boards.read_suite(folder, BENCHMARKS, keep_answers=False).boards
                )
            )
        except InputError as error:  # a suite without lengths
            if is_asked:
                raise
            print(f"no plot: {error}")
    for path, count in export_suite(format, folder, BENCHMARKS, to):
        print(f"{path}: {describe_count(count, 'row')}")
    if plot and picture:
        write_picture(plot, to / picture)
        print(to / picture)


def import_results(
    files: Annotated[
        list[Path], typer.Argument(help="Files, or folders with files of known names.")
    ],
    suite: SuiteOption,
    format: Annotated[
        str | None,
        typer.Option(
            help="Format: helmet, lv_eval, inspect, lm-eval or csv. [default: chosen by"
            " the files' names]"
        ),
    ] = None,
    entry: Annotated[
        str,
        typer.Option(
            help="Run entry of the answers, if the files do not name it, e.g."
            " ruler:task=qa_1,length=4k."
        ),
    ] = "",
    model: Annotated[
        str,
        typer.Option(help="Name of the model in the suite, e.g. meta/llama-3.1-8b."),
    ] = "",
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Make runs from answers that other programs recorded, and score them with the benchmarks' own scorers.

    The files can be HELMET's output files (.json, -gpt4eval_o.json, .score), LV-Eval's predictions and scores, logs of
    inspect_ai (.eval, .json), samples of lm-evaluation-harness (samples_*.jsonl), and tables of answers or scores
    (.csv, .parquet). Files that have only scores become published results, which have no instances. No model is asked.

    A file that does not name its task needs --entry: for samples_ruler_qa_squad_….jsonl, give --entry ruler:task=qa_1
    """
    from helm_longctx.apps.exchange.importing import import_files

    imported = import_files(
        files, suite_path(output_path, suite), BENCHMARKS, format, entry, model
    )
    for folder, count in imported.runs.items():
        print(f"{folder}: {describe_count(count, 'answer')}")
    for benchmark, count in imported.scores.items():
        print(
            f"{benchmark}: {describe_count(count, 'score')} without answers, added as"
            " published results"
        )
    if imported.left_out:
        print(
            f"{imported.left_out} scores were left out, because the imported answers have them"
        )
    print(f"Next: helm-longctx summarize --suite {suite} --output-path {output_path}")


EXPORTERS: Mapping[
    str, Callable[[boards.Suite, Sequence[Benchmark], Path], Iterator[tuple[Path, int]]]
] = {
    "csv": partial(tables.write_tables, kind="csv"),
    "parquet": partial(tables.write_tables, kind="parquet"),
    "markdown": partial(tables.write_paper_tables, kind="md"),
    "latex": partial(tables.write_paper_tables, kind="tex"),
    "lm-eval": lm_eval.write_results,
    "official": score_files.write_files,
    "every-eval-ever": every_eval_ever.write_logs,
    "eval-results": every_eval_ever.write_eval_results,
    "effective-context": effective_context.write_files,
}


def export_suite(
    format: str,
    suite: Path,
    benchmarks: Sequence[Benchmark],
    folder: Path,
) -> Iterator[tuple[Path, int]]:
    """Write a suite in a format, and yield the files with their numbers of rows.

    Raises:
        InputError: the format is not known, the suite has no score, or a file of a run is damaged.
    """
    if format not in EXPORTERS:
        raise bad_argument("export", "format", format, EXPORTERS)
    folder.mkdir(parents=True, exist_ok=True)
    yield from EXPORTERS[format](
        boards.read_suite(suite, benchmarks, keep_answers=False), benchmarks, folder
    )
