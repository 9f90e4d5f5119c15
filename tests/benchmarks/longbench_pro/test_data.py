"""LongBench Pro's file is downloaded and read, and questions on one text are a cluster."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.longbench_pro import tasks
from helm_longctx.benchmarks.longbench_pro.tasks import LONGBENCH_PRO, SOURCE, TASKS
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.data_cards import find_origin
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.longbench_pro.fabricate import (
    build_longbench_pro,
    content,
    make_rows,
)
from tests.data.hub_server import Hub, point_at, serve


def load(
    root: Path, task: str = "t1_1", length: int = 8192, **settings: Any
) -> list[Example]:
    """Load the questions of a task."""
    return list(
        load_examples(
            LONGBENCH_PRO.task(task),
            Settings(length, **settings),
            DataRoot(root, mirror=True),
        )
    )


def test_the_file_is_downloaded_at_its_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file is fetched from a server in the hub's form, at the pinned commit; another content is refused."""
    with serve(Hub({SOURCE.repo: {SOURCE.name: content()}})) as hub:
        point_at(monkeypatch, hub.url, tmp_path)
        root = DataRoot(tmp_path / "data", mirror=False)
        with pytest.raises(
            InputError, match=f"expected {SOURCE.sha256}; the file was deleted"
        ):
            ensure([SOURCE], root, "fetch it")
        assert not root.has(SOURCE.path)
        ensure(
            [replace(SOURCE, sha256=hashlib.sha256(content()).hexdigest())],
            root,
            "fetch it",
        )
    assert all(SOURCE.commit in request for request in hub.requests)
    origin = find_origin(SOURCE)
    assert (origin.revision, origin.check) == ("4996884", f"SHA-256 {SOURCE.sha256}")
    assert load(root.path)[0].references == make_rows()[0]["answer"]


def test_the_file_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All tasks share one pass through the file, which is made again after the file has changed."""
    passes: Counter[Path] = Counter()

    class Counted(tasks.QuestionsByTask):
        def __init__(self, path: Path):
            passes[path] += 1
            super().__init__(path)

    monkeypatch.setattr(tasks, "QuestionsByTask", Counted)
    path = build_longbench_pro(tmp_path)
    loaded = [task.name for task in LONGBENCH_PRO.tasks if load(tmp_path, task.name)]
    assert (len(loaded), passes[path]) == (2 * len(TASKS), 1)
    path.write_text(json.dumps(make_rows()[:1]))
    assert len(load(tmp_path)) == 1
    with pytest.raises(InputError, match="no row can be used for t1_2"):
        load(tmp_path, "t1_2")
    assert passes[path] == 2


def test_both_prompts(tmp_path: Path) -> None:
    """The two categories ask the two questions of a row, and `num_samples` takes the first rows."""
    build_longbench_pro(tmp_path)
    (plain, _), (thinking, _) = (
        load(tmp_path, name, 256 * 1024) for name in ("t4_2", "t4_2_thinking")
    )
    assert thinking.fields["question"].startswith(
        f"Think first. {plain.fields['question']}"
    )
    assert len(load(tmp_path, "t4_2", 256 * 1024, num_samples=1)) == 1


def test_questions_on_one_text_are_a_cluster(tmp_path: Path) -> None:
    """Questions on the same text share a group in all tasks, whatever white space is around it."""
    rows = make_rows()[:3]
    for row, context in zip(
        rows, ("same text", "\n same text", "another"), strict=True
    ):
        row["context"] = context
    build_longbench_pro(tmp_path).write_text(json.dumps(rows))
    groups = [load(tmp_path, task)[0].group for task in ("t1_1", "t1_2", "t2_1")]
    assert groups[0] == groups[1] != groups[2]


def test_published_scores() -> None:
    """The published scores are those of the official summaries, and their means over lengths those of the paper."""
    results = LONGBENCH_PRO.published()
    by_model: dict[tuple[str, str], list[float]] = {}
    for result in results:
        by_model.setdefault((result.model, result.category), []).append(
            result.scores[""]
        )
    assert len(results) == 80 * 6
    assert {len(scores) for scores in by_model.values()} == {6}
    means = {key: round(100 * sum(scores) / 6, 2) for key, scores in by_model.items()}
    # Section 5.2 of the paper.
    assert means["Gemini-2.5-Pro (thinking)", ""] == 73.42
    assert means["GPT-5 (thinking)", ""] == 72.61
    assert means["DeepSeek-V3.2 (thinking)", ""] == 67.82
    assert means["Qwen3-4B-Instruct-2507", "thinking"] == 45.68
