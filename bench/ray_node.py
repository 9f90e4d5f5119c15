"""Kills a node of a Ray cluster in the middle of a run: `python -m bench.ray_node`.

The cluster is Ray's cluster for tests, with two nodes on this machine. The server counts the requests.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

import ray
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment
from ray.cluster_utils import Cluster
from tests.runner.making import deployed, spec_of
from tests.support.servers.llm import Server, asked_again, serve
from tests.support.shards import read_all

from helm_longctx.models.baselines import lexical
from helm_longctx.run_settings import WORKERS
from helm_longctx.runner import LongContextRunner
from helm_longctx.runner.machines import RayRunner
from helm_longctx.runner.runner import runner_arguments

REQUESTS = 60
THREADS = 2
ENTRY = f"helmet_recall:task=json_kv,length=4k,num_samples={REQUESTS},style=chat,model=longctx/lexical"


def measure(server: Server, cluster: Cluster, folder: Path) -> None:
    """Make a run on two nodes, of which one is killed after a third of the requests, and a run without nodes."""
    node = cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
    cluster.wait_for_nodes()

    def kill() -> None:
        while len(server.calls) < REQUESTS // 3:
            time.sleep(0.1)
        cluster.remove_node(node, allow_graceful=False)
        print(f"a node is killed after {len(server.calls)} requests", flush=True)

    threading.Thread(target=kill, daemon=True).start()
    spec = spec_of(f"{ENTRY},model_deployment=test/ray")
    RayRunner(
        **runner_arguments(folder / "ray", "s", folder, THREADS, has_cache=False)
    ).run_all([spec])
    again = asked_again(server.calls)
    print(
        f"{len(server.calls)} requests for {REQUESTS}; {len(again)} of them were in flight when the node was killed"
    )
    LongContextRunner(
        **runner_arguments(folder / "one", "s", folder, 8, has_cache=False)
    ).run_all([spec])
    results = [
        read_all(folder / name / "runs/s" / spec.name) for name in ("ray", "one")
    ]
    print(f"results are equal: {results[0] == results[1]}")


def main() -> None:
    """Start the cluster and the server."""
    os.environ |= {WORKERS: "4", "RAY_USAGE_STATS_ENABLED": "0"}
    head = {
        "num_cpus": 1,
        "object_store_memory": 80_000_000,
        "include_dashboard": False,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    ray.init(address=cluster.address, log_to_driver=False)
    with serve(lexical.answer) as server, tempfile.TemporaryDirectory() as folder:
        server.delay = 1.0
        server.cache.read = lambda prefixes: 0  # type: ignore[method-assign]
        arguments = {"base_url": server.openai, "api_key": "sk-none"}
        client = ClientSpec("helm_longctx.models.apis.OpenAIClient", arguments)
        with deployed(
            ModelDeployment(
                name="test/ray", client_spec=client, model_name="longctx/lexical"
            )
        ):
            measure(server, cluster, Path(folder))
    ray.shutdown()
    cluster.shutdown()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
