"""Published scores of LongBench."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.longbench import BENCHMARK


def test_published_scores_have_the_official_means() -> None:
    """GPT-3.5's scores on the English data sets give the averages in the official README."""
    (gpt,) = [row for row in BENCHMARK.published() if row.model == "GPT-3.5-Turbo-16k"]
    kinds = (
        ("narrativeqa", "qasper", "multifieldqa_en"), ("hotpotqa", "2wikimqa", "musique"),
        ("gov_report", "qmsum", "multi_news"), ("trec", "triviaqa", "samsum"), ("lcc", "repobench-p"),
        ("passage_count", "passage_retrieval_en"),
    )  # fmt: skip
    means = [
        100 * sum(gpt.scores[name] for name in names) / len(names) for names in kinds
    ]
    assert means == pytest.approx([39.8, 38.7, 26.5, 67.1, 54.1, 37.8], abs=0.1)
    assert len(BENCHMARK.published()) == 8
