"""The second request of a question whose first answer is not the one that is scored.

The journal has both answers under their own names, so that a run that was stopped between them does not repeat the
first request. The run's result has the scored answer first, and then the first answer.
"""

from collections.abc import Callable
from dataclasses import replace

from helm_longctx.helm_api import Request, RequestResult
from helm_longctx.models.results import (
    LongContextResult,
    add_facts,
    facts_of,
    failure_of,
    usage_of,
)
from helm_longctx.tasks.answer import NO_FACTS, Usage
from helm_longctx.tasks.prompt import FollowUp
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.token_estimate import estimate_tokens


def follow_up(request: Request, sample: Sample, first: RequestResult) -> Request | None:
    """Return the second request with its whole prompt, if there is one and the first one has an answer.

    It has the style, the model, the parameters and the system message of the first request.
    """
    if sample.follow_up is None or failure_of(first) is not None:
        return None
    text = FollowUp(**sample.follow_up).prompt(first.completions[0].text, sample.style)
    second = replace(request, max_tokens=_output_tokens(request, sample))
    if request.messages:
        system = []
        for message in request.messages:
            if message["role"] == "system":
                system.append(message)
        return replace(second, messages=[*system, {"role": "user", "content": text}])
    return replace(second, prompt=text)


def join_answers(first: RequestResult, last: RequestResult) -> RequestResult:
    """Return the result of both requests: the last answer, then the first one. A failure is returned as it is."""
    if failure_of(last) is not None:
        return last
    seconds = []
    for result in (first, last):
        if result.request_time is not None:
            seconds.append(result.request_time)
    joined = replace(
        last,
        completions=[*last.completions, *first.completions],
        cached=first.cached and last.cached,
        request_time=sum(seconds) if seconds else None,
    )
    before = usage_of(first)
    after = usage_of(last)
    # Tokens of one request would look like the tokens of both, and the limit in dollars would count too little.
    if before and after:
        usage = Usage.sum([before, after])
    else:
        usage = None
    return add_facts(
        joined,
        first=facts_of(first),
        usage=usage,
        # The speed of one request is not the speed of both.
        first_token_seconds=None,
        peak_memory=None,
    )


def split_answers(joined: RequestResult) -> tuple[RequestResult, RequestResult]:
    """Return the results of the first and of the last request, of which `join_answers` makes the same result again."""
    *last, first = joined.completions
    facts = facts_of(joined)
    before = LongContextResult(
        success=True,
        embedding=[],
        completions=[first],
        cached=joined.cached,
        request_datetime=joined.request_datetime,
        facts=facts.first or NO_FACTS,
    )
    after = add_facts(replace(joined, completions=last), first=None)
    total = usage_of(joined)
    part = usage_of(before)
    if total is None or part is None:
        return before, after
    return before, add_facts(after, usage=total.minus(part))


def most_follow_up_tokens(
    request: Request,
    sample: Sample,
    count: Callable[[str], int] = estimate_tokens,
) -> Usage:
    """Return the tokens of the second request if both answers reach their limits; no tokens if there is none."""
    if sample.follow_up is None:
        return Usage()
    second = FollowUp(**sample.follow_up)
    shown = (len(second.parts) - 1) * request.max_tokens
    return Usage(
        count(second.prompt("")) + shown, output_tokens=_output_tokens(request, sample)
    )


def _output_tokens(request: Request, sample: Sample) -> int:
    """Return the output budget. It is raised and limited in the same way as the budget of the first request."""
    assert sample.follow_up is not None
    raised = max(0, request.max_tokens - sample.max_tokens)
    return int(
        min(
            sample.follow_up["max_tokens"] + sample.thinking_tokens + raised,
            request.max_tokens,
        )
    )
