"""Makes HELM read its files quickly. Its own YAML takes most of a second of processor time in each command."""

from __future__ import annotations

import copy
import pickle
from functools import cache
from importlib import resources
from typing import Any

import cattrs
import dacite
import pyhocon
import yaml

load = yaml.load
parse = pyhocon.ConfigFactory.parse_string
make_objects = dacite.from_dict
structure = cattrs.structure


class OwnFile(dict[str, Any]):
    """The content of one of HELM's own files.

    Attributes:
        path: the file.
    """

    path: str


def replace_parsers() -> None:
    """Let `yaml.load` and `yaml.safe_load` return copies of HELM's own files, which they parse once.

    The objects that HELM makes of these files are made once, too, and copied. Other YAML files are read with libyaml, in
    a sixth of the time. Equal credentials are parsed once: HELM reads them several times in each run, and builds the
    grammar of their language each time.
    """
    yaml.load = _load
    pyhocon.ConfigFactory.parse_string = _parse
    dacite.from_dict = _make_objects
    cattrs.structure = _structure


def read_own_files() -> None:
    """Read HELM's own files here, so that processes that are forked from this one need not."""
    from helm.benchmark import config_registry
    from helm.benchmark.model_deployment_registry import ModelDeployments
    from helm.benchmark.model_metadata_registry import ModelMetadataList
    from helm.benchmark.tokenizer_config_registry import TokenizerConfigs

    folder = resources.files(config_registry.CONFIG_PACKAGE)
    models = folder / config_registry.MODEL_METADATA_FILE
    deployments = folder / config_registry.MODEL_DEPLOYMENTS_FILE
    tokenizers = folder / config_registry.TOKENIZER_CONFIGS_FILE
    _pickle_objects(make_objects, ModelMetadataList, str(models))
    _pickle_objects(_swap_arguments, ModelDeployments, str(deployments))
    _pickle_objects(_swap_arguments, TokenizerConfigs, str(tokenizers))


def _load(stream: Any, Loader: Any) -> Any:  # noqa: N803  # PyYAML's name
    is_text = isinstance(stream, str)
    path = _paths().get(stream) if is_text else getattr(stream, "name", None)
    file = _pickles().get(path)
    if path and file is not None:
        content = OwnFile(pickle.loads(file))
        content.path = path
        return content
    return load(stream, yaml.CSafeLoader if Loader is yaml.SafeLoader else Loader)


@cache
def _paths() -> dict[str, str]:
    """Return the paths of HELM's own files by their texts, because our package reads a file before it parses it."""
    return {
        file.read_text(encoding="utf-8"): str(file)
        for file in resources.files("helm.config").iterdir()
        if file.name.endswith(".yaml")
    }


@cache
def _pickles() -> dict[str | None, bytes]:
    """Return the content of HELM's files by their paths."""
    return {
        path: pickle.dumps(load(text, yaml.CSafeLoader))
        for text, path in _paths().items()
    }


def _parse(content: str, *options: Any, **named_options: Any) -> Any:
    # These depend on variables of the process and on other files.
    is_alone = "$" not in content and "include" not in content
    if not is_alone or options or named_options:
        return parse(content, *options, **named_options)
    return copy.deepcopy(_parse_once(content))


@cache
def _parse_once(content: str) -> Any:
    return parse(content)


def _make_objects(data_class: Any, data: Any, *options: Any) -> Any:
    if options or type(data) is not OwnFile:
        return make_objects(data_class, data, *options)
    return pickle.loads(_pickle_objects(make_objects, data_class, data.path))


def _structure(data: Any, data_class: Any) -> Any:
    if type(data) is not OwnFile:
        return structure(data, data_class)
    return pickle.loads(_pickle_objects(_swap_arguments, data_class, data.path))


def _swap_arguments(data_class: Any, data: Any) -> Any:
    return structure(data, data_class)


@cache
def _pickle_objects(make: Any, data_class: Any, path: str) -> bytes:
    """Return the objects of a class that HELM makes of one of its own files."""
    return pickle.dumps(make(data_class, pickle.loads(_pickles()[path])))
