"""Mistakes on `helm-run`'s command line, one line each, before anything is read or sent.

HELM gives a plugin no arguments, so they are parsed once more, by HELM's own parser. A command that names none of our
entries and not our runner is left to HELM. What HELM reads before it loads plugins, the YAML files of `--local-path`,
is out of reach here: `helm-longctx doctor` reads them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from helm.benchmark.model_deployment_registry import (
    ALL_MODEL_DEPLOYMENTS,
    get_default_model_deployment_for_model,
    get_model_deployment,
)
from helm.benchmark.model_metadata_registry import get_all_models
from helm.benchmark.run_expander import RUN_EXPANDERS, ModelRunExpander
from helm.benchmark.run_spec import get_run_spec_function
from helm.benchmark.runner import Runner
from helm.common.general import parse_hocon
from helm.common.object_spec import get_class_by_name

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.cli.errors import install_excepthook, print_error
from helm_longctx.errors import InputError, shorten
from helm_longctx.helm.run_specs import check_data
from helm_longctx.protocol.entry import Entry, check_entry, split_entry

OURS = {name: benchmark for benchmark in BENCHMARKS for name in benchmark.entries}
RUNNER = "helm_longctx.running.LongContextRunner"
LONGEST_NAME = 255
"""Bytes of a file name, on nearly every file system."""


def check_command_line(command: list[str]) -> None:
    """Print what is wrong with a `helm-run` command and end the process; do nothing for any other command.

    Args:
        command: `sys.argv`.

    Raises:
        SystemExit: something is wrong. HELM catches a plugin's exceptions, but not this.
    """
    if not (Path(command[0]).stem == "helm-run" or command[0].endswith("helm/benchmark/run.py")):
        return
    from helm.benchmark.run import build_parser

    args = build_parser().parse_args(command[1:])
    if not asks_for_ours(args):
        return
    install_excepthook()
    problems = list(find_problems(args))
    for problem in problems:
        print_error(problem)
    if problems:
        raise SystemExit(1)


def find_problems(args: Namespace) -> Iterator[InputError]:
    """What is wrong with the arguments of a `helm-run` that asks for something of ours."""
    yield from (found for found in _read_confs(args) if isinstance(found, InputError))
    yield from _wrong_options(args)
    entries = []
    for text in _our_entries(args):
        try:
            entries.append(_check(text, args))
        except InputError as error:
            yield error
    try:
        check_data(entries, args.output_path)
    except InputError as error:
        yield error


def asks_for_ours(args: Namespace) -> bool:
    """Whether the command names an entry, a conf file or the runner of this package, or what is spelled like one."""
    is_our_runner = _is_near(args.runner_class_name or "", [RUNNER])
    return is_our_runner or any(map(_is_our_conf, args.conf_paths)) or bool(_our_entries(args))


def _our_entries(args: Namespace) -> list[str]:
    of_confs = (text for entries in _read_confs(args) if isinstance(entries, list) for text in entries)
    return [text for text in (*args.run_entries, *args.run_specs, *of_confs) if _is_ours(text)]


def _read_confs(args: Namespace) -> list[list[str] | InputError]:
    return [_read_conf(path, args.priority) for path in args.conf_paths]


def _read_conf(path: str, priority: int | None) -> list[str] | InputError:
    """The run entries of a file, without those that `--priority` leaves out; an error if it cannot be read."""
    try:
        entries = parse_hocon(Path(path).read_text(encoding="utf-8"))["entries"]
        wanted = [entry for entry in entries if priority is None or entry.get("priority", priority) <= priority]
        return [str(entry["description"]) for entry in wanted]
    except OSError as error:
        return InputError(f"--conf-paths {shorten(path)}: {error.strerror}; helm-longctx confs FOLDER makes such files")
    except Exception as error:  # of a parser, or of what it made
        return InputError(f"--conf-paths {shorten(path)} is no file of run entries: {shorten(str(error))}")


def _wrong_options(args: Namespace) -> Iterator[InputError]:
    for option, value in (("-n", args.num_threads), ("-m", args.max_eval_instances)):
        if value < 1:
            yield InputError(f"{option} {value} is not allowed; allowed: a whole number from 1")
    if "/" in args.suite or args.suite in ("", ".", "..") or len(args.suite.encode()) > LONGEST_NAME:
        yield InputError(
            f"--suite {shorten(args.suite)} is not allowed; allowed: a folder's name, without '/' and of at most"
            f" {LONGEST_NAME} bytes"
        )
    if args.runner_class_name and not _is_runner(args.runner_class_name):
        yield InputError(f"--runner-class-name {shorten(args.runner_class_name)} is no runner; did you mean {RUNNER}?")
    for model in args.models_to_run or []:
        if not _is_known(model, args):
            yield _unknown_model("--models-to-run ", model)


def _is_runner(name: str) -> bool:
    try:
        found: Any = get_class_by_name(name)
    except (ImportError, AttributeError, ValueError):
        return False
    return isinstance(found, type) and issubclass(found, Runner)


def _check(text: str, args: Namespace) -> Entry:
    """One of our entries with its model; HELM's run expanders are HELM's business."""
    name, arguments = split_entry(text)
    if name not in OURS:
        raise InputError(f"unknown run entry {shorten(name)}; did you mean {_nearest(name, OURS)}?")
    model = arguments.get("model") or arguments.get("model_deployment")
    if not (model or args.models_to_run):
        if wrong := [key for key in arguments if key.strip() == "model"]:
            raise InputError(f"{name}: there is a space around the argument {shorten(wrong[0])}: write 'model'")
        raise InputError(f"{name} names no model: add model=… to the entry, or --models-to-run")
    if model and not _is_known(model, args):
        raise _unknown_model(f"{name}: model=", model)
    return check_entry(OURS[name], name, {k: value for k, value in arguments.items() if k not in RUN_EXPANDERS})


def _is_known(model: str, args: Namespace) -> bool:
    """Whether HELM can run it. What is registered after this plugin is not known yet, and let through."""
    if args.plugins or args.enable_huggingface_models or args.enable_local_huggingface_models:
        return True
    if model in ModelRunExpander(model).get_model_group_to_model_names():
        return True
    try:
        return bool(get_default_model_deployment_for_model(model) or get_model_deployment(model))
    except ValueError:
        return False


def _unknown_model(where: str, model: str) -> InputError:
    nearest = _nearest(model, [*get_all_models(), *(deployment.name for deployment in ALL_MODEL_DEPLOYMENTS)])
    return InputError(
        f"{where}{shorten(model)} is no model; allowed: HELM's models, those of --local-path, and `helm-longctx models`"
        + (f"; did you mean {nearest}?" if nearest else "")
    )


def _is_ours(text: str) -> bool:
    """Whether an entry is one of ours, or is spelled like one and nobody else's."""
    name = text.partition(":")[0].strip()
    return name in OURS or (get_run_spec_function(name) is None and _is_near(name, OURS))


def _is_our_conf(path: str) -> bool:
    return any(benchmark.name in Path(path).name for benchmark in BENCHMARKS)


def _is_near(name: str, names: Iterable[str]) -> bool:
    return bool(_nearest(name, names, likeness=0.8))


def _nearest(name: str, names: Iterable[str], likeness: float = 0.6) -> str | None:
    return next(iter(get_close_matches(name[:LONGEST_NAME], list(names), n=1, cutoff=likeness)), None)
