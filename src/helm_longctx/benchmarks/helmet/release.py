"""What HELMET's authors published: the repository at the commit that we follow, the data release and the results."""

from __future__ import annotations

from functools import partial

from helm_longctx.protocol.benchmark import Published
from helm_longctx.protocol.lengths import parse_length
from helm_longctx.sources.release import PinnedFile, Release, ReleaseFile
from helm_longctx.sources.tables import published_rows

COMMIT = "4526dfbdc512bd9ff721da336bff4e3e75ecfd27"
REVISION = f"princeton-nlp/HELMET@{COMMIT[:7]}"
RELEASE = Release("princeton-nlp/HELMET", setting="HELM_LONGCTX_HELMET_REPO", folder="helmet")

repository_file = partial(PinnedFile.of_repository, f"princeton-nlp/HELMET/{COMMIT}", place="helmet")
"""Makes the source of a file in HELMET's repository at `COMMIT`, of its path and its SHA-256."""


def release_file(path: str) -> ReleaseFile:
    """Return a file of the release archive, by its path in the archive's `data` folder."""
    return ReleaseFile(RELEASE, f"helmet/{path}")


def published_results() -> tuple[Published, ...]:
    """Return each model's published score in each category at each length.

    Source: the results table of the project page (princeton-nlp.github.io/HELMET), with five lengths, 59 to 63 models
    and percentages of one decimal (published.csv). The means of the seven categories equal the printed averages, with
    one exception: for GPT-4o-05 at 32k the page prints 63.3, and the mean is 63.2.
    """
    results: list[Published] = []
    for row in published_rows(__package__):
        model, length, instruct = row.pop("model"), parse_length(row.pop("length")), row.pop("instruct") == "1"
        results += [
            Published(model, name, length, {"": float(percent) / 100}, instruct) for name, percent in row.items()
        ]
    return tuple(results)
