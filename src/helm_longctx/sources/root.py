"""The data root: one folder layout, whether it is a user's mirror or our cache.

<root>/helmet/...                       files of HELMET's release
<root>/hub/<org>__<name>[/<config>]/    hub data sets as JSON lines
<root>/tokenizers/<org>__<name>/        saved fast tokenizers
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.errors import InputError

ENVIRONMENT = "HELM_LONGCTX_DATA"
CACHE_NAME = "helm_longctx"

USE_A_MIRROR = "put the data into a mirror folder and set HELM_LONGCTX_DATA"
"""What always helps, for errors."""


@dataclass(frozen=True)
class DataRoot:
    """A folder of data.

    Args:
        path: the folder; a cache need not exist yet.
        mirror: True if the user named it: then it is only read, and nothing is downloaded.
    """

    path: Path
    mirror: bool

    @staticmethod
    def find(benchmark_output: str | Path = "benchmark_output") -> DataRoot:
        """The mirror that `HELM_LONGCTX_DATA` names, else the cache in HELM's output folder.

        Raises:
            InputError: the mirror is not a folder.
        """
        mirror = os.environ.get(ENVIRONMENT)
        if not mirror:
            return DataRoot(Path(benchmark_output) / "scenarios" / CACHE_NAME, mirror=False)
        if not Path(mirror).is_dir():
            raise InputError(f"{ENVIRONMENT}={mirror!r} is not a folder; set it to a mirror folder, or unset it")
        return DataRoot(Path(mirror), mirror=True)

    @staticmethod
    def of_scenario(scenario_cache: str | Path) -> DataRoot:
        """As `find`, from the folder that HELM gives a scenario: `<benchmark output>/scenarios/<scenario>`."""
        return DataRoot.find(Path(scenario_cache).parent.parent)

    def __truediv__(self, relative: str) -> Path:
        return self.path / relative

    def has(self, relative: str) -> bool:
        """Whether a file is here."""
        return (self.path / relative).is_file()

    def missing_error(self, paths: list[str], fetch: str) -> InputError:
        """The one error for absent data: what, where, and the command that gets it."""
        absent = [path for path in paths if not self.has(path)]
        where = f"{ENVIRONMENT}={str(self.path)!r}, where nothing is downloaded," if self.mirror else f"{self.path}"
        return InputError(f"{where} lacks {', '.join(absent)}; get it with: {fetch}")
