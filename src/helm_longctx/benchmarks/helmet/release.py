"""What HELMET's authors published: the repository at the commit that we follow, the data release and the results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from helm_longctx.data.release import PinnedFile, Release, ReleaseFile
from helm_longctx.data.tables import read_table
from helm_longctx.tasks.benchmark import Published
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.models import ModelProperties, read_models

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
    for row in read_table(__package__, "published.csv"):
        model, length = row.pop("model"), parse_length(row.pop("length"))
        results += [Published(model, name, length, {"": float(percent) / 100}) for name, percent in row.items()]
    return tuple(results)


def published_models() -> Mapping[str, ModelProperties]:
    """Return what the authors say about each model, by its name in the results.

    Source: Table 15 of arXiv 2410.02694v3, and for models that it lacks the results table of the project page
    (models.csv). Where both name a window or a number of parameters, Table 15 is used: the page has 1,024k for
    Qwen2.5-72B-Inst, and 32k for Qwen2.5-1.5B and 3B at four lengths. The page says which models are instruction-tuned,
    because its figures use that; Table 15 also calls Llama-2-7B-32k instruction-tuned.
    """
    return read_models(__package__)
