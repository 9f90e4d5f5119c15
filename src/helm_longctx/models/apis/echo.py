"""Log-probabilities of given texts from servers: how they are asked for, and how they are read.

There are three ways: `echo` with `logprobs` in OpenAI's completions (vLLM, SGLang, llama-cpp-python), `prompt_logprobs`
(vLLM), and SGLang's own `/generate`. A probe finds the first that works. Read in the code of vLLM
(entrypoints/openai/completion/serving.py), SGLang (srt/entrypoints) and llama-cpp-python 0.3 (llama.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from helm_longctx.failures import Failure, FailureError
from helm_longctx.helm_api import GeneratedOutput, Request, RequestResult, Token
from helm_longctx.models.apis import protocol
from helm_longctx.models.apis.protocol import Body
from helm_longctx.models.apis.sending import ask_again
from helm_longctx.models.results import (
    LongContextResult,
    add_facts,
    facts_of,
    failure_of,
    usage_of,
)
from helm_longctx.models.sampling import with_fields
from helm_longctx.models.scoring import (
    ScoringRequest,
    scored_output,
    scored_texts,
    windows_output,
)
from helm_longctx.tasks.answer import AnswerFacts, Usage, make_distributions
from helm_longctx.tasks.logprobs import split_windows

ECHO = "echo"
_PROMPT_LOGPROBS = "prompt_logprobs"
GENERATE = "generate"

_WAYS: Mapping[str, Body] = {
    # Zero tokens would be no limit to llama-cpp-python.
    ECHO: {
        "max_tokens": 1,
        "temperature": 0.0,
        "echo": True,
        "logprobs": 1,
    },
    _PROMPT_LOGPROBS: {
        "max_tokens": 1,
        "temperature": 0.0,
        "prompt_logprobs": 0,
    },
    GENERATE: {
        "sampling_params": {"max_new_tokens": 1, "temperature": 0.0},
        **{
            "return_logprob": True,
            "logprob_start_len": 0,
            "return_text_in_logprobs": True,
        },
    },
}
"""The fields of a body in each way."""

_TOP = {
    ECHO: "logprobs",
    _PROMPT_LOGPROBS: "prompt_logprobs",
    GENERATE: "top_logprobs_num",
}
"""The field with the number of the most likely tokens."""

COPIED = " ".join(["river lamp piano stone tiger cloud bread knife"] * 4)
_NEW = " zebra"
"""The two parts of the probe: every language model predicts the end of the first better than its start, and the second.

Some servers give a token the number of another one: llama-cpp-python gives its repetition's, if the model has no token
for the start of a text.
"""

_APART = 2.0
"""Nats by which the probe's parts differ. Only differences count, so that a damaged model can be compared, too."""


@dataclass(frozen=True)
class EchoRequest(Request):
    """A request for the log-probabilities of the tokens of its prompt.

    Args:
        way: one of `_WAYS`.
        answer: the end of the prompt whose tokens are wanted. If it is empty, all of them are.
        spans, top: see `SpanRequest`; without spans there are no further tokens.
    """

    way: str = ECHO
    answer: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    top: int = 0

    @property
    def fields(self) -> Body:
        """The fields of the body that ask for log-probabilities."""
        return {**_WAYS[self.way], **({_TOP[self.way]: self.top} if self.spans else {})}


def shorten_reply(request: EchoRequest, reply: Body) -> Body:
    """Return a reply with only the tokens that a request wants, because a long prompt has hundreds of thousands.

    Raises a `FailureError` if the reply has no log-probabilities of the prompt's tokens.
    """
    protocol.check_error(reply)
    try:
        texts, logprobs, tops = _read_tokens(request.way, reply)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise FailureError(
            Failure.MALFORMED,
            "the server's answer has no log-probabilities of the prompt",
        ) from error
    if not texts or len(texts) != len(logprobs):
        raise FailureError(
            Failure.MALFORMED,
            "the server's answer has no log-probabilities of the prompt",
        )
    pairs = list(zip(texts, _read_logprobs(logprobs), strict=True))
    kept: Body = {}
    for name in ("model", "usage"):
        if name in reply:
            kept[name] = reply[name]
    if "meta_info" in reply:
        kept["usage"] = {
            name: reply["meta_info"].get(name) or 0
            for name in ("prompt_tokens", "completion_tokens")
        }
    if request.spans:
        spans = []
        for part in find_span_tokens(texts, len(request.prompt), request.spans):
            spans.append([(*pairs[number], tops[number]) for number in part])
        return {
            **kept,
            "tokens": [],
            "spans": spans,
        }
    # Without a start, the tokens are compared with the tokens of the prompt without the answer.
    if request.answer:
        start = find_answer_start(texts, request.answer)
    else:
        start = 0
    return {
        **kept,
        "tokens": pairs[start or 0 :],
        "is_whole": not start,
    }


def parse_reply(reply: Body) -> RequestResult:
    """Return the result of a shortened reply. Its completion has the tokens."""
    tokens = []
    for text, logprob in reply["tokens"]:
        tokens.append(Token(str(text), float(logprob)))
    if "spans" in reply:
        distributions = make_distributions(reply["spans"])
    else:
        distributions = None
    return LongContextResult(
        success=True,
        embedding=[],
        completions=[GeneratedOutput("", 0.0, tokens, {"reason": "endoftext"})],
        cached=False,
        facts=AnswerFacts(is_whole=reply.get("is_whole"), distributions=distributions),
    )


def _read_tokens(
    way: str,
    reply: Body,
) -> tuple[list[str], list[Any], Sequence[Mapping[str, float]]]:
    """Return the tokens in a reply, what stands there for their log-probabilities, and the most likely tokens."""
    if way == ECHO:
        logprobs = reply["choices"][0]["logprobs"]
        # The last token is the one that was generated. llama-cpp-python generates none at the end of a text.
        end = len(logprobs["tokens"]) - int(
            reply.get("usage", {}).get("completion_tokens", 1)
        )
        every: list[Mapping[str, float] | None] = (
            logprobs.get("top_logprobs") or [None] * end
        )
        tops = [top or {} for top in every]
        texts = list(map(str, logprobs["tokens"][:end]))
        return texts, logprobs["token_logprobs"][:end], tops[:end]
    if way == _PROMPT_LOGPROBS:
        texts = []
        tops = []
        own = []
        for position in reply["choices"][0]["prompt_logprobs"]:
            candidates = [*(position or {}).values()]
            top = {}
            for token in candidates:
                top[str(token["decoded_token"])] = token["logprob"]
            tops.append(top)
            # The prompt's own token comes before the most likely ones. At the first position there is none.
            if candidates:
                texts.append(str(candidates[0]["decoded_token"] or ""))
                own.append(candidates[0]["logprob"])
            else:
                texts.append("")
                own.append(None)
        return texts, own, tops
    rows = reply["meta_info"]["input_token_logprobs"]
    tops = []
    for likely in reply["meta_info"].get("input_top_logprobs") or [[]] * len(rows):
        tops.append({str(text): value for value, _, text in likely or []})
    return [str(row[2] or "") for row in rows], [row[0] for row in rows], tops


def find_way(client: Any, deployment: str) -> tuple[str | None, str]:
    """Return the first way that a server offers, and otherwise why it offers none."""
    reasons = []
    for way in _WAYS:
        result = ask_again(
            client,
            EchoRequest(deployment, deployment, prompt=COPIED + _NEW, way=way),
        )
        if failure_of(result) is not None:
            reasons.append(f"{way}: {result.error}")
            continue
        tokens = result.completions[0].tokens
        start = (
            find_answer_start([token.text for token in tokens], _NEW.strip())
            or len(tokens) - 1
        )
        values = [token.logprob for token in tokens]
        first = values[1 : start // 4]
        copied = values[start // 2 : start]
        if first:
            # The last copied token and the new one tell whether tokens have the numbers of their neighbours.
            is_aligned = copied[-1] > max(
                values[start] + _APART, fmean(copied) - _APART
            )
            if is_aligned and fmean(copied) - fmean(first) > _APART:
                return way, ""
        reasons.append(
            f"{way}: its numbers do not belong to the text's tokens, or the model"
            " cannot repeat a text"
        )
    return None, "; ".join(reasons)


def score(client: Any, request: ScoringRequest, way: str) -> RequestResult:
    """Return the log-probabilities that a request asks for, with a request to the server for each text."""
    results: list[RequestResult] = []
    outputs: list[GeneratedOutput] = []
    prompts: dict[str, Sequence[str]] = {}
    for number, (prompt, answer) in enumerate(scored_texts(request, request.prompt)):
        wanted = answer if request.answers else ""
        asked = with_fields(
            EchoRequest,
            request,
            prompt=prompt + answer,
            way=way,
            answer=wanted,
        )
        results.append(client.make_request(asked))
        if failure_of(results[-1]) is not None:
            return results[-1]
        output = results[-1].completions[0]
        tokens = []
        for token in output.tokens:
            tokens.append((token.text, token.logprob))
        if not request.answers:
            windows = split_windows([logprob for _, logprob in tokens[1:]])
            return add_facts(_join(results, [windows_output(windows)]), windows=windows)
        if facts_of(results[-1]).is_whole:
            if prompt not in prompts:
                results.append(
                    client.make_request(
                        with_fields(EchoRequest, request, prompt=prompt, way=way)
                    )
                )
                if failure_of(results[-1]) is not None:
                    return results[-1]
                prompts[prompt] = [
                    token.text for token in results[-1].completions[0].tokens
                ]
            pairs = zip(tokens, prompts[prompt], strict=False)
            same = min(len(tokens), len(prompts[prompt]))
            different = (
                number
                for number, ((text, _), other) in enumerate(pairs)
                if text != other
            )
            tokens = tokens[next(different, same) :]
        if not tokens:
            raise FailureError(
                Failure.MALFORMED, "the server's answer has no token of the gold answer"
            )
        outputs.append(
            scored_output(request.answers[number % len(request.answers)], tokens)
        )
    return _join(results, outputs)


def _join(
    results: Sequence[RequestResult],
    outputs: list[GeneratedOutput],
) -> RequestResult:
    times = []
    for result in results:
        if result.request_time is not None:
            times.append(result.request_time)
    joined = replace(
        results[0],
        completions=outputs,
        cached=all(result.cached for result in results),
        request_time=sum(times) if times else None,
    )
    known = []
    for usage in map(usage_of, results):
        if usage:
            known.append(usage)
    is_complete = len(known) == len(results)
    return add_facts(
        joined, usage=Usage.sum(known) if is_complete else None, is_whole=None
    )


def find_answer_start(tokens: Sequence[str], answer: str) -> int | None:
    """Return the number of the first token of an answer at the end of a text, if the tokens join to it.

    A token that the answer shares with the text before it counts as one of the answer's.
    """
    tail = ""
    for number in range(len(tokens) - 1, -1, -1):
        tail = tokens[number] + tail
        if len(tail) >= len(answer):
            return number if tail.endswith(answer) else None
    return None


def _read_logprobs(values: Sequence[Any]) -> list[float]:
    """Check and return log-probabilities in a reply. The first token of a text has none.

    Raises a `FailureError` if another one is missing, or is not a finite number up to 0.
    """
    logprobs = []
    for number, value in enumerate(values):
        if value is None and number == 0:
            value = 0.0
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not -1e5 < value < 1e-3
        ):
            raise FailureError(
                Failure.MALFORMED,
                "a token of the text has no log-probability in the server's answer",
            )
        logprobs.append(min(float(value), 0.0))
    return logprobs


def find_span_tokens(
    tokens: Sequence[str],
    characters: int,
    spans: Sequence[tuple[int, int]],
) -> list[list[int]]:
    """Return the numbers of the tokens of each part of a text. Offsets are counted from the text's end.

    A server can put a token before the text, but none after it.
    """
    parts: list[list[int]] = [[] for _ in spans]
    end = characters
    for number in range(len(tokens) - 1, 0, -1):  # the first token has no distribution
        start = end - len(tokens[number])
        for part, (first, last) in zip(parts, spans, strict=True):
            if max(first, start) < min(last, end):
                part.append(number)
        end = start
    return [sorted(part) for part in parts]
