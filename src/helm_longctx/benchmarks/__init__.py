"""Every benchmark that is installed: ours, and those of other packages, by the entry-point group of this name."""

from __future__ import annotations

import logging
from importlib.metadata import entry_points

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.protocol.task import Benchmark

GROUP = "helm_longctx.benchmarks"
"""An entry point of this group names a `Benchmark`, by convention `package.folder:BENCHMARK`."""

_log = logging.getLogger(__name__)


def load_benchmarks() -> tuple[Benchmark, ...]:
    """The benchmarks of all installed packages, by name. One that cannot be loaded is left out with a warning.

    Raises:
        InputError: two benchmarks share a run entry.
    """
    found: list[Benchmark] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            found.append(point.load())
        except Exception as error:  # of other packages: whatever it is, the other benchmarks work
            _log.warning("benchmark %s is left out: %s: %s", point.value, type(error).__name__, error)
    names = [name for benchmark in found for name in benchmark.entries]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"two installed benchmarks have the run entry {', '.join(twice)}; uninstall one of them")
    return tuple(found)


BENCHMARKS = load_benchmarks()


def find_benchmark(name: str) -> Benchmark:
    """The benchmark of a name.

    Raises:
        InputError: none of that name is installed.
    """
    by_name = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    if name not in by_name:
        raise bad_argument("benchmark", "name", name, by_name)
    return by_name[name]


def benchmark_of(entry: str) -> Benchmark:
    """The benchmark that has a run entry.

    Raises:
        InputError: none that is installed has it.
    """
    by_entry = {name: benchmark for benchmark in BENCHMARKS for name in benchmark.entries}
    if entry not in by_entry:
        raise bad_argument("run entry", "name", entry, by_entry)
    return by_entry[entry]
