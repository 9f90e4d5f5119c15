"""`run`: make, judge and summarize the runs that a YAML file or options describe."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from helm_longctx.cli.estimate import print_estimates
from helm_longctx.cli.results import show_scores
from helm_longctx.cli.shared import fill_registries
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.results.leaderboard.suite import suite_path
from helm_longctx.runs.files import STATS
from helm_longctx.runs.journal import NAME as JOURNAL

if TYPE_CHECKING:
    from helm_longctx.cli.config.load import Options
    from helm_longctx.cli.config.plan import Plan
    from helm_longctx.runner.estimate import Estimate

_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
"""Names of models on a server that run entries can use unchanged."""

_PACKAGE = Path(__file__).parents[1]

Texts = list[str] | None


def _print_schema(is_wanted: bool) -> None:
    if is_wanted:
        from helm_longctx.cli.config.schema import RunConfig

        print(json.dumps(RunConfig.model_json_schema(), indent=2))
        raise typer.Exit


Parallelism = Annotated[int | None, typer.Option("--parallelism", "-n", help="Concurrent requests. [default: 4]")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Log only errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the whole log of HELM.")]
Schema = Annotated[
    bool,
    typer.Option("--schema", callback=_print_schema, is_eager=True, help="Print the JSON schema of the YAML file."),
]


def run(
    config: Annotated[Path | None, typer.Argument(help="Configuration in YAML. Options replace its values.")] = None,
    suite: Annotated[str | None, typer.Option(help="Name of the suite, as for helm-run.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Run entries, e.g. helmet_rag,helmet_icl.")] = None,
    length: Annotated[str | None, typer.Option("--length", "--lengths", help="Lengths, e.g. 8k,128k.")] = None,
    argument: Annotated[Texts, typer.Option(help="Argument of --tasks, e.g. num_samples=10; can be repeated.")] = None,
    entry: Annotated[Texts, typer.Option(help="Run entry with its arguments; can be repeated.")] = None,
    conf_path: Annotated[Texts, typer.Option(help="File of run entries; can be repeated.")] = None,
    model: Annotated[Texts, typer.Option(help="Model that HELM knows; can be repeated.")] = None,
    model_url: Annotated[str | None, typer.Option(help="Address of a server, e.g. http://localhost:8000/v1.")] = None,
    model_name: Annotated[str | None, typer.Option(help="Name of the model on the server of --model-url.")] = None,
    model_type: Annotated[str | None, typer.Option(help="Form of requests: chat, completions or both.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable with the key of --model-url.")] = None,
    context: Annotated[str | None, typer.Option(help="Window of the model in tokens, e.g. 128k.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="Tokenizer of --model-url: hub name or folder.")] = None,
    judge: Annotated[str | None, typer.Option(help="Judges: auto, none, or names of models; a,b is a jury.")] = None,
    judge_key: Annotated[
        Texts, typer.Option(help="Environment variable with the key for a family of judges, e.g. gpt=MY_KEY.")
    ] = None,
    max_eval_instances: Annotated[
        int | None, typer.Option("--max-eval-instances", "-m", help="Maximum instances per run.")
    ] = None,
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
    schema: Schema = False,
) -> None:
    """Run, judge and summarize what a YAML file or options describe, and print the scores.

    Everything is checked before anything is sent. It can be interrupted and repeated: no answer is paid for twice.
    """
    arguments = {name: value for name, value in locals().items() if value is not None}
    with set_log_levels(quiet, verbose) as prints:
        _run(config, make_options(arguments), prints)


def _run(path: Path | None, options: Options, prints: TextIO) -> None:
    from helm_longctx.cli.config.load import load_config

    config = load_config(path, options)
    from helm_longctx.cli.config.plan import make_plan, use_settings

    with use_settings(config):
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            fill_registries(config.local_path)
            plan = make_plan(config)
            estimates = plan.estimates() if config.dry_run else []
        if config.dry_run:
            _print_plan(plan, estimates)
        else:
            with redirect_stdout(prints):
                failure = _make_runs(plan)
            _print_scores(plan, has_failed=failure is not None)
            if failure:
                raise failure


def make_options(arguments: Mapping[str, Any]) -> Options:
    """Return the values of the command's options as a configuration file has them, and each option's key path."""
    from helm_longctx.cli.config.load import Options

    values: dict[str, Any] = {}
    names: dict[tuple[str | int, ...], str] = {}
    for path, option, value in _list_values(arguments):
        place: Any = values
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = value
        names[path] = option
    # In `values` the models are still a mapping from their numbers.
    if "models" in values:
        values["models"] = list(values["models"].values())
    return Options(values, names)


_PATHS: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("suite", "output_path", "local_path", "parallelism", "dry_run")},
    **{name: ("limits", name) for name in ("max_eval_instances", "max_cost", "request_timeout", "max_retries")},
    "entry": ("entries",),
    "conf_path": ("conf_paths",),
}
"""The key path of each argument whose value stands in a configuration unchanged."""

_LIST_PATHS: Mapping[str, tuple[str, ...]] = {
    "tasks": ("tasks",),
    "length": ("lengths",),
    "judge": ("judge", "judges"),
}
"""The key path of each argument that is a list separated by commas."""

_MAPPING_PATHS: Mapping[str, tuple[str, ...]] = {"argument": ("arguments",), "judge_key": ("judge", "keys")}
"""The key path of each argument whose values are `NAME=VALUE`."""

_ENDPOINT_KEYS = {"model_url": "url", "model_name": "model", "model_type": "type", "tokenizer": "tokenizer"} | {
    name: name for name in ("api_key_env", "context")
}
"""The key of each argument about the model of `--model-url`."""


def _list_values(arguments: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str, Any]]:
    """Yield the key path, the option and the value of each value that options give."""
    for name in filter(arguments.__contains__, _PATHS):
        yield _PATHS[name], _option(name), arguments[name]
    for name in filter(arguments.__contains__, _LIST_PATHS):
        yield _LIST_PATHS[name], _option(name), _split(arguments[name])
    for name, path in _MAPPING_PATHS.items():
        for pair in arguments.get(name, []):
            key, equals, value = pair.partition("=")
            if not equals:
                raise bad_argument("run", _option(name), pair, "NAME=VALUE")
            yield (*path, key), f"{_option(name)} {key}", _scalar(value)
    yield from _list_models(arguments)


def _list_models(arguments: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str, Any]]:
    """Yield the models: first the models of `--model`, then the one of `--model-url`."""
    names = list(arguments.get("model", []))
    for number, name in enumerate(names):
        yield ("models", number), "--model", name
    fields = [name for name in _ENDPOINT_KEYS if name in arguments]
    if fields and "model_url" not in fields:
        raise InputError("--model-url is missing; give a server's address, or --model for a model that HELM knows")
    for name in fields:
        yield ("models", len(names), _ENDPOINT_KEYS[name]), _option(name), arguments[name]
    if fields:
        yield ("models", len(names), "name"), "--model-name", _endpoint_name(arguments.get("model_name", "model"))


def _option(argument: str) -> str:
    return f"--{argument.replace('_', '-')}"


def _endpoint_name(served: str) -> str:
    """Return a name that run entries can use for a model, from its name on the server."""
    return served if _NAME.fullmatch(served) else "endpoint/" + re.sub(r"[^\w.-]+", "-", served, flags=re.ASCII)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _scalar(text: str) -> Any:
    return int(text) if text.isdigit() else text


def _print_plan(plan: Plan, estimates: list[Estimate]) -> None:
    print(f"{len(plan.specs)} runs:")
    for spec in plan.specs:
        print(f"  {spec.name}")
    print("\nThe same runs with HELM's command:\n")
    for command in plan.commands():
        print(f"{command}\n")
    for endpoint in plan.missing:
        print(f"No request was sent to {endpoint.url}: the estimate uses the values in the configuration.")
    if estimates:
        from helm_longctx.models.apis.prices import PRICES

        print_estimates(estimates, f"name a file of prices in {PRICES} or, in the YAML file, in limits.prices")
    if others := len(plan.specs) - len(estimates):
        print(f"{others} runs of HELM's other scenarios are not in the estimate.")


def _make_runs(plan: Plan) -> InputError | None:
    """Make the runs. If some fail, return an error that names them."""
    from helm.benchmark.runner import RunnerError

    from helm_longctx.cli.config.plan import make_runner

    try:
        make_runner(plan.config).run_all(list(plan.specs))
    except InputError as error:
        return error
    except RunnerError as error:
        return InputError(f"{error}: their errors are in the log")
    return None


def _print_scores(plan: Plan, has_failed: bool) -> None:
    config = plan.config
    folder = suite_path(config.output_path, config.suite)
    made = [spec.name for spec in plan.specs if (folder / spec.name / STATS).is_file()]
    if made:
        show_scores(config.suite, config.output_path)
        _print_end(plan, made, has_failed)


@contextmanager
def set_log_levels(quiet: bool, verbose: bool) -> Iterator[TextIO]:
    """Log only errors (quiet), all messages of HELM (verbose), or warnings and progress, while the block runs.

    Yields:
        The stream for what HELM prints.

    Raises:
        InputError: both options are given.
    """
    if quiet and verbose:
        raise InputError("run: --quiet and --verbose cannot be used together; give one of them")
    helms, ours = logging.getLogger("helm"), logging.getLogger("helm_longctx")
    levels = helms.level, ours.level
    helms.setLevel("ERROR" if quiet else os.environ.get("HELM_LOG_LEVEL", "INFO").upper())
    ours.setLevel("ERROR" if quiet else levels[1])
    if not verbose:
        helms.addFilter(_is_for_users)
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            yield sys.stderr if verbose else nowhere
    finally:
        helms.setLevel(levels[0])
        ours.setLevel(levels[1])
        helms.removeFilter(_is_for_users)


def _is_for_users(record: logging.LogRecord) -> bool:
    """Whether a record is a warning that concerns the user, or a message of this package, such as its progress."""
    text = record.getMessage().strip()
    is_bracket = text.endswith("{") or text.startswith("}")
    return record.levelno >= logging.WARNING or (Path(record.pathname).is_relative_to(_PACKAGE) and not is_bracket)


def _print_end(plan: Plan, made: list[str], has_failed: bool) -> None:
    """Print which runs were made, where they are, and the next commands."""
    config = plan.config
    folder = suite_path(config.output_path, config.suite)
    unfinished = [name for name in made if (folder / name / JOURNAL).is_file()]
    options = f"--suite {config.suite} --output-path {config.output_path}"
    print(f"Intervals and plots: helm-longctx report {options}")
    print(f"Tables as files: helm-longctx export {options}")
    # A run that could not be made again keeps its earlier results.
    origin = ", from this or an earlier command" if has_failed else ""
    print(f"{len(made)} of {len(plan.specs)} runs are in {folder}{origin}.")
    if unfinished:
        print(f"Requests without an answer remain in {', '.join(unfinished)}; repeat the command to send them again.")
