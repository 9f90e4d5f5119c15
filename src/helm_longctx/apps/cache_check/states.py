"""The states of a prefix cache, and the requests that bring a server into each of them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

from helm_longctx.apps.cache_check.prompts import (
    PLAIN,
    CheckPrompt,
    RegisterQuestion,
    lines_for,
)
from helm_longctx.data.jsonl import find_nested
from helm_longctx.errors import InputError
from helm_longctx.failures import failure_of_error
from helm_longctx.helm_api import Request
from helm_longctx.interruptions import describe_kept, stoppable
from helm_longctx.locks import lock_run
from helm_longctx.models.apis.answer_logprobs import read_logprobs
from helm_longctx.models.apis.calls import call_all, call_with_bar
from helm_longctx.models.apis.prefix_cache import fill_cold_fields, find_cold_fields
from helm_longctx.models.apis.providers.openai import CHAT, OpenAIClient
from helm_longctx.models.results import failure_of, usage_of
from helm_longctx.models.scoring import AnswerRequest
from helm_longctx.runner.sending import find_client, make_context
from helm_longctx.runs.journal import DurableLines

ANSWERS = "answers.jsonl"

_REMEDY = "remove this line, and its question is asked again"

COLD = "cold"
CONTROL = "cold again"
"""The reference, and another copy of the same question. How far these two differ is the server's own noise."""

BEGINNING = "same beginning"
"""The state in which only the beginning of a prompt is in the cache."""

PARALLEL = "parallel"
"""The state in which the server gets other questions about the same text at the same time."""

BUSY = "cold among others"
BUSY_CONTROL = "cold again among others"
"""The reference and another copy of it, among as many requests at the same time about other texts."""

_SIBLINGS = 7
_OTHERS = 4
"""Questions that are sent together with one, and other prompts that come between two equal ones."""

_PROBE_LINES = 24
"""Lines of the prompt that shows which `COLD_FIELDS` a server takes: more than a block of 256 tokens."""

_TOP = 5
"""Number of most likely tokens of each position that the server is asked for."""


@dataclass(frozen=True)
class StateReply:
    """The answer to a question in a state of the cache.

    Args:
        length: tokens of the prompt, as planned.
        seed: the question's seed.
        text: the answer. Empty if there is none.
        failure: why there is no answer.
        hits: for each key that was asked for whether the answer has its value.
        logprobs: for each token of the answer the log-probabilities of the most likely ones, the chosen one first;
            Empty if the server gives none.
        prompt_tokens, cached_tokens: what the server reports, if it does.
        before: tokens of the prompts that were sent before it, for this state.
        seconds: seconds until the answer was complete.
        build: the model and the fingerprint that the server names. Empty if it names none.
        copy: the state whose prompt was asked past the cache. Empty for a cold prompt of its own.
        kind: the kind of text, a key of `prompts.TEXTS`.
        shared: the first line that differs in a prompt with the same beginning, if it was chosen.
    """

    length: int
    seed: int
    state: str
    text: str = ""
    failure: str | None = None
    hits: tuple[bool, ...] = ()
    logprobs: tuple[Mapping[str, float], ...] = ()
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    before: int = 0
    seconds: float = 0.0
    build: str = ""
    copy: str = ""
    kind: str = PLAIN
    shared: int | None = None

    @property
    def name(self) -> tuple[Any, ...]:
        """What tells it from the other replies of a check."""
        return self.length, self.seed, self.state, self.copy, self.kind, self.shared

    def question(self, is_spread: bool = False) -> RegisterQuestion:
        """Return the question."""
        return RegisterQuestion(
            seed=self.seed,
            size=lines_for(self.length, self.kind),
            is_spread=is_spread,
            kind=self.kind,
            shared=self.shared,
        )


class Server:
    """Sends single prompts to a deployment, without the request cache. Several threads may use it.

    Args:
        deployment: the name of a deployment whose client speaks OpenAI's protocol.
        local_path: the folder with HELM's credentials.
        max_tokens: the limit of an answer.
        cold_fields: fields of a request's body that keep it away from the cache, such as llama.cpp's `cache_prompt` and
            vLLM's `cache_salt`; `RANDOM` in a value stands for another text in each request. With them, cold answers
            are to the very prompts of the other states; without them, to copies with another number.

    Raises:
        InputError: the deployment's client speaks another protocol.
    """

    def __init__(
        self,
        deployment: str,
        local_path: Path,
        max_tokens: int,
        cold_fields: Mapping[str, Any] | None = None,
    ):
        self.deployment = deployment
        self.max_tokens = max_tokens
        self.cold_fields = cold_fields or {}
        self._context = make_context(local_path)
        self._lock = Lock()
        self.client = self.connect()

    def connect(self) -> OpenAIClient:
        """Return a client with new connections."""
        with self._lock:
            # HELM's context would return the client that it made last.
            self._context.client.clients.pop(self.deployment, None)
            client = find_client(self._context, self.deployment)
        if not isinstance(client, OpenAIClient):
            what = "does not speak OpenAI's protocol; give a server's address with --model-url"
            raise InputError(f"cache-check: {self.deployment} {what}")
        self.is_chat = client.route(self._request("", is_chat=True)) == CHAT
        return client

    def connect_cold(self, fields: Mapping[str, Any] | None = None) -> OpenAIClient:
        """Return a client whose requests do not use the cache, with the given fields instead of `cold_fields`."""
        client = self.connect()
        texts = fill_cold_fields(self.cold_fields if fields is None else fields)
        body = {**(client.settings.extra_body or {}), **texts}
        client.settings = replace(client.settings, extra_body=body)
        return client

    def find_cold_fields(self, seed: int) -> dict[str, Any]:
        """Return the fields of `COLD_FIELDS` with which the server answers past its cache, if that can be seen.

        A prompt is sent twice. Fields work if the server says that it read the second one from its cache, and nothing
        of the same prompt with the fields.
        """
        reply = StateReply(
            length=0,
            seed=seed,
            state="probe",
        )
        prompt = RegisterQuestion(seed, _PROBE_LINES).prompt("probe")

        def count_cached(fields: Mapping[str, Any]) -> int | None:
            answer = self.ask(prompt, reply, self.connect_cold(fields))
            if answer.failure:
                return None
            return answer.cached_tokens or 0

        count_cached({})
        if count_cached({}):
            return find_cold_fields(count_cached)
        return {}

    def _request(self, text: str, is_chat: bool) -> Request:
        messages = [{"role": "user", "content": text}]
        if is_chat:
            prompt: dict[str, Any] = {"messages": messages}
        else:
            prompt = {"prompt": text}
        names = {"model": self.deployment, "model_deployment": self.deployment}
        return AnswerRequest(
            **names, temperature=0.0, max_tokens=self.max_tokens, **prompt, top=_TOP
        )

    def request(self, prompt: CheckPrompt) -> Request:
        """Return the request of a prompt for an answer with log-probabilities: a chat, if the server answers chats."""
        return self._request(prompt.text, self.is_chat)

    def ask(
        self,
        prompt: CheckPrompt,
        reply: StateReply,
        client: OpenAIClient | None = None,
    ) -> StateReply:
        """Return a reply with the answer, or with the reason why there is none."""
        start = time.monotonic()
        request = self.request(prompt)
        client = client or self.client
        try:
            body = client.ask(request)
        except Exception as error:  # the packages have their own errors
            return replace(reply, failure=failure_of_error(error).value)
        result = client.result(request, body)
        if failure := failure_of(result):
            return replace(reply, failure=failure.value)
        text = result.completions[0].text
        usage = usage_of(result)
        return replace(
            reply,
            text=text,
            hits=tuple(prompt.find_values(text)),
            logprobs=tuple(read_logprobs(body)),
            prompt_tokens=usage.input_tokens if usage else None,
            cached_tokens=find_cached(body),
            seconds=round(time.monotonic() - start, 3),
            build=find_build(body),
        )

    def abort(self, prompt: CheckPrompt) -> None:
        """Send a prompt, and close the stream after its first event."""
        with suppress(Exception):  # the state is the same if the server closes it first
            self.client.abort(self.request(prompt))


def find_cached(body: Mapping[str, Any]) -> int | None:
    """Return the tokens of the prompt that the server says it read from its cache, or None if it does not say it."""
    values = (
        # OpenAI, vLLM, SGLang
        find_nested(body, "usage", "prompt_tokens_details", "cached_tokens"),
        find_nested(body, "usage", "cached_tokens"),
        # llama.cpp
        find_nested(body, "timings", "cache_n"),
        find_nested(body, "tokens_cached"),
    )
    for value in values:
        if isinstance(value, int):
            return value
    return None


def find_build(body: Mapping[str, Any]) -> str:
    """Return the model and the fingerprint of the build that a reply names, or an empty text."""
    return " ".join(
        str(body[name]) for name in ("model", "system_fingerprint") if body.get(name)
    )


@dataclass(frozen=True)
class CacheState:
    """A state of the cache.

    Args:
        about: what is sent before the question.
        before: make the prompts that are sent before it, one after the other.
        siblings: number of other questions about the same text that are sent at the same time.
        others: number of questions about other texts that are sent at the same time.
        aborts: whether the streams of the prompts before it are closed.
        reconnects: whether the question is sent over another connection.
        is_warm: whether the server surely has a part of the prompt in its cache, if it kept it.
    """

    about: str
    before: Sequence[Callable[[RegisterQuestion, str], CheckPrompt]] = ()
    siblings: int = 0
    others: int = 0
    aborts: bool = False
    reconnects: bool = False
    is_warm: bool = True

    @property
    def requests(self) -> int:
        """Number of requests, the question's own among them."""
        return len(self.before) + self.siblings + self.others + 1

    def ask(
        self,
        server: Server,
        question: RegisterQuestion,
        reply: StateReply,
    ) -> StateReply:
        """Bring the server into the state, and return the reply to the question."""
        state = reply.copy or reply.state
        tokens = (self.siblings + self.others) * reply.length
        for make in self.before:
            if self.aborts:
                server.abort(make(question, state))
            if self.aborts:
                sent = reply
            else:
                sent = server.ask(make(question, state), reply)
            tokens += sent.prompt_tokens or reply.length
        reply = replace(reply, before=tokens)
        client = None
        if reply.copy:
            client = server.connect_cold()
        elif self.reconnects:
            client = server.connect()
        prompts = [question.prompt(state)]
        for number in range(self.siblings):
            prompts.append(question.sibling(state, number))
        for number in range(self.others):
            prompts.append(question.other(reply.state, number))
        if len(prompts) == 1:
            return server.ask(prompts[0], reply, client)
        answers = call_all(
            lambda prompt: server.ask(prompt, reply, client),
            prompts,
            parallelism=len(prompts),
        )
        return answers[0]


STATES = {
    COLD: CacheState("nothing", is_warm=False),
    CONTROL: CacheState("nothing; another copy of the same text", is_warm=False),
    "warm": CacheState("the same prompt", [RegisterQuestion.prompt]),
    "A, B, A": CacheState(
        "the same prompt, and another question about it",
        [RegisterQuestion.prompt, RegisterQuestion.sibling],
    ),
    BEGINNING: CacheState(
        "a prompt with the same beginning, which ends inside of a block",
        [RegisterQuestion.relative],
    ),
    # Which of them is first is chance, and the first one finds nothing in the cache.
    PARALLEL: CacheState(
        f"{_SIBLINGS} other questions about it at the same time",
        siblings=_SIBLINGS,
        is_warm=False,
    ),
    "evicted": CacheState(
        f"the same prompt, and {_OTHERS} long ones that share nothing with it",
        [
            RegisterQuestion.prompt,
            *(
                partial(RegisterQuestion.other, number=number)
                for number in range(_OTHERS)
            ),
        ],
        is_warm=False,
    ),
    "aborted": CacheState(
        "the same prompt, whose stream was closed",
        [RegisterQuestion.prompt],
        aborts=True,
    ),
    "new connection": CacheState(
        "the same prompt, over another connection",
        [RegisterQuestion.prompt],
        reconnects=True,
    ),
    BUSY: CacheState(
        "questions about other texts at the same time", others=_SIBLINGS, is_warm=False
    ),
    BUSY_CONTROL: CacheState(
        "questions about other texts at the same time; another copy of the same text",
        others=_SIBLINGS,
        is_warm=False,
    ),
}
"""The states, in the order of the table. Each has a copy of the text of its own."""

REFERENCES = (COLD, CONTROL, BUSY, BUSY_CONTROL)
"""The states with which the others are compared.

A server that answers several requests at the same time can compute with other roundings. So answers in parallel that
differ from cold ones are also compared with cold ones among other requests.
"""


def plan_questions(
    lengths: Sequence[int],
    questions: int,
    states: Sequence[str],
    seed: int,
    is_exact: bool,
    kinds: Sequence[str] = (PLAIN,),
    shared: int | None = None,
) -> list[StateReply]:
    """Return what is asked, as replies without an answer.

    The states of a question are in a random order, so that a server that changes over time changes in all of them. Cold
    answers to the prompt of a state follow that state, because a server can keep such a prompt nevertheless.

    Args:
        is_exact: whether the server can answer the prompts of the other states past its cache.
        kinds: kinds of text.
        shared: the first line that differs in a prompt with the same beginning, or None for one that is drawn.
    """
    groups = _group_states(states, is_exact)
    plan = []
    for length in lengths:
        for number in range(seed, seed + questions):
            for kind in kinds:
                for group in Random(number).sample(groups, len(groups)):
                    for state, copy in group:
                        reply = StateReply(
                            length=length,
                            seed=number,
                            state=state,
                            copy=copy,
                            kind=kind,
                            shared=shared,
                        )
                        plan.append(reply)
    return plan


def plan_busy(asked: Sequence[StateReply], is_exact: bool) -> list[StateReply]:
    """Return cold questions that are asked among other requests, for each question that was asked in parallel.

    Args:
        is_exact: whether the server can answer the same prompts past its cache.
    """
    copy = PARALLEL if is_exact else ""
    plan = []
    for reply in asked:
        if reply.state != PARALLEL:
            continue
        for state in (BUSY, BUSY_CONTROL):
            plan.append(
                StateReply(
                    length=reply.length,
                    seed=reply.seed,
                    state=state,
                    copy=copy,
                    kind=reply.kind,
                    shared=reply.shared,
                )
            )
    return plan


def _group_states(states: Sequence[str], is_exact: bool) -> list[list[tuple[str, str]]]:
    """Return states, and cold ones with the state whose prompt they ask, in groups that follow each other."""
    warm = []
    for state in states:
        if state not in (COLD, CONTROL):
            warm.append(state)
    if not is_exact or not warm:
        return [[(state, "")] for state in states]
    cold = [state for state in states if state in (COLD, CONTROL)]
    groups = []
    for state in warm:
        groups.append([(state, ""), *((reference, state) for reference in cold)])
    return groups


def list_copies(states: Sequence[str], is_exact: bool) -> list[tuple[str, str]]:
    """Return states, and cold ones with the state whose prompt they ask. See `plan_questions`."""
    return list(chain.from_iterable(_group_states(states, is_exact)))


def ask_states(
    server: Server,
    plan: Sequence[StateReply],
    folder: Path,
    is_spread: bool = False,
) -> list[StateReply]:
    """Ask each question of a plan, and return the replies. Those in the folder are not asked for again."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ANSWERS
    with (
        lock_run(folder),
        DurableLines(path, _REMEDY) as lines,
        stoppable(lambda: describe_kept(path)),
    ):
        replies = [reply for reply in _parse_replies(lines) if not reply.failure]
        done = {reply.name for reply in replies}
        left = [reply for reply in plan if reply.name not in done]

        def ask(planned: StateReply) -> StateReply:
            question = planned.question(is_spread)
            reply = STATES[planned.state].ask(server, question, planned)
            lines.append(asdict(reply))
            return reply

        # One after the other, but not in this thread: after Ctrl-C the reply in flight is waited for and kept.
        return replies + call_with_bar(ask, left, 1, "Questions", "question")


def read_replies(path: Path) -> list[StateReply]:
    """Return the replies in a file, none if there is no file. A line that was not finished is left out.

    Raises:
        InputError: another line is damaged.
    """
    with DurableLines(path, _REMEDY) as lines:
        return [*_parse_replies(lines)]


def _parse_replies(lines: DurableLines) -> Iterator[StateReply]:
    for fields in lines.read():
        try:
            fields["hits"] = tuple(fields["hits"])
            fields["logprobs"] = tuple(fields["logprobs"])
            reply = StateReply(**fields)
        except (LookupError, TypeError) as error:
            raise lines.damage() from error
        yield reply
