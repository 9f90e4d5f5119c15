"""Prompts and scores equal the official code's, which was run on the same data (golden_makers/babilong.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.babilong.tasks import BABILONG
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.task import Settings
from tests.benchmarks.babilong.fabricate import ROWS, build_babilong, score_cases
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
SUFFIX = {"full": "", "no examples": "", "instruction": "_instruction", "bare": "_bare"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_babilong(tmp_path_factory.mktemp("babilong"))


@pytest.mark.parametrize("protocol", SUFFIX)
def test_prompts(protocol: str, root: Path) -> None:
    """Every prompt of every task at every length is the official one, with all parts and with some left out."""
    cases = [case.split(maxsplit=2) for case in GOLDEN["prompts"]]
    for name, length, sent in cases:
        if sent == protocol:
            task = BABILONG.task(name + SUFFIX[protocol])
            settings = Settings(
                parse_length(length), shots=0 if protocol == "no examples" else None
            )
            examples = list(task.load(task, settings, DataRoot(root, mirror=True)))
            assert len(examples) == ROWS
            expected = GOLDEN["prompts"][f"{name} {length} {sent}"]
            assert (
                digest(task.prompt(example).user_turn for example in examples)
                == expected
            ), (
                name,
                length,
            )


def test_scores() -> None:
    """Every odd output of every task has the official score, and both scores are frequent."""
    ours = [
        BABILONG.task(case["task"]).score(
            {
                "prediction": case["output"],
                "references": [case["target"]],
                "question": case["question"],
            }
        )["accuracy"]
        for case in score_cases()
    ]
    assert "".join(str(int(score)) for score in ours) == GOLDEN["scores"]
    assert min(GOLDEN["scores"].count(digit) for digit in "01") > 1000
