"""LV-Eval's files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helm_longctx.benchmarks.lv_eval.tasks import (
    DATASETS,
    LENGTHS,
    LV_EVAL,
    confusing_facts,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.lv_eval.fabricate import ROWS, build_lv_eval
from tests.support.fabricate_words import write

ROW = {
    "input": "Who?", "context": "### Passage 1\nx", "answers": ["y", "z"], "length": 3, "dataset": "lic_mixup",
    "language": "zh", "answer_keywords": None, "confusing_facts": ["f"],
}  # fmt: skip


def load(root: Path, name: str = "lic_mixup", length: str = "16k") -> list[Example]:
    task = LV_EVAL.task(name)
    return list(task.load(task, Settings(LENGTHS[length]), DataRoot(root, mirror=True)))


def load_rows(root: Path, *rows: dict[str, Any]) -> list[Example]:
    write(root / "lveval/lic_mixup/lic_mixup_16k.jsonl", rows)
    return load(root)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_lv_eval(tmp_path_factory.mktemp("lv_eval"))


@pytest.mark.parametrize("dataset", DATASETS, ids=lambda dataset: dataset.name)
def test_a_question_has_one_id_at_every_length(dataset, root: Path) -> None:
    """A question has the same id in each file, whatever the order, and no two rows of a file share an id."""
    by_length = {
        length: {row.id: row for row in load(root, dataset.name, length)}
        for length in LENGTHS
    }
    first = by_length.pop("16k")
    assert len(first) == ROWS
    for other in by_length.values():
        assert set(other) == set(first)
        assert all(other[id].references == row.references for id, row in first.items())
        assert all(
            other[id].fields["input"] == row.fields["input"]
            for id, row in first.items()
        )


def test_a_row(tmp_path: Path) -> None:
    """Each column goes to its field, and the second row with the same question and answers gets a number."""
    first, second, other = load_rows(tmp_path, ROW, ROW, {**ROW, "answers": ["y"]})
    assert first.fields == {"context": ROW["context"], "input": "Who?"}
    assert first.references == ["y", "z"]
    expected = {
        "question": "Who?",
        "language": "zh",
        "answer_keywords": "",
        "confusing_facts": ["f"],
        "size": 3,
    }
    assert first.record == expected
    assert second.id == f"{first.id}-2"
    assert other.id not in (first.id, second.id)


def test_ids_stay_the_same(tmp_path: Path) -> None:
    """The id is twelve digits of the SHA-256 of question and answers, so that earlier runs keep their questions."""
    chinese = {"input": "谁写了这首诗？", "answers": ["李白"]}
    (example,) = load_rows(tmp_path, {**ROW, **chinese})
    assert example.id == "lic_mixup-7f4bbd5a7a5c"


def test_columns_that_a_data_set_may_lack(tmp_path: Path) -> None:
    """A row without keywords and confusing facts is read."""
    (row,) = load_rows(
        tmp_path,
        {
            k: v
            for k, v in ROW.items()
            if k not in ("answer_keywords", "confusing_facts")
        },
    )
    assert (row.record["answer_keywords"], row.record["confusing_facts"]) == ("", [])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []), ("", []), ([], []), (" ", []), ("x", ["x"]), (["x", "", " ", "y"], ["x", "y"]),
        ("['x', \"y's\"]", ["x", "y's"]), ("[x", ["[x"]), ("[" * 5000, ["[" * 5000]),
    ],
)  # fmt: skip
def test_confusing_facts(value: list[str] | str | None, expected: list[str]) -> None:
    """Confusing facts may be a list, one text, or a list in Python's notation."""
    assert confusing_facts(value) == expected
