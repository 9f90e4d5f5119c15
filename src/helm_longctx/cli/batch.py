"""`batch`: show and cancel the batches of a suite. `run --batch` sends and collects them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from helm_longctx.config.shared import (
    LocalPath,
    OutputPath,
    SuiteOption,
    fill_registries,
    hide_chatter,
    log_from,
)
from helm_longctx.documents.document import text_table
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import InputError
from helm_longctx.process_state import change_until_end
from helm_longctx.results.suite import suite_folder

if TYPE_CHECKING:
    from helm_longctx.runner.batches.collection import Batches

app = typer.Typer(add_completion=False, no_args_is_help=True)

_SomeRuns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUNS", help="Names of runs, instead of all runs of the suite."
    ),
]


def show_batch_log() -> None:
    """Show the progress of batches, which is logged at the level INFO, until the command ends. `main` hides that."""
    change_until_end(log_from("helm_longctx.runner.batches", logging.INFO))


@app.callback()
def batch() -> None:
    """Show and cancel the batches that `run --batch` has sent."""
    show_batch_log()


@app.command()
def status(
    suite: SuiteOption,
    runs: _SomeRuns = None,
    *,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Show the state of a suite's batches."""
    print_states(_batches(runs, suite, output_path, local_path))


@app.command()
def cancel(
    suite: SuiteOption,
    runs: _SomeRuns = None,
    *,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget",
            help="First give up the answers in batches that the provider does not find"
            " or that cannot be read.",
        ),
    ] = False,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
) -> None:
    """Cancel the batches of a suite that have not ended, and collect the answers that exist.

    A batch with an error does not stop the others. The errors are reported at the end, with exit status 2.
    """
    batches = _batches(runs, suite, output_path, local_path)
    with hide_chatter():
        if forget:
            batches.collect(forget=True)
        batches.cancel()
        batches.wait()
    print_states(batches)


def _batches(
    runs: list[str] | None,
    suite: str,
    output_path: Path,
    local_path: Path,
) -> Batches:
    """Return the batches of the named runs, or of all runs of the suite if no run is named."""
    from helm_longctx.runner.batches.collection import Batches

    folder = suite_folder(output_path, suite)
    names = runs or sorted(path.name for path in folder.iterdir())
    for name in runs or []:
        if not (folder / name).is_dir():
            raise InputError(
                f"suite {suite} has no run {name}; the names are those of the folders"
                f" in {folder}"
            )
    with hide_chatter():
        fill_registries(local_path)
        return Batches(local_path, [folder / name for name in names])


def print_states(batches: Batches) -> None:
    """Print a row for each batch. Raises an `InputError` at the end if the state of one is not known."""
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
