"""`helm-run --runner-class-name helm_longctx.runner.machines.RayRunner`: shards as Ray tasks, on one or many machines.

Each run is a task that waits for the tasks of its shards. All write to the output folder, which is on a disk that the
nodes share. If a worker or node fails, Ray restarts its task, and the task asks only for the missing answers.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from helm.benchmark import model_deployment_registry as deployments
from helm.benchmark import model_metadata_registry as models
from helm.benchmark import tokenizer_config_registry as tokenizers
from tqdm import tqdm

from helm_longctx.environment import (
    require,
)
from helm_longctx.errors import InputError
from helm_longctx.helm_api import RunSpec
from helm_longctx.helm_log import helm_log
from helm_longctx.interruptions import stoppable
from helm_longctx.models.apis.rates import Pace, use_paces
from helm_longctx.run_settings import MAX_COST, RunSettings, settings_in_use
from helm_longctx.runner.machines.shards import OneShard
from helm_longctx.runner.runner import LongContextRunner, Strategy
from helm_longctx.runs.journal import Shard

_TASKS_OF_WORKER = 4
"""Approximate number of tasks for each worker, so that all workers end at nearly the same time."""

_RETRIES = 10
"""Number of times that Ray restarts a task after its worker or node has failed."""

_TICK = 1.0
_LOG_EVERY = 60.0
"""Seconds between two checks of the tasks, and between two lines in the log if there is no terminal."""

_LOCAL_CLIENTS = (
    "helm.clients.huggingface_client",
    "helm_longctx.models.local.huggingface",
)
"""Clients whose models use the GPU of their process."""

_REGISTRIES: Sequence[tuple[Callable[[Any], None], Mapping[str, Any]]] = (
    (models.register_model_metadata, models.MODEL_NAME_TO_MODEL_METADATA),
    (
        deployments.register_model_deployment,
        deployments.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ),
    (tokenizers.register_tokenizer_config, tokenizers.TOKENIZER_NAME_TO_CONFIG),
)
"""HELM's functions that register something, and what is registered."""


@dataclass(frozen=True)
class WorkerData:
    """The data of the driver's process that a worker needs.

    Args:
        paces: the actor that holds the paces of all addresses.
        folder: the working folder, to which paths are relative.
        settings: the driver's settings. A worker's environment can have others.
        registered: the models, deployments and tokenizers that are registered with HELM.
    """

    arguments: Mapping[str, Any]
    paces: Any = field(repr=False)
    folder: str = field(default_factory=os.getcwd)
    settings: RunSettings = field(default_factory=settings_in_use)
    registered: Sequence[tuple[Callable[[Any], None], Sequence[Any]]] = field(
        default_factory=lambda: [
            (register, [*entries.values()]) for register, entries in _REGISTRIES
        ],
        repr=False,
    )

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Set up this worker like the driver's process for a task. Raises an `InputError` if it lacks the driver's disk."""
        runs = Path(
            self.folder, self.arguments["output_path"], "runs", self.arguments["suite"]
        )
        if not runs.is_dir():
            host = os.uname().nodename
            raise InputError(
                f"--output-path: {runs} is not on {host}; name a folder on a disk that"
                " all nodes share"
            )
        os.chdir(self.folder)
        for register, values in self.registered:
            for value in values:
                register(value)
        with self.settings.use(), use_paces(partial(_SharedPace, self.paces)):
            yield


class _Paces:
    """The paces of all addresses. It runs as an actor, so that all workers together keep the limits."""

    def __init__(self) -> None:
        self._paces: dict[tuple[Any, ...], Pace] = {}

    def call(
        self,
        key: tuple[str, float | None, float | None],
        method: str,
        *arguments: float,
    ) -> Any:
        """Call a method of the pace with a key: its name and its limits per minute."""
        _, requests, tokens = key
        pace = self._paces.setdefault(key, Pace(requests, tokens))
        return getattr(pace, method)(*arguments)


class _SharedPace(Pace):
    """A pace of `_Paces`."""

    def __init__(
        self,
        paces: Any,
        name: str,
        requests: float | None,
        tokens: float | None,
    ):
        super().__init__(requests, tokens)
        self._actor = paces
        self._key = (name, requests, tokens)

    def reserve(self, tokens: float) -> float:
        """Reserve the next turn among the requests of all workers."""
        return self._call("reserve", tokens)

    def rest(self) -> float:
        """Return the seconds that are left of a pause that a server has asked any worker for."""
        return self._call("rest")

    def correct(self, tokens: float) -> None:
        """Count tokens, see `Pace`."""
        self._call("correct", tokens)

    def pause(self, seconds: float) -> None:
        """Pause all workers."""
        self._call("pause", seconds)

    def _call(self, method: str, *arguments: float) -> Any:
        return _import_ray().get(self._actor.call.remote(self._key, method, *arguments))


def ask_shard(job: WorkerData, run_spec: RunSpec, shard: Shard) -> None:
    """Send the requests of a shard. This is a Ray task."""
    with job.enter():
        LongContextRunner(
            **job.arguments, strategy=OneShard(shard), settings=job.settings
        ).run_one(run_spec)


def _make_run(job: WorkerData, run_spec: RunSpec, *shards: None) -> None:
    """Make a run from the answers of its shards, for which Ray waits. This is a Ray task."""
    with job.enter():
        LongContextRunner(**job.arguments, settings=job.settings).run_one(run_spec)


class RayRunner(LongContextRunner):
    """The runner, except that runs and their shards are Ray tasks.

    `RAY_ADDRESS` names the cluster; without it, Ray runs on this machine while the command lasts. Runs that HELM's own
    code makes are made in this process. Raises an `InputError` if the extra `ray` is missing, or the cost is limited.
    """

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options, strategy=_RayTasks())
        require("ray", "RayRunner")
        if (dollars := self.settings.max_cost) is not None:
            reason = f"{MAX_COST}={dollars:g} limits one process and cannot limit Ray's workers"
            raise InputError(f"{reason}; unset it, and see `helm-longctx estimate`")


class _RayTasks(Strategy):
    """Lets tasks of Ray make the runs: a task for each shard, and one for each run. It waits for its shards."""

    @contextmanager
    def start(
        self,
        runner: LongContextRunner,
        specs: Sequence[RunSpec],
    ) -> Iterator[None]:
        """Submit the tasks of all runs."""
        missing = [
            spec for spec in specs if not super(_RayTasks, self).skips(runner, spec)
        ]
        with _connect_ray():
            cluster = Cluster(_make_job(runner))
            total = cluster.shards_per_run(len(specs))
            parts = [Shard(number, total) for number in range(1, total + 1)]
            shards = {}
            tasks_of_shards = []
            for spec in missing:
                shards[spec.name] = [
                    cluster.submit(ask_shard, spec, part) for part in parts
                ]
                tasks_of_shards += shards[spec.name]
            self._tasks = {
                spec.name: cluster.submit(_make_run, spec, *shards[spec.name])
                for spec in missing
            }
            self._progress = ShardProgress(tasks_of_shards)
            try:
                yield
            finally:
                self._progress.close()

    def skips(self, runner: LongContextRunner, spec: RunSpec) -> bool:
        """Whether the run has no task. Its task can have ended before this process comes to it."""
        return spec.name not in self._tasks

    def lock(self, run_path: Path) -> AbstractContextManager[None]:
        """Return no lock, because the tasks lock the run."""
        return nullcontext()

    def make(self, runner: LongContextRunner, spec: RunSpec) -> None:
        """Wait for the run's task."""
        ray = _import_ray()
        task = self._tasks[spec.name]
        while not ray.wait([task], timeout=_TICK)[0]:
            self._progress.show()
        try:
            ray.get(task)
        except ray.exceptions.RayTaskError as error:
            raise (
                error.cause if isinstance(error.cause, InputError) else error
            ) from None
        except ray.exceptions.RayError as error:
            raise InputError(
                f"its worker ended {_RETRIES + 1} times: {type(error).__name__}"
            ) from error


def _make_job(runner: LongContextRunner) -> WorkerData:
    """Return the data that workers need to make runs like a runner of this process."""
    ray = _import_ray()
    execution = runner.executor.execution_spec
    names = (
        "skip_instances",
        "cache_instances",
        "cache_instances_only",
        "skip_completed_runs",
    )
    if (
        execution.sqlite_cache_backend_config
        and sum(node["Alive"] for node in ray.nodes()) > 1
    ):
        helm_log.info(
            "the request cache is not used, because SQLite's files cannot be shared by"
            " several machines"
        )
        execution = replace(execution, sqlite_cache_backend_config=None)
    arguments = {
        "execution_spec": execution,
        "output_path": runner.output_path,
        "suite": Path(runner.runs_path).name,
        "exit_on_error": True,  # so that a task fails if its run does
        **{name: getattr(runner, name) for name in names},
    }
    # The actor is on the node of this process, because all workers would wait if it moved.
    node = ray.get_runtime_context().get_node_id()
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        node, soft=True
    )
    options = {
        "num_cpus": 0,
        "max_restarts": -1,
        "max_task_retries": -1,
        "scheduling_strategy": here,
    }
    return WorkerData(arguments, ray.remote(_Paces).options(**options).remote())


class Cluster:
    """Submits tasks to Ray, with the resources that their models need."""

    def __init__(self, job: WorkerData):
        ray = _import_ray()
        self._resources: dict[str, float] = ray.cluster_resources()
        self._job = ray.put(job)
        self._functions = {
            function: ray.remote(function) for function in (ask_shard, _make_run)
        }
        self._gpus = job.settings.gpus
        self._workers = job.settings.workers or int(self._resources.get("CPU", 1))

    def shards_per_run(self, runs: int) -> int:
        """Return the number of shards of each run. It is higher for fewer runs, and at most the number of workers."""
        return min(self._workers, -(-_TASKS_OF_WORKER * self._workers // max(runs, 1)))

    def submit(
        self,
        function: Callable[..., None],
        run_spec: RunSpec,
        *arguments: Any,
    ) -> Any:
        """Submit a task for a run. It waits for arguments that are tasks. Return the reference of its result."""
        needs = self._needs(run_spec.adapter_spec.model_deployment)
        task = self._functions[function].options(**needs, max_retries=_RETRIES)
        return task.remote(self._job, run_spec, *arguments)

    def _needs(self, deployment: str) -> dict[str, float]:
        """Return a task's resources: a GPU for a model in its process, otherwise a part of a CPU.

        A task that asks an API mostly waits. The part lets the wanted number of tasks run at the same time.
        """
        spec = deployments.get_model_deployment(deployment).client_spec
        if not spec.class_name.startswith(_LOCAL_CLIENTS):
            return {
                "num_cpus": int(10_000 * self._resources.get("CPU", 1) / self._workers)
                / 10_000,
                "num_gpus": 0,
            }
        is_on_gpu = "GPU" in self._resources and "cpu" not in str(
            (spec.args or {}).get("device")
        )
        return {"num_cpus": 1, "num_gpus": self._gpus if is_on_gpu else 0}


class ShardProgress:
    """Shows how many shards of all runs are done: as a bar on a terminal, otherwise in the log."""

    def __init__(self, tasks: Sequence[Any]):
        self._tasks = tasks
        self._last_shown = time.monotonic()
        self._bar = tqdm(
            total=len(tasks),
            unit="shard",
            disable=None,
        )

    def show(self) -> None:
        """Show progress if it was not shown for some time."""
        if not self._tasks or time.monotonic() - self._last_shown < (
            _LOG_EVERY if self._bar.disable else _TICK
        ):
            return
        self._last_shown = time.monotonic()
        done, _ = _import_ray().wait(
            self._tasks,
            num_returns=len(self._tasks),
            timeout=0,
            fetch_local=False,
        )
        self._bar.n = len(done)
        self._bar.refresh()
        if self._bar.disable:
            helm_log.info(f"{len(done)} of {len(self._tasks)} shards are done")

    def close(self) -> None:
        """Remove the bar from the terminal."""
        self._bar.close()


def _import_ray() -> Any:
    """Import Ray when it is needed, because the import takes a second."""
    import ray

    return ray


@contextmanager
def _connect_ray() -> Iterator[None]:
    """Connect to the cluster of `RAY_ADDRESS`, or start Ray on this machine; leave it at the end of the block."""
    # Ray's processes end with this one. Ray's own functions for the end would print traces while it starts.
    with stoppable(
        lambda: "the answers are kept, and the same command continues", unwinds=False
    ):
        ray = _import_ray()
        is_ours = not ray.is_initialized()
        if is_ours:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            # `init` would replace our handler of SIGTERM by one that ends the process without a message.
            with patch.object(
                ray._private.utils, "set_sigterm_handler", lambda handler: None
            ):
                ray.init(configure_logging=False, namespace="helm-longctx")
        try:
            yield
        finally:
            if is_ours:
                ray.shutdown()
