"""Says which version of its data a protocol reads here, and what is known of the version that published numbers used."""

from __future__ import annotations

from dataclasses import dataclass

from helm_longctx.tasks.data_cards import find_origin
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.publications import Protocol
from helm_longctx.tasks.registry import BENCHMARKS


@dataclass(frozen=True)
class DataVersion:
    """A version of a publisher's data.

    Args:
        revision: the pinned commit or version, or in words what is fetched.
        changed: the day on which the publisher made this version, YYYY-MM-DD. Empty if it is not known.
    """

    page: str
    revision: str
    changed: str

    @property
    def text(self) -> str:
        """The version for readers."""
        since = f", as it is since {self.changed}" if self.changed else ""
        return f"{self.page} at {self.revision}{since}"

    def describe_use(self, published: str) -> str:
        """Say which version a number of a day used. It is empty if that is not known.

        Args:
            published: the day of the publication, YYYY-MM-DD or YYYY-MM, or `unknown`.
        """
        if not self.changed or not published[:1].isdigit():
            return ""
        # A month without a day can be before or after a day in it.
        if published < self.changed[: len(published)]:
            return f"it was published before the change of {self.changed}, so it used an earlier version of {self.page}"
        return ""


def find_data_versions(protocol: Protocol) -> list[DataVersion]:
    """Return the versions of the data that the entries of a protocol read here, each publisher's once."""
    versions: dict[DataVersion, None] = {}
    for text in protocol.entries:
        entry = parse_entry(BENCHMARKS, text)
        for task in entry.tasks:
            for source in task.sources(entry.settings.length):
                origin = find_origin(source)
                terms = entry.benchmark.data.get(origin.page)
                versions[
                    DataVersion(
                        origin.page, origin.revision, terms.changed if terms else ""
                    )
                ] = None
    return [*versions]
