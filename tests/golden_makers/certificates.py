"""Writes what certificates with fixed draws say: python -m tests.golden_makers certificates

Do this only after a change that is meant to move decisions, and read the difference.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.golden_makers.running import find_room
from tests.support.certifying import describe_records, fixed_records

GOLDEN = find_room("apps/certify") / "golden.json"

TEXTS = find_room("apps/certify") / "texts.json"

if __name__ == "__main__":
    records = fixed_records()
    GOLDEN.write_text(
        json.dumps(records, separators=(",", ":")) + "\n", encoding="utf-8"
    )
    # The texts are made of the records as the file has them.
    stored = json.loads(GOLDEN.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        texts = describe_records(stored, Path(folder))
    TEXTS.write_text(f"{json.dumps(texts, indent=1)}\n", encoding="utf-8")
