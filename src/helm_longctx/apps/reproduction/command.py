"""`reproduce`: run a reported protocol, and compare the result with the published numbers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from helm_longctx.apps.reproduction.protocols import print_comparisons, print_protocol_list, print_protocols
from helm_longctx.cli.run import (
    ApiKeyEnv,
    Context,
    DryRun,
    JudgeNames,
    LocalFolder,
    MaxCost,
    MaxRetries,
    ModelName,
    ModelNames,
    ModelType,
    ModelUrl,
    OutputFolder,
    Parallelism,
    Prices,
    Quiet,
    RequestTimeout,
    Texts,
    TokenizerName,
    Verbose,
    make_configured_runs,
)
from helm_longctx.errors import InputError
from helm_longctx.results.suite import suite_folder
from helm_longctx.tasks.registry import BENCHMARKS, find_protocol

_MODEL = "model="

_MODELS = ("model", "model_url")


def reproduce(
    protocol: Annotated[
        Texts, typer.Argument(help="Name of a reported protocol, and model=NAME. [default: list all]")
    ] = None,
    suite: Annotated[str | None, typer.Option(help="Name of the suite. Without a model it is compared.")] = None,
    argument: Annotated[Texts, typer.Option(help="Argument of the runs, e.g. num_samples=10; can be repeated.")] = None,
    model: ModelNames = None,
    model_url: ModelUrl = None,
    model_name: ModelName = None,
    model_type: ModelType = None,
    api_key_env: ApiKeyEnv = None,
    context: Context = None,
    tokenizer: TokenizerName = None,
    reasoning_effort: Annotated[
        str | None, typer.Option(help="Reasoning effort that is sent to --model-url, e.g. high.")
    ] = None,
    published: Annotated[
        str | None, typer.Option(help="Published model to compare with, if your model has another name.")
    ] = None,
    judge: JudgeNames = None,
    max_cost: MaxCost = None,
    prices: Prices = None,
    request_timeout: RequestTimeout = None,
    max_retries: MaxRetries = None,
    parallelism: Parallelism = None,
    output_path: OutputFolder = None,
    local_path: LocalFolder = None,
    dry_run: DryRun = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a protocol as a model release reports it, and compare the result with the published numbers.

    Without a name it lists the protocols, and without a model it prints the protocol and what a suite has of it.
    """
    arguments = {name: value for name, value in locals().items() if value is not None}
    _reproduce(arguments.pop("protocol", []), arguments.pop("published", ""), arguments)


def _reproduce(words: Sequence[str], published: str, arguments: dict[str, Any]) -> None:
    """List the protocols, print one and compare a suite's runs with it, or run one."""
    quiet, verbose = arguments.pop("quiet"), arguments.pop("verbose")
    if models := [word.removeprefix(_MODEL) for word in words if word.startswith(_MODEL)]:
        arguments["model"] = [*models, *arguments.get("model", [])]
    name = " ".join(word for word in words if not word.startswith(_MODEL))
    if not name:
        _list(arguments.keys() & {*_MODELS, "suite"})
        return
    name = find_protocol(name, BENCHMARKS)[1].name
    if arguments.keys() & {*_MODELS}:
        make_configured_runs(None, {"suite": "reproduce", **arguments, "protocol": [name]}, quiet, verbose, published)
    else:
        _show([name], arguments.get("suite"), Path(arguments.get("output_path", "benchmark_output")), published)


def _list(given: set[str]) -> None:
    if given:
        option = min(given).replace("_", "-")
        raise InputError(
            f"reproduce: --{option} is given, and the name of a protocol is missing; `reproduce` lists them"
        )
    print_protocol_list()


def _show(names: Sequence[str], suite: str | None, output_path: Path, published: str) -> None:
    """Print a protocol, and compare the runs of a suite if one is named."""
    print_protocols(names, has_numbers=not suite)
    if suite:
        print_comparisons(names, suite_folder(output_path, suite), published=published)
    else:
        print("Give --model or --model-url to run it, or --suite to compare the runs of a suite.", file=sys.stderr)
