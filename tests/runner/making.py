"""Makes runs in this process, with clients that can be told to fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.annotation.annotator import Annotator, AnnotatorSpec
from helm.benchmark.executor import ExecutionSpec
from helm.benchmark.model_deployment_registry import (
    ALL_MODEL_DEPLOYMENTS,
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.benchmark.run_spec import RunSpec
from helm.benchmark.run_spec_factory import construct_run_specs
from helm.benchmark.runner import Runner
from helm.clients.client import CachingClient, Client
from helm.common.authentication import Authentication
from helm.common.cache_backend_config import SqliteCacheBackendConfig
from helm.common.object_spec import parse_object_spec
from helm.common.request import ErrorFlags, GeneratedOutput, Request, RequestResult
from helm.proxy.retry import NonRetriableException

import helm_longctx.plugin  # noqa: F401  # registers entries and models
from helm_longctx.models.baselines import lexical
from helm_longctx.runner import LongContextRunner
from helm_longctx.tasks.metric_names import MEASURED

ENTRY = "helmet_recall:length=8k,num_samples=3,model=longctx/lexical,model_deployment="
"""Twelve requests: three of each of four tasks."""


class PlainClient(Client):
    """Answers without a cache. `fails` says which prompts it refuses, and how."""

    asked: ClassVar[list[str]] = []
    fails: ClassVar[Callable[[str], bool]] = staticmethod(lambda prompt: False)
    raises = False

    def make_request(self, request: Request) -> RequestResult:
        """Return an answer, or the failure that it was told to give."""
        self.asked.append(request.prompt)
        if self.fails(request.prompt):
            if self.raises:
                raise NonRetriableException(f"refused: {request.prompt} in {request}")
            flags = ErrorFlags(is_retriable=False)
            error = f"too long: {request.prompt}"
            return RequestResult(False, [], [], False, error=error, error_flags=flags)
        return answered(lexical.answer(request.prompt), cached=False)


class RaisingClient(PlainClient):
    raises = True


class CachedClient(CachingClient):
    """Answers through HELM's cache, as clients of APIs do."""

    asked: ClassVar[list[str]] = []

    def make_request(self, request: Request) -> RequestResult:
        """Return the cached answer, or else a new one."""

        def ask() -> dict[str, Any]:
            self.asked.append(request.prompt)
            return {"text": lexical.answer(request.prompt)}

        assert self.cache
        response, cached = self.cache.get(
            {"prompt": request.prompt, "engine": request.model}, ask
        )
        return answered(response["text"], cached)


def answered(text: str, cached: bool) -> RequestResult:
    completions = [GeneratedOutput(text=text, logprob=0, tokens=[])]
    return RequestResult(
        True, [], completions, cached, request_time=1.5, request_datetime=7
    )


def register() -> None:
    """Register `test/plain`, `test/raising` and `test/cached` as deployments of the lexical baseline."""
    for client in (PlainClient, RaisingClient, CachedClient):
        register_client(client)


def register_client(client: type[Client]) -> None:
    """Register `test/plain` for a `PlainClient`, as a deployment of the lexical baseline."""
    name = f"test/{client.__name__.removesuffix('Client').lower()}"
    if name not in DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT:
        spec = ClientSpec(f"{client.__module__}.{client.__name__}")
        register_model_deployment(
            ModelDeployment(name=name, client_spec=spec, model_name="longctx/lexical")
        )


@contextmanager
def deployed(deployment: ModelDeployment) -> Iterator[str]:
    """Register a deployment in HELM until the block ends, in place of any other of this name, and return its name."""
    before = dict(DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT), list(ALL_MODEL_DEPLOYMENTS)
    register_model_deployment(deployment)
    yield deployment.name
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.clear()
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.update(before[0])
    ALL_MODEL_DEPLOYMENTS[:] = before[1]  # else it could be the default of its model


class PromptSize(Annotator):
    """An annotator that reads the prompt."""

    name = "prompt_size"

    def annotate(self, request_state: RequestState) -> dict[str, int]:
        """Return the length of the prompt."""
        return {"characters": len(request_state.request.prompt)}


class Broken(Annotator):
    """An annotator that fails."""

    name = "broken"

    def annotate(self, request_state: RequestState) -> Any:
        """Raise an error for any request."""
        raise OSError("the disk is gone")


def make_run(
    folder: Path,
    entry: str,
    runner: type[Runner] = LongContextRunner,
    cache: bool = True,
    at_most: int = 1000,
    annotators: list[AnnotatorSpec] | None = None,
    **flags: bool,
) -> Path:
    """Make one run, and return its folder."""
    spec = spec_of(entry, at_most, annotators)
    make_runner(folder, runner, cache, **flags).run_all([spec])
    return folder / "benchmark_output/runs/s" / spec.name


def spec_of(
    entry: str, at_most: int = 1000, annotators: list[AnnotatorSpec] | None = None
) -> RunSpec:
    (spec,) = construct_run_specs(parse_object_spec(entry))
    adapter_spec = replace(
        spec.adapter_spec, max_eval_instances=at_most, num_train_trials=1
    )
    return replace(
        spec, adapter_spec=adapter_spec, annotators=annotators or spec.annotators
    )


def make_runner(
    folder: Path,
    runner: type[Runner] = LongContextRunner,
    cache: bool = True,
    **flags: bool,
) -> Runner:
    """Return a runner whose output folder and cache are in a folder."""
    (folder / "cache").mkdir(parents=True, exist_ok=True)
    execution = ExecutionSpec(
        url=None,
        auth=Authentication(""),
        local_path=str(folder),
        parallelism=2,
        dry_run=flags.pop("dry_run", False),
        sqlite_cache_backend_config=SqliteCacheBackendConfig(str(folder / "cache"))
        if cache
        else None,
    )
    names = (
        "skip_instances",
        "cache_instances",
        "cache_instances_only",
        "skip_completed_runs",
        "exit_on_error",
    )
    chosen = {name: flags.get(name, False) for name in names}
    return runner(
        execution, output_path=str(folder / "benchmark_output"), suite="s", **chosen
    )


def read(run: Path, name: str) -> Any:
    return json.loads((run / f"{name}.json").read_bytes())


def means(run: Path) -> dict[tuple[str, ...], float]:
    """Return every statistic of a run, except those that say how it was made."""
    apart = (*MEASURED, "request_cached")
    rows = [row for row in read(run, "stats") if row["name"]["name"] not in apart]
    return {tuple(map(str, row["name"].values())): row.get("mean") for row in rows}


def change(path: Path, edit: Callable[[Any], object]) -> None:
    """Edit a JSON file in HELM's layout."""
    content = json.loads(path.read_bytes())
    edit(content)
    path.write_text(json.dumps(content, indent=2))
