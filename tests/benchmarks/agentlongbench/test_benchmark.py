"""Repaired scores and odd answers of AgentLongBench."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.agentlongbench.tasks import (
    AGENTLONGBENCH,
    FOLDERS,
    KINDS,
    SETTINGS,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.agentlongbench.fabricate import build_agentlongbench
from tests.benchmarks.agentlongbench.official import find_task

SHORTEST = Settings(min(FOLDERS))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    folder = tmp_path_factory.mktemp("agentlongbench")
    return DataRoot(build_agentlongbench(folder), mirror=True)


def load(root: DataRoot, setting: str, kind: str) -> list[Example]:
    """Load the questions of the shortest file."""
    return list(load_examples(find_task(setting, kind), SHORTEST, root))


@pytest.mark.parametrize(
    ("kind", "references", "right", "wrong"),
    [
        ("count_frequency_env", ["12"], "12.0", "13"),
        ("find_duplicates_tool", ["True"], "both do", "neither"),
        ("find_target_offsets_tool", ["Mr. Mime", "Abra"], "mrmime and abra", "Abra"),
        ("intersection", ["Ho-Oh"], "hooh", "Mew"),
    ],
)
def test_references_stand_for_the_row(
    kind: str, references: list[str], right: str, wrong: str
) -> None:
    """A record without the answer of the official row is compared with its references."""
    task = find_task("ki-c", kind)
    for text, score in ((right, 1.0), (wrong, 0.0)):
        record = {"prediction": f"<answer>{text}</answer>", "references": references}
        assert task.score(record) == {"accuracy": score}


@pytest.mark.parametrize(
    ("prediction", "published", "repaired"),
    [
        ("0639 and 0162", 0.0, 1.0),
        ("['0639', '0162']", 1.0, 1.0),
        ("1. 0639\n2. 0162", 1.0, 1.0),
        ("0639", 0.0, 0.5),
        ("0162 and 0639", 0.5, 0.0),
    ],
)
def test_masked_names_that_are_numbers(
    prediction: str, published: float, repaired: float
) -> None:
    """The official scorer drops the first name in the form that the prompt demands; the repaired one reads both."""
    task = find_task("kf-c", "find_target_offsets_tool")
    record = {
        "prediction": f"<answer>{prediction}</answer>",
        "references": ["0639", "0162"],
    }
    assert task.scores(record)["accuracy"] == published
    assert task.scores({**record, "scorer": "published"})["accuracy"] == published
    assert task.scores({**record, "scorer": "repaired"})["accuracy"] == repaired
    assert not find_task("ki-c", "find_target_offsets_tool").scorers


@pytest.mark.parametrize(
    ("kind", "prediction"),
    [
        ("count_frequency_env", f"<answer>{'9' * 400}</answer>"),
        ("find_duplicates_tool", f"<answer>{'9' * 400}</answer>"),
        ("find_target_offsets_tool", f"<answer>{'[' * 500}{']' * 500}</answer>"),
        ("intersection", "<answer>[{[]: 1}]</answer>"),
    ],
)
def test_what_stops_the_official_code_is_wrong(kind: str, prediction: str) -> None:
    """An answer for which the official code ends in an error scores 0 in verbose logs."""
    task = find_task("kf-v", kind)
    record = {"prediction": prediction, "references": ["1", "2"]}
    assert [*task.score(record).values()] == [0.0]


@pytest.mark.parametrize("answer", [float("inf"), float("nan"), None, "none", []])
def test_a_right_answer_that_is_no_number_gives_no_score(answer: Any) -> None:
    """A question whose right answer cannot be read is not counted."""
    task = find_task("ki-c", "count_frequency_env")
    record = {"prediction": "<answer>3</answer>", "references": [], "answer": answer}
    assert task.score(record) == {}


@given(st.sampled_from([*KINDS]), st.sampled_from([*SETTINGS]), st.text(max_size=60))
def test_any_answer_has_a_score(kind: str, setting: str, text: str) -> None:
    """Every text between the tags gets a score from 0 to 1, for each kind of questions on each kind of logs."""
    task = find_task(setting, kind)
    record = {"prediction": f"<answer>{text}</answer>", "references": ["1", "2"]}
    (value,) = task.score(record).values()
    assert 0 <= value <= 1


@pytest.mark.parametrize("piece", ["<answer>", "[", "and ", "1 ", ", ", "not"])
def test_long_answers_take_no_time(piece: str) -> None:
    """An answer of half a million characters, also of tags that do not close, is scored within seconds."""
    text = piece * (500_000 // len(piece))
    for kind in ("count_frequency_env", "find_target_offsets_tool", "intersection"):
        for prediction in (text, f"<answer>{text}</answer>"):
            start = time.process_time()
            find_task("kf-v", kind).score(
                {"prediction": prediction, "references": ["3", "4"]}
            )
            assert time.process_time() - start < 5


def test_explained_questions(root: DataRoot) -> None:
    """The explained tasks ask the same questions with a sentence more; the other kinds have none."""
    (plain, *_) = load(root, "kf-c", "find_duplicates_tool")
    (explained, *_) = load(root, "kf-c", "find_duplicates_tool_explained")
    assert explained.messages[:-1] == plain.messages[:-1]
    question = plain.messages[-1]["content"]
    assert explained.messages[-1]["content"].startswith(f"{question} Here, the tool")
    explained_names = []
    for task in AGENTLONGBENCH.tasks:
        if task.name.endswith("_explained"):
            explained_names.append(task.name)
    assert len(explained_names) == 3 * len(SETTINGS)


def test_depth_is_that_of_the_round(root: DataRoot) -> None:
    """A question on one round has the place of its message as depth, and one on two rounds has none."""
    (counted, *_) = load(root, "ki-v", "count_frequency_tool")
    (compared, *_) = load(root, "ki-v", "find_duplicates_tool")
    assert counted.depth is not None
    assert 0.3 < counted.depth < 0.37
    assert compared.depth is None
