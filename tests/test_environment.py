"""The environment is read and never changed: one module reads what is ours."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

SOURCE = Path(str(resources.files("helm_longctx"))).parent

_CHANGES = {"update", "setdefault", "pop", "popitem", "clear", "putenv", "unsetenv"}

OF_OTHERS = {"helm_longctx/runner/machines/ray_runner.py": 1}
"""How often a module sets a variable of another package that has no other switch: Ray sends statistics without it."""


def is_environ(node: ast.expr) -> bool:
    """Return whether an expression is the environment: `os.environ` or `environ`."""
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name in ("environ", "environb")


def find_changes(source: str) -> Iterator[int]:
    """Yield the lines that change the environment."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript) and is_environ(node.value):
            if not isinstance(node.ctx, ast.Load):
                yield node.lineno
        elif isinstance(node, ast.AugAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            if any(map(is_environ, targets)):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_patch = (
                node.func.attr == "dict"
                and bool(node.args)
                and is_environ(node.args[0])
            )
            is_method = node.func.attr in _CHANGES and is_environ(node.func.value)
            if is_patch or is_method or node.func.attr in ("putenv", "unsetenv"):
                yield node.lineno


def test_no_module_changes_the_environment() -> None:
    """No module sets, removes or patches a variable, except those of other packages."""
    changes = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if lines := [*find_changes(path.read_text(encoding="utf-8"))]:
            changes[path.relative_to(SOURCE).as_posix()] = len(lines)
    assert changes == OF_OTHERS


@pytest.mark.parametrize(
    "code",
    [
        "os.environ['A'] = 'b'",
        "del os.environ['A']",
        "environ['A'] += 'b'",
        "os.environ |= {'A': 'b'}",
        "os.environ.update(values)",
        "os.environ.setdefault('A', 'b')",
        "os.environ.pop('A', None)",
        "os.putenv('A', 'b')",
        "mock.patch.dict(os.environ, {'A': 'b'})",
    ],
)
def test_changes_are_found(code: str) -> None:
    """The check finds each way to change the environment."""
    assert [*find_changes(code)] == [1]


@pytest.mark.parametrize(
    "code",
    ["os.environ['A']", "os.environ.get('A')", "{**os.environ}", "values.update(a=1)"],
)
def test_reading_is_no_change(code: str) -> None:
    """The check accepts what only reads."""
    assert not [*find_changes(code)]


_OURS = "HELM_LONGCTX_"

_REPOSITORY = "_REPO"
"""How the names of variables end that a data set's row names."""


def find_own_variables(source: str) -> Iterator[str]:
    """Yield the texts of a module that are names of our variables, except those of repositories."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_name = node.value.startswith(_OURS) and " " not in node.value
            if is_name and not node.value.endswith(_REPOSITORY):
                yield node.value


def test_one_module_knows_our_variables() -> None:
    """The names of our variables stand in one module, so nothing else can read a setting from the environment."""
    modules = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if names := [*find_own_variables(path.read_text(encoding="utf-8"))]:
            modules[path.relative_to(SOURCE).as_posix()] = names
    assert list(modules) == ["helm_longctx/run_settings.py"]
    assert len(set(modules["helm_longctx/run_settings.py"])) == 15
