"""Scores and pages of the official code (golden_makers/officeqa.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from helm_longctx.benchmarks.officeqa.documents import join_pages, read_pages
from helm_longctx.benchmarks.officeqa.tasks import OFFICEQA
from helm_longctx.benchmarks.officeqa.tasks import TOLERANCES as METRICS
from helm_longctx.data.root import DataRoot
from tests.benchmarks.officeqa.fabricate import (
    PAGES,
    TOLERANCES,
    build_officeqa,
    make_document,
    make_pairs,
)
from tests.support.golden_cases import Comparison, GoldenCases, ScoredOutput
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)


def digest_pages(root: DataRoot) -> str:
    """Return a digest of the pages of a document without tables, which the official script writes otherwise."""
    document = make_document(PAGES)
    elements = document["document"]["elements"]
    document["document"]["elements"] = [
        element for element in elements if element["type"] != "table"
    ]
    path = root / "document.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return digest([join_pages(read_pages(path))])


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield 4,000 answers. The golden file has with how many of the tolerances, the largest ones, each is right."""
    assert sorted(METRICS.values()) == sorted(TOLERANCES)
    largest_first = sorted(METRICS, key=METRICS.__getitem__, reverse=True)
    scores = GOLDEN["scores"]
    for (gold, answer), count in zip(make_pairs(len(scores)), scores, strict=True):
        official = {
            metric: float(rank < int(count))
            for rank, metric in enumerate(largest_first)
        }
        record = {"references": [gold], "prediction": answer}
        yield ScoredOutput("pro_questions", record, official)


GOLDEN_CASES = GoldenCases(
    benchmark=OFFICEQA,
    build=build_officeqa,
    comparisons=(Comparison("pages", digest_pages, GOLDEN["pages"]),),
    list_outputs=list_outputs,
)
