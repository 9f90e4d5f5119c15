"""Tests of runs as Ray tasks, with a real Ray on this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.model_deployment_registry import ClientSpec, ModelDeployment
from helm.clients.client import Client
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.helm_log import helm_log
from helm_longctx.models.baselines import lexical
from helm_longctx.run_settings import MAX_COST, WAIT, WORKERS, RunSettings
from helm_longctx.runner import LongContextRunner
from helm_longctx.runner.machines import RayRunner, ray_runner
from helm_longctx.runner.machines.ray_runner import Cluster, WorkerData
from helm_longctx.runner.runner import runner_arguments
from tests.runner.making import answered, deployed, spec_of
from tests.support.shards import read_all, run_path

ray: Any = pytest.importorskip("ray")
ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=12,model=longctx/lexical,model_deployment=test/killed"
ASKED = Path("asked")
KILLED = Path("killed")


class KilledClient(Client):
    """Answers as the lexical baseline does and records each request.

    The first process that gets the fifth is killed.
    """

    def make_request(self, request: Request) -> RequestResult:
        """Return the answer to a request."""
        question = request.prompt[-60:].replace("\n", " ")
        with ASKED.open("a") as file:
            file.write(f"{question}\n")
        if len(ASKED.read_text().splitlines()) == 5 and not KILLED.exists():
            KILLED.write_text(question)
            os.kill(os.getpid(), signal.SIGKILL)
        return answered(lexical.answer(request.prompt), cached=False)


@pytest.fixture
def small_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start Ray on this machine, with room for two tasks."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # The workers import clients of the tests.
    variables = {"PYTHONPATH": os.pathsep.join(sys.path)}
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=80_000_000,
        runtime_env={"env_vars": variables},
    )
    yield
    ray.shutdown()


def arguments(folder: str) -> dict[str, Any]:
    return runner_arguments(Path(folder, "out"), "s", Path(folder), 1, has_cache=False)


class UnusableClient(Client):
    """A client that cannot be made."""

    def __init__(self) -> None:
        raise InputError("it has no key")

    def make_request(self, request: Request) -> RequestResult:
        """Fail: a client that cannot be made must not be asked."""
        raise AssertionError


@pytest.mark.usefixtures("small_ray")
def test_a_killed_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a worker is killed no answered request is sent again, and the results equal one machine's byte by byte."""
    monkeypatch.setenv(WORKERS, "2")
    lines: list[str] = []
    monkeypatch.setattr(helm_log, "info", lines.append)
    monkeypatch.setattr(ray_runner, "_LOG_EVERY", 0)
    client = ClientSpec(f"{__name__}.KilledClient")
    with deployed(
        ModelDeployment(
            name="test/killed", client_spec=client, model_name="longctx/lexical"
        )
    ):
        spec = spec_of(ENTRY)
        RayRunner(**arguments("ray")).run_all([spec])
        asked = ASKED.read_text().splitlines()
        LongContextRunner(**arguments("one")).run_all([spec])
    unusable = ClientSpec(f"{__name__}.UnusableClient")
    with deployed(
        ModelDeployment(
            name="test/unusable", client_spec=unusable, model_name="longctx/lexical"
        )
    ):
        wrong = spec_of(ENTRY.replace("test/killed", "test/unusable"))
        with pytest.raises(
            InputError, match=r"1 of 1 runs were not made: .*it has no key"
        ):
            RayRunner(**arguments("wrong")).run_all([wrong])
    counted = [line for line in lines if "shards" in line]
    assert counted
    assert all(re.fullmatch(r"\d of 2 shards are done", line) for line in counted)
    assert len(asked) == 13
    assert len(set(asked)) == 12
    assert asked.count(KILLED.read_text()) == 2
    assert read_all(run_path(Path("ray"), spec)) == read_all(
        run_path(Path("one"), spec)
    )


STARTING = """
import os, signal, threading
from helm_longctx.runner.machines.ray_runner import _connect_ray
import ray
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
with _connect_ray():
    threading.Event().wait(60)
"""


def test_the_end_of_a_starting_run(tmp_path: Path) -> None:
    """A process that is ended while it starts Ray prints one line about that, and no trace of Ray's."""
    done = subprocess.run(
        [sys.executable, "-c", STARTING],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 143
    assert done.stderr.splitlines()[-1] == (
        "helm-longctx: stopped by SIGTERM: the answers are kept, and the same command continues"
    )
    assert "Traceback" not in done.stderr


def test_a_limit_on_the_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit in dollars is refused, because each worker would spend it."""
    monkeypatch.setenv(MAX_COST, "5")
    with pytest.raises(
        InputError, match="limits one process and cannot limit Ray's workers"
    ):
        RayRunner(**arguments("ray"))


def test_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong value in the environment is refused before a worker is started."""
    monkeypatch.setenv(WAIT, "no number")
    with pytest.raises(InputError, match=f"^{WAIT}='no number' is invalid"):
        RayRunner(**arguments("wrong"))


def test_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model in its process gets a GPU if there is one, and the fraction of a CPU allows many tasks for an API."""
    monkeypatch.setattr(ray, "put", lambda job: job)
    for resources, gpus in (({"CPU": 2.0, "GPU": 4.0}, 1), ({"CPU": 2.0}, 0)):
        monkeypatch.setattr(
            ray, "cluster_resources", lambda resources=resources: resources
        )
        cluster = Cluster(WorkerData({}, None, settings=RunSettings(workers=8)))
        client = ClientSpec("helm.clients.huggingface_client.HuggingFaceClient")
        with deployed(
            ModelDeployment(
                name="test/local", client_spec=client, model_name="longctx/lexical"
            )
        ) as local:
            assert cluster._needs(local) == {"num_cpus": 1, "num_gpus": gpus}
        client = ClientSpec("helm_longctx.models.apis.OpenAIClient")
        with deployed(
            ModelDeployment(
                name="test/api", client_spec=client, model_name="longctx/lexical"
            )
        ) as api:
            assert cluster._needs(api) == {"num_cpus": 0.25, "num_gpus": 0}
        assert [cluster.shards_per_run(runs) for runs in (0, 1, 8, 16, 100)] == [
            8,
            8,
            4,
            2,
            1,
        ]
