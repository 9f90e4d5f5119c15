"""The answers of the lexical model: the tool and the log entry that share the most words with the question."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from helm_longctx.benchmarks.tool_calls.prompts import NO_CALL, TEMPLATE
from helm_longctx.tasks import Message
from helm_longctx.tasks.prompt import CONTEXT

_WORD = re.compile(r"[A-Za-z]{3,}")
_IDENTIFIER = re.compile(r"\b[kmprt]\d{5}-[a-f]\b")
_AMOUNT = re.compile(r"\b\d{1,2}\b")
_PEOPLE = re.compile(r"\bLet ([\w, ]{1,400}) know\.")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _best(texts: Sequence[str], question: set[str]) -> int:
    """Return the number of the first text that shares the most words with a question."""
    shared = [len(_words(text) & question) for text in texts]
    return shared.index(max(shared))


def answer_by_words(messages: Sequence[Message]) -> str | None:
    """Answer with a search for the question's words."""
    fields = TEMPLATE.parse(messages[-1]["content"])
    if fields is None:
        return None
    question = fields["question"]
    asked = _words(question)
    lines = fields["tools"].splitlines()
    if not lines:
        return NO_CALL
    tool = json.loads(lines[_best(lines, asked)])
    identifier = _IDENTIFIER.search(question)
    if identifier is None:
        results = []
        for line in fields[CONTEXT].splitlines():
            if line.startswith("result "):
                results.append(line)
        result = results[_best(results, asked)] if results else ""
        identifier = _IDENTIFIER.search(result)
    amount = _AMOUNT.search(question)
    people = _PEOPLE.search(question)
    values: dict[str, Any] = {
        "Identifier.": identifier[0] if identifier else "",
        "People to inform, in order.": people[1].split(", then ") if people else [],
    }
    return json.dumps(
        {
            "name": tool["name"],
            "arguments": _fill_schema(tool["parameters"], values, amount),
        }
    )


def _fill_schema(
    schema: Mapping[str, Any],
    values: Mapping[str, Any],
    amount: re.Match[str] | None,
) -> dict[str, Any]:
    """Return arguments for a schema, with the first choice where there are several."""
    arguments: dict[str, Any] = {}
    for name in schema["required"]:
        part = schema["properties"][name]
        if "enum" in part:
            arguments[name] = part["enum"][0]
        elif part["type"] == "integer":
            arguments[name] = int(amount[0]) if amount else 0
        else:
            arguments[name] = values.get(part["description"], "")
    return arguments
