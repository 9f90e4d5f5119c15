"""Loads many-shot classification: 500 test texts and their demonstrations, both balanced over the labels.

Source: princeton-nlp/HELMET at 4526dfb (since its change of 2025-02-25), data.py load_icl.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.benchmarks.helmet.prompts import ICL_DEMO
from helm_longctx.data.hub import label_names
from helm_longctx.tasks import (
    DataRoot,
    Example,
    HubDataset,
    InputError,
    JsonLines,
    Settings,
    Task,
)
from helm_longctx.tasks.sampling import shuffle_order, text_seed


@dataclass(frozen=True)
class LabelledTexts:
    """Texts, and the number of each text's label."""

    texts: Sequence[str]
    labels: Sequence[int]

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, numbers: Sequence[int]) -> LabelledTexts:
        """Select the rows with these numbers, in this order."""
        return LabelledTexts(
            [self.texts[i] for i in numbers], [self.labels[i] for i in numbers]
        )


SplitTexts = Callable[
    [dict[str, LabelledTexts], int], tuple[LabelledTexts, LabelledTexts]
]
"""(splits by name, seed) → training and test texts."""


def named_splits(train: str, test: str) -> SplitTexts:
    """Use two of the data set's own splits for training and test."""
    return lambda splits, seed: (splits[train], splits[test])


def split_tenth(
    splits: dict[str, LabelledTexts],
    seed: int,
) -> tuple[LabelledTexts, LabelledTexts]:
    """Split as `Dataset.train_test_split(test_size=0.1)`: the first tenth of a permutation is the test split."""
    (texts,) = splits.values()
    order = shuffle_order(len(texts), seed)
    # `train_test_split` rounds the test split up.
    tests = math.ceil(len(texts) * 0.1)
    return texts.select(order[tests:]), texts.select(order[:tests])


def load_icl(
    task: Task,
    settings: Settings,
    root: DataRoot,
    label: str,
    num_labels: int,
    split: SplitTexts,
) -> Iterator[Example]:
    """Load examples whose context is a list of labelled texts. Labels get new numbers for each test text.

    Args:
        num_labels: number of labels, including those that no row has.
    """
    (source,) = task.sources(settings.length)
    assert isinstance(source, HubDataset)
    folder = root / source.folder
    splits = {}
    for name in source.splits:
        splits[name] = _read_texts(folder / f"{name}.jsonl", label, num_labels)
    if settings.labels == "natural_label":
        names = label_names(folder, label)
    else:
        names = None
    if names is not None and len(names) < num_labels:
        raise InputError(
            f"{folder}/features.json: {len(names)} names of column {label!r}, expected {num_labels}"
        )
    train, test = split(splits, settings.seed)
    sample = task.sample(settings)
    # A test split of exactly this size, such as TREC's with 500 rows, stays as it is (HELMET data.py:414).
    if len(test) > sample:
        test = test.select(shuffle_order(len(test), settings.seed))
        # The sample has its own generator with the same seed (HELMET data.py:389).
        test = test.select(
            Balance(test.labels).sample(sample, random.Random(settings.seed))
        )
    if settings.shots is None:
        shots = task.sizes[settings.level]
    else:
        shots = settings.shots
    balance = Balance(train.labels)
    demos = []
    for text in train.texts:
        demos.append(ICL_DEMO.format(text=text))
    for position, (text, number) in enumerate(
        zip(test.texts, test.labels, strict=True)
    ):
        local_seed = text_seed(text, settings.seed)
        rows = balance.sample(shots, random.Random(local_seed))
        # The numbers are drawn by another generator than the demonstrations, with the same seed (HELMET data.py:441).
        label_texts = names or [str(number) for number in range(num_labels)]
        if not names:
            random.Random(local_seed).shuffle(label_texts)
        context = "\n\n".join(
            [demos[row] + label_texts[train.labels[row]] for row in rows]
        )
        fields = {"context": context, "question": text}
        yield Example(
            id=f"{task.name}-{position}",
            fields=fields,
            references=[label_texts[number]],
            source="hub",
        )


class Balance:
    """Draws rows in rounds of one row per label, so that all labels have the same number of rows.

    The tables are built once, whereas the official code builds them for every example.
    """

    def __init__(self, labels: Sequence[int]):
        # Labels keep the order of their first appearance, because the draws depend on it.
        self._rows: dict[int, list[int]] = {}
        for row, label in enumerate(labels):
            self._rows.setdefault(label, []).append(row)

    def sample(self, count: int, rng: random.Random) -> list[int]:
        """Draw `count` row numbers, the same as the official code with this state of the generator."""
        if not self._rows:
            return []
        rounds = math.ceil(count / len(self._rows))
        # The rows of all labels are drawn before the first round is shuffled (HELMET data.py:399 to 410).
        columns = []
        for rows in self._rows.values():
            # As in the official code, a label with exactly `rounds` rows first draws 0 rows and then all. The number of
            # draws changes those that follow.
            numbers = rng.sample(rows, rounds % len(rows))
            while len(numbers) < rounds:
                numbers += rng.sample(rows, min(rounds - len(numbers), len(rows)))
            columns.append(numbers)
        ordered: list[int] = []
        for index in range(rounds):
            of_round = [numbers[index] for numbers in columns]
            rng.shuffle(of_round)
            ordered += of_round
        # The last round may be cut, so some labels can have one row less.
        return ordered[:count]


def _read_texts(path: Path, label: str, num_labels: int) -> LabelledTexts:
    rows = JsonLines(path, {"text": str, label: int})
    texts = []
    labels = []
    for row in rows:
        if not 0 <= row[label] < num_labels:
            raise InputError(
                f"{row}: label {row[label]} of column {label!r} is not one of 0 to {num_labels - 1}"
            )
        texts.append(row["text"])
        labels.append(row[label])
    return LabelledTexts(texts, labels)
