"""Tests that `helm-longctx show` prints a prompt as it was sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from helm.benchmark.runner import Runner
from typer.testing import CliRunner

from helm_longctx.cli.main import app
from helm_longctx.errors import InputError
from helm_longctx.runner import LongContextRunner
from tests.runner.making import make_run

ENTRY = "helmet_recall:task=json_kv,length=8k,num_samples=2,model=longctx/null"


@pytest.mark.parametrize("runner", [LongContextRunner, Runner])
def test_show(runner: type[Runner], tmp_path: Path) -> None:
    """`show` prints the prompt of a run of either runner, given by folder or name, with the same bytes as `prompts`."""
    run = make_run(tmp_path, ENTRY, runner)
    for name in (str(run), run.name, run.name.replace("longctx_", "longctx/")):
        arguments = [
            "show",
            name,
            "json_kv-1",
            "--output-path",
            str(tmp_path / "benchmark_output"),
        ]
        shown = CliRunner().invoke(app, arguments).stdout_bytes
        assert shown.startswith(b"JSON data:")
        assert shown.endswith(b"\nCorresponding value:")
        assert len(shown) > 8000


def test_unknown_run(tmp_path: Path) -> None:
    """`show` refuses a run that does not exist, and a name that runs of two suites have."""
    for suite in ("a", "b"):
        (tmp_path / "runs" / suite / "twice").mkdir(parents=True)
    for name, number in (("never", 0), ("twice", 2)):
        with pytest.raises(InputError, match=f"{number} runs have this name"):
            CliRunner().invoke(
                app, ["show", name, "x", "-o", str(tmp_path)], catch_exceptions=False
            )
