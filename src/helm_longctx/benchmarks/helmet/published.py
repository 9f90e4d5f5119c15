"""The category means that HELMET's authors published.

Source: the results table of the project page of princeton-nlp/HELMET (princeton-nlp.github.io/HELMET), five lengths,
59 to 63 models; percentages with one decimal (published.csv). Their averages over the seven categories agree with the
printed ones but for GPT-4o-05 at 32k: 63.3 is printed, 63.2 follows.
"""

from __future__ import annotations

import csv
from importlib import resources

from helm_longctx.protocol.lengths import parse_length
from helm_longctx.protocol.task import Published


def results() -> tuple[Published, ...]:
    """Each model's score in each category at each length."""
    text = (resources.files("helm_longctx.benchmarks.helmet") / "published.csv").read_text(encoding="utf-8")
    found: list[Published] = []
    for row in csv.DictReader(text.splitlines()):
        model, length = row.pop("model"), parse_length(row.pop("length"))
        found += [Published(model, name, length, {"": float(percent) / 100}) for name, percent in row.items()]
    return tuple(found)
