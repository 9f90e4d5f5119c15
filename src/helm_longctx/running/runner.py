"""`helm-run --runner-class-name helm_longctx.running.LongContextRunner`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import helm.benchmark.runner as helm_runner
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.runner import Runner, RunnerError
from helm.benchmark.scenarios.scenario import create_scenario, get_scenario_cache_path
from helm.common.cache import cache_stats
from helm.common.hierarchical_logger import herror, hlog, htrack_block

from helm_longctx.errors import InputError
from helm_longctx.helm.adapter import METHOD
from helm_longctx.helm.annotator import check_annotators
from helm_longctx.helm.patches import apply_patches
from helm_longctx.helm.scenario import LongContextScenario
from helm_longctx.locks import lock_run
from helm_longctx.running.adapting import adapt, prompt_text, whole_request
from helm_longctx.running.annotating import WholePromptAnnotations
from helm_longctx.running.asking import Asking, ask_all
from helm_longctx.running.cache import with_digest_cache
from helm_longctx.running.disk import name_full_disk
from helm_longctx.running.order import by_prefix
from helm_longctx.running.sending import Sender
from helm_longctx.running.servers import server_digest
from helm_longctx.running.stopping import stoppable
from helm_longctx.runs import journal as journals
from helm_longctx.runs.journal import Journal
from helm_longctx.runs.prompts import instance_names, write_prompts
from helm_longctx.runs.results import cut_files, evaluated, write_json
from helm_longctx.runs.spool import Spool


class LongContextRunner(Runner):
    """HELM's runner for long prompts: they are streamed, stored once and not logged; answers are kept as they come.

    A request that fails is counted, and one run with bad data ends in one line; the others are made. Runs that are not
    this package's, and what HELM's flags for instances and dry runs ask for, are made as HELM makes them.

    Args:
        execution_spec, arguments: as HELM's runner takes them.
    """

    def __init__(self, execution_spec: ExecutionSpec, *arguments: Any, **named: Any):
        apply_patches()
        super().__init__(with_digest_cache(execution_spec), *arguments, **named)

    def run_all(self, run_specs: list[RunSpec]) -> None:
        """Make all runs.

        Raises:
            InputError: some could not be made; the message says which and why. It also names those that HELM tells of.
            RunnerError: only runs that HELM tells of could not be made.
        """
        self._refused: list[str] = []
        try:
            super().run_all(run_specs)
        except RunnerError as error:
            if not self._refused:
                raise
            raise InputError(f"{self._refusals(run_specs)}. {error}: their errors are in the log") from error
        if self._refused:
            raise InputError(self._refusals(run_specs))

    def run_one(self, run_spec: RunSpec) -> None:
        """Make one run; bad input is noted, not raised, unless `--exit-on-error` says so."""
        try:
            if self._is_streamed(run_spec):
                self._run_streamed(run_spec)
            else:
                super().run_one(run_spec)
        except InputError as error:
            if self.exit_on_error:
                raise
            self._refused.append(f"{run_spec.name}: {error}")
            herror(self._refused[-1])

    def _refusals(self, run_specs: list[RunSpec]) -> str:
        return f"{len(self._refused)} of {len(run_specs)} runs were not made: {'; '.join(self._refused)}"

    def _is_streamed(self, run_spec: RunSpec) -> bool:
        as_helm_does = self.skip_instances or self.cache_instances or self.dry_run
        ours = run_spec.adapter_spec.method.split("_")[0] == METHOD
        return ours and not as_helm_does and not run_spec.data_augmenter_spec.perturbation_specs

    def _is_run_completed(self, run_path: str) -> bool:
        """Also not while answers are missing, nor where a file is cut."""
        folder = Path(run_path)
        if not super()._is_run_completed(run_path) or (folder / journals.NAME).exists():
            return False
        if cut := cut_files(folder):
            hlog(f"{run_path} is made again, because files lack their end: {', '.join(cut)}")
        return not cut

    def _run_streamed(self, run_spec: RunSpec) -> None:
        run_path = Path(self._get_run_path(run_spec))
        kept = f"what was answered is kept in the run's {journals.NAME}"
        with lock_run(run_path), name_full_disk(run_path, kept):
            if self.skip_completed_runs and self._is_run_completed(str(run_path)):
                hlog(f"Skipping run {run_spec.name} because run is completed and all output files exist.")
            else:
                self._make(run_spec, run_path)

    def _make(self, run_spec: RunSpec, run_path: Path) -> None:
        check_annotators(run_spec.annotators or [], self.annotator_executor.factory.credentials)
        helm_runner._CURRENT_RUN_SPEC_NAME = run_spec.name
        scenario = create_scenario(run_spec.scenario_spec)
        sender = Sender(self.executor.context, run_spec.adapter_spec.model_deployment)
        journal = Journal(run_path, self._server(run_spec))
        with journal, stoppable(journal.summary), Spool(run_path) as spool:
            states = self._adapt(run_spec, scenario, spool)
            states, failed = self._ask(states, run_path, sender, journal, spool)
            state = ScenarioState(run_spec.adapter_spec, states, run_spec.annotators)
            state = WholePromptAnnotations(self.annotator_executor, partial(whole_request, spool=spool)).execute(state)
            self._write_results(run_path, run_spec, scenario, state)
            if not failed:
                journal.finish()
        cache_stats.print_status()

    def _adapt(self, run_spec: RunSpec, scenario: LongContextScenario, spool: Spool) -> list[RequestState]:
        adapter = AdapterFactory.get_adapter(run_spec.adapter_spec, self.tokenizer_service)
        instances = scenario.iter_instances(get_scenario_cache_path(self.output_path, scenario.name))
        with htrack_block("prompts"):
            return adapt(instances, adapter, run_spec.adapter_spec.max_eval_instances, self._parallelism, spool)

    def _ask(
        self, states: list[RequestState], run_path: Path, sender: Sender, journal: Journal, spool: Spool
    ) -> tuple[list[RequestState], int]:
        """The states with results in their order, and how many requests failed."""
        order = by_prefix(prompt_text(state, spool) for state in states)
        ordered = [states[number] for number in order]
        names = instance_names(
            (state.instance.id, state.instance.sub_split, state.instance.extra_data["full_prompt"]["sha256"])
            for state in states
        )
        write_prompts(run_path, ((names[number], prompt_text(states[number], spool)) for number in order))
        asking = Asking(sender, partial(whole_request, spool=spool), journal, len(states))
        with htrack_block(f"{len(states)} requests"):
            answered = dict(zip(order, ask_all(ordered, asking, self._parallelism), strict=True))
            return [answered[number] for number in range(len(states))], asking.finish()

    def _server(self, run_spec: RunSpec) -> str:
        credentials = self.annotator_executor.factory.credentials
        return server_digest(
            run_spec.adapter_spec.model_deployment, credentials, self.executor.execution_spec.url or None
        )

    def _write_results(self, run_path: Path, run_spec: RunSpec, scenario: Any, state: ScenarioState) -> None:
        """HELM's files of a run, in its order: a run with the last of them is complete."""
        stats, each = evaluated(self, run_spec, state)
        write_json(run_path / "run_spec.json", run_spec)
        write_json(run_path / "scenario.json", scenario)
        write_json(run_path / "scenario_state.json", state)
        write_json(run_path / "stats.json", stats)
        write_json(run_path / "per_instance_stats.json", each)

    @property
    def _parallelism(self) -> int:
        return self.executor.execution_spec.parallelism
