"""What our code and official code make of the same inputs: `tests/benchmarks/<name>/official.py`.

Such a module has `GOLDEN_CASES`, whose cases `tests/benchmarks/test_official.py` checks for all benchmarks. The official
results are in the golden file beside the module (`tests/golden_makers`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings, Task
from tests.support.official import digest

BENCHMARK_TESTS = Path(__file__).parents[1] / "benchmarks"

_NO_SETTINGS = Settings(None)


@dataclass(frozen=True)
class Comparison:
    """A result that our code and the official code computed from the same input.

    Args:
        name: the case in the golden file.
        compute: computes our result; it gets the folder with the benchmark's fabricated data.
        official: the official result.
        relative: the relative difference that is allowed; where the order of a sum differs, the last digit can.
        is_long: whether the case belongs to the tests that take minutes.
        tasks: the names of the tasks whose examples are compared.
    """

    name: str
    compute: Callable[[DataRoot], object]
    official: object
    relative: float = 0
    is_long: bool = False
    tasks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ScoredOutput:
    """An output with its official metrics.

    Args:
        task: the name of its task.
        record: the output, as our scorers get it.
        official: the official values by our metrics' names. A metric without a value has to be absent.
        scale: what our values are multiplied by; official ones can be percentages.
    """

    task: str
    record: dict[str, Any]
    official: dict[str, float | None]
    scale: float = 1


@dataclass(frozen=True)
class GoldenCases:
    """The cases of a benchmark's golden file.

    Args:
        benchmark: the benchmark.
        build: writes the benchmark's fabricated data under a folder; by default the data are those of the fixture `mirror`.
        comparisons: prompts, requests to judges, verdicts and whatever else is compared as it stands.
        list_outputs: lists outputs with their official metrics; it gets the folder with the benchmark's data.
        absolute: the difference of metrics that is allowed.
    """

    benchmark: Benchmark
    build: Callable[[Path], object] | None = None
    comparisons: tuple[Comparison, ...] = ()
    list_outputs: Callable[[DataRoot], Iterable[ScoredOutput]] | None = None
    absolute: float = 0


def join_comparisons(
    comparisons: Iterable[Comparison], words: int
) -> tuple[Comparison, ...]:
    """Join comparisons whose names begin with the same words, because a test costs more than a short comparison."""
    groups: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        name = " ".join(comparison.name.split()[:words])
        groups.setdefault(name, []).append(comparison)
    return tuple(_join(name, group) for name, group in groups.items())


def _join(name: str, group: list[Comparison]) -> Comparison:
    def compute(root: DataRoot) -> dict[str, object]:
        return {comparison.name: comparison.compute(root) for comparison in group}

    return Comparison(
        name=name,
        compute=compute,
        official={comparison.name: comparison.official for comparison in group},
        relative=max(comparison.relative for comparison in group),
        tasks=frozenset().union(*(comparison.tasks for comparison in group)),
    )


def load_cases() -> dict[str, GoldenCases]:
    """Return the cases of all golden files, by the folder of their benchmark's tests.

    Raises:
        LookupError: a golden file does not have a case.
    """
    paths = sorted(BENCHMARK_TESTS.glob("*/official.py"))
    return {path.parent.name: _import_cases(path.parent) for path in paths}


def _import_cases(folder: Path) -> GoldenCases:
    try:
        module = import_module(f"tests.benchmarks.{folder.name}.official")
    except KeyError as error:
        raise LookupError(
            f"{folder / 'golden.json'} has no case {error}; make the file again:"
            f" python -m tests.golden_makers {folder.name}"
        ) from error
    return module.GOLDEN_CASES


def digest_user_turns(
    task: Task, settings: Settings, examples: Iterable[Example]
) -> str:
    """Return a digest of prompts, each of which is one user turn."""
    return digest(task.prompt(example).user_turn for example in examples)


def digest_messages(task: Task, settings: Settings, examples: Iterable[Example]) -> str:
    """Return a digest of all messages, in JSON."""
    return digest(json.dumps(task.prompt(example).messages) for example in examples)


def compare_examples(
    name: str,
    official: object,
    task: Task,
    settings: Settings = _NO_SETTINGS,
    describe: Callable[[Task, Settings, Iterable[Example]], object] = digest_user_turns,
    is_long: bool = False,
) -> Comparison:
    """Return the comparison of a task's prompts, or of what else its examples have.

    Args:
        describe: returns the short form in which the golden file has the examples, which are loaded one after the other.
    """

    def compute(root: DataRoot) -> object:
        return describe(task, settings, load_examples(task, settings, root))

    return Comparison(
        name=name,
        compute=compute,
        official=official,
        is_long=is_long,
        tasks=frozenset({task.name}),
    )
