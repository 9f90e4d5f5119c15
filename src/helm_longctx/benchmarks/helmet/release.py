"""What HELMET's authors published: the repository at the commit that we follow, the data release and the results."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from statistics import fmean

from helm_longctx.benchmarks.helmet.prompts import OMITTED
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import (
    Category,
    DataRoot,
    HubFile,
    PinnedFile,
    Published,
    Release,
    ReleaseFile,
)
from helm_longctx.tasks.counting import (
    ESTIMATE,
    TextCutter,
    TokenCounter,
    read_token_counter,
)
from helm_longctx.tasks.lengths import parse_length

_COMMIT = "4526dfbdc512bd9ff721da336bff4e3e75ecfd27"
ARCHIVES = "dddb209d03e38f1f0faf76d6d05ef4ccf96240ee"
"""The commit of the hub's repository that has both archives. Six public programs pin it, and two name the digests."""

_RELEASE = Release(
    "princeton-nlp/HELMET",
    setting="HELM_LONGCTX_HELMET_REPO",
    folder="helmet",
    commit=ARCHIVES,
    sha256="9d693981aa3c065b8b2ff82ddf946141cdc4ece4524f18bff6f3fbd2a86982d9",
)

repository_file = partial(
    PinnedFile.of_repository, f"princeton-nlp/HELMET/{_COMMIT}", target="helmet"
)
"""Makes the source of a file in HELMET's repository at `_COMMIT`, of its path and its SHA-256."""


def release_file(path: str) -> ReleaseFile:
    """Return a file of the release archive, by its path in the archive's `data` folder."""
    return ReleaseFile(_RELEASE, f"helmet/{path}")


def published_results(categories: Sequence[Category]) -> tuple[Published, ...]:
    """Return each model's published score in each task at each length, or else in each category.

    Source of tasks: what the authors' notebook prints (visualization.ipynb of princeton-nlp/HELMET at 2ca8378) of 59
    models at five lengths: its main table, and its log for RULER and ROUGE. published.csv has its percentages with up
    to six decimals. A column `task:metric` has one of the task's official metrics. Without a column `task`, their mean
    is the score. Source of categories: the results table of the project page (princeton-nlp.github.io/HELMET), with
    percentages of one decimal. published_categories.csv has its models that the notebook lacks.
    """
    results: list[Published] = []
    for row in read_table(__package__, "published.csv"):
        model, length, *cells = row.values()
        values: dict[str, dict[str, float]] = defaultdict(dict)
        for column, percent in zip(list(row)[2:], cells, strict=True):
            name, _, metric = column.partition(":")
            values[name][metric] = float(percent) / 100
        size = parse_length(length)
        for category in categories:
            scores: dict[str, float] = {}
            metrics: dict[str, dict[str, float]] = {}
            for task in category.tasks:
                of_task = dict(values[task.name])
                mean = fmean(of_task.values())
                scores[task.name] = of_task.pop("", mean)
                metrics[task.name] = of_task
            results.append(
                Published(
                    model=model,
                    category=category.name,
                    length=size,
                    scores=scores,
                    metrics=metrics,
                )
            )
    for row in read_table(__package__, "published_categories.csv"):
        model = row.pop("model")
        size = parse_length(row.pop("length"))
        for name, percent in row.items():
            results.append(
                Published(
                    model=model,
                    category=name,
                    length=size,
                    scores={"": float(percent) / 100},
                )
            )
    return tuple(results)


LLAMA_2 = HubFile(
    repo="meta-llama/Llama-2-7b-hf",
    name="tokenizer.json",
    path="tokenizers/meta-llama__Llama-2-7b-hf/tokenizer.json",
    kind="model",
    setting="HELM_LONGCTX_LLAMA2_REPO",
    commit="01c7f73d771dfac7d292323805ebc428287df4f9",
)
"""The tokenizer that HELMET measures and cuts texts with, so that every model gets the same text at a length.

The repository is gated. Users without access can name another repository with the same file in the setting.
"""


def find_llama2_counter(root: DataRoot) -> TokenCounter:
    """Return a counter of Llama 2 tokens if the tokenizer is under the data root, else the estimate."""
    if not root.has(LLAMA_2.path):
        return ESTIMATE
    return read_token_counter(LLAMA_2.origin(root), root / LLAMA_2.path)


def make_cutter(root: DataRoot, limit: int) -> TextCutter:
    """Return a cutter of texts to `limit` Llama 2 tokens.

    Raises:
        InputError: the tokenizer is not under the data root, or is not a tokenizer file.
    """
    return TextCutter(root / LLAMA_2.path, limit, OMITTED)
