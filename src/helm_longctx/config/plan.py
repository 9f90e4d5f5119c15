"""Plans the runs of a configuration: models, run specs, the equivalent `helm-run` commands, and the cost."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.config.entries import PlannedEntry, plan_entries
from helm_longctx.config.models import (
    ConfiguredModel,
    ModelBook,
    expand_models,
    list_judges,
)
from helm_longctx.config.schema import Endpoint, RunConfig
from helm_longctx.config.settings import list_key_variables, list_limits
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, is_format_error, shorten
from helm_longctx.helm.command_line import RUNNER, expand_checked_entry
from helm_longctx.helm.style import check_sampling
from helm_longctx.helm_api import RunSpec, get_credentials
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.results.suite import suite_path
from helm_longctx.runner.estimate import Estimate, Rate, estimate_runs
from helm_longctx.runner.resuming import earlier_name, retry_factor
from helm_longctx.runner.runner import LongContextRunner, Strategy, runner_arguments
from helm_longctx.runner.spool import is_long_context
from helm_longctx.runner.stopping import group_specs
from helm_longctx.runs.files import check_run_name, find_incomplete_files
from helm_longctx.tasks.lengths import length_label


@dataclass(frozen=True)
class Plan:
    """A checked configuration.

    Args:
        entries: the configuration's run entries, without the models that the configuration adds.
        specs: HELM's run specs, one for each entry and model.
        models: the names of the models that run each entry as it is.
        missing: endpoints that the files in `local_path` lack. A dry run does not write them.
    """

    config: RunConfig
    entries: Sequence[PlannedEntry]
    specs: Sequence[RunSpec]
    models: Sequence[str]
    missing: Sequence[Endpoint] = ()

    @property
    def deployments(self) -> list[str]:
        """The deployments of the runs, each once."""
        return _list_deployments(self.specs)

    @property
    def folder(self) -> Path:
        """The folder of the suite."""
        return suite_path(self.config.output_path, self.config.suite)

    def commands(self) -> list[str]:
        """Return the equivalent shell commands: `helm-longctx models add` for new endpoints, and `helm-run`."""
        add = []
        for endpoint in self.missing:
            add.append(_add_command(endpoint, self.config.local_path))
        # helm-run drops entries whose model is not among --models-to-run (helm/benchmark/run.py:66). So entries that
        # name a model get a second command without that option.
        plain = [entry.text for entry in self.entries if not entry.model]
        named = [entry.text for entry in self.entries if entry.model]
        run = []
        if plain:
            run.append(_run_command(self.config, plain, self.models))
        if named:
            run.append(_run_command(self.config, named, ()))
        return [*add, *run]

    def estimates(self) -> list[Estimate]:
        """Estimate the long-context runs, or raise an `InputError`.

        Runs of other scenarios cannot be estimated, nor those that ask again for cut answers of unfinished runs.
        """
        runner = make_runner(self.config)
        later = self.retries
        known = []
        for spec in self.specs:
            if is_long_context(spec) and spec not in later:
                known.append(spec)
        return estimate_runs(runner, known, {}, Rate())

    @property
    def retries(self) -> list[RunSpec]:
        """The runs that ask again for the cut answers of runs that are not finished."""
        specs = []
        for spec in self.specs:
            is_retry = is_long_context(spec) and retry_factor(spec)
            if is_retry and find_incomplete_files(
                self.folder / earlier_name(spec.name)
            ):
                specs.append(spec)
        return specs


def make_plan(config: RunConfig) -> Plan:
    """Check a configuration, and make its run specs, or raise an `InputError`. Its settings (`make_settings`) are in use.

    HELM's registries must be filled. Except in a dry run, the servers of new endpoints are then asked what they offer,
    with one tiny request for each style of prompts, and HELM's files are written.
    """
    root = DataRoot.find(config.output_path)
    credentials = get_credentials(str(config.local_path))
    models = expand_models(config)
    entries = plan_entries(config, models, root)
    named = _list_named_models(entries)
    book = ModelBook(config, [*models, *list_judges(config), *named], credentials)
    book.register()
    book.check_judges()
    plain = [model.name for model in models if not model.has_sampling]
    specs = _make_specs(config, entries, plain)
    if config.limits.stop_when:
        group_specs(config.limits.stop_when, specs)
    book.check_prices(_list_deployments(specs))
    missing = book.missing
    if not config.dry_run and book.ask_servers():
        # Run specs of HELM's own scenarios can depend on whether a model chats.
        specs = _make_specs(config, entries, plain)
    return Plan(
        config=config,
        entries=entries,
        specs=_sort_by_model(specs, book.local_models),
        models=plain,
        missing=missing if config.dry_run else (),
    )


def _list_named_models(entries: Sequence[PlannedEntry]) -> list[ConfiguredModel]:
    """Return the models that entries name themselves."""
    models = []
    for entry in entries:
        if entry.model:
            models.append(ConfiguredModel(model=entry.model, path=entry.path))
    return models


def _sort_by_model(
    specs: Sequence[RunSpec],
    local_models: Sequence[str],
) -> list[RunSpec]:
    """Sort runs so that the weights of one model after the other are in memory. HELM's order alternates between models."""
    order = {name: number for number, name in enumerate(local_models)}
    return sorted(
        specs, key=lambda spec: order.get(spec.adapter_spec.model_deployment, -1)
    )


def _list_deployments(specs: Sequence[RunSpec]) -> list[str]:
    return list(dict.fromkeys(spec.adapter_spec.model_deployment for spec in specs))


def make_runner(
    config: RunConfig,
    strategy: Strategy | None = None,
) -> LongContextRunner:
    """Return the runner for a configuration. The runner skips complete runs.

    Args:
        strategy: how requests are sent. By default, each is sent on its own.
    """
    arguments = runner_arguments(
        output_path=config.output_path,
        suite=config.suite,
        local_path=config.local_path,
        parallelism=config.parallelism,
        skip_completed_runs=True,
    )
    runner = LongContextRunner(**arguments, strategy=strategy)
    runner.logs_scores = False  # commands and `evaluate` show them as tables
    return runner


def _make_specs(
    config: RunConfig,
    entries: Sequence[PlannedEntry],
    names: Sequence[str],
) -> list[RunSpec]:
    """Return the run specs of entries, for the model that an entry names or for each of the named models."""
    specs: list[RunSpec] = []
    # HELM gets one entry at a time, so that an error has the entry's location.
    for entry in entries:
        models = [] if entry.model else list(names)
        with config.source_map.at(entry.path):
            try:
                made = expand_checked_entry(
                    entry.text,
                    models,
                    config.limits.max_eval_instances,
                    config.output_path,
                )
            except Exception as error:
                if not is_format_error(error):
                    raise
                raise InputError(
                    f"{shorten(entry.text)} is not a run of HELM: {describe_error(error)}"
                ) from error
            for spec in made:
                check_sampling(spec)
                check_run_name(spec.name)
            specs += made
    return specs


def _run_command(
    config: RunConfig,
    entries: Sequence[str],
    models: Sequence[str],
) -> str:
    variables = {}
    for name, value in list_limits(config).items():
        variables[name] = shlex.quote(value)
    # The shell fills in the key, so no key is printed.
    for name, source in list_key_variables(config).items():
        if source != name:
            variables[name] = f'"${source}"'
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
    lines = []
    for option, values in options.items():
        if values:
            lines.append(f"{option} {shlex.join(values)}")
    command = " ".join(
        [*(f"{name}={value}" for name, value in variables.items()), "helm-run"]
    )
    return " \\\n    ".join([command, *lines, "--skip-completed-runs"])


def _add_command(endpoint: Endpoint, local_path: Path) -> str:
    names = (
        "url",
        "model",
        "api",
        "type",
        "api_key_env",
        "token_env",
        "context",
        "tokenizer",
    )
    values = {name: getattr(endpoint, name) for name in names}
    if endpoint.context:
        values["context"] = length_label(endpoint.context)
    values["local_path"] = local_path
    if endpoint.api == "openai":  # the default
        del values["api"]
    words = ["helm-longctx", "models", "add", endpoint.name]
    for name, value in values.items():
        if value:
            words += [f"--{name.replace('_', '-')}", str(value)]
    for name, value in endpoint.headers.items():
        words += ["--header", f"{name}: {value}"]
    if endpoint.nvcf:
        words.append("--nvcf")
    return shlex.join(words)
