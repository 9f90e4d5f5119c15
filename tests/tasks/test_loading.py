"""Tests that errors in loaders, which their authors did not expect, end in one line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Example, Settings, Task

FIELDS = {"context": "c", "question": "q", "demos": ""}
MSMARCO = HELMET.task("msmarco")


class PanicException(
    BaseException
):  # as tokenizers' library calls it, which has no other name for it
    pass


def loaded(
    task: Task, mirror: DataRoot, *examples: Example | BaseException
) -> list[Example]:
    """Return the examples of a loader, and raise an error that is among them."""

    def load(*arguments: object) -> Iterator[Example]:
        for example in examples:
            if isinstance(example, BaseException):
                raise example
            yield example

    return list(load_examples(replace(task, load=load), Settings(8192), mirror))


@pytest.mark.parametrize(
    "error",
    [
        KeyError("x"),
        TypeError(),
        RecursionError(),
        OverflowError(),
        UnicodeError(),
        PanicException("no entry"),
    ],
)
def test_unexpected_errors(error: BaseException, mirror: DataRoot) -> None:
    """An unexpected error of a loader, such as a panic in Rust for a damaged tokenizer file, ends in one line."""
    with pytest.raises(
        InputError,
        match=f"a row of .* does not have msmarco's format: {type(error).__name__} ",
    ):
        loaded(MSMARCO, mirror, error)


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), MemoryError(), OSError(28, "No space left on device")],
)
def test_what_is_no_fault_of_the_data(error: BaseException, mirror: DataRoot) -> None:
    """An error that is not a fault of the data is raised unchanged."""
    with pytest.raises(type(error)):
        loaded(MSMARCO, mirror, error)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"fields": {**FIELDS, "question": ["q"]}},
            "msmarco-0: question must be text, found ['q']",
        ),
        ({"fields": {"context": "c"}}, "KeyError"),
        ({"references": [1]}, "has answers that are not strings"),
        ({"references": "a"}, "has answers that are not strings"),
        (
            {"record": {"qrels": {"1": 0.5}}},
            "msmarco-0: qrels must be an object of grades",
        ),
    ],
)
def test_examples_are_checked(
    change: dict[str, object], told: str, mirror: DataRoot
) -> None:
    """Examples whose prompts are not text, or whose records the metric cannot read, are refused before anything is sent."""
    example = Example(
        "msmarco-0", FIELDS, ["1"], "official", record={"qrels": {"1": 2}}
    )
    assert loaded(MSMARCO, mirror, example) == [example]
    with pytest.raises(InputError) as caught:
        loaded(MSMARCO, mirror, replace(example, **change))
    assert told in str(caught.value)
    assert str(mirror.path) in str(caught.value)
