"""The models that `evaluate` takes (names, addresses, functions, models, pipelines, engines), and how it asks them."""

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from glob import has_magic
from os import PathLike
from pathlib import Path
from typing import Any

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.evaluation.identities import (
    RESUMED,
    describe_function,
    describe_loaded,
    describe_tokenizer,
    find_changes,
)
from helm_longctx.helm_api import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT as REGISTERED
from helm_longctx.helm_api import (
    RunSpec,
    get_all_models,
    register_configs_from_directory,
)
from helm_longctx.helm_log import helm_log
from helm_longctx.models.conversations import Conversation, is_conversation
from helm_longctx.models.endpoints.files import add_entries
from helm_longctx.models.endpoints.registration import (
    describe_deployment,
    load_tokenizer,
)
from helm_longctx.models.engines import Engine, EngineFunction
from helm_longctx.models.local.folders import digest_folder
from helm_longctx.models.objects import OBJECTS, Function
from helm_longctx.models.safe_names import make_safe_name
from helm_longctx.runner.prepared import PreparedRun
from helm_longctx.runner.runner import LongContextRunner, Strategy
from helm_longctx.runner.sending import find_versions
from helm_longctx.runs.files import STATS, read_model, write_model
from helm_longctx.runs.journal import answer_files

_ORGANIZATION = "python"
"""First part of the names of models that are objects."""

_FUNCTION = "helm_longctx.models.objects.FunctionClient"
_TRANSFORMERS = "helm_longctx.models.local.objects.TransformersClient"
_ENGINE = "helm_longctx.models.engines.GivenEngineClient"
_CLIENTS = (_FUNCTION, _TRANSFORMERS, _ENGINE)

_ENGINES = ("vllm", "sglang")
_BATCH = 16
"""Prompts that an engine gets at once. It schedules them itself."""

_CONCURRENT = 4
"""Requests that servers and async functions get at once, as in `helm-longctx run`."""

_OWN = "leave it out, because the deployment has its own"
_ONE_PROMPT = "leave it out, because a server gets one prompt in a request; parallelism= says how many it gets at once"

_NOT_IN_NAMES = re.compile(r"[^\w.-]+", re.ASCII)


@dataclass(frozen=True)
class GivenModel:
    """A model that the user gives.

    Args:
        name: its name as a deployment.
        entry: its value in `models` of a run configuration.
        parallelism: the default number of prompts that are asked at once.
        answer: the `Function` or the `TransformersModel`, or None for a deployment or a server.
        client: class path of the object's client.
        identity: what identifies the object.
        tokenizer: tokenizer of transformers, or its hub name or folder, or None if there is none.
        window: the object's window in tokens, or None if it is not known.
        ignored: arguments of `evaluate` that mean nothing for it, and why.
    """

    name: str
    entry: Any
    parallelism: int = _CONCURRENT
    answer: Any = None
    client: str = ""
    identity: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Any = None
    window: int | None = None
    ignored: Mapping[str, str] = field(default_factory=dict)


def describe_given(
    model: Any,
    name: str | None,
    tokenizer: Any,
    window: int | None,
    batch_size: int | None,
) -> GivenModel:
    """Return what kind of model the user gives.

    Args:
        model, name, tokenizer, batch_size: see `evaluate`.
        window: the window that the user gives.

    Raises:
        InputError: it is none that can be asked.
    """
    if isinstance(model, dict | PathLike) or (
        isinstance(model, str) and (Path(model).is_dir() or has_magic(model))
    ):
        return _describe_path(model, name, window, batch_size)
    if isinstance(model, str):
        return _describe_server(model, name, tokenizer, window)
    if isinstance(model, tuple) and len(model) == 2:
        model, tokenizer = model
    elif _is_pipeline(model):
        if model.task != "text-generation":
            raise InputError(
                f"evaluate: model= is a pipeline for {model.task!r}; give one for"
                " text-generation, or a function that calls it"
            )
        model, tokenizer = model.model, model.tokenizer
    if hasattr(model, "generate") and hasattr(model, "config"):
        given = _describe_transformers(model, name, tokenizer, batch_size or 1)
    elif _is_engine(model):
        given = _describe_engine(model, name, tokenizer, batch_size)
    elif is_conversation(model):
        given = _describe_conversation(model, name, tokenizer, batch_size)
    elif callable(model):
        given = _describe_callable(model, name, tokenizer, batch_size)
    else:
        allowed = (
            "the name of a deployment, an address, a folder, a mapping with path, a"
            " function, an object with reset, feed and ask, a transformers model with"
            " its tokenizer, a pipeline, an engine, or a list of these"
        )
        raise bad_argument("evaluate", "model", model, allowed)
    if window is None:
        return given
    return replace(given, window=window)


def _is_pipeline(model: Any) -> bool:
    """Whether an object is a pipeline of transformers."""
    parts = ("model", "tokenizer", "task", "preprocess")
    return all(hasattr(model, part) for part in parts)


def _is_engine(model: Any) -> bool:
    packages = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    return not packages.isdisjoint(_ENGINES)


def _describe_engine(
    model: Any,
    name: str | None,
    tokenizer: Any,
    batch_size: int | None,
) -> GivenModel:
    engine = Engine.find(model)
    batch = batch_size or _BATCH
    name = _object_name(name or Path(engine.path).name)
    facts: dict[str, Any] = {"path": engine.path}
    if Path(engine.path).is_dir():
        facts["files"] = digest_folder(Path(engine.path))
    return GivenModel(
        name,
        name,
        batch,
        EngineFunction(engine, batch),
        _ENGINE,
        _identify(model, facts),
        tokenizer or engine.tokenizer,
        engine.window,
    )


def _describe_conversation(
    model: Any,
    name: str | None,
    tokenizer: Any,
    batch_size: int | None,
) -> GivenModel:
    if batch_size:
        raise bad_argument(
            "evaluate",
            "batch_size",
            batch_size,
            "none: a conversation has one state",
        )
    name = _object_name(name or type(model).__name__)
    facts: dict[str, Any] = {"qualname": type(model).__qualname__}
    for method in ("reset", "feed", "ask"):
        for key, value in describe_function(getattr(model, method)).items():
            facts[f"{method} {key}"] = value
    return GivenModel(
        name,
        name,
        1,
        Function(Conversation(model)),
        _FUNCTION,
        _identify(model, facts | describe_tokenizer(tokenizer)),
        tokenizer,
    )


def _describe_callable(
    model: Any,
    name: str | None,
    tokenizer: Any,
    batch_size: int | None,
) -> GivenModel:
    is_async = inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(
        type(model).__call__
    )
    name = _object_name(
        name or getattr(model, "__name__", None) or type(model).__name__
    )
    facts = {
        "qualname": getattr(model, "__qualname__", None),
        **describe_function(model),
    }
    return GivenModel(
        name,
        name,
        batch_size or (_CONCURRENT if is_async else 1),
        Function(model, batch_size),
        _FUNCTION,
        _identify(model, facts | describe_tokenizer(tokenizer)),
        tokenizer,
    )


def _describe_server(
    model: str,
    name: str | None,
    tokenizer: Any,
    window: int | None,
) -> GivenModel:
    if not model.startswith(("http://", "https://")):
        if name is not None:
            raise bad_argument(
                "evaluate",
                "name",
                name,
                f"no name for the deployment {model!r}, which has its own",
            )
        return GivenModel(
            model,
            model,
            ignored={"tokenizer": _OWN, "context": _OWN, "batch_size": _ONE_PROMPT},
        )
    if name and "/" in name:
        name = name
    else:
        name = f"endpoint/{name or 'model'}"
    entry = {"url": model, "name": name, "tokenizer": tokenizer, "context": window}
    entry = {key: value for key, value in entry.items() if value is not None}
    return GivenModel(name, entry, ignored={"batch_size": _ONE_PROMPT})


def _describe_path(
    model: Any,
    name: str | None,
    window: int | None,
    batch_size: int | None,
) -> GivenModel:
    """Return a model of a run configuration: a mapping with its path, or the path alone."""
    given = {"name": name, "context": window, "batch_size": batch_size}
    entry = {**(model if isinstance(model, dict) else {"path": str(model)})}
    entry |= {key: value for key, value in given.items() if value is not None}
    ignored = {
        "tokenizer": "leave it out, because a folder or a name on the hub has its own"
    }
    return GivenModel(
        str(entry.get("name") or entry.get("path")), entry, ignored=ignored
    )


def _describe_transformers(
    model: Any,
    name: str | None,
    tokenizer: Any,
    batch: int,
) -> GivenModel:
    from helm_longctx.models.local.objects import (
        TransformersModel,
    )  # this imports torch
    from helm_longctx.models.local.weights import check_weights, find_not_loaded

    if missing := find_not_loaded(model):
        raise InputError(
            f"evaluate: {len(missing)} weights of the model have no values (device"
            f" meta), such as {missing[0]}; load them"
        )
    check_weights(model, "evaluate: model")
    if tokenizer is None:
        raise InputError(
            "evaluate: tokenizer is missing; give the model's, e.g. model=(model, tokenizer)"
        )
    if isinstance(tokenizer, str | PathLike):
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(tokenizer, trust_remote_code=False)
    if cache := getattr(model.generation_config, "cache_implementation", None):
        allowed = "a function that calls model.generate, because prompts are read in chunks into a cache of another kind"
        raise bad_argument("evaluate", "cache_implementation", cache, allowed)
    loaded = TransformersModel(model, tokenizer, batch)
    facts = {}
    for key in ("path", "commit", "dtype", "attn_implementation"):
        facts[key] = getattr(loaded, key)
    adapters = {}
    for adapter, config in getattr(model, "peft_config", {}).items():
        adapters[adapter] = str(config)
    facts["adapters"] = adapters
    facts |= describe_loaded(model, tokenizer)
    name = _object_name(name or Path(loaded.path).name)
    return GivenModel(
        name,
        name,
        batch,
        loaded,
        _TRANSFORMERS,
        _identify(model, facts),
        tokenizer,
        loaded.window,
    )


def _object_name(name: str) -> str:
    """Return a name that run entries and folders can have."""
    if "/" in name:
        return name
    return f"{_ORGANIZATION}/{make_safe_name(name)}"


def _identify(model: Any, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what identifies an object: its class, facts about it, and the versions of packages."""
    return {
        "class": f"{type(model).__module__}.{type(model).__qualname__}",
        **facts,
        "packages": find_versions(),
    }


@contextmanager
def register(given: GivenModel, folder: Path) -> Iterator[None]:
    """Register an object with HELM as a deployment of this process. Its client can be made while the block runs.

    Args:
        folder: a folder for the files of its tokenizer. It is needed as long.

    Raises:
        InputError: HELM has a deployment of this name, or the tokenizer cannot be loaded.
    """
    other = REGISTERED.get(given.name)
    if (
        other.client_spec.class_name not in _CLIENTS
        if other
        else given.name in get_all_models()
    ):
        raise bad_argument(
            "evaluate", "name", given.name, "a name that no model of HELM has"
        )
    source = given.tokenizer
    can_chat = getattr(given.tokenizer, "chat_template", True) is not None
    if source is not None and not isinstance(source, str | PathLike):
        source = folder / _NOT_IN_NAMES.sub("_", given.name)
        given.tokenizer.save_pretrained(source)
    tokenizer = load_tokenizer(str(source)) if source is not None else None
    # Without a tokenizer, no prompt is cut to the window.
    window = given.window if tokenizer else None
    files = describe_deployment(
        given.name,
        {"class_name": given.client, "args": {"deployment": given.name}},
        tokenizer,
        window,
        about="A Python object",
        can_chat=can_chat,
    )
    configs = folder / "configs" / _NOT_IN_NAMES.sub("_", given.name)
    configs.mkdir(parents=True)
    add_entries(configs, files)
    register_configs_from_directory(str(configs))
    OBJECTS[given.name] = given.answer
    try:
        yield
    finally:
        # The process need not keep the weights of a model that the user drops.
        if given_object := OBJECTS.pop(given.name, None):
            given_object.close()


class AskObjects(Strategy):
    """Asks models that are objects of this process again. Other models are asked as in any run.

    Args:
        identities: what identifies each object, by the name of its deployment.
        resumes: whether complete runs are kept and unfinished ones go on; `anyway` also if the model has changed.
    """

    def __init__(
        self,
        identities: Mapping[str, Mapping[str, Any]],
        resumes: bool | str,
    ):
        self._identities = identities
        self._resumes = resumes

    def skips(self, runner: LongContextRunner, spec: RunSpec) -> bool:
        """Whether a run need not be made: of an object, only if the call goes on with an earlier one.

        Raises:
            InputError: the earlier call had another model.
        """
        identity = self._identities.get(spec.adapter_spec.model_deployment)
        if identity is not None:
            if not self._resumes:
                return False
            before = read_model(runner.run_path(spec))
            changed = find_changes(before, identity)
            if changed and self._resumes is True:
                key = changed[0]
                raise InputError(
                    f"resume=True: the earlier call had another model ({key}:"
                    f" {before.get(key)}, now {identity.get(key)}); give resume=False"
                    " to ask again, resume='anyway' to go on, or another name="
                )
        return super().skips(runner, spec)

    def make(self, runner: LongContextRunner, spec: RunSpec) -> None:
        """Make a run, without the answers of an earlier call if it does not go on."""
        if spec.adapter_spec.model_deployment in self._identities and not self._resumes:
            path = runner.run_path(spec)
            # A folder without statistics is an unfinished run, whose earlier scores nothing shows.
            for file in (path / STATS, *answer_files(path)):
                file.unlink(missing_ok=True)
        super().make(runner, spec)

    def begin(self, run: PreparedRun) -> None:
        """Keep what identifies the model, and say how many answers an earlier call left."""
        identity = self._identities.get(run.spec.adapter_spec.model_deployment)
        if identity is not None:
            run.journal.advice = "call evaluate again with resume=True"
            before = read_model(run.path) if self._resumes else {}
            changed = sorted(
                {*find_changes(before, identity), *before.get(RESUMED, ())}
            )
            write_model(
                run.path, {**identity, **({RESUMED: changed} if changed else {})}
            )
            if changed:
                helm_log.warning(
                    f"{run.spec.name} goes on with another model: changed {', '.join(changed)}"
                )
            if self._resumes:
                helm_log.info(
                    f"{run.spec.name} goes on with {len(run.journal)} answers of an earlier call"
                )
        else:
            super().begin(run)
