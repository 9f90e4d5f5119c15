"""Finds mistakes on `helm-run`'s command line before data is read or requests are sent.

HELM passes no arguments to a plugin, so this module parses them again with HELM's parser. It ignores commands that use
neither our run entries nor our runner. It cannot check the YAML files of `--local-path`, because HELM reads them before
it loads plugins; `helm-longctx doctor` checks them.
"""

import atexit
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from helm.benchmark.model_deployment_registry import (
    ALL_MODEL_DEPLOYMENTS,
    get_default_model_deployment_for_model,
    get_model_deployment,
)
from helm.benchmark.model_metadata_registry import get_all_models
from helm.benchmark.presentation.run_entry import RunEntry, read_run_entries
from helm.benchmark.run_expander import ModelRunExpander
from helm.benchmark.run_spec import RunSpec, get_run_spec_function
from helm.benchmark.runner import Runner, set_benchmark_output_path
from helm.common.general import parse_hocon
from helm.common.object_spec import get_class_by_name

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, UnsupportedHelmError, find_similar, shorten
from helm_longctx.helm.errors import install_excepthook, print_error
from helm_longctx.helm.patches import find_registered_first
from helm_longctx.helm.run_specs import check_own_entry, fetch_entries
from helm_longctx.helm_log import helm_log
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.registry import (
    BENCHMARKS,
    OURS,
    is_benchmark,
    read_single_entry,
)
from helm_longctx.tasks.run_names import SUITE_NAME, is_suite_name

RUNNER = "helm_longctx.runner.LongContextRunner"

_MISSPELLED = 0.8
"""Likeness of two names from which one of them counts as a misspelling of the other."""


def check_command_line(command: list[str]) -> None:
    """Print the mistakes in a `helm-run` command and exit. Other commands are ignored.

    Raises:
        SystemExit: there are mistakes. HELM catches other exceptions of a plugin, but not this one.
    """
    # `python -m helm.benchmark.run` has the path of the module as its first argument.
    if not (
        Path(command[0]).stem == "helm-run"
        or command[0].endswith("helm/benchmark/run.py")
    ):
        return
    from helm.benchmark.run import build_parser

    args = build_parser().parse_args(command[1:])
    if not asks_for_ours(args):
        return
    install_excepthook()
    # All mistakes are printed at once, so that the user can correct all of them.
    problems = list(find_problems(args))
    for problem in problems:
        print_error(problem)
    if problems:
        raise SystemExit(1)
    # Our runner does both itself.
    if not (args.runner_class_name or "").startswith("helm_longctx."):
        atexit.register(_log_next_of_helm, Path(args.output_path), args.suite)
        for problem in _find_lacking(args):
            print_error(InputError(f"{problem}; the other runs are made"))


def _log_next_of_helm(output_path: Path, suite: str) -> None:
    """Log the next command at the end of a process of HELM's runner, unless an exception ended it."""
    # Python sets it before it reports an exception that nothing caught.
    if getattr(sys, "last_value", None) is None:
        log_next_command(output_path, suite)


def log_next_command(output_path: Path, suite: str) -> None:
    """Log the command that shows the scores of a suite, if it has runs.

    HELM's own `helm-summarize` loads no plugin, and its own schema has none of our groups and metrics.
    """
    if any((output_path / "runs" / suite).glob("*/stats.json")):
        command = shlex.join(
            ["helm-longctx", "summarize", "--suite", suite, "-o", str(output_path)]
        )
        helm_log.info(
            f"Next: {command} (helm-summarize shows these scores only with a schema of"
            " `helm-longctx schema`)"
        )


def find_problems(args: Namespace) -> Iterator[InputError]:
    """Yield the mistakes in the arguments of a `helm-run` command that uses an entry or the runner of this package."""
    for path in args.conf_paths:
        try:
            read_conf(path, args.priority)
        except InputError as error:
            yield InputError(f"--conf-paths {error}")
    yield from _check_options(args)
    for text in _our_entries(args):
        try:
            _check_entry(text, args)
        except InputError as error:
            yield error
    try:
        DataRoot.find(args.output_path)
    except InputError as error:
        yield error


def _find_lacking(args: Namespace) -> Iterator[InputError]:
    """Yield what entries lack: data in a mirror, or a package. HELM's own runner makes the other runs nevertheless."""
    entries = [_check_entry(text, args) for text in _our_entries(args)]
    root = DataRoot.find(args.output_path)
    for entry in entries:
        try:
            entry.check_machine()
        except InputError as error:
            yield error
    yield from fetch_entries(entries, root).values() if root.mirror else ()


def make_run_specs(
    entries: Sequence[str],
    conf_paths: Sequence[Path],
    models: Sequence[str],
    suite: str,
    most: int,
    output_path: Path,
) -> list[RunSpec]:
    """Make the same run specs as `helm-run`, for other commands that take run entries. Models must be registered.

    Args:
        entries, conf_paths, models, suite, most, output_path: `helm-run`'s `--run-entries`, `--conf-paths`,
            `--models-to-run`, `--suite`, `-m` and `-o`.

    Raises:
        InputError: there is a mistake in the arguments.
    """
    from helm.benchmark.run import build_parser

    args = build_parser().parse_args(
        ["-m", str(most), "--suite", suite, "-o", str(output_path)]
    )
    args.run_entries = list(entries)
    args.conf_paths = [str(path) for path in conf_paths]
    args.models_to_run = list(models) or None
    if not (args.run_entries or args.conf_paths):
        raise InputError(
            "no run entry is given; give run entries, or --conf-paths with files of run entries"
        )
    for problem in find_problems(args):
        raise problem
    wanted = [_make_run_entry(entry) for entry in args.run_entries]
    if args.conf_paths:  # HELM fails at no paths
        wanted += read_run_entries(args.conf_paths).entries
    return _expand(wanted, models, most, output_path)


def expand_checked_entry(
    entry: str,
    models: Sequence[str],
    most: int,
    output_path: Path,
) -> list[RunSpec]:
    """Make the run specs of a checked run entry, as `make_run_specs` does.

    Raises:
        InputError: HELM refuses the entry.
    """
    return _expand([_make_run_entry(entry)], models, most, output_path)


def _make_run_entry(text: str) -> RunEntry:
    return RunEntry(
        description=text,
        priority=1,
        groups=None,
    )


def _expand(
    entries: list[RunEntry],
    models: Sequence[str],
    most: int,
    output_path: Path,
) -> list[RunSpec]:
    from helm.benchmark.run import run_entries_to_run_specs

    find_registered_first.apply()
    # Run specs can depend on the output path.
    output_path.mkdir(parents=True, exist_ok=True)
    set_benchmark_output_path(str(output_path))
    try:
        return run_entries_to_run_specs(
            entries, max_eval_instances=most, models_to_run=list(models) or None
        )
    except UnsupportedHelmError:
        raise
    except ValueError as error:  # for example a deployment of another model
        raise InputError(describe_error(error)) from error


def asks_for_ours(args: Namespace) -> bool:
    """Whether the command names a run entry, a conf file or the runner of this package, even if misspelled."""
    is_our_runner = find_similar(
        args.runner_class_name or "", [RUNNER], likeness=_MISSPELLED
    )
    names = [benchmark.name for benchmark in BENCHMARKS]
    has_our_conf = False
    for path in args.conf_paths:
        conf = Path(path).name
        has_our_conf |= any(name in conf for name in names)
    return bool(is_our_runner or has_our_conf or _our_entries(args))


def _our_entries(args: Namespace) -> list[str]:
    """Return the entries that are ours, or that are spelled like ours and unknown to HELM."""
    of_confs: list[str] = []
    for path in args.conf_paths:
        with suppress(InputError):  # `find_problems` reports it
            of_confs += read_conf(path, args.priority)
    ours = []
    for text in (*args.run_entries, *args.run_specs, *of_confs):
        name = text.partition(":")[0].strip()
        # The name of an entry of HELM or of another plugin can be similar to ours, so only unknown names count. HELM is
        # asked last, because it imports all its scenarios to answer.
        is_similar = bool(find_similar(name, OURS, likeness=_MISSPELLED))
        is_ours = name in OURS or is_benchmark(name)
        if is_ours or (is_similar and get_run_spec_function(name) is None):
            ours.append(text)
    return ours


def read_conf(path: str, priority: int | None = None) -> list[str]:
    """Return the run entries of a file that `--priority` selects. Raises an `InputError` if it cannot be read."""
    try:
        entries = parse_hocon(Path(path).read_text(encoding="utf-8"))["entries"]
        # As in HELM, entries without a priority are selected, too.
        selection = []
        for entry in entries:
            if priority is None or entry.get("priority", priority) <= priority:
                selection.append(entry)
        return [str(entry["description"]) for entry in selection]
    except OSError as error:
        raise InputError(
            f"{shorten(path)}: {error.strerror}; helm-longctx confs FOLDER makes such files"
        ) from error
    except (
        Exception
    ) as error:  # the parser raises many kinds, and the content can have any structure
        raise InputError(
            f"{shorten(path)} is not a file of run entries: {shorten(str(error))}"
        ) from error


def _check_options(args: Namespace) -> Iterator[InputError]:
    for option, value in (("-n", args.num_threads), ("-m", args.max_eval_instances)):
        if value < 1:
            yield InputError(f"{option} {value} is invalid; give a whole number from 1")
    # HELM makes a folder of this name under `runs`.
    if not is_suite_name(args.suite):
        yield InputError(f"--suite {shorten(args.suite)} is invalid; give {SUITE_NAME}")
    try:
        runner: Any = get_class_by_name(args.runner_class_name or RUNNER)
    except (ImportError, AttributeError, ValueError):
        runner = None
    if not (isinstance(runner, type) and issubclass(runner, Runner)):
        yield InputError(
            f"--runner-class-name {shorten(args.runner_class_name)} is not a runner;"
            f" did you mean {RUNNER}?"
        )
    for model in args.models_to_run or []:
        if not _can_run(model, args):
            yield unknown_model("--models-to-run ", model)


def _check_entry(text: str, args: Namespace) -> Entry:
    written = read_single_entry(text)
    name, arguments = written
    if name not in OURS:
        raise InputError(
            f"unknown run entry {shorten(name)}; did you mean {find_similar(name, OURS)[0]}?"
        )
    model = arguments.get("model") or arguments.get("model_deployment")
    if not (model or args.models_to_run):
        if wrong := [key for key in arguments if key.strip() == "model"]:
            raise InputError(
                f"{name}: there is a space around the argument {shorten(wrong[0])}; write 'model'"
            )
        raise InputError(
            f"{name} names no model; add model=… to the entry, or give --models-to-run"
        )
    if model and not _can_run(model, args):
        raise unknown_model(f"{name}: model=", model)
    return check_own_entry(written)


def _can_run(model: str, args: Namespace) -> bool:
    """Whether HELM can run a model. True where HELM registers models after this plugin: they cannot be checked."""
    registers_later = (
        args.plugins
        or args.enable_huggingface_models
        or args.enable_local_huggingface_models
    )
    return bool(registers_later) or is_model(model)


def is_model(model: str) -> bool:
    """Whether a name is a model, a deployment or a group of models that HELM knows."""
    # A group of models, such as `text`, is not a model itself.
    if model in ModelRunExpander(model).get_model_group_to_model_names():
        return True
    return find_deployment_of(model) is not None


def find_deployment_of(name: str) -> str | None:
    """Return the deployment that a name of a deployment or a model stands for, or None if HELM knows neither."""
    try:
        return str(get_model_deployment(name).name)
    except ValueError:
        return get_default_model_deployment_for_model(name)


def unknown_model(where: str, model: str) -> InputError:
    """Return an error about a model that HELM does not know. It names the most similar model."""
    similar = find_similar(
        model,
        [*get_all_models(), *(deployment.name for deployment in ALL_MODEL_DEPLOYMENTS)],
    )
    question = f"did you mean {similar[0]}? Give" if similar else "give"
    return InputError(
        f"{where}{shorten(model)} is not a model; {question} one of HELM's models, of"
        " --local-path or of `helm-longctx models`"
    )
