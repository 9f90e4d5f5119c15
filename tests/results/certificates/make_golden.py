"""Writes what certificates with fixed draws say: python -m tests.results.certificates.make_golden

Do this only after a change that is meant to move decisions, and read the difference.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.certifying import fixed_records

GOLDEN = Path(__file__).with_name("golden.json")

if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(fixed_records(), separators=(",", ":")) + "\n", encoding="utf-8")
