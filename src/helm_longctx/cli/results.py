"""`schema`, `summarize`, `reference` and `serve`: make the leaderboard of a suite and show it in the browser."""

import socket
import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated

import orjson
import typer

from helm_longctx.config.shared import (
    LocalPath,
    OutputPath,
    SuiteOption,
    complete_suite,
    fill_registries,
)
from helm_longctx.data.yaml_files import dump_yaml
from helm_longctx.errors import InputError, is_format_error
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.results.boards import Suite, make_suite, read_suite
from helm_longctx.results.cells import leaderboard_rows, print_scores
from helm_longctx.results.leaderboard import schema as schemas
from helm_longctx.results.reading import read_results
from helm_longctx.results.suite import (
    PAGES_RECORD,
    find_chosen_schema,
    needs_pages,
    suite_folder,
    suite_path,
    write_reference,
)
from helm_longctx.runs.files import STATS, read_json, read_run_specs
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from helm_longctx.writing import replace_file

_MOST_MODELS = 4000
"""Models that `summarize` takes. Its time and memory grow with their number: 4,000 take 44 seconds and 545 MB."""

_SchemaPath = Annotated[
    Path | None,
    typer.Option(
        help="Schema with groups of your own, which the pages then also show."
    ),
]


def schema(
    suite: Annotated[
        str | None,
        typer.Option(
            help="Print only the parts that this suite needs.",
            autocompletion=complete_suite,
        ),
    ] = None,
    other: Annotated[
        Path | None,
        typer.Option(
            "--with",
            help="Add the groups of this schema, in place of HELM's schema_classic.yaml.",
        ),
    ] = None,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Print a schema for `helm-summarize --schema-path`: the groups of our benchmarks and of another schema."""
    helm = schemas.read_helm_schema(None)
    theirs = schemas.read_helm_schema(other) if other else helm
    if suite:
        folder = suite_folder(output_path, suite)
        boards = read_suite(folder, BENCHMARKS, keep_answers=False).boards
        ours = schemas.fit_helm(schemas.suite_schema(boards), boards)
        specs = list(read_run_specs(folder))
        groups = set()
        for _, spec in specs:
            groups.update(spec["groups"])
        if not other:
            statistics: set[str] = set()
            for run, _ in specs:
                if (run / STATS).exists():
                    statistics.update(
                        stat["name"]["name"] for stat in read_json(run / STATS)
                    )
            theirs = schemas.restrict_columns(
                schemas.restrict_groups(theirs, groups), statistics
            )
    else:
        ours = schemas.fit_helm(schemas.make_schema(schemas.all_sections(BENCHMARKS)))
        groups = set()
    # The user's schema may lack the statistics that HELM adds to all runs.
    theirs = {**theirs, "metrics": [*helm["metrics"], *theirs.get("metrics", ())]}
    content = schemas.add_groups(
        schemas.merge_schemas(ours, theirs, theirs_first=bool(other)), groups
    )
    sys.stdout.write(dump_yaml(content))


def summarize(
    suite: SuiteOption,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of tables.")
    ] = False,
    schema_path: _SchemaPath = None,
    without_schema: Annotated[
        bool,
        typer.Option(
            "--without-schema", help="Forget the schema of an earlier --schema-path."
        ),
    ] = False,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Summarize a suite's runs for HELM's leaderboard, with our tables and pages, and print the scores.

    Without --schema-path, the pages keep the schema that was given last.
    """
    folder = suite_folder(output_path, suite)
    if schema_path is None and not without_schema:
        schema_path = _find_earlier_schema(folder)
    if schema_path:
        schemas.read_helm_schema(schema_path)  # report a wrong file at once
    fill_registries(local_path)
    with (
        redirect_stdout(sys.stderr) if as_json else nullcontext()
    ):  # HELM prints warnings
        results = read_results(
            folder, BENCHMARKS, keep_answers=False, most_models=_MOST_MODELS
        )
        scores = make_suite(results, BENCHMARKS)
        _write_pages(scores, suite, output_path, schema_path)
    if as_json:
        rows = list(leaderboard_rows(scores.boards))
        sys.stdout.buffer.write(
            orjson.dumps(rows, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        )
    else:
        print_scores(folder, scores)


def _find_earlier_schema(folder: Path) -> Path | None:
    """Return the schema with which a suite was summarized last, if it was one of the user's, and say so.

    Raises:
        InputError: the file is gone.
    """
    copied = _copy_helms_schema(folder)
    if copied:
        print(
            f"with {copied}, the schema of the last helm-summarize (--without-schema: none)",
            file=sys.stderr,
        )
        return copied
    path = find_chosen_schema(folder)
    if path is None:
        return None
    if not path.is_file():
        raise InputError(
            f"{path}, the schema of the last summarize, is missing; give --schema-path"
            " or --without-schema"
        )
    print(
        f"with {path}, the schema of the last summarize (--without-schema: none)",
        file=sys.stderr,
    )
    return path


def _copy_helms_schema(folder: Path) -> Path | None:
    """Copy the schema of pages that HELM's own summarizer wrote last, if it is not HELM's own schema.

    HELM keeps the content, but not the name of the user's file. Our pages replace the content.
    """
    written = folder / "schema.json"
    record = folder / PAGES_RECORD
    if not written.is_file() or (
        record.is_file() and record.stat().st_mtime_ns > written.stat().st_mtime_ns
    ):
        return None
    content = read_json(written)
    own = {group["name"] for group in content.get("run_groups", ())}
    helms = set()
    for group in schemas.read_helm_schema(None)["run_groups"]:
        helms.add(group["name"])
    if own == helms:
        return None
    content.pop("models", None)
    copy = folder / "own_schema.yaml"
    text = dump_yaml(content)
    replace_file(copy, text.encode())
    return copy


def _write_pages(
    results: Suite,
    suite: str,
    output_path: Path,
    schema_path: Path | None,
) -> None:
    """Write what helm-server shows of a suite, or raise an `InputError`. The registries are filled."""
    from helm_longctx.helm.patches import install_nltk_quietly
    from helm_longctx.results.leaderboard.pages import write_leaderboard

    install_nltk_quietly.apply()
    try:
        write_leaderboard(results, suite, output_path, schema_path)
    except Exception as error:
        if not is_format_error(error):
            raise
        what = f"{type(error).__name__}: {describe_error(error)}"
        folder = suite_folder(output_path, suite)
        raise InputError(
            f"{folder}: HELM cannot read its runs ({what}); repeat the damaged run"
        ) from error


def reference(
    benchmark: Annotated[
        str, typer.Argument(help="Benchmark with published results, e.g. lv_eval.")
    ],
    suite: SuiteOption,
    model: Annotated[
        list[str] | None, typer.Option(help="Only these models, e.g. `Qwen*`.")
    ] = None,
    length: Annotated[
        str | None, typer.Option(help="Only this length, e.g. 128k.")
    ] = None,
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Add a benchmark's published results to a suite, as models named published/…"""
    chosen = find_benchmark(benchmark, "reference", "benchmark")
    tokens = parse_length(length, where="reference") if length else None
    folder = suite_path(output_path, suite)
    count = write_reference(chosen, folder, model or ["*"], tokens)
    print(f"{count} published results are in {folder}; run summarize to show them")


def serve(
    suite: SuiteOption,
    schema_path: _SchemaPath = None,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
    port: Annotated[
        int,
        typer.Option(
            min=1,
            max=65535,
            help="Port to listen on.",
        ),
    ] = 8000,
) -> None:
    """Run helm-server for a suite, on the loopback address only. helm-server itself listens on all addresses.

    If a run is newer than the suite's pages, or --schema-path is given, `serve` first writes the pages as `summarize`,
    with the schema that was given last. Pages of HELM's own summarizer stay as they are.
    """
    folder = suite_folder(output_path, suite)
    if not folder.resolve().is_relative_to(output_path.resolve()):
        raise InputError(
            f"suite={suite!r} is a link to {folder.resolve()}, and serve shows only"
            f" what is in {output_path}; name the output folder of the suite with"
            " --output-path"
        )
    with socket.socket() as probe:
        # As the server does, so that it can restart at once.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise InputError(
                f"port={port} cannot be used ({error.strerror}); choose another with --port"
            ) from error
    if schema_path or needs_pages(folder):
        fill_registries(local_path)
        results = read_results(folder, BENCHMARKS, keep_answers=False)
        scores = make_suite(results, BENCHMARKS)
        chosen = schema_path or find_chosen_schema(folder)
        _write_pages(scores, suite, output_path, chosen)
    from helm.benchmark import server

    from helm_longctx.results.leaderboard.serving import change_server

    change_server(server)
    # HELM's function reads `sys.argv`.
    before = sys.argv
    sys.argv = [
        "helm-server",
        "--suite",
        suite,
        "--output-path",
        str(output_path),
        "--port",
        str(port),
    ]
    print(f"Open http://127.0.0.1:{port}/#/leaderboard", file=sys.stderr)
    try:
        server.main()
    finally:
        sys.argv = before
