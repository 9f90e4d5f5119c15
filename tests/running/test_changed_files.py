"""A run whose files the user has changed is made again; prompts that stayed the same are not sent again."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.errors import InputError
from helm_longctx.protocol.task import MAIN_METRIC
from tests.any_jsonl.test_any_jsonl import ROW, write_questions
from tests.running.making import CachedClient, make_run, read


def score(run: Path) -> float:
    return next(stat["mean"] for stat in read(run, "stats") if stat["name"]["name"] == MAIN_METRIC)


def test_changed_files(tmp_path: Path) -> None:
    """Another accepted answer changes only the score; a refused run leaves no journal and is not skipped later."""
    folder = tmp_path / "mine"
    folder.mkdir()
    entry = (
        f"any_jsonl:path={folder},length=8k,model=longctx/lexical,model_deployment=test/cached,count_with=longctx/words"
    )

    def make() -> Path:
        return make_run(tmp_path, entry, skip_completed_runs=True)

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
