"""No fact of an answer hides in a string of HELM's objects: neither in a finish reason nor in an error's text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

READS = (
    "startswith",
    "endswith",
    "partition",
    "rpartition",
    "removeprefix",
    "split",
    "find",
)
"""Methods of texts that read a part of them."""


def find_hidden_facts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the lines of code that hide a fact of an answer in a string, or read one there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _find_finish_facts(node)
            function = node.func
            if (
                isinstance(function, ast.Attribute)
                and function.attr in READS
                and isinstance(function.value, ast.Attribute)
                and function.value.attr == "error"
            ):
                yield node.lineno, "reads a part of an error's text"
        if isinstance(node, ast.Subscript) and _names_finish(node.value):
            key = node.slice
            if isinstance(key, ast.Constant) and key.value != "reason":
                yield node.lineno, f"reads {key.value!r} from a finish reason"


def _find_finish_facts(call: ast.Call) -> Iterator[tuple[int, str]]:
    for keyword in call.keywords:
        if keyword.arg == "finish_reason" and isinstance(keyword.value, ast.Dict):
            names = [getattr(key, "value", None) for key in keyword.value.keys]
            if names != ["reason"]:
                yield call.lineno, f"puts {names} into a finish reason"


def _names_finish(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "finish_reason"


def test_no_fact_of_an_answer_is_in_a_string() -> None:
    """Our code writes and reads nothing but the reason in a finish reason, and no kind in an error's text."""
    hidden = []
    for path in sorted(SOURCE.rglob("*.py")):
        for line, what in find_hidden_facts(
            ast.parse(path.read_text(encoding="utf-8"))
        ):
            hidden.append(f"{path.relative_to(SOURCE)}:{line} {what}")
    assert hidden == []


@pytest.mark.parametrize(
    "code",
    [
        'GeneratedOutput(text, 0, [], finish_reason={"reason": "stop", "usage": usage})',
        'usage = output.finish_reason["usage"]',
        'kind = result.error.partition(": ")[0]',
    ],
)
def test_hidden_facts_are_found(code: str) -> None:
    """The test finds each way in which facts were hidden."""
    assert list(find_hidden_facts(ast.parse(code)))
