"""Fabricates OfficeQA's files and answers, the same on every machine."""

from __future__ import annotations

import csv
import json
import random
import re
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.officeqa.tasks import DOCUMENTS, QUESTIONS
from tests.support.fabricate_words import words

PAGES = 12
"""Number of pages of a document."""

_ADDRESS = "https://fraser.stlouisfed.org/title/treasury-bulletin-407"


def build_officeqa(root: Path) -> Path:
    """Write the file of questions, and all documents: two of several pages, and short ones."""
    questions = root / QUESTIONS.path
    questions.parent.mkdir(parents=True, exist_ok=True)
    with questions.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*make_rows()[0]])
        writer.writeheader()
        writer.writerows(make_rows())
    short = json.dumps(make_document(1))
    for path in DOCUMENTS["full"].paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(short, encoding="utf-8")
    for name in ("1941_01", "1954_02"):
        document = json.dumps(make_document(PAGES), ensure_ascii=False)
        (target.parent / f"treasury_bulletin_{name}.json").write_text(document)
    return root


def make_rows() -> list[dict[str, str]]:
    """Return three questions: on one page, on pages of two documents, and an easy one."""
    january = f"{_ADDRESS}/january-1941-6529?page=3"
    february = f"{_ADDRESS}/february-1954-6685?page=5&deep=true"
    return [
        _make_row("UID0001", "2,602", [january], ["1941_01"], "hard"),
        _make_row(
            "UID0002",
            "[1.5, 8,152]",
            [january, f"{_ADDRESS}/january-1941-6529?page=9", february],
            ["1941_01", "1954_02"],
            "hard",
        ),
        _make_row("UID0003", "March 1977", [february], ["1954_02"], "easy"),
    ]


def _make_row(
    name: str, answer: str, addresses: list[str], files: list[str], difficulty: str
) -> dict[str, str]:
    names = [f"treasury_bulletin_{file}.txt" for file in files]
    return {
        "uid": name,
        "question": f"What was the total of {name}?",
        "answer": answer,
        "source_docs": "\r\n".join(addresses),
        "source_files": "\r\n".join(names),
        "difficulty": difficulty,
    }


def make_document(pages: int) -> dict[str, Any]:
    """Return a parsed document. Each page has a text and a table with a cell over two columns."""
    rng = random.Random(f"document {pages}")
    elements: list[dict[str, Any]] = []
    for page in range(1, pages + 1):
        box = [{"page_id": page, "coord": [0, 0, 1, 1]}]
        text = f"Page {page} é\r\n{words(rng, 40)}"
        table = (
            "<table><tr><th colspan='2'>Year &amp; sum</th><th>x|y</th></tr>"
            f"<tr><td rowspan=2>19{page:02}</td><td>1,024</td><td></td></tr>"
            "<tr><td>2\n048</td><td><b>n</b>.a.</td></tr></table>"
        )
        for kind, content in (("text", text), ("table", table), ("figure", " ")):
            elements.append({"type": kind, "content": content, "bbox": box})
    elements.append({"type": "text", "content": "Without a page"})
    return {"document": {"elements": elements}}


_GOLDS = (
    "2,602",
    "258.7",
    "0",
    "-3.5",
    "-18.51%",
    "$7,046,001.98",
    "543 million",
    "1977",
    "March 1977",
    "April 15, 2020",
    "[8, 152,260]",
    "[1.5, 8,152]",
    "[8, 152, 260, 1,024]",
    "[Massachusetts, 0.866]",
    "[-1.2%, 3]",
    "1.2 and 3.4",
    "Federal Old-Age and Survivors Insurance (OASI) Trust Fund",
    "Yes",
    '"Texas"',
    "12 bonds in 1999",
    "(1,234)",
    "$1.2 billion",
    "1.2 million",
    "2020, 2021",
    "",
)
"""Right answers of the kinds that the data sets have."""

_PARTS = (
    "in 2023",
    "1999",
    "million",
    "billions",
    "k",
    "%",
    "$",
    "(1,234)",
    "(1977)",
    "about",
    "Unable to determine",
    "<b>",
    "\n",
    "\u2212",
    "march",
    "April",
    "0",
    "7",
    "8,152,260",
    "152260",
    "[",
    "]",
    ", ",
    "and",
    "texas",
    "trust fund",
    "x%y",
    "€",
    "٣",
    "1e5",
    "12.",
)


def make_pairs(count: int) -> list[tuple[str, str]]:
    """Return right answers, each with an answer of a model: the right one changed in small ways, or made."""
    rng = random.Random("answers")
    pairs = []
    for _ in range(count):
        gold = rng.choice(_GOLDS)
        pairs.append((gold, _make_reply(rng, gold)))
    return pairs


def _shift(rng: random.Random, gold: str) -> str:
    """Return a right answer whose numbers are wrong by a little."""
    factor = rng.choice([1.0005, 0.995, 1.03, 1.2])

    def change(match: re.Match[str]) -> str:
        return str(round(float(match[0].replace(",", "")) * factor, 6))

    return re.sub(r"\d[\d,]*\.?\d*(?<!,)", change, gold)


def _change_unit(rng: random.Random, gold: str) -> str:
    """Return a right answer with a unit, in place of its own if it has one."""
    unit = rng.choice(["trillion", "billions", "b", "million", "M", "thousands", "k"])
    return f"{re.sub(r' [mb]illion$', '', gold)} {unit}"


def _make_reply(rng: random.Random, gold: str) -> str:
    made = rng.choices(_PARTS, k=rng.randint(0, 3))
    inner = rng.choice(
        [
            gold,
            gold.lower(),
            gold.replace(",", ""),
            gold.replace("-", "\u2212"),
            gold.strip("[]"),
            gold.replace(" ", "  "),
            f"${gold}",
            f"{gold} {''.join(made[:1])}",
            f"{''.join(made[:1])} {gold}",
            f"{gold} in 2023",
            f"[{gold}]",
            f"[{gold.strip('[]')}]",
            _shift(rng, gold),
            _shift(rng, gold),
            _shift(rng, gold),
            _change_unit(rng, gold),
            " ".join(made),
            "".join(made),
            rng.choice(_GOLDS),
            gold.partition(" ")[0],
            f"{gold}\n\n",
            f"{gold} {'x' * 250}",
            "[Massachusetts, 0.866]",
            "Massachusetts, with a ratio of 0.866",
        ]
    )
    return rng.choice(
        [
            f"<REASONING>3 and 4</REASONING><FINAL_ANSWER>\n{inner}\n</FINAL_ANSWER>",
            f"<FINAL_ANSWER>{inner}</FINAL_ANSWER>",
            f"<final_answer>1</final_answer> no, <Final_Answer>{inner}</FINAL_ANSWER>",
            f"<FINAL_ANSWER>{inner}",
            inner,
        ]
    )


TOLERANCES = (0.0, 0.001, 0.01, 0.05)
"""The relative tolerances of the published figure."""

RECORD = {"references": ["2,602"], "prediction": "<FINAL_ANSWER>2602</FINAL_ANSWER>"}
