"""Measures how much faster four Ray workers are than one, if each answer takes a second: `python -m bench.ray_workers`.

Both runs are made on the same Ray instance, one after the other, and the results are compared byte by byte.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import ray
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment
from helm.benchmark.run_spec import RunSpec
from tests.runner.making import deployed, spec_of
from tests.support.servers.llm import Server, asked_again, serve
from tests.support.shards import read_all

from helm_longctx.models.baselines import lexical
from helm_longctx.run_settings import WORKERS
from helm_longctx.runner.machines import RayRunner
from helm_longctx.runner.runner import runner_arguments

REQUESTS = int(os.environ.get("BENCH_REQUESTS", "240"))
LATENCY = 1.0
BAR = 3.5
ENTRY = f"helmet_recall:task=json_kv,length=4k,num_samples={REQUESTS},style=chat,model=longctx/lexical"


def make(folder: Path, spec: RunSpec, workers: int) -> tuple[float, dict[str, bytes]]:
    """Make a run, and return the seconds that it takes, and its files without the times of requests."""
    os.environ[WORKERS] = str(workers)
    start = time.monotonic()
    RayRunner(**runner_arguments(folder, "s", folder, 1, has_cache=False)).run_all(
        [spec]
    )
    seconds = time.monotonic() - start
    return seconds, read_all(folder / "runs/s" / spec.name)


def measure(server: Server, folder: Path) -> None:
    """Make a short run to start the workers' processes, and then the two that are compared."""
    warm_up = spec_of(
        f"{ENTRY},model_deployment=test/ray".replace(f"={REQUESTS}", "=8")
    )
    make(folder / "warm", warm_up, 4)
    server.delay = LATENCY
    server.cache.read = lambda prefixes: 0  # type: ignore[method-assign]  # else the second run has other numbers of cached tokens
    spec = spec_of(f"{ENTRY},model_deployment=test/ray")
    seconds = {}
    results = {}
    for workers in (1, 4):
        server.forget()
        seconds[workers], results[workers] = make(folder / str(workers), spec, workers)
        print(
            f"{workers} workers: {seconds[workers]:.1f} s, {len(asked_again(server.calls))} requests asked again"
        )
    print(
        f"ratio: {seconds[1] / seconds[4]:.2f} (bar: {BAR}); results are equal: {results[1] == results[4]}"
    )


def main() -> None:
    """Measure on a Ray of this machine."""
    ray.init(
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=80_000_000,
    )
    with serve(lexical.answer) as server, tempfile.TemporaryDirectory() as folder:
        arguments = {"base_url": server.openai, "api_key": "sk-none"}
        client = ClientSpec("helm_longctx.models.apis.OpenAIClient", arguments)
        with deployed(
            ModelDeployment(
                name="test/ray", client_spec=client, model_name="longctx/lexical"
            )
        ):
            measure(server, Path(folder))
    ray.shutdown()


if __name__ == "__main__":
    main()
