"""The data that an instance carries from the scenario to the adapter, the metric and the web pages.

Also the rules by which a server has cut a prompt without an error: it counts far fewer tokens than the prompt has, or
its counts of a run's prompts stop at one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helm_longctx.tasks.prompt import Style
from helm_longctx.tasks.request_settings import DEFAULT_REQUEST, RequestSettings

RecordKey = tuple[str, str, int]
"""The task, the instance's id and the repeat, from 0, of an answer. A task is empty in HELM's own scenarios."""


@dataclass(frozen=True)
class Sample:
    """The typed form of an instance's `extra_data`.

    Args:
        run_max_tokens: the output budget of the run, as in the adapter spec.
        cut: the part of a prompt that is cut if the prompt is too long. See `Task.cut`.
        length: largest number of tokens of prompt and output together. None if the length does not limit the prompt.
        context_span: [start, end) of the text that may be cut, in characters of the first user turn.
        reserved: tokens of the window that stay free in addition to that text; see `Example.reserved`.
        separator, answer_prefix: the texts after the user turn in a completion prompt.
        prefix_scored: whether the answer prefix of a completion is scored with the output.
        thinking_tokens: number of tokens by which the output of a thinking model may exceed the length.
        input_tokens: length of the completion prompt, counted by `counter`.
        record: the fields that the scored record has in addition to prediction and references.
        group: the name of what the instance shares with others; see `Example.group`.
        method: the `name` and the `arguments` of the method whose program answers the question, or None for other methods.
        read: see `Example.read`.
        marks: see `Example.marks`; only for such a method.
        answer_tokens: about how many tokens a good answer has; see `Example.answer_tokens`.
        errata: the rules by which the instance has a known error (`Example.errata`). None if there are none.
        request: what the run entry says of every request.
        drawn_from: number of instances from which HELM's `-m` drew this one. None if it drew none.
        prompt_tokens: number of tokens of the prompt. It is added by the adapter if it tokenized the whole prompt.
        fewest_tokens: fewest tokens that the prompt can have; added by the adapter if it did not count them.
        rest: number of characters after the context in the last message that is sent; added by the adapter. None if
            there is no context in it, or if a cut removed a part of them.
        full_prompt: `sha256` and `characters` of the whole prompt; added by our runner.
    """

    source: str
    max_tokens: int
    run_max_tokens: int
    chat: bool = False
    cut: str = "context"
    length: int | None = None
    context_span: Sequence[int] | None = None
    reserved: int = 0
    separator: str = ""
    answer_prefix: str = ""
    prefix_scored: bool = True
    stop: Sequence[str] = ()
    thinking_tokens: int = 0
    question: str | None = None
    depth: float | None = None
    input_tokens: int | None = None
    counter: str | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    group: str | None = None
    follow_up: Mapping[str, Any] | None = None
    method: Mapping[str, Any] | None = None
    read: Sequence[Any] | None = None
    marks: Sequence[Sequence[Any]] = ()
    answer_tokens: int | None = None
    errata: Sequence[str] | None = None
    request: RequestSettings = DEFAULT_REQUEST
    drawn_from: int | None = None
    style: Style | None = None
    prompt_tokens: int | None = None
    fewest_tokens: int | None = None
    rest: int | None = None
    full_prompt: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the sample as JSON data for `extra_data`, without fields that are None and without empty marks."""
        # Each sample is made into JSON several times.
        data = {name: value for name, value in vars(self).items() if value is not None}
        for name in _LISTS:
            if type(data.get(name)) is tuple:
                data[name] = list(data[name])
        data["request"] = self.request.to_json()
        for name in ("marks", "request"):
            if not data[name]:
                del data[name]
        return data

    @classmethod
    def from_json(cls, extra: Mapping[str, Any] | None) -> Sample:
        """Read the sample from an instance's `extra_data`. Fields that this version does not have are ignored."""
        values = {}
        for name, value in (extra or {}).items():
            if name in cls.__dataclass_fields__:
                values[name] = value
        if "request" in values:
            values["request"] = RequestSettings.from_json(values["request"])
        return cls(**values)

    @staticmethod
    def is_in(extra: Mapping[str, Any] | None) -> bool:
        """Whether an instance's `extra_data` holds a sample of this package."""
        return (
            extra is not None
            and {"source", "max_tokens", "run_max_tokens"} <= extra.keys()
        )

    def extend(self, **values: Any) -> Sample:
        """Return the sample with other values of some fields."""
        return Sample(**{**vars(self), **values})  # faster than `dataclasses.replace`


_LISTS = ("context_span", "stop", "read", "marks", "errata")
"""The fields of a sample that can be tuples, which are lists in JSON."""

_CUT = 0.9
"""A prompt is cut if the server counts fewer tokens than this share of what it must have."""

OTHER_TOKENIZER = 0.75
"""Smallest ratio of the counts of two tokenizers, or of two chat templates."""

_AT_LIMIT = 5
"""Fewest different prompts with the largest count of a run after which that count is the server's limit."""

_DIFFERENT_SIZE = 1.1
"""Smallest ratio of the estimates of prompts that no tokenizer can give the same count by chance."""


def is_cut(counted: float, expected: float, usual: float = OTHER_TOKENIZER) -> bool:
    """Whether a server has cut a prompt.

    Args:
        counted: the prompt's tokens as the server counts them.
        expected: the prompt's tokens by another count.
        usual: the ratio of both counts in prompts that are not cut. If it is not known, the smallest one is assumed.
    """
    return counted < _CUT * usual * expected


def find_limit(counts: Iterable[tuple[Sample, float]]) -> float | None:
    """Return the tokens to which a server cuts the prompts of a run that only it counts. None for none."""
    by_count: dict[float, set[int]] = {}
    for sample, counted in counts:
        if sample.fewest_tokens:
            by_count.setdefault(counted, set()).add(sample.fewest_tokens)
    largest = max(by_count, default=0.0)
    sizes = by_count.get(largest, set())
    stops = len(sizes) >= _AT_LIMIT and max(sizes) >= _DIFFERENT_SIZE * min(sizes)
    return largest if stops else None


def find_cut(sample: Sample, counted: float, limit: float | None = None) -> int | None:
    """Return how many tokens a prompt has at least if the server has cut it, or None if it has not, or that is unknown.

    Args:
        counted: the prompt's tokens as the server counts them, and the cached ones once more, because some servers
            leave them out.
        limit: the number of tokens at which the server's counts of the run stop; see `find_limit`.
    """
    if sample.prompt_tokens is not None:
        if is_cut(counted, sample.prompt_tokens):
            return sample.prompt_tokens
        return None
    fewest = sample.fewest_tokens or 0
    if limit is not None and counted == limit:
        return max(fewest, int(counted))
    if is_cut(counted, fewest, usual=1.0):
        return fewest
    return None
