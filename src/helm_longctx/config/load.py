"""Loads run configurations from YAML files, and replaces values by those of options.

Errors name the file, the line and the key, and say what to do.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError, RoundTripConstructor
from ruamel.yaml.error import YAMLError

from helm_longctx.config.options import Options
from helm_longctx.config.schema import (
    BAD_KEY,
    BAD_TEXT,
    NO_VALUE,
    RunConfig,
)
from helm_longctx.config.source_map import KeyPath, SourceMap
from helm_longctx.data.yaml_files import BoundedAliases, explain_yaml_error
from helm_longctx.environment import page_address
from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.redaction.text import redact

_REFUSAL = (
    "holds a secret; give the NAME of the variable that holds it, or $NAME in headers"
)

_TAGS = ("name", "mapping", "local")
"""Tags of the unions in `schema.py`. pydantic adds them to the locations of errors."""

# Matches the quoted words in a message of pydantic or ruamel, such as "Input should be 'chat' or 'both'".
_CHOICE = re.compile(r"'([^']*)'")


def load_config(path: Path | None, options: Options | None = None) -> RunConfig:
    """Load a configuration from a YAML file, if one is given, and from options, or raise an `InputError`."""
    options = options or Options()
    document = _read(path) if path else {}
    source_map = SourceMap(
        file=str(path) if path else "",
        document=document,
        options=options.names,
    )
    try:
        values = _merge(_plain(document), options.values)
    except RecursionError:
        raise source_map.error(
            (), " the file contains itself or is nested too deeply; write plain YAML"
        ) from None
    # This comes before the validation, whose errors print values.
    for keys, text in _texts(values):
        if redact(text) != text:
            raise source_map.error(keys, f" {_REFUSAL}")
    try:
        config = RunConfig.model_validate(values)
    except ValidationError as error:
        # The first mistake is explained, and the others are counted.
        mistakes = map(_explain, error.errors(include_url=False))
        (where, what), *others = sorted(
            mistakes, key=lambda mistake: source_map.line(mistake[0])
        )
        more = ""
        if others:
            more = f" (and {len(others)} more mistake{'s' if len(others) > 1 else ''})"
        raise source_map.error(where, what + more) from None
    config._source_map = source_map
    return config


class _Constructor(BoundedAliases, RoundTripConstructor):
    """Reads dates as texts, because suites are often named after dates."""


_Constructor.add_constructor(
    "tag:yaml.org,2002:timestamp", lambda self, node: str(node.value)
)


def _read(path: Path) -> Any:
    yaml = YAML()
    yaml.Constructor = _Constructor
    try:
        with path.open(encoding="utf-8") as file:
            document = yaml.load(file)
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}; give a YAML file ({page_address('running')})"
        ) from None
    except DuplicateKeyError as error:
        if error.problem_mark:
            line = error.problem_mark.line + 1
        else:
            line = 1
        key = _CHOICE.search(str(error.problem).replace('"', "'"))
        raise InputError(
            f"{path}:{line}: {key[1] if key else 'a key'} is given twice; give each key once"
        ) from None
    except (
        YAMLError,
        ValueError,
        RecursionError,
    ) as error:  # ValueError: bytes that are not text, or `!!int x`
        raise explain_yaml_error(path, error) from None
    if not isinstance(document, dict):
        raise InputError(
            f"{path}:1: the file is not a mapping; write the keys"
            f" {', '.join(RunConfig.model_fields)}"
        )
    return document


def _plain(node: Any) -> Any:
    """Convert ruamel's values into plain Python values. They also store how they were written."""
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(value) for value in node]
    plain = next(
        (kind for kind in (bool, int, float, str) if isinstance(node, kind)), None
    )
    if plain is None or isinstance(node, bool | date):
        return node
    return plain(node)


def _merge(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` replaced by those in `others`. Mappings are merged."""
    merged = dict(values)
    for key, value in others.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _texts(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(item, (*path, key))


def _explain(details: Any) -> tuple[KeyPath, str]:
    """Return the key path of a mistake, and a text that says what is wrong and what to do."""
    location = details["loc"]
    # pydantic adds the tag of a union after the location of the union's value.
    unions = []
    for number, part in enumerate(location):
        if part in ("models", "judges", "keys"):
            unions.append(number + 2)
    path = tuple(
        part
        for number, part in enumerate(location)
        if part not in _TAGS or number not in unions
    )
    context = details.get("ctx") or {}
    if details["type"] == BAD_KEY:
        return (*path, context["key"]), f" {context['message']}"
    if details["type"] == BAD_TEXT:
        return path, f": {context['message']}"
    if details["type"] == NO_VALUE:
        return path, f" {details['msg']}"
    # The message comes from pydantic, or from a validator in `schema.py`.
    message = re.sub(
        r"^(Input should be|Value error,|String should be) ", "", details["msg"]
    )
    message = message.replace(
        "a valid string", "a text; numbers and dates need quotes, as in '2026'"
    )
    message = message.replace("a valid list", _describe_list(details["input"]))
    message = message.replace("a valid dictionary", "a mapping, such as {name: value}")
    message = message.replace("greater than or equal to", "a number from").replace(
        "greater than", "a number above"
    )
    _, invalid, advice = message.rpartition(" is invalid; ")
    advice = advice if invalid else f"give {message}"
    if (
        choices := _CHOICE.findall(message)
        if details["type"] == "literal_error"
        else []
    ):
        advice = list_choices(details["input"], choices)
    return path, f"={shorten(details['input'])} is invalid; {advice}"


def _describe_list(value: Any) -> str:
    """Say that a value has to be a list. If it is a text, it is shown as a list."""
    if not isinstance(value, str):
        return "a list"
    items = ", ".join(item.strip() for item in value.split(","))
    return "a list: " + shorten(f"[{items}]").strip("'\"")
