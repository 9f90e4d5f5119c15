"""Labels of LoCoMo's judges, and its errata."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.locomo import BENCHMARK, prompts
from helm_longctx.benchmarks.locomo.tasks import (
    JUDGES,
    compute_f1,
    read_label_or_word,
    read_mem0,
    read_zep,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.data.tables import read_table
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.locomo.fabricate import (
    ODD_REPLIES,
    REPLIES,
    UNREADABLE,
    build_locomo,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
TASK = BENCHMARK.task("qa")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(build_locomo(tmp_path_factory.mktemp("locomo")), mirror=True)


@pytest.fixture(scope="module")
def examples(root: DataRoot) -> list[Example]:
    return list(load_examples(TASK, Settings(None), root))


def test_labels_of_mem0() -> None:
    """Each reply that Mem0's code can read has its label, and the others have none."""
    assert [read_mem0(reply) for reply in ODD_REPLIES] == GOLDEN["labels"]
    assert read_mem0(REPLIES[-1]) == 0.0
    assert not [reply for reply in UNREADABLE if read_mem0(reply) is not None]


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ('{"reasoning": "so", "label": "CORRECT"}', 1.0),
        ('{"label": "wrong"}', 0.0),
        ('{"label": "INCORRECT"}', 1.0),
        ('{"label": "CORRECT or WRONG"}', 0.0),
        ("label: WRONG, although CORRECT in part", 0.0),
        ("Label = correct. WRONG would be too strict.", 1.0),
        ("It is not WRONG", 0.0),
        ("It is correct", 1.0),
        ("It is so", None),
        ("", None),
    ],
)
def test_labels_of_the_paper_on_judges(reply: str, label: float | None) -> None:
    """A label in JSON comes first, then the word after label, then any such word; a label with WRONG is wrong."""
    assert read_label_or_word(reply) == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ('{"is_correct": " Correct", "reasoning": "so"}', 1.0),
        ('{"label": "WRONG"}', 0.0),
        ('{"is_correct": true}', None),
        ("CORRECT", None),
    ],
)
def test_labels_of_zep(reply: str, label: float | None) -> None:
    """Zep's label is read from the fields of its structured reply and of its prompt."""
    assert read_zep(reply) == label


def test_the_same_answer_has_five_judges() -> None:
    """All judged entries send the same prompts, leave out adversarial questions, and have a judge's prompt of their own."""
    tasks = [BENCHMARK.task(f"judged_{name}") for name in JUDGES]
    assert {task.template for task in tasks} == {TASK.template}
    record = {"question": "Q", "references": ["A"], "prediction": "P", "category": ""}
    asked = {JUDGES[name].write(record) for name in JUDGES}
    assert len(asked) == len(JUDGES)
    assert all(text.count("A") and "P" in text for text in asked)


def test_judged_questions(root: DataRoot, examples: list[Example]) -> None:
    """The judged tasks have all questions but the adversarial ones; a judge sees the question without the hint on dates."""
    task = BENCHMARK.task("judged_mem0")
    judged = list(load_examples(task, Settings(None), root))
    kept = [item.id for item in examples if item.record["category"] != "adversarial"]
    assert [example.id for example in judged] == kept
    temporal = next(item for item in judged if item.record["category"] == "temporal")
    record = {**temporal.record, "question": temporal.question, "prediction": "P"}
    record["references"] = temporal.references
    assert prompts.DATES not in JUDGES["mem0"].write(record)


def test_known_errors() -> None:
    """The audit's 99 questions are named by kind, and each kind has its rule in all tasks."""
    table = list(read_table("helm_longctx.benchmarks.locomo", "audit.csv"))
    assert len({row["question"] for row in table}) == len(table) == 99
    kinds = {row["rule"] for row in table}
    rules = {(erratum.task, erratum.rule) for erratum in BENCHMARK.errata()}
    assert rules == {(task.name, kind) for task in BENCHMARK.tasks for kind in kinds}


@given(st.text(), st.text(min_size=1), st.sampled_from(["multi_hop", "temporal", ""]))
def test_any_answer_has_a_score(prediction: str, reference: str, kind: str) -> None:
    """The F1 of any text is from 0 to 1, and a text equals itself if it has a word."""
    record = {"prediction": prediction, "references": [reference], "category": kind}
    assert 0 <= compute_f1(record) <= 1
    record = {"prediction": "pony", "references": ["The ponies!"], "category": kind}
    assert compute_f1(record) == 1
