"""What an instance carries from the scenario to the adapter, the metric and the pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from helm_longctx.protocol.prompt import Form


@dataclass(frozen=True)
class Sample:
    """The typed form of an instance's `extra_data`.

    Args:
        source: "official" files, "hub" data, or "generated".
        max_tokens: the output budget of its task.
        run_max_tokens: the output budget of the run, which is the adapter spec's.
        chat: whether the official code sends the task as a chat.
        cut: what of a prompt that is too long is cut; see `Task.cut`.
        length: tokens that prompt and output may have together; None if the level does not limit the prompt.
        context_span: [start, end) in characters of the text that may be cut.
        separator, answer_prefix: what turns the chat form into the completion form.
        prefix_scored: whether the answer prefix of a completion is scored with the output.
        stop: stop sequences of the completion form.
        thinking_tokens: by how much the output of a thinking model may exceed the length.
        question: the question alone, where the task has one.
        depth: where the evidence stands in the context, 0 (start) to 1 (end).
        input_tokens: length of the completion prompt as `counter` counted it.
        record: what the scorer needs besides the references.
        drawn_from: instances of which HELM's `-m` drew this one; None if it drew none.
        style: the form that was sent; the adapter adds it.
        prompt_tokens: tokens of the prompt that was sent; the adapter adds it where it read the whole prompt.
        full_prompt: `sha256` and `characters` of the whole prompt; our runner adds it.
    """

    source: str
    max_tokens: int
    run_max_tokens: int
    chat: bool = False
    cut: str = "context"
    length: int | None = None
    context_span: Sequence[int] | None = None
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
    drawn_from: int | None = None
    style: Form | None = None
    prompt_tokens: int | None = None
    full_prompt: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data for `extra_data`; what is None is left out."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return {name: value for name, value in plain.items() if value is not None}

    @classmethod
    def from_json(cls, extra: Mapping[str, Any] | None) -> Sample:
        """The sample of an instance's `extra_data`. Names that this version does not know are left out."""
        extra = extra or {}
        return cls(**{each.name: extra[each.name] for each in fields(cls) if each.name in extra})

    @staticmethod
    def is_in(extra: Mapping[str, Any] | None) -> bool:
        """Whether an instance's `extra_data` is that of a sample of ours."""
        return extra is not None and {"source", "max_tokens", "run_max_tokens"} <= extra.keys()

    def extend(self, **values: Any) -> Sample:
        """The sample with further values."""
        return replace(self, **values)
