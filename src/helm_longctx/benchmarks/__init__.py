"""Finds the installed benchmarks, ours and those of other packages, by their entry points."""

from __future__ import annotations

import logging
from importlib.metadata import entry_points

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.protocol.task import Benchmark

GROUP = "helm_longctx.benchmarks"
"""Entry points of this group name a `Benchmark`, by convention `package.folder:BENCHMARK`."""

_log = logging.getLogger(__name__)


def load_benchmarks() -> tuple[Benchmark, ...]:
    """Load the benchmarks of all installed packages, sorted by name. One that fails is left out with a warning.

    Raises:
        InputError: two benchmarks share a run entry.
    """
    benchmarks: list[Benchmark] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            benchmarks.append(point.load())
        except Exception as error:  # another package may raise anything; the other benchmarks still work
            _log.warning("benchmark %s is left out: %s: %s", point.value, type(error).__name__, error)
    names = [name for benchmark in benchmarks for name in benchmark.entries]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"two installed benchmarks have the run entry {', '.join(twice)}; uninstall one of them")
    return tuple(benchmarks)


BENCHMARKS = load_benchmarks()


def find_benchmark(name: str) -> Benchmark:
    """Find a benchmark by name.

    Raises:
        InputError: no benchmark of that name is installed.
    """
    by_name = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    if name not in by_name:
        raise bad_argument("benchmark", "name", name, by_name)
    return by_name[name]


def benchmark_of(entry: str) -> Benchmark:
    """Find the benchmark with a run entry.

    Raises:
        InputError: no installed benchmark has it.
    """
    by_entry = {name: benchmark for benchmark in BENCHMARKS for name in benchmark.entries}
    if entry not in by_entry:
        raise bad_argument("run entry", "name", entry, by_entry)
    return by_entry[entry]
