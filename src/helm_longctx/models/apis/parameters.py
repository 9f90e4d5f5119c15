"""Drops or renames the parameters that a model refuses, after the server's error, and in all later requests.

There is no list of models, because the parameters that a model accepts change over time.
"""

import re
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from helm_longctx.errors import error_text
from helm_longctx.failures import Failure, failure_of_error, is_output_limit
from helm_longctx.helm_log import helm_log
from helm_longctx.models.apis.protocol import Body
from helm_longctx.redaction.abbreviation import abbreviate
from helm_longctx.redaction.text import redact

DROPPABLE = (
    "top_logprobs",
    "logprobs",
    "stream_options",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "top_p",
    "stop",
    "stop_sequences",
    # It is last: if an error names it together with `top_p`, as with Anthropic's newer models, only `top_p` is dropped.
    "temperature",
)
"""Parameters that a request does not need. If an error names several, the first one in this list is dropped."""

ADAPTIVE = {"type": "adaptive", "display": "summarized"}
"""Anthropic's thinking without a budget. Newer models return no reasoning unless they are asked for it."""

_HEAD = 1000
"""Number of characters of an error that are searched. The text after them can be a part of the prompt."""

# The words are used by OpenAI ("only the default (1) value is supported"), Anthropic ("may only be set to 1 when
# thinking is enabled", "must contain non-whitespace" for stop sequences), pydantic in vLLM and NIM ("extra_forbidden")
# and Google ("cannot find field").
_REFUSES = re.compile(
    r"not support|unsupported|unrecognized|unknown|deprecated|not permitted|not allowed|extra_forbidden|cannot both"
    r"|cannot be (?:used|set|specified)|may only|must be (?:unset|1\b|one\b|set to)|only the default|cannot find field"
    r"|no longer|must contain non-whitespace|strictly positive|must be (?:greater|larger|above|>)|non-?zero",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Change:
    """A change of a parameter in each body.

    Args:
        new_name: the name under which its value is sent; None to keep the name.
        value: the value that is sent instead of its own; None to keep the value.
        most: the largest number that is sent. Without a new name, a value and a limit, the parameter is left out.
    """

    parameter: str
    new_name: str | None = None
    value: Any = None
    most: int | None = None

    def apply(self, body: Body) -> Body:
        """Return the changed body. A body that is already changed stays as it is."""
        if self.value is not None:
            return {**body, self.parameter: self.value}
        if self.parameter not in body:
            return body
        if self.most is not None:
            return {**body, self.parameter: min(body[self.parameter], self.most)}
        rest = {}
        for name, value in body.items():
            if name != self.parameter:
                rest[name] = value
        if self.new_name:
            return {**rest, self.new_name: body[self.parameter]}
        return rest

    def __str__(self) -> str:
        if self.value is not None:
            return f"{self.parameter!r} is sent as {self.value!r}"
        if self.most is not None:
            return f"{self.parameter!r} is lowered to {self.most}"
        return f"{self.parameter!r} is {f'sent as {self.new_name!r}' if self.new_name else 'not sent'}"


_LEAST_BUDGET = 16
"""Smallest limit of an output budget that is taken from an error. An error can also name the start of a range."""

_NUMBER = re.compile(r"(?<![\w.-])\d[\d,]{0,15}(?![\w-])")
"""A number that is no part of a name, such as the model's."""

_REPLACEMENTS = [
    (
        re.compile(r"max_completion_tokens"),
        Change("max_tokens", new_name="max_completion_tokens"),
    ),
    (re.compile(r"thinking\.type\.adaptive"), Change("thinking", value=ADAPTIVE)),
    (
        re.compile(
            r"only supports? stream|stream\W.{0,40}(?:required|must be (?:set to )?true)"
            r"|enable_thinking.{0,80}stream|enable the stream",
            re.I,
        ),
        Change("stream", value=True),
    ),
]
"""Patterns of errors that say what to send instead (OpenAI, Anthropic, Alibaba), and the changes."""


class Parameters:
    """The known changes of parameters for a deployment's model. Several threads can share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.changes: tuple[Change, ...] = ()

    def apply(self, body: Body, asked: Collection[str] = ()) -> Body:
        """Return a body without the parameters that the model refuses, except those in `asked`; see `learn`."""
        for change in self.changes:
            if change.parameter not in asked:
                body = change.apply(body)
        return body

    def learn(
        self,
        error: Exception,
        sent: Body,
        asked: Collection[str] = (),
    ) -> bool:
        """Learn from the error after a body was sent. Return whether the same request can be sent in another form.

        Args:
            asked: parameters without which it would be another request.
        """
        with self._lock:
            if (
                self.apply(sent, asked) != sent
            ):  # another thread has learned the same in the meantime
                return True
            change = find_change(error, sent)
            if change is None or change.parameter in asked:
                return False
            # A budget that is refused again was not above the limit that the first error named.
            is_limited = any(
                known.most and known.parameter == change.parameter
                for known in self.changes
            )
            if change.most and is_limited:
                return False
            self.changes += (change,)
        helm_log.warning(
            f"{sent['model']}: {change}, because the server refuses it:"
            f" {abbreviate(redact(error_text(error)))}"
        )
        return True


def find_change(error: Exception, sent: Body) -> Change | None:
    """Return the change that an error asks for, or None if the error is not about a parameter that can be changed."""
    if failure_of_error(error) is not Failure.BAD_REQUEST:
        return None
    text = error_text(error)[:_HEAD]
    if is_output_limit(text):
        return _find_limit(_read_message(error)[:_HEAD], sent)

    def is_named(parameter: str) -> bool:
        """Return whether the text names a parameter, also in xAI's spelling (`presencePenalty`)."""
        first, *others = parameter.split("_")
        camel = first + "".join(map(str.capitalize, others))
        # Only whole words match: `stop` must not be found in `stop_sequences`.
        return re.search(rf"(?<!\w)(?:{parameter}|{camel})(?!\w)", text) is not None

    for pattern, change in _REPLACEMENTS:
        # A change that does not change the body would send the same request again forever.
        if pattern.search(text) and change.apply(sent) != sent:
            return change
    if not _REFUSES.search(text):
        return None
    named = getattr(error, "param", None)
    names = []
    for name in DROPPABLE:
        if name in sent and (name == named or is_named(name)):
            names.append(name)
    return Change(names[0]) if names else None


def _read_message(error: Exception) -> str:
    """Return the server's own message without the status and the codes around it."""
    message = find_message(getattr(error, "body", None))
    return message if isinstance(message, str) else str(error)


def find_message(body: object) -> object:
    """Return what stands for the message in the body of an error: the body itself if it is no mapping."""
    inner = find_inner_error(body)
    return inner.get("message") if isinstance(inner, Mapping) else inner


def find_inner_error(body: object) -> object:
    """Return the description of an error in its body, which most servers put under `error`."""
    return body.get("error", body) if isinstance(body, Mapping) else body


def _find_limit(text: str, sent: Body) -> Change | None:
    """Return the change that lowers the output budget to the model's limit as an error names it, or None if it does not."""
    name = next(
        (name for name in ("max_completion_tokens", "max_tokens") if name in sent), None
    )
    if name is None:
        return None
    numbers = []
    for digits in _NUMBER.findall(text):
        numbers.append(int(digits.replace(",", "")))
    # The error can also name the budget.
    allowed = []
    for number in numbers:
        if _LEAST_BUDGET <= number < sent[name]:
            allowed.append(number)
    if allowed:
        return Change(name, most=max(allowed))
    return None
