"""Other packages are used by their public interfaces: no name of theirs that starts with an underscore stands in the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

SOURCE = Path(str(resources.files("helm_longctx"))).parent

SENDERS = ("helm_longctx/models/apis", "helm_longctx/helm/patches.py")
"""The modules that hold clients of the providers' packages."""

PUBLIC = ("_asdict", "_current_frames", "_exit", "_fields", "_make", "_replace")
"""Documented names of the standard library: of named tuples, of `sys` and of `os`."""

WITHOUT_ANOTHER_WAY = {
    "_CURRENT_RUN_SPEC_NAME": "HELM's runner tells annotators the run by this variable",
    "_Hash": "the type of `hashlib.sha256()`, which has no other name",
    "_WorkItem": "only its frame tells which future a thread of a pool computes",
    "_attn_implementation": "transformers tells which attention a model uses only there",
    "_commit_hash": "transformers tells the revision of a model only there",
    "_REGISTERED_RUN_SPEC_FUNCTIONS": "HELM lists the functions of run specs only there",
    "_run_schema_validation": "HELM's summarizer checks a schema's metrics only there",
    "_get_client": "HELM's AutoClient gives its clients only so",
    "_hf_hook": "accelerate marks a module whose weights it reads later only so",
    "_private": "ray replaces the handler of SIGTERM, and has no option that keeps it",
    "_scaled_dot_product_flash_attention_for_cpu": "a kernel of torch, whose name is asked for",
}
"""Private names of packages that have no public one, none of them of a package that sends."""

OF_OTHER_MODULES = ("_source_map",)
"""Our own private names that another module of ours uses: where each setting of a configuration stands in its file."""

OWN = ("self", "cls")


def is_private(name: object) -> bool:
    """Return whether a name is private; names like `__iter__` are not."""
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__")


def defined_names(tree: ast.Module) -> set[str]:
    """Return the private names that a module itself defines, for its objects or for itself."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and is_own(node)
        ):
            names.add(node.attr)
    return {name for name in names if is_private(name)}


def is_own(node: ast.Attribute) -> bool:
    """Return whether an attribute is one of the object itself: `self._a`, `cls._a`, `super()._a`."""
    value = node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in OWN


def foreign_names(source: str, is_strict: bool) -> Iterator[str]:
    """Yield the private names of others that a module uses: as an attribute, as a text, or in an import.

    Args:
        is_strict: whether the names that the module defines count, too, on any other object than its own.
    """
    tree = ast.parse(source)
    own = set() if is_strict else defined_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not is_own(node) and node.attr not in own:
                yield node.attr
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and len(node.args) > 1
        ):
            name = (
                node.args[1].value if isinstance(node.args[1], ast.Constant) else None
            )
            is_access = node.func.id in ("getattr", "setattr", "hasattr", "delattr")
            if is_access and is_private(name):
                yield str(name)
        elif isinstance(node, ast.ImportFrom) and not str(node.module).startswith(
            "helm_longctx"
        ):
            parts = [
                *str(node.module).split("."),
                *(alias.name for alias in node.names),
            ]
            yield from (part for part in parts if is_private(part))
        elif isinstance(node, ast.Import):
            parts = [part for alias in node.names for part in alias.name.split(".")]
            yield from (part for part in parts if is_private(part))


def test_other_packages_are_used_by_their_public_interfaces() -> None:
    """No module uses a private name of another package, except a few that have no public one."""
    allowed = {*PUBLIC, *OF_OTHER_MODULES, *WITHOUT_ANOTHER_WAY}
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        names = foreign_names(
            path.read_text(encoding="utf-8"), module.startswith(SENDERS)
        )
        wrong += [f"{module}: {name}" for name in names if name not in allowed]
    assert wrong == []


def test_exceptions_are_needed() -> None:
    """Each private name that may be used is used."""
    sources = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    used = {
        name for source in sources for name in foreign_names(source, is_strict=True)
    }
    assert {*WITHOUT_ANOTHER_WAY} <= used


@pytest.mark.parametrize(
    "code",
    [
        "library._client",
        "client.event_hooks; client._mounts = {}",
        "getattr(transport, '_pool', None)",
        "setattr(pool, '_network_backend', ours)",
        "from httpx._client import Client",
        "from httpx import _client",
        "import httpcore._sync",
        "class A:\n def f(self):\n  self._client = 1\n  return self.library._client",
    ],
)
def test_private_names_are_found(code: str) -> None:
    """The check finds each way to reach a private name."""
    assert [*foreign_names(code, is_strict=True)]


@pytest.mark.parametrize(
    "code",
    [
        "class A:\n def f(self):\n  return self._client",
        "super()._send()",
        "library.with_options(http_client=ours)",
        "object.__new__(A)",
        "from helm_longctx.models import _own",
    ],
)
def test_own_names_are_no_private_names_of_others(code: str) -> None:
    """What an object has itself, and public names, are accepted."""
    assert not [*foreign_names(code, is_strict=True)]
