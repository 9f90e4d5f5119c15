"""How results name a model, with the facts that the name shows as fields beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from helm_longctx.tasks.entry import Entry
from helm_longctx.tasks.methods.registry import METHOD_ARGUMENTS, METHODS
from helm_longctx.tasks.request_settings import NOT_GIVEN, Sampling
from helm_longctx.tasks.task import PLAIN

PUBLISHED = "published"
"""What comes before the name of a published model, and the name of the runs of published scores."""


@dataclass(frozen=True)
class AskedMethod:
    """A method and the arguments that the run entry gives it.

    Args:
        arguments: names and values in the order of a run's name; those of the method's defaults are left out.
    """

    name: str = PLAIN
    arguments: tuple[tuple[str, Any], ...] = ()

    def __bool__(self) -> bool:
        """Whether it is another one than the task's own prompts."""
        return self.name != PLAIN

    @property
    def title(self) -> str:
        """The name with the arguments: `retrieve chunks=4`."""
        return " ".join(
            [self.name, *(f"{name}={value}" for name, value in self.arguments)]
        )

    def __str__(self) -> str:
        """Return the method as a run entry writes it: `method=retrieve chunks=4`."""
        return f"method={self.title}"

    @property
    def is_floor(self) -> bool:
        """Whether the method asks without the context."""
        return self.name in METHODS and METHODS[self.name].is_floor


PLAIN_PROMPTS = AskedMethod()
"""The task's own prompts."""


@dataclass(frozen=True)
class Setup:
    """What a model was asked with beyond the published prompts, sampling and budget.

    Scores with different setups are in rows of their own everywhere, and are never mixed.

    Args:
        stream: the tokens after which parts of a context come; None if it is there at once.
        retry_cut: the factor of the budget with which cut answers were asked for again; None if none were.
    """

    method: AskedMethod = PLAIN_PROMPTS
    stream: int | None = None
    sampling: Sampling = NOT_GIVEN
    retry_cut: int | None = None

    def marks(self) -> Iterator[str]:
        """Yield what differs from the published setup, as a run entry writes it."""
        if self.method:
            yield str(self.method)
        if self.stream:
            yield f"stream={self.stream}"
        if self.sampling:
            yield str(self.sampling)
        if self.retry_cut:
            yield f"retry_cut={self.retry_cut}x"

    @classmethod
    def of_entry(cls, entry: Entry) -> Setup:
        """Return the setup that a run entry says."""
        settings = entry.settings
        method = AskedMethod()
        if settings.method != PLAIN:
            given = entry.arguments
            arguments = tuple(
                (name, given[name]) for name in METHOD_ARGUMENTS if given.get(name)
            )
            method = AskedMethod(settings.method, arguments)
        return cls(
            method=method,
            stream=settings.stream,
            sampling=settings.request.sampling,
            retry_cut=settings.retry_cut,
        )


_PUBLISHED_SETUP = Setup()
"""What published scores were measured with."""


class ShownModel(str):
    """The name of a model, or of its deployment, in results, tables and pages.

    It is a text, by which rows are sorted and which a command can be given. The text is made of the fields, and nothing
    reads them back out of it.

    Args:
        base: the name without marks.
        setup: what the model was asked with.
        is_published: whether the scores come from a publication, and not from a run.
    """

    base: str
    setup: Setup
    is_published: bool
    label: str
    """The name for readers, which see elsewhere whether a score was published."""

    def __new__(
        cls,
        base: str,
        setup: Setup = _PUBLISHED_SETUP,
        is_published: bool = False,
    ) -> ShownModel:
        """Make the text of the fields."""
        label = _label(base, setup)
        name = super().__new__(cls, f"{PUBLISHED}/{base}" if is_published else label)
        name.base = base
        name.setup = setup
        name.is_published = is_published
        name.label = label
        return name

    def __getnewargs__(self) -> tuple[str, Setup, bool]:  # type: ignore[override]
        """Return the fields, for copies."""
        return self.base, self.setup, self.is_published

    @property
    def without_method(self) -> ShownModel:
        """The name of the model in runs with plain prompts and otherwise the same setup."""
        setup = self.setup
        plain = Setup(
            stream=setup.stream,
            sampling=setup.sampling,
            retry_cut=setup.retry_cut,
        )
        return ShownModel(self.base, plain, self.is_published)


def _label(base: str, setup: Setup) -> str:
    if setup is _PUBLISHED_SETUP:  # as of thousands of published scores
        return base
    marks = " ".join(setup.marks())
    return f"{base} ({marks})" if marks else base


def shown_model(base: str, entry: Entry | None) -> ShownModel:
    """Return the name of a model or deployment; the entry is None for another package's scenario."""
    return ShownModel(base, Setup.of_entry(entry) if entry else _PUBLISHED_SETUP)


@cache
def published_model(name: str) -> ShownModel:
    """Return the name of a published model, of which a suite can have thousands of scores."""
    return ShownModel(name, is_published=True)
