"""The averages that RULER's README lists.

Source: NVIDIA/RULER at c3f5e3b, README.md: means over the 13 tasks, in percent with one decimal.
"""

from __future__ import annotations

import csv
from importlib import resources

from helm_longctx.protocol.benchmark import Published
from helm_longctx.protocol.lengths import parse_length


def published_results() -> tuple[Published, ...]:
    """Each model's average at each length, 0 to 1."""
    text = (resources.files(__package__) / "published.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(
        Published(row["model"], "", parse_length(row["length"]), {"": float(row["score"]) / 100}) for row in rows
    )
