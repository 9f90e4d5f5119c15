"""How `evaluate` asks models that are objects: again, because their code may have changed, and keeps what they were."""

from collections.abc import Mapping
from typing import Any

import orjson
from helm.benchmark.run_spec import RunSpec
from helm.common.hierarchical_logger import hlog

from helm_longctx.errors import InputError
from helm_longctx.runner.prepared import PreparedRun
from helm_longctx.runner.runner import LongContextRunner, Strategy
from helm_longctx.runs.files import STATS, read_model, write_model
from helm_longctx.runs.journal import answer_files


class AskObjects(Strategy):
    """Asks models that are objects of this process again. Other models are asked as in any run.

    Args:
        identities: what identifies each object, by the name of its deployment.
        resumes: whether complete runs are kept and unfinished ones go on.
    """

    def __init__(self, identities: Mapping[str, Mapping[str, Any]], resumes: bool):
        self._identities, self._resumes = identities, resumes

    def skips(self, runner: LongContextRunner, spec: RunSpec) -> bool:
        """Whether a run need not be made: of an object, only if the call goes on with an earlier one.

        Raises:
            InputError: the earlier call had another model.
        """
        identity = self._identities.get(spec.adapter_spec.model_deployment)
        if identity is not None:
            if not self._resumes:
                return False
            before, now = read_model(runner.run_path(spec)), orjson.loads(orjson.dumps(identity, default=str))
            if changed := [key for key in now if before and now[key] != before.get(key)]:
                key = changed[0]
                raise InputError(
                    f"resume=True: the earlier call had another model ({key}: {before.get(key)}, now {now[key]}); give"
                    " resume=False to ask again, or another name="
                )
        return super().skips(runner, spec)

    def make(self, runner: LongContextRunner, spec: RunSpec) -> None:
        """Make a run, without the answers of an earlier call if it does not go on."""
        if spec.adapter_spec.model_deployment in self._identities and not self._resumes:
            path = runner.run_path(spec)
            # A folder without statistics is an unfinished run, whose earlier scores nothing shows.
            for file in (path / STATS, *answer_files(path)):
                file.unlink(missing_ok=True)
        super().make(runner, spec)

    def begin(self, run: PreparedRun) -> None:
        """Keep what identifies the model, and say how many answers an earlier call left."""
        identity = self._identities.get(run.spec.adapter_spec.model_deployment)
        if identity is not None:
            run.journal.advice = "call evaluate again with resume=True"
            write_model(run.path, identity)
            if self._resumes:
                hlog(f"{run.spec.name} goes on with {len(run.journal)} answers of an earlier call")
        else:
            super().begin(run)
