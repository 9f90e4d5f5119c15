"""What a run entry says of every request: its style, whether prompts may be cut, and how tokens are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

StyleArgument = Literal["auto", "chat", "completion"]
Truncation = Literal["auto", "error"]
MetricArgument = Literal["score", "likelihood", "perplexity", "longppl"]

LIKELIHOOD: Literal["likelihood"] = "likelihood"
PERPLEXITY: Literal["perplexity"] = "perplexity"
LONGPPL: Literal["longppl"] = "longppl"
"""The values of `metric` that stand for the log-probabilities of gold answers, of the prompt by position, and of the
prompt by position and at its key tokens."""

PERPLEXITIES = (PERPLEXITY, LONGPPL)
"""The values of `metric` with which the tokens of the prompt itself are scored."""

GIVEN_TEXTS = (LIKELIHOOD, *PERPLEXITIES)
"""The values of `metric` with which the model writes nothing."""


@dataclass(frozen=True)
class Sampling:
    """How the model draws the tokens of an answer. A field that is None is left to the task or to the provider.

    Args:
        temperature: HELM's run expander sets it; a run entry has no such argument of ours.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    sampling_seed: int | None = None

    def __bool__(self) -> bool:
        """Whether the run entry says anything."""
        return any(True for _ in self.items())

    def items(self) -> Iterator[tuple[str, float]]:
        """Yield the names and the values of the arguments that are given."""
        for name in SAMPLING:
            value = getattr(self, name)
            if value is not None:
                yield name, value

    def __str__(self) -> str:
        """Return the arguments as a run entry writes them: `temperature=0.6 top_p=0.95`."""
        return " ".join(f"{name}={value:.12g}" for name, value in self.items())


NOT_GIVEN = Sampling()
"""What a run entry says that gives none of these arguments."""

SAMPLING = tuple(argument.name for argument in fields(Sampling))
"""Arguments that say how the model draws the tokens of an answer. HELM itself reads `temperature`."""


@dataclass(frozen=True)
class RequestSettings:
    """What every request of a run shares. The adapter reads it from the samples, because HELM gives it nothing else.

    Args:
        truncation: `error` if prompts that are too long are refused, and not cut.
        metric: whether the model writes an answer (`score`) or scores given texts.
    """

    style: StyleArgument = "auto"
    truncation: Truncation = "auto"
    metric: MetricArgument = "score"
    sampling: Sampling = NOT_GIVEN

    @property
    def scores_given_texts(self) -> bool:
        """Whether the model writes nothing."""
        return self.metric in GIVEN_TEXTS

    def to_json(self) -> dict[str, Any]:
        """Return what differs from the defaults as JSON data."""
        data: dict[str, Any] = {}
        # Each sample is made into JSON several times, and nearly all have the defaults.
        if self == DEFAULT_REQUEST:
            return data
        for name in ("style", "truncation", "metric"):
            if getattr(self, name) != getattr(DEFAULT_REQUEST, name):
                data[name] = getattr(self, name)
        if self.sampling:
            data["sampling"] = dict(self.sampling.items())
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RequestSettings:
        """Read what `to_json` has made."""
        others = {}
        for name, value in data.items():
            if name != "sampling":
                others[name] = value
        return cls(**others, sampling=Sampling(**data.get("sampling", {})))


DEFAULT_REQUEST = RequestSettings()
"""What a run entry says that has none of these arguments."""
