"""Tests that a run whose files the user has changed is made again, and unchanged prompts are not sent again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.executor import ExecutionSpec

from helm_longctx.errors import InputError
from helm_longctx.results.comparability import describe
from helm_longctx.results.reading import read_results
from helm_longctx.runner import LongContextRunner
from helm_longctx.runner.machines.shards import OneShard
from helm_longctx.runs.journal import Shard
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import MAIN_METRIC
from tests.runner.making import CachedClient, make_run, make_runner, read, spec_of
from tests.support.questions import ROW, write_questions


def score(run: Path) -> float:
    return next(
        stat["mean"]
        for stat in read(run, "stats")
        if stat["name"]["name"] == MAIN_METRIC
    )


def own_run(tmp_path: Path) -> tuple[Path, Callable[[], Path]]:
    """Return a folder for questions, and a function that makes the run that asks them."""
    folder = tmp_path / "mine"
    folder.mkdir()
    return folder, lambda: make_run(
        tmp_path, entry_of(folder), skip_completed_runs=True
    )


def entry_of(folder: Path) -> str:
    return f"any_jsonl:path={folder},length=8k,model=longctx/lexical,model_deployment=test/cached,count_with=longctx/words"


def test_changed_files(tmp_path: Path) -> None:
    """Another accepted answer changes only the score, and a refused run leaves no journal and is not skipped later."""
    folder, make = own_run(tmp_path)
    write_questions(folder, {**ROW, "answers": ["none of this"]})
    assert score(make()) == 0
    write_questions(folder, {**ROW, "answers": ["pump", "Ada", "e"]})
    run = make()
    assert score(run) == 1
    assert len(CachedClient.asked) == 1
    files = sorted(run.iterdir())
    (folder / "distractors.jsonl").write_text('{"text": "too few"}\n', encoding="utf-8")
    for _ in range(2):
        with pytest.raises(InputError, match="more tokens of distractors are needed"):
            make()
    assert sorted(run.iterdir()) == files


def test_an_old_score(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An old score has a mark while the files have changed, and a refused run does not log it as its own."""
    folder, make = own_run(tmp_path)
    questions = write_questions(folder, ROW) / "questions.jsonl"
    suite = make().parent
    old = questions.read_bytes()

    def caveats() -> list[str]:
        (result,) = read_results(suite, BENCHMARKS)
        return describe(result.caveats)

    assert caveats() == []
    questions.write_text("{", encoding="utf-8")
    caplog.set_level(logging.INFO, "helm")
    caplog.clear()
    with pytest.raises(InputError, match=r"questions\.jsonl:1"):
        make()
    assert "95 % interval" not in caplog.text
    assert caveats() == ["your files have changed since this run (contains)"]
    questions.write_bytes(old)
    assert caveats() == []
    questions.unlink()  # as on a machine that has only the results
    assert caveats() == []


class FirstOfTwo(LongContextRunner):
    """A runner of the first of two shards."""

    def __init__(self, execution_spec: ExecutionSpec, **options: Any):
        super().__init__(execution_spec, **options, strategy=OneShard(Shard(1, 2)))


def test_a_refused_run_leaves_no_folder(tmp_path: Path) -> None:
    """A refused run leaves no folder, of which HELM's summarizer would warn, with either runner."""
    folder, make = own_run(tmp_path)
    (folder / "questions.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"questions\.jsonl:1"):
        make()
    runner = make_runner(tmp_path, FirstOfTwo)
    with pytest.raises(InputError, match=r"questions\.jsonl:1"):
        runner.run_all([spec_of(entry_of(folder))])
    assert list((tmp_path / "benchmark_output/runs/s").glob("any_jsonl*")) == []
