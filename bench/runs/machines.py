"""Runs on several Ray workers: how much faster they are, and what a node costs that is killed.

    python -m bench.runs.machines workers    # four workers compared with one, if each answer takes a second
    python -m bench.runs.machines node       # a node of a cluster is killed in the middle of a run

`workers` makes both runs on the same Ray instance, one after the other, and compares the results byte by byte. The
cluster of `node` is Ray's cluster for tests, with two nodes on this machine. The server counts the requests.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ray
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment
from helm.benchmark.run_spec import RunSpec
from ray.cluster_utils import Cluster
from tests.runner.making import deployed, spec_of
from tests.support.servers.llm import Server, asked_again, serve
from tests.support.shards import read_all

from helm_longctx.models.baselines import lexical
from helm_longctx.run_settings import WORKERS
from helm_longctx.runner import LongContextRunner
from helm_longctx.runner.machines import RayRunner
from helm_longctx.runner.runner import runner_arguments

LATENCY = 1.0
"""Seconds until an answer."""

BAR = 3.5
"""How much faster four workers should be than one."""

THREADS = 2
"""Threads of each worker on the cluster."""

OBJECT_STORE = 80_000_000
"""Bytes of memory for Ray's objects on each node."""


def spec_with(requests: int) -> RunSpec:
    """Return a run of so many requests to the local server."""
    return spec_of(
        f"helmet_recall:task=json_kv,length=4k,num_samples={requests},style=chat,model=longctx/lexical,"
        "model_deployment=test/ray"
    )


@contextmanager
def deploy_server() -> Iterator[Server]:
    """Serve the baseline's answers, and register the server as the deployment `test/ray`."""
    with serve(lexical.answer) as server:
        # Otherwise the second run has other numbers of cached tokens.
        server.cache.read = lambda prefixes: 0  # type: ignore[method-assign]
        arguments = {"base_url": server.openai, "api_key": "sk-none"}
        client = ClientSpec("helm_longctx.models.apis.OpenAIClient", arguments)
        deployment = ModelDeployment(
            name="test/ray", client_spec=client, model_name="longctx/lexical"
        )
        with deployed(deployment):
            yield server


def time_run(
    folder: Path, spec: RunSpec, workers: int
) -> tuple[float, dict[str, bytes]]:
    """Make a run, and return the seconds that it takes, and its files without the times of requests."""
    os.environ[WORKERS] = str(workers)
    start = time.monotonic()
    arguments = runner_arguments(folder, "s", folder, 1, has_cache=False)
    RayRunner(**arguments).run_all([spec])
    seconds = time.monotonic() - start
    return seconds, read_all(folder / "runs/s" / spec.name)


def compare_workers(requests: int) -> None:
    """Make a short run to start the workers' processes, and then the two that are compared."""
    ray.init(
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=OBJECT_STORE,
    )
    seconds = {}
    results = {}
    with deploy_server() as server, tempfile.TemporaryDirectory() as folder:
        time_run(Path(folder, "warm"), spec_with(8), 4)
        server.delay = LATENCY
        for workers in (1, 4):
            server.forget()
            seconds[workers], results[workers] = time_run(
                Path(folder, str(workers)), spec_with(requests), workers
            )
            print(
                f"{workers} workers: {seconds[workers]:.1f} s, {len(asked_again(server.calls))} requests asked again",
                flush=True,
            )
    print(
        f"ratio: {seconds[1] / seconds[4]:.2f} (bar: {BAR}); results are equal: {results[1] == results[4]}"
    )
    ray.shutdown()


def kill_node(requests: int) -> None:
    """Make a run on two nodes, of which one is killed after a third of the requests, and a run without nodes."""
    os.environ |= {WORKERS: "4", "RAY_USAGE_STATS_ENABLED": "0"}
    head = {
        "num_cpus": 1,
        "object_store_memory": OBJECT_STORE,
        "include_dashboard": False,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    ray.init(address=cluster.address, log_to_driver=False)
    with deploy_server() as server, tempfile.TemporaryDirectory() as name:
        server.delay = LATENCY
        folder = Path(name)
        node = cluster.add_node(num_cpus=1, object_store_memory=OBJECT_STORE)
        cluster.wait_for_nodes()

        def kill() -> None:
            while len(server.calls) < requests // 3:
                time.sleep(0.1)
            cluster.remove_node(node, allow_graceful=False)
            print(f"a node is killed after {len(server.calls)} requests", flush=True)

        threading.Thread(target=kill, daemon=True).start()
        spec = spec_with(requests)
        on_nodes = runner_arguments(
            folder / "ray", "s", folder, THREADS, has_cache=False
        )
        RayRunner(**on_nodes).run_all([spec])
        again = asked_again(server.calls)
        print(
            f"{len(server.calls)} requests for {requests}; {len(again)} of them were in flight when the node was killed"
        )
        without = runner_arguments(folder / "one", "s", folder, 8, has_cache=False)
        LongContextRunner(**without).run_all([spec])
        of_nodes = read_all(folder / "ray/runs/s" / spec.name)
        of_one = read_all(folder / "one/runs/s" / spec.name)
        print(f"results are equal: {of_nodes == of_one}")
    ray.shutdown()
    cluster.shutdown()  # type: ignore[no-untyped-call]


MEASUREMENTS = {"workers": (compare_workers, 240), "node": (kill_node, 60)}
"""What is measured, and the number of requests by default."""


def main() -> None:
    """Measure what is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=MEASUREMENTS)
    parser.add_argument("--requests", type=int)
    arguments = parser.parse_args()
    measure, requests = MEASUREMENTS[arguments.what]
    measure(arguments.requests or requests)


if __name__ == "__main__":
    main()
