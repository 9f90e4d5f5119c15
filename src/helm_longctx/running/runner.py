"""`helm-run --runner-class-name helm_longctx.running.LongContextRunner`."""

from __future__ import annotations

from helm.benchmark.run_spec import RunSpec
from helm.benchmark.runner import Runner
from helm.common.hierarchical_logger import herror

from helm_longctx.errors import InputError


class LongContextRunner(Runner):
    """HELM's runner, in which a run with bad data ends in one line; the other runs are made."""

    def run_all(self, run_specs: list[RunSpec]) -> None:
        """Make all runs.

        Raises:
            InputError: some could not be made; the message says which and why.
        """
        self._refused: list[str] = []
        super().run_all(run_specs)
        if self._refused:
            raise InputError(f"{len(self._refused)} of {len(run_specs)} runs were not made: {'; '.join(self._refused)}")

    def run_one(self, run_spec: RunSpec) -> None:
        """Make one run; bad input is noted, not raised, unless `--exit-on-error` says so."""
        try:
            super().run_one(run_spec)
        except InputError as error:
            if self.exit_on_error:
                raise
            self._refused.append(f"{run_spec.name}: {error}")
            herror(self._refused[-1])
