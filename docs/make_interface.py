"""Writes the list of all public names, docs/public-interface.txt: `python docs/make_interface.py`, or `make reference`.

Removing a name breaks programs of users, so it is a decision: the script stops if a name of the list is gone, unless
`--remove` is given (`make reference REMOVE=1`). docs/stability.md says what is public, and how a name is removed.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from helm.common.object_spec import get_class_by_name

import helm_longctx
import helm_longctx.tasks as benchmark_interface
from helm_longctx.apps import app
from helm_longctx.cli.main import EXIT_STATUSES, load_parser
from helm_longctx.config.schema import RunConfig
from helm_longctx.helm.run_specs import make_entry_spec
from helm_longctx.models.apis import provider
from helm_longctx.models.apis.client import ClientSettings
from helm_longctx.runs import files, journal, ledger, prompts
from helm_longctx.tasks import registry
from helm_longctx.tasks.benchmark import Benchmark, Category
from helm_longctx.tasks.entry import Entry, allowed_arguments, parse_entry
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.methods import registry as methods
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import EVERY_TASK

ROOT = Path(__file__).parents[1]
LIST = ROOT / "docs/public-interface.txt"

RUNNERS = (
    "helm_longctx.runner.LongContextRunner",
    "helm_longctx.runner.machines.RayRunner",
    "helm_longctx.runner.machines.slurm_runner.SlurmRunner",
    "helm_longctx.results.leaderboard.LongContextSummarizer",
)
"""The classes that users name on the command lines of HELM."""

LOCAL_CLIENT = "helm_longctx.models.local.huggingface.LongContextHuggingFaceClient"

_VARIABLE = re.compile(r"\b(?:HELM_LONGCTX(?:_[A-Z0-9]+)+|[A-Z]+_JUDGE_[A-Z_]+)\b")


def list_names() -> list[str]:
    """Return the public names, one in a line, sorted: kind, owner, name."""
    sources = (_commands, _config, _entries, _classes, _files, _variables, _extensions)
    return sorted({line for source in sources for line in source()})


def find_removed(before: list[str], after: list[str]) -> list[str]:
    """Return the names of an earlier list that a list lacks."""
    return sorted(set(before) - set(after))


def _commands() -> Iterator[str]:
    yield from (f"exit-status {status}" for status in EXIT_STATUSES)
    yield from _parameters("helm-longctx", load_parser())


def _parameters(name: str, command: Any) -> Iterator[str]:
    for each in command.params:
        if each.name not in ("help", "install_completion", "show_completion"):
            names = (
                (*each.opts, *each.secondary_opts)
                if each.param_type_name == "option"
                else (each.name.upper(),)
            )
            yield from (f"command {name} {option}" for option in names)
    for child, each in getattr(command, "commands", {}).items():
        yield f"command {name} {child}"
        yield from _parameters(f"{name} {child}", each)


def _config() -> Iterator[str]:
    schema = RunConfig.model_json_schema()
    yield from (f"configuration {path}" for path in _keys(schema, schema["$defs"], ""))


def _keys(
    schema: Mapping[str, Any], kinds: Mapping[str, Any], prefix: str
) -> Iterator[str]:
    """Yield the paths of the keys in a JSON schema; `[]` stands for the items of a list."""
    if "$ref" in schema:
        yield from _keys(kinds[schema["$ref"].rpartition("/")[2]], kinds, prefix)
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _keys(each, kinds, prefix)
    if "items" in schema:
        yield from _keys(schema["items"], kinds, f"{prefix}[]")
    for name, value in schema.get("properties", {}).items():
        path = f"{prefix}.{name}".lstrip(".")
        yield path
        yield from _keys(value, kinds, path)


def _entries() -> Iterator[str]:
    """Yield arguments and tasks of run entries. What all entries have stands once, and so do tasks in each language."""
    yield from (f"entry * {argument}" for argument in EVERY_TASK)
    for method in methods.METHODS.values():
        yield from (
            f"entry * method={method.name} {argument}" for argument in method.arguments
        )
    for benchmark in BENCHMARKS:
        yield from (
            f"metric {benchmark.name} {metric.name}" for metric in benchmark.metrics
        )
        for name, category in benchmark.entries.items():
            owner = name
            if benchmark.category_argument:
                owner = benchmark.name
                yield f"entry {owner} {benchmark.category_argument}={category.name}"
            shared = {*EVERY_TASK, *methods.METHOD_ARGUMENTS, benchmark.task_argument}
            own = {*allowed_arguments(benchmark, name)} - shared
            yield from (f"entry {owner} {argument}" for argument in own)
            for task in (*category.tasks, *category.variants):
                yield f"entry {owner} {benchmark.task_argument}={task.argument}"


def _classes() -> Iterator[str]:
    yield from (f"class {name}" for name in RUNNERS if _is_defined(name))
    clients = [each.client_path for each in provider.our_providers()]
    for name in (*clients, LOCAL_CLIENT):
        arguments = inspect.signature(get_class_by_name(name)).parameters.values()
        yield from (
            f"class {name} {each.name}"
            for each in arguments
            if each.kind is not each.VAR_KEYWORD
        )
    for name in clients:
        yield from (
            f"class {name} {field.name}" for field in dataclasses.fields(ClientSettings)
        )
    for benchmark in BENCHMARKS:
        for entry, category in benchmark.entries.items():
            # Stored run specs name these classes.
            spec = make_entry_spec(_parse(benchmark, entry, category))
            specs = [spec.scenario_spec, *spec.metric_specs, *(spec.annotators or [])]
            yield from (f"class {each.class_name}" for each in specs)


def _is_defined(name: str) -> bool:
    """Whether a module has a class. It is not imported, because Slurm's runner needs a package that most users lack."""
    module, _, kind = name.rpartition(".")
    spec = find_spec(module)
    return bool(
        spec and spec.origin and kind in Path(spec.origin).read_text(encoding="utf-8")
    )


def _parse(benchmark: Benchmark, entry: str, category: Category) -> Entry:
    length = (
        f"length={length_label(min(category.tasks[0].sizes))}" if benchmark.axis else ""
    )
    path = "path=questions" if category.needs_path else ""
    return parse_entry(
        BENCHMARKS, f"{entry}:{','.join(filter(None, (length, path)))}".rstrip(":")
    )


def _files() -> Iterator[str]:
    names = (
        *files.FILES,
        journal.NAME,
        ledger.NAME,
        prompts.TEXTS,
        prompts.INDEX,
        files.MODEL,
    )
    yield from (f"file RUN/{name}" for name in names)
    yield from (
        f"field extra_data.{field.name}" for field in dataclasses.fields(Sample)
    )


def _variables() -> Iterator[str]:
    for path in (ROOT / "src").rglob("*.py"):
        yield from (
            f"variable {name}"
            for name in _VARIABLE.findall(path.read_text(encoding="utf-8"))
        )


def _extensions() -> Iterator[str]:
    yield from (
        f"entry-point {group}"
        for group in (app.GROUP, registry.GROUP, methods.GROUP, provider.GROUP)
    )
    for name in benchmark_interface.__all__:
        yield from _members(
            f"helm_longctx.tasks.{name}", getattr(benchmark_interface, name)
        )
    for name in helm_longctx.__all__:
        yield from _members(f"helm_longctx.{name}", getattr(helm_longctx, name))
    yield from (
        f"python helm_longctx.evaluate {name}"
        for name in inspect.signature(helm_longctx.evaluate).parameters
    )
    for kind in (
        provider.Provider,
        provider.HelmClient,
        app.App,
        app.Command,
        app.ReportPage,
    ):
        yield from _members(f"{kind.__module__}.{kind.__name__}", kind)


def _members(path: str, value: Any) -> Iterator[str]:
    yield f"python {path}"
    if dataclasses.is_dataclass(value):
        yield from (
            f"python {path} {field.name}" for field in dataclasses.fields(value)
        )


def main() -> None:
    """Write the list; stop if a name would be removed without `--remove`."""
    before = LIST.read_text(encoding="utf-8").splitlines() if LIST.is_file() else []
    names = list_names()
    removed = find_removed(before, names)
    if removed and "--remove" not in sys.argv:
        sys.exit(
            "These public names would be gone:\n  "
            + "\n  ".join(removed)
            + "\nThis breaks programs of users (docs/stability.md). If it is decided: make reference REMOVE=1"
        )
    LIST.write_text("\n".join(names) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
