"""The names of suites and of runs. HELM makes a run's name of an entry and its arguments; only this module reads one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

SUITE_NAME = "a folder's name of at most 255 bytes, without '/', line breaks and other control characters"
"""What the name of a suite is."""


def is_suite_name(name: str) -> bool:
    """Whether a folder of a suite can have the name, on common file systems and in lines of text."""
    is_single = name not in ("", ".", "..") and "/" not in name
    return is_single and name.isprintable() and len(name.encode()) <= 255


@dataclass(frozen=True)
class RunName:
    """The parts of a run's name, or of the name of its folder.

    Args:
        entry: the run entry's name.
        arguments: the arguments in order, each as `name=value`, ours before HELM's own such as the model.
    """

    entry: str
    arguments: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return the name."""
        if not self.arguments:
            return self.entry
        pairs = []
        for name, value in self.arguments:
            pairs.append(f"{name}={value}" if value else name)
        return f"{self.entry}:{','.join(pairs)}"

    def without(self, argument: str) -> RunName:
        """Return the name without an argument."""
        kept = tuple(pair for pair in self.arguments if pair[0] != argument)
        return replace(self, arguments=kept)

    def with_argument(
        self,
        argument: str,
        value: str,
        ours: Collection[str],
    ) -> RunName:
        """Return the name with an argument of ours, after others of `ours` and before HELM's own."""
        end = sum(name in ours for name, _ in self.arguments)
        arguments = (*self.arguments[:end], (argument, value), *self.arguments[end:])
        return replace(self, arguments=arguments)

    def before_model(self) -> RunName:
        """Return the name without the model and what HELM adds after it: what runs of several models share."""
        names = [name for name, _ in self.arguments]
        end = names.index("model") if "model" in names else len(names)
        return replace(self, arguments=self.arguments[:end])


def read_run_name(text: str) -> RunName:
    """Return the parts of a run's name. HELM keeps it only as a text."""
    entry, _, rest = text.partition(":")
    pairs = []
    for part in rest.split(",") if rest else ():
        name, _, value = part.partition("=")
        pairs.append((name, value))
    return RunName(entry, tuple(pairs))


def add_argument(name: str, argument: str, value: object) -> str:
    """Return a run's name with one more argument at its end."""
    return f"{name}{',' if ':' in name else ':'}{argument}={value}"
