"""Requests, the judge's requests and scores equal the official code's on the same rows (golden_makers/beam.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.beam import BENCHMARK
from helm_longctx.benchmarks.beam.judge import RubricAnnotator
from helm_longctx.benchmarks.beam.tasks import (
    CHATS,
    ORDERING,
    PROMPTS,
    align,
    find_source,
    judge_prompts,
    read_item,
    read_texts,
    score_order,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, ShapeError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.beam.fabricate import (
    JUDGE,
    QUESTION,
    SAME,
    SYSTEM,
    build_beam,
    make_answer,
    reply,
    rows,
)
from tests.support.fabricate_words import write
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)
METRICS = ("judge_score", "event_f1", "event_score", "rubric_score")


class Asked(dict[str, str]):
    """Replies that remember in which order they were read."""

    def __init__(self, replies: dict[str, str]):
        super().__init__(replies)
        self.names: list[str] = []

    def __getitem__(self, name: str) -> str:
        self.names.append(name)
        return super().__getitem__(name)


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


@pytest.mark.parametrize("length", CHATS)
def test_requests_and_scores(length: int, root: DataRoot) -> None:
    """What models and the judge are asked, and the scores of odd answers and replies, are the official ones."""
    task = BENCHMARK.task("questions")
    golden = GOLDEN[str(length)]
    examples = read_examples(root, length)
    assert (
        digest(json.dumps(task.prompt(example).messages) for example in examples)
        == golden["prompts"]
    )
    items = list[str]()
    pairs = list[str]()
    for number, (example, official) in enumerate(
        zip(examples, golden["scores"], strict=True)
    ):
        rubric = example.record["rubric"]
        is_order = example.record["ability"] == ORDERING
        record = {
            **example.record,
            "prediction": make_answer(number, rubric),
            "references": [],
        }
        prompts = judge_prompts(record)
        replies = {part: reply(prompt) for part, prompt in prompts.items()}
        if is_order:
            asked = Asked(replies)
            align(rubric, record["prediction"], asked)
            pairs += [prompts[name] for name in asked.names]
        scores = task.scores({**record, "judge": replies})
        if official is None:
            assert "judge_score" not in scores
            continue
        items += [prompt for part, prompt in prompts.items() if part.startswith("item")]
        assert [
            scores.get(name) for name in (METRICS if is_order else METRICS[:1])
        ] == official
        assert scores.get(f"judge_score_{record['ability']}") == scores.get(
            "judge_score"
        )
    assert (digest(items), digest(pairs)) == (golden["items"], golden["pairs"])


def test_golden_cases_say_something() -> None:
    """Scores, parts of scores and replies without a score occur."""
    scores = [score for golden in GOLDEN.values() for score in golden["scores"]]
    assert len(scores) == 1100
    assert None in scores
    assert {0.0, 0.5, 1.0} <= {score[0] for score in scores if score}


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
    assert len(requests) == 3 * size
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


def test_bad_rows_are_named(tmp_path: Path) -> None:
    """A row without questions by ability, or with another form of chat, is refused."""
    length = 128 * 1024
    for change in (
        {"probing_questions": "[1]"},
        {"chat": {"turns": 1}},
        {"probing_questions": "{'x': [{}]}"},
    ):
        build_beam(tmp_path)
        write(tmp_path / find_source(length).paths[0], [{**rows(length)[0], **change}])
        with pytest.raises((ShapeError, InputError), match=r"100K\.jsonl"):
            read_examples(DataRoot(tmp_path, mirror=True), length)
