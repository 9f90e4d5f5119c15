"""Answers questions by the program of a method. It sends any number of requests for each (`Method.answer`).

Each program runs in a thread and waits for its replies. Its requests go through the journal and the sender of a run one
by one, so a program that is called again after a crash gets the replies that have arrived, and nothing is sent twice.
Equal requests of several questions are sent once, and cost the question that asked first.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.common.request import GeneratedOutput, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.models.apis.calls import TICK, Calls
from helm_longctx.models.apis.protocol import serialize
from helm_longctx.models.apis.sending import Sender
from helm_longctx.models.apis.tools import with_tools
from helm_longctx.models.results import (
    LongContextResult,
    answer_of,
    facts_of,
    failure_of,
    finish_reason_of,
    make_failure,
    usage_of,
)
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.runner.asking import Asking, PendingRequest
from helm_longctx.runner.spending import Spending
from helm_longctx.runner.spool import Spool, StoredRequest, point_to
from helm_longctx.runs.journal import Journal, request_name
from helm_longctx.runs.prompts import elide_messages, request_text, without_text
from helm_longctx.runs.scores import STEPS
from helm_longctx.tasks.answer import Answer, AnswerFacts, Steps, Usage
from helm_longctx.tasks.methods.method import (
    MAX_REQUESTS,
    TOOLS,
    Question,
    Reply,
    Step,
)
from helm_longctx.tasks.methods.registry import METHODS

if TYPE_CHECKING:
    from helm_longctx.runner.prepared import PreparedRun

_MOST_SECONDS = 600.0
"""Seconds for which a program may compute without a request."""


class _StopError(BaseException):
    """Ends a program. It is no `Exception`, so that the program's own handlers let it pass."""

    def __init__(self, reason: RequestResult | InputError | None = None):
        super().__init__()
        self.reason = reason


def has_programs(requests: Sequence[StoredRequest]) -> bool:
    """Whether the program of a method answers the questions of a run."""
    return bool(requests) and requests[0].sample.method is not None


def _make_question(
    asked: StoredRequest, send: Callable[[Sequence[Step]], list[Reply]]
) -> Question:
    """Return a question as its program gets it, with its whole text."""
    sample = asked.sample
    request = asked.whole()
    assert sample.method
    assert sample.context_span
    start, end = sample.context_span
    return Question(
        id=str(asked.state.instance.id),
        text=request.messages[-1]["content"] if request.messages else request.prompt,
        span=(start, end),
        question=sample.question or "",
        arguments=sample.method["arguments"],
        # The budget without tokens for thinking, which each request gets.
        max_tokens=sample.max_tokens - sample.thinking_tokens,
        send=send,
        marks=[(span, facts) for span, facts in sample.marks],
        tools=sample.record.get(TOOLS, ()),
    )


def _store_step(asked: StoredRequest, step: Step, spool: Spool) -> StoredRequest:
    """Put a request of a program into a spool. It has the model, the parameters and the style of the run's requests."""
    base = asked.request
    sample = asked.sample
    raised = max(0, base.max_tokens - sample.max_tokens)
    request = replace(
        base,
        max_tokens=step.max_tokens + sample.thinking_tokens + raised,
        # A stop sequence of answers would cut everything else.
        stop_sequences=base.stop_sequences if step.is_official else [],
    )
    system = []
    for message in base.messages or []:
        if message["role"] == "system":
            system.append(message)
    if len(step.messages) == 1 and not (step.tools or system):
        prompt = step.messages[0]["content"]
        if step.is_official and sample.style == "completion":
            prompt += sample.separator + sample.answer_prefix
        request = replace(request, prompt=prompt, messages=base.messages and None)
    else:
        request = with_tools(
            replace(request, prompt="", messages=[*system, *map(dict, step.messages)]),
            step.tools,
        )
    if step.is_official:
        references = asked.state.instance.references
    else:
        references = []
    # Only the task's own prompt has an answer that is like the references.
    instance = replace(asked.state.instance, references=references)
    own = sample.extend(
        full_prompt=point_to(request_text(request), spool),
        method=None,
        marks=(),
        prompt_tokens=None,
    )
    own = own.extend(
        context_span=None,
        input_tokens=None,
        counter=None,
        fewest_tokens=None,
        rest=None,
    )
    request = without_text(request)
    return StoredRequest(
        state=replace(asked.state, instance=instance, request=request),
        request=request,
        sample=own,
        spool=spool,
    )


def check_programs(requests: Sequence[StoredRequest], sender: Sender) -> None:
    """Raise an `InputError` if a deployment does not take the native tool calls that the run's program sends."""
    sample = requests[0].sample if requests else None
    if sample and sample.method:
        method = METHODS[sample.method["name"]]
    else:
        method = None
    if method and method.needs_tools and not sender.takes_tools:
        raise InputError(
            f"method={method.name} needs native tool calls, which the client of"
            f" {requests[0].request.model_deployment} does not send; use a deployment with OpenAIClient or"
            " AnthropicClient of helm_longctx.models.apis"
        )


class _Gate:
    """Lets requests of all programs through, within the limits on requests in flight and on the cost."""

    def __init__(
        self, journal: Journal, spending: Spending, width: int, sender: Sender
    ):
        self.room = threading.Condition()
        self.waiting = 0
        self._journal = journal
        self._spending = spending
        self._width = width
        self._sender = sender
        self._in_flight: set[str] = set()
        self._charged: set[str] = set()
        self._is_proven = False
        self._numbers = itertools.count()

    def enter(
        self, name: str, step: StoredRequest, waits: bool
    ) -> RequestResult | int | None:
        """Return the answer that a request has, or else the number under which it may be sent, if either.

        If it `waits`, there is one of both. Raises an `InputError` if nothing in flight can make room below the limit
        in dollars.
        """
        with self.room:
            while True:
                if answer := self._journal.get(name):
                    return answer
                # The first request is alone, so that a wrong address, key or model is found with one request.
                width = self._width if self._is_proven else 1
                if name not in self._in_flight and len(self._in_flight) < width:
                    number = next(self._numbers)
                    if self._spending.reserve(number, step, len(self._in_flight)):
                        self._in_flight.add(name)
                        return number
                if not waits:
                    return None
                self.room.wait(TICK)
                if self._sender.is_stopped:
                    raise _StopError

    def leave(
        self, name: str, number: int, result: RequestResult, is_late: bool
    ) -> None:
        """Count what a request has cost, and let others in."""
        with self.room:
            self._in_flight.discard(name)
            answer = answer_of(result)
            self._spending.settle(number, answer, is_late)
            self._is_proven |= answer.is_answered
            self.room.notify_all()

    def charge(self, name: str) -> bool:
        """Whether the question that asks is the first one with this request, and pays for it."""
        with self.room:
            is_first = name not in self._charged
            self._charged.add(name)
            return is_first

    def has_room(self, wanted: int) -> None:
        """Count requests that programs are about to send; below 0 those that have their replies."""
        with self.room:
            self.waiting += wanted
            self.room.notify_all()


@dataclass
class _Conversation:
    """The requests of one program.

    Attributes:
        seconds: how long the program waited for the model; requests sent together count once, as the slowest.
        usages, steps: what the question pays for each request, and what a page shows of it.
        since: when the program got its last replies. It is None while the program waits.
    """

    asking: ProgramAsking
    asked: StoredRequest
    spool: Spool
    most: int
    seconds: float = 0.0
    usages: list[Usage | None] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    last: RequestResult | None = None
    is_cached: bool = True
    since: float | None = field(default_factory=time.monotonic)
    has_begun: bool = False
    forks: bool = False

    def send(self, steps: Sequence[Step]) -> list[Reply]:
        """Send requests at the same time; see `Question`. Ends the program if one of them has no answer."""
        if self.forks:
            raise _StopError
        if len(self.steps) + len(steps) > self.most:
            raise _StopError(
                _refuse(
                    f"{self._name} asks for more than {MAX_REQUESTS}={self.most} requests"
                )
            )
        with self.pausing():
            self._begin(len(steps))
            results = self._exchange(steps)
        self.seconds += max(
            (result.request_time or 0.0 for result in results), default=0.0
        )
        for result in results:
            if failure_of(result) is not None:
                raise _StopError(result)
        self.last = results[-1] if results else self.last
        return [_make_reply(result) for result in results]

    @contextmanager
    def pausing(self) -> Iterator[None]:
        """Take the time of the block for one in which the program does not compute."""
        self.since = None
        yield
        self.since = time.monotonic()

    def _begin(self, steps: int) -> None:
        # The first request of a question lets the next question begin.
        self.asking.gate.has_room(steps - (not self.has_begun))
        self.has_begun = True

    def _exchange(self, steps: Sequence[Step]) -> list[RequestResult]:
        gate = self.asking.gate
        journal = self.asking.journal
        results: dict[int, RequestResult] = {}
        flights: dict[int, tuple[str, int, StoredRequest]] = {}
        queue = dict(enumerate(steps))
        with closing(Calls(self.asking.ask_step, self.asking.sender.limit)) as calls:
            while queue or calls:
                for index in [*queue]:
                    stored = _store_step(self.asked, queue[index], self.spool)
                    name = journal.name(stored.request, stored.digest)
                    entry = gate.enter(name, stored, waits=not calls)
                    if entry is None:
                        break
                    step = queue.pop(index)
                    if isinstance(entry, int):
                        flights[index] = name, entry, stored
                        calls.start(index, PendingRequest(stored))
                    else:
                        results[index] = entry
                        self._record(step, stored, entry, gate.charge(name))
                for index, call in calls.wait() if calls else ():
                    name, number, stored = flights.pop(index)
                    if call:
                        result = call.result()
                    else:
                        result = self.asking.late_failure()
                    gate.leave(name, number, result, is_late=call is None)
                    results[index] = result
                    self._record(steps[index], stored, result, gate.charge(name))
        gate.has_room(-len(steps))
        return [results[index] for index in range(len(steps))]

    def _record(
        self, step: Step, stored: StoredRequest, result: RequestResult, pays: bool
    ) -> None:
        usage = usage_of(result)
        if pays and failure_of(result) is None:
            self.usages.append(usage)
        self.is_cached &= result.cached
        prices = self.asking.spending.prices
        messages = []
        for message in step.messages:
            content = message["content"]
            for call in message.get("calls", ()):
                content += f"\n[{call['name']} {serialize(call['arguments']).decode()}]"
            messages.append({"role": message["role"], "content": content})
        self.steps.append(
            {
                "label": step.label,
                "prompt": elide_messages(messages, ()),
                "characters": stored.characters,
                "sha256": stored.digest,
                "text": result.completions[0].text if result.completions else "",
                "calls": [vars(call) for call in facts_of(result).calls or ()],
                "error": result.error,
                "seconds": result.request_time,
                "usage": usage and vars(usage),
                "dollars": prices.dollars(usage) if prices and usage else None,
                "shared": not pays,
            }
        )

    @property
    def _name(self) -> str:
        assert self.asked.sample.method
        return f"method={self.asked.sample.method['name']}"

    def join(self, text: str, notes: Mapping[str, Any]) -> RequestResult:
        """Return the result of the question: the answer, with the tokens and the time of all requests."""
        ending = ""
        if self.last and self.last.completions:
            ending = finish_reason_of(self.last.completions[0])
        output = GeneratedOutput(text, 0, [], {"reason": ending or "unknown"})
        known = tuple(usage for usage in self.usages if usage)
        steps = Steps(
            requests=len(self.steps),
            usages=known,
            notes=notes,
        )
        # The tokens of some of the requests would look like those of all.
        is_complete = bool(known) and len(known) == len(self.usages)
        return LongContextResult(
            success=True,
            embedding=[],
            completions=[output],
            cached=bool(self.steps) and self.is_cached,
            request_time=self.seconds,
            request_datetime=self.last.request_datetime if self.last else None,
            facts=AnswerFacts(
                usage=Usage.sum(known) if is_complete else None, steps=steps
            ),
        )


def _refuse(reason: str) -> RequestResult:
    return make_failure(
        Failure.BAD_REQUEST, f"{reason}; it was stopped, and the question has no answer"
    )


class ProgramAsking(Asking):
    """Answers questions by programs, which have at most `parallelism` requests in flight. The folder gets the steps."""

    def __init__(
        self,
        sender: Sender,
        journal: Journal,
        spending: Spending,
        total: int,
        parallelism: int,
        folder: Path,
    ):
        super().__init__(sender, journal, spending, total)
        self.limit = None  # each request of a program has a limit, and the program has none for all of them
        self.gate = _Gate(journal, spending, parallelism, sender)
        self.shared: dict[Any, Any] = {}
        self._parallelism = parallelism
        self._folder = folder
        self._lock = threading.Lock()
        (folder / STEPS).write_bytes(b"")

    def recall(self, asked: StoredRequest) -> RequestState | None:
        """Return None: the program is called again, and gets the replies that are in the journal."""
        return None

    def reserve(self, number: int, asked: StoredRequest, in_flight: int) -> bool:
        """Whether another program may begin: the requests of those that have begun do not fill the width."""
        with self.gate.room:
            # A program shows how many requests it sends when it sends the first ones.
            is_free = self.gate.room.wait_for(
                lambda: not in_flight or self.gate.waiting < 1, TICK / 20
            )
            if not (is_free or self.gate.waiting < self._parallelism):
                return False
            self.gate.waiting += 1
            return True

    def settle(self, number: int, answer: Answer, is_late: bool) -> None:
        """Do nothing: the requests were counted one by one."""

    def ask_step(self, pending: PendingRequest) -> RequestResult:
        """Send one request of a program."""
        return super().__call__(pending)

    def __call__(self, pending: PendingRequest) -> RequestResult:
        """Return the result of a question, with the answer of its program.

        Raises an `InputError` if a client got bad input, or a limit in dollars is reached.
        """
        asked = pending.request
        assert asked.sample.method
        with Spool(self._folder) as spool:
            most = int(asked.sample.method["arguments"][MAX_REQUESTS])
            conversation = _Conversation(
                asking=self,
                asked=asked,
                spool=spool,
                most=most,
            )
            try:
                result = self._run(conversation)
            finally:
                conversation._begin(0)
            state = asked.state
            about = {
                "id": state.instance.id,
                "task": state.instance.sub_split,
                "repeat": state.train_trial_index,
            }
            with self._lock, (self._folder / STEPS).open("ab") as file:
                file.write(serialize({**about, "steps": conversation.steps}) + b"\n")
        if (
            failure_of(result) is None
            and not result.completions[0].text
            and not conversation.steps
        ):
            return _refuse("the program sent no request and returned nothing")
        return result

    def _run(self, conversation: _Conversation) -> RequestResult:
        """Run a program in a thread of its own. The thread is left behind if it does not stop."""
        outcome: list[RequestResult | BaseException] = []
        thread = threading.Thread(
            target=lambda: outcome.append(_call(conversation)), daemon=True
        )
        thread.start()
        while thread.is_alive():
            thread.join(TICK)
            since = conversation.since
            if since is not None and (
                time.monotonic() - since > _MOST_SECONDS or self.sender.is_stopped
            ):
                # This raises the exception in the thread, at its next step in Python.
                identifier = ctypes.c_ulong(thread.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    identifier, ctypes.py_object(_StopError)
                )
                thread.join(TICK)
                if not outcome or isinstance(outcome[0], _StopError):
                    return _refuse(
                        f"{conversation._name} computed for {_MOST_SECONDS:g} seconds without a request"
                    )
        if isinstance(outcome[0], _StopError):
            ending = outcome[0].reason
        else:
            ending = outcome[0]
        if isinstance(ending, RequestResult):
            return ending
        raise ending or InputError("the run was stopped")


_running = threading.local()


def _call_program(asked: StoredRequest, question: Question) -> Any:
    """Return what the program of a question returns. It can be anything."""
    assert asked.sample.method
    answer = METHODS[asked.sample.method["name"]].answer
    assert answer
    return answer(question)


def _call(conversation: _Conversation) -> RequestResult | BaseException:
    _watch_forks()
    _running.conversation = conversation
    try:
        question = _make_question(conversation.asked, conversation.send)
        question.pause = conversation.pausing
        question.shared = conversation.asking.shared
        text = _call_program(conversation.asked, question)
        if conversation.forks:
            return _refuse(f"{conversation._name} started a process with fork")
        if not isinstance(text, str):
            return _refuse(
                f"{conversation._name} returned a value of type {type(text).__name__} instead of a text"
            )
        return conversation.join(text, question.notes)
    except _StopError as stop:
        if conversation.forks:
            return _refuse(f"{conversation._name} started a process with fork")
        return stop
    except InputError as error:
        return error
    except Exception as error:  # of the program
        return _refuse(
            f"{conversation._name}: {type(error).__name__}: {describe_error(error)}"
        )
    finally:
        _running.conversation = None


@cache
def _watch_forks() -> None:
    """From now on end a copy of this process that a program makes with fork: two would send the same requests."""

    def watch(is_copy: bool) -> None:
        if conversation := getattr(_running, "conversation", None):
            conversation.forks = True
            if is_copy:
                os._exit(1)

    os.register_at_fork(
        after_in_parent=partial(watch, False), after_in_child=partial(watch, True)
    )


def plan_steps(questions: Sequence[StoredRequest], spool: Spool) -> list[StoredRequest]:
    """Return the requests that programs send if each reply has half of the tokens that it may have.

    Where the model decides what is asked, as in a loop with tools, this is the most that its words lead to.
    """
    requests: dict[str, StoredRequest] = {}

    def reply(asked: StoredRequest, steps: Sequence[Step]) -> list[Reply]:
        for stored in (_store_step(asked, step, spool) for step in steps):
            requests.setdefault(request_name(stored.request, stored.digest), stored)
        replies = []
        for step in steps:
            replies.append(Reply(" ".join(["word"] * (step.max_tokens // 2))))
        return replies

    _dry_run(questions, reply)
    return [*requests.values()]


def _make_reply(result: RequestResult) -> Reply:
    """Return the reply that a program gets: the text, without white space that a server's parser has left."""
    answer = answer_of(result)
    if answer.thinking:
        text = answer.output.strip()
    else:
        text = answer.output
    calls = list(answer.calls or ())
    return Reply(
        text=text,
        calls=calls,
        reasoning=answer.returned_reasoning or {},
    )


def open_steps(run: PreparedRun) -> list[StoredRequest]:
    """Return the requests that the programs of a run wait for, after all replies that the journal has."""
    requests: dict[str, StoredRequest] = {}

    def reply(asked: StoredRequest, steps: Sequence[Step]) -> list[Reply]:
        results = []
        missing = {}
        for step in steps:
            stored = _store_step(asked, step, run.spool)
            name = run.name(stored)
            result = run.journal.get(name)
            if result:
                results.append(result)
            else:
                missing[name] = stored
        if missing:
            requests.update(missing)
            raise _StopError
        return [_make_reply(result) for result in results]

    _dry_run(run.requests, reply)
    return [*requests.values()]


def _dry_run(
    questions: Sequence[StoredRequest],
    reply: Callable[[StoredRequest, Sequence[Step]], list[Reply]],
) -> None:
    """Call the programs of questions without the model, until each ends in any way or asks for too much."""
    shared: dict[Any, Any] = {}
    for asked in questions:
        assert asked.sample.method
        most = int(asked.sample.method["arguments"][MAX_REQUESTS])
        question = _make_question(asked, _limit(partial(reply, asked), most))
        question.shared = shared
        # A mistake of the program shows when it is asked.
        with suppress(_StopError, Exception):
            _call_program(asked, question)


def _limit(
    send: Callable[[Sequence[Step]], list[Reply]], left: int
) -> Callable[[Sequence[Step]], list[Reply]]:
    """Return a function that sends requests, and ends the program if there are too many."""

    def send_some(steps: Sequence[Step]) -> list[Reply]:
        nonlocal left
        left -= len(steps)
        if left < 0:
            raise _StopError
        return send(steps)

    return send_some
