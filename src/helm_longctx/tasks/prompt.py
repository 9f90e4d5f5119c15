"""A prompt in the styles that models take, the templates of prompts, and the part of an output that is scored.

A template has a user turn, an answer prefix, and the separator between them.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from helm_longctx.errors import ShapeError
from helm_longctx.tasks.reasoning import remove_reasoning

Style = Literal["chat", "completion"]
"""How a prompt is sent."""

Message = Mapping[str, Any]
"""`role` (system, user, assistant or tool) and `content`, as in OpenAI's protocol.

A message of the assistant can have `tool_calls`, and its content can then be None. A message of a tool has the
`tool_call_id` of the call whose result it is.
"""


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("content"), str):
        return False
    return value.get("role") in ("system", "user", "assistant")


def read_messages(name: str, value: Any) -> tuple[Message, ...]:
    """Check and return a conversation without tools that was read from a file.

    Raises:
        ShapeError: it is not a list of messages, or the last one is not the user's.
    """
    is_list = isinstance(value, list) and bool(value) and all(map(_is_message, value))
    if not is_list or value[-1]["role"] != "user":
        raise ShapeError(
            f"{name} must be a list of objects with role and content, the last one the user's"
        )
    return tuple(
        {"role": message["role"], "content": message["content"]} for message in value
    )


def _is_call(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        return False
    function = value.get("function")
    if not isinstance(function, dict):
        return False
    return all(isinstance(function.get(name), str) for name in ("name", "arguments"))


def _is_turn_of_agent(value: Any) -> bool:
    """Whether a value is a message of a conversation in which an assistant calls tools."""
    if not isinstance(value, dict):
        return False
    calls = value.get("tool_calls")
    if value.get("role") == "assistant" and isinstance(calls, list) and calls:
        has_content = isinstance(value.get("content"), str | None)
        return has_content and all(map(_is_call, calls))
    if value.get("role") == "tool":
        names = ("content", "tool_call_id")
        return all(isinstance(value.get(name), str) for name in names)
    return _is_message(value)


def read_turns_of_agent(name: str, value: Any) -> tuple[Message, ...]:
    """Check and return the messages of an agent that were read from a file, with its calls of tools and their results.

    They are returned as they are, because all of their fields are sent.

    Raises:
        ShapeError: it is not a list of messages of OpenAI's protocol.
    """
    if not isinstance(value, list) or not all(map(_is_turn_of_agent, value)):
        raise ShapeError(
            f"{name} must be a list of messages of OpenAI's protocol: objects with role and content, calls with id and"
            " function (name and arguments), results with tool_call_id"
        )
    return tuple(value)


def message_text(message: Message) -> str:
    """Return what a message says: its content, and each call of a tool in a line below it."""
    text: str = message["content"] or ""
    for call in message.get("tool_calls") or ():
        function = call["function"]
        text += f"\n[{function['name']} {function['arguments']}]"
    return text


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt as a chat and as a completion.

    The chat is `messages`. The completion exists only for a single user turn; it is the turn, the separator and the
    answer prefix.

    Args:
        messages: the conversation; the last message is the user's.
        separator: the text between the user turn and the answer prefix of a completion.
        answer_prefix: the start of the answer. A completion prompt ends with it.
        context: [start, end) of the part of the first user turn that may be cut, in characters. None if no part may.
    """

    messages: Sequence[Message]
    separator: str = ""
    answer_prefix: str = ""
    context: tuple[int, int] | None = None

    def with_system(self, content: str) -> RenderedPrompt:
        """Return the same prompt after a system message."""
        return replace(
            self, messages=[{"role": "system", "content": content}, *self.messages]
        )

    @property
    def has_one_turn(self) -> bool:
        """Whether the prompt is a single user turn, so that it can also be sent as a completion."""
        return len(self.messages) == 1

    @property
    def user_turn(self) -> str:
        """The text of the last message."""
        text: str = self.messages[-1]["content"]
        return text

    def text(self, style: Style) -> str:
        """Return the text of the last user turn. A completion has the separator and the answer prefix after it."""
        if style == "completion":
            return self.user_turn + self.separator + self.answer_prefix
        return self.user_turn

    def parts(self, style: Style) -> tuple[str, str] | None:
        """Return the text up to the end of its context, and the rest, or None if the last message has no context."""
        roles = [message["role"] for message in self.messages]
        first = roles.index("user")
        if self.context is None or first < len(self.messages) - 1:
            return None
        text = self.text(style)
        end = self.context[1]
        return text[:end], text[end:]


@dataclass(frozen=True)
class FittedPrompt:
    """A prompt's text after it was fitted into a limit.

    Args:
        tokens: number of tokens of the whole prompt. None if it was not counted because the prompt was cut or is
            certainly short enough.
    """

    prompt: str
    cut: bool = False
    tokens: int | None = None


@dataclass(frozen=True)
class FollowUp:
    """A second request to the model. Its prompt contains the answer to the first one, and its answer is scored.

    Args:
        parts: the texts of the prompt; between each two of them is the first answer.
        max_tokens: the output budget of the second request, without tokens for thinking.
        ending: the text with which the prompt ends as a completion; the answer prefix, for example.
    """

    parts: Sequence[str]
    max_tokens: int
    ending: str = ""

    def prompt(self, answer: str, style: Style | None = "chat") -> str:
        """Return the second prompt, with the first answer without its reasoning and without white space at its ends."""
        text = remove_reasoning(answer).strip().join(self.parts)
        if style == "completion":
            return text + self.ending
        return text


CONTEXT = "context"
"""The name of the field with the long text, the only one that may be cut."""

QUESTIONS = ("question", "query", "input")
"""Names of the field with the question in official templates."""

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")
"""A doubled brace, or a name in braces."""


def fill(template: str, fields: Mapping[str, object]) -> str:
    """Fill a template that was read from a file.

    The result equals `str.format` if all placeholders are plain names. Unlike `str.format`, this function never looks
    up attributes or items of a value, because a downloaded template must not read objects. Placeholders without a field
    stay unchanged.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0][0]
        if match[1] in fields:
            return str(fields[match[1]])
        return match[0]

    return _PLACEHOLDER.sub(value, template)


@dataclass(frozen=True)
class Template:
    """A prompt template of a benchmark, as in its official code.

    Args:
        user: the user turn, with `{field}` placeholders. A chat model gets this text.
        prefix: the start of the answer. A completion prompt ends with it.
        separator: the text between the two in a completion prompt.
    """

    user: str
    prefix: str
    separator: str = "\n"

    @classmethod
    def whole(cls, text: str) -> Template:
        """Return the template of a prompt without an answer prefix, with the same text for chats and completions."""
        return cls(text, "", separator="")

    @property
    def names(self) -> frozenset[str]:
        """The names of the fields."""
        return frozenset(self._completion_parts[1])

    @property
    def has_question(self) -> bool:
        """Whether there are fields for a context and for a question about it."""
        names = self.names
        return CONTEXT in names and not names.isdisjoint(QUESTIONS)

    def render(self, fields: Mapping[str, str]) -> RenderedPrompt:
        """Make the prompt of an example from its fields."""
        # `str.format` is safe here, because these templates are code. `fill` is for downloaded templates.
        user = self.user.format(**fields)
        prefix = self.prefix.format(**fields)
        # The start is not a constant, because fields before the context, such as demonstrations, have varying lengths.
        before, field, _ = self.user.partition("{" + CONTEXT + "}")
        start = len(before.format(**fields))
        if field:
            span = (start, start + len(fields[CONTEXT]))
        else:
            span = None
        return RenderedPrompt(
            [{"role": "user", "content": user}], self.separator, prefix, span
        )

    def parse(self, prompt: str) -> dict[str, str] | None:
        """Recover the fields from a rendered prompt, chat or completion. Returns None if this template did not render it.

        Literals are searched from the end of the prompt, because the question is there and the long context before it
        can contain the same literals.
        """
        # The completion is tried first. If the user turn ends with a field, the chat would also match a completion
        # and add the answer prefix to that field.
        for literals, names in (self._completion_parts, self._chat_parts):
            fields = _split_at(prompt, literals, names)
            if fields is not None:
                return fields
        return None

    @cached_property
    def _chat_parts(self) -> tuple[list[str], list[str]]:
        return _split_template(self.user)

    @cached_property
    def _completion_parts(self) -> tuple[list[str], list[str]]:
        return _split_template(self.user + self.separator + self.prefix)


NO_TEMPLATE = Template("", "")
"""The template of tasks whose examples have their own messages."""


def _split_template(text: str) -> tuple[list[str], list[str]]:
    """Split a template into its literals and field names, in order. There is one literal more than fields."""
    literals = [""]
    names = []
    for literal, name, _, _ in string.Formatter().parse(text):
        literals[-1] += literal
        if name is not None:
            names.append(name)
            literals.append("")
    return literals, names


def _split_at(
    prompt: str,
    literals: list[str],
    names: list[str],
) -> dict[str, str] | None:
    """Return the fields between the literals of a prompt, or None if the prompt lacks these literals in this order."""
    if not (prompt.startswith(literals[0]) and prompt.endswith(literals[-1])):
        return None
    first = len(literals[0])
    end = len(prompt) - len(literals[-1])
    fields: dict[str, str] = {}
    for number in range(len(names) - 1, 0, -1):
        literal = literals[number]
        before = literals[number - 1]
        start = first
        if names[number] == CONTEXT and literal and before and number > 1:
            # The field before the context is short, and the context can contain the literal between the two. So the
            # first occurrence of the literal after the start of that field is the right one.
            at = -1
            last = end
            while at < 0 and (before_at := prompt.rfind(before, first, last)) >= 0:
                start = before_at + len(before)
                at = prompt.find(literal, start, end)
                # The literal itself can contain the one before it.
                last = before_at
        else:
            # Two adjacent fields have no literal between them. The later one, such as the context after demonstrations,
            # gets the whole text.
            at = prompt.rfind(literal, first, end) if literal else first
        if at < start:
            return None
        fields[names[number]] = prompt[at + len(literal) : end]
        end = at
    fields[names[0]] = prompt[first:end]
    return fields
