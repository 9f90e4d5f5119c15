"""Prompts and scores equal the official code's, which was run on the same data (golden_makers/longbench_pro.py)."""

from __future__ import annotations

from typing import Any

import pytest

from helm_longctx.benchmarks.longbench_pro import BENCHMARK
from helm_longctx.benchmarks.longbench_pro.tasks import SIZES, TASKS, name_of, normalize
from helm_longctx.data.root import DataRoot
from helm_longctx.helm.scenario import to_instance
from helm_longctx.helm.truncation import CHAT_BUFFER, Truncator
from helm_longctx.tasks.cutting.cutters import RESERVED
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import Settings
from tests.benchmarks.longbench_pro.fabricate import (
    build_longbench_pro,
    fake_similarity,
    make_rows,
    score_cases,
)
from tests.benchmarks.longbench_v2.fabricate import tokenizer
from tests.support.official import digest, read_golden

LIMITS = {
    "bpe 99999": 99_999,
    "bpe 301": 301,
    "metaspace 150": 150,
    "metaspace 151": 151,
}
"""The most tokens of a prompt by the name of the case, which begins with the tokenizer."""


def ask(root: DataRoot, case: str, suffix: str) -> dict[str, tuple[str, bool]]:
    """Return the prompt of each question by id, and whether it was cut, as the adapter makes them."""
    prompts = {}
    loaded = tokenizer(case.split()[0])
    for task in (BENCHMARK.task(name_of(secondary) + suffix) for secondary in TASKS):
        for length in SIZES:
            settings = Settings(length)
            budget = task.output_tokens(settings)
            # The question stays in the prompt only if it fits; here it may be cut, as in the official code.
            truncator = Truncator(
                LIMITS[case] + max(RESERVED, budget + CHAT_BUFFER), lambda: loaded
            )
            for example in load_examples(task, settings, root):
                instance = to_instance(BENCHMARK, task, settings, example, budget)
                sample = Sample.from_json({**instance.extra_data, "question": None})
                fitted = truncator.fit(instance.input.text, sample, budget, "chat")
                prompts[example.id] = fitted.prompt, fitted.cut
    return prompts


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    folder = tmp_path_factory.mktemp("longbench_pro")
    build_longbench_pro(folder)
    return DataRoot(folder, mirror=True)


@pytest.mark.parametrize("suffix", ["", "_thinking"])
@pytest.mark.parametrize("case", LIMITS)
def test_prompts(case: str, suffix: str, root: DataRoot) -> None:
    """Every prompt, whole or cut in its middle, is the official one."""
    prompts = ask(root, case, suffix)
    rows = make_rows()
    assert len(prompts) == len(rows) == len(TASKS) * (len(SIZES) + 1)
    official = read_golden(__file__)["prompts"][f"{case} {suffix.removeprefix('_')}"]
    assert (
        digest(text for row in rows for text in ("user", prompts[row["id"]][0]))
        == official
    )
    assert any(cut for _, cut in prompts.values()) == ("99999" not in case)


def our_score(case: dict[str, Any]) -> float:
    """Return our score of an odd output."""
    answers = case["answers"]
    value = fake_similarity(list(map(normalize, answers)), normalize(case["output"]))
    record = {
        "prediction": case["output"],
        "references": answers,
        "language": case["language"],
        "similarity": {"value": value},
    }
    return BENCHMARK.task(name_of(case["task"])).scores(record)["longctx_score"]


def test_scores() -> None:
    """Every odd output of all 25 tasks has the official score, to the last digit."""
    official = read_golden(__file__)["scores"]
    assert list(map(our_score, score_cases())) == official
    for secondary, metric in TASKS.items():
        own = [
            score
            for case, score in zip(score_cases(), official, strict=True)
            if case["task"] == secondary
        ]
        assert min(own) == 0
        assert max(own) == 1 if metric != "summary" else len(set(own)) > 20
