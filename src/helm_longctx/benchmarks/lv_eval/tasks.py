"""LV-Eval's tasks, made from the table of data sets."""

from __future__ import annotations

from functools import partial

from helm_longctx.benchmarks.lv_eval.data import load
from helm_longctx.benchmarks.lv_eval.datasets import DATASETS, LENGTHS, METRICS, REVISION, Dataset
from helm_longctx.data.hub import HubZip
from helm_longctx.tasks.benchmark import Benchmark, Category, Terms, read_published
from helm_longctx.tasks.lengths import Axis, length_label
from helm_longctx.tasks.publications import read_protocols
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


WORDS = Axis("words or characters")
"""English words or Chinese characters of the context. Prompts are cut to the model's window, not to the length."""

LV_EVAL = Benchmark(
    name="lv_eval",
    title="LV-Eval",
    description="A Balanced Long-Context Benchmark with 5 Length Levels Up to 256K (arXiv 2402.05136)",
    revision=REVISION,
    comparability=1,
    url="https://github.com/infinigence/LVEval/tree/63e7ae9",
    data={
        "https://huggingface.co/datasets/Infinigence/LVEval": Terms(
            "MIT; CC-BY-SA-4.0 for cmrc_mixup and lic_mixup", "116 to 156 MB for each data set"
        ),
    },
    categories=(Category("", "", tuple(map(_task, DATASETS))),),
    metrics=METRICS,
    task_argument="dataset",
    axis=WORDS,
    published=partial(read_published, __package__),
    protocols=partial(read_protocols, __package__, partial(read_published, __package__)),
    overall="Overall",
    outputs="helm_longctx.benchmarks.lv_eval.outputs.READER",
)
