"""The method `memory`: a system of the user reads the context in parts, and answers questions from what it has kept.

Builders of such systems ask for these three functions (LongBench issue 132), and the scripts of
LongMemEval and BEAM use them. A context is fed once, and the same system answers all questions about it. Parts are
given by the task, such as a session with its date, or else have about `turn` tokens.
"""

import hashlib
import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.parts import import_user_module
from helm_longctx.tasks.methods.chunks import find_best, split
from helm_longctx.tasks.methods.method import Method, Question

KEPT = 8
"""Contexts whose systems are kept, the ones that were asked last. Questions about one context come together."""


class _MemorySystem(Protocol):
    """A system that reads a context and then answers questions.

    Its class takes no argument, or the function `ask(prompt, max_tokens=1024, label="")`: it sends a prompt to the
    model of the run and returns the reply. `answer` must not change what later answers say, because questions come in
    any order.
    """

    def reset(self) -> None:
        """Forget everything."""

    def feed(self, text: str, metadata: Mapping[str, Any]) -> None:
        """Read the next part of a context."""

    def answer(self, question: str) -> str:
        """Answer a question about what was fed. It has the task's instructions on the form of the answer."""


class ChunkMemory:
    """The system by default: keeps the last `capacity` chunks, and shows the model those that match the question."""

    capacity = 1_000_000
    shown = 8
    size = 1500

    def __init__(self, ask: Callable[..., str]):
        self._ask = ask
        self._chunks = list[str]()

    def reset(self) -> None:
        """Forget all chunks."""
        self._chunks.clear()

    def feed(self, text: str, metadata: Mapping[str, Any]) -> None:
        """Keep the chunks of a text, each with its date."""
        mark = f"[{metadata['date']}] " if "date" in metadata else ""
        self._chunks += [mark + chunk for chunk in split(text, self.size)]
        del self._chunks[: -self.capacity]

    def answer(self, question: str) -> str:
        """Ask the model with the best chunks."""
        best = []
        for index in find_best(self._chunks, question, self.shown):
            best.append(self._chunks[index])
        return self._ask("\n\n".join([*best, question]), 1024, label="answer")


@dataclass
class _SharedSystem:
    """A system that one question at a time uses, and what sends the requests of that question."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    system: _MemorySystem | None = None
    question: Question | None = None

    def ask(self, *arguments: Any, **named: Any) -> str:
        """Send a prompt as a request of the question that uses the system now."""
        assert self.question
        return self.question.ask(*arguments, **named)


_lock = threading.Lock()


def answer(question: Question) -> str:
    """Answer by the system that the run entry names."""
    return _answer_with(_find_system(str(question.arguments["system"])), question)


def _answer_with(make: Callable[..., _MemorySystem], question: Question) -> str:
    """Answer by a system. It is made and fed for the first question about a context."""
    key = hashlib.sha256(question.context.encode("utf-8", "surrogatepass")).digest()
    with _lock:
        systems = question.shared
        systems[key] = slot = systems.pop(key, None) or _SharedSystem()
        for oldest in [*systems][:-KEPT]:
            del systems[oldest]
    with question.pause():
        slot.lock.acquire()
    try:
        # The requests of feeding have the label of their own, and belong to the question that is asked first.
        slot.question = question
        if slot.system is None:
            if inspect.signature(make).parameters:
                system = make(slot.ask)
            else:
                system = make()
            system.reset()
            for part in question.parts(int(question.arguments["turn"])):
                system.feed(part.text, part.metadata)
            slot.system = system
        return slot.system.answer(question.task)
    finally:
        slot.lock.release()


def _find_system(where: str) -> Callable[..., _MemorySystem]:
    """Return the class that `package.module.Class` names. Raises an `InputError` if there is no such class."""
    module, _, name = where.replace(":", ".").rpartition(".")
    try:
        system: Callable[..., _MemorySystem] = getattr(import_user_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        allowed = f"a class as package.module.Class ({error})"
        raise bad_argument("method=memory", "system", where, allowed) from error
    functions = ("reset", "feed", "answer")
    lacking = [name for name in functions if not callable(getattr(system, name, None))]
    if lacking:
        raise InputError(
            f"method=memory: system={where} has no {', '.join(lacking)}; see docs/methods.md"
        )
    return system


def make_memory_method(
    name: str,
    about: str,
    system: Callable[..., _MemorySystem],
    turn: int = 2000,
) -> Method:
    """Return a method that answers by a system of a package, for an entry point of the group `helm_longctx.methods`."""
    return Method(
        name,
        about,
        answer=lambda question: _answer_with(system, question),
        arguments={"turn": turn},
    )


MEMORY = Method(
    "memory",
    "Feeds the context to a system of the user in parts, and asks it (reset, feed, answer).",
    answer=answer,
    arguments={"system": f"{__name__}.ChunkMemory", "turn": 2000},
    extra="retrieval",
)
