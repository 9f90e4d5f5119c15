"""Answered requests that metrics read."""

from __future__ import annotations

from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.scenarios.scenario import (
    CORRECT_TAG,
    Input,
    Instance,
    Output,
    Reference,
)
from helm.common.request import GeneratedOutput, Request, RequestResult

EXTRA = {
    "source": "official",
    "max_tokens": 9,
    "run_max_tokens": 9,
    "answer_prefix": "Corresponding value:",
    "style": "completion",
    "record": {},
}


def state(
    number: int,
    text: str | None,
    success: bool = True,
    task: str = "json_kv",
    **extra: Any,
) -> RequestState:
    references = [
        Reference(Output("v1"), [CORRECT_TAG]),
        Reference(Output("not this"), []),
    ]
    instance = Instance(
        Input("p"),
        references,
        "test",
        task,
        f"{task}-{number}",
        extra_data={**EXTRA, **extra},
    )
    completions = [GeneratedOutput(text, 0, [])] if text is not None else []
    result = RequestResult(
        success=success,
        embedding=[],
        completions=completions,
        cached=False,
        request_time=1.0,
    )
    return RequestState(
        instance,
        None,
        None,
        0,
        None,
        Request(),
        result,
        0,
        prompt_truncated=number == 0,
    )
