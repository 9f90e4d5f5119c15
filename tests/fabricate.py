"""A mirror folder with fabricated text in the official file formats, the same on every machine."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LENGTHS = {"4k": 4096, "8k": 8192, "16k": 16384, "32k": 32768, "64k": 65536, "128k": 131072}
PAIRS = dict(zip(LENGTHS, (50, 105, 220, 440, 900, 1800), strict=True))
SYLLABLES = ("ba", "do", "ki", "lum", "ner", "pos", "ri", "shu", "tam", "vel", "é", "文", "{x}", "'s", "%")
RULER = {
    "niah_multikey_2": ("number", 1),
    "niah_multikey_3": ("uuid", 1),
    "niah_multivalue": ("numbers", 4),
}


def build_mirror(root: Path) -> Path:
    """Every file that HELMET's recall and ICL tasks read, small."""
    rng = random.Random(20241)
    for label, tokens in LENGTHS.items():
        write(root / f"helmet/json_kv/test_k{PAIRS[label]}_dep6.jsonl", json_kv_rows(rng, 104))
        for folder, (kind, answers) in RULER.items():
            write(root / f"helmet/ruler/{folder}/validation_{tokens}.jsonl", niah_rows(rng, kind, answers, 103))
    hub(root, rng, "CogComp__trec", {"train": 700, "test": 500}, {"coarse_label": 6, "fine_label": 50})
    hub(root, rng, "PolyAI__banking77", {"train": 600, "test": 560}, {"label": 77})
    hub(root, rng, "clinc_oos/plus", {"train": 640, "validation": 530}, {"intent": 151})
    hub(root, rng, "xingkunliuxtracta__nlu_evaluation_data", {"train": 5205}, {"label": 68})
    return root


def words(rng: random.Random, count: int) -> str:
    """Nonsense with accents, braces and other things that a template could trip over."""
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(count))


def json_kv_rows(rng: random.Random, count: int) -> Iterable[dict[str, Any]]:
    for number in range(count):
        pairs = {f"{rng.getrandbits(64):x}": f"{rng.getrandbits(64):x}" for _ in range(6)}
        (key, value), *others = pairs.items()
        context = "JSON data:\n" + json.dumps(pairs, indent=1)
        yield {
            "id": number, "context": context, "question": key, "answer": value, "num_kvs": 6, "depth": number % 6 / 5,
            "demos": others[:3],
        }  # fmt: skip


def niah_rows(rng: random.Random, kind: str, answers: int, count: int) -> Iterable[dict[str, Any]]:
    for number in range(count):
        values = [str(rng.randrange(10**6, 10**7)) for _ in range(answers)]
        lines = [words(rng, 8) + f" The value is {value}." for value in values]
        yield {
            "index": number, "length": 100, "context": "\n".join(lines), "query": words(rng, 1), "type_needle_v": kind,
            "answer": values, "num_v": answers,
        }  # fmt: skip


def hub(root: Path, rng: random.Random, name: str, splits: dict[str, int], labels: dict[str, int]) -> None:
    """A labelled hub data set; the last label of each column never occurs, and some texts occur twice."""
    names = {column: [f"{column} {number}" for number in range(count)] for column, count in labels.items()}
    for split, rows in splits.items():
        texts = [words(rng, rng.randint(2, 9)) for _ in range(rows - 5)]
        texts += texts[:5]
        write(
            root / f"hub/{name}/{split}.jsonl",
            ({"text": t, **{c: int(rng.random() ** 2 * (n - 1)) for c, n in labels.items()}} for t in texts),
        )
    (root / f"hub/{name}/features.json").write_text(json.dumps(names), encoding="utf-8")


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def odd_outputs(rng: random.Random, answer: str, prefix: str) -> list[str]:
    """Outputs that parsers and metrics could stumble over."""
    return [
        "", " ", "\n", answer, f" {answer}", f"{answer}\n", f"\n{answer}", f"{prefix} {answer}", f"{prefix}\n{answer}",
        f"{prefix}{prefix} {answer}", f"{prefix} {prefix} {prefix} {answer}", f"{prefix.upper()} {answer}.",
        f"The answer is {answer}, I think.\n{prefix} wrong", f"wrong\n{prefix} {answer}\nmore", answer.upper(),
        answer[: len(answer) // 2], answer * 3, f"**{answer}**", f"{answer}\r\nx", f"{answer}\u2028x", f'"{answer}"',
        "the a an", "yes", "noanswer", "No.", words(rng, 40), f"{words(rng, 300)} {answer}", "文" * 50, "\x00\t{}",
    ]  # fmt: skip


def score_records(seed: int = 7) -> list[dict[str, Any]]:
    """Records for the metrics: a task's name, a prediction and references."""
    rng = random.Random(seed)
    cases = [
        ("json_kv", "Corresponding value:", ["9d8f-77ab"]),
        ("json_kv", "Corresponding value:", ["The An"]),
        ("ruler_niah_mk_2", "The special magic number for a-b mentioned in the provided text is", ["1234567"]),
        ("ruler_niah_mv", "are", ["1234567", "Abc", "7654321"]),
        ("banking77", "label:", ["17"]),
        ("trec_coarse", "label:", ["a"]),
        ("clinic150", "label:", ["yes"]),
        ("nlu", "label:", ["alarm query"]),
    ]
    return [
        {"task": task, "prediction": output, "references": references}
        for task, prefix, references in cases
        for output in odd_outputs(rng, references[0], prefix)
    ]
