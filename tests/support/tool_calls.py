"""A second scorer of tool calls, written apart from the package's: another reader, jsonschema, and canonical texts. And a
program that finds the right call in a prompt."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from jsonschema import Draft202012Validator

from helm_longctx.benchmarks.tool_calls.prompts import NO_CALL
from helm_longctx.benchmarks.tool_calls.tasks import read_material


class Malformed:
    """Arguments that are no JSON object."""


def refuse(constant: str) -> Any:
    """Refuse NaN and the infinities, which are no JSON."""
    raise json.JSONDecodeError(constant, constant, 0)


def canonical(value: Any) -> str:
    """Return a text that is equal for equal JSON values: sorted fields, and numbers as fractions."""
    if isinstance(value, dict):
        inner = sorted(f"{json.dumps(k)}:{canonical(v)}" for k, v in value.items())
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"number {Fraction(value)}"
    return json.dumps(value)


def object_end(text: str, start: int) -> int | None:
    """Return the end of the bracketed part that starts here, by counting brackets outside of strings."""
    depth = 0
    in_string = escaped = False
    for position in range(start, len(text)):
        character = text[position]
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
    return None


def parsed_parts(text: str) -> list[Any]:
    """Return the JSON parts of a text that start with a brace, or with a bracket and a brace."""
    parts = []
    position = 0
    while position < len(text):
        here = text[position]
        opens = here == "{" or (
            here == "[" and text[position + 1 :].lstrip().startswith("{")
        )
        end = object_end(text, position) if opens else None
        if end is not None:
            try:
                parts.append(json.loads(text[position:end], parse_constant=refuse))
                position = end
                continue
            except json.JSONDecodeError:
                pass
        position += 1
    return parts


def calls_of(part: Any) -> list[tuple[str, Any]]:
    """Return the names and arguments of the calls in a JSON part."""
    if isinstance(part, list):
        return [call for inner in part for call in calls_of(inner)]
    if not isinstance(part, dict):
        return []
    wrappers = ("tool_calls", "function_call", "function", "tool_call")
    inside = [part[key] for key in wrappers if isinstance(part.get(key), list | dict)]
    if inside:
        return calls_of(inside[0])
    keys = [key for key in ("arguments", "parameters", "input", "args") if key in part]
    if not keys or not isinstance(part.get("name"), str):
        return []
    arguments = part[keys[0]]
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, parse_constant=refuse)
        except json.JSONDecodeError:
            arguments = Malformed
    return [(part["name"], arguments if isinstance(arguments, dict) else Malformed)]


def typed(text: str, schema: dict[str, Any]) -> Any:
    """Return the value of a parameter that is written between tags."""
    if schema.get("type") != "string":
        try:
            return json.loads(text, parse_constant=refuse)
        except json.JSONDecodeError:
            return text
    return text


def tagged_calls(text: str, schemas: dict[str, Any]) -> list[tuple[str, Any]] | None:
    """Return the calls of the forms with the tool's name in marks, or None if the text has none of them."""
    heads = [
        r"<function=([\w.-]+)>",
        r"\[TOOL_CALLS\]\s*([\w.-]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?\[ARGS\]",
        r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([\w.-]+)",
    ]
    pieces = []
    for head in heads:
        pieces += [(m.start(), m.end(), m.group(1)) for m in re.finditer(head, text)]
    if not pieces:
        return None
    pieces.sort()
    calls = []
    for number, (_, end, name) in enumerate(pieces):
        stop = pieces[number + 1][0] if number + 1 < len(pieces) else len(text)
        body = text[end:stop]
        if "<parameter=" in body:
            matches = re.findall(
                r"<parameter=([\w.-]+)>(.*?)</parameter>", body, re.DOTALL
            )
            known = schemas.get(name, {}).get("properties", {})
            arguments: Any = {
                key: typed(
                    raw.removeprefix("\n").removesuffix("\n"), known.get(key, {})
                )
                for key, raw in matches
            }
        else:
            parts = parsed_parts(body)
            arguments = parts[0] if parts and isinstance(parts[0], dict) else Malformed
        calls.append((name, arguments))
    return calls


def second_score(
    prediction: str, reference: str, tools: list[dict[str, Any]]
) -> dict[str, float]:
    """Return the metrics of an answer."""
    schemas = {tool["name"]: tool["parameters"] for tool in tools}
    calls = tagged_calls(prediction, schemas)
    if calls is None:
        calls = [call for part in parsed_parts(prediction) for call in calls_of(part)]
    scores: dict[str, float] = {}
    if calls:
        scores["valid"] = float(
            all(
                name in schemas
                and arguments is not Malformed
                and Draft202012Validator(schemas[name]).is_valid(arguments)
                for name, arguments in calls
            )
        )
    if reference == "NO_CALL":
        return {
            **scores,
            "single": float(len(calls) == 0),
            "exact": float(len(calls) == 0 and "NO_CALL" in prediction),
        }
    right = json.loads(reference)
    name, arguments = calls[0] if calls else ("", Malformed)
    same_name = name == right["name"]
    same_arguments = arguments is not Malformed and canonical(arguments) == canonical(
        right["arguments"]
    )
    return {
        **scores,
        "single": float(len(calls) == 1),
        "name": float(same_name),
        "arguments": float(same_arguments),
        "exact": float(len(calls) == 1 and same_name and same_arguments),
    }


def solve_prompt(prompt: str) -> str:
    """Answer a prompt as an agent does that reads everything in it and knows what words mean."""
    material = read_material()
    question = prompt.rpartition("\n\nTake ")[2].partition("\n\nReply only")[0]
    lines = prompt.splitlines()
    definitions = [json.loads(line) for line in lines if line.startswith('{"name"')]
    (action,) = (
        action for action in material["actions"] if action["asked"] in question
    )
    tools = {tool["name"]: tool for tool in definitions}
    able = []
    for name, tool in tools.items():
        if tool["description"] == action["does"]:
            able.append(name)
    is_off: dict[str, bool] = {}
    for line in lines:
        if notice := re.fullmatch(r"notice: (\w+) was (.*)", line):
            is_off[notice[1]] = not notice[2].endswith("on again")
    able = [name for name in able if not is_off.get(name)]
    if not able:
        return NO_CALL
    (name,) = able
    item = []
    for subject, words in material["subjects"].items():
        for site, site_words in material["sites"].items():
            if words in question and site_words in question:
                item.append((subject, site))
    identifier = re.search(r"[kmprt]\d{5}-[a-f]", question)
    ticket = None
    for line in lines:
        if item and line.startswith("result ") and not identifier:
            result = json.loads(line.removeprefix("result "))
            if (result["about"], result["site"]) == item[0]:
                identifier = re.search(r"[kmprt]\d{5}-[a-f]", line)
        if item and line.startswith(
            f"user: Whatever you call a tool for about {item[0][0]} in {item[0][1]},"
        ):
            ticket = re.search(r"T\d{7}", line)
    amount = re.search(
        re.escape(action["amount"][1]).replace(re.escape("{}"), r"(\d+)"), question
    )
    choices = action["choice"]["values"].items()
    (choice,) = (value for value, words in choices if f"; {words}." in question)
    people = re.search(r"Let ([^.]*) know\.$", question)
    assert identifier
    assert amount
    assert people
    values: dict[str, Any] = {
        "Identifier.": identifier[0],
        action["amount"][0]: int(amount[1]),
        action["choice"]["about"]: choice,
        "People to inform, in order.": people[1].split(", then "),
    }
    if ticket:
        values["Ticket, only where a rule demands one."] = ticket[0]
    arguments = {}
    for field, schema in tools[name]["parameters"]["properties"].items():
        if schema["description"] in values:
            arguments[field] = values[schema["description"]]
    return json.dumps({"name": name, "arguments": arguments})
