"""`shard`: send the requests of one part of each run, as one of several processes or machines."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from helm_longctx.config.options import SELECTION, takes_options
from helm_longctx.config.shared import (
    Entries,
    LocalPath,
    MostInstances,
    OutputPath,
    SuiteOption,
    make_specs,
)
from helm_longctx.process_state import change_until_end


@contextmanager
def _show_helms_log() -> Iterator[None]:
    """Let HELM write its log to the terminal in the block, as `helm-run` does."""
    from helm_longctx.helm_api import setup_default_logging

    log = logging.getLogger("helm")
    level = log.level
    propagates = log.propagate
    handlers = list(log.handlers)
    setup_default_logging(None)
    try:
        yield
    finally:
        log.setLevel(level)
        log.propagate = propagates
        log.handlers[:] = handlers


@takes_options(SELECTION)
def shard(
    part: Annotated[
        str,
        typer.Argument(
            metavar="I/N",
            help="Shard to work on: 1/N to N/N, or all/N for a process for each on this machine.",
        ),
    ],
    suite: SuiteOption,
    most: MostInstances,
    entries: Entries = None,
    *,
    threads: Annotated[
        int,
        typer.Option(
            "--parallelism",
            "--num-threads",
            "-n",
            min=1,
            help="Concurrent requests, as for helm-run.",
        ),
    ] = 4,
    disable_cache: Annotated[
        bool,
        typer.Option(
            "--disable-cache",
            help="Do not use the request cache. Needed on a disk that machines share.",
        ),
    ] = False,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
    **options: Any,
) -> None:
    """Send the requests of one shard of each run.

    Start N such processes with the same arguments on a shared disk. Then start helm-run with the same arguments and our
    runner: it finds all answers and writes the same results as a run on one machine. After a crash, repeat the command:
    it sends only the requests that are missing.

    With all/N this command starts the N processes on this machine, each with a GPU of its own if there are any, and
    completes the runs. So a model of this machine is loaded once on each GPU.
    """
    from helm_longctx.runner.machines.shards import (
        OneShard,
        divide_paces,
        run_shards,
    )
    from helm_longctx.runner.runner import LongContextRunner, runner_arguments
    from helm_longctx.runs.journal import Shard

    change_until_end(_show_helms_log())
    chosen = None
    if part.startswith("all/"):
        count = Shard.parse(f"1/{part.removeprefix('all/')}").total
        run_shards(count, part)
    else:
        chosen = Shard.parse(part)
    specs = make_specs(entries, options, suite, most, output_path, local_path)
    arguments = runner_arguments(
        output_path,
        suite,
        local_path,
        threads,
        not disable_cache,
        skip_completed_runs=True,
    )
    if chosen is None:
        LongContextRunner(**arguments).run_all(specs)
        return
    with divide_paces(chosen.total):
        LongContextRunner(**arguments, strategy=OneShard(chosen)).run_all(specs)
