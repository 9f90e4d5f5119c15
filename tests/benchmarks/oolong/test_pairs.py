"""OOLONG-Pairs: its questions have the paper's words, and its pairs are those of a count of all pairs, one by one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from helm_longctx.benchmarks.oolong.data import (
    LABELLED_TEXT,
    TEXT,
    find_synth_rows,
    score_pairs,
)
from helm_longctx.benchmarks.oolong.prompts import PAIR_CONDITIONS, PAIR_QUESTION
from helm_longctx.benchmarks.oolong.tasks import OOLONG
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings
from tests.benchmarks.oolong.fabricate import build_oolong, synth_rows
from tests.benchmarks.oolong.rules import RULES, find_pairs
from tests.support.fabricate import write

LENGTH = 8192
TASK = OOLONG.task("user_pairs")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    return DataRoot(build_oolong(tmp_path_factory.mktemp("oolong")), mirror=True)


def ask(root: DataRoot, number: int | None = None) -> list[Example]:
    return list(load_examples(TASK, Settings(LENGTH, num_samples=number), root))


def test_the_questions_are_the_papers() -> None:
    """The texts have the hash of the paper's twenty, joined by line breaks."""
    texts = "\n".join(
        PAIR_QUESTION.format(condition=condition) for condition in PAIR_CONDITIONS
    )
    assert len(PAIR_CONDITIONS) == len(RULES) == 20
    assert (
        hashlib.sha256(texts.encode()).hexdigest()
        == "30431158eff86896998f5177344a2c0ae323e39698d7d3556f2198bf2a8efe39"
    )


def test_the_right_pairs(root: DataRoot) -> None:
    """Of each question on both texts, all right pairs score 1, and any missing, wrong or further pair costs its share."""
    examples = ask(root, 40)
    assert [example.id for example in examples[:20]] == [
        f"10000-{number}" for number in range(1, 21)
    ]
    assert len({example.group for example in examples}) == 2
    labelled = {
        row[TEXT]: row[LABELLED_TEXT] for row in synth_rows(LENGTH, "validation")
    }
    sizes = []
    for example, rule in zip(examples, RULES * 2, strict=True):
        assert "|| Label:" not in example.fields["context"]
        pairs = find_pairs(labelled[example.fields["context"]], rule)
        record = {
            "references": example.references,
            "prediction": "\n".join(map(str, pairs)),
        }
        assert score_pairs(record) == {"f1": 1.0, "exact": 1.0}, example.id
        sizes.append(len(pairs))
        if pairs:
            half = pairs[: len(pairs) // 2]
            score = score_pairs(
                {**record, "prediction": f"{half} and (1, 2), (1,2), (2, 1), (7, 7)"}
            )
            assert score["f1"] == pytest.approx(
                2 * len(half) / (len(half) + 2 + len(pairs))
            )
        assert score_pairs({**record, "prediction": "none"})["f1"] == float(not pairs)
    assert len({*sizes}) > 10
    assert len(ask(root)) == 20


def test_the_baseline_pairs_users(root: DataRoot) -> None:
    """The lexical baseline names pairs of users of the text, and answers no other question."""
    assert TASK.baseline
    (example, *_) = ask(root)
    answer = TASK.baseline.kind(TASK.prompt(example).messages)  # type: ignore[operator]
    assert (
        0
        < score_pairs({"references": example.references, "prediction": answer})["f1"]
        < 1
    )
    assert TASK.baseline.kind([{"role": "user", "content": "Which label?"}]) is None  # type: ignore[operator]


def test_other_texts_with_labels_are_refused(tmp_path: Path) -> None:
    """Rows of both files that do not belong together are an error that names the row."""
    rows = [
        row
        for row in synth_rows(LENGTH, "validation")
        if row["dataset"] == "trec_coarse"
    ]
    for column, change in ((TEXT, {}), (LABELLED_TEXT, {"context_window_id": 5})):
        write(
            tmp_path / find_synth_rows(LENGTH, "validation", column).path,
            [rows[0] | change],
        )
    with pytest.raises(
        InputError, match=r"row 1 of .*: the text with labels is another one"
    ):
        ask(DataRoot(tmp_path, mirror=True))
