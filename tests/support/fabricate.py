"""Fabricates a mirror folder in the official file formats, with the same text on every machine."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support import fabricate_books, fabricate_passages
from tests.support.fabricate_words import LENGTHS, PAIRS, words, write

RULER = {
    "niah_multikey_2": ("number", 1),
    "niah_multikey_3": ("uuid", 1),
    "niah_multivalue": ("numbers", 4),
}

SHARED_MIRROR = "HELM_LONGCTX_TESTS_MIRROR"
"""Variable with the folder where several processes share one mirror."""


def build_mirror(root: Path) -> Path:
    """Write every file that HELMET's tasks read with few rows, and return the folder."""
    rng = random.Random(20241)
    for label, tokens in LENGTHS.items():
        write(
            root / f"helmet/json_kv/test_k{PAIRS[label]}_dep6.jsonl",
            json_kv_rows(rng, 104),
        )
        for folder, (kind, answers) in RULER.items():
            write(
                root / f"helmet/ruler/{folder}/validation_{tokens}.jsonl",
                niah_rows(rng, kind, answers, 103),
            )
    hub(
        root,
        rng,
        "CogComp__trec",
        {"train": 700, "test": 500},
        {"coarse_label": 6, "fine_label": 50},
    )
    hub(root, rng, "PolyAI__banking77", {"train": 600, "test": 560}, {"label": 77})
    hub(root, rng, "clinc_oos/plus", {"train": 640, "validation": 530}, {"intent": 151})
    hub(
        root,
        rng,
        "xingkunliuxtracta__nlu_evaluation_data",
        {"train": 5205},
        {"label": 68},
    )
    other_ruler(root / "helmet/ruler", random.Random(4))
    fabricate_passages.build(root)
    fabricate_books.build(root)
    return root


def json_kv_rows(rng: random.Random, count: int) -> Iterable[dict[str, Any]]:
    for number in range(count):
        pairs = {
            f"{rng.getrandbits(64):x}": f"{rng.getrandbits(64):x}" for _ in range(6)
        }
        (key, value), *others = pairs.items()
        context = "JSON data:\n" + json.dumps(pairs, indent=1)
        yield {
            "id": number, "context": context, "question": key, "answer": value, "num_kvs": 6, "depth": number % 6 / 5,
            "demos": others[:3],
        }  # fmt: skip


def niah_rows(
    rng: random.Random, kind: str, answers: int, count: int
) -> Iterable[dict[str, Any]]:
    for number in range(count):
        values = [str(rng.randrange(10**6, 10**7)) for _ in range(answers)]
        lines = [words(rng, 8) + f" The value is {value}." for value in values]
        yield {
            "index": number, "length": 100, "context": "\n".join(lines), "query": words(rng, 1), "type_needle_v": kind,
            "answer": values, "num_v": answers,
        }  # fmt: skip


def other_ruler(folder: Path, rng: random.Random) -> None:
    """Write RULER's other tasks, whose columns differ from task to task as in the release."""
    kinds = {
        "single_1": 1,
        "single_2": 1,
        "single_3": 1,
        "multikey_1": 1,
        "multiquery": 4,
    }
    for tokens in LENGTHS.values():
        for name, answers in kinds.items():
            write(
                folder / f"niah_{name}/validation_{tokens}.jsonl",
                niah_rows(rng, "numbers", answers, 102),
            )
        for name in ("cwe", "fwe", "vt", "qa_1", "qa_2"):
            write(
                folder / f"{name}/validation_{tokens}.jsonl", ruler_rows(rng, name, 102)
            )


def ruler_rows(rng: random.Random, name: str, count: int) -> Iterable[dict[str, Any]]:
    for number in range(count):
        row = {
            "index": number,
            "context": words(rng, 12),
            "outputs": [words(rng, 1) for _ in range(5)],
            "length": 9,
        }
        if name == "vt":
            row |= {"query": str(rng.randrange(10**5)), "num_v": 5}
        if name in ("cwe", "vt"):
            row["example"] = words(rng, 9)
        if name.startswith("qa"):
            row["question" if name == "qa_1" else "query"] = words(rng, 5)
        yield row


def hub(
    root: Path,
    rng: random.Random,
    name: str,
    splits: dict[str, int],
    labels: dict[str, int],
) -> None:
    """Write a labelled hub data set, in which the last label of each column never occurs and some texts occur twice."""
    names = {
        column: [f"{column} {number}" for number in range(count)]
        for column, count in labels.items()
    }
    for split, rows in splits.items():
        texts = [words(rng, rng.randint(2, 9)) for _ in range(rows - 5)]
        texts += texts[:5]
        write(
            root / f"hub/{name}/{split}.jsonl",
            (
                {
                    "text": t,
                    **{c: int(rng.random() ** 2 * (n - 1)) for c, n in labels.items()},
                }
                for t in texts
            ),
        )
    (root / f"hub/{name}/features.json").write_text(json.dumps(names), encoding="utf-8")


def odd_outputs(rng: random.Random, answer: str, prefix: str) -> list[str]:
    """Return outputs that could confuse parsers and metrics."""
    return [
        "", " ", "\n", answer, f" {answer}", f"{answer}\n", f"\n{answer}", f"{prefix} {answer}", f"{prefix}\n{answer}",
        f"{prefix}{prefix} {answer}", f"{prefix} {prefix} {prefix} {answer}", f"{prefix.upper()} {answer}.",
        f"The answer is {answer}, I think.\n{prefix} wrong", f"wrong\n{prefix} {answer}\nmore", answer.upper(),
        answer[: len(answer) // 2], answer * 3, f"**{answer}**", f"{answer}\r\nx", f"{answer}\u2028x", f'"{answer}"',
        "the a an", "yes", "noanswer", "No.", words(rng, 40), f"{words(rng, 300)} {answer}", "文" * 50, "\x00\t{}",
    ]  # fmt: skip


def score_records(seed: int = 7) -> list[dict[str, Any]]:
    """Return records for the metrics: a task's name, a prediction and references."""
    rng = random.Random(seed)
    cases = [
        ("json_kv", "Corresponding value:", ["9d8f-77ab"]),
        ("json_kv", "Corresponding value:", ["The An"]),
        (
            "ruler_niah_mk_2",
            "The special magic number for a-b mentioned in the provided text is",
            ["1234567"],
        ),
        ("ruler_niah_mv", "are", ["1234567", "Abc", "7654321"]),
        ("banking77", "label:", ["17"]),
        ("trec_coarse", "label:", ["a"]),
        ("clinic150", "label:", ["yes"]),
        ("nlu", "label:", ["alarm query"]),
        ("nq", "Answer:", ["2 May 1841", "May 1841"]),
        ("popqa", "Answer:", ["The"]),
        ("ruler_qa_1", "Answer:", ["Lake Vel", "vel"]),
        ("infbench_qa", "Answer:", ["Mr. Tam's house", "noanswer"]),
        ("infbench_choice", "Answer:", ["A", "A. the old bridge"]),
        ("infbench_choice", "Answer:", ["C", "C. Kiri and Shu"]),
        (
            "infbench_sum",
            "Summary:",
            ["Vel leaves. Tam stays.\nThey meet again in spring."],
        ),
        ("multi_lexsum", "Summary:", ["The court dismissed the case."]),
    ]
    answers = [
        {"task": task, "prediction": output, "references": references}
        for task, prefix, references in cases
        for output in odd_outputs(
            rng, references[-1 if task == "infbench_choice" else 0], prefix
        )
    ]
    return answers + ranking_records(rng)


def ranking_records(rng: random.Random) -> list[dict[str, Any]]:
    """Return rankings in the form that was asked for, and in many others."""
    records = []
    for size in (12, 60):
        ids = [str(number) for number in rng.sample(range(10000), size)]
        qrels = {number: rng.choice((0, 0, 0, 1, 2, 3)) for number in ids}
        gold = sorted(ids, key=lambda number: -qrels[number])
        chain, (first, second, third, *_) = " > ".join(gold), gold
        outputs = [
            "", "none", chain, f"Ranking: {chain}", f"Ranking:{chain} and so on", " > ".join(rng.sample(ids, size)),
            " > ".join(reversed(gold)), ">".join(gold), chain.replace(" > ", "  >\n"), f"[ID: {first}] > [ID: {second}]",
            f"ID{first} > ID{second} > ID{first} > ID{third}", f"**{first}** > **{second}**", ", ".join(gold),
            f"{first} >> {second}", "\n".join(f"{i}. {number}" for i, number in enumerate(gold, 1)), first,
            f"considered {first} > {second}", f"{first} > {second}; then {third} > {second} > {first}", f"{chain} > 99",
            f"１２ > {first}", f"0{first} > {second}", f"{chain[: len(chain) // 2]}", f"{first} > {second} >",
            f"no documents, but {first[0]}",
        ]  # fmt: skip
        reference = [" > ".join(gold)]
        records += [
            {
                "task": "msmarco",
                "prediction": o,
                "references": reference,
                "qrels": qrels,
            }
            for o in outputs
        ]
    return records
