"""LV-Eval's tasks, made from the table of data sets."""

from functools import partial

from helm_longctx.benchmarks.lv_eval.data import load
from helm_longctx.benchmarks.lv_eval.datasets import DATASETS, LENGTHS, Dataset
from helm_longctx.data.hub import HubZip
from helm_longctx.tasks.benchmark import Category
from helm_longctx.tasks.benchmark_file import read_benchmark
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.task import TEXT, Baseline, ProtocolArgument, Task, Variant
from helm_longctx.tasks.template import Template

REPO = "Infinigence/LVEval"

VARIANTS: dict[ProtocolArgument, Variant] = {
    "paper": Variant(),
    "api": Variant(system="You are a helpful assistant.", temperature=1.0, max_tokens=400),
}
"""How the official code asks local models (prediction.py) and APIs (prediction_gpt.py).

To APIs it sends a system message, but no `temperature` and no `max_tokens`. HELM's requests must have both: 1 is
OpenAI's default temperature. A cut prompt leaves 500 tokens free: 100 for the chat format, and 400 for the answer.
"""


def _zip_source(dataset: Dataset, length: int) -> tuple[HubZip, ...]:
    path = dataset.file(length_label(length))
    return (HubZip(REPO, f"{dataset.name}.zip", path.removeprefix("lveval/"), path),)


def _task(dataset: Dataset) -> Task:
    return Task(
        name=dataset.name,
        title=dataset.title,
        # The prompt already ends with "Answer:", so chats and completions have the same text.
        template=Template(dataset.prompt, "", separator=""),
        sizes={length: length for length in LENGTHS.values()},
        unit="words or characters",
        load=load,
        score=dataset.score,
        headline=(dataset.headline,),
        metrics=dataset.metrics,
        max_tokens=dataset.max_tokens,
        num_samples=dataset.rows,
        sources=partial(_zip_source, dataset),
        chat=True,
        variants=VARIANTS,
        cut="middle",
        trait="confusing facts" if dataset.confusing else "",
        record_shapes={"answer_keywords": TEXT},
        baseline=Baseline("span", "the" if dataset.language == "en" else "的"),
    )


LV_EVAL = read_benchmark(__package__, (Category("", "", tuple(map(_task, DATASETS))),))
