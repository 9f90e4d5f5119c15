"""A model's answer to a request, or why there is none: each fact is a field.

Clients know more of an answer than HELM's result has fields for. These are the `AnswerFacts`, which our result has
(`models/results.py`); an `Answer` has all of them together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any, TypeVar

from helm_longctx.failures import Ending, Failure, Problem, ending_of
from helm_longctx.tasks.logprobs import Distribution, KeyTokens, Window
from helm_longctx.tasks.methods.method import ToolCall
from helm_longctx.tasks.reasoning import (
    SplitOutput,
    may_contain_reasoning,
    split_answer,
    split_reasoning,
)

_Facts = TypeVar("_Facts", bound="AnswerFacts")

MOST_TOKENS = 10**9
"""Most tokens that a count can have; a hundred times the longest context."""

_LATEST = re.compile(r"[-:]latest$")

_SNAPSHOT = re.compile(r"[-@:](\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3})$")
"""The end of a snapshot's name: a date such as 2024-08-06, 20240806, 2407 or 0613, or a version such as 001."""


@dataclass(frozen=True)
class Usage:
    """The tokens of a request as the provider counts them. What a provider does not report is 0.

    Args:
        input_tokens: tokens of the prompt, cached ones included.
        cached_tokens: tokens of the prompt that were read from the provider's cache.
        cache_write_tokens: tokens of the prompt that were written to the provider's cache.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def counted_tokens(self) -> int:
        """The most tokens of the prompt that the provider can mean: some servers leave out the cached ones."""
        return self.input_tokens + self.cached_tokens + self.cache_write_tokens

    @classmethod
    def sum(cls, usages: Iterable[Usage]) -> Usage:
        """Return the tokens of several requests together."""
        total = cls()
        for usage in usages:
            total = cls(
                **{
                    name: getattr(total, name) + getattr(usage, name)
                    for name in vars(total)
                }
            )
        return total

    def minus(self, part: Usage) -> Usage:
        """Return the tokens that are left without those of a part."""
        return Usage(
            **{name: value - getattr(part, name) for name, value in vars(self).items()}
        )


def read_counts(usage: object, *paths: str) -> list[int] | None:
    """Read counts from what a provider reports.

    A count that is left out or null is 0.

    Args:
        paths: the names of the counts, with a dot after the name of an object in which a count stands.

    Returns:
        None if one of the counts is not a whole number from 0 to `MOST_TOKENS`.
    """
    counts: list[int] = []
    for path in paths:
        value: Any = usage
        for name in path.split("."):
            if not isinstance(value, Mapping):
                return None
            value = value.get(name)
            if value is None:
                value = 0
                break
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and 0 <= value <= MOST_TOKENS and value == int(value)):
            return None
        counts.append(int(value))
    return counts


def check_usage(usage: Usage) -> Usage | None:
    """Return the tokens if a request can have them, or else None.

    A prompt has tokens, and no more of them are cached than it has. Otherwise the costs would be 0 or negative.
    """
    in_cache = usage.cached_tokens + usage.cache_write_tokens
    if usage.input_tokens > 0 and usage.input_tokens >= in_cache:
        return usage
    return None


@dataclass(frozen=True)
class Steps:
    """The requests behind an answer that a method's program has asked for.

    Args:
        requests: their number.
        usages: the tokens of each request that the question pays for.
        notes: what the method has noted of its work, such as the number of compactions.
    """

    requests: int
    usages: tuple[Usage, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Steps:
        """Make an object from plain data."""
        usages = tuple(Usage(**usage) for usage in values.get("usages", ()))
        return cls(
            requests=values["requests"],
            usages=usages,
            notes=values.get("notes", {}),
        )


@dataclass(frozen=True)
class AnswerFacts:
    """What is known of an answer, and HELM's result has no field for. None, or empty, is what is not known.

    Args:
        failure: why there is no answer.
        usage: the tokens as the provider counts them.
        served_model: the name of the model in the reply.
        sent: what was sent besides the prompt, by parameter.
        first_token_seconds: seconds from the start of the request to the first piece of the answer, reasoning included.
        peak_memory: GiB of memory, of the GPU if there is one, that the model and its caches needed in this process.
        is_reasoning_open: whether the reasoning has no end. Its opening mark can be the end of the prompt. Only the
            client of a local model knows this: the text does not have all tokens.
        is_reasoning_suspected: whether the output begins with a special token that no known model has around its
            reasoning. Only the client of a local model knows this.
        is_repeating: whether the server ended the answer because it repeats itself.
        calls: the calls of tools that the model asks for.
        returned_reasoning: the reasoning that goes back to the provider with these calls, in its own form.
        steps: the requests behind the answer, if a program has sent them.
        windows: the parts of a text whose own tokens were scored.
        key_tokens: the key tokens of a text whose own tokens were scored, if they were asked for.
        distributions: the distributions at the tokens of each part that was asked for.
        is_whole: whether the tokens of a scored text are all of its tokens, the prompt's included.
        first: the facts of the first of two requests, whose answer is not the one that is scored.
    """

    failure: Failure | None = None
    usage: Usage | None = None
    served_model: str | None = None
    sent: Mapping[str, Any] = field(default_factory=dict)
    first_token_seconds: float | None = None
    peak_memory: float | None = None
    is_reasoning_open: bool | None = None
    is_reasoning_suspected: bool | None = None
    is_repeating: bool | None = None
    calls: tuple[ToolCall, ...] | None = None
    returned_reasoning: Mapping[str, Any] | None = None
    steps: Steps | None = None
    windows: tuple[Window, ...] | None = None
    key_tokens: KeyTokens | None = None
    distributions: tuple[tuple[Distribution, ...], ...] | None = None
    is_whole: bool | None = None
    first: AnswerFacts | None = None

    @classmethod
    def from_json(cls: type[_Facts], values: Mapping[str, Any]) -> _Facts:
        """Make the object from plain data. Unknown fields are ignored.

        Raises:
            ValueError, TypeError, KeyError: a field has another form.
        """
        known = {}
        for name, value in values.items():
            if name not in cls.__dataclass_fields__:
                continue
            # The first answer of a whole answer is a whole one, too.
            read = cls.from_json if name == "first" else _READERS.get(name)
            if read is None or value is None:
                known[name] = value
            else:
                known[name] = read(value)
        return cls(**known)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are known as plain data."""
        return self._list_known(type(self))

    def facts_to_json(self) -> dict[str, Any]:
        """Return the facts that are known as plain data, without the further fields of an answer."""
        return self._list_known(AnswerFacts)

    def _list_known(self, kind: Any) -> dict[str, Any]:
        plain = {}
        for name in _field_names(kind):
            value = getattr(self, name)
            if value is not None and value != {}:
                plain[name] = _to_plain(value, kind)
        return plain


def make_distributions(
    parts: Iterable[Iterable[Sequence[Any]]],
) -> tuple[tuple[Distribution, ...], ...]:
    """Make the distributions of parts of a text from the fields at each token."""
    return tuple(tuple(map(Distribution._make, part)) for part in parts)


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(part.name for part in fields(kind))


_PLAIN = frozenset((str, float, int, bool, dict))


def _to_plain(value: Any, kind: type[AnswerFacts]) -> Any:
    """Return a value as plain data; of answers only the fields of a kind."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Failure):
        return value.value
    if isinstance(value, AnswerFacts):
        return value._list_known(kind)
    if isinstance(value, tuple | list):
        return [_to_plain(part, kind) for part in value]
    if isinstance(value, Usage | Steps | ToolCall):
        return {name: _to_plain(part, kind) for name, part in vars(value).items()}
    return value


_READERS: dict[str, Any] = {
    "failure": Failure,
    "usage": lambda usage: Usage(**usage),
    "calls": lambda calls: tuple(ToolCall(**call) for call in calls),
    "steps": Steps.from_json,
    "windows": lambda windows: tuple(map(Window._make, windows)),
    "key_tokens": KeyTokens._make,
    "distributions": make_distributions,
}
"""What makes the values of fields from plain data."""

NO_FACTS = AnswerFacts()


@dataclass(frozen=True)
class Answer(AnswerFacts):
    """A model's answer to a request, or why there is none.

    Args:
        output: what the model wrote, with the marks around its reasoning.
        thinking: the reasoning that the server returned in a field of its own.
        finish_reason: why the output ended, in the words of its protocol.
        error: the message of a request without an answer.
        seconds: how long the request took.
        is_cached: whether the answer is from the request cache.
        first: the answer to the first of two requests. It is not the one that is scored.
    """

    output: str = ""
    thinking: str | None = None
    finish_reason: str = ""
    error: str = ""
    seconds: float | None = None
    is_cached: bool = False
    first: Answer | None = None

    @cached_property
    def _split(self) -> SplitOutput:
        """The output without its reasoning. See `split_answer` for white space."""
        if self.is_reasoning_open:
            return replace(split_reasoning(self.output), is_open=True)
        return split_answer(self.output, self.thinking)

    @property
    def text(self) -> str:
        """The answer as it is scored, wherever the server or the model puts the reasoning."""
        return self._split.answer

    @property
    def reasoning(self) -> str | None:
        """The reasoning. None if there are no known marks and no field of it."""
        return self._split.reasoning

    @property
    def is_answered(self) -> bool:
        """Whether the request has an answer."""
        return self.failure is None

    @property
    def problem(self) -> Problem:
        """Why there is no answer. Only a request without an answer has a problem."""
        return Problem(self.failure or Failure.UNKNOWN, self.error)

    @property
    def has_open_reasoning(self) -> bool:
        """Whether the reasoning has no end, so that there is no answer."""
        return self._split.is_open

    @property
    def is_cut(self) -> bool:
        """Whether the answer, or the reasoning before it, has no end.

        The token limit ended it, or the reasoning is open: some servers say `stop` when they cut.
        """
        return ending_of(self.finish_reason) is Ending.CUT or self.has_open_reasoning

    @property
    def is_any_cut(self) -> bool:
        """Whether the answer, or that to the first of two requests, has no end."""
        return self.is_cut or (self.first is not None and self.first.is_cut)

    @property
    def is_empty(self) -> bool:
        """Whether a model that was not cut has said nothing, or has only reasoned."""
        if (
            self.windows is not None
        ):  # the model was asked for log-probabilities, not for a text
            return False
        return not self.is_cut and not self.text.strip()

    @property
    def is_only_in_reasoning(self) -> bool:
        """Whether an answer that was not cut has text in its reasoning field, and none in its content.

        Usually the server has a reasoning parser for another model, and that takes answers for reasoning.
        """
        return self.is_empty and bool((self.thinking or "").strip())

    @property
    def is_thinking_unfinished(self) -> bool:
        """Whether the output ended while the model was still reasoning, so that there is no answer.

        The reasoning is in a field of its own, is counted without being returned, or stands in the text between marks.
        """
        if self.has_open_reasoning:
            return True
        if ending_of(self.finish_reason) is not Ending.CUT or self.output.strip():
            return False
        reasoning_tokens = self.usage.reasoning_tokens if self.usage else 0
        return self.thinking is not None or reasoning_tokens > 0

    def suspects_reasoning(self, references: Iterable[str] = ()) -> bool:
        """Whether the answer may contain reasoning between marks that are not known."""
        if self.thinking:
            return False
        return bool(self.is_reasoning_suspected) or may_contain_reasoning(
            self.output, references
        )

    @property
    def other_model(self) -> str | None:
        """The name in the reply if it belongs to another model than the one that was asked for.

        A server may answer with a fallback, a smaller model, or whatever it has loaded.
        """
        asked = self.sent.get("model")
        if not isinstance(asked, str) or self.served_model is None:
            return None
        if is_same_model(asked, self.served_model):
            return None
        return self.served_model


def is_same_model(asked: str, replied: str) -> bool:
    """Whether two names can belong to one model.

    Capitals and a provider's prefix (`openai/`, `models/`) do not count. A name without a date, or with `latest`,
    stands for each of its snapshots. Two different snapshots are two models.
    """
    first, second = (
        _LATEST.sub("", name.lower().rstrip("/").rpartition("/")[2])
        for name in (asked, replied)
    )
    return first in (second, _SNAPSHOT.sub("", second)) or second == _SNAPSHOT.sub(
        "", first
    )
