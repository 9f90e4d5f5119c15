"""Samples equal those that the official scripts generated from the same texts and tokenizers (make_golden.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from helm_longctx.benchmarks.ruler import BENCHMARK
from helm_longctx.protocol.counting import CountTokens, make_counter
from helm_longctx.protocol.task import Settings
from helm_longctx.sources.root import DataRoot
from tests import punkt
from tests.ruler.fabricate import CASES, TASKS, build_sources, tokenizer
from tests.ruler.make_golden import digest_row

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataRoot]:
    folder = tmp_path_factory.mktemp("ruler")
    with punkt.installed(folder / "nltk"):
        yield DataRoot(build_sources(folder), mirror=True)


@cache
def counter(kind: str) -> CountTokens:
    return make_counter(tokenizer(kind))


@pytest.mark.parametrize("case", GOLDEN)
def test_samples(case: str, root: DataRoot) -> None:
    """Prompts, answer prefixes and answers are the official ones, in the official order."""
    kind, length, seed, name = case.split()
    task = BENCHMARK.task(name)
    settings = Settings(length=int(length), seed=int(seed), num_samples=len(GOLDEN[case]), counter=counter(kind))
    found = []
    for example in task.load(task, settings, root):
        prompt = task.prompt(example)
        found.append(digest_row(prompt.text("chat"), prompt.answer_prefix, example.references))
        assert prompt.text("completion") == prompt.text("chat") + prompt.answer_prefix
    assert found == GOLDEN[case]


def test_golden_says_something() -> None:
    """All tasks are there, with several tokenizers, and no two samples are equal."""
    assert {case.split()[3] for case in GOLDEN} == set(TASKS) == {task.name for task in BENCHMARK.tasks}
    assert {case.split()[0] for case in GOLDEN} == {kind for kind, *_ in CASES}
    digests = [digest for rows in GOLDEN.values() for digest in rows]
    assert len(digests) == len(set(digests)) > 50
