"""`reproduce`: run a reported protocol, and compare the result with the published numbers."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from helm_longctx.apps.reproduction.protocols import (
    Reproduction,
    describe_runs,
    print_protocol_list,
    runnable_protocols,
)
from helm_longctx.cli.run import make_configured_runs
from helm_longctx.config.options import FOLDERS, LIMITS, MODEL, takes_options
from helm_longctx.config.shared import Quiet, Verbose
from helm_longctx.errors import InputError
from helm_longctx.results.suite import suite_folder
from helm_longctx.tasks.registry import BENCHMARKS, find_protocol, find_release

_MODEL = "model="

_MODELS = ("model", "model_url")


@takes_options(
    [
        "suite",
        "argument",
        *MODEL,
        "reasoning_effort",
        "judge",
        "judge_key",
        *LIMITS,
        *FOLDERS,
        "generated",
    ],
    suite="Name of the suite. Without a model it is compared. [default: reproduce]",
)
def reproduce(
    protocol: Annotated[
        list[str] | None,
        typer.Argument(
            help="Name of a reported protocol or of a release, and model=NAME. [default: list all]"
        ),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option(
            help="Published model to compare with, if your model has another name."
        ),
    ] = None,
    *,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **options: Any,
) -> None:
    """Run a protocol as a model release reports it, or all of a release's, and compare with the published numbers.

    Without a name it lists the protocols. Without a model it prints the protocol, or the release's numbers and which
    of them can be run, with the suite's results.
    """
    words = protocol or []
    arguments = {name: value for name, value in options.items() if value is not None}
    if models := [
        word.removeprefix(_MODEL) for word in words if word.startswith(_MODEL)
    ]:
        arguments["model"] = [*models, *arguments.get("model", [])]
    name = " ".join(word for word in words if not word.startswith(_MODEL))
    if not name:
        if given := arguments.keys() & {*_MODELS, "suite"}:
            problem = f"--{min(given).replace('_', '-')} is given, and the name of a protocol is missing"
            raise InputError(f"reproduce: {problem}; `reproduce` lists them")
        print_protocol_list()
        return
    reproduction = replace(_find(name), published=published or "")
    if arguments.keys() & {*_MODELS}:
        protocols = reproduction.protocols
        if not protocols:
            release = reproduction.release
            why = "; ".join(dict.fromkeys(describe_runs(row) for row in release))
            raise InputError(f"no number of {release[0].row.model} can be run ({why})")
        names = [reported.text for reported in protocols]
        options = {"suite": "reproduce", **arguments, "protocol": names}
        make_configured_runs(None, options, quiet, verbose, reproduction)
        return
    suite = arguments.get("suite")
    output_path = Path(arguments.get("output_path", "benchmark_output"))
    reproduction.print_numbers(has_numbers=not suite)
    if suite:
        reproduction.print_comparison(suite_folder(output_path, suite))
    else:
        print(
            "Give --model or --model-url to run it, or --suite to compare the runs of a suite.",
            file=sys.stderr,
        )


def _find(name: str) -> Reproduction:
    """Return the published numbers of the protocol with a name, or of the release if no protocol has it."""
    try:
        reported = find_protocol(name, BENCHMARKS)
    except InputError:
        release = find_release(name, BENCHMARKS)
        if not release:
            raise
        return Reproduction(protocols=runnable_protocols(release), release=release)
    return Reproduction(protocols=[reported])
