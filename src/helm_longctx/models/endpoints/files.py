"""Adds entries to the YAML files of HELM's local path. Comments and all other entries stay as they are."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.error import YAMLError

from helm_longctx.data.yaml_files import BoundedAliases, explain_yaml_error
from helm_longctx.errors import InputError
from helm_longctx.writing import write_output

DEPLOYMENTS = "model_deployments.yaml"
METADATA = "model_metadata.yaml"
TOKENIZERS = "tokenizer_configs.yaml"

LISTS = {
    DEPLOYMENTS: "model_deployments",
    METADATA: "models",
    TOKENIZERS: "tokenizer_configs",
}
"""The files that HELM reads, and the name of the list in each."""

HelmFiles = dict[str, dict[str, Any]]
"""The entry of a model for each of HELM's YAML files, by the file's name."""


class _Constructor(BoundedAliases, RoundTripConstructor):
    pass


def add_entries(
    folder: Path,
    entries: Mapping[str, Mapping[str, Any]],
    replace: bool = False,
) -> list[Path]:
    """Add an entry to each of some files. No file is written if one of them is malformed.

    Raises an `InputError` if a file is malformed, or has an entry of the same name although `replace` is not set.
    """
    # All texts are made before the first file is written, so a malformed file leaves the others unchanged.
    texts = {}
    for file, entry in entries.items():
        texts[folder / file] = _extend(folder / file, LISTS[file], entry, replace)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        # Replacing a file is atomic: a running `helm-run` reads the old file or the new one, never a part.
        write_output(path, text.encode())
    return list(texts)


def find_entries(folder: Path, name: str) -> dict[str, Any]:
    """Return the entries with a name in the files of a folder, by the names of the files.

    The entry of a deployment's tokenizer counts, too.

    Raises:
        InputError: a file is malformed.
    """
    entries: dict[str, Any] = {}
    for file, key in LISTS.items():
        deployment = entries.get(DEPLOYMENTS, {})
        names = {METADATA: "model_name", TOKENIZERS: "tokenizer_name"}
        wanted = deployment.get(names.get(file, ""), name)
        for row in _read(_parser(), folder / file, key)[key]:
            if isinstance(row, Mapping) and row.get("name") == wanted:
                entries[file] = row
    return entries


def _extend(
    path: Path,
    key: str,
    entry: Mapping[str, Any],
    replace: bool,
) -> str:
    yaml = _parser()
    document = _read(yaml, path, key)
    same = []
    for row in document[key]:
        if isinstance(row, CommentedMap) and row.get("name") == entry["name"]:
            same.append(row)
    if same and not replace:
        raise InputError(
            f"{path} already has {entry['name']!r}; choose another name, or give --replace"
        )
    if same:
        # Of several equal names the last counts, as in HELM's registry. The row is changed in place, so the comments
        # around it stay.
        same[-1].clear()
        same[-1].update(entry)
    else:
        document[key].append(CommentedMap(entry))
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def _parser() -> YAML:
    yaml = YAML()
    yaml.Constructor = _Constructor
    yaml.preserve_quotes = True
    yaml.width = 1 << 16  # do not wrap long lines
    # This is the indentation of HELM's own files.
    yaml.indent(
        mapping=2,
        sequence=4,
        offset=2,
    )
    return yaml


def _read(yaml: YAML, path: Path, key: str) -> CommentedMap:
    """Read a file, or make an empty document if there is none."""
    document = None
    if path.exists():
        try:
            with path.open(encoding="utf-8") as file:
                document = yaml.load(file)
        except (YAMLError, ValueError, RecursionError) as error:
            raise explain_yaml_error(path, error) from None
    if document is None:
        document = CommentedMap()
    if not isinstance(document, CommentedMap) or not isinstance(
        document.get(key) or CommentedSeq(), CommentedSeq
    ):
        raise InputError(
            f"{path} must have a list {key!r}, as HELM's own file of this name does"
        )
    # `model_deployments:` without a value is null in YAML.
    if not document.get(key):
        document[key] = CommentedSeq()
    return document
