"""Finds the benchmarks: in the folders of this package, and in other installed packages by their entry points."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.errors import (
    InputError,
    bad_argument,
    find_similar,
    list_first,
    shorten,
)
from helm_longctx.parts import leave_out_faulty, load_plugins
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import (
    Entry,
    WrittenEntry,
    check_category,
    check_written_entry,
    parse_entry,
    split_entry,
)
from helm_longctx.tasks.publications import Protocol, Reported

GROUP = "helm_longctx.benchmarks"
"""The package with our benchmarks, and the group of entry points that name a `Benchmark` of another package, by
convention `package.folder:BENCHMARK`."""

FOLDER = Path(__file__).parents[1] / "benchmarks"

_DECORATOR = re.compile(r"""^@run_spec_function\(\s*["']([^"']+)""", re.MULTILINE)


def read_folders() -> dict[str, Path]:
    """Return our benchmarks' folders (the ones with a README), by the name of their module, sorted."""
    folders = {}
    for folder in sorted({readme.parent for readme in FOLDER.rglob("README.md")}):
        folders[".".join((GROUP, *folder.relative_to(FOLDER).parts))] = folder
    return folders


def benchmarks_in(module: str) -> list[Benchmark]:
    """Import the module of a benchmark's folder, and return the benchmarks that it names, `BENCHMARK` first."""
    names = sorted(
        vars(import_module(module)).items(), key=lambda item: item[0] != "BENCHMARK"
    )
    return [value for _, value in names if isinstance(value, Benchmark)]


def about_of(benchmark: Benchmark) -> str:
    """Return a line about a benchmark: the first one of its folder's module, or the benchmark's own description."""
    for name in read_folders():
        # A module that could not be imported is not in `sys.modules`, and is not imported again.
        module = sys.modules.get(name)
        if module and any(value is benchmark for value in vars(module).values()):
            first_line = (module.__doc__ or "").partition("\n")[0]
            return first_line.rstrip(".").partition(": ")[2] or benchmark.description
    return benchmark.description


def load_benchmarks() -> tuple[Benchmark, ...]:
    """Load the benchmarks of this package and of all other installed packages, sorted by name.

    A benchmark that cannot be used is left out with a warning: HELM ignores a plugin that raises, and then no benchmark
    would work.
    """
    benchmarks: list[Benchmark] = []
    for module in read_folders():
        benchmarks += (
            leave_out_faulty("benchmark", module, partial(benchmarks_in, module)) or ()
        )
    for benchmark in load_plugins(GROUP, "benchmark", partial(_check, benchmarks)):
        # An older installation of this package also has its benchmarks as entry points.
        if not any(benchmark is other for other in benchmarks):
            benchmarks.append(benchmark)
    return tuple(sorted(benchmarks, key=lambda benchmark: benchmark.name))


def _check(others: Sequence[Benchmark], benchmark: Any) -> Benchmark:
    """Return a benchmark of another package, if it can stand beside others."""
    if not any(benchmark is other for other in others):
        # These modules are needed only for benchmarks of other packages.
        from helm_longctx.tasks.validation import check_benchmark

        check_benchmark(benchmark)
        taken = set(read_helms_names()).union(*(other.entries for other in others))
        clash = sorted(taken & set(benchmark.entries))
        if clash:
            raise InputError(f"another one has the run entry {', '.join(clash)}")
        if any(benchmark.name == other.name for other in others):
            raise InputError(f"another one has the name {benchmark.name}")
    return benchmark


@cache
def read_helms_names() -> frozenset[str]:
    """Return the names of HELM's own run entries: its files have them as arguments of a decorator."""
    package = find_spec("helm")
    locations = package.submodule_search_locations if package else None
    names: set[str] = set()
    for location in locations or []:
        for path in (Path(location) / "benchmark/run_specs").glob("*.py"):
            names.update(_DECORATOR.findall(path.read_text(encoding="utf-8")))
    return frozenset(names)


BENCHMARKS = load_benchmarks()

OURS = {name: benchmark for benchmark in BENCHMARKS for name in benchmark.entries}
"""The benchmark of each run entry."""

_BY_NAME = {benchmark.name: benchmark for benchmark in BENCHMARKS}

BY_CATEGORY = {
    benchmark.name: benchmark for benchmark in BENCHMARKS if benchmark.category_argument
}
"""The benchmarks with a run entry of their own name and an argument that selects a category: `oneruler:language=de`."""


def first_entry() -> str:
    """Return an entry that downloads nothing: the entry of the benchmark with the most categories."""
    for benchmark in sorted(BENCHMARKS, key=lambda benchmark: -len(benchmark.entries)):
        for name, category in benchmark.entries.items():
            if category.is_self_contained:
                return name
    raise LookupError("no benchmark generates all its questions")


def find_benchmark(
    name: str,
    where: str = "benchmark",
    argument: str = "name",
) -> Benchmark:
    """Find a benchmark by name. Raises an `InputError` if no benchmark of that name is installed.

    Args:
        where: the command whose argument the name is.
    """
    if name not in _BY_NAME:
        raise bad_argument(where, argument, name, _BY_NAME)
    return _BY_NAME[name]


def read_entries(text: str) -> list[WrittenEntry]:
    """Return the run entries that a text stands for, or raise an `InputError`.

    Args:
        text: a name, with or without arguments. A benchmark's name stands for the entries of its published tables,
            each with these arguments. A name of both a run entry and a benchmark is the run entry.
    """
    written = split_entry(text)
    if not is_benchmark(written.name):
        return [written]
    entries = []
    for name, category in _BY_NAME[written.name].entries.items():
        if category.averaged:
            entries.append(written._replace(name=name))
    return entries


def read_known_entries(text: str) -> list[WrittenEntry]:
    """Return the run entries that a text stands for. Raises an `InputError` if neither this package nor HELM has one."""
    entries = read_entries(text)
    for written in entries:
        if written.name not in OURS and not may_be_helms(written.name):
            raise unknown_entry(written.name)
    return entries


def read_single_entry(text: str) -> WrittenEntry:
    """Return the run entry that a text is. Raises an `InputError` if it stands for several: HELM takes only single ones."""
    written = split_entry(text)
    check_category(written.name)
    if is_benchmark(written.name):
        names = ", ".join(entry.name for entry in read_entries(written.name))
        raise InputError(
            f"{written.name} is a benchmark, and helm-run takes only run entries; give {names}"
        )
    return written


def may_be_helms(name: str) -> bool:
    """Whether HELM or another plugin can have a run entry of a name. The names of plugins are not known yet."""
    if "=" in name:
        return False
    has_plugins = any(
        point.value != "helm_longctx.plugin" for point in entry_points(group="helm")
    )
    return has_plugins or name in read_helms_names()


def unknown_entry(name: str) -> InputError:
    """Return an error about a name that is no run entry. It names the most similar one."""
    # Commas separate tasks, so `--tasks ruler:task=vt,count_with=x` has the task `count_with=x`.
    if "=" in name:
        advice = "give it by --argument (in YAML: arguments), or the whole entry by --entry (in YAML: entries)"
        return InputError(
            f"{shorten(name)} is not a run entry but an argument; {advice}"
        )
    similar = find_similar(name, [*OURS, *_BY_NAME])
    question = f"did you mean {similar[0]}? Give" if similar else "give"
    allowed = "a name in the lists of `helm-longctx list`, or a run entry of HELM's own"
    return InputError(f"{shorten(name)} is not a run entry; {question} {allowed}")


def parse_entries(text: str) -> list[Entry]:
    """Parse and check the run entries that a text without a model stands for, or raise an `InputError`."""
    return [check_written_entry(BENCHMARKS, written) for written in read_entries(text)]


def is_benchmark(name: str) -> bool:
    """Whether a name is one of a benchmark and of no run entry."""
    return name in _BY_NAME and name not in OURS


def benchmark_of(entry: str) -> Benchmark:
    """Find the benchmark with a run entry. Raises an `InputError` if no installed benchmark has it."""
    if entry not in OURS:
        raise bad_argument("run entry", "name", entry, OURS)
    return OURS[entry]


_TOKEN = re.compile(r"\d+(?:\.\d+)?(?:mil|[km](?![a-z]))?|[a-z]+")
_GENITIVE = ("s",)

_MOST_NAMES = 12
"""Most protocols that an error lists."""


def find_protocols(benchmark: Benchmark) -> list[Protocol]:
    """Return the reported protocols of a benchmark. Its own table has the official sample of the run entries."""
    protocols = []
    for protocol in benchmark.protocols():
        if protocol.is_table and protocol.samples is None:
            samples = 0
            for text in protocol.entries:
                entry = parse_entry([benchmark], text)
                samples += sum(
                    task.official_sample(entry.settings) for task in entry.tasks
                )
            protocol = replace(protocol, samples=samples)
        protocols.append(protocol)
    return protocols


class BenchmarkProtocol(NamedTuple):
    """A reported protocol and its benchmark."""

    benchmark: Benchmark
    protocol: Protocol

    @property
    def text(self) -> str:
        """The protocol's name."""
        return self.protocol.name

    @property
    def written_entries(self) -> list[WrittenEntry]:
        """The run entries with the protocol's conditions."""
        return [split_entry(text) for text in self.protocol.run_entries]


def find_protocol(text: str, benchmarks: Iterable[Benchmark]) -> BenchmarkProtocol:
    """Find a protocol by words of its name, or raise an `InputError` that lists similar names.

    Order, case, hyphens and plurals do not matter.
    """
    protocols: dict[str, BenchmarkProtocol] = {}
    for benchmark in benchmarks:
        for protocol in find_protocols(benchmark):
            protocols[protocol.name] = BenchmarkProtocol(benchmark, protocol)
    words = _words(text)
    exact = [name for name in protocols if _words(name) == words]
    matches = exact or [name for name in protocols if words and words <= _words(name)]
    # Without a full name, a protocol that nobody can run is not meant while another one has these words.
    matches = [name for name in matches if protocols[name].protocol.entries] or matches
    if len(matches) == 1:
        return protocols[matches[0]]
    if matches:
        raise InputError(
            f"{shorten(text)} can be {_list_names(matches)}; give one of these names"
        )
    similar = find_similar(text, protocols, most=3)
    if not similar:
        similar = sorted(protocols, key=lambda name: -len(words & _words(name)))[:3]
    raise InputError(
        f"no protocol is called {shorten(text)}; did you mean {', '.join(map(repr, similar))}?"
        " `helm-longctx reproduce` lists all"
    )


class ReleaseRow(NamedTuple):
    """A published number of a model."""

    benchmark: Benchmark
    protocol: Protocol
    row: Reported


def find_release(text: str, benchmarks: Iterable[Benchmark]) -> list[ReleaseRow]:
    """Find the published numbers of a model by words of its name, in the order of the benchmarks.

    Order, case and hyphens do not matter. Words of several models raise an `InputError` that lists them.
    """
    rows: list[ReleaseRow] = []
    for benchmark in benchmarks:
        for protocol in find_protocols(benchmark):
            rows += [ReleaseRow(benchmark, protocol, row) for row in protocol.rows]
    words = _words(text)
    models = dict.fromkeys(release.row.model for release in rows)
    possible = []
    for model in models:
        if words and words <= _words(model):
            possible.append(model)
    matches = [model for model in possible if _words(model) == words] or possible
    # Papers spell models in their own way: `Gpt-4o` and `GPT-4o` are one.
    if len({_words(model) for model in matches}) > 1:
        raise InputError(
            f"{shorten(text)} can be {_list_names(matches)}; give one of these names"
        )
    return [release for release in rows if release.row.model in matches]


def _list_names(names: Sequence[str]) -> str:
    return list_first(map(repr, names), _MOST_NAMES)


def _words(text: str) -> frozenset[str]:
    """Return the words and numbers of a name in one spelling: `1mil` is `1m`, and `needles` is `needle`."""
    parts = (part for part in _TOKEN.findall(text.lower()) if part not in _GENITIVE)
    return frozenset(map(_normalize_word, parts))


def _normalize_word(word: str) -> str:
    if word[0].isdigit():
        return word.replace("mil", "m")
    if len(word) > 3:
        return word.rstrip("s")
    return word
