"""Writes what certificates with fixed draws say: python -m tests.golden_makers certificates

Do this only after a change that is meant to move decisions, and read the difference.
"""

from __future__ import annotations

import json

from tests.golden_makers.running import find_room
from tests.support.certifying import fixed_records

GOLDEN = find_room("apps/certify") / "golden.json"

if __name__ == "__main__":
    GOLDEN.write_text(
        json.dumps(fixed_records(), separators=(",", ":")) + "\n", encoding="utf-8"
    )
