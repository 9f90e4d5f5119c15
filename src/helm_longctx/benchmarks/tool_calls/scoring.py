"""The metrics of tool calls: rules compare the calls of an answer with the right one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from helm_longctx.benchmarks.tool_calls.calls import (
    Call,
    are_equal,
    is_valid,
    read_calls,
)
from helm_longctx.benchmarks.tool_calls.prompts import NO_CALL
from helm_longctx.tasks import InputError, MetricValues, ScorerInput


def score(record: ScorerInput) -> MetricValues:
    """Compare the calls of an answer with the right one.

    An answer is right if it has the right call and no other, or `NO_CALL` and no call where none is right. `name` and
    `arguments` exist where a call is right, and `valid` exists if the answer has a call.
    """
    tools: Sequence[Mapping[str, Any]] = record.get("tools") or ()
    prediction = record["prediction"]
    calls = read_calls(prediction, tools)
    reference = record["references"][0]
    scores: MetricValues = {}
    if calls:
        scores["valid"] = float(all(_is_valid_call(call, tools) for call in calls))
    if reference == NO_CALL:
        scores["single"] = float(not calls)
        scores["exact"] = float(not calls and NO_CALL in prediction)
        return scores
    try:
        expected = json.loads(reference)
    except ValueError as error:
        raise InputError(
            f"tool_calls: the reference is neither {NO_CALL} nor a call as JSON"
        ) from error
    is_right_tool = bool(calls) and calls[0].name == expected["name"]
    has_arguments = bool(calls) and are_equal(calls[0].arguments, expected["arguments"])
    scores["single"] = float(len(calls) == 1)
    scores["name"] = float(is_right_tool)
    scores["arguments"] = float(has_arguments)
    scores["exact"] = float(len(calls) == 1 and is_right_tool and has_arguments)
    return scores


def _is_valid_call(call: Call, tools: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a call names a tool and fits its schema."""
    for tool in tools:
        if tool["name"] == call.name:
            return is_valid(call.arguments, tool["parameters"])
    return False


def can_read(record: ScorerInput) -> bool:
    """Whether an answer has a call, or says that there is none."""
    prediction = record["prediction"]
    return NO_CALL in prediction or bool(read_calls(prediction))
