"""Programs of LongProc have the official scores when they run in the sandbox."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from helm_longctx.benchmarks.longproc import tasks
from helm_longctx.benchmarks.longproc.tasks import EVALUATORS
from tests.benchmarks.longproc.fabricate import PROGRAMS
from tests.support.sandboxes import require_sandbox

LEAN = "#include <cstdlib>\n#include <fstream>\n#include <iostream>\n#include <vector>\nusing namespace std;\n"
"""What all programs need. The whole header takes the compiler twice as long."""

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


def score_programs(names: Sequence[str]) -> dict[str, dict[str, float]]:
    records = [
        {"prediction": PROGRAMS[name][0], "item": {"testcases": PROGRAMS[name][1]}}
        for name in names
    ]
    with ThreadPoolExecutor(4) as threads:
        return dict(
            zip(
                names,
                threads.map(EVALUATORS["pseudo_to_code"].score, records),
                strict=True,
            )
        )


def test_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that are right, wrong, late, or crash have the official scores when they run in the sandbox."""
    require_sandbox(monkeypatch)
    # Several outputs have the same program.
    monkeypatch.setattr(tasks, "compile_program", cache(tasks.compile_program))
    endless = [name for name in PROGRAMS if "endless" in name]
    others = [name for name in PROGRAMS if name not in ("right", *endless)]
    scores = score_programs(["right"])
    monkeypatch.setattr(tasks, "HEADER", LEAN)
    scores |= score_programs(others)
    # A program that never ends is late at any limit, so a short one saves time.
    monkeypatch.setattr(tasks, "_SECONDS", 0.5)
    scores |= score_programs(endless)
    assert scores == {
        name: json.loads(said) for name, said in GOLDEN["programs"].items()
    }
    assert sum(values["accuracy"] for values in scores.values()) >= 10
