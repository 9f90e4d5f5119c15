"""Reads the calls of tools in an answer, in the forms of several servers and models, and compares them.

The forms are facts of the models' chat templates: Hermes' and Qwen's `<tool_call>`, Qwen3-Coder's `<function=…>` with
`<parameter=…>`, Llama's `{"name", "parameters"}` with and without `<|python_tag|>`, Mistral's `[TOOL_CALLS]` in its
older and newer form, DeepSeek's marks, the objects of OpenAI's and Anthropic's protocols, and a plain JSON object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_ATTEMPTS = 32
"""Most places at which a JSON value is looked for. An answer of many braces would take quadratic time otherwise."""

_NAMED = re.compile(
    r"<function=(?P<function>[\w.-]+)>"
    r"|\[TOOL_CALLS\]\s*(?P<mistral>[\w.-]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?\[ARGS\]"
    r"|<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<deepseek>[\w.-]+)"
    r"(?:<｜tool▁sep｜>)?"
)
"""The marks before the arguments of a call that stand after the name of the tool."""

_PARAMETER = re.compile(
    # A value ends where another begins, so that the time is linear.
    r"<parameter=(?P<name>[\w.-]+)>(?P<value>(?:(?!<parameter=).)*?)</parameter>",
    re.DOTALL,
)

_OPENING = re.compile(r"\{|\[(?=\s*\{)")
"""The start of an object, or of a list of objects."""

_ARGUMENTS = ("arguments", "parameters", "input", "args")
"""The fields of a call that can have its arguments."""


@dataclass(frozen=True)
class Call:
    """A call in an answer.

    Args:
        arguments: None if they are no JSON object.
    """

    name: str
    arguments: Mapping[str, Any] | None


def read_calls(text: str, tools: Sequence[Mapping[str, Any]] = ()) -> list[Call]:
    """Return the calls in an answer, in order.

    Args:
        tools: the definitions. Values between marks are read by the types in their schemas.
    """
    marks = list(_NAMED.finditer(text))
    if marks:
        return _read_marked_calls(text, marks, tools)
    calls: list[Call] = []
    for value in _find_values(text):
        calls += _calls_in(value)
    return calls


def _read_marked_calls(
    text: str,
    marks: Sequence[re.Match[str]],
    tools: Sequence[Mapping[str, Any]],
) -> list[Call]:
    """Return the calls whose tools' names stand in marks."""
    calls = []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=True):
        name = mark[mark.lastgroup or ""]
        body = text[mark.end() : end]
        parameters = list(_PARAMETER.finditer(body))
        if parameters:
            properties = _properties_of(name, tools)
            arguments: Mapping[str, Any] | None = {
                parameter["name"]: _parse_by_schema(
                    _without_line_ends(parameter["value"]),
                    properties.get(parameter["name"], {}),
                )
                for parameter in parameters
            }
        else:
            value = next(_find_values(body), None)
            arguments = value if isinstance(value, dict) else None
        calls.append(Call(name, arguments))
    return calls


def _without_line_ends(value: str) -> str:
    """Return a value without the line end after its opening tag and that before its closing one."""
    return value.removeprefix("\n").removesuffix("\n")


def _properties_of(
    name: str,
    tools: Sequence[Mapping[str, Any]],
) -> Mapping[str, Mapping[str, Any]]:
    for tool in tools:
        if tool["name"] == name:
            properties: Mapping[str, Mapping[str, Any]] = tool["parameters"][
                "properties"
            ]
            return properties
    return {}


def _parse_by_schema(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the value of a parameter that stands as text between marks."""
    if schema.get("type") == "string":
        return text
    try:
        return _parse(text)
    except ValueError:
        return text


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _parse(text: str) -> Any:
    """Parse a JSON text. Raises a `ValueError` if it is none, or too deep."""
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("too deep") from error


def _find_values(text: str) -> Iterator[Any]:
    """Yield the JSON objects and lists of objects in a text that are not part of another one."""
    position = 0
    for _ in range(_MOST_ATTEMPTS):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            position = opening.end()
            continue
        yield value


def _calls_in(value: Any) -> list[Call]:
    """Return the calls in a JSON value: an object, a list of them, or an object with either inside."""
    calls: list[Call] = []
    if isinstance(value, list):
        for part in value:
            calls += _calls_in(part)
        return calls
    if not isinstance(value, dict):
        return []
    for field in ("tool_calls", "function_call", "function", "tool_call"):
        if isinstance(value.get(field), dict | list):
            return _calls_in(value[field])
    name = value.get("name")
    if not isinstance(name, str):
        return []
    for field in _ARGUMENTS:
        if field in value:
            return [Call(name, _read_arguments(value[field]))]
    return []


def _read_arguments(value: Any) -> Mapping[str, Any] | None:
    """Return the arguments of a call, an object or the text of one."""
    if isinstance(value, str):
        try:
            value = _parse(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def are_equal(first: Any, second: Any) -> bool:
    """Whether two JSON values are equal: fields have no order, and 3 equals 3.0 but not `true`."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            are_equal(value, second[name]) for name, value in first.items()
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(are_equal, first, second))
    return bool(first == second)


def is_valid(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a JSON value is valid against a schema with the keywords that our definitions have.

    They are `type`, `properties`, `required`, `additionalProperties: false`, `items` and `enum`.
    """
    if "enum" in schema and not any(are_equal(value, one) for one in schema["enum"]):
        return False
    kind = schema["type"]
    if kind == "string":
        return isinstance(value, str)
    if kind == "integer":
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and value == value // 1
    if kind == "array":
        return isinstance(value, list) and all(
            is_valid(item, schema["items"]) for item in value
        )
    if not isinstance(value, dict):
        return False
    properties = schema["properties"]
    has_all = all(name in value for name in schema["required"])
    return has_all and all(
        name in properties and is_valid(part, properties[name])
        for name, part in value.items()
    )
