"""Tests that HELM's files are extended and keep their content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from helm_longctx.errors import InputError
from helm_longctx.models.endpoints.files import add_entries

FILE = "model_deployments.yaml"
MINE = """\
# my models
model_deployments:

  # the first
  - name: my/first   # a comment
    client_spec: {class_name: "helm.clients.simple_client.SimpleClient"}
    max_sequence_length: 8192

  - name: 'my/second'
    client_spec:
      class_name: x.Y
# the end
"""


def entry(name: str, **fields: Any) -> dict[str, Any]:
    """Return the entry of a deployment."""
    return {
        "name": name,
        "client_spec": {"class_name": "a.B", "args": {"form": "both"}},
        **fields,
    }


def names(folder: Path) -> list[str]:
    """Return the names of the deployments in the file, as HELM reads it."""
    return [
        row["name"]
        for row in yaml.safe_load((folder / FILE).read_text())["model_deployments"]
    ]


@pytest.mark.parametrize(
    "text", [None, "", "model_deployments:\n", "model_deployments: []\n", "# nothing\n"]
)
def test_empty_files(text: str | None, tmp_path: Path) -> None:
    """An entry is added to a file that does not exist or is empty."""
    folder = tmp_path / "a/b"
    if text is not None:
        folder.mkdir(parents=True)
        (folder / FILE).write_text(text)
    assert add_entries(folder, {FILE: entry("my/new")}) == [folder / FILE]
    assert names(folder) == ["my/new"]
    assert [path.name for path in folder.iterdir()] == [FILE]


def test_comments_and_other_entries_survive(tmp_path: Path) -> None:
    """Comments and other entries of the file stay in it."""
    (tmp_path / FILE).write_text(MINE)
    add_entries(tmp_path, {FILE: entry("my/new")})
    assert names(tmp_path) == ["my/first", "my/second", "my/new"]
    assert set(MINE.splitlines()) <= set((tmp_path / FILE).read_text().splitlines())


def test_the_same_name(tmp_path: Path) -> None:
    """An entry with an existing name is refused and touches no file, and `replace` replaces the whole old entry in its place."""
    (tmp_path / FILE).write_text(MINE)
    both = {"model_metadata.yaml": {"name": "my/first"}, FILE: entry("my/first")}
    with pytest.raises(
        InputError,
        match=r"model_deployments.yaml already has 'my/first'; choose another name, or give --replace",
    ):
        add_entries(tmp_path, both)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert (tmp_path / FILE).read_text() == MINE
    add_entries(tmp_path, both, replace=True)
    assert names(tmp_path) == ["my/first", "my/second"]
    assert yaml.safe_load((tmp_path / FILE).read_text())["model_deployments"][
        0
    ] == entry("my/first")
    assert "# the first" in (tmp_path / FILE).read_text()


@pytest.mark.parametrize(
    "text",
    [
        "model_deployments: [",
        "- a\n",
        "model_deployments: {}\nx: 1\n",
        "model_deployments: x",
    ],
)
def test_malformed_files(text: str, tmp_path: Path) -> None:
    """A malformed file is an error and stays unchanged."""
    (tmp_path / FILE).write_text(text)
    if "{}" in text:  # an empty mapping has nothing to lose
        add_entries(tmp_path, {FILE: entry("my/new")})
        assert names(tmp_path) == ["my/new"]
        return
    with pytest.raises(
        InputError,
        match=r"model_deployments.yaml(:1: the file is not YAML| must have a list)",
    ):
        add_entries(tmp_path, {FILE: entry("my/new")})
    assert (tmp_path / FILE).read_text() == text
