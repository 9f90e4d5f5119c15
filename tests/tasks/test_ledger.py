"""Checks of the ledger: the rows of published numbers in the files of reported protocols."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from itertools import combinations

from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.tasks.publications import (
    CONFIDENCE,
    KINDS,
    Protocol,
    PublicationSource,
    Reported,
    is_rounded,
)
from helm_longctx.tasks.registry import BENCHMARKS, find_protocols, read_folders

ROWS = [
    (protocol, row)
    for benchmark in BENCHMARKS
    for protocol in find_protocols(benchmark)
    if not protocol.is_table
    for row in protocol.rows
]

SOURCE = PublicationSource("A page", "https://example.org", "2026-01-01")

SIZE = re.compile(r"a?\d+(?:\.\d+)?b")

NO_NAME = {"instruct", "it", "chat", "thinking", "reasoning", "model"}
"""Words that do not tell one model from another."""

DISTINCT = {
    frozenset(("Qwen3-235B-A22B", "Qwen3-235B-A22B-Instruct-2507")),
    frozenset(("Qwen3-235B-A22B", "Qwen3-235B-A22B-Thinking-2507")),
    frozenset(("Qwen3-235B-A22B-Instruct-2507", "Qwen3-235B-A22B-Thinking-2507")),
    frozenset(("DeepSeek-R1", "DeepSeek-R1-0528")),
    frozenset(("Gemini 2.5 Pro", "Gemini 2.5 Pro Preview 03-25")),
    frozenset(("Gemini 1.5 Flash", "Gemini 1.5 Flash-8B")),
    frozenset(("GPT-4o-2024-05-13", "GPT-4o-2024-11-20")),
    frozenset(("GPT-4-0125-Preview", "GPT-4-1106-Preview")),
    frozenset(("Phi-4", "Phi-4-reasoning")),
    frozenset(("Seed 2.0 Lite 0215", "Seed 2.0 Lite 0428")),
}
"""Models of one family whose names differ only in words or dates, and that are different models."""


def test_there_are_at_least_135_rows_with_sources() -> None:
    """A row is a model with its effort in a family of protocols, and 135 models of a benchmark have one."""
    models = {
        (protocol.name.split()[0], protocol.family, row.model) for protocol, row in ROWS
    }
    assert len(models) >= 250
    assert len({(protocol.family, row.label) for protocol, row in ROWS}) >= 300


def test_no_row_is_there_twice() -> None:
    """A model with its effort has one number by a protocol; another source of the number stands in the same row."""
    places = [(protocol.name, row.label) for protocol, row in ROWS]
    assert sorted(position for position in places if places.count(position) > 1) == []


def test_the_form_of_a_row() -> None:
    """A row has a vendor, a number with its digits, and sources with an address, a kind and the day of reading."""
    wrong = {
        f"{protocol.name}: {row.label}": faults
        for protocol, row in ROWS
        if (faults := faults_of_row(protocol, row))
    }
    assert wrong == {}
    assert len(ROWS) > 700


def faults_of_row(protocol: Protocol, row: Reported) -> list[str]:
    """Return what is wrong with a row of the files of reported protocols."""
    number = Decimal(row.text)
    holds = {
        "no vendor": bool(row.vendor),
        "no percentage": 0 <= number <= 100,
        "the number differs from its text": float(row.text) == row.value,
        "an unknown confidence": row.confidence in CONFIDENCE,
        "a source stands twice": row.source not in row.also,
        "neither entries nor an obstacle": bool(protocol.entries or protocol.obstacle),
    }
    for source in (row.source, *row.also):
        holds |= {
            f"{source.title}: no address": source.page.startswith("https://"),
            f"{source.title}: unknown kind": source.kind in KINDS,
            f"{source.title}: no day of reading": has_form(
                r"\d{4}-\d{2}-\d{2}", source.read
            ),
            f"{source.title}: no date": has_form(
                r"\d{4}-\d{2}(-\d{2})?|unknown", source.date
            ),
        }
    return [fault for fault, is_right in holds.items() if not is_right]


def has_form(pattern: str, text: str) -> bool:
    """Return whether a whole text matches a pattern."""
    return re.fullmatch(pattern, text) is not None


def test_faults_of_a_row_are_found() -> None:
    """A row without a vendor, beyond 100 percent, and with a source without an address and a day has a fault for each."""
    protocol, row = ROWS[0]
    source = replace(row.source, page="x", read="today")
    faults = faults_of_row(protocol, replace(row, vendor="", text="101", source=source))
    assert len(faults) == 5


def names_of_one_model(names: list[str]) -> list[tuple[str, str]]:
    """Return pairs of names that differ only in their spelling, in a date, in words of `NO_NAME`, or in a missing size."""
    keys = defaultdict(list)
    for name in names:
        plain = re.sub(
            r"\b(preview\s*)?\d{2}-\d{2}\b|\b(preview|\d{4}-\d{2}-\d{2}|\d{4})\b",
            " ",
            name.lower(),
        )
        words = [
            word
            for word in re.split(r"[^a-z0-9.]+", plain)
            if word and word not in NO_NAME
        ]
        sizes = frozenset(word for word in words if SIZE.fullmatch(word))
        keys["".join(word for word in words if word not in sizes)].append((name, sizes))
    pairs = [
        (one, other)
        for same in keys.values()
        for (one, sizes), (other, others) in combinations(
            sorted(same, key=lambda fact: fact[0]), 2
        )
        if sizes == others or not sizes or not others
    ]
    return [pair for pair in pairs if frozenset(pair) not in DISTINCT]


def test_no_model_has_two_names() -> None:
    """A model has one name in all files, and one vendor."""
    assert names_of_one_model(sorted({row.model for _, row in ROWS})) == []
    vendors = defaultdict(set)
    for _, row in ROWS:
        vendors[row.model].add(row.vendor)
    assert {model: names for model, names in vendors.items() if len(names) > 1} == {}


def test_two_names_are_found() -> None:
    """Another spelling, a date, and a missing size are found; another size is another model."""
    assert names_of_one_model(["GPT-5.5", "gpt 5.5"]) == [("GPT-5.5", "gpt 5.5")]
    assert names_of_one_model(["Qwen3.5", "Qwen3.5-397B-A17B"])
    assert names_of_one_model(["GPT-4o", "GPT-4o-2024-11-20"])
    assert not names_of_one_model(
        ["Qwen3.5-27B", "Qwen3.5-35B-A3B", "GPT-5.4", "GPT-5.4 mini"]
    )


def test_sources_that_differ_have_a_mark() -> None:
    """Where another source prints another number, the row has a mark and names it, and rounding is no difference."""
    row = Reported(
        "m",
        93.0,
        "",
        "H",
        SOURCE,
        "93.0",
        also={PublicationSource("B", "https://b", "x"): Decimal("93.1")},
    )
    assert row.number_text == "93.0 ‡"
    assert row.origin == "A page, 2026-01-01 (stated on the page; but B: 93.1)"
    same = Reported(
        "m",
        92.94,
        "",
        "M",
        SOURCE,
        "92.94",
        also={PublicationSource("B", "https://b", "x"): Decimal("92.9")},
    )
    assert same.number_text == "92.94"
    assert same.origin == "A page, 2026-01-01 (second hand; also in B)"
    assert is_rounded(Decimal("80"), Decimal("80.4"))
    assert not is_rounded(Decimal("80"), Decimal("80.6"))
    assert {row.label for _, row in ROWS if row.differences} >= {
        "GPT-5.4 (xhigh)",
        "Seed 2.0",
        "GPT-5.2 (xhigh)",
    }


def test_digits_are_those_of_the_source() -> None:
    """A number keeps its zeros, and one of a page with fractions has as many digits in percent."""
    texts = {(protocol.name, row.label): row.text for protocol, row in ROWS}
    assert texts["openai mrcr v2 8-needle 512k-1m", "GPT-5.5 (xhigh)"] == "74.0"
    assert texts["nemotron ruler 256k", "Nemotron 3 Super"] == "96.30"
    assert (
        texts["anthropic graphwalks parents 256k", "Claude Mythos 5 (max)"] == "99.96"
    )
    assert texts["minimax ruler 1m", "MiniMax-Text-01"] == "91.0"
    assert texts["aa-lcr of releases", "MiniMax-M2.1"] == "62"


def test_every_source_is_used() -> None:
    """A source of a file or of the shared file is named by a row, or by a table of the file."""
    for folder in read_folders().values():
        path = folder / "protocols.yaml"
        if path.is_file():
            document = read_yaml(path, as_text=True)
            rows = [row for family in document["protocols"] for row in family["rows"]]
            tables = [
                family["table"] for family in document["protocols"] if "table" in family
            ]
            used = {line["source"] for line in (*rows, *tables)} | {
                name for row in rows for name in row.get("also", {})
            }
            assert sorted(document["sources"].keys() - used) in (
                [],
                ["aa"],
                ["nemo-gym"],
            )
