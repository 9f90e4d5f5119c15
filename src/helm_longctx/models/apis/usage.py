"""What is known of an answer besides its text: tokens, model, what was sent and measured, and what the limit cut.

HELM's result has no fields for this. It is kept with the finish reason of the first completion, which our journal and
`scenario_state.json` store as it is.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from helm.common.request import GeneratedOutput, RequestResult

from helm_longctx.failures import Ending, ending_of
from helm_longctx.models.scoring import WINDOWS
from helm_longctx.tasks.reasoning import (
    SplitOutput,
    may_contain_reasoning,
    split_answer,
    split_reasoning,
)

_USAGE = "usage"
_SENT = "sent"
_MODEL = "model"
_MEASURES = "measures"
_STEPS = "steps"
_REASONING = "reasoning"
_REPEATS = "repeats"

MOST_TOKENS = 10**9
"""Most tokens that a count can have; a hundred times the longest context."""

_LONGEST_NAME = 200

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


def read_counts(usage: object, *paths: str) -> list[int] | None:
    """Read counts from what a provider reports; None if one of them is not a whole number from 0 to `MOST_TOKENS`.

    A count that is left out or null is 0.

    Args:
        paths: the names of the counts, with a dot after the name of an object in which a count stands.
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
    return (
        usage if 0 < usage.input_tokens >= usage.cached_tokens + usage.cache_write_tokens else None
    )


def usage_of(result: RequestResult) -> Usage | None:
    """Return the tokens of a result; None if the provider reported none."""
    counts = read_counts(finish_of(result).get(_USAGE), *Usage.__dataclass_fields__)
    return None if counts is None else check_usage(Usage(*counts))


def with_usage(result: RequestResult, usage: Usage | None) -> RequestResult:
    """Return a result that has the tokens, or none if they are not known; the same if it has no completion."""
    return annotate(result, _USAGE, None if usage is None else dict(vars(usage)))


@dataclass(frozen=True)
class Measures:
    """What was measured while an answer was generated; None for what was not.

    Args:
        first_token_seconds: seconds from the start of the request to the first piece of the answer, reasoning included.
        peak_memory: GiB of memory, of the GPU if there is one, that the model and its caches needed in this process.
    """

    first_token_seconds: float | None = None
    peak_memory: float | None = None


def measures_of(result: RequestResult) -> Measures:
    """Return what was measured; nothing for an answer that was not streamed, or of an older version."""
    values = _note(result, _MEASURES)
    names = Measures.__dataclass_fields__
    return Measures(
        **{
            name: value
            for name in names
            if isinstance(value := values.get(name), float) and value >= 0
        }
    )


def with_measures(result: RequestResult, measures: Measures) -> RequestResult:
    """Return a result that has what was measured, in place of what it has."""
    known = {name: value for name, value in vars(measures).items() if value is not None}
    return (
        annotate(result, _MEASURES, known or None)
        if known or _MEASURES in finish_of(result)
        else result
    )


@dataclass(frozen=True)
class ReasoningFacts:
    """What only the client of a local model knows of its reasoning, because the text does not have all tokens.

    Args:
        is_open: whether the reasoning has no end. Its opening mark can be the end of the prompt.
        is_suspected: whether the output begins with a special token that no known model has around its reasoning.
    """

    is_open: bool = False
    is_suspected: bool = False


def with_reasoning_facts(result: RequestResult, facts: ReasoningFacts) -> RequestResult:
    """Return a result that has the facts; the same result if all are false."""
    known = {name: value for name, value in vars(facts).items() if value}
    return annotate(result, _REASONING, known) if known else result


def _reasoning_facts(completion: GeneratedOutput) -> ReasoningFacts:
    note = (completion.finish_reason or {}).get(_REASONING)
    values = note if isinstance(note, Mapping) else {}
    return ReasoningFacts(
        is_open=values.get("is_open") is True, is_suspected=values.get("is_suspected") is True
    )


def with_steps(result: RequestResult, steps: Mapping[str, Any]) -> RequestResult:
    """Return a result that knows the requests behind it: their number, their `usages`, and notes of the method."""
    return annotate(result, _STEPS, dict(steps))


def steps_of(result: RequestResult) -> Mapping[str, Any]:
    """Return what is known of the requests behind an answer; nothing for an answer of one or two requests."""
    return _note(result, _STEPS)


def with_sent(result: RequestResult, parameters: Mapping[str, Any]) -> RequestResult:
    """Return a result that has what was sent besides the prompt; the same if it has no completion."""
    return annotate(result, _SENT, dict(parameters))


def sent_of(result: RequestResult) -> Mapping[str, Any]:
    """Return what was sent besides the prompt; nothing for an answer of another client."""
    return _note(result, _SENT)


def with_model(result: RequestResult, name: object) -> RequestResult:
    """Return a result that has the name of the model in the reply; the same result if the reply has none."""
    return (
        annotate(result, _MODEL, name[:_LONGEST_NAME]) if name and isinstance(name, str) else result
    )


def model_of(result: RequestResult) -> str | None:
    """Return the name of the model in the reply; None if there was none, or for an answer of an older version."""
    name = finish_of(result).get(_MODEL)
    return name if isinstance(name, str) else None


def find_other_model(result: RequestResult) -> str | None:
    """Return the name in a reply if it belongs to another model than the one that was asked for, or else None.

    A server may answer with a fallback, a smaller model, or whatever it has loaded.
    """
    asked = sent_of(result).get("model")
    replied = model_of(result)
    if not isinstance(asked, str) or replied is None or is_same_model(asked, replied):
        return None
    return replied


def is_same_model(asked: str, replied: str) -> bool:
    """Whether two names can belong to one model.

    Capitals and a provider's prefix (`openai/`, `models/`) do not count. A name without a date, or with `latest`,
    stands for each of its snapshots. Two different snapshots are two models.
    """
    first, second = (
        _LATEST.sub("", name.lower().rstrip("/").rpartition("/")[2]) for name in (asked, replied)
    )
    return first in (second, _SNAPSHOT.sub("", second)) or second == _SNAPSHOT.sub("", first)


def with_repeats(result: RequestResult, reason: object) -> RequestResult:
    """Return a result that says whether the server ended the answer because it repeats itself, by its finish reason."""
    is_repeating = isinstance(reason, str) and reason.lower().startswith("repetition")
    return annotate(result, _REPEATS, True) if is_repeating else result


def is_repeating(result: RequestResult) -> bool:
    """Whether the server ended the answer because it repeats itself."""
    return finish_of(result).get(_REPEATS) is True


def output_truncated(result: RequestResult) -> bool:
    """Whether the answer, or the reasoning before it, has no end, also if that was a request of its own.

    The token limit ended it, or the reasoning is open: some servers say `stop` when they cut.
    """
    return any(
        ending_of((completion.finish_reason or {}).get("reason")) is Ending.CUT
        or _split(completion).is_open
        for completion in result.completions
    )


def answer_of(result: RequestResult) -> SplitOutput:
    """Return the answer of a result as it is scored, and its reasoning, wherever a server or a model puts that.

    See `split_answer` for white space. A result without completions has an empty answer.
    """
    return _split(result.completions[0]) if result.completions else SplitOutput("")


def _split(completion: GeneratedOutput) -> SplitOutput:
    # HELM's clients pass on any JSON value in the place of the text.
    text = completion.text if isinstance(completion.text, str) else ""
    if _reasoning_facts(completion).is_open:
        return replace(split_reasoning(text), is_open=True)
    return split_answer(text, completion.thinking.text if completion.thinking else None)


def suspects_reasoning(result: RequestResult, references: Iterable[str] = ()) -> bool:
    """Whether an answer may contain reasoning, between marks that are not known."""
    if not result.completions:
        return False
    first = result.completions[0]
    if first.thinking and first.thinking.text:
        return False
    return _reasoning_facts(first).is_suspected or may_contain_reasoning(first.text, references)


def is_only_in_reasoning(result: RequestResult) -> bool:
    """Whether a result that was not cut has text in its reasoning field, and none in its content.

    Usually the server has a reasoning parser for another model, which takes answers for reasoning.
    """
    return is_empty(result) and bool(
        result.completions[0].thinking and result.completions[0].thinking.text.strip()
    )


def with_cut(result: RequestResult) -> RequestResult:
    """Return a result whose answer has as many tokens as were allowed as one that was cut, whatever its finish reason.

    Some servers say `stop`. Providers that do not count reasoning towards the limit are considered, too.
    """
    usage = usage_of(result)
    sent = sent_of(result)
    limit = sent.get("max_completion_tokens", sent.get("max_tokens"))
    if (
        usage is None
        or not limit
        or limit not in (usage.output_tokens, usage.output_tokens - usage.reasoning_tokens)
    ):
        return result
    return annotate(result, "reason", Ending.CUT.value)


def is_empty(result: RequestResult) -> bool:
    """Whether a model that was not cut has said nothing, or has only reasoned."""
    if WINDOWS in finish_of(result):  # the model was asked for log-probabilities, not for a text
        return False
    return not output_truncated(result) and not answer_of(result).answer.strip()


def thinking_unfinished(result: RequestResult) -> bool:
    """Whether an answer ended while the model was still reasoning, so that there is no answer.

    The reasoning is in a field of its own, is counted without being returned, or stands in the text between marks.
    """
    if answer_of(result).is_open:
        return True
    if ending_of(finish_of(result).get("reason")) is not Ending.CUT:
        return False
    first = result.completions[0]
    usage = usage_of(result)
    if first.text.strip():
        return False
    return bool(first.thinking) or (usage is not None and usage.reasoning_tokens > 0)


def finish_of(result: RequestResult) -> dict[str, Any]:
    """Return the finish reason of a result, and what is kept with it."""
    return (result.completions[0].finish_reason or {}) if result.completions else {}


def _note(result: RequestResult, name: str) -> Mapping[str, Any]:
    note = finish_of(result).get(name)
    return note if isinstance(note, Mapping) else {}


def annotate(result: RequestResult, name: str, value: Any) -> RequestResult:
    """Return a result with a value beside its finish reason, or without it if it is None."""
    if not result.completions:
        return result
    first, *others = result.completions
    finish = {"reason": "unknown", **(first.finish_reason or {}), name: value}
    if value is None:
        del finish[name]
    return replace(result, completions=[replace(first, finish_reason=finish), *others])
