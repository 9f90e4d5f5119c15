"""`reproduce`: run a reported protocol, and compare the result with the published numbers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from helm_longctx.cli.protocols import print_comparisons, print_protocol_list, print_protocols
from helm_longctx.cli.run import Parallelism, Quiet, Texts, Verbose, make_configured_runs
from helm_longctx.errors import InputError
from helm_longctx.results.leaderboard.suite import suite_folder
from helm_longctx.tasks.protocols import find_protocol
from helm_longctx.tasks.registry import BENCHMARKS

_MODEL = "model="

_MODELS = ("model", "model_url")


def reproduce(
    protocol: Annotated[
        list[str] | None, typer.Argument(help="Name of a reported protocol, and model=NAME. [default: list all]")
    ] = None,
    suite: Annotated[
        str | None, typer.Option(help="Name of the suite. Without a model, its runs are compared.")
    ] = None,
    argument: Annotated[
        Texts,
        typer.Option(help="Argument of the runs, e.g. num_samples=10 or num_output_tokens=65536; can be repeated."),
    ] = None,
    model: Annotated[Texts, typer.Option(help="Model that HELM knows; can be repeated.")] = None,
    model_url: Annotated[str | None, typer.Option(help="Address of a server, e.g. http://localhost:8000/v1.")] = None,
    model_name: Annotated[str | None, typer.Option(help="Name of the model on the server of --model-url.")] = None,
    model_type: Annotated[str | None, typer.Option(help="Form of requests: chat, completions or both.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable with the key of --model-url.")] = None,
    context: Annotated[str | None, typer.Option(help="Window of the model in tokens, e.g. 128k.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="Tokenizer of --model-url: hub name or folder.")] = None,
    reasoning_effort: Annotated[
        str | None, typer.Option(help="Reasoning effort that is sent to --model-url, e.g. high.")
    ] = None,
    published: Annotated[
        str | None, typer.Option(help="Published model to compare with, if your model has another name.")
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Judges: auto, none, or names of models; a,b is a jury.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Maximum cost of all requests, in dollars.")] = None,
    request_timeout: Annotated[
        float | None, typer.Option(help="Timeout per request in seconds, retries included.")
    ] = None,
    max_retries: Annotated[int | None, typer.Option(help="Maximum retries of a failed request.")] = None,
    parallelism: Parallelism = None,
    output_path: Annotated[str | None, typer.Option("--output-path", "-o", help="HELM's output folder.")] = None,
    local_path: Annotated[str | None, typer.Option(help="Folder with HELM's YAML files and credentials.conf.")] = None,
    dry_run: Annotated[
        bool | None, typer.Option("--dry-run", help="Only print the runs and an estimate of their cost.")
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run a protocol as a model release reports it, and compare the result with the published numbers.

    Without a name it lists the protocols, and without a model it prints the protocol and what a suite has of it.
    """
    arguments = {name: value for name, value in locals().items() if value is not None}
    words = arguments.pop("protocol", [])
    name = " ".join(word for word in words if not word.startswith(_MODEL))
    if models := [word.removeprefix(_MODEL) for word in words if word.startswith(_MODEL)]:
        arguments["model"] = [*models, *arguments.get("model", [])]
    if not name:
        _list(arguments.keys() & {*_MODELS, "suite"})
        return
    name = find_protocol(name, BENCHMARKS)[1].name
    if any(key in arguments for key in _MODELS):
        own = {key: value for key, value in arguments.items() if key not in ("quiet", "verbose", "published")}
        make_configured_runs(None, {"suite": "reproduce", **own, "protocol": [name]}, quiet, verbose, published or "")
    else:
        _show([name], suite, Path(output_path or "benchmark_output"), published or "")


def _list(given: set[str]) -> None:
    if given:
        option = min(given).replace("_", "-")
        raise InputError(
            f"reproduce: --{option} is given, and the name of a protocol is missing; `reproduce` lists them"
        )
    print_protocol_list()


def _show(names: Sequence[str], suite: str | None, output_path: Path, published: str) -> None:
    """Print a protocol, and compare the runs of a suite if one is named."""
    print_protocols(names)
    if suite:
        print_comparisons(names, suite_folder(output_path, suite), published=published)
    else:
        print("Give --model or --model-url to run it, or --suite to compare the runs of a suite.", file=sys.stderr)
