"""Our result of a request: HELM's, with the facts of the answer for which HELM has no field.

Results of HELM's own clients have no facts. `answer_of` and `failure_of` read both kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import dacite

from helm_longctx.failures import (
    Ending,
    Failure,
    FailureError,
    failure_of_reason,
    failure_of_text,
)
from helm_longctx.helm_api import ErrorFlags, GeneratedOutput, RequestResult
from helm_longctx.redaction.text import redact
from helm_longctx.tasks.answer import NO_FACTS, Answer, AnswerFacts, Usage, check_usage

_LONGEST_NAME = 200


@dataclass
class LongContextResult(RequestResult):
    """HELM's result with the facts of the answer. HELM's own code passes it on, and writes the facts to its files."""

    facts: AnswerFacts = NO_FACTS


def facts_of(result: RequestResult) -> AnswerFacts:
    """Return the facts of a result. One of HELM's own clients has none."""
    if isinstance(result, LongContextResult):
        return result.facts
    return NO_FACTS


def add_facts(result: RequestResult, **facts: Any) -> RequestResult:
    """Return a result with further or other facts; the names are the fields of `AnswerFacts`."""
    known = replace(facts_of(result), **facts)
    values = {}
    for name, value in vars(result).items():
        if name != "facts":
            values[name] = value
    return LongContextResult(**values, facts=known)


def parse_result(content: Mapping[str, Any]) -> RequestResult:
    """Make a result from plain data.

    Raises:
        DaciteError: a field is missing.
        ValueError, TypeError, KeyError: the facts have another form.
    """
    plain = {}
    for name, value in content.items():
        if name != "facts":
            plain[name] = value
    # HELM's clients return whole numbers where floats are declared.
    result = dacite.from_dict(RequestResult, plain, dacite.Config(check_types=False))
    facts = content.get("facts")
    if facts:
        return LongContextResult(**vars(result), facts=AnswerFacts.from_json(facts))
    return result


def usage_of(result: RequestResult) -> Usage | None:
    """Return the tokens of a result. None if the provider reported none that a request can have."""
    usage = facts_of(result).usage
    return None if usage is None else check_usage(usage)


def served_model_of(name: object) -> str | None:
    """Return the name of the model in a reply, which can have any value there; None if it is no name."""
    if not name or not isinstance(name, str):
        return None
    return name[:_LONGEST_NAME]


def finish_reason_of(output: GeneratedOutput) -> str:
    """Return why an output ended, or empty if that is not known."""
    return str((output.finish_reason or {}).get("reason") or "")


def answer_of(result: RequestResult) -> Answer:
    """Return the answer of a result, or why there is none.

    The first completion is the answer. Further ones belong to scored texts, or to the first of two requests.
    """
    # An answer is made several times for each question, and each `dataclasses.replace` would take as long as all else.
    values = {
        **vars(facts_of(result)),
        "failure": failure_of(result),
        "usage": usage_of(result),
        "error": result.error or "",
        "seconds": result.request_time,
        "is_cached": result.cached,
    }
    if result.completions:
        output, *others = result.completions
        values |= _output_values(output)
        first = values["first"]
        if first is not None and others:
            values["first"] = Answer(**{**vars(first), **_output_values(others[-1])})
    return Answer(**values)


def _output_values(output: GeneratedOutput) -> dict[str, Any]:
    """Return the fields of an answer that are of its output."""
    return {
        "output": _text_of(output),
        "thinking": output.thinking.text if output.thinking else None,
        "finish_reason": finish_reason_of(output),
    }


def _text_of(output: GeneratedOutput) -> str:
    # HELM's clients pass on any JSON value instead of the text.
    if isinstance(output.text, str):
        return output.text
    return ""


def with_cut(result: RequestResult) -> RequestResult:
    """Return a result whose answer has as many tokens as were allowed as one that was cut, whatever its finish reason.

    Some servers say `stop`. Providers that do not count reasoning towards the limit are considered, too.
    """
    usage = usage_of(result)
    sent = facts_of(result).sent
    limit = sent.get("max_completion_tokens", sent.get("max_tokens"))
    if usage is None or not limit or not result.completions:
        return result
    if limit not in (usage.output_tokens, usage.output_tokens - usage.reasoning_tokens):
        return result
    first, *others = result.completions
    cut = replace(first, finish_reason={"reason": Ending.CUT.value})
    return replace(result, completions=[cut, *others])


def failure_of(result: RequestResult) -> Failure | None:
    """Return why a result is not an answer. None if it is an answer; an empty text is one.

    `success` is not enough: HELM's client for OpenAI reports a flagged prompt as a success with an empty text, and
    clients pass on values that are not text.
    """
    if not result.success:
        known = facts_of(result).failure
        return known or _classify_error(result)
    for completion in result.completions:
        kind = failure_of_reason((completion.finish_reason or {}).get("reason"))
        if kind is not None:
            return kind
    texts = []
    for completion in result.completions:
        texts.append(completion.text)
    if not texts or not all(isinstance(text, str) for text in texts):
        return Failure.MALFORMED
    return None


def _classify_error(result: RequestResult) -> Failure:
    """Return the kind of failure of a client that does not name it."""
    kind = failure_of_text(result.error or "")
    # HELM leaves `is_retriable` at None where a client does not know. Only False says that the failure is final.
    is_final = (
        result.error_flags is not None and result.error_flags.is_retriable is False
    )
    if is_final and kind is Failure.UNKNOWN:
        return Failure.BAD_REQUEST
    return kind


def check_result(result: RequestResult) -> RequestResult:
    """Return a result that is an answer; raise a `FailureError` with the reason for another one."""
    if (failure := failure_of(result)) is not None:
        raise FailureError(failure, result.error or "")
    return result


def make_text_result(
    text: str,
    started_at: float,
    seconds: float,
    copies: int = 1,
) -> RequestResult:
    """Return the result of an answer that was made in this process.

    Args:
        started_at: when the work on the answer began, in seconds since 1970.
        seconds: how long it took.
        copies: the number of completions, which are all the same.
    """
    completion = GeneratedOutput(text=text, logprob=0, tokens=[])
    return RequestResult(
        success=True,
        embedding=[],
        completions=[completion] * copies,
        cached=False,
        request_time=seconds,
        request_datetime=int(started_at),
    )


def make_failure(kind: Failure, error: str) -> RequestResult:
    """Return the result of a request that has no answer, with secrets redacted from the error.

    It has one empty completion, without which HELM's pages cannot show it.
    """
    # HELM would discard the whole run after a fatal error, and an error without flags counts as fatal. Our runner
    # decides itself (`Failure.ends_run`).
    flags = ErrorFlags(is_retriable=kind.is_retriable, is_fatal=False)
    return LongContextResult(
        success=False,
        embedding=[],
        completions=[
            GeneratedOutput(
                text="",
                logprob=0,
                tokens=[],
            )
        ],
        cached=False,
        error=redact(error),
        error_flags=flags,
        facts=AnswerFacts(failure=kind),
    )


def describe_failure(result: RequestResult) -> str:
    """Return the kind of failure and the message of a result without an answer, for people."""
    return str(answer_of(result).problem)
