"""The record of a method, a way to ask the questions of tasks other than the official prompt; and a question.

The program of a method gets a question: its texts, and functions that send requests to the model. A program is a plain
function. It runs in a thread of its own and waits for its replies; `ask_all` sends several requests at the same time.
It must be deterministic: a run that was stopped calls it again, and each request that was answered before gets the same
reply without being sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from helm_longctx.tasks.methods.chunks import split
from helm_longctx.tasks.reasoning import remove_reasoning
from helm_longctx.tasks.task import Example, Settings, Task
from helm_longctx.tasks.token_estimate import estimate_tokens

TOOLS = "tools"
"""The field of scored records with the definitions of a task's tools."""

_ASK_TOKENS = 1024
"""The output budget of a request that names none."""


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool that the model asks for: its id in the conversation, the tool's name, and the arguments.

    Args:
        extra: further fields that the provider wants back with the call, such as Google's signature of a thought.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What the model replied: its text as it wrote it, and the calls of tools that it asks for.

    Args:
        reasoning: the reasoning before the calls with its signatures, in the form of the provider. It is sent back with
            the calls: DeepSeek and Anthropic refuse calls without it.
    """

    text: str
    calls: Sequence[ToolCall] = ()
    reasoning: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answer(self) -> str:
        """The text without its reasoning and without white space at its ends."""
        return remove_reasoning(self.text).strip()


@dataclass(frozen=True)
class Step:
    """A request of a program.

    Args:
        messages: the conversation. Beside `role` and `content`, a message of the assistant can have `calls` and the
            `reasoning` before them, and one with the role `tool` has the `id` of the call whose result it is.
        max_tokens: the output budget, without tokens for thinking.
        is_official: whether it is the task's own prompt, with the stop sequences and the ending of completions.
        tools: the tools that the model can call; each has `name`, `description` and the JSON schema `parameters`.
    """

    messages: Sequence[Mapping[str, Any]]
    max_tokens: int = _ASK_TOKENS
    label: str = ""
    is_official: bool = False
    tools: Sequence[Mapping[str, Any]] = ()


_Send = Callable[[Sequence[Step]], list[Reply]]
"""Sends requests at the same time, and returns the reply to each."""


@dataclass(frozen=True)
class Part:
    """A part of a context: its text, and what the task knows of it, such as the date of a session."""

    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def characters_of(tokens: int, text: str) -> int:
    """Return how many characters of a text have about so many tokens.

    The ratio is rounded to half a character, so that a text and its beginning have parts of the same size.
    """
    return max(
        1,
        int(tokens * max(1, round(2 * len(text) / max(1, estimate_tokens(text)))) / 2),
    )


@dataclass
class Question:
    """One question.

    Args:
        span: [start, end) of the context in it, in characters.
        marks: starts of the context's parts, in characters, with what the task knows of each; see `Example.marks`.
        tools: the definitions of the task's tools, each with `name`, `description` and the JSON schema `parameters`.
        pause: a block in which the program waits for something else than the model, such as another question.
        shared: what the questions of a run share, such as a memory that was fed; empty when the run starts.
        notes: numbers about the way to the answer that the program sets with `note`.
    """

    id: str
    text: str
    span: tuple[int, int]
    question: str
    arguments: Mapping[str, Any]
    max_tokens: int
    send: _Send
    marks: Sequence[tuple[int, Mapping[str, Any]]] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    pause: Callable[[], AbstractContextManager[Any]] = nullcontext
    shared: dict[Any, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def context(self) -> str:
        """The whole context, however long it is."""
        return self.text[slice(*self.span)]

    @property
    def task(self) -> str:
        """What the prompt says around the context: instructions, question and form of the answer."""
        return f"{self.text[: self.span[0]].rstrip()}\n\n{self.text[self.span[1] :].strip()}".strip()

    def prompt(self, context: str) -> str:
        """Return the task's prompt with another text instead of the context."""
        return self.text[: self.span[0]] + context + self.text[self.span[1] :]

    def ask(
        self,
        prompt: str,
        max_tokens: int = _ASK_TOKENS,
        label: str = "",
    ) -> str:
        """Send a prompt, and return the reply without reasoning and without white space at its ends."""
        return self.ask_all([prompt], max_tokens, label)[0]

    def ask_all(
        self,
        prompts: Sequence[str],
        max_tokens: int = _ASK_TOKENS,
        label: str = "",
    ) -> list[str]:
        """Send several prompts at the same time, and return their replies in the same order."""
        steps = []
        for prompt in prompts:
            steps.append(Step([{"role": "user", "content": prompt}], max_tokens, label))
        return [reply.answer for reply in self.send(steps)]

    def answer(self, context: str, label: str = "answer") -> str:
        """Send the task's prompt with another context and the task's budget, and return the output as it is scored."""
        messages = [{"role": "user", "content": self.prompt(context)}]
        return self.send([Step(messages, self.max_tokens, label, is_official=True)])[
            0
        ].text

    def converse(
        self,
        messages: Sequence[Mapping[str, Any]],
        max_tokens: int = _ASK_TOKENS,
        label: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Reply:
        """Send a conversation, with tools that the model can call; see `Step`."""
        return self.send([Step(messages, max_tokens, label, tools=tools)])[0]

    def note(self, **numbers: Any) -> None:
        """Keep numbers with the run, such as the number of compactions."""
        self.notes |= numbers

    def parts(self, tokens: int) -> list[Part]:
        """Return the context in parts of about so many tokens. Joined they are the context.

        A part ends at a paragraph, line, sentence or word, and where the task starts a new part, such as a session. The
        number of tokens is estimated from the text, so that all models get the same parts.
        """
        context = self.context
        marks = [*self.marks]
        if not marks or marks[0][0]:
            marks = [(0, {}), *marks]
        size = characters_of(tokens, context)
        ends = [*(start for start, _ in marks[1:]), len(context)]
        parts: list[Part] = []
        for (start, metadata), end in zip(marks, ends, strict=True):
            for text in split(context[start:end], size):
                parts.append(Part(text, metadata))
        return parts


_Ask = Callable[[Task, Settings, Example], Example]
"""Function that returns the example that is sent instead of an example."""

_Program = Callable[[Question], str]
"""Function that returns the answer to a question, for which it can send any number of requests."""

MAX_REQUESTS = "max_requests"
"""The argument of each method with a program: most requests for one question."""


@dataclass(frozen=True)
class Method:
    """A method. It makes another example of each example (`ask`), or it is a program that answers it (`answer`).

    Args:
        name: the value of the run-entry argument `method`.
        ask: makes the example that is sent. It can change the fields, among them `context`, or give the example
            messages, a second request (`follow_up`) and an output budget (`max_tokens`). Id, references, record and
            group stay. The example has no messages of its own, and its fields have a context and a question.
        answer: the program. None for a method with the request or the two requests of the example.
        arguments: the default of each run-entry argument of the method, a whole number from 1, or a text. Methods that
            share a name share the argument. A program also has `max_requests` (1,000).
        first_tokens: returns the output budget of the first of two requests; 0 for methods with one request.
        fits: whether the method can ask a task whose template has a context and a question.
        needs: what such a task must have in addition, for errors. Empty if `fits` is always true.
        extra: the extra of this package that the method needs. Empty for none.
        is_floor: whether scores need no understanding of the context, so that models with this method are not ranked.
        needs_tools: whether the program gives the model tools, so that the deployment must take native tool calls.
        needs_sandbox: whether the program runs code that the model writes. The user must allow it.
    """

    name: str
    about: str
    ask: _Ask = lambda task, settings, example: example
    arguments: Mapping[str, int | str] = field(default_factory=dict)
    first_tokens: Callable[[Task], int] = lambda task: 0
    fits: Callable[[Task], bool] = lambda task: True
    needs: str = ""
    extra: str = ""
    is_floor: bool = False
    answer: _Program | None = None
    needs_tools: bool = False
    needs_sandbox: bool = False

    def __post_init__(self) -> None:
        if self.answer:
            object.__setattr__(
                self, "arguments", {MAX_REQUESTS: 1000, **self.arguments}
            )

    def can_ask(self, task: Task) -> bool:
        """Whether the method can ask a task."""
        return task.has_question and self.fits(task)
