"""Tests that the quick readers of HELM's files return what HELM's own return."""

from __future__ import annotations

from importlib import resources
from typing import Any

import cattrs
import dacite
import pyhocon
import pytest
import yaml
from helm.benchmark import config_registry
from helm.benchmark.model_deployment_registry import ModelDeployments
from helm.benchmark.model_metadata_registry import ModelMetadataList
from helm.benchmark.tokenizer_config_registry import TokenizerConfigs

from tests.support import quick_files


def read_own_file(name: str, load: Any) -> Any:
    path = str(resources.files(config_registry.CONFIG_PACKAGE) / name)
    with open(path, encoding="utf-8") as file:
        return load(file, yaml.SafeLoader if load is yaml.load else yaml.CSafeLoader)


def test_models() -> None:
    """HELM's models are those of its file, and each command gets objects of its own."""
    name = config_registry.MODEL_METADATA_FILE
    first = dacite.from_dict(ModelMetadataList, read_own_file(name, yaml.load))
    second = dacite.from_dict(ModelMetadataList, read_own_file(name, yaml.load))
    plain = read_own_file(name, quick_files.load)
    assert first == second == quick_files.make_objects(ModelMetadataList, plain)
    assert first.models[0] is not second.models[0]


def test_a_text_that_was_read() -> None:
    """The text of one of HELM's own files is known as the file is."""
    name = config_registry.MODEL_METADATA_FILE
    path = resources.files(config_registry.CONFIG_PACKAGE) / name
    content = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    assert isinstance(content, quick_files.OwnFile)
    assert content == read_own_file(name, quick_files.load)


@pytest.mark.parametrize(
    ("name", "data_class"),
    [
        (config_registry.MODEL_DEPLOYMENTS_FILE, ModelDeployments),
        (config_registry.TOKENIZER_CONFIGS_FILE, TokenizerConfigs),
    ],
)
def test_deployments_and_tokenizers(name: str, data_class: Any) -> None:
    """HELM's deployments and tokenizers are those of its files."""
    objects = cattrs.structure(read_own_file(name, yaml.load), data_class)
    plain = read_own_file(name, quick_files.load)
    assert objects == quick_files.structure(plain, data_class)


def test_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal credentials are equal objects that share no value, and a variable is read each time."""
    text = 'deployments: {"a/b": {key: secret}}'
    first = pyhocon.ConfigFactory.parse_string(text)
    assert first == quick_files.parse(text)
    first["deployments"].clear()
    assert pyhocon.ConfigFactory.parse_string(text) == quick_files.parse(text)
    for value in ("one", "two"):
        monkeypatch.setenv("QUICK_FILES_KEY", value)
        read = pyhocon.ConfigFactory.parse_string("key: ${QUICK_FILES_KEY}")
        assert read["key"] == value
