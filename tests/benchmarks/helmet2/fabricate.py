"""Fabricate files of HELMET's second release, rows of LongBench v2 and odd outputs, which are the same on every
machine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.helmet.helmet2.tasks import HELMET2, LLAMA_3, LONGBENCH
from tests.support.fabricate import json_kv_rows, niah_rows, ruler_rows
from tests.support.fabricate_words import words, write
from tests.tasks import tokenizers

ROWS = 9
LENGTH = 8192
KV_LENGTH = 32768
CLASSES = {300: "short", 500: "medium"}
"""The numbers of tokens to which texts are cut in the tests; they replace the official numbers."""

_NIAH = {"niah_multivalue": ("number", 4), "niah_multiquery": ("number", 4)}


def build_helmet2(root: Path) -> Path:
    """Write the files of all tasks at one length, LongBench v2's rows and a tokenizer."""
    rng = random.Random(12)
    for task in HELMET2.tasks:
        for path in task.paths(length_of(task.name)):
            if path.startswith("helmet2/"):
                write(root / path, _rows(rng, task.name, path.split("/")[-2]))
    write(
        root / f"{LONGBENCH.folder}/train.jsonl",
        (_question(rng, number) for number in range(30)),
    )
    (root / LLAMA_3.path).parent.mkdir(parents=True, exist_ok=True)
    tokenizers.llama_3().save(str(root / LLAMA_3.path))
    return root


def length_of(name: str) -> int:
    """Return the length at which a task is fabricated."""
    return {"json_kv": KV_LENGTH, "multiple_choice": 65536}.get(name, LENGTH)


def _rows(rng: random.Random, task: str, folder: str) -> list[dict[str, Any]]:
    if folder == "json_kv":
        return list(json_kv_rows(rng, ROWS))
    if folder == "graphwalk":
        return [_graph(rng, number) for number in range(ROWS)]
    if folder.startswith("niah"):
        return list(niah_rows(rng, *_NIAH.get(folder, ("number", 1)), ROWS))
    return list(ruler_rows(rng, folder, ROWS))


def _graph(rng: random.Random, number: int) -> dict[str, Any]:
    nodes = [f"{rng.getrandbits(40):010x}" for _ in range(9)]
    edges = "\n".join(f"{rng.choice(nodes)} -> {rng.choice(nodes)}" for _ in range(20))
    return {
        "context": f"{words(rng, 9)}\n\n{edges}",
        "question": words(rng, 8),
        "answer": nodes[: number % 4],
    }


def _question(rng: random.Random, number: int) -> dict[str, Any]:
    choices = {f"choice_{letter}": words(rng, 4) for letter in "ABCD"}
    text = words(rng, rng.choice((40, 2000)))
    length = ("short", "medium", "long")[number % 3]
    return {
        "_id": str(number),
        "context": text,
        "question": words(rng, 7),
        **choices,
        "answer": rng.choice("ABCD"),
        "length": length,
    }


def records() -> list[dict[str, Any]]:
    """Return outputs and references by task."""
    values = (
        "Key: x\nCorresponding value: abc-1",
        "abc-1",
        "The ABC 1.",
        "no",
        "",
        "Corresponding value:\nabc-1",
    )
    lists = ("a1, b2", "a1,a1", "", "c3", " b2 ,, a1 ")
    forms = (
        "Final Answer: [{}]",
        "Final Answer:final answer:[{}",
        "[x] Final Answer: [{}] [y]",
        "so [{}]",
        "{}",
        "Final Answer:  [{}]",
    )
    outputs = [
        {"task": "json_kv", "prediction": value, "references": ["abc-1"]}
        for value in values
    ]
    for answer in (["a1", "b2"], [], ["c3"], ["a1", "a1", "c3"]):
        outputs += [
            {"task": "bfs", "prediction": form.format(nodes), "references": answer}
            for form in forms
            for nodes in lists
        ]
    numbers = ("123 and 45", "45", "", "ABC")
    return outputs + [
        {
            "task": "ruler_niah_mv",
            "prediction": text,
            "references": ["123", "45", "abc"],
        }
        for text in numbers
    ]
