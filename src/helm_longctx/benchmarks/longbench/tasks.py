"""LongBench's tasks, made from its data sets: those of LongBench, and those of LongBench-E with scores by length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice, pairwise

from helm_longctx.benchmarks.longbench.datasets import DATASETS, FOLDER, Dataset
from helm_longctx.benchmarks.longbench.scoring import BY_LENGTH, COMPARE, score
from helm_longctx.errors import InputError
from helm_longctx.protocol.baseline import AnswerKind, Baseline
from helm_longctx.protocol.prompt import Message
from helm_longctx.protocol.shapes import TEXTS, Shape, is_whole
from helm_longctx.protocol.task import Benchmark, Category, Example, Metric, Settings, Task, Variant, read_published
from helm_longctx.protocol.template import Template
from helm_longctx.sources.hub import HubZip
from helm_longctx.sources.jsonl import JsonLines, Types
from helm_longctx.sources.root import DataRoot

COLUMNS: Types = {"_id": str, "input": str, "context": str, "answers": list, "length": int}
MOST_EXTENDED = 500
"""No file of LongBench-E has more rows."""

_CODE_START, _CODE_END = "Please complete the code given below. \n", "Next line of code:\n"


def load(task: Task, settings: Settings, root: DataRoot, few_classes: bool) -> Iterator[Example]:
    """Load all questions in file order, or the first `num_samples`.

    Args:
        few_classes: whether the answer is one of the row's `all_classes`.

    Raises:
        InputError: the file is malformed.
    """
    (path,) = task.paths(settings.length)
    for row in islice(JsonLines(root / path, COLUMNS), task.sample(settings)):
        record = {"length": row["length"]}
        if few_classes:
            record["all_classes"] = row.get("all_classes")
            if not TEXTS.fits(record["all_classes"]):
                raise InputError(f"{root / path}: row {row['_id']}: column 'all_classes' must be a list of texts")
        yield Example(
            id=row["_id"],
            fields={"context": row["context"], "input": row["input"]},
            references=row["answers"],
            source="official",
            record=record,
        )


def repeat_line(messages: Sequence[Message]) -> str | None:
    """Complete code with the line that follows an earlier line like the last one; None if none is asked for."""
    prompt = messages[-1]["content"]
    if not (prompt.startswith(_CODE_START) and prompt.endswith(_CODE_END)):
        return None
    lines = [line for line in prompt[len(_CODE_START) : -len(_CODE_END)].split("\n") if line.strip()]
    following = dict(pairwise(lines))
    return following.get(lines[-1], lines[-1]) if lines else ""


def _baseline(dataset: Dataset) -> Baseline:
    if dataset.code:
        return Baseline(repeat_line, "return")
    kind: AnswerKind = "summary" if dataset.metric == "rouge_score" and not dataset.few_shot else "span"
    constants = {"count_score": "1", "retrieval_score": "Paragraph 1", "retrieval_zh_score": "段落1"}
    return Baseline(kind, constants.get(dataset.metric, "的" if dataset.chinese else "the"))


def _source(name: str) -> HubZip:
    return HubZip("THUDM/LongBench", "data.zip", f"data/{name}.jsonl", f"{FOLDER}/{name}/test.jsonl")


def _task(dataset: Dataset, extended: bool = False) -> Task:
    name = f"{dataset.name}_e" if extended else dataset.name
    classes = dataset.metric == "classification_score"
    # A newline ends SAMSum's answers in the official code (pred.py), as it would end a stop sequence's.
    variant = Variant(stop=("\n",)) if dataset.name == "samsum" else Variant()
    return Task(
        name=name,
        alias=dataset.name,
        title=f"{dataset.title} (E)" if extended else dataset.title,
        template=Template(dataset.prompt, "", separator=""),
        load=partial(load, few_classes=classes),
        score=partial(score, metric=dataset.metric, first_line=dataset.few_shot, by_length=extended),
        headline=(dataset.metric,),
        metrics=(dataset.metric, *(BY_LENGTH if extended else ())),
        max_tokens=dataset.max_tokens,
        num_samples=MOST_EXTENDED if extended else dataset.rows,
        sources=lambda length: (_source(name),),
        chat=dataset.chat,
        variants={"paper": variant},
        cut="middle",
        trait="Chinese" if dataset.chinese else "",
        record_shapes={"all_classes": TEXTS, "length": Shape("a whole number", is_whole)},
    )


_DESCRIPTIONS = {
    "qa_f1_score": ("F1", "F1 of the words of the answer and the best reference."),
    "qa_f1_zh_score": ("F1, Chinese", "F1 of the words that jieba finds."),
    "rouge_score": ("ROUGE-L", "ROUGE-L of the package rouge with the best reference."),
    "rouge_zh_score": ("ROUGE-L, Chinese", "ROUGE-L of the words that jieba finds."),
    "classification_score": ("Class", "1 for the right class, divided by the number of classes that the answer names."),
    "retrieval_score": ("Paragraph", "Share of the answer's numbers that are the right paragraph's."),
    "retrieval_zh_score": ("Paragraph, Chinese", "Share of the answer's numbers that are the right paragraph's."),
    "count_score": ("Count", "Share of the answer's numbers that are the right one."),
    "code_sim_score": ("Code similarity", "difflib's ratio of the answer's first line of code, in whole percents."),
    "score_0_4k": ("Below 4k", "LongBench-E's score of rows of fewer than 4,000 words."),
    "score_4_8k": ("4k to 8k", "LongBench-E's score of rows of 4,000 to 7,999 words."),
    "score_8k_up": ("8k and more", "LongBench-E's score of rows of 8,000 words and more."),
}

LONGBENCH = Benchmark(
    name="longbench",
    title="LongBench",
    description="A Bilingual, Multitask Benchmark for Long Context Understanding (arXiv 2308.14508)",
    revision="THUDM/LongBench@2e00731",
    comparability=1,
    url="https://github.com/THUDM/LongBench/tree/2e00731/LongBench",
    categories=(
        Category("", "", tuple(map(_task, DATASETS))),
        Category("e", "E", tuple(_task(dataset, extended=True) for dataset in DATASETS if dataset.extended)),
    ),
    metrics=tuple(Metric(name, *_DESCRIPTIONS[name]) for name in (*COMPARE, *BY_LENGTH)),
    axis=None,
    baselines={
        name: _baseline(dataset)
        for dataset in DATASETS
        for name in (dataset.name, *([f"{dataset.name}_e"] if dataset.extended else []))
    },
    # The tables of LongBench/README.md at 2e00731.
    published=partial(read_published, __package__),
)
