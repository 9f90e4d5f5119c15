"""Requests for log-probabilities of given texts, with HELM's `echo_prompt`, no new tokens and `Token.logprob`.

The client of a deployment that can answer them has `score_support`, which the runner calls before the first request.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from helm.common.request import GeneratedOutput, Request, RequestResult, Token

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, FailureError
from helm_longctx.models.sampling import with_fields

WINDOW = 1024
"""Tokens of a text whose mean log-probability is one value of its curve."""

LEAST_LEFT = 1e-6
"""The least probability of all tokens that are not told: log-probabilities are told with six digits."""

SEPARATOR = " "
"""The text between a prompt that does not end with white space and a gold answer."""


@dataclass(frozen=True)
class ScoringRequest(Request):
    """A request for the log-probabilities of gold answers after a prompt, and after the prompt without its context.

    The result has a completion for each answer after the prompt, and then, if there is a context, one for each answer
    after the rest. Its tokens are those of the answer, with the token that the last characters of the prompt and the
    first ones of the answer share, if there is one.

    Args:
        answers: the gold answers. Without any, the tokens of the prompt itself are scored, and the completion has
            their `Window`s.
        context: [start, end) of the context in the prompt, in characters; None if it has none.
    """

    answers: tuple[str, ...] = ()
    context: tuple[int, int] | None = None


def with_answers(
    request: Request, answers: Sequence[str], context: tuple[int, int] | None
) -> ScoringRequest:
    """Make the request for the log-probabilities of gold answers after the prompt of a request."""
    greedy = {"echo_prompt": True, "max_tokens": 0, "stop_sequences": [], "temperature": 0.0}
    return with_fields(ScoringRequest, request, **greedy, answers=tuple(answers), context=context)


@dataclass(frozen=True)
class SpanRequest(Request):
    """A request for the distributions of a model at the tokens of parts of its prompt.

    Args:
        spans: [start, end) of each part in the prompt, in characters, in order.
        top: number of the most likely tokens at each place.
    """

    spans: tuple[tuple[int, int], ...] = ()
    top: int = 5


@dataclass(frozen=True)
class AnswerRequest(Request):
    """A request for an answer and the distributions of a model at its tokens.

    Args:
        top: number of the most likely tokens at each place.
    """

    top: int = 5


class Distribution(NamedTuple):
    """What is known of a model's distribution at a token.

    Args:
        text: the token that stands there.
        logprob: its log-probability.
        top: the log-probabilities of the most likely tokens, by their texts.
    """

    text: str
    logprob: float
    top: Mapping[str, float]

    @property
    def best(self) -> str:
        """The most likely token."""
        return max(self.top, key=lambda text: self.top[text]) if self.top else self.text

    @property
    def largest_missing(self) -> float:
        """The largest log-probability that a token which is not told can have.

        It is at most that of the least likely token of the list, and all tokens together have a probability of 1. The
        token that stands there can be told although it is less likely than others, so it is not taken for the list's.
        """
        listed = [value for text, value in self.top.items() if text != self.text]
        told = math.fsum(map(math.exp, {**self.top, self.text: self.logprob}.values()))
        return min([math.log(max(1 - told, LEAST_LEFT)), *listed])

    def find_logprob(self, text: str) -> float:
        """Return a token's log-probability, or if it is not told, the largest one that it can have."""
        if text == self.text:
            return self.logprob
        return self.top.get(text, self.largest_missing)


def with_distributions(
    result: RequestResult, parts: Sequence[Sequence[Sequence[Any]]]
) -> RequestResult:
    """Return a result of a `SpanRequest` or an `AnswerRequest` with the fields of `Distribution` at each token."""
    output = result.completions[0]
    return replace(
        result,
        completions=[
            replace(output, finish_reason={**(output.finish_reason or {}), "spans": parts})
        ],
    )


def distributions_of(result: RequestResult) -> list[list[Distribution]]:
    """Return the distributions at the tokens of each part that was asked for.

    Raises a `FailureError` if an answer with a text has none.
    """
    output = result.completions[0]
    parts = (output.finish_reason or {})["spans"]
    if output.text and not any(parts):
        raise FailureError(Failure.MALFORMED, "the server's answer has no log-probabilities")
    return [[Distribution(*fields) for fields in part] for part in parts]


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
                "the chat template changes the prompt, so its context is not known; give style=completion"
            )
        prompts.append(prompt[: shift + start] + prompt[shift + end :])
    for text in prompts:
        gap = SEPARATOR if text and not text[-1].isspace() and not request.messages else ""
        for answer in request.answers:
            yield text, gap + answer


def scored_output(answer: str, tokens: Sequence[tuple[str, float]]) -> GeneratedOutput:
    """Return the completion of a scored answer.

    Args:
        tokens: text and log-probability of each of its tokens.
    """
    found = [Token(text, logprob) for text, logprob in tokens]
    return GeneratedOutput(
        answer, math.fsum(token.logprob for token in found), found, {"reason": "endoftext"}
    )


class Window(NamedTuple):
    """A part of a text of at most `WINDOW` tokens.

    Args:
        logprob: the mean log-probability of its tokens.
        tokens: the number of its tokens that have a log-probability.
    """

    logprob: float
    tokens: int

    @property
    def is_representative(self) -> bool:
        """Whether it has half of the tokens of a full window, so that its mean can stand for its position."""
        return self.tokens >= WINDOW // 2 - 1


def split_windows(logprobs: Sequence[float]) -> list[Window]:
    """Return the windows of a text, which have all of its tokens but the first.

    Args:
        logprobs: of all tokens except the first, which no text precedes.
    """
    windows = []
    for start in range(0, len(logprobs) + 1, WINDOW):
        values = logprobs[max(start - 1, 0) : start + WINDOW - 1]
        if values:
            windows.append(Window(logprob=math.fsum(values) / len(values), tokens=len(values)))
    return windows


def mean_logprob(windows: Sequence[Window]) -> float:
    """Return the mean log-probability of the tokens of a text, in nats. Each token counts the same."""
    tokens = sum(window.tokens for window in windows)
    return math.fsum(window.logprob * window.tokens for window in windows) / tokens


WINDOWS = "windows"
"""The windows of a completion in its finish reason, because HELM has no field for them."""


def windows_output(windows: Sequence[Window]) -> GeneratedOutput:
    """Return the completion of a text whose own tokens were scored."""
    total = math.fsum(window.logprob * window.tokens for window in windows)
    return GeneratedOutput(
        text="",
        logprob=total,
        tokens=[],
        finish_reason={"reason": "endoftext", WINDOWS: [list(window) for window in windows]},
    )


def windows_of(output: GeneratedOutput) -> list[Window]:
    """Return the windows of a completion that `windows_output` made."""
    assert output.finish_reason is not None
    return [Window(*fields) for fields in output.finish_reason[WINDOWS]]


def count_texts(request: Request) -> int:
    """Return how many texts a server gets for a request, each in a request of its own."""
    if not isinstance(request, ScoringRequest):
        return 1
    return max(len(request.answers), 1) * (2 if request.answers and request.context else 1)


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


def check_scoring(client: Any, deployment: str, argument: str = "metric=likelihood") -> None:
    """Check that a deployment can give log-probabilities of texts, before a run sends its first request.

    Raises:
        InputError: it cannot. The message has the reason.
    """
    if not hasattr(client, "score_support"):
        raise InputError(
            f"{argument}: {deployment} ({type(client).__name__}) gives no log-probabilities of given texts; use"
            " a local model, in Python a model of transformers or an engine, or a server of vLLM, SGLang or"
            " llama-cpp-python with type: completions"
        )
    if reason := client.score_support():
        raise InputError(
            f"{argument}: {deployment} gives no log-probabilities of given texts: {reason}"
        )
