"""What is known of an answer besides its text: the provider's count of tokens, what was sent, and what the limit cut.

HELM's result has no fields for this. It is kept beside the finish reason of the first completion, which our journal and
`scenario_state.json` store as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from helm.common.request import RequestResult

_USAGE, _SENT = "usage", "sent"

_OPENED, _CLOSED = "<think>", "</think>"


@dataclass(frozen=True)
class Usage:
    """The tokens of a request as the provider counts them. What a provider does not report is 0.

    Args:
        input_tokens: tokens of the prompt, cached ones included.
        cached_tokens: tokens of the prompt that were read from the provider's cache.
        cache_write_tokens: tokens of the prompt that were written to the provider's cache.
        output_tokens: tokens that were generated, reasoning included.
        reasoning_tokens: tokens of the reasoning.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0


def usage_of(result: RequestResult) -> Usage | None:
    """Return the tokens of a result; None if the provider reported none."""
    stored = _finish(result).get(_USAGE)
    if not isinstance(stored, Mapping):
        return None
    return Usage(**{name: int(stored.get(name) or 0) for name in Usage.__dataclass_fields__})


def with_usage(result: RequestResult, usage: Usage | None) -> RequestResult:
    """Return a result that has the tokens; the same result if there are none, or if it has no completion."""
    return result if usage is None else _annotate(result, _USAGE, dict(vars(usage)))


def with_sent(result: RequestResult, parameters: Mapping[str, Any]) -> RequestResult:
    """Return a result that has what was sent besides the prompt: the body's other fields.

    It is the same result if it has no completion.
    """
    return _annotate(result, _SENT, dict(parameters))


def output_truncated(result: RequestResult) -> bool:
    """Whether the token limit ended the answer, or the reasoning before it."""
    return _finish(result).get("reason") == "length"


def thinking_unfinished(result: RequestResult) -> bool:
    """Whether the token limit was reached while the model was still reasoning, so that there is no answer.

    The reasoning is in a field of its own, is counted without being returned, or stands in the text in `<think>` tags.
    """
    if not output_truncated(result):
        return False
    first, usage = result.completions[0], usage_of(result)
    text = first.text.strip()
    if not text:
        return bool(first.thinking) or (usage is not None and usage.reasoning_tokens > 0)
    # An answer that quotes the tag somewhere else is an answer.
    return text.startswith(_OPENED) and _CLOSED not in text


def _finish(result: RequestResult) -> dict[str, Any]:
    return (result.completions[0].finish_reason or {}) if result.completions else {}


def _annotate(result: RequestResult, name: str, value: dict[str, Any]) -> RequestResult:
    if not result.completions:
        return result
    first, *others = result.completions
    finish = {"reason": "unknown", **(first.finish_reason or {}), name: value}
    return replace(result, completions=[replace(first, finish_reason=finish), *others])
