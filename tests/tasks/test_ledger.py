"""Checks of the ledger: the rows of published numbers in the files of reported protocols."""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from itertools import combinations

import pytest

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
    models = {(protocol.name.split()[0], protocol.family, row.model) for protocol, row in ROWS}
    assert len(models) >= 250
    assert len({(protocol.family, row.label) for protocol, row in ROWS}) >= 300


def test_no_row_is_there_twice() -> None:
    """A model with its effort has one number by a protocol; another source of the number stands in the same row."""
    places = [(protocol.name, row.label) for protocol, row in ROWS]
    assert sorted(place for place in places if places.count(place) > 1) == []


@pytest.mark.parametrize(
    ("protocol", "row"), ROWS, ids=[f"{protocol.name}: {row.label}" for protocol, row in ROWS]
)
def test_the_form_of_a_row(protocol: Protocol, row: Reported) -> None:
    """A row has a vendor, a number with its digits, and sources with an address, a kind and the day of reading."""
    assert row.vendor
    assert 0 <= Decimal(row.text) <= 100
    assert float(row.text) == row.value
    assert row.confidence in CONFIDENCE
    for source in (row.source, *row.also):
        assert source.page.startswith("https://")
        assert source.kind in KINDS
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", source.read)
        assert re.fullmatch(r"\d{4}-\d{2}(-\d{2})?|unknown", source.date)
    assert row.source not in row.also
    assert protocol.entries or protocol.obstacle


def names_of_one_model(names: list[str]) -> list[tuple[str, str]]:
    """Return pairs of names that differ only in their spelling, in a date, in words of `NO_NAME`, or in a missing size."""
    keys = defaultdict(list)
    for name in names:
        plain = re.sub(
            r"\b(preview\s*)?\d{2}-\d{2}\b|\b(preview|\d{4}-\d{2}-\d{2}|\d{4})\b", " ", name.lower()
        )
        words = [word for word in re.split(r"[^a-z0-9.]+", plain) if word and word not in NO_NAME]
        sizes = frozenset(word for word in words if SIZE.fullmatch(word))
        keys["".join(word for word in words if word not in sizes)].append((name, sizes))
    found = [
        (one, other)
        for same in keys.values()
        for (one, sizes), (other, others) in combinations(sorted(same, key=lambda each: each[0]), 2)
        if sizes == others or not sizes or not others
    ]
    return [pair for pair in found if frozenset(pair) not in DISTINCT]


def test_no_model_has_two_names() -> None:
    """A model has one name in all files, and one vendor."""
    assert names_of_one_model(sorted({row.model for _, row in ROWS})) == []
    vendors = defaultdict(set)
    for _, row in ROWS:
        vendors[row.model].add(row.vendor)
    assert {model: each for model, each in vendors.items() if len(each) > 1} == {}


def test_two_names_are_found() -> None:
    """Another spelling, a date, and a missing size are found; another size is another model."""
    assert names_of_one_model(["GPT-5.5", "gpt 5.5"]) == [("GPT-5.5", "gpt 5.5")]
    assert names_of_one_model(["Qwen3.5", "Qwen3.5-397B-A17B"])
    assert names_of_one_model(["GPT-4o", "GPT-4o-2024-11-20"])
    assert not names_of_one_model(["Qwen3.5-27B", "Qwen3.5-35B-A3B", "GPT-5.4", "GPT-5.4 mini"])


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
    assert texts["anthropic graphwalks parents 256k", "Claude Mythos 5 (max)"] == "99.96"
    assert texts["minimax ruler 1m", "MiniMax-Text-01"] == "91.0"
    assert texts["aa-lcr of releases", "MiniMax-M2.1"] == "62"


def test_every_source_is_used() -> None:
    """A source of a file or of the shared file is named by a row, or by a table of the file."""
    for folder in read_folders().values():
        path = folder / "protocols.yaml"
        if path.is_file():
            document = read_yaml(path, as_text=True)
            rows = [row for family in document["protocols"] for row in family["rows"]]
            tables = [family["table"] for family in document["protocols"] if "table" in family]
            used = {each["source"] for each in (*rows, *tables)} | {
                name for row in rows for name in row.get("also", {})
            }
            assert sorted(document["sources"].keys() - used) in ([], ["aa"], ["nemo-gym"])
