"""Tests that no fact of a run is read out of a text: each is a field of a record, and names are made and never read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest

SOURCE = Path(str(resources.files("helm_longctx"))).parent

READS = frozenset(
    [
        "split",
        "rsplit",
        "partition",
        "rpartition",
        "startswith",
        "endswith",
        "removeprefix",
        "removesuffix",
        "find",
        "index",
        "replace",
        "match",
        "search",
        "fullmatch",
        "findall",
        "finditer",
    ]
)
"""Methods of texts and patterns that look into a text."""

Constants = Mapping[str, str]
"""Texts that modules give names, by name."""


@dataclass(frozen=True)
class Reading:
    """A place of the source that looks into a text.

    Args:
        receiver: the source of what is looked into.
        marks: the texts that are looked for.
    """

    receiver: str
    marks: tuple[str, ...]


@dataclass(frozen=True)
class Channel:
    """A way in which a fact could travel in a text.

    Args:
        is_used: whether a reading uses the channel.
        readers: the modules that may, because HELM's files have only the text.
        example: a line of code that uses it, which the check must find.
    """

    name: str
    is_used: Callable[[Reading], bool]
    example: str
    readers: frozenset[str] = frozenset()


def has_mark(*marks: str) -> Callable[[Reading], bool]:
    """Return a check whether a reading looks for one of some texts."""
    return lambda reading: any(mark in text for text in reading.marks for mark in marks)


def looks_into(*endings: str) -> Callable[[Reading], bool]:
    """Return a check whether a reading looks into an expression that ends with one of some texts."""
    return lambda reading: reading.receiver.endswith(endings)


def splits_name(reading: Reading) -> bool:
    """Whether a reading looks for a part of a run's name."""
    is_name = reading.receiver.endswith(
        ("spec.name", "run.name", "folder.name", "path.name", "spec['name']")
    )
    return is_name and any(
        separator in mark for mark in reading.marks for separator in ":,="
    )


CHANNELS = (
    Channel(
        "adapter method",
        looks_into(
            "adapter.method", "adapter_spec.method", "spec.method", "adapter['method']"
        ),
        "style = run_spec.adapter_spec.method.split('_')[1]",
    ),
    Channel(
        "published in a model's name",
        has_mark("published"),
        "is_published = model.startswith('published/')",
    ),
    Channel(
        "method in a model's name",
        has_mark("method=", "(method"),
        "is_floor = ' (method=closed_book' in model",
    ),
    Channel(
        "sampling in a model's name",
        has_mark("temperature=", "top_p=", "top_k=", "min_p=", "sampling_seed="),
        "base = model.removesuffix(' (temperature=0.6)')",
    ),
    Channel(
        "budget in a name",
        has_mark("retry_cut="),
        "parts = [part for part in parts if not part.startswith('retry_cut=')]",
    ),
    Channel(
        "judge in a name of a run or a condition",
        has_mark("judge="),
        "others = [text for text in conditions if not text.startswith('judge=')]",
    ),
    Channel(
        "model in a run's name",
        has_mark("model="),
        "entry = path.name.partition(',model=')[0]",
        readers=frozenset({"helm_longctx/cli/reproduce.py"}),  # words of a command line
    ),
    Channel(
        "parts of a run's name",
        splits_name,
        "entry = spec.name.partition(':')[0]",
    ),
    Channel(
        "judge in a statistic's name",
        has_mark("judge_", "jury_"),
        "is_judged = metric.startswith('judge_')",
        readers=frozenset({"helm_longctx/tasks/statistic_names.py"}),
    ),
    Channel(
        "depth or number of answers in a statistic's name",
        has_mark("_at_depth", "pass_at", "_at_"),
        "depth = int(name.rpartition('_at_depth_')[2])",
        readers=frozenset({"helm_longctx/tasks/statistic_names.py"}),
    ),
)


def find_readings(tree: ast.AST, constants: Constants) -> Iterator[Reading]:
    """Yield the places of a module that look into a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in READS:
                marks = [
                    mark for value in node.args for mark in _texts(value, constants)
                ]
                yield Reading(ast.unparse(node.func.value), tuple(marks))
            elif node.func.attr == "compile":
                marks = [
                    mark for value in node.args for mark in _texts(value, constants)
                ]
                yield Reading("", tuple(marks))
        elif isinstance(node, ast.Compare) and isinstance(
            node.ops[0], ast.In | ast.NotIn
        ):
            receiver = node.comparators[0]
            if isinstance(receiver, ast.Name | ast.Attribute | ast.Subscript):
                # An item of a collection is the whole text; a part of a text has a mark around it.
                marks = [
                    mark
                    for mark in _texts(node.left, constants)
                    if not mark.isidentifier()
                ]
                yield Reading(ast.unparse(receiver), tuple(marks))


def _texts(node: ast.AST, constants: Constants) -> Iterator[str]:
    """Yield the texts in an expression, with those that a name stands for."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif isinstance(part, ast.Name) and part.id in constants:
            yield constants[part.id]


def _read_constants(trees: Mapping[str, ast.Module]) -> dict[str, str]:
    """Return the texts that modules give names in capitals."""
    constants: dict[str, str] = {}
    for tree in trees.values():
        for node in tree.body:
            if not isinstance(node, ast.Assign) or not isinstance(
                node.targets[0], ast.Name
            ):
                continue
            texts = list(_texts(node.value, {})) if node.targets[0].id.isupper() else []
            if len(texts) == 1:
                constants[node.targets[0].id] = texts[0]
    return constants


@pytest.fixture(scope="module")
def readings() -> dict[str, list[Reading]]:
    """Return all readings of the source by module."""
    trees = {
        str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
        if "benchmarks" not in path.parts  # answers of models are texts
    }
    constants = _read_constants(trees)
    return {
        module: list(find_readings(tree, constants)) for module, tree in trees.items()
    }


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_no_fact_is_read_out_of_a_text(
    channel: Channel, readings: Mapping[str, list[Reading]]
) -> None:
    """The source uses the channel nowhere but in the modules that may."""
    users = {
        f"{module}: {reading.receiver} {reading.marks}"
        for module, of_module in readings.items()
        for reading in of_module
        if module not in channel.readers and channel.is_used(reading)
    }
    assert users == set()


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_the_check_finds_each_channel(channel: Channel) -> None:
    """The check fails for a line of code that reads the fact out of a text."""
    readings = find_readings(ast.parse(channel.example), {})
    assert any(map(channel.is_used, readings))
