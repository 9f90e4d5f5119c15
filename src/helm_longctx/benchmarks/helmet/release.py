"""What HELMET's authors published: the repository at the commit that we follow, the data release and the results."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

from helm_longctx.data.release import PinnedFile, Release, ReleaseFile
from helm_longctx.data.tables import read_table
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.publications import Published

COMMIT = "4526dfbdc512bd9ff721da336bff4e3e75ecfd27"
RELEASE = Release("princeton-nlp/HELMET", setting="HELM_LONGCTX_HELMET_REPO", folder="helmet")

repository_file = partial(PinnedFile.of_repository, f"princeton-nlp/HELMET/{COMMIT}", place="helmet")
"""Makes the source of a file in HELMET's repository at `COMMIT`, of its path and its SHA-256."""


def release_file(path: str) -> ReleaseFile:
    """Return a file of the release archive, by its path in the archive's `data` folder."""
    return ReleaseFile(RELEASE, f"helmet/{path}")


def published_results(categories: Sequence[Category]) -> tuple[Published, ...]:
    """Return each model's published score in each task at each length, or else in each category.

    Source of tasks: the main table that the authors' notebook prints (visualization.ipynb of princeton-nlp/HELMET at
    2ca8378), with 59 models at five lengths. published.csv has its percentages with up to six decimals. A column
    `task:metric` has one of the task's official metrics, whose mean is the score. Source of categories: the results
    table of the project page (princeton-nlp.github.io/HELMET), with percentages of one decimal.
    published_categories.csv has its models that the notebook lacks.

    Args:
        categories: the averaged categories.
    """
    results: list[Published] = []
    for row in read_table(__package__, "published.csv"):
        model, length, *cells = row.values()
        values: dict[str, dict[str, float]] = defaultdict(dict)
        for column, percent in zip(list(row)[2:], cells, strict=True):
            task, _, metric = column.partition(":")
            values[task][metric] = float(percent) / 100
        results += [_published_tasks(model, parse_length(length), category, values) for category in categories]
    for row in read_table(__package__, "published_categories.csv"):
        model, size = row.pop("model"), parse_length(row.pop("length"))
        results += [Published(model, name, size, {"": float(percent) / 100}) for name, percent in row.items()]
    return tuple(results)


def _published_tasks(
    model: str, length: int, category: Category, values: Mapping[str, Mapping[str, float]]
) -> Published:
    own = {task.name: values[task.name] for task in category.tasks}
    metrics = {task: of_task for task, of_task in own.items() if len(of_task) > 1}
    scores = {task: fmean(of_task.values()) for task, of_task in own.items()}
    return Published(model, category.name, length, scores, metrics=metrics)
