"""`run`: make, judge and summarize the runs that a YAML file or options describe."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from helm_longctx.cli.estimate import print_estimates
from helm_longctx.cli.logs import set_log_levels
from helm_longctx.cli.shared import fill_registries, split_names
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.results.suite import suite_path

if TYPE_CHECKING:
    from helm_longctx.cli.config.load import Options
    from helm_longctx.cli.config.plan import Plan
    from helm_longctx.cli.config.schema import RunConfig
    from helm_longctx.runner.estimate import Estimate
    from helm_longctx.runner.stopping import Stop

_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
"""Names of models on a server that run entries can use unchanged."""

Texts = list[str] | None


def _print_schema(is_wanted: bool) -> None:
    if is_wanted:
        from helm_longctx.cli.config.schema import RunConfig

        print(json.dumps(RunConfig.model_json_schema(), indent=2))
        raise typer.Exit


Parallelism = Annotated[int | None, typer.Option("--parallelism", "-n", help="Concurrent requests. [default: 4]")]
RetryCut = Annotated[
    str | None, typer.Option(help="Factor for the output budget with which cut answers are asked for again, e.g. 4x.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Log only errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the whole log of HELM.")]
Schema = Annotated[
    bool,
    typer.Option("--schema", callback=_print_schema, is_eager=True, help="Print the JSON schema of the YAML file."),
]


ModelNames = Annotated[Texts, typer.Option(help="Models that HELM knows, e.g. a/b,c/d.", callback=split_names)]
ModelUrl = Annotated[str | None, typer.Option(help="Address of a server, e.g. http://localhost:8000/v1.")]
ModelName = Annotated[str | None, typer.Option(help="Name of the model on the server of --model-url.")]
ModelType = Annotated[str | None, typer.Option(help="Form of requests: chat, completions or both.")]
ApiKeyEnv = Annotated[str | None, typer.Option(help="Environment variable with the key of --model-url.")]
Context = Annotated[str | None, typer.Option(help="Window of the model in tokens, e.g. 128k.")]
TokenizerName = Annotated[str | None, typer.Option(help="Tokenizer of --model-url: hub name or folder.")]
JudgeNames = Annotated[str | None, typer.Option(help="Judges: auto, none, or names of models; a,b is a jury.")]
MaxCost = Annotated[float | None, typer.Option(help="Maximum cost of all requests, in dollars.")]
Prices = Annotated[str | None, typer.Option(help="YAML file with prices by deployment or model.")]
RequestTimeout = Annotated[float | None, typer.Option(help="Timeout per request in seconds, retries included.")]
MaxRetries = Annotated[int | None, typer.Option(help="Maximum retries of a failed request.")]
OutputFolder = Annotated[str | None, typer.Option("--output-path", "-o", help="HELM's output folder.")]
LocalFolder = Annotated[str | None, typer.Option(help="Folder with HELM's YAML files and credentials.conf.")]
DryRun = Annotated[bool | None, typer.Option("--dry-run", help="Only print the runs and an estimate of their cost.")]


def run(
    config: Annotated[Path | None, typer.Argument(help="Configuration in YAML. Options replace its values.")] = None,
    suite: Annotated[str | None, typer.Option(help="Name of the suite.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Run entries or benchmarks, e.g. helmet_rag,ruler.")] = None,
    length: Annotated[str | None, typer.Option("--length", "--lengths", help="Lengths, e.g. 8k,128k.")] = None,
    argument: Annotated[Texts, typer.Option(help="Argument of --tasks, e.g. num_samples=10; can be repeated.")] = None,
    entry: Annotated[Texts, typer.Option(help="Run entry with its arguments; can be repeated.")] = None,
    conf_path: Annotated[Texts, typer.Option(help="File of run entries; can be repeated.")] = None,
    model: ModelNames = None,
    model_url: ModelUrl = None,
    model_name: ModelName = None,
    model_type: ModelType = None,
    api_key_env: ApiKeyEnv = None,
    context: Context = None,
    tokenizer: TokenizerName = None,
    retry_cut: RetryCut = None,
    judge: JudgeNames = None,
    judge_key: Annotated[
        Texts, typer.Option(help="Environment variable with the key for a family of judges, e.g. gpt=MY_KEY.")
    ] = None,
    max_eval_instances: Annotated[
        int | None, typer.Option("--max-eval-instances", "-m", help="Maximum instances per run.")
    ] = None,
    max_cost: MaxCost = None,
    prices: Prices = None,
    request_timeout: RequestTimeout = None,
    max_retries: MaxRetries = None,
    stop_when: Annotated[
        str | None,
        typer.Option(help="Question that ends the runs when it is decided: better, score=POINTS or width=POINTS."),
    ] = None,
    parallelism: Parallelism = None,
    output_path: OutputFolder = None,
    local_path: LocalFolder = None,
    dry_run: DryRun = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    schema: Schema = False,
) -> None:
    """Run, judge and summarize what a YAML file or options describe, and print the scores.

    Everything is checked before anything is sent. It can be interrupted and repeated: no answer is paid for twice.
    """
    arguments = {name: value for name, value in locals().items() if value is not None}
    make_configured_runs(config, arguments, quiet, verbose)


def make_configured_runs(
    path: Path | None, arguments: Mapping[str, Any], quiet: bool, verbose: bool, published: str = ""
) -> None:
    """Make the runs of a file and of the command's options, or print them in a dry run.

    Args:
        arguments: the options that were given, by the names of their parameters.
        published: the published model with which protocols are compared; empty for the model of the same name.

    Raises:
        InputError: there is a mistake in the configuration, or a run fails.
    """
    with set_log_levels(quiet, verbose) as prints:
        _run(path, read_options(arguments), prints, published)


def _run(path: Path | None, options: Options, prints: TextIO, published: str) -> None:
    from helm_longctx.cli.config.load import load_config

    config = load_config(path, options)
    _check_names(config)
    from helm_longctx.cli.config.plan import make_plan, use_settings  # this imports HELM

    with use_settings(config):
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            fill_registries(config.local_path)
            plan = make_plan(config)
            estimates = plan.estimates() if config.dry_run or config.protocols else []
        if config.protocols:
            from helm_longctx.apps.reproduction.protocols import print_protocols

            print_protocols(config.protocols, has_numbers=config.dry_run)
        if config.dry_run:
            _print_plan(plan, estimates)
        else:
            _print_estimates(estimates)
            with redirect_stdout(prints):
                failure, stops = _make_runs(plan)
            _print_scores(plan, has_failed=failure is not None)
            for stop in stops:
                print(stop)
            if failure:
                raise failure
            from helm_longctx.apps.reproduction.protocols import print_comparisons

            folder = suite_path(config.output_path, config.suite)
            print_comparisons(config.protocols or [], folder, plan.deployments, published)


def _check_names(config: RunConfig) -> None:
    """Check the names of run entries, so that a misspelled one is refused before HELM is imported."""
    from helm_longctx.helm.names import check_name, may_be_helms
    from helm_longctx.tasks.entry import split_entry

    for key, texts in (("tasks", config.tasks), ("entries", config.entries)):
        for number, text in enumerate(texts or []):
            with config.places.at((key, number)):
                check_name(split_entry(text)[0], may_be_helms)


def read_options(arguments: Mapping[str, Any]) -> Options:
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
    **{name: (name,) for name in ("suite", "output_path", "local_path", "parallelism", "retry_cut", "dry_run")},
    **{
        name: ("limits", name)
        for name in ("max_eval_instances", "max_cost", "prices", "request_timeout", "max_retries", "stop_when")
    },
    "entry": ("entries",),
    "protocol": ("protocols",),
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
    name: name for name in ("api_key_env", "context", "reasoning_effort")
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
    names = arguments.get("model", [])
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
    _print_estimates(estimates)
    if later := len(plan.retries):
        print(f"{later} runs ask again for cut answers; how many these are is known after the other runs.")
    if others := len(plan.specs) - len(estimates) - later:
        print(f"{others} runs of HELM's other scenarios are not in the estimate.")


def _print_estimates(estimates: list[Estimate]) -> None:
    if estimates:
        print_estimates(estimates, "give --prices, or in YAML limits.prices")


def _make_runs(plan: Plan) -> tuple[InputError | None, Sequence[Stop]]:
    """Make the runs. If some fail, return an error that names them. Also return how questions ended."""
    from helm.benchmark.runner import RunnerError

    from helm_longctx.cli.config.plan import make_runner
    from helm_longctx.runner.stopping import run_until_decided
    from helm_longctx.tasks.stop_rules import parse_rule

    runner, rule = make_runner(plan.config), plan.config.limits.stop_when
    try:
        if rule:
            return None, run_until_decided(runner, plan.specs, parse_rule(rule))
        runner.run_all(list(plan.specs))
    except InputError as error:
        return error, ()
    except RunnerError as error:
        return InputError(str(error)), ()
    return None, ()


def _print_scores(plan: Plan, has_failed: bool) -> None:
    from helm_longctx.cli.results import show_scores
    from helm_longctx.runs.files import STATS

    config = plan.config
    folder = suite_path(config.output_path, config.suite)
    made = [spec.name for spec in plan.specs if (folder / spec.name / STATS).is_file()]
    if made:
        show_scores(config.suite, config.output_path)
        _print_end(plan, made, has_failed)


def _print_end(plan: Plan, made: list[str], has_failed: bool) -> None:
    """Print which runs were made, where they are, and the next commands."""
    from helm_longctx.runs.journal import NAME as JOURNAL

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
