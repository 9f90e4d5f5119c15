"""Finds the installed benchmarks, ours and those of other packages, by their entry points."""

from __future__ import annotations

import logging
from importlib.metadata import entry_points

from helm_longctx.errors import bad_argument
from helm_longctx.protocol.benchmark import Benchmark

GROUP = "helm_longctx.benchmarks"
"""Entry points of this group name a `Benchmark`, by convention `package.folder:BENCHMARK`."""

_log = logging.getLogger(__name__)


def load_benchmarks() -> tuple[Benchmark, ...]:
    """Load the benchmarks of all installed packages, sorted by name.

    A benchmark that fails to load, or has the same run entry as another one, is left out with a warning: HELM ignores a
    plugin that raises, and then no benchmark would work.
    """
    benchmarks: list[Benchmark] = []
    # Sorting makes the choice between two clashing benchmarks independent of the order of installation.
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            benchmark: Benchmark = point.load()
        except Exception as error:  # another package may raise anything; the other benchmarks still work
            _log.warning("benchmark %s is left out: %s: %s", point.value, type(error).__name__, error)
            continue
        taken = {name for other in benchmarks for name in other.entries}
        if clash := sorted(taken & set(benchmark.entries)):
            _log.warning("benchmark %s is left out: another one has the run entry %s", point.value, ", ".join(clash))
        else:
            benchmarks.append(benchmark)
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
