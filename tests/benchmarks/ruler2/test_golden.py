"""Samples and scores equal the official code's, which was run on the same rows (golden_makers/ruler2.py)."""

from __future__ import annotations

import pytest

from helm_longctx.benchmarks.ruler2 import tasks
from helm_longctx.benchmarks.ruler2.tasks import RULER2
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.benchmarks.ruler.fabricate import counter
from tests.benchmarks.ruler2.fabricate import (
    CASES,
    TASKS,
    build_ruler2,
    letter_cases,
    match_cases,
)
from tests.golden_makers.ruler2 import digest_row
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(build_ruler2(tmp_path_factory.mktemp("ruler2")), mirror=True)


@pytest.mark.parametrize("case", GOLDEN["samples"])
def test_samples(case: str, root: DataRoot) -> None:
    """Prompts and answers are the official ones, in the official order."""
    kind, length, seed, name = case.split()
    task = RULER2.task(name)
    expected = GOLDEN["samples"][case]
    settings = Settings(
        int(length), seed=int(seed), num_samples=len(expected), counter=counter(kind)
    )
    examples = list(load_examples(task, settings, root))
    found = [
        digest_row(task.prompt(example).text("chat"), example.references)
        for example in examples
    ]
    assert found == expected
    assert all(
        task.prompt(example).text("completion") == task.prompt(example).text("chat")
        for example in examples
    )


def test_golden_says_something() -> None:
    """The golden file has all tasks and several tokenizers, and no two samples are equal."""
    assert (
        {case.split()[3] for case in GOLDEN["samples"]}
        == {*TASKS}
        == {task.name for task in RULER2.tasks}
    )
    assert {case.split()[0] for case in GOLDEN["samples"]} == {
        kind for kind, *_ in CASES
    }
    digests = [digest for rows in GOLDEN["samples"].values() for digest in rows]
    assert len(digests) == len(set(digests)) > 50


def test_matches() -> None:
    """The three ways to match give every odd output the official score, among them 0, 1 and many between."""
    ours = [
        [
            match(*case)
            for match in (tasks.match_all, tasks.match_part, tasks.match_last)
        ]
        for case in match_cases()
    ]
    assert ours == GOLDEN["matches"]
    scores = [score for row in ours for score in row]
    assert min(scores) == 0
    assert scores.count(1) > 100
    assert sum(0 < score < 1 for score in scores) > 100


def test_letters() -> None:
    """The letter that is read from every odd output is the official one."""
    ours = [tasks.read_letter(text) for text in letter_cases()]
    assert ours == GOLDEN["letters"]
    assert {"A", "B", "C", "D", None} <= {*ours}
