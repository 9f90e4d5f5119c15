"""Plans the runs of a configuration: their run specs, the equivalent `helm-run` commands, and their cost."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from helm.benchmark.run_spec import RunSpec
from helm.common.general import get_credentials

from helm_longctx.config.entries import PlannedEntry, model_name, plain_models, plan_entries
from helm_longctx.config.models import ModelBook
from helm_longctx.config.schema import ClientCredentials, Endpoint, RunConfig
from helm_longctx.environment import MAX_COST, TIMEOUT
from helm_longctx.errors import InputError, is_format_error, shorten
from helm_longctx.helm.command_line import RUNNER, make_run_specs
from helm_longctx.helm.style import check_sampling
from helm_longctx.judging.judge import parse_judges
from helm_longctx.judging.keys.client import check_credentials
from helm_longctx.models.apis.prices import PRICES, read_prices
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.redaction.text import register_environment
from helm_longctx.results.suite import suite_path
from helm_longctx.runner.estimate import Estimate, Rate, estimate_run
from helm_longctx.runner.helm_scenarios import is_long_context
from helm_longctx.runner.resuming import earlier_name, retry_factor
from helm_longctx.runner.runner import LongContextRunner, runner_arguments
from helm_longctx.runner.sending import TRIES
from helm_longctx.runner.stopping import group_specs
from helm_longctx.runs.files import find_incomplete_files
from helm_longctx.tasks.stop_rules import parse_rule


@dataclass(frozen=True)
class Plan:
    """A checked configuration.

    Args:
        entries: the configuration's run entries, without the models that the configuration adds.
        specs: HELM's run specs, one for each entry and model.
        missing: endpoints that the files in `local_path` lack. A dry run does not write them.
    """

    config: RunConfig
    entries: Sequence[PlannedEntry]
    specs: Sequence[RunSpec]
    missing: Sequence[Endpoint] = ()

    @property
    def deployments(self) -> list[str]:
        """The deployments of the runs, each once."""
        return list(dict.fromkeys(spec.adapter_spec.model_deployment for spec in self.specs))

    def commands(self) -> list[str]:
        """Return the equivalent shell commands: `helm-longctx models add` for new endpoints, and `helm-run`."""
        add = [_add_command(endpoint, self.config.local_path) for endpoint in self.missing]
        # helm-run drops entries whose model is not among --models-to-run (helm/benchmark/run.py:66). So entries that
        # name a model get a second command without that option.
        groups = [([each.text for each in self.entries if not each.model], plain_models(self.config))]
        groups += [([each.text for each in self.entries if each.model], [])]
        return add + [_run_command(self.config, entries, models) for entries, models in groups if entries]

    def estimates(self) -> list[Estimate]:
        """Estimate the long-context runs, or raise an `InputError`.

        Runs of other scenarios cannot be estimated, nor those that ask again for cut answers of unfinished runs.
        """
        runner = make_runner(self.config)
        later = self.retries
        known = (spec for spec in self.specs if is_long_context(spec) and spec not in later)
        return [estimate_run(runner, spec, {}, Rate()) for spec in known]

    @property
    def retries(self) -> list[RunSpec]:
        """The runs that ask again for the cut answers of runs that are not finished."""
        folder = suite_path(self.config.output_path, self.config.suite)
        asking = (spec for spec in self.specs if is_long_context(spec) and retry_factor(spec))
        return [spec for spec in asking if find_incomplete_files(folder / earlier_name(spec.name))]


def make_plan(config: RunConfig) -> Plan:
    """Check a configuration, and make its run specs, or raise an `InputError`. Call it in `use_settings`.

    HELM's registries must be filled. Except in a dry run, the servers of new endpoints are then asked what they offer,
    with one tiny request for each style of prompts, and HELM's files are written.
    """
    entries = plan_entries(config)
    book = ModelBook(config, entries)
    book.register()
    credentials = get_credentials(str(config.local_path))
    for number, name in enumerate(map(model_name, config.judge.judges)):
        if name not in ("auto", "none"):
            with config.places.at(("judge", "judges", number)):
                parse_judges(name)
                if not config.dry_run:
                    check_credentials(name, credentials)
    specs = _make_specs(config, entries)
    if config.limits.stop_when:
        group_specs(parse_rule(config.limits.stop_when), specs)
    book.check_prices(Plan(config, entries, specs).deployments)
    missing = book.missing
    if not config.dry_run:
        book.ask_servers()
        specs = _make_specs(config, entries)  # again, because the style of prompts can depend on the server
    # The weights of one model after the other are in memory. HELM's order alternates between models.
    places = {name: place for place, name in enumerate(book.local_models)}
    specs = sorted(specs, key=lambda spec: places.get(spec.adapter_spec.model_deployment, -1))
    return Plan(config, entries, specs, missing if config.dry_run else ())


def make_runner(config: RunConfig) -> LongContextRunner:
    """Return the runner for a configuration. The runner skips complete runs."""
    arguments = runner_arguments(
        config.output_path, config.suite, config.local_path, config.parallelism, skip_completed_runs=True
    )
    runner = LongContextRunner(**arguments)
    runner.logs_scores = False  # `helm-longctx run` prints them as a table
    return runner


@contextmanager
def use_settings(config: RunConfig) -> Iterator[None]:
    """Set the variables for limits and judges' keys in the block, or raise an `InputError` if one is missing."""
    values = _settings(config)
    for variable, (name, path) in _keys(config).items():
        values[variable] = os.environ.get(name, "").strip()
        if not values[variable] and not config.dry_run:
            about = f"={name}: this environment variable is not set; set it, or name another one"
            raise config.places.error(path, about)
    # The other usual variables of the families whose keys the configuration names are not used.
    families = [name for name in type(config.judge.keys).model_fields if getattr(config.judge.keys, name)]
    kinds = ("API_KEY", *(field.upper() for field in ClientCredentials.model_fields))
    unused = [f"{family.upper()}_JUDGE_{kind}" for family in families for kind in kinds]
    before = {name: os.environ.get(name) for name in (*values, *unused)}
    register_environment(values)
    try:
        _set_variables(dict.fromkeys(before) | values)
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)


def _settings(config: RunConfig) -> dict[str, str]:
    limits = config.limits
    tries = None if limits.max_retries is None else limits.max_retries + 1
    values = {TIMEOUT: limits.request_timeout, MAX_COST: limits.max_cost, TRIES: tries, PRICES: limits.prices}
    if limits.prices:
        with config.places.at(("limits", "prices")):
            read_prices(limits.prices)
    # All digits are written, but 25.0 as 25.
    whole = {name: int(value) for name, value in values.items() if isinstance(value, float) and value.is_integer()}
    return {name: str(value) for name, value in (values | whole).items() if value}


def _keys(config: RunConfig) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return, for each key variable of a judge, the variable that the configuration names for it, and its place."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for family in type(config.judge.keys).model_fields:
        key, path = getattr(config.judge.keys, family), ("judge", "keys", family)
        if isinstance(key, ClientCredentials):
            for field in type(key).model_fields:
                if name := getattr(key, field):
                    found[f"{family}_judge_{field}".upper()] = name, (*path, field)
        elif key:
            found[f"{family}_JUDGE_API_KEY".upper()] = key, path
    return found


def _make_specs(config: RunConfig, entries: Sequence[PlannedEntry]) -> list[RunSpec]:
    names, most = plain_models(config), config.limits.max_eval_instances
    specs: list[RunSpec] = []
    # HELM gets one entry at a time, so that an error has the entry's place.
    for entry in entries:
        models = [] if entry.model else names
        with config.places.at(entry.path):
            try:
                made = make_run_specs([entry.text], [], models, config.suite, most, config.output_path)
            except Exception as error:
                if not is_format_error(error):
                    raise
                raise InputError(f"{shorten(entry.text)} is not a run of HELM: {describe_error(error)}") from error
            for spec in made:
                check_sampling(spec.adapter_spec)
            specs += made
    return specs


def _run_command(config: RunConfig, entries: Sequence[str], models: Sequence[str]) -> str:
    variables = {name: shlex.quote(value) for name, value in _settings(config).items()}
    # The shell fills in the key, so no key is printed.
    variables |= {name: f'"${source}"' for name, (source, _) in _keys(config).items() if source != name}
    options = {
        "--run-entries": entries,
        "--models-to-run": models,
        "--suite": [config.suite],
        "-m": [str(config.limits.max_eval_instances)],
        "-n": [str(config.parallelism)],
        "-o": [str(config.output_path)],
        "--local-path": [str(config.local_path)],
        "--runner-class-name": [RUNNER],
    }
    lines = [f"{option} {shlex.join(values)}" for option, values in options.items() if values]
    command = " ".join([*(f"{name}={value}" for name, value in variables.items()), "helm-run"])
    return " \\\n    ".join([command, *lines, "--skip-completed-runs"])


def _add_command(endpoint: Endpoint, local_path: Path) -> str:
    options: Mapping[str, object] = {
        "--url": endpoint.url,
        "--model": endpoint.model,
        "--api": endpoint.api if endpoint.api != "openai" else None,
        "--type": endpoint.type,
        "--api-key-env": endpoint.api_key_env,
        "--token-env": endpoint.token_env,
        "--context": endpoint.context,
        "--tokenizer": endpoint.tokenizer,
        "--local-path": local_path,
    }
    words = [word for option, value in options.items() if value for word in (option, str(value))]
    headers = [word for name, value in endpoint.headers.items() for word in ("--header", f"{name}: {value}")]
    nvcf = ["--nvcf"] if endpoint.nvcf else []
    return shlex.join(["helm-longctx", "models", "add", model_name(endpoint), *words, *headers, *nvcf])
