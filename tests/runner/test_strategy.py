"""Strategies: the runner has one way to make a run, and they say which requests are sent, and how."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from helm.benchmark.run_spec import RunSpec

import helm_longctx
from helm_longctx.runner import LongContextRunner
from helm_longctx.runner.runner import Strategy, runner_arguments
from tests.runner.making import read, spec_of

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=3,style=chat,model=longctx/lexical"
SOURCE = Path(helm_longctx.__file__).parent
MAKERS = {"LongContextRunner", "Strategy", "OneShard", "AsBatches"}
"""Classes that are extended."""


class FirstPrompt(Strategy):
    """Sends the first request only, and completes the run with it."""

    def select(self, total: int, prompts: Iterable[str]) -> Sequence[int]:
        """Return the first prompt, without reading any."""
        self.total = total
        return [0]


def _extensions() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and MAKERS & {
                getattr(base, "id", "") for base in node.bases
            }:
                yield path, node


def _private_methods(source: str) -> set[str]:
    return set(re.findall(r"def (_[a-z]\w*)\(self", source))


def test_no_subclass_overrides_a_private_method() -> None:
    """Who extends the runner or a strategy uses public methods alone."""
    bases = (
        "runner/runner.py",
        "runner/machines/shards.py",
        "runner/batches/submission.py",
    )
    private = {
        name
        for base in bases
        for name in _private_methods((SOURCE / base).read_text(encoding="utf-8"))
    }
    extensions = list(_extensions())
    assert len(extensions) >= 6
    own = [
        f"{path.name}: {node.name}.{member.name}"
        for path, node in extensions
        for member in node.body
        if isinstance(member, ast.FunctionDef) and member.name in private
    ]
    assert own == []


def test_nobody_calls_a_private_method_of_the_runner() -> None:
    """Commands and analyses call public methods of runners alone."""
    private = _private_methods(
        (SOURCE / "runner/runner.py").read_text(encoding="utf-8")
    ) | {"_get_run_path"}
    calls = re.compile(rf"\w*(?:runner|whole|half)\w*\.({'|'.join(private)})\b")
    for path in SOURCE.rglob("*.py"):
        assert not calls.search(path.read_text(encoding="utf-8")), path


def test_a_strategy_selects_the_requests(tmp_path: Path) -> None:
    """The prompts that a strategy selects are the run."""
    strategy = FirstPrompt()
    spec = spec_of(ENTRY)
    arguments = runner_arguments(
        tmp_path, "s", tmp_path, 2, has_cache=False, exit_on_error=True
    )
    runner = LongContextRunner(**arguments, strategy=strategy)
    runner.run_all([spec])
    assert strategy.total == 3
    assert len(read(runner.run_path(spec), "scenario_state")["request_states"]) == 1
    assert runner.is_made(spec)


def test_a_strategy_that_skips_a_run_leaves_no_folder(tmp_path: Path) -> None:
    """A strategy decides which runs are made. A run that is skipped leaves no folder."""

    class Nothing(Strategy):
        def skips(self, runner: LongContextRunner, spec: RunSpec) -> bool:
            return True

        def make(self, runner: LongContextRunner, spec: RunSpec) -> None:
            pytest.fail("the run is skipped")

    spec = spec_of(ENTRY)
    arguments = runner_arguments(
        tmp_path, "s", tmp_path, 2, has_cache=False, exit_on_error=True
    )
    runner = LongContextRunner(**arguments, strategy=Nothing())
    runner.run_all([spec])
    assert not runner.run_path(spec).exists()
