"""`evaluate`: make runs of tasks with models that are names, addresses or Python objects, and return their results."""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from helm_longctx.errors import InputError, shorten

if TYPE_CHECKING:
    from helm.benchmark.run_spec import RunSpec

    from helm_longctx.cli.config.load import Options
    from helm_longctx.evaluation.result import EvaluationResult

ORGANIZATION = "python"
"""First part of the names of models that are objects."""

IDENTITY = "python_model.json"
"""File in a run's folder with what identifies a model that is an object."""

_PACKAGES = ("helm-longctx", "torch", "transformers", "peft", "kvpress", "vllm", "sglang")

_NOT_IN_NAMES = re.compile(r"[^\w.-]+", re.ASCII)


def evaluate(
    model: Any,
    tasks: str | Sequence[str],
    lengths: str | int | Sequence[str | int] | None = None,
    *,
    name: str | None = None,
    tokenizer: Any = None,
    context: str | int | None = None,
    num_samples: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    suite: str = "evaluate",
    batch_size: int | None = None,
    parallelism: int | None = None,
    judge: str | Sequence[str] | None = None,
    max_cost: float | None = None,
    prices: str | PathLike[str] | None = None,
    resume: bool = False,
    quiet: bool = False,
    verbose: bool = False,
    output_path: str | PathLike[str] = "benchmark_output",
    local_path: str | PathLike[str] = "prod_env",
) -> EvaluationResult:
    """Make the runs of tasks with a model, and return the results. Everything is checked before anything is sent.

    The runs are those of `helm-longctx run`: in the same files, with the same journal, limits and judges. Answers of a
    function or a model object never come from the request cache, because its code may have changed.

    Args:
        model: the name of a deployment; the address of a server; a function, plain or async, that takes a prompt
            (`helm_longctx.Prompt`) and returns a text, or with `batch_size` takes a list of prompts and returns a list
            of texts; a transformers model, with `tokenizer`, or a pair of both; a text-generation pipeline; an engine
            of vLLM or SGLang; or a list of these, which are compared in one suite.
        tasks: run entries such as `helmet_recall` or `ruler:task=vt`, or names of benchmarks.
        lengths: lengths of the tasks, such as `8k`; None for the tasks' own.
        name: the model's name in tables. By default, that of the function, the model or the server's model.
        tokenizer: tokenizer of transformers, or its hub name or folder. Without it, prompts are not cut.
        context: the model's window in tokens, to which prompts are cut. By default, that of a transformers model.
        num_samples: number of questions of each task; None for the official sample.
        arguments: further arguments of all tasks, such as `{"style": "chat"}`.
        suite: name of the suite. HELM's server, the report and `helm-longctx compare` show it.
        batch_size: most prompts of a list that the function takes; None for a function of a single prompt.
        parallelism: prompts that are asked at once. By default `batch_size`, 4 for servers and for async functions, and
            1 for other objects.
        judge: judges of answers, as in run entries.
        max_cost: most dollars for all requests.
        prices: YAML file with prices of deployments.
        resume: whether to go on with the journal of a call that was interrupted, and to keep complete runs. Otherwise
            an object is asked again.
        quiet, verbose: whether to log only errors, or everything.
        output_path: HELM's output folder.
        local_path: folder with HELM's YAML files and credentials.

    Raises:
        InputError: an argument is wrong, a task or a model is unknown, a function returned something else than a text,
            or a run could not be made. Answers that arrived are kept.
    """
    models = list(model) if isinstance(model, list) else [model]
    if not models:
        raise InputError("evaluate: model=[] is empty; give a model")
    if name is not None and len(models) > 1:
        raise InputError(f"evaluate: name={shorten(name)} is for a single model, and {len(models)} are given")
    # HELM is imported here, so that `import helm_longctx` stays fast.
    from helm_longctx.cli.logs import set_log_levels
    from helm_longctx.evaluation.result import EvaluationResult

    with set_log_levels(quiet, verbose) as prints, redirect_stdout(prints), tempfile.TemporaryDirectory() as folder:
        given = [_describe(each, name, tokenizer, batch_size) for each in models]
        for each in given:
            if each.answer is not None:
                each.register(Path(folder), context)
        names = [each.name for each in given]
        if twice := [each for each in names if names.count(each) > 1]:
            raise InputError(f"evaluate: two models have the name {twice[0]!r}; give them in calls with name=")
        values: dict[str, Any] = {
            "models": [each.entry for each in given],
            "tasks": [tasks] if isinstance(tasks, str) else list(tasks),
            "lengths": [lengths] if isinstance(lengths, str | int) else lengths and list(lengths),
            "suite": suite,
            "arguments": {**(arguments or {}), **({} if num_samples is None else {"num_samples": num_samples})},
            "parallelism": parallelism or batch_size or max(each.parallelism for each in given),
            "output_path": str(output_path),
            "local_path": str(local_path),
            "judge": {"judges": [judge] if isinstance(judge, str) else judge and list(judge)},
            "limits": {"max_cost": max_cost, "prices": None if prices is None else str(prices)},
        }
        specs, path = _make_runs(_options(values), {each.name: each for each in given}, resume)
    return EvaluationResult(path, tuple(spec.name for spec in specs))


class _Given:
    """A model that the user gives.

    Args:
        name: its name as a deployment.
        entry: its value in `models` of a run configuration.
        answer: the function or the `TransformersModel`; None for a deployment or a server.
        client: class path of its client.
        parallelism: the default number of prompts that are asked at once.
        identity: what identifies it.
    """

    def __init__(
        self,
        name: str,
        entry: Any = None,
        answer: Any = None,
        client: str = "",
        parallelism: int = 4,
        identity: Mapping[str, Any] | None = None,
        tokenizer: Any = None,
        window: int | None = None,
    ):
        self.name, self.entry, self.answer = name, entry or name, answer
        self.parallelism, self.identity = parallelism, identity or {}
        self._client, self._tokenizer, self._window = client, tokenizer, window

    def register(self, folder: Path, context: str | int | None) -> None:
        """Register the object with HELM as a deployment of this process.

        Args:
            folder: a folder for the files of its tokenizer, which is needed until the runs are made.
            context: the window that the user gives.
        """
        from helm.benchmark.config_registry import register_configs_from_directory

        from helm_longctx.models.endpoints.files import add_entries
        from helm_longctx.models.endpoints.registration import describe_model
        from helm_longctx.models.endpoints.tokenizer import load_tokenizer
        from helm_longctx.models.objects import OBJECTS
        from helm_longctx.tasks.lengths import parse_length

        OBJECTS[self.name] = self.answer
        source = self._tokenizer
        if source is not None and not isinstance(source, str | PathLike):
            source.save_pretrained(folder / _NOT_IN_NAMES.sub("_", self.name))
            source = folder / _NOT_IN_NAMES.sub("_", self.name)
        found = load_tokenizer(str(source)) if source is not None else None
        window = self._window if context is None else parse_length(str(context), "evaluate")
        can_chat = getattr(self._tokenizer, "chat_template", True) is not None
        deployment = {
            "name": self.name,
            "model_name": self.name,
            "client_spec": {"class_name": self._client, "args": {"deployment": self.name}},
            **({"tokenizer_name": found.name if found.registered else self.name} if found else {}),
            **({"max_sequence_length": window} if window and found else {}),
        }
        files = {
            "model_deployments.yaml": deployment,
            "model_metadata.yaml": describe_model(self.name, "A Python object", can_chat),
            **({"tokenizer_configs.yaml": config} if found and (config := found.config(self.name)) else {}),
        }
        with tempfile.TemporaryDirectory() as configs:
            add_entries(Path(configs), files)
            register_configs_from_directory(configs)


def _describe(model: Any, name: str | None, tokenizer: Any, batch_size: int | None) -> _Given:
    """Return what kind of model the user gives.

    Raises:
        InputError: it is none that can be asked.
    """
    if isinstance(model, str):
        if not model.startswith(("http://", "https://")):
            return _Given(name or model)
        entry: dict[str, Any] = {"url": model, "name": name if name and "/" in name else f"endpoint/{name or 'model'}"}
        if isinstance(tokenizer, str):
            entry["tokenizer"] = tokenizer
        return _Given(entry["name"], entry)
    if isinstance(model, tuple) and len(model) == 2:
        model, tokenizer = model
    elif hasattr(model, "model") and hasattr(model, "tokenizer") and hasattr(model, "task"):  # a pipeline
        model, tokenizer = model.model, model.tokenizer
    if hasattr(model, "generate") and hasattr(model, "config"):
        return _describe_transformers(model, name, tokenizer)
    if type(model).__module__.partition(".")[0] in ("vllm", "sglang"):
        return _describe_engine(model, name, tokenizer)
    if callable(model):
        return _describe_function(model, name, tokenizer, batch_size)
    raise InputError(
        f"evaluate: model={shorten(model)} is a {type(model).__name__}; give the name of a deployment, an address, a"
        " function, a transformers model with its tokenizer, a pipeline, an engine, or a list of these"
    )


def _describe_transformers(model: Any, name: str | None, tokenizer: Any) -> _Given:
    if tokenizer is None:
        raise InputError(
            "evaluate: tokenizer is missing; give the tokenizer of the model, e.g. model=(model, tokenizer)"
        )
    if isinstance(tokenizer, str):
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(tokenizer)
    from helm_longctx.models.local.objects import TransformersModel

    loaded = TransformersModel(model, tokenizer)
    identity: dict[str, Any] = {"path": loaded.path, "commit": loaded.commit, "dtype": loaded.dtype}
    identity["attn_implementation"] = loaded.attn_implementation
    identity["cache_implementation"] = getattr(model.generation_config, "cache_implementation", None)
    if adapters := getattr(model, "peft_config", None):
        identity["adapters"] = {each: str(config) for each, config in adapters.items()}
    return _Given(
        _object_name(name or Path(loaded.path).name),
        answer=loaded,
        client="helm_longctx.models.local.objects.TransformersClient",
        parallelism=1,
        identity=_identify(model, identity),
        tokenizer=tokenizer,
        window=loaded.window,
    )


def _describe_engine(engine: Any, name: str | None, tokenizer: Any) -> _Given:
    from helm_longctx.models.engines import answer_with

    answer, path, found = answer_with(engine)
    given = _describe_function(answer, name or Path(path).name, tokenizer or found, batch_size=16)
    given.identity = _identify(engine, {"path": path})
    given.parallelism = 16
    return given


def _describe_function(function: Any, name: str | None, tokenizer: Any, batch_size: int | None) -> _Given:
    from helm_longctx.models.objects import make_answer

    own = getattr(function, "__name__", None) or type(function).__name__
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    return _Given(
        _object_name(name or own.strip("<>")),
        answer=make_answer(function, batch_size),
        client="helm_longctx.models.objects.FunctionClient",
        parallelism=4 if is_async else 1,
        identity=_identify(function, {"qualname": getattr(function, "__qualname__", None)}),
        tokenizer=tokenizer,
    )


def _object_name(name: str) -> str:
    """Return a name that run entries and folders can have."""
    return name if "/" in name else f"{ORGANIZATION}/{_NOT_IN_NAMES.sub('-', name).strip('-') or 'model'}"


def _identify(model: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what identifies an object: its class, facts about it, and the versions of packages."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"class": f"{type(model).__module__}.{type(model).__qualname__}", **facts, "packages": versions}


def _options(values: Mapping[str, Any]) -> Options:
    """Return the arguments as options of `helm-longctx run`, without those that are not given."""
    from helm_longctx.cli.config.load import Options

    def without_none(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: kept for key, each in value.items() if (kept := without_none(each)) not in (None, {})}
        return value

    given = without_none(values)
    names: dict[tuple[str | int, ...], str] = {(key,): f"evaluate: {key}" for key in given}
    names |= {("limits", key): f"evaluate: {key}" for key in given.get("limits", {})}
    return Options(given, names)


def _make_runs(options: Options, models: Mapping[str, _Given], resume: bool) -> tuple[Sequence[RunSpec], Path]:
    """Make the runs, and return their specs and the suite's folder."""
    from helm_longctx.cli.config.load import load_config
    from helm_longctx.cli.config.plan import make_plan, make_runner, use_settings
    from helm_longctx.cli.shared import fill_registries
    from helm_longctx.results.suite import suite_path

    config = load_config(None, options)
    with use_settings(config):
        fill_registries(config.local_path)
        plan = make_plan(config)
        folder = suite_path(config.output_path, config.suite)
        for spec in plan.specs:
            given = models[spec.adapter_spec.model_deployment]
            if given.answer is not None:
                _prepare_folder(folder / spec.name, given, resume)
        runner = make_runner(config)
        with _explain_failures():
            runner.run_all(list(plan.specs))
    return plan.specs, folder


def _prepare_folder(run: Path, model: _Given, resume: bool) -> None:
    """Write what identifies the model, and unless the call goes on, remove the answers of an earlier call."""
    from helm.common.hierarchical_logger import hlog

    from helm_longctx.runs.files import STATS
    from helm_longctx.runs.journal import answer_files

    run.mkdir(parents=True, exist_ok=True)
    if resume:
        kept = sum(path.read_bytes().count(b"\n") for path in answer_files(run))
        what = "is complete" if (run / STATS).is_file() and not kept else f"goes on with {kept} answers"
        hlog(f"{run.name} {what}")
    else:
        for path in (*answer_files(run), run / STATS):
            path.unlink(missing_ok=True)
    (run / IDENTITY).write_bytes(orjson.dumps(model.identity, option=orjson.OPT_INDENT_2, default=str))


@contextmanager
def _explain_failures() -> Iterator[None]:
    from helm.benchmark.runner import RunnerError

    try:
        yield
    except RunnerError as error:
        raise InputError(str(error)) from error
