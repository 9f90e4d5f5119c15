"""Writes what the pages of gates with known results say: python -m tests.golden_makers gates

Do this only after a change that is meant to move a page, and read the difference.
"""

from __future__ import annotations

import json

from tests.golden_makers.running import find_room
from tests.support.gates import describe_gates

if __name__ == "__main__":
    path = find_room("apps/gate") / "sections.json"
    path.write_text(f"{json.dumps(describe_gates(), indent=1)}\n", encoding="utf-8")
