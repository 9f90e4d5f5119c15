"""The samples equal the official scripts' samples from the same texts and tokenizers (golden_makers/ruler.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from helm_longctx.benchmarks.ruler import BENCHMARK
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Settings
from tests.benchmarks.ruler.fabricate import (
    CASES,
    MORE_NEEDLES,
    TASKS,
    build_sources,
    counter,
)
from tests.golden_makers.ruler import digest_row
from tests.support import punkt

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataRoot]:
    folder = tmp_path_factory.mktemp("ruler")
    with punkt.installed(folder / "nltk"):
        yield DataRoot(build_sources(folder), mirror=True)


@pytest.mark.parametrize("case", GOLDEN)
def test_samples(case: str, root: DataRoot) -> None:
    """Prompts, answer prefixes and answers are the official ones, in the official order."""
    kind, length, seed, name = case.split()
    task = BENCHMARK.task(name)
    settings = Settings(
        length=int(length),
        seed=int(seed),
        num_samples=len(GOLDEN[case]),
        counter=counter(kind),
    )
    found = []
    for example in task.load(task, settings, root):
        prompt = task.prompt(example)
        found.append(
            digest_row(prompt.text("chat"), prompt.answer_prefix, example.references)
        )
        assert prompt.text("completion") == prompt.text("chat") + prompt.answer_prefix
    assert found == GOLDEN[case]


def test_golden_says_something() -> None:
    """The golden file has all tasks and several tokenizers, and no two samples are equal."""
    assert (
        {case.split()[3] for case in GOLDEN}
        == {*TASKS, *MORE_NEEDLES}
        == {task.name for task in BENCHMARK.tasks}
    )
    assert {case.split()[0] for case in GOLDEN} == {kind for kind, *_ in CASES}
    digests = [digest for rows in GOLDEN.values() for digest in rows]
    assert len(digests) == len(set(digests)) > 50
