"""The averages that RULER's README lists.

Source: NVIDIA/RULER at c3f5e3b, README.md: means over the 13 tasks, in percent with one decimal.
"""

from __future__ import annotations

from helm_longctx.protocol.lengths import parse_length
from helm_longctx.protocol.task import Published
from helm_longctx.sources.tables import published_rows


def published_results() -> tuple[Published, ...]:
    """Each model's average at each length, 0 to 1."""
    return tuple(
        Published(row["model"], "", parse_length(row["length"]), {"": float(row["score"]) / 100})
        for row in published_rows(__package__)
    )
