"""`batch`: send the requests of runs through the providers' batch APIs, and collect the answers for `helm-run`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from helm_longctx.config.load import SELECTION, takes_options
from helm_longctx.config.schema import MOST_INSTANCES
from helm_longctx.config.shared import (
    Entries,
    LocalPath,
    MostInstances,
    OutputPath,
    SuiteOption,
    fill_registries,
    hide_chatter,
    make_specs,
)
from helm_longctx.documents.document import text_table
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import InputError
from helm_longctx.results.suite import suite_folder

if TYPE_CHECKING:
    from helm_longctx.runner.batches.collection import Batches

app = typer.Typer(add_completion=False, no_args_is_help=True)

_SomeEntries = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN-ENTRIES",
        help="Run entries or names of runs. [default: all runs of the suite]",
    ),
]

_FillsCache = Annotated[
    bool,
    typer.Option(
        "--fill-cache/--no-fill-cache",
        help="Send one request of each group with a long shared beginning directly,"
        " where the provider's cache then makes the batch cheaper.",
    ),
]

_WaitsAndRepeats = Annotated[
    bool,
    typer.Option(
        "--wait",
        help="Wait for the answers, collect them, and send requests again that failed temporarily.",
    ),
]

_SameInstances = Annotated[
    int | None,
    typer.Option(
        "--max-eval-instances", "-m", help="As for `batch submit`; it has no effect."
    ),
]


@app.callback()
def batch() -> None:
    """Send the requests of runs through the providers' batch APIs."""
    # Progress is logged at the level INFO, and `main` hides that.
    logging.getLogger("helm_longctx.runner.batches").setLevel(logging.INFO)


@app.command()
@takes_options(SELECTION)
def submit(
    suite: SuiteOption,
    most: MostInstances,
    entries: Entries = None,
    *,
    files: Annotated[
        bool,
        typer.Option(
            "--files", help="Write files for `vllm run-batch`, and send nothing."
        ),
    ] = False,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum requests per batch. [default: the provider's limit]"
        ),
    ] = None,
    fills_cache: _FillsCache = True,
    judges: Annotated[
        bool,
        typer.Option(
            "--judges",
            help="Send requests to the judges of existing answers, and none to models.",
        ),
    ] = False,
    wait: _WaitsAndRepeats = False,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
    **options: Any,
) -> None:
    """Send the requests of runs as batches. Requests that have an answer, or are in a batch, are not sent.

    If you repeat the command, also after a crash, it sends only the requests
    that are missing.
    """
    with hide_chatter():
        specs = make_specs(entries, options, suite, most, output_path, local_path)
    from helm_longctx.runner.batches.collection import Batches
    from helm_longctx.runner.batches.submission import (
        AsBatches,
        BatchPlan,
        JudgesAsBatches,
        make_batch_runner,
    )

    with hide_chatter():
        plan = BatchPlan(files, batch_size, fills_cache)
        strategy = JudgesAsBatches(plan, local_path) if judges else AsBatches(plan)
        runner = make_batch_runner(strategy, output_path, suite, local_path)
        batches = Batches(
            local_path, [output_path / "runs" / suite / spec.name for spec in specs]
        )
        runner.run_all(specs)
        # Requests that failed temporarily are sent again as long as a round answers some of them.
        while wait and batches.wait():
            runner.run_all(specs)
    _print_states(batches)


@app.command()
@takes_options(SELECTION)
def status(
    suite: SuiteOption,
    entries: _SomeEntries = None,
    *,
    most: _SameInstances = None,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
    **options: Any,
) -> None:
    """Show the state of a suite's batches."""
    _print_states(_batches(entries, options, suite, output_path, local_path))


@app.command()
@takes_options(SELECTION)
def collect(
    suite: SuiteOption,
    entries: _SomeEntries = None,
    *,
    most: _SameInstances = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until every batch has ended.")
    ] = False,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget",
            help="Give up the answers in batches that the provider does not find or"
            " that cannot be read.",
        ),
    ] = False,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
    **options: Any,
) -> None:
    """Collect the answers of ended batches. The same run then uses them, and sends only the other requests.

    Requests without an answer are counted by the reason. `batch submit` sends them again. A batch that cannot be
    collected does not stop the others. Its error is reported at the end, with exit status 2.
    """
    if wait and forget:
        raise InputError(
            "--forget and --wait cannot be given together; give one of them"
        )
    batches = _batches(entries, options, suite, output_path, local_path)
    try:
        with hide_chatter():
            if wait:
                batches.wait()
            else:
                batches.collect(forget)
    except InputError:
        with suppress(InputError):  # the error that is raised has these errors, too
            _print_states(batches)
        raise
    _print_states(batches)


@app.command()
@takes_options(SELECTION)
def cancel(
    suite: SuiteOption,
    entries: _SomeEntries = None,
    *,
    most: _SameInstances = None,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
    **options: Any,
) -> None:
    """Cancel the batches of a suite that have not ended. Answers that exist can still be collected."""
    batches = _batches(entries, options, suite, output_path, local_path)
    with hide_chatter():
        cancelled = batches.cancel()
    print(
        f"{cancelled} batches cancelled. Collect their answers: helm-longctx batch"
        f" collect --suite {suite}"
    )


def _batches(
    entries: list[str] | None,
    options: Mapping[str, Any],
    suite: str,
    output_path: Path,
    local_path: Path,
) -> Batches:
    """Return the batches of the named runs, or of all runs of the suite if no run is named."""
    from helm_longctx.runner.batches.collection import Batches

    folder = suite_folder(output_path, suite)
    # An argument is the name of an existing run, or else a run entry.
    names = []
    for entry in entries or []:
        if (folder / entry).is_dir():
            names.append(entry)
    others = [entry for entry in entries or [] if entry not in names]
    with hide_chatter():
        fill_registries(local_path)
        if others or any(options[name] for name in SELECTION if name != "model"):
            # The names of runs do not depend on the number of instances.
            specs = make_specs(
                others, options, suite, MOST_INSTANCES, output_path, local_path
            )
            names += [spec.name for spec in specs]
        if absent := [name for name in names if not (folder / name).is_dir()]:
            raise InputError(
                f"suite {suite} has no run {absent[0]}; send its requests with:"
                " helm-longctx batch submit"
            )
        return Batches(
            local_path,
            [folder / name for name in names] if names else sorted(folder.iterdir()),
        )


def _print_states(batches: Batches) -> None:
    rows: list[list[str]] = []
    try:
        with hide_chatter():
            for state in batches.states():
                part = state.part
                failures = []
                for kind, count in (part.failures or {}).items():
                    failures.append(f"{count} {kind}")
                row = [
                    state.run.name,
                    part.batch or "-",
                    state.state,
                    str(len(part.requests)),
                    str(state.done),
                    ", ".join(failures),
                ]
                rows.append(row)
    finally:
        print_table(
            text_table(
                "Batches",
                ("run", "batch", "state", "requests", "done", "no answer"),
                rows,
            )
        )
