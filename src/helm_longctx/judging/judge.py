"""Language models as judges: their settings, calls and replies, juries of several, and what they cost.

They are asked through HELM's clients and its request cache.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm.benchmark import model_deployment_registry as registry
from tqdm import tqdm

from helm_longctx.environment import page_address, require
from helm_longctx.errors import InputError, NotKeptError, describe_count
from helm_longctx.helm.patches import apply_seed_patch
from helm_longctx.helm.style import sends_messages
from helm_longctx.helm_api import Client, RequestResult, get_class_by_name
from helm_longctx.helm_log import helm_log
from helm_longctx.models.apis.calls import call_all
from helm_longctx.models.apis.prices import Prices, find_prices
from helm_longctx.models.apis.sending import Retries, Sender
from helm_longctx.models.results import (
    answer_of,
    describe_failure,
    usage_of,
)
from helm_longctx.models.sampling import SampledRequest
from helm_longctx.redaction.abbreviation import abbreviate, describe_error, digest
from helm_longctx.redaction.text import redact
from helm_longctx.run_settings import settings_in_use
from helm_longctx.tasks.answer import Usage

if TYPE_CHECKING:
    from helm_longctx.helm_api import AutoClient

_TRIES = 6
"""Attempts at a call that keeps failing."""

_MORE_TOKENS = f"give its deployment thinking_tokens, see {page_address('judges')}"

_CHARACTERS = 4
"""Approximate characters in an English token, for clients that do not pass on the provider's count of tokens."""

VerdictFields = Mapping[str, Any]
"""The grades that were parsed from a reply, by name."""


@dataclass(frozen=True)
class JudgeRequest:
    """A request to a judge.

    Args:
        seed: seed of the first reply, for judges that take one (OpenAI's protocol). None sends none.
        readings: how many replies are requested until one has a verdict, by default as `JudgeSettings` says.
        system: the system message. For a judge that takes none, it stands before the prompt.
    """

    prompt: str
    parse: Callable[[str], VerdictFields | None]
    max_tokens: int
    temperature: float
    top_p: float
    seed: int | None
    readings: int | None = None
    system: str = ""

    @property
    def text(self) -> str:
        """The system message and the prompt."""
        return self.system + self.prompt


@dataclass(frozen=True)
class JudgeReply:
    """The outcome of a `JudgeRequest`. The error does not contain the prompt; `usages` are of uncached replies."""

    text: str | None
    verdict: VerdictFields | None
    error: str | None
    usages: Sequence[Usage] = ()


class Judge:
    """A HELM deployment that serves as a judge, with the messages before each prompt (`messages_before`)."""

    def __init__(
        self,
        deployment: str,
        model: str,
        client: Client,
        messages: list[dict[str, str]] | None = None,
        takes_system: bool = False,
    ):
        settings = settings_in_use().judge
        self.name = deployment
        self.model = model
        self._messages = messages
        self._sender = Sender(
            client, Retries(_TRIES, settings.wait, takes_any_reply=True)
        )
        self._takes_system = takes_system
        self._readings = settings.readings
        # Locks are stored by digests, because these are short: a judge gets thousands of long prompts.
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def ask(self, request: JudgeRequest, repeat: int = 0) -> JudgeReply:
        """Request replies until one has a verdict.

        HELM's cache also stores replies without a verdict, so the next reply is requested under another number. A
        failed call leaves nothing in the cache and is repeated under its own number. So a later run with the same
        cache pays for no reply again.

        Args:
            repeat: number of this repetition of the same request, each with entries of its own in HELM's cache.

        Raises:
            NotKeptError: a reply cannot be kept. Every other error is in the reply.
        """
        usages: list[Usage] = []
        try:
            # Equal prompts are sent one at a time, so that the second finds the reply to the first in the cache.
            with self._locks[digest(request.text)]:
                return self._ask_until_readable(request, repeat, usages)
        except NotKeptError:
            raise
        except Exception as error:  # no error may cost the verdicts on other requests
            why = f"the reply cannot be used: {type(error).__name__}"
            return JudgeReply(None, None, why, usages)

    def _ask_until_readable(
        self,
        request: JudgeRequest,
        repeat: int,
        usages: list[Usage],
    ) -> JudgeReply:
        """Request replies until one has a verdict, and add the usage of each to `usages`, also if an error follows."""
        text = None
        error = None
        for number in range(request.readings or self._readings):
            result = self._result(request, number, repeat)
            # A call that failed after all attempts: another number would meet the same failure.
            if isinstance(result, str):
                return JudgeReply(text, None, result, usages)
            text, error = reply_text(result)
            if result.success and not result.cached:
                estimate = Usage(
                    len(request.text) // _CHARACTERS,
                    output_tokens=len(text or "") // _CHARACTERS,
                )
                usages.append(usage_of(result) or estimate)
            verdict = _parse(request, text) if text else None
            # A verdict at the very end of a cut reply could be only its beginning, as `GRADE: 1` of `GRADE: 10`.
            is_open = (
                text
                and answer_of(result).is_cut
                and (text[-1].isalnum() or text[-1] == ".")
            )
            if (
                is_open
                and verdict is not None
                and _parse(request, f"{text}0") != verdict
            ):
                # Scorers read the text, so it is not kept.
                text = None
                verdict = None
                error = "the reply ended at the token limit, perhaps within its verdict"
            if verdict is not None:
                return JudgeReply(text, verdict, None, usages)
        return JudgeReply(text, None, error, usages)

    def _result(
        self,
        request: JudgeRequest,
        number: int,
        repeat: int,
    ) -> RequestResult | str:
        """Request reply `number`. Return it, or the error if the call keeps failing."""
        prompt = request.text
        messages = self._messages
        if request.system and self._takes_system:
            # HELM's clients ignore a prompt that comes with messages, or refuse it.
            turns = {"system": request.system, "user": request.prompt}
            prompt = ""
            messages = []
            for role, content in turns.items():
                messages.append({"role": role, "content": content})
        seeded = SampledRequest(
            model=self.model,
            model_deployment=self.name,
            prompt=prompt,
            messages=messages,
            temperature=request.temperature,
            top_p=request.top_p,
            max_tokens=request.max_tokens,
            # With the same seed, a judge could only give the same reply again.
            seed=None if request.seed is None else request.seed + number + repeat,
            # HELM's cache finds a reply by the raw request, and that can be equal for two deployments.
            random=f"{self.name}#{repeat}.{number}",
        )
        try:
            attempt = self._sender(seeded)
        except InputError as error:
            return f"the call failed: {describe_error(error)}"
        if not attempt.has_reply:
            return f"the call failed: {describe_failure(attempt.result)}"
        # A reply without a verdict is kept, too, because it is paid for: another one is requested under another number.
        attempt.keep_replies()
        if isinstance(attempt.outcome, RequestResult):
            return attempt.outcome
        return attempt.result


def reply_text(result: RequestResult) -> tuple[str | None, str]:
    """Return the answer in a reply, if it has one, and the error to report if no verdict can be read from it.

    The reasoning before the answer is left out, as it is where an API returns it in a field of its own: the official
    codes read verdicts from answers.
    """
    completion = result.completions[0] if result.completions else None
    answer = answer_of(result)
    if completion is None or not completion.text:
        if result.error:
            return None, f"the reply cannot be used: {abbreviate(redact(result.error))}"
        if answer.is_cut:
            return (
                None,
                f"the reply ended at the token limit before its answer; {_MORE_TOKENS}",
            )
        return None, "the reply is empty"
    # HELM's clients pass on any JSON value as the text.
    if not isinstance(completion.text, str):
        return None, "the reply is not text"
    text = answer.text
    if answer.has_open_reasoning:
        return (
            None,
            f"the reply ended at the token limit within its reasoning; {_MORE_TOKENS}",
        )
    if answer.is_cut:
        return text, "the reply ended at the token limit without a verdict"
    return text, "the reply has no verdict"


def _parse(request: JudgeRequest, text: str) -> VerdictFields | None:
    try:
        return request.parse(text)
    except Exception:  # of a benchmark's parser; another reply can have a verdict
        return None


def messages_before(
    deployment: registry.ModelDeployment,
) -> list[dict[str, str]] | None:
    """Return the messages that make a deployment send a prompt as a chat, the style in which judges are asked.

    A client that takes both sends a chat if the request has messages, even an empty list. Other clients get None,
    since HELM's fail if a request has messages and a prompt.
    """
    declare = getattr(
        get_class_by_name(deployment.client_spec.class_name), "request_form", None
    )
    if declare and declare(deployment.client_spec.args or {}) == "both":
        return []
    return None


def parse_judges(judge: str) -> list[str]:
    """Split a `judge=` argument such as `a+b` into deployments, or raise an `InputError`."""
    require("judges", f"judge={judge!r}")
    names = judge.split("+")
    for name in names:
        if name not in registry.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT:
            raise InputError(
                f"judge={judge!r}: HELM has no deployment {name!r}; see `helm-longctx"
                " models` and HELM's model_deployments.yaml; run entries also allow"
                " auto and none"
            )
    if len(set(names)) < len(names):
        raise InputError(f"judge={judge!r} names a judge twice; name each judge once")
    return names


def find_judges(judge: str, client: AutoClient) -> list[Judge]:
    """Create the judges that a `judge=` argument such as `a+b` names, or raise an `InputError`."""
    from helm_longctx.judging.keys.client import judge_client

    apply_seed_patch()
    return [
        make_judge(name, judge_client(name, client)) for name in parse_judges(judge)
    ]


def make_judge(name: str, client: Client) -> Judge:
    """Return the judge of a deployment. It is asked through a client."""
    deployment = registry.get_model_deployment(name)
    model = deployment.model_name or name
    return Judge(
        name,
        model,
        client,
        messages_before(deployment),
        takes_system=sends_messages(name),
    )


class JudgeSpending:
    """Adds up calls, tokens and dollars of judges with their prices. Threads may share it; `str` sums it up."""

    def __init__(self, prices: Mapping[str, Prices | None]) -> None:
        self._prices = prices
        self.calls = self.input_tokens = self.output_tokens = 0
        self.dollars: float | None = 0.0
        self._lock = threading.Lock()

    def add(self, judge: str, reply: JudgeReply) -> None:
        """Add the cost of a reply's calls. Replies from the cache cost nothing."""
        prices = self._prices[judge]
        with self._lock:
            for usage in reply.usages:
                dollars = prices.dollars(usage) if prices else None
                self.calls += 1
                self.input_tokens += usage.input_tokens
                self.output_tokens += usage.output_tokens
                # One unknown price makes the sum unknown: a part of it would look like the whole.
                if dollars is None or self.dollars is None:
                    self.dollars = None
                else:
                    self.dollars = self.dollars + dollars

    def __str__(self) -> str:
        if self.dollars is None:
            dollars = "no known price"
        else:
            dollars = f"about ${self.dollars:.2f}"
        return f"{self.calls} calls, {self.input_tokens:,} tokens in, {self.output_tokens:,} out, {dollars}"


def ask_judges(
    judges: Sequence[Judge],
    requests: Sequence[Mapping[str, JudgeRequest]],
    repeat: int = 0,
) -> list[dict[str, dict[str, JudgeReply]]]:
    """Send all requests to every judge, and show the cost. Returns for each item the replies by judge and name.

    Raises:
        NotKeptError: a reply cannot be kept. No further one is requested.
    """
    spending = JudgeSpending({judge.name: _prices(judge) for judge in judges})
    slots = []
    by_item: list[dict[str, dict[str, JudgeReply]]] = []
    for number, item in enumerate(requests):
        by_item.append({judge.name: {} for judge in judges})
        for judge in judges:
            slots += [(number, judge, name) for name in item]
    # A single item gets no bar, because an annotator judges one answer after the other during a run.
    bar = tqdm(
        total=len(slots),
        desc="judging",
        unit="questions",
        disable=None if len(requests) > 1 else True,
    )

    def ask(slot: tuple[int, Judge, str]) -> JudgeReply:
        number, judge, name = slot
        request = requests[number][name]
        reply = judge.ask(request, repeat)
        spending.add(judge.name, reply)
        bar.set_postfix_str(str(spending), refresh=False)
        bar.update()
        return reply

    with bar:
        replies = call_all(ask, slots, settings_in_use().judge.parallel)
    for (number, judge, name), reply in zip(slots, replies, strict=True):
        by_item[number][judge.name][name] = reply
    _log_outcome(by_item, spending)
    return by_item


def _prices(judge: Judge) -> Prices | None:
    # A judge that HELM does not know cannot be asked, and its replies report that.
    with suppress(registry.ModelDeploymentNotFoundError):
        return find_prices(judge.name)
    return None


def _log_outcome(
    by_item: Sequence[Mapping[str, Mapping[str, JudgeReply]]],
    spending: JudgeSpending,
) -> None:
    if len(by_item) > 1:
        helm_log.info(f"judges: {spending}")
    errors: Counter[tuple[str, str]] = Counter()
    for item in by_item:
        for judge, replies in item.items():
            errors.update(
                (judge, reply.error) for reply in replies.values() if reply.error
            )
    # Equal errors are logged once, because a judge that is gone would otherwise log thousands of equal lines.
    for (judge, error), times in errors.most_common(5):
        helm_log.error(
            f"judge {judge} gave no verdict on {describe_count(times, 'question')}: {error}"
        )
