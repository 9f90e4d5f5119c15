"""The models and judges of a configuration: registers them with HELM, and asks their servers what they offer."""

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from helm_longctx.config.local_models import (
    MADE_FROM,
    ModelFacts,
    dump_mapping,
    expand,
    make_files,
    read_facts,
)
from helm_longctx.config.schema import Endpoint, LocalModels, RunConfig
from helm_longctx.config.source_map import KeyPath
from helm_longctx.environment import page_address
from helm_longctx.errors import InputError
from helm_longctx.helm.command_line import is_model, unknown_model
from helm_longctx.helm_api import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT as REGISTERED
from helm_longctx.helm_api import (
    get_all_models,
    get_model_deployment,
    register_configs_from_directory,
)
from helm_longctx.helm_log import helm_log
from helm_longctx.judging.judge import parse_judges
from helm_longctx.judging.keys.client import (
    check_credentials,
    find_key,
    lacks_key,
    missing_key_error,
)
from helm_longctx.models.apis.availability import has_key
from helm_longctx.models.apis.oauth import TokenError
from helm_longctx.models.apis.prices import find_prices
from helm_longctx.models.endpoints import probe
from helm_longctx.models.endpoints.files import (
    DEPLOYMENTS,
    METADATA,
    HelmFiles,
    add_entries,
    find_entries,
)
from helm_longctx.models.endpoints.probe import KeyRefusedError
from helm_longctx.models.endpoints.registration import (
    LOCAL_CLIENTS,
    Tokenizer,
    find_tokenizer,
    load_tokenizer,
    make_entries,
)
from helm_longctx.run_settings import read_variable

_EXTRAS = (
    "extra_body",
    "reasoning_effort",
    "thinking_tokens",
    "stream",
    "requests_per_minute",
    "tokens_per_minute",
)
"""Keys of an endpoint that are also arguments of our clients."""

_IN_HEADER = re.compile(r"\$([A-Za-z_]\w*)")


@dataclass(frozen=True)
class ConfiguredModel:
    """A model of a configuration, and its key path. A mapping with several folders stands for several models."""

    model: str | Endpoint | LocalModels
    path: KeyPath

    @property
    def name(self) -> str:
        """The name in HELM."""
        return self.model if isinstance(self.model, str) else str(self.model.name)

    @property
    def has_sampling(self) -> bool:
        """Whether the model has a sampling of its own. Otherwise it runs each entry as it is."""
        return not isinstance(self.model, str) and bool(self.model.sampling)

    @cached_property
    def sampling(self) -> dict[str, Any]:
        """The arguments of run entries that the model has for all its entries.

        Raises:
            InputError: the model's files say them, and lack them.
        """
        return _find_sampling(self)

    @cached_property
    def facts(self) -> ModelFacts:
        """What the files of a model say of it, read once. A model on a server has only files of a tokenizer.

        Raises:
            InputError: there is no such model, or it cannot be loaded.
        """
        if isinstance(self.model, LocalModels):
            return read_facts(self.model)
        assert isinstance(self.model, Endpoint)
        return read_facts(LocalModels(path=self.model.tokenizer or ""))


def expand_models(config: RunConfig) -> list[ConfiguredModel]:
    """Return the models of a configuration. Raises an `InputError` if a path has no model."""
    models: list[ConfiguredModel] = []
    for number, model in enumerate(config.models):
        path = ("models", number)
        if isinstance(model, LocalModels):
            with config.source_map.at(path):
                for expanded in expand(model):
                    models.append(ConfiguredModel(model=expanded, path=path))
        else:
            models.append(ConfiguredModel(model=model, path=path))
    return models


def list_judges(config: RunConfig) -> list[ConfiguredModel]:
    """Return the models that a configuration names as judges."""
    judges = []
    for number, judge in enumerate(config.judge.judges):
        if judge not in ("auto", "none"):
            path = ("judge", "judges", number)
            judges.append(ConfiguredModel(model=judge, path=path))
    return judges


@dataclass(frozen=True)
class _KnownEndpoint:
    """A model on a server, its key path, and its entries in the files of `local_path` before the command."""

    model: Endpoint
    path: KeyPath
    existing: Mapping[str, Any]


class ModelBook:
    """The models of a configuration and of its run entries, with key paths. `register` makes them known to HELM.

    Raises an `InputError` if a name is unknown, an address, a tokenizer or a variable is wrong, or two models share a
    name.
    """

    def __init__(
        self,
        config: RunConfig,
        models: Iterable[ConfiguredModel],
        credentials: Mapping[str, Any],
    ):
        self._config = config
        self._credentials = credentials
        self._endpoints: dict[str, _KnownEndpoint] = {}
        self._local: dict[str, HelmFiles] = {}
        self._files: dict[str, HelmFiles] = {}
        for configured in models:
            with config.source_map.at(configured.path):
                self._add(configured)

    @property
    def missing(self) -> list[Endpoint]:
        """The endpoints that the files in `local_path` lack, or describe otherwise than the configuration does."""
        missing = []
        for name, endpoint in self._endpoints.items():
            if name in self._files:
                missing.append(endpoint.model)
        return missing

    @property
    def local_models(self) -> list[str]:
        """The names of the models that run in this process, each with its weights."""
        return list(self._local)

    def register(self) -> None:
        """Register the models with HELM as the configuration describes them. Sends nothing and changes no file."""
        _register(self._files)

    def check_judges(self) -> None:
        """Raise an `InputError` if a judge has a mistake in its name or, except in a dry run, no key."""
        for judge in list_judges(self._config):
            with self._config.source_map.at(judge.path):
                parse_judges(judge.name)
                if not self._config.dry_run:
                    check_credentials(judge.name, self._credentials)

    def ask_servers(self) -> bool:
        """Ask the servers of new endpoints what they offer, and write all new models to `local_path`.

        Returns:
            Whether a model is described to HELM otherwise than before its server was asked: it does not chat.

        Raises:
            InputError: a server cannot be reached, refuses the key, or lacks the model or the style.
        """
        has_changed = False
        for name, endpoint in self._endpoints.items():
            if name not in self._files:
                continue
            with self._config.source_map.at(endpoint.path):
                if endpoint.path[0] == "judge":
                    asked = self._ask_judge(name, endpoint.model)
                else:
                    asked = _ask(endpoint.model)
                _check_model(name, asked, endpoint.existing)
            has_changed |= _tags(asked) != _tags(self._files[name])
            self._files[name] = asked
        for files in self._files.values():
            written = add_entries(self._config.local_path, files, replace=True)
            helm_log.info(f"Wrote {', '.join(map(str, written))}")
        _register(self._files)
        self._files = {}
        return has_changed

    def _ask_judge(self, name: str, endpoint: Endpoint) -> HelmFiles:
        """Ask a judge's server with the judge's own key. A model at the same address does not get it."""
        deployment = get_model_deployment(name)
        key = find_key(deployment, self._credentials)
        try:
            return _ask(endpoint, key.keys(None) if key else None)
        except TokenError as error:
            raise InputError(str(error)) from None
        except KeyRefusedError:
            if key:
                raise InputError(
                    f"judge={name}: {endpoint.url} refuses {key.origin}"
                ) from None
            if lacks_key(deployment, self._credentials):
                raise missing_key_error(deployment) from None
            raise

    def check_prices(self, names: list[str]) -> None:
        """Raise an `InputError` if there is a limit in dollars, and the prices of a model are not known."""
        limit = self._config.limits.max_cost
        if unpriced := [
            name for name in names if limit is not None and find_prices(name) is None
        ]:
            allowed = f"limits.prices with a file of their prices ({page_address('costs')}), or no max_cost"
            message = f"={limit:g} needs the prices of {', '.join(unpriced)}, which are not known; give {allowed}"
            raise self._config.source_map.error(("limits", "max_cost"), message)

    def _add(self, configured: ConfiguredModel) -> None:
        model = configured.model
        name = configured.name
        if isinstance(model, str):
            self._add_name(name, configured.path)
            return
        if name in self._endpoints or name in self._local:
            raise InputError(f"{name!r} is given twice; give each name once")
        existing = find_entries(self._config.local_path, name)
        if isinstance(model, LocalModels):
            self._add_local(model, configured, existing)
            return
        endpoint = _KnownEndpoint(model=model, path=configured.path, existing=existing)
        self._add_endpoint(name, endpoint)
        if model.tokenizer and os.path.isdir(model.tokenizer):
            _log_sampling(configured)

    def _add_endpoint(self, name: str, endpoint: _KnownEndpoint) -> None:
        self._endpoints[name] = endpoint
        model = endpoint.model
        existing = endpoint.existing
        described = _describe(model)
        tokenizer = load_tokenizer(model.tokenizer) if model.tokenizer else None
        missing = _find_missing_variables(model)
        if missing and not self._config.dry_run:
            raise InputError(
                f"the environment variable {missing[0]} is not set; set it to the key"
            )
        if not missing:
            probe.make_client(described)  # this checks the client's arguments
        files = _entries(model, described, tokenizer)
        if _is_same(model, files, existing):
            return
        # A deployment that the user wrote must not get another server.
        is_own = DEPLOYMENTS in existing and MADE_FROM not in existing[DEPLOYMENTS]
        if is_own and _arguments(existing).get("base_url") != described.url:
            where = f"{name!r} is in {self._config.local_path / DEPLOYMENTS} with another address"
            raise InputError(
                f"{where}; give another name, or the name alone for that deployment"
            )
        self._files[name] = files

    def _add_local(
        self,
        model: LocalModels,
        configured: ConfiguredModel,
        existing: Mapping[str, Any],
    ) -> None:
        name = configured.name
        other = REGISTERED.get(name)
        if other:
            is_other = other.client_spec.class_name not in LOCAL_CLIENTS
        else:
            is_other = name in get_all_models()
        if is_other or (
            DEPLOYMENTS in existing and MADE_FROM not in existing[DEPLOYMENTS]
        ):
            advice = "give another name (name), or the name alone"
            raise InputError(f"{name!r} is a model that HELM knows already; {advice}")
        files = make_files(model, configured.facts)
        _log_sampling(configured)
        self._local[name] = files
        if dict(existing.get(DEPLOYMENTS, {})) != files[DEPLOYMENTS]:
            self._files[name] = files

    def _add_name(self, name: str, path: KeyPath) -> None:
        if name in self._endpoints or name in self._local or name in REGISTERED:
            return
        is_listed = name in get_all_models()
        if not is_model(name):
            raise unknown_model("", name)
        # HELM takes any name of some organizations for a model. One that is in no list and has no key is misspelled.
        # The keys of judges have a check of their own.
        needs_no_key = is_listed or self._config.dry_run or path[0] == "judge"
        if not (needs_no_key or has_key(name, self._credentials)):
            raise InputError(
                f"{unknown_model('', name)}; or, if it is a newer one, set its key"
            )


def _read_sampling(configured: ConfiguredModel) -> dict[str, Any]:
    """Return how the tokens of answers are drawn by a model's generation_config.json, if it says so.

    Of a model on a server, the tokenizer says where the file is; a folder need not have it. Raises an `InputError` if
    there is no such model, or the file cannot be read.
    """
    model = configured.model
    tokenizer = (model.tokenizer if isinstance(model, Endpoint) else None) or ""
    if os.path.isdir(tokenizer):
        folder = Path(tokenizer)  # facts need transformers, whose import takes seconds
    else:
        folder = configured.facts.folder
    path = folder / "generation_config.json"
    try:
        if path.is_file():
            settings = json.loads(path.read_bytes())
        else:
            settings = {}
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__})") from None
    if not settings.get("do_sample"):
        return {}
    # These are the values that transformers takes for none.
    without_effect = {
        "top_p": 1,
        "top_k": 0,
        "min_p": 0,
    }
    rest = {
        name: settings[name]
        for name, none in without_effect.items()
        if settings.get(name) not in (None, none)
    }
    return {"temperature": settings.get("temperature") or 1.0, **rest}


def _find_sampling(configured: ConfiguredModel) -> dict[str, Any]:
    model = configured.model
    if isinstance(model, str) or not model.sampling:
        return {}
    if isinstance(model.sampling, dict):
        return model.sampling
    if isinstance(model, Endpoint) and not model.tokenizer:
        problem = (
            "sampling='model' needs the model's files, which its server does not give"
        )
        raise InputError(
            f"{problem}; give its folder or its name on the hub as tokenizer, or the values"
        )
    sampling = _read_sampling(configured)
    if not sampling:
        raise InputError(
            "sampling='model': its generation_config.json does not say how to sample;"
            " give the values"
        )
    return sampling


def _log_sampling(configured: ConfiguredModel) -> None:
    """Log how a model's own files say that it should be sampled, if its mapping does not say it."""
    if configured.has_sampling:
        return
    sampling = _read_sampling(configured)
    if sampling:
        values = ", ".join(f"{key} {value:g}" for key, value in sampling.items())
        helm_log.info(
            f"{configured.name}: its generation_config.json says {values}; give sampling: model to answer so"
        )


def _find_missing_variables(model: Endpoint) -> list[str]:
    """Return the environment variables that a model needs and that are not set."""
    variables = []
    if model.api_key_env:
        variables.append(model.api_key_env)
    if model.token_env:
        variables.append(f"{model.token_env}_TOKEN_URL")
    for value in model.headers.values():
        variables += _IN_HEADER.findall(value)
    return [variable for variable in variables if not read_variable(variable)]


def _describe(model: Endpoint) -> probe.ProbedEndpoint:
    """Return an endpoint without asking its server. Raises an `InputError` if the address is invalid."""
    return probe.ProbedEndpoint(
        url=probe.base_url(model.url, model.api),
        api=model.api,
        model=model.model or model.name.rpartition("/")[2],
        # Until the server was asked, chat is assumed.
        routes=("chat", "completions")
        if model.type == "both"
        else (model.type or "chat",),
        context=model.context,
        api_key_env=model.api_key_env,
        token_env=model.token_env,
        headers=model.headers,
        nvcf=model.nvcf,
    )


def _ask(model: Endpoint, key: str | None = None) -> HelmFiles:
    described = replace(_describe(model), model=model.model or "", key=key)
    endpoint = probe.ask_server(described, model.name, model.type)
    try:
        if model.tokenizer:
            named = load_tokenizer(model.tokenizer)
        else:
            named = None
        tokenizer = named or find_tokenizer(endpoint.source, endpoint.model)
    except InputError as error:
        if model.tokenizer:
            raise
        helm_log.info(f"prompts will not be cut to the model's context: {error}")
        tokenizer = None
    context = model.context or endpoint.context
    helm_log.info(
        f"{endpoint.url}: {endpoint.model} answers {' and '.join(endpoint.routes)};"
        f" context: {context or 'unknown'}"
    )
    return _entries(model, replace(endpoint, context=context), tokenizer)


def _entries(
    model: Endpoint,
    endpoint: probe.ProbedEndpoint,
    tokenizer: Tokenizer | None,
) -> HelmFiles:
    files = make_entries(endpoint, model.name, tokenizer)
    arguments = files[DEPLOYMENTS]["client_spec"]["args"]
    for name in _EXTRAS:
        if value := getattr(model, name):
            arguments[name] = value
    # What the server said cannot be told from what a key said, so the keys are kept, too.
    files[DEPLOYMENTS][MADE_FROM] = dump_mapping(model)
    return files


def _is_same(model: Endpoint, wanted: HelmFiles, existing: Mapping[str, Any]) -> bool:
    """Whether the files describe an endpoint as the configuration does. Then its server need not be asked."""
    if DEPLOYMENTS not in existing:
        return False
    # Values that the configuration leaves to the server are not compared: the server was asked for them before.
    open_fields = set()
    if model.context is None:
        open_fields.add("max_sequence_length")
    if model.tokenizer is None:
        open_fields.add("tokenizer_name")
    if open_fields:
        open_fields.add("window_service_spec")  # it depends on both
    # Deployments that users wrote, or made with `models add`, have no mapping.
    if MADE_FROM not in existing[DEPLOYMENTS]:
        open_fields.add(MADE_FROM)
    open_arguments = set()
    if model.model is None:
        open_arguments.add("model")
    if model.type is None:
        open_arguments.add("form")

    def select_compared(row: Mapping[str, Any]) -> dict[str, Any]:
        spec = row.get("client_spec") or {}
        arguments = {}
        for key, value in spec.get("args", {}).items():
            if key not in open_arguments:
                arguments[key] = value
        return {
            **{key: value for key, value in row.items() if key not in open_fields},
            "client_spec": {
                "class_name": str(spec.get("class_name")),
                "args": arguments,
            },
        }

    return select_compared(wanted[DEPLOYMENTS]) == select_compared(
        existing[DEPLOYMENTS]
    )


def _check_model(name: str, asked: HelmFiles, existing: Mapping[str, Any]) -> None:
    """Check that a server at a new address has the model that the server at the old address had, and log the change.

    A server that is started again can get another port.
    """
    old = _arguments(existing)
    new = _arguments(asked)
    if not old or old["base_url"] == new["base_url"]:
        return
    if old["model"] != new["model"]:
        change = f"was the model {old['model']!r} of {old['base_url']}, but {new['base_url']} has {new['model']!r}"
        raise InputError(
            f"{name!r} {change}; give another name (--model-name, in YAML `name`)"
        )
    kept = "complete runs stay, and unfinished runs ask all questions again"
    helm_log.info(
        f"{name} has moved from {old['base_url']} to {new['base_url']}: {kept}"
    )


def _arguments(files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the client's arguments of a deployment; none if there is no deployment."""
    return dict(files.get(DEPLOYMENTS, {}).get("client_spec", {}).get("args", {}))


def _tags(files: HelmFiles) -> list[str]:
    """Return the tags by which HELM knows what a model can do."""
    return list(files[METADATA]["tags"])


def _register(models: Mapping[str, HelmFiles]) -> None:
    for files in models.values():
        # HELM can only register the content of files in a folder.
        with tempfile.TemporaryDirectory() as folder:
            add_entries(Path(folder), files)
            register_configs_from_directory(folder)
