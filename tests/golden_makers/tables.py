"""Writes what the tables of all benchmarks say: sizes, limits, samples, metrics and data of each task.

    python -m tests.golden_makers tables

No official code is needed. Look at the difference before you commit it: each line that changes is a score that changes,
unless a task is new.
"""

from __future__ import annotations

import json

from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.tables import TABLES, describe_benchmark


def main() -> None:
    """Write what all tables say to `tables.json`."""
    parts = []
    for benchmark in BENCHMARKS:
        rows = [
            f"  {json.dumps(name)}: {json.dumps(facts, ensure_ascii=False)}"
            for name, facts in describe_benchmark(benchmark).items()
        ]
        body = ",\n".join(rows)
        parts.append(f"{json.dumps(benchmark.name)}: {{\n{body}\n}}")
    whole = ",\n".join(parts)
    TABLES.write_text(f"{{\n{whole}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
