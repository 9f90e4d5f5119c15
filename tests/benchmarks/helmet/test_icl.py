"""Many-shot classification has the right demonstrations and labels, and malformed files are refused."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.helmet.data.icl import Balance
from helm_longctx.benchmarks.helmet.tasks import HELMET, ICL
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Example


def examples(arguments: str, root: DataRoot) -> list[Example]:
    entry = parse_entry(BENCHMARKS, f"helmet_icl:{arguments}")
    (task,) = entry.tasks
    return list(task.load(task, entry.settings, root))


def demonstrations(example: Example) -> list[tuple[str, str]]:
    pairs = (
        block.rsplit("\nlabel: ", 1)
        for block in example.fields["context"].split("\n\n")
    )
    return [(text, label) for text, label in pairs]


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=60),
    st.integers(0, 200),
    st.integers(),
)
def test_balance(labels: list[int], count: int, seed: int) -> None:
    """Each round has every label once, so counts differ by at most one, and the number of rows is exact."""
    rows = Balance(labels).sample(count, random.Random(seed))
    assert len(rows) == count
    size = len(set(labels))
    drawn = [labels[row] for row in rows]
    for start in range(0, count, size):
        part = drawn[start : start + size]
        assert len(set(part)) == len(part)


def test_shots_and_labels(mirror: DataRoot) -> None:
    """The context has the length's number of balanced demonstrations, and their labels are renumbered for each test
    text."""
    made = examples("task=banking77,length=8k,num_samples=20", mirror)
    numbering = set()
    for example in made:
        shots = demonstrations(example)
        assert len(shots) == 360
        counts = Counter(label for _, label in shots)
        assert max(counts.values()) - min(counts.values()) <= 1
        assert set(counts) <= {str(n) for n in range(77)}
        numbering.add(tuple(sorted(counts)))
    assert len(numbering) > 1
    assert len({example.references[0] for example in made}) > 5


def test_shots_argument_and_lengths_beyond(mirror: DataRoot) -> None:
    """`shots` overrides the length's number, and above 128k the numbers grow in proportion."""
    assert (
        len(
            demonstrations(
                examples("task=nlu,length=8k,shots=7,num_samples=1", mirror)[0]
            )
        )
        == 7
    )
    assert (
        len(
            demonstrations(
                examples("task=trec_fine,length=256k,num_samples=1", mirror)[0]
            )
        )
        == 12800
    )
    assert (
        len(
            demonstrations(
                examples("task=trec_coarse,length=1m,num_samples=1", mirror)[0]
            )
        )
        == 52800
    )


def test_natural_labels(mirror: DataRoot) -> None:
    """`labels=natural_label` shows the names of the labels, which are the same for every text."""
    for example in examples(
        "task=trec_coarse,length=4k,num_samples=5,labels=natural_label", mirror
    ):
        assert {label for _, label in demonstrations(example)} <= {
            f"coarse_label {n}" for n in range(6)
        }
        assert example.references[0].startswith("coarse_label ")


def test_seed_and_samples(mirror: DataRoot) -> None:
    """Another seed gives other demonstrations; a data set with no more rows than the sample keeps its order."""
    one, two = (
        examples(f"task=trec_fine,length=4k,seed={seed}", mirror) for seed in (42, 43)
    )
    assert len(one) == len(two) == 500
    assert [e.fields["question"] for e in one] == [e.fields["question"] for e in two]
    assert one[0].fields["context"] != two[0].fields["context"]


def broken(mirror: DataRoot, tmp_path: Path, name: str, text: str) -> DataRoot:
    """Return a mirror in which one file of BANKING77 is changed."""
    folder = tmp_path / "hub/PolyAI__banking77"
    shutil.copytree(mirror / "hub/PolyAI__banking77", folder)
    (folder / name).write_text(text)
    return DataRoot(tmp_path, mirror=True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("train.jsonl", "", "train.jsonl: the file has no rows"),
        (
            "train.jsonl",
            '{"text": "a"}',
            "train.jsonl:1: column 'label' must be int, found nothing",
        ),
        (
            "train.jsonl",
            '{"text": "a", "label": "b"}',
            "column 'label' must be int, found str",
        ),
        (
            "train.jsonl",
            '{"text": "a", "label": 77}',
            "label 77 of column 'label' is not one of 0 to 76",
        ),
        ("test.jsonl", '{"text": "a", "label": -1}', "label -1 of column 'label'"),
        ("test.jsonl", '{"text": "a", "label": 1', "test.jsonl:1: not a JSON object"),
        (
            "features.json",
            '{"label": ["one"]}',
            "1 names of column 'label', expected 77",
        ),
        ("features.json", "[]", "has no names for column 'label'"),
    ],
)
def test_bad_data(
    mirror: DataRoot, tmp_path: Path, name: str, text: str, message: str
) -> None:
    """A malformed file ends in one line that names the file and says what to do."""
    with pytest.raises(InputError) as caught:
        examples(
            "task=banking77,length=4k,labels=natural_label",
            broken(mirror, tmp_path, name, text),
        )
    assert message in str(caught.value)


def test_every_set_of_the_category() -> None:
    """The category has HELMET's five data sets and its number of samples."""
    assert [task.name for task in ICL] == [
        "trec_coarse",
        "trec_fine",
        "banking77",
        "clinic150",
        "nlu",
    ]
    assert {task.num_samples for task in ICL} == {500}
    assert HELMET.task("clinic150").sizes[131072] == 7050
