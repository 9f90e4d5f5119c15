"""Runs that several processes make together."""

from __future__ import annotations

import re
from pathlib import Path

from helm.benchmark.run_spec import RunSpec

from helm_longctx.runs.records import RECORDS
from helm_longctx.tasks.metric_names import MEASURED

FILES = (
    "scenario_state.json",
    "stats.json",
    "per_instance_stats.json",
    "run_spec.json",
    "scenario.json",
)
PROMPTS = ("prompts.json", "prompts.zst")


def run_path(folder: Path, spec: RunSpec) -> Path:
    return folder / "out/runs/s" / spec.name


def read_all(run: Path) -> dict[str, bytes]:
    """Return each file of a run without the times of requests, which differ between two runs on one machine."""
    times = re.compile(rb'\n *"request_(time|datetime)": [\d.e-]+,?')
    names = "|".join(MEASURED).encode()
    seconds = re.compile(
        rb'\{\s*"name": \{\s*"name": "(?:%b)".*?\n *\},?(?=\s*[{\]])' % names, re.DOTALL
    )
    files = {
        name: seconds.sub(b"", times.sub(b"", (run / name).read_bytes()))
        for name in (*FILES, *PROMPTS)
    }
    assert {path.name for path in run.iterdir()} == {*files, RECORDS, ".lock"}
    return files
