"""Tests that scenarios of others do not notice the plugin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys
import helm.benchmark.run as run
if "without" in sys.argv:
    sys.argv.remove("without")
    run.load_entry_point_plugins = list
sys.argv[0] = "helm-run"
run.main()
"""

LONG = "x" * 5000


def run_stock(folder: Path, *without: str) -> tuple[int, list[str], dict[str, str]]:
    """Run scenarios of HELM's own, one of which fails, and return status, log and files without times."""
    (folder / "prod_env").mkdir(parents=True)
    (folder / "prod_env/model_deployments.yaml").write_text(
        "model_deployments:\n"
        "  - name: test/broken\n    model_name: simple/model1\n    tokenizer_name: simple/tokenizer1\n"
        "    max_sequence_length: 8000\n"
        f"    client_spec:\n      class_name: no.such.Client{LONG}\n      args: {{api_key: a-key-of-somebody-else-99}}\n"
    )
    entries = [
        f"simple_{name}:model=simple/model1,model_deployment={deployment}"
        for name, deployment in (
            ("mcqa", "simple/model1"),
            ("classification", "simple/model1"),
            ("mcqa", "test/broken"),
        )
    ]
    command = ["--suite", "s", "-m", "4", "-n", "1", "--run-entries", *entries]
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *without, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    log = [clean(line) for line in (done.stdout + done.stderr).splitlines()]
    files = {
        str(path.relative_to(folder)): clean(path.read_text(errors="replace"))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".sqlite" and "log" not in path.name
    }
    return done.returncode, [line for line in log if line], files


def clean(text: str) -> str:
    """Return a text without the parts that differ from run to run."""
    text = re.sub(
        r"\d{4}-\d\d-\d\d[T ][\d:.,]+|\d+[.:]\d+(?:[.:]\d+)*(?:e-\d+)?s?|0x[0-9a-f]+|\d+ characters|\d{10}",
        "T",
        text,
    )
    return re.sub(r"/tmp/\S*?/(with|without)\b|\bwith(out)?/", "F/", text)


@pytest.mark.parametrize("name", ["time", "datetime"])
def test_times_are_cleaned(name: str) -> None:
    """The comparison leaves out times."""
    assert clean(f'"request_{name}": 0.25') == f'"request_{name}": T'


def test_other_scenarios_do_not_notice_the_plugin(tmp_path: Path) -> None:
    """Status, log, exceptions and every file of a run of HELM's own scenarios are the same without the plugin."""
    got = run_stock(tmp_path / "with")
    expected = run_stock(tmp_path / "without", "without")
    assert got[0] == expected[0] != 0
    assert any("No module named 'no'" in line for line in expected[1])
    assert got[1] == expected[1]
    assert got[2].keys() == expected[2].keys()
    assert {name for name in got[2] if got[2][name] != expected[2][name]} == set()
