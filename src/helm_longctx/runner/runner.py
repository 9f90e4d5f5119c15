"""`helm-run --runner-class-name helm_longctx.runner.LongContextRunner`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import helm.benchmark.runner as helm_runner
from helm.benchmark.adaptation.adapters.adapter import Adapter
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.metrics.metric import PerInstanceStats, Stat, create_metric
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.runner import Runner, RunnerError, remove_per_instance_stats_nans, remove_stats_nans
from helm.benchmark.scenarios.scenario import Scenario, create_scenario, get_scenario_cache_path
from helm.common.cache import cache_stats
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.hierarchical_logger import herror, hlog, htrack_block
from helm.common.request import Request
from helm.proxy.services.service import CACHE_DIR

from helm_longctx.data.root import DataRoot
from helm_longctx.environment import max_cost
from helm_longctx.errors import InputError
from helm_longctx.helm.annotator import check_annotators
from helm_longctx.helm.counting import check_tokenizers, with_deployments_tokenizer
from helm_longctx.helm.errors import refuse_runs
from helm_longctx.helm.patches import apply_patches
from helm_longctx.helm.run_specs import fetch_entries
from helm_longctx.helm.scenario import LongContextScenario
from helm_longctx.locks import lock_run
from helm_longctx.models.apis.sending import Sender
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.runner.asking import Asking, PendingRequest, ask_all
from helm_longctx.runner.cache import server_digest, with_digest_cache
from helm_longctx.runner.ending import log_scores
from helm_longctx.runner.interruptions import explain_full_disk, stoppable
from helm_longctx.runner.prefixes import (
    Beginning,
    Key,
    Pays,
    cacheable_beginnings,
    caching_pays,
    order_by_prefix,
    prefix_keys,
)
from helm_longctx.runner.retry import earlier_name, is_outdated, retry_cut, retry_factor
from helm_longctx.runner.sending import make_sender
from helm_longctx.runner.spending import Limit, Spending
from helm_longctx.runner.spool import (
    Spool,
    StoredRequest,
    WholePromptAnnotations,
    adapt,
    store_prompts,
    whole_request,
    written_state,
)
from helm_longctx.runner.stand_ins import (
    adapt_for_helm,
    check_answers,
    is_long_context,
    make_scenario,
    wrap_helm_errors,
)
from helm_longctx.runner.windows import WindowError, check_window, may_exceed
from helm_longctx.runs import journal as journals
from helm_longctx.runs.files import (
    INSTANCE_STATS,
    RUN_SPEC,
    SCENARIO,
    STATES,
    STATS,
    find_incomplete_files,
    read_json,
    write_json,
)
from helm_longctx.runs.journal import Journal
from helm_longctx.runs.ledger import check_nothing_in_batches
from helm_longctx.runs.shards import wait_for_shards
from helm_longctx.tasks.entry import is_our_method


def runner_arguments(
    output_path: Path, suite: str, local_path: Path, parallelism: int, has_cache: bool = True, **flags: bool
) -> dict[str, Any]:
    """Return the arguments of HELM's runner for commands other than `helm-run`.

    Args:
        output_path, suite, local_path, parallelism: the arguments of `helm-run`.
        has_cache: whether there is a request cache.
        flags: the flags of HELM's runner that are set.
    """
    cache = local_path / CACHE_DIR
    if has_cache:
        cache.mkdir(parents=True, exist_ok=True)
    spec = ExecutionSpec(
        url=None,
        auth=None,  # only a proxy server needs it
        local_path=str(local_path),
        parallelism=parallelism,
        sqlite_cache_backend_config=SqliteCacheBackendConfig(str(cache)) if has_cache else None,
    )
    names = ("skip_instances", "cache_instances", "cache_instances_only", "skip_completed_runs", "exit_on_error")
    arguments = {"execution_spec": with_digest_cache(spec), "output_path": str(output_path), "suite": suite}
    return arguments | dict.fromkeys(names, False) | flags


def evaluate(runner: Runner, spec: RunSpec, state: ScenarioState) -> tuple[list[Stat], Iterator[PerInstanceStats]]:
    """Return the statistics of the whole run and of each instance, from the run's metrics, as HELM computes them.

    Those of instances are made when they are read, because they need more memory than all prompts and answers.
    """
    metrics = [create_metric(metric) for metric in spec.metric_specs]
    parallelism = runner.executor.execution_spec.parallelism
    with htrack_block(f"{len(metrics)} metrics"):
        results = [
            metric.evaluate(state, runner.metric_service, runner.eval_cache_path, parallelism) for metric in metrics
        ]
    stats = remove_stats_nans([stat for result in results for stat in result.aggregated_stats])
    rows = (row for result in results for row in result.per_instance_stats)
    return stats, (without for row in rows for without in remove_per_instance_stats_nans([row]))


@dataclass(frozen=True)
class PreparedRun:
    """Everything that a run needs before the model is asked.

    Args:
        path: the run's folder.
        scenario: the run's scenario.
        sender: sends a request to the run's deployment.
        journal: the answers from earlier commands.
        spending: adds up what the requests cost.
        spool: holds the whole prompts.
        requests: the requests in HELM's order.
    """

    path: Path
    scenario: Scenario
    sender: Sender
    journal: Journal
    spending: Spending
    spool: Spool
    requests: list[StoredRequest]

    @cached_property
    def _keys(self) -> list[Key]:
        return prefix_keys(each.text() for each in self.requests)

    def order(self) -> list[int]:
        """Return the numbers of the requests in the order in which they are sent and their prompts are stored.

        In this order servers and the compressor can reuse a common prefix, and functions the context of the question
        before.
        """
        order = order_by_prefix(self._keys)
        if not self.sender.takes_facts:
            return order
        # Contexts can differ within the last step of their prefixes, or be shorter than one.
        places: dict[str, int] = {}
        return sorted(order, key=lambda number: places.setdefault(self.requests[number].context_digest(), len(places)))

    def pending(self) -> list[PendingRequest]:
        """Return the requests, each with the beginning that it shares with others if the provider can use that."""
        beginnings = self.beginnings(range(len(self.requests)), caching_pays(self.spending.prices))
        return [PendingRequest(each, beginning) for each, beginning in zip(self.requests, beginnings, strict=True)]

    def beginnings(self, numbers: Sequence[int], pays: Pays) -> list[Beginning | None]:
        """Return the beginnings that requests share with each other; see `cacheable_beginnings`."""
        keys = [self._keys[number] for number in numbers] if self.sender.caches_prompts else [[]] * len(numbers)
        return cacheable_beginnings([self.requests[number].request for number in numbers], keys, pays)

    def name(self, each: StoredRequest) -> str:
        """Return the name of a request in the journal."""
        return self.journal.name(each.request, each.digest)

    def store_prompts(self) -> None:
        """Write the whole prompts to the run's folder."""
        store_prompts(self.path, self.requests, self.order())

    def whole_request(self, state: RequestState) -> Request:
        """Return a state's request with its whole prompt."""
        return whole_request(state, self.spool)


def _explain(error: Exception) -> str | None:
    """Return the reason of an error that users can mend; None for an error of a program."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}; make the folder writable, or name another --output-path"
    return None


class LongContextRunner(Runner):
    """HELM's runner for long prompts. It streams prompts, stores them once, and writes each answer to disk at once.

    Failed requests are counted. A run with bad input ends with one line, and the other runs continue. HELM's own code
    makes the runs of other scenarios than HELM's long-context ones, and runs with HELM's flags for dry runs or
    instances.

    Args:
        execution_spec, arguments, options: the arguments of HELM's runner.

    Attributes:
        limit: the limit in dollars, which several runners can share.
    """

    logs_scores = True
    """Whether the log ends with the scores of the runs."""
    makes_runs = True
    """Whether runs are complete at the end."""

    def __init__(self, execution_spec: ExecutionSpec, *arguments: Any, **options: Any):
        apply_patches()
        super().__init__(with_digest_cache(execution_spec), *arguments, **options)
        self.limit = Limit(max_cost())

    def run_all(self, run_specs: list[RunSpec]) -> None:
        """Make all runs. The log ends with their scores.

        Raises:
            InputError: runs of this package lack something or failed; the others are made. The message names them, and
                also HELM's failed runs. It has the reason if there is only one run.
            RunnerError: only HELM's own runs failed.
        """
        self._refused: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._is_only_run = len(run_specs) == 1
        self._refuse_incomplete(run_specs)
        failure: RunnerError | None = None
        try:
            self._run_each([spec for spec in run_specs if spec.name not in self._refused])
        except RunnerError as error:
            failure = error
        if self.logs_scores:
            runs = Path(self.runs_path)
            # A refused run can have the result of an earlier command.
            made = [spec.name for spec in filter(self._is_ours, run_specs) if spec.name not in self._refused]
            log_scores(Path(self.output_path), runs.name, made)
        if failure:
            failure = RunnerError("; ".join([str(failure), *(f"{run}: {why}" for run, why in self._reasons.items())]))
        ends = [str(refuse_runs(self._refused, len(run_specs), failure))] if self._refused else []
        unjudged = [spec.name for spec in run_specs if self._is_ours(spec) and self._lacks_verdicts(spec)]
        if unjudged and self.makes_runs:
            again = f"helm-longctx rejudge --suite {Path(self.runs_path).name} --output-path {self.output_path}"
            ends.append(f"no judge gave a verdict in {', '.join(unjudged)}; the answers are stored, so later: {again}")
            ends += [str(failure)] if failure and not self._refused else []
        if ends:
            raise InputError(". ".join(ends)) from failure
        if failure:
            raise failure

    def _run_each(self, run_specs: list[RunSpec]) -> None:
        """Make the runs that lack nothing."""
        super().run_all(run_specs)

    def _refuse_incomplete(self, run_specs: list[RunSpec]) -> None:
        """Fetch the data of all runs, and refuse those that lack data, a package, a judge, a tokenizer or a window.

        Everything is checked before the first request, because requests of the other runs cost money.
        """
        root, ready = DataRoot.find(self.output_path), []
        for spec in filter(self._is_ours, run_specs):
            if (Path(self._get_run_path(spec)) / INSTANCE_STATS).exists():
                continue
            with self._refusing(spec):
                check_annotators(spec.annotators or [], self.annotator_executor.factory.credentials)
                scenario = create_scenario(spec.scenario_spec)
                scenario.entry.check_machine()
                ready.append((spec, scenario))
        errors = fetch_entries([scenario.entry for _, scenario in ready], root)
        for spec, scenario in ready:
            with self._refusing(spec):
                if error := errors.get(scenario.entry.description):
                    raise error
                # A run that asks again for cut answers has the prompts of the earlier run.
                if not retry_factor(spec):
                    self._check_tokenizer(with_deployments_tokenizer(spec), root)

    def _check_tokenizer(self, run_spec: RunSpec, root: DataRoot) -> None:
        """Load the tokenizers of a run, and check that some of its prompts fit the model's window.

        Raises:
            InputError: they cannot be loaded, or no prompt fits.
        """
        scenario, deployment = create_scenario(run_spec.scenario_spec), run_spec.adapter_spec.model_deployment
        is_loaded = True
        try:
            check_tokenizers(scenario.entry, deployment, root)
        except InputError:
            is_loaded = False
        if is_loaded and not may_exceed(scenario.entry, deployment):
            return
        # Short prompts need no tokenizer, and fit every window. Only the prompts tell whether they are short.
        with Spool(Path(self.runs_path)) as spool:
            try:
                check_window(self.adapt(run_spec, scenario, spool), deployment)
            except InputError as error:
                # Other runs need not have this run's mistake, which it reports itself.
                if not is_loaded or isinstance(error, WindowError):
                    raise

    def run_one(self, run_spec: RunSpec) -> None:
        """Make one run. What users can mend is logged and recorded for `run_all`, and raised with `--exit-on-error`."""
        with self._refusing(run_spec):
            if self._streams(run_spec):
                self._stream_run(with_deployments_tokenizer(run_spec))
            else:
                self._run_other(run_spec)

    @contextmanager
    def _refusing(self, run_spec: RunSpec) -> Iterator[None]:
        """Log and record for `run_all` what users can mend in a run."""
        try:
            yield
        except Exception as error:
            why = _explain(error)
            if why is None:  # an error of HELM's code, whose own log has the traceback
                self._reasons[run_spec.name] = f"{type(error).__name__}: {describe_error(error)}"
                raise
            if self.exit_on_error:
                raise error if isinstance(error, InputError) else InputError(why) from error
            self._refused[run_spec.name] = f"{run_spec.name}: {why}"
            # The error of a single run follows at once from `run_all`.
            if not self._is_only_run:
                herror(self._refused[run_spec.name])

    def _lacks_verdicts(self, run_spec: RunSpec) -> bool:
        """Whether a run is made and has judged answers, of which none has a verdict."""
        path = Path(self._get_run_path(run_spec)) / STATS
        if not (run_spec.annotators and path.is_file()):
            return False
        failed = [stat for stat in read_json(path) if stat["name"]["name"] == "judge_failed" and stat["count"]]
        return bool(failed) and all(stat["mean"] == 1 for stat in failed)

    def _run_other(self, run_spec: RunSpec) -> None:
        """Let HELM's own code do a run that this class does not stream."""
        super().run_one(run_spec)

    def _streams(self, run_spec: RunSpec) -> bool:
        """Whether this class makes the run; otherwise HELM's own code does."""
        needs_helm = self.skip_instances or self.cache_instances or self.dry_run
        return is_long_context(run_spec) and not needs_helm and not run_spec.data_augmenter_spec.perturbation_specs

    def _is_ours(self, run_spec: RunSpec) -> bool:
        """Whether this class makes the run, and its scenario, adapter and metric are of this package."""
        return self._streams(run_spec) and is_our_method(run_spec.adapter_spec.method)

    def _is_run_completed(self, run_path: str) -> bool:
        """Whether the run is complete for HELM, no answers are missing, and no file is cut off."""
        folder = Path(run_path)
        if not super()._is_run_completed(run_path) or journals.answer_files(folder):
            return False
        if incomplete := find_incomplete_files(folder):
            hlog(f"{run_path} is made again, because files are incomplete: {', '.join(incomplete)}")
        return not incomplete

    def _is_made(self, run_spec: RunSpec, run_path: Path) -> bool:
        """Whether a run is complete, and has the requested number of instances and the user's files as they are now.

        Neither is in a run's name. A run that asks again for cut answers is made again after the earlier run.
        """
        if not self._is_run_completed(str(run_path)):
            return False
        if self._is_ours(run_spec) and retry_factor(run_spec) and is_outdated(run_path, self._earlier_path(run_spec)):
            return False
        made = read_json(run_path / RUN_SPEC)
        return (made["adapter_spec"].get("max_eval_instances"), made["scenario_spec"].get("args", {}).get("files")) == (
            run_spec.adapter_spec.max_eval_instances,
            run_spec.scenario_spec.args.get("files"),
        )

    def _stream_run(self, run_spec: RunSpec) -> None:
        run_path = Path(self._get_run_path(run_spec))
        # Another process may be making the same run, and a full disk can show in any of the run's files.
        summary = f"the answers are kept in the run's {journals.NAME}"
        with lock_run(run_path), explain_full_disk(run_path, summary):
            if not self._skips(run_spec, run_path):
                self._make(run_spec, run_path)

    def _skips(self, run_spec: RunSpec, run_path: Path) -> bool:
        """Whether the run need not be made. This is logged."""
        if not (self.skip_completed_runs and self._is_made(run_spec, run_path)):
            return False
        hlog(f"Skipping run {run_spec.name} because run is completed and all output files exist.")
        return True

    def _make(self, run_spec: RunSpec, run_path: Path) -> None:
        check_nothing_in_batches(run_path)
        wait_for_shards(run_path)
        is_ours = is_our_method(run_spec.adapter_spec.method)
        with self._prepare(run_spec, run_path) as run:
            # The files of HELM's own runs have whole prompts.
            if is_ours:
                run.store_prompts()
            states, failed = self._ask(run)
            if not is_ours:
                check_answers(states, run.journal.summary())
            state = ScenarioState(run_spec.adapter_spec, states, run_spec.annotators)
            state = WholePromptAnnotations(self.annotator_executor, run.whole_request).execute(state)
            self._write_results(run, run_spec, state)
            # If the journal stays, the same command sends the failed requests again.
            if not failed:
                run.journal.finish()
        cache_stats.print_status()

    @contextmanager
    def _prepare(self, run_spec: RunSpec, run_path: Path) -> Iterator[PreparedRun]:
        """Check that the model can be asked, open the journal, and make the requests.

        Raises:
            InputError: the judges, the machine, the client, the data or the journal have a defect.
        """
        check_annotators(run_spec.annotators or [], self.annotator_executor.factory.credentials)
        # HELM's own `run_one` sets this global, which HELM's DSPy client reads.
        helm_runner._CURRENT_RUN_SPEC_NAME = run_spec.name
        scenario = make_scenario(run_spec)
        if isinstance(scenario, LongContextScenario):
            scenario.entry.check_machine()
        # This comes before the data is read, so that a missing package or key ends the run within seconds.
        sender = make_sender(self.executor.context, run_spec.adapter_spec.model_deployment)
        journal = self._open_journal(run_spec, run_path)
        with journal, stoppable(journal.summary), Spool(run_path) as spool:
            # This comes before the data is read, because a limit needs prices.
            spending = Spending(run_spec.adapter_spec.model_deployment, self.limit)
            requests = self.adapt(run_spec, scenario, spool)
            check_window(requests, run_spec.adapter_spec.model_deployment)
            yield PreparedRun(run_path, scenario, sender, journal, spending, spool, requests)

    def adapt(self, run_spec: RunSpec, scenario: Scenario, spool: Spool) -> list[StoredRequest]:
        """Make the requests of a run, in HELM's order and with their prompts in the spool.

        Raises:
            InputError: data is missing or malformed, prompts do not fit, or HELM's own scenario or adapter fails.
        """
        folder = get_scenario_cache_path(self.output_path, scenario.name)
        options = run_spec.adapter_spec.max_eval_instances, self._parallelism, spool, self._selection(spool)
        with htrack_block("prompts"):
            if isinstance(scenario, LongContextScenario):
                requests = adapt(scenario.iter_instances(folder), self._adapter(run_spec), *options)
                return self._retry_cut(run_spec, requests)
            with wrap_helm_errors(run_spec):
                return adapt_for_helm(scenario.get_instances(folder), self._adapter(run_spec), *options)

    def _retry_cut(self, run_spec: RunSpec, requests: list[StoredRequest]) -> list[StoredRequest]:
        """Return the requests; those of an entry with `retry_cut` have the earlier run's results or larger budgets."""
        factor = retry_factor(run_spec)
        run = Path(self._get_run_path(run_spec))
        return retry_cut(requests, run_spec, run, self._earlier_path(run_spec), factor) if factor else requests

    def _earlier_path(self, run_spec: RunSpec) -> Path:
        """Return the folder of the run whose cut answers a run asks for again."""
        return Path(self._get_run_path(replace(run_spec, name=earlier_name(run_spec.name))))

    def _adapter(self, run_spec: RunSpec) -> Adapter:
        return AdapterFactory.get_adapter(run_spec.adapter_spec, self.tokenizer_service)

    def _selection(self, spool: Spool) -> Callable[[Sequence[str]], Sequence[int]] | None:
        """Return the function that selects the instances whose requests are made (see `adapt`); None for all."""
        return None

    def _ask(self, run: PreparedRun) -> tuple[list[RequestState], int]:
        """Return the states with results, in their order, and the number of requests that failed."""
        total, order, pending = len(run.requests), run.order(), run.pending()
        asking = Asking(run.sender, run.journal, run.spending, total)
        with htrack_block(f"{total} requests"):
            hlog(run.path.name)  # `helm-longctx run` shows the messages of this package, but not HELM's "Running …"
            ordered = [pending[number] for number in order]
            answered = dict(zip(order, ask_all(ordered, asking, self._parallelism), strict=True))
            return [answered[number] for number in range(total)], asking.finish()

    def _open_journal(self, run_spec: RunSpec, run_path: Path) -> Journal:
        return Journal(run_path, self._server(run_spec))

    def _server(self, run_spec: RunSpec) -> str:
        credentials = self.annotator_executor.factory.credentials
        return server_digest(
            run_spec.adapter_spec.model_deployment, credentials, self.executor.execution_spec.url or None
        )

    def _write_results(self, run: PreparedRun, run_spec: RunSpec, state: ScenarioState) -> None:
        """Write HELM's files of a run in HELM's order: a run that has the last file is complete."""
        stats, instance_stats = evaluate(self, run_spec, state)
        contents = {
            RUN_SPEC: run_spec,
            SCENARIO: run.scenario,
            STATES: written_state(state, run.requests),
            STATS: stats,
            INSTANCE_STATS: instance_stats,
        }
        for name, content in contents.items():
            write_json(run.path / name, content)

    @property
    def _parallelism(self) -> int:
        return self.executor.execution_spec.parallelism
