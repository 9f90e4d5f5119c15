"""The second request of a question whose first answer is not the one that is scored.

The journal has both answers under their own names, so that a run that was stopped between them does not repeat the
first request. The run's result has the scored answer first, and then the first answer.
"""

from __future__ import annotations

from dataclasses import astuple, replace

from helm.benchmark.adaptation.request_state import RequestState
from helm.common.request import Request, RequestResult

from helm_longctx.apis.usage import Usage, usage_of, with_usage
from helm_longctx.failures import failure_of
from helm_longctx.protocol.prompt import FollowUp
from helm_longctx.protocol.sample import Sample
from helm_longctx.protocol.token_estimate import estimate_tokens


def follow_up(state: RequestState, first: RequestResult) -> Request | None:
    """Return the second request with its whole prompt; None if there is none, or if the first one has no answer.

    It has the form, the model and the parameters of the first request.
    """
    sample = Sample.from_json(state.instance.extra_data)
    if sample.follow_up is None or failure_of(first) is not None:
        return None
    text = FollowUp(**sample.follow_up).prompt(first.completions[0].text)
    request = replace(state.request, max_tokens=_output_tokens(state, sample))
    if request.messages:
        return replace(request, messages=[{"role": "user", "content": text}])
    return replace(request, prompt=text)


def join_answers(first: RequestResult, last: RequestResult) -> RequestResult:
    """Return the result of both requests: the last answer, then the first one. A failure is returned as it is."""
    if failure_of(last) is not None:
        return last
    seconds = [result.request_time for result in (first, last) if result.request_time is not None]
    joined = replace(
        last,
        completions=[*last.completions, *first.completions],
        cached=first.cached and last.cached,
        request_time=sum(seconds) if seconds else None,
    )
    usages = [usage for result in (first, last) if (usage := usage_of(result))]
    return with_usage(joined, Usage(*map(sum, zip(*map(astuple, usages), strict=True))) if usages else None)


def most_follow_up_tokens(state: RequestState) -> Usage:
    """Return the tokens of the second request if both answers reach their limits; no tokens if there is none."""
    sample = Sample.from_json(state.instance.extra_data)
    if sample.follow_up is None:
        return Usage()
    text = estimate_tokens(FollowUp(**sample.follow_up).prompt(""))
    return Usage(text + state.request.max_tokens, output_tokens=_output_tokens(state, sample))


def _output_tokens(state: RequestState, sample: Sample) -> int:
    """Return the output budget, which is raised and limited in the same way as that of the first request."""
    assert sample.follow_up is not None
    raised = max(0, state.request.max_tokens - sample.max_tokens)
    return int(min(sample.follow_up["max_tokens"] + sample.thinking_tokens + raised, state.request.max_tokens))
