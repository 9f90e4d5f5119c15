"""Fabricate LongBench's files and odd outputs, which are the same on every machine."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from helm_longctx.benchmarks.longbench import BENCHMARK
from helm_longctx.benchmarks.longbench.tasks import DATASETS, LongBenchTask
from tests.benchmarks.lv_eval.fabricate import sentence, tokenizers
from tests.support.fabricate_words import write

ROWS = 5
LENGTHS = (3999, 4000, 7999, 8000, 12)
CLASSES = {
    False: ["Date", "Date of birth", "Other number", "number", "City"],
    True: ["体育", "体育新闻", "财经", "新闻"],
}
LIMITS = {"byte_level": 100_000, "metaspace": 501}
"""The most tokens of a prompt, by tokenizer."""
MODEL = "llama2-7b-chat-4k"
"""The official code puts [INST] around the chats of this model."""
RECORD = {"all_classes": ["Lake", "Lake Vel"], "length": 5000}


def build_longbench(root: Path) -> Path:
    """Write all files of LongBench and LongBench-E."""
    for task in BENCHMARK.tasks:
        (path,) = task.paths(None)
        write(root / path, rows(dataset_of(task.name), task.name))
    return root


def dataset_of(task: str) -> LongBenchTask:
    """Return the data set of a task."""
    return next(
        dataset
        for dataset in DATASETS
        if task.removesuffix("_e") in (dataset.name, dataset.name + "_e")
    )


def rows(dataset: LongBenchTask, seed: str) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    rng = random.Random(seed)
    return [_row(rng, dataset, number) for number in range(ROWS)]


def _row(rng: random.Random, dataset: LongBenchTask, number: int) -> dict[str, Any]:
    language = "zh" if "chinese" in dataset.traits else "en"
    classes = (
        CLASSES["chinese" in dataset.traits]
        if dataset.metric == "classification_score"
        else None
    )
    return {
        "input": sentence(rng, language, 6), "context": sentence(rng, language, rng.randint(30, 90)),
        "answers": [_answer(rng, dataset) for _ in range(1 + (number == 2 and not classes))],
        "length": LENGTHS[number], "dataset": dataset.name, "language": language, "all_classes": classes,
        "_id": f"{rng.getrandbits(48):012x}",
    }  # fmt: skip


def _answer(rng: random.Random, dataset: LongBenchTask) -> str:
    if dataset.metric == "classification_score":
        return rng.choice(CLASSES["chinese" in dataset.traits])
    if dataset.metric == "count_score":
        return str(rng.randint(1, 20))
    if dataset.metric.startswith("retrieval"):
        return f"{'段落' if 'chinese' in dataset.traits else 'Paragraph '}{rng.randint(1, 30)}"
    if "code" in dataset.traits:
        return f"    {sentence(rng, 'en', 3)} = x[1]"
    return sentence(
        rng, "zh" if "chinese" in dataset.traits else "en", rng.randint(1, 12)
    ) + rng.choice(("", ".", "。", " A. B"))


def records() -> list[dict[str, Any]]:
    """Return outputs of every data set, with the other arguments of the official scorer."""
    rng = random.Random(5)
    return [
        {"dataset": dataset.name, "prediction": output, "answers": row["answers"], "length": row["length"],
         "all_classes": row["all_classes"]}
        for dataset in DATASETS
        for row in rows(dataset, f"records {dataset.name}")
        for output in _outputs(rng, dataset, row)
    ]  # fmt: skip


def _outputs(
    rng: random.Random, dataset: LongBenchTask, row: dict[str, Any]
) -> Iterator[str]:
    right = row["answers"][0]
    language = "zh" if "chinese" in dataset.traits else "en"
    words = right.split()
    rng.shuffle(words)
    yield from (
        "",
        right,
        f"\n\n{right}\nmore",
        f" {right} ",
        right.upper(),
        " ".join(words),
        right[: len(right) // 2],
    )
    yield f"{right} 7, 12 {right}"
    yield f"`x`\n# no\n// no\n{right}\nlast"
    yield ", ".join(rng.sample(CLASSES["chinese" in dataset.traits], 3))
    yield f"Date of birth number {CLASSES[True][1]}{CLASSES[True][2]}"
    for count in (3, 30, 120):
        yield sentence(rng, language, count)
    yield f"{sentence(rng, language, 4)}. {right}"


def deep_records() -> list[dict[str, Any]]:
    """Return texts around the length at which the recursion of the package rouge fails; their words are equal, and none
    is a full stop."""
    records = []
    for dataset, word in (("gov_report", "w{} "), ("vcsum", "{} ")):
        for size in range(980, 996):
            text = "".join(word.format(number) for number in range(size))
            if dataset == "vcsum":
                # jieba cuts the text into numbers and spaces, and only the numbers count as words.
                text = " ".join(map(str, range(size)))
            records.append(
                {
                    "dataset": dataset,
                    "prediction": text + " x",
                    "answers": [text + " y"],
                    "length": 9,
                    "all_classes": None,
                }
            )
    return records


def tokenizer(case: str) -> Any:
    """Return a tokenizer as the official code loads it."""
    return PreTrainedTokenizerFast(tokenizer_object=tokenizers()[case])


def fingerprint(prompt: str, max_tokens: int, ends_at_newline: bool) -> str:
    """Return the short form of a request in the golden file."""
    return f"{max_tokens} {ends_at_newline} {hashlib.sha256(prompt.encode()).hexdigest()[:16]}"
