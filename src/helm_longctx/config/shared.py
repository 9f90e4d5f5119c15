"""Code that several commands share: options, checks of paths, HELM's registries, and what is shown of HELM's log."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    redirect_stdout,
)
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from helm_longctx.data.root import DataRoot
from helm_longctx.data.yaml_files import load_yaml
from helm_longctx.environment import require
from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.process_state import change_until_end
from helm_longctx.redaction.logs import redact_logs
from helm_longctx.redaction.text import register_environment

if TYPE_CHECKING:
    from helm_longctx.helm_api import RunSpec


def complete_suite(context: typer.Context, incomplete: str) -> list[str]:
    """Return the suites in the output folder whose names start with a text, for the completion of a shell."""
    runs = Path(context.params.get("output_path") or "benchmark_output") / "runs"
    # HELM makes a link `latest` in the folder of the suites.
    names = []
    for path in runs.glob("*"):
        if path.is_dir() and path.name != "latest":
            names.append(path.name)
    names.sort()
    return [name for name in names if name.startswith(incomplete)]


SuiteOption = Annotated[
    str, typer.Option(help="Name of the suite.", autocompletion=complete_suite)
]
OutputPath = Annotated[
    Path, typer.Option("--output-path", "-o", help="HELM's output folder.")
]
LocalPath = Annotated[
    Path, typer.Option(help="Folder with HELM's YAML files and credentials.conf.")
]
Entries = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN-ENTRIES", help="Run entries, e.g. helmet_rag:length=8k,model=a/b."
    ),
]
MostInstances = Annotated[
    int,
    typer.Option(
        "--max-eval-instances", "-m", min=1, help="Maximum instances per run."
    ),
]
JsonPath = Annotated[
    Path | None,
    typer.Option("--json", help="Also write all results to this file, as JSON."),
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Log only errors.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show the whole log of HELM.")
]

READY = Path(str(resources.files("helm_longctx") / "models"))
"""The folder with the deployments that come with the package."""

_PICTURES = (".png", ".svg", ".pdf")

LOG_FORMAT = "helm-longctx: %(message)s"

_PACKAGE = Path(__file__).parents[1]

_CHATTER = ("helm/clients/", "helm/common/credentials_utils.py")
"""Code of HELM whose warnings say nothing that our own errors do not say: its clients log the traceback of each failed
request, and its look-up of keys warns although a client finds the key in the environment."""


def check_folder(option: str, path: Path | None) -> None:
    """Raise an `InputError` if a file cannot be written, before calls cost money."""
    if path and path.is_dir():
        raise InputError(f"{option}={str(path)!r} is a folder; give a file")
    if path and not path.parent.is_dir():
        raise InputError(
            f"{option}={str(path)!r}: the folder {path.parent} does not exist; create it first"
        )


def check_picture(command: str, path: Path) -> None:
    """Raise an `InputError` if a plot's format is unknown, or the extra `plot` is not installed."""
    if path.suffix not in _PICTURES:
        raise bad_argument(
            command, "plot", str(path), f"a file that ends in {', '.join(_PICTURES)}"
        )
    require("plot", f"plot={str(path)!r}")


def fill_registries(local_path: Path) -> None:
    """Register what `helm-run` registers at its start, or raise an `InputError`.

    These are HELM's own models and deployments, the ones in the YAML files of `local_path`, and this package's plugin.
    At the end of the command or the call they are forgotten, so that the next one knows only its own.
    """
    import helm_longctx.plugin  # noqa: F401
    from helm_longctx.helm.patches import (
        load_with_libyaml,
        log_what_helm_prints,
        yaml_reader,
    )
    from helm_longctx.helm_api import register_builtin_configs_from_helm_package
    from helm_longctx.models.registration import restore_registries

    change_until_end(restore_registries())
    log_what_helm_prints()
    with yaml_reader(load_with_libyaml):
        register_builtin_configs_from_helm_package()
    # The user's files last, so that they replace deployments of the same name, as in `helm-run`.
    register_local_path(local_path)
    credential_names(local_path)


def credential_names(local_path: Path) -> list[str]:
    """Return the names in HELM's file of credentials, if it exists, or raise an `InputError` without its text."""
    from pyhocon import ConfigFactory

    path = local_path / "credentials.conf"
    try:
        if path.is_file():
            return sorted(ConfigFactory.parse_file(str(path)))
        return []
    except OSError:
        raise
    except Exception:  # its message could quote a key, so it is dropped
        raise InputError(f"{path} is not a HOCON file; correct or remove it") from None


def register_local_path(local_path: Path) -> None:
    """Register what a user's `local_path` describes. Raises an `InputError` if HELM cannot read a file of it."""
    from helm_longctx.helm.patches import yaml_reader
    from helm_longctx.helm_api import register_configs_from_directory
    from helm_longctx.models.registration import restore_registries

    change_until_end(restore_registries())
    try:
        with yaml_reader(load_yaml):
            register_configs_from_directory(str(local_path))
    except InputError:
        raise
    except Exception as error:  # from HELM: it does not check the structure
        reason = f"{type(error).__name__} {shorten(str(error), 200)}"
        raise InputError(
            f"--local-path: HELM cannot read the YAML files in {local_path}: {reason}"
        ) from error


def entry_file(about: str, entries: Iterable[str]) -> str:
    """Return the content of a file of run entries for `helm-run --conf-paths`."""
    lines = ",\n".join(
        f'  {{description: "{entry}", priority: 1}}' for entry in entries
    )
    return f"# {about}\n\nentries: [\n{lines}\n]\n"


def make_specs(
    entries: list[str] | None,
    options: Mapping[str, Any],
    suite: str,
    most: int,
    output_path: Path,
    local_path: Path,
) -> list[RunSpec]:
    """Fill the registries, and make the run specs of run entries and options, or raise an `InputError`."""
    from helm_longctx.config.load import load_config
    from helm_longctx.config.options import read_options, split_names
    from helm_longctx.tasks.registry import read_known_entries

    expanded: list[str] = []
    for text in [*(entries or []), *(options["entry"] or [])]:
        for written in read_known_entries(text):
            expanded.append(written.text)
    of_tasks = {}
    for name in ("tasks", "length", "argument", "model"):
        if options[name]:
            of_tasks[name] = options[name]
    if of_tasks.keys() - {"model"}:
        config = load_config(None, read_options(of_tasks))
    else:
        config = None
    from helm_longctx.helm.command_line import make_run_specs  # this imports HELM

    fill_registries(local_path)
    if config:
        from helm_longctx.config.entries import plan_entries
        from helm_longctx.config.models import expand_models

        root = DataRoot.find(output_path)
        for entry in plan_entries(config, expand_models(config), root):
            expanded.append(entry.text)
    paths = [Path(path) for path in options["conf_path"] or []]
    return make_run_specs(
        expanded, paths, split_names(options["model"] or []), suite, most, output_path
    )


@contextmanager
def log_from(name: str, level: int | str) -> Iterator[None]:
    """Log the messages of a logger from a level on while the block runs."""
    log = logging.getLogger(name)
    before = log.level
    log.setLevel(level)
    try:
        yield
    finally:
        log.setLevel(before)


def without_helms_log() -> AbstractContextManager[None]:
    """Turn off HELM's log for a block: its clients log tracebacks, and our commands report errors."""
    return log_from("helm", logging.CRITICAL)


@contextmanager
def set_log_levels(quiet: bool, verbose: bool) -> Iterator[TextIO]:
    """Log only errors, all of HELM, or warnings and progress in the block. Yields the stream for HELM's prints."""
    if quiet and verbose:
        raise InputError(
            "run: --quiet and --verbose cannot be used together; give one of them"
        )
    helms: str | int = os.environ.get("HELM_LOG_LEVEL", "INFO").upper()
    ours: str | int = logging.getLogger("helm_longctx").level
    if quiet:
        helms = logging.ERROR
        ours = logging.ERROR
    filtered = nullcontext(sys.stderr) if verbose else _filter_log()
    with log_from("helm", helms), log_from("helm_longctx", ours), filtered as prints:
        yield prints


@contextmanager
def show_log() -> Iterator[None]:
    """Write the log to standard error while the block runs, redacted, if the calling program writes it nowhere."""
    register_environment()
    redact_logs()
    loggers = [logging.getLogger(name) for name in ("helm", "helm_longctx")]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    silent = []
    for logger in loggers:
        if not logger.hasHandlers():
            silent.append(logger)
    for logger in silent:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in silent:
            logger.removeHandler(handler)


@contextmanager
def hide_chatter() -> Iterator[None]:
    """Hide what HELM prints while the block runs, and what it logs that does not concern the user."""
    with _filter_log() as nowhere, redirect_stdout(nowhere):
        yield


@contextmanager
def _filter_log() -> Iterator[TextIO]:
    """Hide what HELM logs that does not concern the user in the block. Yields a stream that goes nowhere."""
    log = logging.getLogger("helm")
    log.addFilter(_is_for_users)
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            yield nowhere
    finally:
        log.removeFilter(_is_for_users)


_HELMS_RETRIES = "helm/proxy/retry.py"
"""Where HELM logs the error of each request that it sends again, for its own scenarios."""

_RATE_LIMIT = re.compile(r"\b429\b|rate.?limit", re.IGNORECASE)


def _is_for_users(record: logging.LogRecord) -> bool:
    """Whether a record is a warning that concerns the user, a server's limit, or a message of this package."""
    text = record.getMessage().strip()
    path = Path(record.pathname)
    is_bracket = text.endswith("{") or text.startswith("}")
    if path.is_relative_to(_PACKAGE):
        return record.levelno >= logging.WARNING or not is_bracket
    if path.as_posix().endswith(_HELMS_RETRIES):
        return "\n" not in text and _RATE_LIMIT.search(text) is not None
    return record.levelno >= logging.WARNING and not any(
        part in path.as_posix() for part in _CHATTER
    )
