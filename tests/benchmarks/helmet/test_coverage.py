"""Golden prompts of HELMET's tasks."""

from __future__ import annotations

import json
from pathlib import Path

from helm_longctx.benchmarks.helmet.tasks import HELMET

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())


def test_every_task_has_golden_prompts() -> None:
    """The golden file covers all published tasks at all official lengths."""
    covered = {
        tuple(case.split()[:2])
        for case, digests in GOLDEN["prompts"].items()
        if len(digests) >= 3
    }
    published = {task.name for category in HELMET.categories for task in category.tasks}
    assert covered >= {
        (name, length)
        for name in published
        for length in ("4k", "8k", "16k", "32k", "64k", "128k")
    }
