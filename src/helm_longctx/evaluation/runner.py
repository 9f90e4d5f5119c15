"""The runner of `evaluate`: it asks objects again, because their code may have changed, and keeps what they were."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from helm.benchmark.run_spec import RunSpec
from helm.common.hierarchical_logger import hlog

from helm_longctx.errors import InputError
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runs.files import STATS
from helm_longctx.runs.journal import Journal, answer_files

IDENTITY = "python_model.json"
"""File in a run's folder with what identifies a model that is an object."""


class ObjectRunner(LongContextRunner):
    """The runner of runs with models that are objects of this process. Other models are asked as in any run.

    Attributes:
        identities: what identifies each object, by the name of its deployment.
        resumes: whether complete runs are kept and unfinished ones go on.
    """

    identities: Mapping[str, Mapping[str, Any]] = {}
    resumes = False
    logs_scores = False

    def _skips(self, run_spec: RunSpec, run_path: Path) -> bool:
        identity = self.identities.get(run_spec.adapter_spec.model_deployment)
        if identity is not None:
            if not self.resumes:
                return False
            _check_identity(run_path, identity)
        return super()._skips(run_spec, run_path)

    def _open_journal(self, run_spec: RunSpec, run_path: Path) -> Journal:
        identity = self.identities.get(run_spec.adapter_spec.model_deployment)
        if identity is not None and not self.resumes:
            # A folder without statistics is an unfinished run, whose earlier scores nothing shows.
            for path in (run_path / STATS, *answer_files(run_path)):
                path.unlink(missing_ok=True)
        journal = super()._open_journal(run_spec, run_path)
        if identity is not None:
            journal.advice = "call evaluate again with resume=True"
            (run_path / IDENTITY).write_bytes(_serialize(identity))
            if self.resumes:
                hlog(f"{run_spec.name} goes on with {len(journal)} answers of an earlier call")
        return journal


def _check_identity(run_path: Path, identity: Mapping[str, Any]) -> None:
    """Check that the answers of an earlier call are of the same model.

    Raises:
        InputError: the model was another one.
    """
    path = run_path / IDENTITY
    if not path.is_file():
        return
    before, now = orjson.loads(path.read_bytes()), orjson.loads(_serialize(identity))
    if changed := [key for key in now if now[key] != before.get(key)]:
        key = changed[0]
        raise InputError(
            f"resume=True: the earlier call had another model ({key}: {before.get(key)}, now {now[key]}); give"
            " resume=False to ask again, or another name="
        )


def _serialize(identity: Mapping[str, Any]) -> bytes:
    return orjson.dumps(identity, option=orjson.OPT_INDENT_2, default=str)
