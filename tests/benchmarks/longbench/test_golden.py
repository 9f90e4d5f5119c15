"""Prompts and scores equal the official code's, which was run on the same data (golden_makers/longbench.py)."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from helm_longctx.benchmarks.longbench import BENCHMARK
from helm_longctx.benchmarks.longbench.tasks import BY_LENGTH
from helm_longctx.data.root import DataRoot
from helm_longctx.helm.scenario import to_instance
from helm_longctx.helm.truncation import CHAT_BUFFER, Truncator
from helm_longctx.tasks.cutting.cutters import RESERVED
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import Settings
from tests.benchmarks.longbench.fabricate import (
    build_longbench,
    dataset_of,
    deep_records,
    records,
)
from tests.benchmarks.lv_eval.fabricate import tokenizers

LIMITS = {"byte_level": 100_000, "metaspace": 501}
"""The most tokens of a prompt, by tokenizer."""
MODEL = "llama2-7b-chat-4k"
"""The official code puts [INST] around the chats of this model."""


def tokenizer(case: str) -> Any:
    """Return a tokenizer as the official code loads it."""
    return PreTrainedTokenizerFast(tokenizer_object=tokenizers()[case])


def fingerprint(prompt: str, max_tokens: int, ends_at_newline: bool) -> str:
    """Return the short form of a request in the golden file."""
    return f"{max_tokens} {ends_at_newline} {hashlib.sha256(prompt.encode()).hexdigest()[:16]}"


GOLDEN: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def golden() -> None:
    GOLDEN.update(
        json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(build_longbench(tmp_path_factory.mktemp("longbench")), mirror=True)


@pytest.mark.parametrize("case", LIMITS)
def test_prompts(case: str, root: DataRoot) -> None:
    """The prompts of all tasks, whole and cut, and their form, budget and stop sequence are the official ones."""
    cuts = 0
    for task in BENCHMARK.tasks:
        budget = task.output_tokens(Settings(None))
        truncator = Truncator(
            LIMITS[case] + max(RESERVED, budget + CHAT_BUFFER), lambda: tokenizer(case)
        )
        found = []
        for example in task.load(task, Settings(None), root):
            instance = to_instance(BENCHMARK, task, Settings(None), example, budget)
            # The sample has no question, because a long question is refused, and fabricated ones are too long.
            sample = Sample.from_json(instance.extra_data).extend(question=None)
            fitted = truncator.fit(
                instance.input.text,
                sample,
                budget,
                "chat" if task.chat else "completion",
            )
            sent = f"[INST]{fitted.prompt}[/INST]" if task.chat else fitted.prompt
            found.append(fingerprint(sent, budget, sample.stop == ["\n"]))
            cuts += fitted.cut
        assert found == GOLDEN["asked"][f"{case} {task.name}"], task.name
    assert bool(cuts) == (case == "metaspace")


def test_scores() -> None:
    """Every score is the official one, digit for digit, and scores of LongBench-E also count for the official column of
    their length."""
    values = []
    for record, (whole, columns) in zip(
        [*records(), *deep_records()], GOLDEN["scores"], strict=True
    ):
        dataset = dataset_of(record["dataset"])
        scored = {**record, "references": record["answers"]}
        score = BENCHMARK.task(dataset.name).score(scored)[dataset.metric]
        assert 100 * score == whole, record
        values.append(score)
        if "extended" in dataset.traits:
            assert BENCHMARK.task(f"{dataset.name}_e").score(scored) == {
                dataset.metric: score, **{BY_LENGTH[place]: score for place in columns}
            }  # fmt: skip
    assert {0.0, 1.0} < set(values)
    assert sum(0 < value < 1 for value in values) > 300
    deep = values[-len(deep_records()) :]
    assert 0.0 in deep
    assert any(not math.isclose(value, 0) for value in deep)


def test_published_scores_have_the_official_means() -> None:
    """GPT-3.5's scores on the English data sets give the averages in the official README."""
    (gpt,) = [
        each for each in BENCHMARK.published() if each.model == "GPT-3.5-Turbo-16k"
    ]
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
