"""Records which data `helm-longctx fetch --check --json` found as expected: `python docs/record_checks.py FILE`.

docs/data-checks.json has the day of the last check without a difference of each publisher's page; docs/reference/data.md
is made from it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("data-checks.json")


def record(known: Mapping[str, str], check: Mapping[str, Any]) -> dict[str, str]:
    """Return the days of the last passed checks, with those of a new check. Pages that failed keep their earlier day."""
    passed = dict.fromkeys(check["passed_pages"], check["checked"])
    return dict(sorted({**known, **passed}.items()))


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    days = record(json.loads(RECORD.read_text(encoding="utf-8")), found)
    RECORD.write_text(json.dumps(days, indent=2) + "\n", encoding="utf-8")
