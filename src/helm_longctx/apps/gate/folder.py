"""The folders and files of a gate: two suites, the page, the request caches, and which requests came first."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson

from helm_longctx.results.suite import suite_path
from helm_longctx.runs.files import read_json
from helm_longctx.tasks.sample import RecordKey
from helm_longctx.writing import replace_file

BASE = "base"
CANDIDATE = "candidate"
"""The names of the two arms, in this order."""


@dataclass(frozen=True)
class GateFolder:
    """The files of a gate. Each arm has a suite of its own, so that one deployment can be both.

    Args:
        output_path: HELM's output folder.
        name: the gate's name.
    """

    output_path: Path
    name: str

    @property
    def path(self) -> Path:
        """The folder with the page, the JSON file and the request caches."""
        return self.output_path / "gates" / self.name

    @property
    def json_path(self) -> Path:
        """The file with all results."""
        return self.path / "gate.json"

    def suite(self, arm: str) -> str:
        """Return the name of an arm's suite."""
        return f"{self.name}-{arm}"

    def suite_folder(self, arm: str) -> Path:
        """Return the folder of an arm's suite. It need not exist.

        Raises:
            InputError: the gate's name is not a folder name.
        """
        return suite_path(self.output_path, self.suite(arm))

    def cache(self, arm: str) -> Path:
        """Return the folder of an arm's request cache. It is created."""
        folder = self.path / "cache" / arm
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def write_first_half(self, run: str, keys: Iterable[RecordKey]) -> None:
        """Write which requests of a run of the base were sent to the base first.

        Args:
            run: name of the run's folder.
        """
        path = self._half(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, orjson.dumps(sorted(keys)))

    def read_first_half(self, run: str) -> frozenset[RecordKey]:
        """Return the requests of a run that were sent to the base first. See `write_first_half`.

        Raises:
            InputError: the file is missing or damaged.
        """
        rows = read_json(self._half(run))
        return frozenset((task, instance, repeat) for task, instance, repeat in rows)

    def _half(self, run: str) -> Path:
        return self.path / "order" / f"{run}.json"
