"""Models that are objects of the calling program: functions, models and pipelines of transformers, and engines.

HELM makes clients by class path, so the objects stand in a table of this process, under the deployment's name.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, fields
from functools import cached_property
from queue import Empty, Queue
from typing import Any

from helm.clients.client import Client
from helm.common.request import ErrorFlags, GeneratedOutput, Request, RequestResult

from helm_longctx.errors import InputError, shorten
from helm_longctx.failures import Failure, label_error
from helm_longctx.redaction.abbreviation import describe_error

OBJECTS: dict[str, Any] = {}
"""The function or the `TransformersModel` of each deployment of this process."""

_GATHER_SECONDS = 0.05
"""Seconds for which a batch that is not full waits for further prompts."""


@dataclass(frozen=True)
class PromptFacts:
    """What is known of a prompt besides its text.

    Args:
        id: the question's id.
        task: the task's name.
        length: the length's number of tokens; None for tasks without lengths.
        depth: position of the evidence in the context, 0 (start) to 1 (end); None if there is no such position.
        rest: number of characters after the context; None if the prompt has no context.
    """

    id: str
    task: str
    length: int | None = None
    depth: float | None = None
    rest: int | None = None


@dataclass(frozen=True)
class AskedRequest(Request):
    """A request with the facts about its prompt, which go to models that are objects."""

    facts: PromptFacts | None = None


def with_facts(request: Request, facts: PromptFacts) -> Request:
    """Add facts to a request."""
    return AskedRequest(**{field.name: getattr(request, field.name) for field in fields(Request)}, facts=facts)


@dataclass(frozen=True)
class Prompt:
    """A prompt, as functions get it.

    Args:
        text: the whole text. Of a conversation it is the last message.
        messages: the conversation, each message with `role` and `content`.
        max_tokens: the most tokens that the answer may have.
        stop: texts at which the answer ends. What follows the first of them is not scored.
        id, task, length, depth: see `PromptFacts`.
        is_chat: whether a chat model should get the text as a turn of the user, and not as a text to complete.
    """

    text: str
    messages: Sequence[Mapping[str, str]]
    max_tokens: int
    stop: Sequence[str]
    id: str
    task: str = ""
    length: int | None = None
    depth: float | None = None
    rest: int | None = None
    is_chat: bool = True

    @cached_property
    def context(self) -> str:
        """The text up to the end of its long part. Questions about one context have equal ones, one after another.

        Raises:
            InputError: the prompt has no context, such as a conversation of several turns.
        """
        return self.text[: len(self.text) - self._rest]

    @cached_property
    def question(self) -> str:
        """The text after the context. `context + question` equals `text`.

        Raises:
            InputError: as for `context`.
        """
        return self.text[len(self.text) - self._rest :]

    @property
    def _rest(self) -> int:
        if self.rest is None:
            raise InputError(f"{self.task}: the prompt {self.id} has no context apart from its question; use text")
        return self.rest

    def render(self, tokenizer: Any) -> str:
        """Return the text that a chat model reads: the messages in the chat template of a transformers tokenizer."""
        text: str = tokenizer.apply_chat_template(list(self.messages), tokenize=False, add_generation_prompt=True)
        return text


Answer = Callable[[Prompt], str]
"""A function that answers a prompt. Several threads may call it if the run asks several at once."""


def _make_prompt(request: Request) -> Prompt:
    facts = getattr(request, "facts", None) or PromptFacts("", "")
    turns = [*(request.messages or []), *([{"role": "user", "content": request.prompt}] if request.prompt else [])]
    stop, is_chat = tuple(request.stop_sequences), request.messages is not None
    return Prompt(turns[-1]["content"], turns, request.max_tokens, stop, **vars(facts), is_chat=is_chat)


def make_answer(function: Callable[..., Any], batch_size: int | None = None) -> Answer:
    """Return the function that answers one prompt, of a function of any form.

    Args:
        function: takes a prompt and returns a text, or takes a list of prompts and returns a list of texts. It can be
            a coroutine function.
        batch_size: the most prompts of a list; None for a function of a single prompt.
    """
    is_coroutine = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object can have a coroutine as its method
    )
    call = _EventLoop(function) if is_coroutine else function
    return _Batches(call, batch_size) if batch_size else call


class _EventLoop:
    """Calls a coroutine function in an event loop of its own thread, so that it works inside of a running loop."""

    def __init__(self, function: Callable[[Any], Awaitable[Any]]):
        self._function, self._loop = function, asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def __call__(self, argument: Any) -> Any:
        async def call() -> Any:
            return await self._function(argument)

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()


class _Batches:
    """Gathers the prompts of several threads into lists."""

    def __init__(self, function: Callable[[list[Prompt]], Any], size: int):
        self._function, self._size = function, size
        self._waiting: Queue[tuple[Prompt, Future[str]]] = Queue()
        threading.Thread(target=self._answer_batches, daemon=True).start()

    def __call__(self, prompt: Prompt) -> str:
        answer: Future[str] = Future()
        self._waiting.put((prompt, answer))
        return answer.result()

    def _answer_batches(self) -> None:
        while True:
            batch = [self._waiting.get()]
            end = time.monotonic() + _GATHER_SECONDS
            while len(batch) < self._size:
                try:
                    batch.append(self._waiting.get(timeout=max(0.0, end - time.monotonic())))
                except Empty:
                    break
            try:
                texts = self._function([prompt for prompt, _ in batch])
                if not isinstance(texts, Sequence) or isinstance(texts, str) or len(texts) != len(batch):
                    raise InputError(
                        f"the function returned {_describe(texts)} for {len(batch)} prompts; it must return a list of"
                        f" {len(batch)} texts"
                    )
            except BaseException as error:  # the thread of each prompt raises it
                for _, answer in batch:
                    answer.set_exception(error)
                continue
            for (_, answer), text in zip(batch, texts, strict=True):
                answer.set_result(text)


def _describe(value: object) -> str:
    size = f" of {len(value)}" if isinstance(value, list | tuple) else ""
    return "None" if value is None else f"{type(value).__name__}{size}"


class FunctionClient(Client):
    """HELM's client of a function. It has no cache, because the function's code can change.

    Args:
        deployment: the name of its deployment.

    Attributes:
        sends_messages, takes_facts: tell the adapter and the runner what requests can have.
        caches_prompts: makes questions about one context come one after another.
    """

    sends_messages = takes_facts = caches_prompts = True

    def __init__(self, deployment: str):
        self._answer: Answer = find_object(deployment)

    @classmethod
    def request_form(cls, arguments: Mapping[str, Any]) -> str:
        """Return `both`: a function gets the text in the style that the official code has for the task."""
        return "both"

    def make_request(self, request: Request) -> RequestResult:
        """Answer a request. A function that raises an error fails this request alone.

        Raises:
            InputError: the function returned something else than a text.
        """
        started_at, start = time.time(), time.perf_counter()
        try:
            text = self._answer(_make_prompt(request))
        except InputError:
            raise
        except Exception as error:  # of the user's code
            # A failing question must not be asked again and again, as a server's temporary failure is.
            failure = label_error(Failure.BAD_REQUEST, describe_error(error))
            flags = ErrorFlags(is_retriable=False, is_fatal=False)
            return RequestResult(False, [], [], cached=False, error=failure, error_flags=flags)
        if not isinstance(text, str):
            raise InputError(f"the function returned {_describe(text)}; it must return a text")
        for stop in request.stop_sequences:
            text = text.split(stop, 1)[0]
        return RequestResult(
            success=True,
            embedding=[],
            completions=[GeneratedOutput(text=text, logprob=0, tokens=[])],
            cached=False,
            request_time=time.perf_counter() - start,
            request_datetime=int(started_at),
        )


def find_object(deployment: str) -> Any:
    """Return the object of a deployment.

    Raises:
        InputError: the deployment was made by another process.
    """
    if deployment not in OBJECTS:
        raise InputError(f"{shorten(deployment)} was an object of another process; give it to helm_longctx.evaluate")
    return OBJECTS[deployment]
