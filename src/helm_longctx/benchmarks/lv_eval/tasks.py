"""LV-Eval's tasks, from the table of its data sets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from helm_longctx.benchmarks.lv_eval import published
from helm_longctx.benchmarks.lv_eval.data import rows
from helm_longctx.benchmarks.lv_eval.datasets import DATASETS, LENGTHS, REVISION, Dataset
from helm_longctx.benchmarks.lv_eval.metrics import METRICS
from helm_longctx.protocol.baseline import Baseline
from helm_longctx.protocol.lengths import Axis, length_label
from helm_longctx.protocol.shapes import TEXT
from helm_longctx.protocol.task import Benchmark, Category, Example, Protocol, Published, Settings, Task, Variant
from helm_longctx.protocol.template import Template
from helm_longctx.sources.hub import HubZip
from helm_longctx.sources.root import DataRoot

REPO = "Infinigence/LVEval"

VARIANTS: dict[Protocol, Variant] = {
    "paper": Variant(),
    "api": Variant(system="You are a helpful assistant.", temperature=1.0, max_tokens=400),
}
"""How the official code asks local models (prediction.py) and APIs (prediction_gpt.py).

To APIs it sends a system message, and neither `temperature` nor `max_tokens`. HELM's requests have both: 1 is OpenAI's
default, and 400 tokens are what the 500 that a cut prompt leaves of the window have for an answer beside the chat."""


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """All questions in file order, or the first `num_samples`. The id is the same at every length.

    Raises:
        InputError: the file is malformed.
    """
    (path,) = task.paths(settings.length)
    for question in islice(rows(root / path), task.sample(settings)):
        record = {**question.record, "size": question.size}
        yield Example(f"{task.name}-{question.id}", question.fields, question.references, "official", record=record)


def _zipped(dataset: Dataset, length: int) -> tuple[HubZip, ...]:
    path = dataset.file(length_label(length))
    return (HubZip(REPO, f"{dataset.name}.zip", path.removeprefix("lveval/"), path),)


def _task(dataset: Dataset) -> Task:
    return Task(
        name=dataset.name,
        title=dataset.title,
        template=Template(dataset.prompt, "", separator=""),
        sizes={length: length for length in LENGTHS.values()},
        unit="words or characters",
        load=load,
        score=dataset.score,
        headline=(dataset.headline,),
        metrics=dataset.metrics,
        max_tokens=dataset.max_tokens,
        num_samples=dataset.rows,
        sources=partial(_zipped, dataset),
        chat=True,
        variants=VARIANTS,
        cut="middle",
        record={"answer_keywords": TEXT},
    )


def results() -> tuple[Published, ...]:
    """The README's tables: ten models at five lengths."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for cell, percent in published.scores().items():
        found.setdefault((cell.model, cell.length), {})[cell.task] = percent / 100
    return tuple(Published(model, "", LENGTHS[length], scores) for (model, length), scores in found.items())


WORDS = Axis("words or characters")
"""English words or Chinese characters of the context; prompts are cut to the model's window, not to the length."""

LV_EVAL = Benchmark(
    name="lv_eval",
    title="LV-Eval",
    description="A Balanced Long-Context Benchmark with 5 Length Levels Up to 256K (arXiv 2402.05136)",
    revision=REVISION,
    comparability=1,
    url="https://github.com/infinigence/LVEval/tree/63e7ae9",
    categories=(Category("", "", tuple(map(_task, DATASETS))),),
    metrics=METRICS,
    task_argument="dataset",
    axis=WORDS,
    baselines={d.name: Baseline("span", "the" if d.language == "en" else "的") for d in DATASETS},
    published=results,
)
