"""Registers with HELM the baseline models, their tokenizer, and the deployments that come with the package."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

import dacite
from helm.benchmark import model_deployment_registry as deployments
from helm.benchmark import model_metadata_registry as models
from helm.benchmark import tokenizer_config_registry as tokenizers

from helm_longctx.data.yaml_files import parse_package_yaml

WORDS = "longctx/words"
"""The baselines' tokenizer: words and punctuation marks. Suites that generate prompts of a given length count tokens
with it. It needs no download."""

WORDS_FOLDER = str(resources.files("helm_longctx") / "models/baselines/words")
"""The folder of this tokenizer."""


@contextmanager
def restore_registries() -> Iterator[None]:
    """Give HELM's registries the entries again that they had before the block, and HELM its output folder."""
    from helm.benchmark import runner

    listed: tuple[list[Any], ...] = (
        models.ALL_MODELS_METADATA,
        deployments.ALL_MODEL_DEPLOYMENTS,
        tokenizers.ALL_TOKENIZER_CONFIGS,
    )
    named: tuple[dict[str, Any], ...] = (
        models.MODEL_NAME_TO_MODEL_METADATA,
        deployments.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
        tokenizers.TOKENIZER_NAME_TO_CONFIG,
    )
    lists_before = [[*entries] for entries in listed]
    names_before = [{**entries} for entries in named]
    output_path = runner.get_benchmark_output_path()
    try:
        yield
    finally:
        # Other modules hold these lists and dictionaries, so they are changed and not replaced.
        for entries, before in zip(listed, lists_before, strict=True):
            entries[:] = before
        for names, entries_before in zip(named, names_before, strict=True):
            names.clear()
            names.update(entries_before)
        runner.set_benchmark_output_path(output_path)


def register() -> None:
    """Register `longctx/lexical`, `longctx/null` and their tokenizer with HELM. Idempotent."""
    if WORDS not in tokenizers.TOKENIZER_NAME_TO_CONFIG:
        folder = {"pretrained_model_name_or_path": WORDS_FOLDER}
        spec = tokenizers.TokenizerSpec(
            "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer", folder
        )
        tokenizers.register_tokenizer_config(
            tokenizers.TokenizerConfig(
                WORDS, spec, end_of_text_token="", prefix_token=""
            )
        )
    _register_rows("baselines", "baselines")


def register_ready() -> None:
    """Register the deployments of `model_deployments.yaml` with their models and tokenizers. Idempotent."""
    _register_rows("model_metadata", "model_deployments")
    for row in _read_rows("tokenizer_configs", "tokenizer_configs"):
        if row["name"] not in tokenizers.TOKENIZER_NAME_TO_CONFIG:
            tokenizers.register_tokenizer_config(
                dacite.from_dict(tokenizers.TokenizerConfig, row)
            )


def _register_rows(models_file: str, deployments_file: str) -> None:
    """Register the models and the deployments in YAML files of this package, named without their extension.

    A model that already has a deployment gets no other one. HELM uses the last deployment that is registered for a
    model, and this must stay the user's.
    """
    for row in _read_rows(models_file, "models"):
        if row["name"] not in models.MODEL_NAME_TO_MODEL_METADATA:
            models.register_model_metadata(dacite.from_dict(models.ModelMetadata, row))
    known = set()
    for deployment in deployments.ALL_MODEL_DEPLOYMENTS:
        known.add(deployment.model_name)
    for row in _read_rows(deployments_file, "model_deployments"):
        if row["model_name"] not in known:
            deployments.register_model_deployment(
                dacite.from_dict(deployments.ModelDeployment, row)
            )


def _read_rows(name: str, key: str) -> list[dict[str, Any]]:
    path = resources.files("helm_longctx") / "models" / f"{name}.yaml"
    rows: list[dict[str, Any]] = parse_package_yaml(path.read_text(encoding="utf-8"))[
        key
    ]
    return rows
