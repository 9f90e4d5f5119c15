"""Models that are objects of the calling program: functions, models and pipelines of transformers, and engines.

HELM makes clients by class path, so the objects stand in a table of this process, under the deployment's name.
"""

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from helm_longctx.errors import InputError, shorten
from helm_longctx.failures import Failure
from helm_longctx.helm_api import Client, Request, RequestResult
from helm_longctx.models.apis.protocol import cut_at_stop
from helm_longctx.models.apis.tools import template_messages
from helm_longctx.models.results import make_failure, make_text_result
from helm_longctx.models.sampling import with_fields
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.tasks.prompt import Message

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")

OBJECTS: dict[str, Any] = {}
"""The `Function` or the `TransformersModel` of each deployment that a call of `evaluate` has registered."""

_SECONDS = 0.05
"""Seconds for which a batch that is not full waits for further items."""


class _Asking:
    """One question to a function, from its call until it has answered."""

    is_over = False


_ASKING: ContextVar[_Asking | None] = ContextVar("_ASKING", default=None)
"""The question that the code that runs answers."""


def is_asked() -> bool:
    """Return whether the code that runs is a function that a call of `evaluate` asks."""
    asking = _ASKING.get()
    return asking is not None and not asking.is_over


_asked_threads: list[int] = []
"""The identifiers of the threads in which functions are asked, once for each question."""


def list_asked_threads() -> set[int]:
    """Return the identifiers of the threads in which functions of a call of `evaluate` are asked at this moment."""
    return {*_asked_threads}


@contextmanager
def _mark_as_asked() -> Iterator[None]:
    asking = _Asking()
    token = _ASKING.set(asking)
    thread = threading.get_ident()
    _asked_threads.append(thread)
    try:
        yield
    finally:
        _asked_threads.remove(thread)
        # Tasks and threads that the function started have copies of the context. A reset does not reach them.
        asking.is_over = True
        _ASKING.reset(token)


@dataclass(frozen=True)
class PromptFacts:
    """What is known of a prompt besides its text.

    Args:
        length: the length's number of tokens, or None for tasks without lengths.
        depth: position of the evidence in the context, 0 (start) to 1 (end), or None if there is no such position.
        rest: number of characters after the context, or None if the prompt has no context.
    """

    id: str
    task: str
    length: int | None = None
    depth: float | None = None
    rest: int | None = None


@dataclass(frozen=True)
class _AskedRequest(Request):
    """A request with the facts about its prompt. They go to models that are objects."""

    facts: PromptFacts | None = None


def with_facts(request: Request, facts: PromptFacts) -> Request:
    """Add facts to a request. One for log-probabilities stays as it is, because no function answers it."""
    if type(request) is not Request:
        return request
    return with_fields(_AskedRequest, request, facts=facts)


@dataclass(frozen=True)
class Prompt:
    """A prompt, as functions get it.

    Args:
        text: the whole text. Of a conversation it is the last message.
        messages: the conversation, each message with `role` and `content`. Those of an agent have the calls of tools as
            in OpenAI's protocol.
        max_tokens: the most tokens that the answer may have.
        stop: texts at which the answer ends. What follows the first of them is not scored.
        id, task, length, depth: see `PromptFacts`.
        is_chat: whether a chat model should get the text as a turn of the user, and not as a text to complete.
    """

    text: str
    messages: Sequence[Message]
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

        Raises an `InputError` if the prompt has no context, such as a conversation of several turns.
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
            raise InputError(
                f"{self.task}: the prompt {self.id} has no context apart from its"
                " question; use text"
            )
        return self.rest

    def render(self, tokenizer: Any) -> str:
        """Return the text that a model reads: in its chat template if the prompt is a chat and it has a template."""
        if not self._is_rendered(tokenizer):
            return self.text
        return str(
            tokenizer.apply_chat_template(
                template_messages(self.messages),
                tokenize=False,
                add_generation_prompt=True,
            )
        )

    def encode(self, tokenizer: Any) -> list[int]:
        """Return the token ids of what a model reads. A chat template has the special tokens already."""
        ids: list[int] = tokenizer(
            self.render(tokenizer), add_special_tokens=not self._is_rendered(tokenizer)
        )["input_ids"]
        return ids

    def _is_rendered(self, tokenizer: Any) -> bool:
        return len(self.messages) > 1 or (
            self.is_chat and bool(tokenizer.chat_template)
        )


def make_prompt(request: Request) -> Prompt:
    """Return the prompt of a request, as functions get it."""
    facts = getattr(request, "facts", None) or PromptFacts("", "")
    turns = request.messages or [{"role": "user", "content": request.prompt}]
    stop = tuple(request.stop_sequences)
    is_chat = request.messages is not None
    return Prompt(
        turns[-1]["content"],
        turns,
        request.max_tokens,
        stop,
        **vars(facts),
        is_chat=is_chat,
    )


class Gatherer(Generic[_Item, _Answer]):
    """Answers the items of threads that call it at the same time together. Of its threads one works at a time.

    Args:
        answer_all: takes a list of items, and returns an answer or an exception for each.
        size: most items of a list.
    """

    def __init__(
        self,
        answer_all: Callable[[list[_Item]], Sequence[_Answer | Exception]],
        size: int,
    ):
        self._answer_all = answer_all
        self._size = size
        self._waiting: list[tuple[_Item, Future[_Answer]]] = []
        self._turn = threading.Lock()

    def __call__(self, item: _Item) -> _Answer:
        """Return the answer to an item, or raise its exception."""
        mine: Future[_Answer] = Future()
        self._waiting.append((item, mine))
        # The thread whose turn it is answers the items of the threads that wait.
        with self._turn:
            while not mine.done():
                end = time.monotonic() + _SECONDS
                while len(self._waiting) < self._size and time.monotonic() < end:
                    time.sleep(_SECONDS / 10)
                batch = self._waiting[: self._size]
                del self._waiting[: self._size]
                try:
                    answers = self._answer_all([item for item, _ in batch])
                except BaseException as error:  # the thread of each item raises it
                    answers = [error] * len(batch)  # type: ignore[list-item]
                for (_, future), answer in zip(batch, answers, strict=True):
                    if isinstance(answer, BaseException):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
        return mine.result()


class Function:
    """A function of the user. Several threads may call it if the run asks several questions at once.

    Args:
        function: takes a prompt and returns a text, or takes a list of prompts and returns a list of texts. What it
            returns can be awaitable.
        batch_size: the most prompts of a list, or None for a function of a single prompt.
    """

    def __init__(self, function: Callable[[Any], Any], batch_size: int | None = None):
        self._function = function
        self._gatherer: Gatherer[Prompt, str] | None = None
        if batch_size:
            self._gatherer = Gatherer(self._answer_all, batch_size)
        # Clients of servers live in one event loop. It has a thread, so that it works inside of a running loop.
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run_loop, daemon=True).start()

    def __call__(self, prompt: Prompt) -> Any:
        """Return what the function returns for a prompt."""
        if self._gatherer:
            return self._gatherer(prompt)
        return self._call(prompt)

    def close(self) -> None:
        """End the thread of the event loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run_loop(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def _call(self, argument: Any) -> Any:
        with _mark_as_asked():
            returned = self._function(argument)
            if not inspect.isawaitable(returned):
                return returned

            async def wait() -> Any:
                return await returned

            return asyncio.run_coroutine_threadsafe(wait(), self._loop).result()

    def _answer_all(self, prompts: list[Prompt]) -> list[str]:
        texts = self._call(prompts)
        if not isinstance(texts, list | tuple) or len(texts) != len(prompts):
            raise InputError(
                f"the function returned {_describe(texts)} for a list of {len(prompts)}"
                " prompts; it must return a list with a text for each"
            )
        return list(texts)


def _describe(value: object) -> str:
    if isinstance(value, list | tuple):
        size = f" of length {len(value)}"
    else:
        size = ""
    if value is None:
        return "None"
    return f"a value of type {type(value).__name__}{size}"


class FunctionClient(Client):
    """HELM's client of a function. It has no cache, because the function's code can change.

    Attributes:
        sends_messages, takes_facts: tell the adapter and the runner what requests can have.
    """

    sends_messages = takes_facts = True

    def __init__(self, deployment: str):
        self._answer: Function = find_object(deployment)

    @classmethod
    def takes_sampling(cls, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return `temperature`: the function can know it from its own settings. It gets no others."""
        return ("temperature",)

    @classmethod
    def request_form(cls, arguments: Mapping[str, Any]) -> str:
        """Return `both`: a function gets the text in the style that the official code has for the task."""
        return "both"

    def make_request(self, request: Request) -> RequestResult:
        """Answer a request. A function that raises an error fails this request alone.

        Raises an `InputError` if the function returned something else than a text.
        """
        started_at = time.time()
        start = time.perf_counter()
        try:
            text = self._answer(make_prompt(request))
        except InputError:
            raise
        except Exception as error:  # of the user's code
            # A failing question must not be asked again and again, as a server's temporary failure is.
            return make_failure(
                Failure.BAD_REQUEST, f"{type(error).__name__}: {describe_error(error)}"
            )
        if not isinstance(text, str):
            raise InputError(
                f"the function returned {_describe(text)}; it must return a text"
            )
        return make_text_result(
            cut_at_stop(text, request.stop_sequences),
            started_at=started_at,
            seconds=time.perf_counter() - start,
        )


def find_object(deployment: str) -> Any:
    """Return the object of a deployment. Raises an `InputError` if no call of `evaluate` has given it."""
    if deployment not in OBJECTS:
        raise InputError(
            f"{shorten(deployment)} is an object of an earlier call; give it to"
            " helm_longctx.evaluate"
        )
    return OBJECTS[deployment]
