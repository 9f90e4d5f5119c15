"""Official texts, marks and judges of BEAM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.beam import BENCHMARK
from helm_longctx.benchmarks.beam.judge import RubricAnnotator
from helm_longctx.benchmarks.beam.tasks import (
    ORDERING,
    PROMPTS,
    judge_prompts,
    read_item,
    read_texts,
    score_order,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.beam.fabricate import (
    JUDGE,
    QUESTION,
    SAME,
    SYSTEM,
    build_beam,
    rows,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    """Return a folder with the fabricated rows and stand-ins of the official files."""
    return DataRoot(build_beam(tmp_path_factory.mktemp("beam")), mirror=True)


def read_examples(
    root: DataRoot, length: int, task: str = "questions"
) -> list[Example]:
    """Return all examples of a length, with the whole chats, which the official code was given."""
    settings = Settings(length, chats="full")
    return list(load_examples(BENCHMARK.task(task), settings, root))


def test_the_official_texts_are_found(root: DataRoot) -> None:
    """Texts are read by the functions and names that have them; another file is refused."""
    assert read_texts(root) == (QUESTION, JUDGE, SYSTEM, SAME)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A file without the text is named, with the command that gets it."""
    build_beam(tmp_path)
    (tmp_path / PROMPTS.path).write_text("unified = 1", encoding="utf-8")
    with pytest.raises(InputError, match="helm-longctx fetch beam"):
        read_texts(DataRoot(tmp_path, mirror=True))


def test_text_has_parts_with_dates(root: DataRoot) -> None:
    """In the text form a context is shared by the questions about a chat, and each batch starts a part with its date."""
    examples = read_examples(root, 128 * 1024, "text_questions")
    (chat,) = [row["chat"] for row in rows(128 * 1024)[:1]]
    first = examples[0]
    assert (
        len({example.fields["context"] for example in examples[:20]})
        == 1
        < len({example.group for example in examples})
    )
    assert [known["date"] for _, known in first.marks] == [
        batch[0]["time_anchor"] for batch in chat
    ]
    for (start, _), batch in zip(first.marks, chat, strict=True):
        assert first.fields["context"].startswith(
            f"user: {batch[0]['content']}\n\n", start
        )


def test_events_are_asked_with_a_system_message(root: DataRoot) -> None:
    """The judge sees the system message only with pairs of events, and any reply about a pair is read."""
    example = next(
        example
        for example in read_examples(root, 128 * 1024)
        if example.record["ability"] == ORDERING
    )
    record = {**example.record, "prediction": "a\nb\na", "question": "?"}
    annotator = RubricAnnotator(judge="auto", auto_client=None)
    requests = annotator.questions("questions", record)
    size = len(record["rubric"])
    items = [f"item {number}" for number in range(1, size + 1)]
    pairs = [f"line {line}, {item}" for line in (1, 2) for item in items]
    assert list(requests) == [*items, *pairs]
    assert [request.system for request in requests.values()] == [""] * size + [
        SYSTEM
    ] * 2 * size
    assert [requests["item 1"].parse("?"), requests["line 1, item 1"].parse("?")] == [
        None,
        {"same": 0.0},
    ]
    assert requests["item 1"].parse('{"score": 0.5}') == {"score": 0.5}


def test_orders_without_variance_have_no_tau() -> None:
    """Kendall's tau of a single event is not defined, and the official mean would be NaN."""
    assert score_order(["a"], ["a"]) == {"event_f1": 1.0}
    assert score_order(["a", "b"], ["b", "a"])["judge_score"] == 0.0


def test_missing_replies_are_no_score(root: DataRoot) -> None:
    """Without a judge, or with a reply missing, there is no score."""
    task = BENCHMARK.task("questions")
    record: dict[str, Any] = {
        "prediction": "x",
        "references": [],
        "rubric": ["a", "b"],
        "ability": "abstention",
    }
    assert task.scores(record) == {}
    assert (
        task.scores({**record, "judge": {"item 1": '{"score": 1}', "item 2": None}})
        == {}
    )
    assert read_item('{"score": NaN}') is None
    with pytest.raises(InputError, match="helm-longctx fetch beam"):
        judge_prompts(record)
