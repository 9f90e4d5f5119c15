"""`doctor`: check that everything a run needs works on this machine."""

import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from importlib import metadata
from io import StringIO
from pathlib import Path
from platform import python_version
from typing import Annotated

import orjson
import typer

from helm_longctx.config.shared import (
    READY,
    LocalPath,
    OutputPath,
    complete_suite,
    credential_names,
    fill_registries,
    register_local_path,
    without_helms_log,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.data.wheel import SENTENCE_MODEL
from helm_longctx.environment import (
    explain_torchvision,
    ignore_broken_torchvision,
    page_address,
)
from helm_longctx.errors import InputError
from helm_longctx.helm_api import (
    describe_helm,
    find_changed_records,
    requirements,
)
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.results.suite import suite_folder
from helm_longctx.run_settings import settings_in_use
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.sentences import SENTENCE_TERMS
from helm_longctx.tasks.task import MAIN_METRIC

_VERSIONS = (
    "helm-longctx",
    "crfm-helm",
    "datasets",
    "transformers",
    "torch",
    "torchvision",
    "huggingface_hub",
)

_OLDEST_PYTHON = (3, 11)
"""The oldest Python that is not deprecated. 3.10 has had its last release in October 2026."""

_Finding = tuple[bool | None, str]
"""The result of a check (True: all is well, False: broken, None: a note), and a line of text about it."""

_LABELS = {True: "ok     ", False: "BROKEN ", None: "note   "}

_WITHOUT_TORCH = " for local models and NLI judges; models behind an API need no torch"

_WITHOUT_TORCHVISION = "HELM's own Hugging Face clients cannot import model classes of transformers, but ours can"


def doctor(
    address: Annotated[
        str | None,
        typer.Argument(
            help="Address of a server, such as http://localhost:8000/v1: check what it"
            " does to chats."
        ),
    ] = None,
    local_path: LocalPath = Path("prod_env"),
    run: Annotated[
        bool, typer.Option(help="Also run a tiny benchmark end to end.")
    ] = True,
    network: Annotated[
        bool,
        typer.Option(help="Also ask providers whether the models and judges exist."),
    ] = True,
    suite: Annotated[
        str | None,
        typer.Option(
            help="Check the files of this suite's runs instead of the installation.",
            autocompletion=complete_suite,
        ),
    ] = None,
    output_path: OutputPath = Path("benchmark_output"),
    model_name: Annotated[
        str | None, typer.Option(help="Name of the model on the server.")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="NAME of the variable with the server's key.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Hub name or folder of the tokenizer with which the server is compared."
        ),
    ] = None,
) -> None:
    """Check the installation, a server, or the files of a suite, and print one line per finding.

    The exit status is 1 if something is broken.
    """
    checks: list[tuple[str, Callable[[], Iterator[_Finding]]]] = [
        ("versions", _versions),
        ("plugin", _plugin),
        ("adapter", _adapter),
        ("data", _data),
        ("configuration", lambda: _configuration(local_path)),
        ("credentials", lambda: _credentials(local_path)),
    ]
    if network:
        checks.append(("models", lambda: _models(local_path)))
    if run:
        checks.append(("tiny run", _tiny_run))
    if suite is not None:
        folder = suite_folder(output_path, suite)
        checks = [("run", lambda: _runs(folder))]
    if address is not None:
        checks = [
            ("server", lambda: _server(address, model_name, api_key_env, tokenizer))
        ]
    healthy = True
    for name, check in checks:
        for fine, text in check():
            # A note (None) is not a fault.
            healthy &= fine is not False
            print(f"{_LABELS[fine]} {name}: {text}")
    if not healthy:
        raise typer.Exit(1)


def _runs(suite: Path) -> Iterator[_Finding]:
    """Check the files of each run against each other."""
    from helm_longctx.runner.score_log import find_reasons
    from helm_longctx.runner.verification import find_faults, find_runs
    from helm_longctx.runs.files import INSTANCE_STATS

    for run in find_runs(suite):
        with without_helms_log():
            faults = list(find_faults(run))
        yield from ((False, f"{run.name}: {fault}") for fault in faults)
        if not faults:
            yield True, run.name
            if (run / INSTANCE_STATS).is_file() and (reasons := find_reasons(run)):
                yield None, f"{run.name}: the scores do not compare: {reasons}"


def _server(
    address: str,
    model_name: str | None,
    api_key_env: str | None,
    tokenizer: str | None,
) -> Iterator[_Finding]:
    from helm_longctx.models.endpoints.probe import probe
    from helm_longctx.models.endpoints.stack import Stack

    loaded = None
    if tokenizer is not None:
        ignore_broken_torchvision()
        from transformers import AutoTokenizer

        loaded = AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False)
    with without_helms_log():
        endpoint = probe(address, model=model_name, api_key_env=api_key_env)
        routes = " and ".join(endpoint.routes)
        yield (
            True,
            f"{endpoint.model} answers {routes}; context: {endpoint.context or 'unknown'}",
        )
        yield from Stack(endpoint, loaded).find_faults()


def _versions() -> Iterator[_Finding]:
    if sys.version_info < _OLDEST_PYTHON:
        yield (
            None,
            f"Python {python_version()} is deprecated; use"
            f" {'.'.join(map(str, _OLDEST_PYTHON))} or later",
        )
    for name in _VERSIONS:
        try:
            yield _compare_version(name, metadata.version(name))
        except metadata.PackageNotFoundError:
            advice = f"{name} is not installed; install it with: pip install {name}"
            is_optional = name in ("torch", "torchvision")
            yield (
                None if is_optional else False,
                f"{advice}{_WITHOUT_TORCH if is_optional else ''}",
            )
    for change in find_changed_records():
        yield False, f"HELM's {change}: {describe_helm()}"
    if reason := explain_torchvision():
        advice = f"install a build that fits: {page_address('quickstart#torch')}"
        yield None, f"{reason}, so {_WITHOUT_TORCHVISION}; {advice}"


def _compare_version(name: str, version: str) -> _Finding:
    """Compare a version with what this package requires."""
    needed = requirements().get(name)
    if needed is None or needed.specifier.contains(version, prereleases=True):
        return True, f"{name} {version}"
    return (
        False,
        f"{name} {version}; helm-longctx needs {needed}: pip install '{needed}'",
    )


def _plugin() -> Iterator[_Finding]:
    points = []
    for p in metadata.entry_points(group="helm"):
        if p.value == "helm_longctx.plugin":
            points.append(p)
    if not points:
        reason = "HELM does not see helm_longctx.plugin in the entry-point group 'helm'"
        yield False, f"{reason}; pip install the package again"
        return
    try:
        points[0].load()
    except Exception as error:  # HELM would only print a warning, whatever the error
        yield (
            False,
            f"helm_longctx.plugin cannot be loaded: {type(error).__name__}: {error}",
        )
        return
    from helm_longctx.helm_api import get_run_spec_function

    entries: list[str] = []
    for benchmark in BENCHMARKS:
        entries += benchmark.entries
    missing = []
    for entry in entries:
        if get_run_spec_function(entry) is None:
            missing.append(entry)
    if missing:
        yield False, f"HELM lacks {', '.join(missing)}"
    else:
        yield True, f"HELM has all {len(entries)} run entries"


def _adapter() -> Iterator[_Finding]:
    from helm_longctx.helm.patches import has_our_adapter

    registered = has_our_adapter()
    yield (
        registered,
        f"the adapter of helm-longctx is {'' if registered else 'not '}registered with HELM",
    )


def _data() -> Iterator[_Finding]:
    try:
        root = DataRoot.find()
    except InputError as error:
        yield False, str(error)
        return
    yield (
        True,
        f"{'mirror' if root.mirror else 'cache'} {root.path}; see helm-longctx list --all",
    )
    if SENTENCE_MODEL.is_on_disk(root):
        yield True, "NLTK's punkt_tab is here"
    else:
        titles = []
        for benchmark in BENCHMARKS:
            if SENTENCE_TERMS.keys() <= benchmark.data.keys():
                titles.append(benchmark.title)
        state = f"missing from {root.path}" if root.mirror else "fetched on first use"
        advice = f"`helm-longctx fetch` gets it with the data of {', '.join(titles)}"
        yield None, f"NLTK's punkt_tab is {state}; {advice}"


def _configuration(local_path: Path) -> Iterator[_Finding]:
    """Check the files that `helm-run` reads before it loads plugins. It fails with a traceback if one is malformed."""
    try:
        register_local_path(local_path)
    except (
        Exception
    ) as error:  # from the YAML parser, or from HELM: it does not check the structure
        yield False, f"in {local_path}: {describe_error(error)}"
        return
    files = sorted(path.name for path in local_path.glob("*.yaml"))
    yield True, f"in {local_path}: {', '.join(files) or 'none'}"
    yield from _helms_clients(local_path)


def _helms_clients(local_path: Path) -> Iterator[_Finding]:
    """Note deployments with a client of HELM's that gives anthropic a temperature. Version 1 no longer takes it."""
    from helm_longctx.helm_api import get_model_deployment
    from helm_longctx.models.apis.availability import read_names

    try:
        version = metadata.version("anthropic")
    except metadata.PackageNotFoundError:
        return
    clients = {}
    for name in read_names(local_path):
        clients[name] = get_model_deployment(name).client_spec.class_name
    names = []
    for name, client in clients.items():
        if client.startswith("helm.clients.anthropic_client."):
            names.append(name)
    if names and not version.startswith("0."):
        reason = f"{', '.join(names)}: HELM's own client cannot send requests with anthropic {version}"
        advice = "use the client helm_longctx.models.apis.AnthropicClient, or install what HELM allows"
        yield None, f"{reason}; {advice}: pip install 'crfm-helm[anthropic]'"


def _credentials(local_path: Path) -> Iterator[_Finding]:
    """List the names of the credentials. Their values are never printed."""
    keys = []
    for name in os.environ:
        if name.endswith(("_KEY", "_TOKEN")) and os.environ[name]:
            keys.append(name)
    variables = sorted(keys)
    yield True, f"in the environment: {', '.join(variables) or 'none'}"
    path = local_path / "credentials.conf"
    if path.is_file():
        try:
            yield (
                True,
                f"in {path}: {', '.join(credential_names(local_path)) or 'none'}",
            )
        except InputError as error:
            yield False, str(error)


def _models(local_path: Path) -> Iterator[_Finding]:
    """Ask providers for the models of `local_path`, and for the ready models and judges whose key is set."""
    from helm_longctx.helm_api import get_credentials
    from helm_longctx.models.apis.availability import check_models, has_key, read_names

    try:
        with redirect_stdout(StringIO()), without_helms_log():  # HELM prints the folder
            credentials = get_credentials(str(local_path))
        fill_registries(READY)
        register_local_path(local_path)
        configured = read_names(local_path)
    except (
        Exception
    ):  # the checks of the configuration and of the credentials report it
        return
    judges: set[str] = set()
    for benchmark in BENCHMARKS:
        judges.update(
            task.official_judge for task in benchmark.tasks if task.official_judge
        )
    others = []
    for name in (*read_names(READY), *sorted(judges)):
        if has_key(name, credentials) and name not in configured:
            others.append(name)
    with tempfile.TemporaryDirectory() as storage, without_helms_log():
        yield from check_models(configured, credentials, storage)
        for fine, text in check_models(others, credentials, storage):
            yield fine or None, text  # a note, because a run may not need this model


def _tiny_run() -> Iterator[_Finding]:
    """Make a run in this process: it takes seconds to import HELM again in another one."""
    from helm_longctx.helm.command_line import make_run_specs
    from helm_longctx.runner.runner import LongContextRunner, runner_arguments

    # The tasks need no data, and the lexical baseline solves them.
    choices = []
    for benchmark in BENCHMARKS:
        for entry_name, category in benchmark.entries.items():
            for task in category.tasks:
                if (
                    task.is_self_contained
                    and task.baseline
                    and task.baseline.kind == "lookup"
                ):
                    choices.append((benchmark, entry_name, task))
    # The fewer metrics a task has, the fewer libraries of metrics are imported.
    benchmark, name, task = min(choices, key=lambda choice: len(choice[2].metrics))
    arguments = (
        f"{benchmark.task_argument}={task.name},length={length_label(min(task.sizes))}"
    )
    entry = f"{name}:{arguments},num_samples=2,model=longctx/lexical"
    log = StringIO()
    with (
        tempfile.TemporaryDirectory() as path,
        redirect_stdout(log),
        redirect_stderr(log),
        _without_disturbance(),
    ):
        try:
            # The folder for HELM's files is empty, because another check reports mistakes in the user's files.
            folder = Path(path)
            runner = LongContextRunner(
                **runner_arguments(
                    folder, "doctor", folder, parallelism=1, has_cache=False
                )
            )
            runner.logs_scores = False
            runner.run_all(make_run_specs([entry], [], [], "doctor", 2, folder))
            rows = orjson.loads(
                next(folder.glob("runs/doctor/*/stats.json")).read_bytes()
            )
            wanted = {"name": MAIN_METRIC, "split": "test", "sub_split": task.name}
            score = next((row["mean"] for row in rows if row["name"] == wanted), None)
        except Exception as error:  # the check is there to find any error
            yield False, f"{entry} failed: {describe_error(error)}"
            return
    yield score == 1.0, f"{entry} scored {score}, expected 1.0"


@contextmanager
def _without_disturbance() -> Iterator[None]:
    """Log nothing, and ignore the user's mirror: one that lacks data must not stop a run that needs none."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        with replace(settings_in_use(), mirror=None).use():
            yield
    finally:
        logging.disable(before)
