"""`helm-run --runner-class-name helm_longctx.runner.LongContextRunner`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import helm.benchmark.runner as helm_runner
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.runner import (
    Runner,
    RunnerError,
    remove_per_instance_stats_nans,
    remove_stats_nans,
)
from helm.benchmark.scenarios.scenario import create_scenario, get_scenario_cache_path
from helm.common.cache import cache_stats

from helm_longctx.data.fetch import describe_files
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, describe_count
from helm_longctx.helm.annotator import check_annotators
from helm_longctx.helm.command_line import log_next_command
from helm_longctx.helm.errors import refuse_runs
from helm_longctx.helm.metric import AnswerRows
from helm_longctx.helm.patches import apply_patches
from helm_longctx.helm.run_specs import fetch_entries
from helm_longctx.helm.scenario import LongContextScenario, scenario_root
from helm_longctx.helm.style import check_drawing
from helm_longctx.helm.truncation import check_tokenizers, with_deployments_tokenizer
from helm_longctx.helm_api import (
    CACHE_DIR,
    PerInstanceStats,
    RequestState,
    RunSpec,
    Scenario,
    ScenarioState,
    SqliteCacheBackendConfig,
    Stat,
)
from helm_longctx.helm_log import helm_log
from helm_longctx.interruptions import interruptible, stoppable
from helm_longctx.locks import lock_run
from helm_longctx.models.results import failure_of
from helm_longctx.models.scoring import check_scoring
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.run_settings import RunSettings, settings_in_use
from helm_longctx.runner.cache import server_digest, with_digest_cache
from helm_longctx.runner.prepared import (
    PreparedRun,
    WindowError,
    check_window,
    may_exceed,
)
from helm_longctx.runner.resuming import is_complete, is_made, retry_cut, retry_factor
from helm_longctx.runner.score_log import log_scores
from helm_longctx.runner.sending import free_model, has_changed, identify, make_sender
from helm_longctx.runner.spending import Limit, Spending
from helm_longctx.runner.spool import (
    RunSpools,
    Spool,
    StoredRequest,
    WholePromptAnnotations,
    adapt,
    adapt_for_helm,
    check_answers,
    is_long_context,
    make_scenario,
    scenario_key,
    store_prompts,
    whole_request,
    wrap_helm_errors,
)
from helm_longctx.runs import files
from helm_longctx.runs.helm_files import write_helm_files
from helm_longctx.runs.journal import NAME, SHARDS, Journal, wait_for_shards
from helm_longctx.runs.ledger import check_nothing_in_batches
from helm_longctx.runs.records import AnswerValues, make_records, write_run
from helm_longctx.tasks.entry import ADAPTER_METHOD
from helm_longctx.writing import explain_full_disk


def runner_arguments(
    output_path: Path,
    suite: str,
    local_path: Path,
    parallelism: int,
    has_cache: bool = True,
    **flags: bool,
) -> dict[str, Any]:
    """Return the arguments of HELM's runner for other commands than `helm-run`, which has the same arguments.

    Args:
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
        sqlite_cache_backend_config=SqliteCacheBackendConfig(str(cache))
        if has_cache
        else None,
    )
    names = (
        "skip_instances",
        "cache_instances",
        "cache_instances_only",
        "skip_completed_runs",
        "exit_on_error",
    )
    arguments = {
        "execution_spec": with_digest_cache(spec),
        "output_path": str(output_path),
        "suite": suite,
    }
    return arguments | dict.fromkeys(names, False) | flags


def evaluate(
    runner: Runner,
    spec: RunSpec,
    state: ScenarioState,
) -> tuple[list[Stat], Iterator[PerInstanceStats | AnswerValues]]:
    """Return the statistics of the whole run and of each instance, from the run's metrics, as HELM computes them.

    Those of instances are made when they are read, because they need more memory than all prompts and answers. Those of
    our metric are not made into HELM's objects.
    """
    metrics = [helm_runner.create_metric(metric) for metric in spec.metric_specs]
    parallelism = runner.executor.execution_spec.parallelism
    with helm_log.block(describe_count(len(metrics), "metric")):
        results = []
        for metric in metrics:
            results.append(
                metric.evaluate(
                    state, runner.metric_service, runner.eval_cache_path, parallelism
                )
            )
    stats = []
    for result in results:
        stats += result.aggregated_stats
    has_records = spec.adapter_spec.method == ADAPTER_METHOD

    def list_rows() -> Iterator[PerInstanceStats | AnswerValues]:
        for result in results:
            rows = result.per_instance_stats
            if isinstance(rows, AnswerRows) and has_records:
                yield from rows.read_values()
                continue
            for row in rows:
                yield from remove_per_instance_stats_nans([row])

    return remove_stats_nans(stats), list_rows()


def _has_answer(state: RequestState) -> bool:
    return state.result is not None and failure_of(state.result) is None


class Strategy:
    """Says which requests of a run are sent, and how. This one sends each request on its own, and completes the run.

    Attributes:
        completes: whether runs are complete at the end.
        purpose: what can be done only with runs that the runner streams. Without it, HELM's code makes the other runs.
        process: name of this process if it makes only a part of a run (see `Journal`).
    """

    completes = True
    purpose = ""
    process: str | None = None

    @contextmanager
    def start(
        self,
        runner: LongContextRunner,
        specs: Sequence[RunSpec],
    ) -> Iterator[None]:
        """Hold what all runs that the runner streams need, while the block makes them."""
        yield

    def lock(self, run_path: Path) -> AbstractContextManager[None]:
        """Return the lock of a run's folder. No other process may hold it while the run is made."""
        return lock_run(run_path)

    def skips(self, runner: LongContextRunner, spec: RunSpec) -> bool:
        """Whether a run need not be made."""
        return runner.skip_completed_runs and runner.is_made(spec)

    def select(self, total: int, prompts: Iterable[str]) -> Sequence[int]:
        """Return the numbers of those prompts whose requests are made; see `spool.Select`."""
        return range(total)

    def make(self, runner: LongContextRunner, spec: RunSpec) -> None:
        """Make a run: prepare it, ask the model, write its files. Answers are kept if it raises an `InputError`."""
        check_nothing_in_batches(runner.run_path(spec))
        wait_for_shards(runner.run_path(spec))
        with runner.prepare(spec) as run:
            if run.is_ours:
                store_prompts(run.path, run.requests, run.order())
            self.begin(run)
            runner.write(run, run.ask())

    def begin(self, run: PreparedRun) -> None:
        """Do what belongs to a run that is prepared, before its first request is sent."""
        if identity := identify(run.spec.adapter_spec.model_deployment):
            files.write_model(run.path, identity)


class LongContextRunner(Runner):
    """HELM's runner for long prompts. It streams prompts, stores them once, and writes each answer to disk at once.

    Failed requests are counted. A run with bad input ends with one line, and the other runs continue. HELM's own code
    makes the runs of other scenarios than HELM's long-context ones, and runs with HELM's flags for dry runs or
    instances. Several runners can share a `limit` in dollars.
    """

    logs_scores = True
    """Whether the log ends with the scores of the runs, if they are complete."""

    owns_process = True
    """Whether Ctrl-C and SIGTERM end the process. Otherwise they raise `KeyboardInterrupt`."""

    def __init__(
        self,
        execution_spec: ExecutionSpec,
        *arguments: Any,
        strategy: Strategy | None = None,
        settings: RunSettings | None = None,
        **options: Any,
    ):
        apply_patches()
        super().__init__(with_digest_cache(execution_spec), *arguments, **options)
        self.strategy = strategy or Strategy()
        self.settings = settings or settings_in_use()
        self.limit = Limit(self.settings.max_cost)
        self.spools = RunSpools(Path(self.runs_path))
        self._refused: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._is_only_run = False
        # The runs that each deployment still has.
        self._left: Counter[str] = Counter()

    def run_all(self, run_specs: list[RunSpec]) -> None:
        """Make all runs. The log ends with their scores.

        Raises:
            InputError: runs of this package lack something or failed; the others are made. The message names them, and
                also HELM's failed runs. It has the reason if there is only one run.
            RunnerError: only HELM's own runs failed.
        """
        self._refused = {}
        self._reasons = {}
        self._is_only_run = len(run_specs) == 1
        self._refuse_incomplete(run_specs)
        whole = []
        for spec in run_specs:
            if spec.name not in self._refused:
                whole.append(spec)
        self._left = Counter(spec.adapter_spec.model_deployment for spec in whole)
        failure: RunnerError | None = None
        try:
            streamed = [spec for spec in whole if self.streams(spec)]
            with (
                self.settings.use(),
                self.strategy.start(self, streamed),
                self.spools.share_between(streamed),
            ):
                super().run_all(whole)
        except RunnerError as error:
            failure = error
        suite = Path(self.runs_path).name
        ours = [spec for spec in run_specs if self._is_ours(spec)]
        if self.logs_scores and self.strategy.completes:
            # A refused run can have the result of an earlier command.
            log_scores(
                Path(self.output_path),
                suite,
                [spec.name for spec in ours if spec.name not in self._refused],
            )
        if failure:
            failure = RunnerError(
                "; ".join(
                    [
                        str(failure),
                        *(f"{run}: {why}" for run, why in self._reasons.items()),
                    ]
                )
            )
        ends = (
            [str(refuse_runs(self._refused, len(run_specs), failure))]
            if self._refused
            else []
        )
        unjudged = []
        for spec in ours:
            if self._lacks_verdicts(spec):
                unjudged.append(spec.name)
        if unjudged and self.strategy.completes:
            again = (
                f"helm-longctx rejudge --suite {suite} --output-path {self.output_path}"
            )
            ends.append(
                f"no judge gave a verdict in {', '.join(unjudged)}; the answers are"
                f" stored, so later: {again}"
            )
            ends += [str(failure)] if failure and not self._refused else []
        if ends:
            raise InputError(". ".join(ends)) from failure
        if failure:
            raise failure
        if self.logs_scores and self.strategy.completes and ours:
            log_next_command(Path(self.output_path), suite)

    def _refuse_incomplete(self, run_specs: list[RunSpec]) -> None:
        """Fetch the data of all runs, and refuse those that lack data, a package, a judge, a tokenizer or a window.

        Everything is checked before the first request, because requests of the other runs cost money.
        """
        root = DataRoot.find(self.output_path)
        ready = []
        for spec in filter(self._is_ours, run_specs):
            if (self.run_path(spec) / files.INSTANCE_STATS).exists():
                continue
            with self._refusing(spec):
                check_annotators(
                    spec.annotators or [], self.annotator_executor.factory.credentials
                )
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
        """Load the tokenizers of a run, and check that some of its prompts fit the model's window."""
        scenario = create_scenario(run_spec.scenario_spec)
        deployment = run_spec.adapter_spec.model_deployment
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
        try:
            with self._refusing(run_spec):
                files.check_run_name(run_spec.name)
                if self.streams(run_spec):
                    spec = with_deployments_tokenizer(run_spec)
                    path = self.run_path(run_spec)
                    kept = f"the answers are kept in the run's {SHARDS if self.strategy.process else NAME}"
                    # Another process may be making the same run, and a full disk can show in any of the run's files.
                    with self.strategy.lock(path), explain_full_disk(path, kept):
                        if self.strategy.skips(self, spec):
                            helm_log.info(
                                f"Skipping run {spec.name} because run is completed and"
                                " all output files exist."
                            )
                        else:
                            self.strategy.make(self, spec)
                elif purpose := self.strategy.purpose:
                    raise InputError(
                        "only run entries of this package and HELM's long-context ones"
                        f" can be {purpose}"
                    )
                else:
                    super().run_one(run_spec)
        finally:
            deployment = run_spec.adapter_spec.model_deployment
            self._left[deployment] -= 1
            if self._left[deployment] == 0:
                free_model(self.executor.context, deployment)

    @contextmanager
    def _refusing(self, run_spec: RunSpec) -> Iterator[None]:
        """Log and record for `run_all` what users can mend in a run."""
        try:
            yield
        except Exception as error:
            if isinstance(error, InputError):
                why = str(error)
            elif (
                isinstance(error, OSError)
                and error.filename is not None
                and error.strerror
            ):
                why = f"{error.filename}: {error.strerror}; make the folder writable, or name another --output-path"
            else:  # an error of HELM's code, whose own log has the traceback
                self._reasons[run_spec.name] = (
                    f"{type(error).__name__}: {describe_error(error)}"
                )
                raise
            if self.exit_on_error:
                raise (
                    error if isinstance(error, InputError) else InputError(why)
                ) from error
            self._refused[run_spec.name] = f"{run_spec.name}: {why}"
            # The error of a single run follows at once from `run_all`.
            if not self._is_only_run:
                helm_log.error(self._refused[run_spec.name])

    def _lacks_verdicts(self, run_spec: RunSpec) -> bool:
        """Whether a run is made and has judged answers, of which none has a verdict."""
        path = self.run_path(run_spec) / files.STATS
        if not (run_spec.annotators and path.is_file()):
            return False
        failed = []
        for stat in files.read_json(path):
            if stat["name"]["name"] == "judge_failed" and stat["count"]:
                failed.append(stat)
        return bool(failed) and all(stat["mean"] == 1 for stat in failed)

    def streams(self, run_spec: RunSpec) -> bool:
        """Whether this class makes the run; otherwise HELM's own code does."""
        needs_helm = self.skip_instances or self.cache_instances or self.dry_run
        return (
            is_long_context(run_spec)
            and not needs_helm
            and not run_spec.data_augmenter_spec.perturbation_specs
        )

    def _is_ours(self, run_spec: RunSpec) -> bool:
        """Whether this class makes the run, and its scenario, adapter and metric are of this package."""
        return self.streams(run_spec) and run_spec.adapter_spec.method == ADAPTER_METHOD

    def _is_run_completed(self, run_path: str) -> bool:
        # HELM's own code for other runs and for Slurm calls this method.
        return is_complete(Path(run_path))

    def run_path(self, run_spec: RunSpec) -> Path:
        """Return the folder of a run."""
        return Path(self._get_run_path(run_spec))

    def is_made(self, run_spec: RunSpec) -> bool:
        """Whether a run is complete, and the same command would make it again."""
        path = self.run_path(run_spec)
        return is_made(path, run_spec) and not has_changed(
            path, run_spec.adapter_spec.model_deployment
        )

    @contextmanager
    def prepare(self, run_spec: RunSpec) -> Iterator[PreparedRun]:
        """Check that the model can be asked, open the journal, and make the requests.

        Raises an `InputError` if the judges, the machine, the client, the data or the journal have a defect.
        """
        check_annotators(
            run_spec.annotators or [], self.annotator_executor.factory.credentials
        )
        # HELM's own `run_one` sets this global, which HELM's DSPy client reads.
        helm_runner._CURRENT_RUN_SPEC_NAME = run_spec.name
        path = self.run_path(run_spec)
        scenario = make_scenario(run_spec)
        deployment = run_spec.adapter_spec.model_deployment
        entry = scenario.entry if isinstance(scenario, LongContextScenario) else None
        if entry is not None:
            entry.check_machine()
        # This comes before the data is read, so that a missing package or key ends the run within seconds.
        sender = make_sender(self.executor.context, deployment, self.settings)
        if entry is not None:
            request = entry.settings.request
            check_drawing(request.sampling, run_spec.adapter_spec)
            if request.scores_given_texts:
                check_scoring(sender.client, deployment, request.metric)
        journal = self.open_journal(run_spec, path)
        stops = stoppable if self.owns_process else interruptible
        with journal, stops(journal.summary), self.spools.open(run_spec) as spool:
            # This comes before the data is read, because a limit needs prices.
            spending = Spending(deployment, self.limit)
            requests = self.adapt(run_spec, scenario, spool)
            check_window(requests, deployment)
            yield PreparedRun(
                run_spec,
                path,
                scenario,
                sender,
                journal,
                spending,
                spool,
                requests,
                self.parallelism,
            )

    def adapt(
        self,
        run_spec: RunSpec,
        scenario: Scenario,
        spool: Spool,
    ) -> list[StoredRequest]:
        """Make a run's requests in HELM's order, with their prompts in the spool, or raise an `InputError`."""
        folder = get_scenario_cache_path(self.output_path, scenario.name)
        adapter = AdapterFactory.get_adapter(
            run_spec.adapter_spec, self.tokenizer_service
        )
        options = {
            "adapter": adapter,
            "parallelism": self.parallelism,
            "spool": spool,
            "select": self.strategy.select,
        }
        with helm_log.block("prompts"):
            if isinstance(scenario, LongContextScenario):
                instances = scenario.iter_instances(folder)
                stored = spool.load(scenario_key(run_spec), instances)
                requests = adapt(stored, **options)
                root = scenario_root(folder)
                run_path = self.run_path(run_spec)
                files.write_data(run_path, describe_files(scenario.entry.sources, root))
                return retry_cut(requests, run_spec, self.run_path(run_spec))
            with wrap_helm_errors(run_spec):
                return adapt_for_helm(scenario.get_instances(folder), **options)

    def open_journal(self, run_spec: RunSpec, run_path: Path) -> Journal:
        """Open a run's journal, whose answers count only for its server. Raises an `InputError` if it is damaged."""
        credentials = self.annotator_executor.factory.credentials
        proxy = self.executor.execution_spec.url or None
        server = server_digest(
            run_spec.adapter_spec.model_deployment, credentials, proxy
        )
        return Journal(run_path, server, self.strategy.process)

    def write(self, run: PreparedRun, answered: list[RequestState]) -> None:
        """Ask the judges, compute the scores, and write HELM's files of a run.

        Args:
            answered: the states of the run's requests with their results, in HELM's order.

        Raises an `InputError` if requests of HELM's own scenario failed, because its metrics cannot score them.
        """
        if not run.is_ours:
            check_answers(answered, run.journal.summary())
        state = ScenarioState(run.spec.adapter_spec, answered, run.spec.annotators)
        whole = partial(whole_request, spool=run.spool)
        state = WholePromptAnnotations(self.annotator_executor, whole).execute(state)
        stats, instance_stats = evaluate(self, run.spec, state)
        # One state at a time is made, with its elided prompt.
        pairs = zip(run.requests, state.request_states, strict=True)
        states = (asked.to_file_state(judged) for asked, judged in pairs)
        if run.is_ours:
            write_run(
                run.path,
                spec=run.spec,
                scenario=run.scenario,
                stats=stats,
                records=make_records(states, instance_stats),
            )
        else:
            # Other readers of HELM's own scenarios expect whole prompts in HELM's files.
            write_helm_files(
                run.path,
                spec=run.spec,
                scenario=run.scenario,
                states=states,
                stats=stats,
                rows=instance_stats,
            )
        # If the journal stays, the same command sends the failed requests again.
        if all(map(_has_answer, answered)):
            run.journal.finish()
        cache_stats.print_status()

    @property
    def parallelism(self) -> int:
        """The largest number of requests in flight."""
        return self.executor.execution_spec.parallelism
