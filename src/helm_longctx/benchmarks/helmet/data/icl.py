"""Many-shot classification: 500 test texts balanced over labels, balanced demonstrations for each.

Source: princeton-nlp/HELMET at 4526dfb (since its change of 2025-02-25), data.py load_icl.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.benchmarks.helmet.prompts import ICL_DEMO
from helm_longctx.errors import InputError
from helm_longctx.protocol.sampling import shuffled, text_seed
from helm_longctx.protocol.task import Example, Settings, Task
from helm_longctx.sources.hub import HubDataset, label_names
from helm_longctx.sources.jsonl import JsonLines
from helm_longctx.sources.root import DataRoot


@dataclass(frozen=True)
class Texts:
    """Texts and the number of each one's label."""

    texts: Sequence[str]
    labels: Sequence[int]

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, numbers: Sequence[int]) -> Texts:
        """Rows by number, in that order."""
        return Texts([self.texts[i] for i in numbers], [self.labels[i] for i in numbers])


Split = Callable[[dict[str, Texts], int], tuple[Texts, Texts]]
"""(splits, seed) → training and test texts."""


def split_named(train: str, test: str) -> Split:
    """Two of the data set's own splits."""
    return lambda splits, seed: (splits[train], splits[test])


def split_tenth(splits: dict[str, Texts], seed: int) -> tuple[Texts, Texts]:
    """One split, cut as `Dataset.train_test_split(test_size=0.1)` cuts it: the first tenth of a permutation is test."""
    (texts,) = splits.values()
    order = shuffled(len(texts), seed)
    tests = math.ceil(len(texts) * 0.1)
    return texts.select(order[tests:]), texts.select(order[:tests])


def load_icl(
    task: Task, settings: Settings, root: DataRoot, label: str, num_labels: int, split: Split
) -> Iterator[Example]:
    """Examples whose context is labelled texts; labels are renumbered, differently for each test text.

    Args:
        label: the label's column.
        num_labels: labels of the data set, also those that no row has.

    Raises:
        InputError: data is missing or malformed.
    """
    (source,) = task.sources(settings.length)
    assert isinstance(source, HubDataset)
    folder = root / source.folder
    splits = {name: _read(folder / f"{name}.jsonl", label, num_labels) for name in source.splits}
    names = label_names(folder, label) if settings.labels == "natural_label" else None
    if names is not None and len(names) < num_labels:
        raise InputError(f"{folder}/features.json: {len(names)} names of column {label!r}, expected {num_labels}")
    train, test = split(splits, settings.seed)
    sample = task.sample(settings)
    if len(test) > sample:
        test = test.select(shuffled(len(test), settings.seed))
        test = test.select(Balance(test.labels).sample(sample, random.Random(settings.seed)))
    shots = task.sizes[settings.level] if settings.shots is None else settings.shots
    return _examples(task, train, test, shots, settings.seed, names or num_labels)


def _examples(
    task: Task, train: Texts, test: Texts, shots: int, seed: int, names: list[str] | int
) -> Iterator[Example]:
    balance = Balance(train.labels)
    demos = [ICL_DEMO.format(text=text) for text in train.texts]
    for position, (text, label) in enumerate(zip(test.texts, test.labels, strict=True)):
        local_seed = text_seed(text, seed)
        chosen = balance.sample(shots, random.Random(local_seed))
        named = names if isinstance(names, list) else _renumbered(names, local_seed)
        context = "\n\n".join([demos[i] + named[train.labels[i]] for i in chosen])
        yield Example(f"{task.name}-{position}", {"context": context, "question": text}, [named[label]], "hub")


def _renumbered(num_labels: int, seed: int) -> list[str]:
    numbers = list(range(num_labels))
    random.Random(seed).shuffle(numbers)
    return [str(number) for number in numbers]


class Balance:
    """Draws rows so that every label has the same number, in rounds of one row of each label.

    The tables are built once; the official code builds them for every example.
    """

    def __init__(self, labels: Sequence[int]):
        # In order of first appearance, which the draws depend on.
        self._rows: dict[int, list[int]] = {}
        for row, label in enumerate(labels):
            self._rows.setdefault(label, []).append(row)

    def sample(self, count: int, rng: random.Random) -> list[int]:
        """`count` row numbers, in the official order for the generator's state."""
        if not self._rows:
            return []
        rounds = math.ceil(count / len(self._rows))
        columns = [self._draw(rows, rounds, rng) for rows in self._rows.values()]
        ordered: list[int] = []
        for of_round in map(list, zip(*columns, strict=True)):
            rng.shuffle(of_round)
            ordered += of_round
        return ordered[:count]

    @staticmethod
    def _draw(rows: list[int], rounds: int, rng: random.Random) -> list[int]:
        # A label with exactly `rounds` rows draws none at first, as the official code has it.
        chosen = rng.sample(rows, rounds % len(rows))
        while len(chosen) < rounds:
            chosen += rng.sample(rows, min(rounds - len(chosen), len(rows)))
        return chosen


def _read(path: Path, label: str, num_labels: int) -> Texts:
    rows = JsonLines(path, {"text": str, label: int})
    texts, labels = [], []
    for row in rows:
        if not 0 <= row[label] < num_labels:
            raise InputError(f"{row}: label {row[label]} of column {label!r} is not one of 0 to {num_labels - 1}")
        texts.append(row["text"])
        labels.append(row[label])
    return Texts(texts, labels)
