"""Requests for log-probabilities of given texts, with HELM's `echo_prompt`, no new tokens and `Token.logprob`.

The client of a deployment that can answer them has `score_support`. The runner calls it before the first request.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, FailureError
from helm_longctx.helm_api import GeneratedOutput, Request, RequestResult, Token
from helm_longctx.models.results import facts_of
from helm_longctx.models.sampling import with_fields
from helm_longctx.tasks.logprobs import Distribution, Window
from helm_longctx.tasks.request_settings import LIKELIHOOD, LONGPPL, MetricArgument

SEPARATOR = " "
"""The text between a prompt that does not end with white space and a gold answer."""


ScoreTokens = Callable[[Sequence[list[int]], Sequence[int]], Sequence[Sequence[float]]]
"""(token ids of texts, the first token that is scored in each) → the log-probabilities of its tokens from there."""


@dataclass(frozen=True)
class ScoringRequest(Request):
    """A request for the log-probabilities of gold answers after a prompt, and after the prompt without its context.

    The result has a completion for each answer after the prompt, and then, if there is a context, one for each answer
    after the rest. Its tokens are those of the answer, with the token that the last characters of the prompt and the
    first ones of the answer share, if there is one.

    Args:
        answers: the gold answers. Without any, the tokens of the prompt itself are scored, and the completion has
            their `Window`s.
        context: [start, end) of the context in the prompt, in characters, or None if it has none.
        finds_key_tokens: whether the facts of the answer have the key tokens of a prompt that is itself scored.
    """

    answers: tuple[str, ...] = ()
    context: tuple[int, int] | None = None
    finds_key_tokens: bool = False


def with_answers(
    request: Request,
    answers: Sequence[str],
    context: tuple[int, int] | None,
    finds_key_tokens: bool = False,
) -> ScoringRequest:
    """Make the request for the log-probabilities of gold answers after the prompt of a request."""
    greedy = {
        "echo_prompt": True,
        "max_tokens": 0,
        "stop_sequences": [],
        "temperature": 0.0,
    }
    return with_fields(
        ScoringRequest,
        request,
        **greedy,
        answers=tuple(answers),
        context=context,
        finds_key_tokens=finds_key_tokens,
    )


@dataclass(frozen=True)
class SpanRequest(Request):
    """A request for the distributions of a model at the tokens of parts of its prompt.

    Args:
        spans: [start, end) of each part in the prompt, in characters, in order.
        top: number of the most likely tokens at each position.
    """

    spans: tuple[tuple[int, int], ...] = ()
    top: int = 5


@dataclass(frozen=True)
class AnswerRequest(Request):
    """A request for an answer and the distributions of a model at its tokens.

    Args:
        top: number of the most likely tokens at each position.
    """

    top: int = 5


def distributions_of(result: RequestResult) -> Sequence[Sequence[Distribution]]:
    """Return the distributions at the tokens of each part that was asked for.

    Raises a `FailureError` if an answer with a text has none.
    """
    parts = facts_of(result).distributions or ()
    if result.completions[0].text and not any(parts):
        raise FailureError(
            Failure.MALFORMED, "the server's answer has no log-probabilities"
        )
    return parts


def scored_texts(request: ScoringRequest, prompt: str) -> Iterator[tuple[str, str]]:
    """Yield the text before each scored part, and this part with the separator, in the order of the completions.

    Args:
        prompt: the prompt as the model reads it, for example in a chat template; it ends as the request's does.
    """
    if not request.answers:
        yield "", prompt
        return
    prompts = [prompt]
    if request.context:
        # In a chat template, other text stands before and after the turn with the context.
        start, end = request.context
        shift = prompt.find(
            str(request.messages[-1]["content"]) if request.messages else request.prompt
        )
        if shift < 0:
            raise InputError(
                "the chat template changes the prompt, so its context is not known;"
                " give style=completion"
            )
        prompts.append(prompt[: shift + start] + prompt[shift + end :])
    for text in prompts:
        if text and not text[-1].isspace() and not request.messages:
            gap = SEPARATOR
        else:
            gap = ""
        for answer in request.answers:
            yield text, gap + answer


def scored_output(answer: str, tokens: Sequence[tuple[str, float]]) -> GeneratedOutput:
    """Return the completion of a scored answer.

    Args:
        tokens: text and log-probability of each of its tokens.
    """
    scored = []
    for text, logprob in tokens:
        scored.append(Token(text, logprob))
    return GeneratedOutput(
        answer,
        math.fsum(token.logprob for token in scored),
        scored,
        {"reason": "endoftext"},
    )


def windows_output(windows: Sequence[Window]) -> GeneratedOutput:
    """Return the completion of a text whose own tokens were scored. The result's facts have the windows."""
    total = math.fsum(window.logprob * window.tokens for window in windows)
    return GeneratedOutput(
        text="",
        logprob=total,
        tokens=[],
        finish_reason={"reason": "endoftext"},
    )


def count_texts(request: Request) -> int:
    """Return how many texts a server gets for a request, each in a request of its own."""
    if not isinstance(request, ScoringRequest):
        return 1
    return max(len(request.answers), 1) * (
        2 if request.answers and request.context else 1
    )


def input_tokens(request: Request, prompt_tokens: int, characters: int) -> int:
    """Return about how many tokens a server reads for a request: more than the prompt if gold answers are scored."""
    if not isinstance(request, ScoringRequest) or not request.answers:
        return prompt_tokens
    start, end = request.context or (0, characters)
    rest = round(prompt_tokens * (characters - (end - start)) / max(characters, 1))
    # No tokenizer makes more tokens of an answer than it has bytes.
    ends = sum(len(answer.encode("utf-8", "replace")) for answer in request.answers)
    return (
        len(request.answers) * (prompt_tokens + rest)
        + count_texts(request) // len(request.answers) * ends
    )


def check_scoring(
    client: Any,
    deployment: str,
    metric: MetricArgument = LIKELIHOOD,
) -> None:
    """Check that a deployment can give log-probabilities of texts, before a run sends its first request.

    Raises:
        InputError: it cannot. The message has the reason.
    """
    argument = f"metric={metric}"
    if metric == LONGPPL and not getattr(client, "gives_key_tokens", False):
        raise InputError(
            f"{argument}: {deployment} ({type(client).__name__}) finds no key tokens; use a local model, or in Python a"
            " model of transformers"
        )
    if not hasattr(client, "score_support"):
        raise InputError(
            f"{argument}: {deployment} ({type(client).__name__}) gives no"
            " log-probabilities of given texts; use a local model, in Python a model"
            " of transformers or an engine, or a server of vLLM, SGLang or"
            " llama-cpp-python with type: completions"
        )
    if reason := client.score_support():
        raise InputError(
            f"{argument}: {deployment} gives no log-probabilities of given texts: {reason}"
        )
