"""Estimates of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helm_longctx.runner.estimate import Estimate, Rate, estimate_runs
from helm_longctx.runner.runner import LongContextRunner
from tests.runner import making

PRICE = {
    "input": 100,
    "cached_input": 10,
    "output": 1000,
    "batch": {"input": 50, "output": 500},
}


def estimate(folder: Path, entry: str, **arguments: Any) -> Estimate:
    runner = making.make_runner(folder)
    assert isinstance(runner, LongContextRunner)
    own = {"test/counted": PRICE}
    return estimate_runs(runner, [making.spec_of(entry)], own, Rate(**arguments))[0]
