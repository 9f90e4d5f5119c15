"""Samples and scores equal the official scripts', which were run on the same files (golden_makers/oneruler.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.oneruler.tasks import LANGUAGES, LISTS, NEEDLES, ONERULER
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.counting import make_counter
from helm_longctx.tasks.task import Settings
from tests.benchmarks.oneruler.fabricate import build_oneruler, score_cases, tokenizer
from tests.golden_makers.oneruler import SAMPLES, digest_row
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
LISTED = ("en", "de", "ko", "zh", "hi")
"""The languages whose lists of words are generated here. They take long, and golden.json has those of all languages."""

COUNTER = make_counter(tokenizer())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_oneruler(tmp_path_factory.mktemp("oneruler"))


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.code)
def test_samples(language, root: Path) -> None:
    """The prompts and answers of all tasks are the official ones: needles in each language, and lists in some."""
    for name in (*NEEDLES, *(LISTS if language.code in LISTED else ())):
        task = ONERULER.task(f"{language.code}_{name}".removeprefix("en_"))
        settings = Settings(8192, num_samples=SAMPLES, counter=COUNTER)
        examples = task.load(task, settings, DataRoot(root, mirror=True))
        found = [
            digest_row(example.messages[0]["content"], example.references)
            for example in examples
        ]
        assert found == GOLDEN["samples"][f"{language.code} {name}"], name


def test_scores() -> None:
    """Both metrics of every output are the official ones, and all four pairs of scores that are possible occur."""
    ours = []
    for kind, code, expected, output in score_cases():
        scores = ONERULER.task(f"{code}_{kind}".removeprefix("en_")).score(
            {"prediction": output, "references": expected}
        )
        ours.append(f"{scores['accuracy']:.0f}{scores['accuracy_in_answer']:.0f}")
    assert " ".join(ours) == GOLDEN["scores"]
    assert set(ours) == {"00", "01", "11"}
