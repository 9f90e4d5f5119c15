"""Tests of the cards of data: each benchmark says the terms of everything that it fetches."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from helm_longctx.data.release import PinnedFile
from helm_longctx.data.web import BucketFile, WebFile
from helm_longctx.data.wheel import WheelFile
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.data_cards import (
    BEFORE_RUN,
    FIRST_FETCH,
    FOR_JUDGES,
    ON_REQUEST,
    Origin,
    find_origin,
    make_cards,
)
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from tests.support.commands import Command

ROOT = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_each_source_has_terms(benchmark: Benchmark) -> None:
    """A benchmark states the license of each source that its tasks name, and of no other one."""
    cards = make_cards(benchmark)
    if benchmark.name != "helmet2_mrcr":  # a part of MRCR
        assert {card.page for card in cards} == set(benchmark.data)
    for card in cards:
        assert card.license
        assert card.revisions
        assert card.checks
        assert card.files
        assert set(card.times) <= {BEFORE_RUN, ON_REQUEST, FOR_JUDGES}


def test_each_source_has_a_pin_or_a_digest() -> None:
    """Of each source a commit or version is pinned, a digest is known, or the first fetch is recorded."""
    for benchmark in BENCHMARKS:
        for card in make_cards(benchmark):
            is_pinned = all(
                re.fullmatch(r"[0-9a-f]{7}|[0-9.]+", pin) for pin in card.revisions
            )
            has_digests = all(
                re.search("[0-9a-f]{40}|MD5|each file", check) for check in card.checks
            )
            is_recorded = all(
                re.search("first fetch|[0-9a-f]{40}", check) for check in card.checks
            )
            assert is_pinned or has_digests or is_recorded, card.page
            assert not card.evidence or all(
                item.what and item.read for item in card.evidence
            )


def test_a_card_joins_the_sources_of_a_publisher() -> None:
    """A card has all files of a publisher, when they are fetched, and the tasks that use them."""
    cards = {card.page: card for card in make_cards(find_benchmark("helmet"))}
    release = cards["https://huggingface.co/datasets/princeton-nlp/HELMET"]
    assert "helmet/json_kv/test_k50_dep6.jsonl" in release.files
    assert set(release.times) == {BEFORE_RUN, ON_REQUEST, FOR_JUDGES}
    assert "narrativeqa" not in release.tasks
    prompts = cards["https://github.com/princeton-nlp/HELMET"]
    assert (prompts.revisions, prompts.license) == (["4526dfb"], "MIT")
    assert len(prompts.checks) == len(set(prompts.checks)) > 1


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        (
            PinnedFile(
                "a", f"https://raw.githubusercontent.com/o/r/{COMMIT}/x.json", "ab" * 32
            ),
            Origin("https://github.com/o/r", "0123456", f"SHA-256 {'ab' * 32}"),
        ),
        (
            PinnedFile(
                "a",
                f"https://media.githubusercontent.com/media/o/r/{COMMIT}/x/y.json",
                "ab" * 32,
            ),
            Origin("https://github.com/o/r", "0123456", f"SHA-256 {'ab' * 32}"),
        ),
        (
            WebFile(
                "https://raw.githubusercontent.com/o/r/main/x.json", "a", "cd" * 20
            ),
            Origin("https://github.com/o/r", "a branch", f"git blob {'cd' * 20}"),
        ),
        (
            WebFile("http://h/folder/x.json", "a"),
            Origin("http://h/folder", "the file at the address", FIRST_FETCH),
        ),
        (
            WheelFile("pack-age", "1.2", "m", "ef" * 32, "a"),
            Origin("https://pypi.org/project/pack-age/", "1.2", f"SHA-256 {'ef' * 32}"),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_origins(source: PinnedFile, origin: Origin) -> None:
    """The origin of a source is the publisher's page, the revision in its address, and its digest."""
    assert find_origin(source) == origin


def test_what_is_not_pinned_says_so() -> None:
    """A source without a pinned revision says that the newest content is fetched and recorded."""
    assert "newest" in find_origin(BucketFile("b", "n", "p")).revision
    (card,) = make_cards(find_benchmark("flenqa"))
    assert card.revisions == ["d3ac83a"]
    (card,) = make_cards(find_benchmark("graphwalks"))
    assert card.revisions == ["f338bb2"]


def test_passed_checks_are_recorded() -> None:
    """A page that passed gets the day of the check, and one that failed keeps its earlier day."""
    record = runpy.run_path(str(ROOT / "docs/record_checks.py"))["record"]
    check = {"checked": "2026-12-02", "passed_pages": ["b"]}
    assert record({"a": "2026-11-25", "b": "2026-11-25"}, check) == {
        "a": "2026-11-25",
        "b": "2026-12-02",
    }


def test_list_data(command: Command) -> None:
    """`list --data` prints the sources and licenses of the named benchmarks, and all digests as JSON."""
    assert command("list", "aa_lcr", "--data") == 0
    assert "Apache-2.0" in command.out
    assert "reference/data" in command.out
    assert command("list", "aa_lcr", "ruler", "--data", "--json") == 0
    cards = json.loads(command.out)
    assert {card["benchmark"] for card in cards} == {"aa_lcr", "ruler"}
    assert cards[0]["checks"] == [
        "SHA-256 24ac16b30f3701da70f1ea046a88c03a3eff7a59b6d67ff113829c45a0d5e9ac"
    ]
    assert command("list", "any_jsonl", "--data") == 0
    assert command.out == "The data of these tasks is generated, or your own.\n"
