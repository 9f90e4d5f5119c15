"""Registers the models and judges of a configuration with HELM, and asks their servers what they offer."""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from helm_longctx.config.local_models import (
    DEPLOYMENTS,
    MADE_FROM,
    METADATA,
    ConfiguredModel,
    HelmFiles,
    dump_mapping,
    log_sampling,
    make_files,
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
from helm_longctx.judging.keys.client import find_key, lacks_key, missing_key_error
from helm_longctx.models.apis.availability import has_key
from helm_longctx.models.apis.oauth import TokenError
from helm_longctx.models.apis.prices import find_prices
from helm_longctx.models.endpoints import probe
from helm_longctx.models.endpoints.files import add_entries, find_entries
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
            self._add_local(configured, existing)
            return
        endpoint = _KnownEndpoint(model=model, path=configured.path, existing=existing)
        self._add_endpoint(name, endpoint)
        if model.tokenizer and os.path.isdir(model.tokenizer):
            log_sampling(configured)

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
        self, configured: ConfiguredModel, existing: Mapping[str, Any]
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
        self._local[name] = files = make_files(configured)
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
    model: Endpoint, endpoint: probe.ProbedEndpoint, tokenizer: Tokenizer | None
) -> HelmFiles:
    files = make_entries(endpoint, model.name, tokenizer)
    given = {}
    for name in _EXTRAS:
        given[name] = getattr(model, name)
    extras = {}
    for name, value in given.items():
        if value:
            extras[name] = value
    files[DEPLOYMENTS]["client_spec"]["args"] |= extras
    # What the server said cannot be told from what a key said, so the keys are kept, too.
    files[DEPLOYMENTS][MADE_FROM] = dump_mapping(model)
    return files


def _is_same(model: Endpoint, wanted: HelmFiles, existing: Mapping[str, Any]) -> bool:
    """Whether the files describe an endpoint as the configuration does. Then its server need not be asked."""
    if DEPLOYMENTS not in existing:
        return False
    # Values that the configuration leaves to the server are not compared: the server was asked for them before.
    if model.context is None:
        open_fields = {"max_sequence_length"}
    else:
        open_fields = set()
    open_fields |= {"tokenizer_name"} if model.tokenizer is None else set()
    open_fields |= (
        {"window_service_spec"} if open_fields else set()
    )  # depends on the two others
    # Deployments that users wrote, or made with `models add`, have no mapping.
    open_fields |= {MADE_FROM} if MADE_FROM not in existing[DEPLOYMENTS] else set()
    if model.model is None:
        open_arguments = {"model"}
    else:
        open_arguments = set()
    open_arguments |= {"form"} if model.type is None else set()

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
