"""Hub data sets, read from their parquet conversions: no remote code runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class HubDataset:
    """A data set on the hub.

    Args:
        name: as the official code loads it, `org/name` or `name`; it gives the folder under the data root.
        splits: split name to number of rows in the release that the benchmark used.
        config: configuration, if it has several.
        repo: where it lives now, if it was moved.
    """

    name: str
    splits: Mapping[str, int]
    config: str | None = None
    repo: str | None = None

    @property
    def folder(self) -> str:
        """Under the data root."""
        return "/".join(["hub", self.name.replace("/", "__"), *([self.config] if self.config else [])])

    @property
    def paths(self) -> list[str]:
        """Its files under the data root."""
        return [*(f"{self.folder}/{split}.jsonl" for split in self.splits), f"{self.folder}/features.json"]
