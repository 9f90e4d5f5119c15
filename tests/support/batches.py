"""Runs whose requests are sent in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)

from helm_longctx.models.apis.availability import PROMPT
from helm_longctx.runner.batches import submission
from helm_longctx.runner.batches.collection import Batches
from helm_longctx.runner.batches.submission import (
    AsBatches,
    BatchPlan,
    make_batch_runner,
)
from helm_longctx.runs.ledger import Ledger
from tests.runner.making import make_run, read, spec_of
from tests.support.servers.batches import BatchServer

ENTRY = "helmet_recall:length=4k,num_samples=3,style=chat,model=longctx/lexical,model_deployment="
"""Twelve requests."""

PROTOCOLS = ["openai", "anthropic"]


def register(protocol: str, server: Any, **arguments: Any) -> str:
    """Register a deployment with our client, and return its name."""
    name = f"corp/{protocol}"
    client = {"openai": "OpenAIClient", "anthropic": "AnthropicClient"}[protocol]
    address = server.openai if protocol == "openai" else server.address
    spec = ClientSpec(
        f"helm_longctx.models.apis.{client}", {"base_url": address, **arguments}
    )
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.pop(name, None)
    register_model_deployment(
        ModelDeployment(name=name, client_spec=spec, model_name="longctx/lexical")
    )
    return name


class Folder:
    """Runs of one entry in a folder.

    Attributes:
        run: the run's folder.
    """

    def __init__(self, folder: Path, entry: str):
        self._folder = folder
        self._entry = entry
        self.spec = spec_of(entry)
        self.run = folder / "benchmark_output/runs/s" / self.spec.name

    def submit(self, **plan: Any) -> None:
        """Submit the run as batches, and return before they are answered."""
        runner = make_batch_runner(
            AsBatches(BatchPlan(**plan)),
            self._folder / "benchmark_output",
            "s",
            self._folder,
        )
        runner.run_all([self.spec])

    @property
    def batches(self) -> Batches:
        """Return the batches of the run."""
        return Batches(self._folder, [self.run])

    def make(self) -> Path:
        """Make the run with `helm-run`, without the request cache."""
        return make_run(self._folder, self._entry, cache=False)

    @property
    def failures(self) -> dict[str, int]:
        """Return the failures of all batches."""
        with Ledger(self.run) as ledger:
            return {
                kind: n
                for part in ledger.parts
                for kind, n in (part.failures or {}).items()
            }


def direct(folder: Folder, server: BatchServer) -> list[str]:
    """Return the prompts that were sent directly, without those of the tiny requests."""
    return direct_prompts(server)


def direct_prompts(server: BatchServer) -> list[str]:
    """Return the prompts that were sent directly, without those of the tiny requests."""
    prompts = []
    for call in server.calls:
        if call.prompt not in (submission.PROBE, PROMPT):
            prompts.append(call.prompt)
    return prompts


def stated(run: Path) -> list[Any]:
    """Return the states of a run without the times of the requests."""
    states = read(run, "scenario_state")["request_states"]
    for state in states:
        for name in ("request_time", "request_datetime", "cached"):
            state["result"].pop(name, None)
    return states
