"""Answers questions by the program of a method. It sends any number of requests for each (`Method.answer`).

Each program runs in a thread, puts its requests into the queue of the run (`runner/engine.py`), and waits for its
replies. The journal has each reply, so a program that is called again after a crash gets the replies that have arrived,
and nothing is sent twice. Equal requests of several questions are sent once, and cost the question that asked first.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.helm_api import GeneratedOutput, RequestResult, RequestState
from helm_longctx.models.apis.calls import TICK
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
from helm_longctx.runner.asking import Asking
from helm_longctx.runner.engine import (
    PendingRequest,
    QueuedRequest,
    RequestEngine,
    RequestOutcome,
)
from helm_longctx.runner.spending import Spending
from helm_longctx.runner.spool import Spool, StoredRequest, point_to
from helm_longctx.runs.journal import Journal, request_name
from helm_longctx.runs.prompts import elide_messages, request_text, without_text
from helm_longctx.runs.scores import STEPS
from helm_longctx.tasks.answer import AnswerFacts, Steps, Usage
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

_SHOWING_SECONDS = TICK / 20
"""Seconds that a new program gets to send its first requests before the next program begins."""


class _StopError(BaseException):
    """Ends a program. It is no `Exception`, so that the program's own handlers let it pass."""

    def __init__(self, reason: RequestResult | None = None):
        super().__init__()
        self.reason = reason


def has_programs(requests: Sequence[StoredRequest]) -> bool:
    """Whether the program of a method answers the questions of a run."""
    return bool(requests) and requests[0].sample.method is not None


def _make_question(
    asked: StoredRequest,
    send: Callable[[Sequence[Step]], list[Reply]],
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
            f" {requests[0].request.model_deployment} does not send; use a deployment"
            " with OpenAIClient or AnthropicClient of helm_longctx.models.apis"
        )


class _Program:
    """A program that answers a question, in a thread of its own, with its requests.

    Attributes:
        seconds: how long the program waited for the model; requests sent together count once, as the slowest.
        usages, steps: what the question pays for each request, and what a page shows of it.
        since: when the program got its last replies. It is None while the program waits.
        interrupted: when the program was told to stop. It is None before.
        is_silent: whether the program has not sent a request yet.
        is_late: whether a request took too long.
        fault: why a request could not be stored. It is no fault of the program, so it ends the run.
        ending: what the program has ended with.
    """

    def __init__(
        self,
        number: int,
        asked: StoredRequest,
        asking: ProgramAsking,
        engine: RequestEngine,
        spool: Spool,
    ):
        assert asked.sample.method
        self.number = number
        self.asked = asked
        self.asking = asking
        self.spool = spool
        self.seconds = 0.0
        self.usages: list[Usage | None] = []
        self.steps: list[dict[str, Any]] = []
        self.last: RequestResult | None = None
        self.is_cached = True
        self.begun = time.monotonic()
        self.since: float | None = self.begun
        self.interrupted: float | None = None
        self.is_silent = True
        self.is_late = False
        self.forks = False
        self.fault: OSError | None = None
        self.ending: RequestResult | InputError | OSError | _StopError | None = None
        self.name = f"method={asked.sample.method['name']}"
        self._engine = engine
        self._most = int(asked.sample.method["arguments"][MAX_REQUESTS])
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Call the program."""
        self._thread.start()

    def interrupt(self) -> None:
        """Raise an exception in the thread, at its next step in Python."""
        self.interrupted = time.monotonic()
        identifier = ctypes.c_ulong(self._thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            identifier, ctypes.py_object(_StopError)
        )

    @property
    def has_ended(self) -> bool:
        """Whether the program has ended in any way."""
        return self.ending is not None or not self._thread.is_alive()

    @property
    def computes_too_long(self) -> bool:
        """Whether the program has sent no request for longer than it may compute."""
        since = self.since
        return since is not None and time.monotonic() - since > _MOST_SECONDS

    def _work(self) -> None:
        ending = _call(self)
        self.ending = self.fault or ending
        self.is_silent = False
        self._engine.wake()

    def send(self, steps: Sequence[Step]) -> list[Reply]:
        """Send requests at the same time; see `Question`. Ends the program if one of them has no answer."""
        if self.forks:
            raise _StopError
        if len(self.steps) + len(steps) > self._most:
            raise _StopError(
                _refuse(
                    f"{self.name} asks for more than {MAX_REQUESTS}={self._most} requests"
                )
            )
        with self.pausing():
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

    def _exchange(self, steps: Sequence[Step]) -> list[RequestResult]:
        replies: SimpleQueue[tuple[int, RequestOutcome]] = SimpleQueue()
        try:
            requests = [_store_step(self.asked, step, self.spool) for step in steps]
        except OSError as error:
            self.fault = error
            raise _StopError from error
        for index, request in enumerate(requests):
            deliver = partial(_put_reply, replies, index)
            self._engine.submit(QueuedRequest(PendingRequest(request), deliver))
        self.is_silent = False
        self._engine.wake()
        results: dict[int, RequestResult] = {}
        while len(results) < len(steps):
            try:
                index, outcome = replies.get(timeout=TICK)
            except Empty:
                if self._engine.sender.is_stopped:
                    raise _StopError from None
                continue
            results[index] = outcome.result
            self.is_late |= outcome.is_late
            self._record(steps[index], requests[index], outcome)
        return [results[index] for index in range(len(steps))]

    def _record(
        self,
        step: Step,
        stored: StoredRequest,
        outcome: RequestOutcome,
    ) -> None:
        result = outcome.result
        usage = usage_of(result)
        if outcome.is_first and failure_of(result) is None:
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
                "shared": not outcome.is_first,
            }
        )

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


def _put_reply(
    replies: SimpleQueue[tuple[int, RequestOutcome]],
    index: int,
    outcome: RequestOutcome,
) -> None:
    replies.put((index, outcome))


def _refuse(reason: str) -> RequestResult:
    return make_failure(
        Failure.BAD_REQUEST, f"{reason}; it was stopped, and the question has no answer"
    )


class ProgramAsking(Asking):
    """Answers questions by programs. The folder gets their steps.

    Attributes:
        shared: what programs keep for each other.
    """

    def __init__(
        self,
        sender: Sender,
        journal: Journal,
        spending: Spending,
        total: int,
        folder: Path,
    ):
        super().__init__(sender, journal, spending, total)
        self.shared: dict[Any, Any] = {}
        self._programs: dict[int, _Program] = {}
        self._folder = folder
        (folder / STEPS).write_bytes(b"")

    def recall(self, asked: StoredRequest) -> RequestState | None:
        """Return None: the program is called again, and gets the replies that are in the journal."""
        return None

    @property
    def has_open_questions(self) -> bool:
        """Whether a program has begun whose result was not taken."""
        return bool(self._programs)

    @property
    def patience(self) -> float:
        """Seconds until the next program may begin, or until a program is looked at again."""
        return _SHOWING_SECONDS if self._silent_programs else TICK

    @property
    def _silent_programs(self) -> list[_Program]:
        return [program for program in self._programs.values() if program.is_silent]

    def may_begin(self, engine: RequestEngine) -> bool:
        """Whether another program may begin: the requests of those that have begun do not fill the width."""
        if not self._programs:
            return True
        if not engine.is_proven or len(self._programs) >= engine.parallelism:
            return False
        silent = self._silent_programs
        # A program shows how many requests it sends when it sends the first ones.
        if silent and time.monotonic() - silent[-1].begun < _SHOWING_SECONDS:
            return False
        return engine.open_requests + len(silent) < engine.parallelism

    def begin(
        self,
        number: int,
        pending: PendingRequest,
        engine: RequestEngine,
    ) -> None:
        """Begin a question: start its program."""
        program = _Program(
            number=number,
            asked=pending.request,
            asking=self,
            engine=engine,
            spool=Spool(self._folder),
        )
        self._programs[number] = program
        program.start()

    def take_finished(self) -> dict[int, RequestOutcome]:
        """Return what came of the questions whose programs have ended since the last call, or compute for too long.

        Raises:
            InputError, OSError: see `_result_of`.
        """
        finished = {}
        for number, program in [*self._programs.items()]:
            if program.has_ended or _is_stuck(program):
                finished[number] = self._collect(program)
            elif program.computes_too_long and program.interrupted is None:
                program.interrupt()
        return finished

    def close(self) -> None:
        """End the programs that have not ended. Those that wait for a reply end by themselves."""
        super().close()
        for program in self._programs.values():
            if program.since is not None:
                program.interrupt()
            program.spool.close()

    def _collect(self, program: _Program) -> RequestOutcome:
        """Return what came of a program that has ended or is left behind, and write its steps."""
        result = _result_of(program)
        del self._programs[program.number]
        program.spool.close()
        state = program.asked.state
        about = {
            "id": state.instance.id,
            "task": state.instance.sub_split,
            "repeat": state.train_trial_index,
        }
        with (self._folder / STEPS).open("ab") as file:
            file.write(serialize({**about, "steps": program.steps}) + b"\n")
        return RequestOutcome(result, is_late=program.is_late)


def _is_stuck(program: _Program) -> bool:
    """Whether a program was told to stop and has not stopped. Its thread is left behind."""
    if program.interrupted is None:
        return False
    return time.monotonic() - program.interrupted > TICK


def _result_of(program: _Program) -> RequestResult:
    """Return the result of the question of a program.

    Raises:
        InputError: the program had bad input.
        OSError: a request could not be stored, for example on a full disk.
    """
    ending = program.ending
    if isinstance(ending, _StopError):
        ending = ending.reason
    if isinstance(ending, InputError | OSError):
        raise ending
    if ending is None and program.interrupted is not None:
        return _refuse(
            f"{program.name} computed for {_MOST_SECONDS:g} seconds without a request"
        )
    if ending is None:
        raise InputError("the run was stopped")
    has_answer = failure_of(ending) is None
    if has_answer and not ending.completions[0].text and not program.steps:
        return _refuse("the program sent no request and returned nothing")
    return ending


_running = threading.local()


def _call_program(asked: StoredRequest, question: Question) -> Any:
    """Return what the program of a question returns. It can be anything."""
    assert asked.sample.method
    answer = METHODS[asked.sample.method["name"]].answer
    assert answer
    return answer(question)


def _call(program: _Program) -> RequestResult | InputError | _StopError:
    """Return what the program of a question has ended with."""
    _watch_forks()
    _running.program = program
    try:
        question = _make_question(program.asked, program.send)
        question.pause = program.pausing
        question.shared = program.asking.shared
        text = _call_program(program.asked, question)
        if program.forks:
            return _refuse(f"{program.name} started a process with fork")
        if not isinstance(text, str):
            return _refuse(
                f"{program.name} returned a value of type {type(text).__name__} instead of a text"
            )
        return program.join(text, question.notes)
    except _StopError as stop:
        if program.forks:
            return _refuse(f"{program.name} started a process with fork")
        return stop
    except InputError as error:
        return error
    except (Exception, SystemExit) as error:  # of the program
        return _refuse(
            f"{program.name}: {type(error).__name__}: {describe_error(error)}"
        )
    finally:
        _running.program = None


@cache
def _watch_forks() -> None:
    """From now on end a copy of this process that a program makes with fork: two would send the same requests."""

    def watch(is_copy: bool) -> None:
        if program := getattr(_running, "program", None):
            program.forks = True
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
        return [Reply(" ".join(["word"] * (step.max_tokens // 2))) for step in steps]

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
    send: Callable[[Sequence[Step]], list[Reply]],
    left: int,
) -> Callable[[Sequence[Step]], list[Reply]]:
    """Return a function that sends requests, and ends the program if there are too many."""

    def send_some(steps: Sequence[Step]) -> list[Reply]:
        nonlocal left
        left -= len(steps)
        if left < 0:
            raise _StopError
        return send(steps)

    return send_some
