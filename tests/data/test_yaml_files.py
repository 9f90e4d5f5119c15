"""Attacks with aliases on every reader of users' YAML files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.config.load import load_config
from helm_longctx.config.shared import register_local_path
from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.errors import InputError
from helm_longctx.models.apis.availability import read_names
from helm_longctx.models.apis.prices import read_prices
from helm_longctx.models.endpoints.files import find_entries
from tests.support.programs import run

LEVELS = 40


def bomb(start: str, pattern: str) -> str:
    """Lines of aliases of the line before: each level is ten times as much."""
    lines = [f"a0: &a0 {start}"]
    lines += [
        f"a{n}: &a{n} " + pattern.replace("*", f"*a{n - 1}") for n in range(1, LEVELS)
    ]
    return "\n".join(lines) + "\n"


BOMBS = {
    "lists": bomb("[lol]", f"[{', '.join('*' * 10)}]"),
    "mappings": bomb("{k: lol}", "{" + ", ".join(f"k{n}: *" for n in range(10)) + "}"),
    "merged mappings": bomb("{k: lol}", f"{{<<: [{', '.join('*' * 10)}]}}"),
    "keys": bomb(
        "[lol]",
        f"? [{', '.join('*' * 10)}]\n  : 1".replace("? ", "{? ").replace(
            "\n  : 1", " : 1}"
        ),
    ),
    "a long text": f"a: &a '{'x' * 100_000}'\nb: [{', '.join(['*a'] * 100)}]\n",
    "itself": "a: &a [*a]\n",
    "itself in a mapping": "a: &a {b: {c: *a}}\n",
}


def read_names_of(path: Path) -> object:
    return read_names(path.parent)


def read_entries_of(path: Path) -> object:
    return find_entries(path.parent, "x")


def register(path: Path) -> object:
    return register_local_path(path.parent)


READERS: tuple[Callable[[Path], object], ...] = (
    load_config, read_prices, read_yaml, read_names_of, read_entries_of, register
)  # fmt: skip


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused(
    text: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    """By every reader, in one line that names the file."""
    path = tmp_path / "model_deployments.yaml"
    path.write_text(f"model_deployments: []\n{text}")
    with pytest.raises(InputError) as caught:
        read(path)
    line = str(caught.value)
    assert (
        f"{path}:1: the aliases (*name) stand for more than 1,000,000 characters; use "
        in line
    )
    assert "\n" not in line


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "text", ["[" * 600, "a: [b", "\tx: 1", "a: 1\n\x00", "a: !!int x"]
)
def test_malformed_files(
    text: str, read: Callable[[Path], object], tmp_path: Path
) -> None:
    """One line that names the file and does not quote it."""
    path = tmp_path / "model_deployments.yaml"
    path.write_text(text)
    with pytest.raises(
        InputError,
        match=r"^[^\n]*model_deployments\.yaml:\d+: the file is not YAML: [^\n]+$",
    ):
        read(path)


def test_the_command(tmp_path: Path) -> None:
    """A configuration with a bomb ends in one line."""
    (tmp_path / "run.yaml").write_text(BOMBS["lists"])
    done = run("helm-longctx", "run", "run.yaml", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "error: run.yaml:1: the aliases (*name) stand for more than" in done.stderr


def test_aliases_that_people_write(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "base: &base {url: a, form: chat}\nmodels:\n- {<<: *base, name: b}\n- *base\n"
    )
    assert read_yaml(path)["models"] == [
        {"url": "a", "form": "chat", "name": "b"},
        {"url": "a", "form": "chat"},
    ]


def test_long_files_without_aliases(tmp_path: Path) -> None:
    """Only what aliases add is limited."""
    path = tmp_path / "x.yaml"
    path.write_text(f"a: {'x' * 2_000_000}\n")
    assert len(read_yaml(path)["a"]) == 2_000_000
    path.write_text(f"a: [{','.join(['b' * 10_000] * 200)}]\n")
    assert len(read_yaml(path)["a"]) == 200


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec="utf-8"), max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4)
    ),
)


@given(value=JSON)
def test_values_are_those_of_pyyaml(
    value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("yaml") / "x.yaml"
    path.write_text(
        yaml.safe_dump(value, allow_unicode=True), encoding="utf-8", newline=""
    )
    assert read_yaml(path) == yaml.safe_load(path.read_text(encoding="utf-8"))
