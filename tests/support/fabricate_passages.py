"""Fabricates KILT, MS MARCO and ALCE files in the formats of HELMET's release."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.fabricate_words import DEMOS, PASSAGES, RANKED, words, write


def build(root: Path) -> None:
    """Write everything under `helmet/kilt`, `helmet/msmarco`, `helmet/alce` and `helmet/prompts`."""
    rng = random.Random(5)
    kilt = root / "helmet/kilt"
    files = {**PASSAGES, "demos": DEMOS}
    for label, k in files.items():
        split, questions = ("train", 40) if label == "demos" else ("dev", 103)
        for name, depths in (("nq", 6), ("triviaqa", 6), ("hotpotqa", 3)):
            rows = qa_rows(rng, questions, depths, with_id=name != "nq")
            write(kilt / f"{name}-{split}-multikilt_1000_k{k}_dep{depths}.jsonl", rows)
        write(kilt / f"popqa_test_1000_k{k}_dep6.jsonl", popqa_rows(rng, 130))
    for k in (*RANKED.values(), 10):
        write(
            root / f"helmet/msmarco/test_reranking_data_k{k}_dep3.jsonl",
            rerank_rows(rng, 50 if k == 10 else 103),
        )
    alce(root / "helmet", rng)


def qa_rows(
    rng: random.Random, questions: int, depths: int, with_id: bool
) -> Iterator[dict[str, Any]]:
    for number in range(questions):
        row = {
            "question": f"{words(rng, 4)} {number}?",
            "answers": [words(rng, 2) for _ in range(rng.randint(1, 3))],
        }
        for depth in range(depths):
            ctxs = [
                {"psg_id": str(i), "title": words(rng, 2), "text": words(rng, 6)}
                for i in range(rng.randint(1, 3))
            ]
            ctxs[depth % len(ctxs)]["text"] += f" {row['answers'][0]}"
            yield {**({"id": f"q{number}"} if with_id else {}), **row, "ctxs": ctxs}


def popqa_rows(rng: random.Random, questions: int) -> Iterator[dict[str, Any]]:
    """Yield questions with a popularity above, below and at the threshold; some questions occur twice under different ids."""
    for number in range(questions):
        popularity = (12, 999, 1000, 1001, 250, 45)[number % 6]
        question = (
            f"who is {words(rng, 2)} {number // 2 if number % 10 < 2 else number}"
        )
        answer = words(rng, 2)
        for depth in range(6):
            ctxs = [
                {
                    "id": str(i),
                    "title": words(rng, 1),
                    "text": words(rng, 5),
                    "score": 1.5,
                    "has_answer": i == depth % 3,
                }
                for i in range(3)
            ]
            row = {
                "id": 1000 + number,
                "question": question,
                "s_pop": popularity,
                "answers": [answer, "x"],
            }
            yield {**row, "possible_answers": json.dumps([answer]), "ctxs": ctxs}


def rerank_rows(rng: random.Random, queries: int) -> Iterator[dict[str, Any]]:
    for number in range(queries):
        qid = str(rng.randrange(10**6))
        query = f"{words(rng, 4)} {number}"
        ids = rng.sample(range(10000), 12)
        for _ in range(3):
            ctxs = [
                {
                    "id": str(i),
                    "text": words(rng, 5),
                    "label": rng.choice((0, 0, 0, 1, 2, 3)),
                }
                for i in ids
            ]
            yield {"qid": qid, "query": query, "ctxs": ctxs}


def alce(folder: Path, rng: random.Random) -> None:
    """Write both data files, each as one array, and four prompt files with four demonstrations."""
    (folder / "alce").mkdir(parents=True)
    (folder / "prompts").mkdir()
    for name in ("asqa", "qampari"):
        items = [alce_item(rng, name) for _ in range(104)]
        text = json.dumps(
            items, indent=4 if name == "asqa" else None, ensure_ascii=name == "asqa"
        )
        (folder / f"alce/{name}_eval_gtr_top2000.json").write_text(
            text, encoding="utf-8"
        )
        for form in ("revised", "nocite"):
            gap = "\n\n" if name == "asqa" else "\n"
            protocol = {
                "instruction": f"Instruction: {words(rng, 9)}",
                "demo_sep": "\n\n\n",
                "demo_prompt": "{instruction}\n\nQuestion: {question}\n\n{context}"
                + gap
                + "Answer: {answer}",
                "doc_prompt": "Document [{ID}](Title: {title}): {text}",
                "demos": [
                    {
                        "question": words(rng, 5),
                        "answer": words(rng, 9),
                        "docs": docs(rng, 5),
                    }
                    for _ in range(4)
                ],
            }
            (folder / f"prompts/{name}_{form}.json").write_text(
                json.dumps(protocol), encoding="utf-8"
            )


def alce_item(rng: random.Random, name: str) -> dict[str, Any]:
    item: dict[str, Any] = {
        "question": f'{words(rng, 6)} "quoted" \\ {{braces}} ?',
        "docs": docs(rng, 12),
    }
    if name == "asqa":
        item["qa_pairs"] = [
            {
                "context": "none",
                "question": words(rng, 3),
                "short_answers": [words(rng, 2), words(rng, 1)],
                "wikipage": None,
            }
            for _ in range(rng.randint(1, 3))
        ]
        item["annotations"] = [
            {"knowledge": [], "long_answer": words(rng, 20)} for _ in range(2)
        ]
        item["answer"] = item["annotations"][0]["long_answer"]
    else:
        item["answers"] = [
            [words(rng, 2), words(rng, 1)] for _ in range(rng.randint(1, 9))
        ]
        item["answer"] = ", ".join(names[0] for names in item["answers"])
    return item


def docs(rng: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {"id": str(i), "title": words(rng, 2), "text": words(rng, 9), "score": 0.5}
        for i in range(count)
    ]
