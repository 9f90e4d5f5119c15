"""Registers with HELM the baseline models, their tokenizer, and the deployments that come with the package."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from importlib import resources
from typing import Any

import dacite
from helm.benchmark import model_deployment_registry as deployments
from helm.benchmark import model_metadata_registry as models
from helm.benchmark import tokenizer_config_registry as tokenizers
from helm.benchmark.window_services.no_tokenizer_window_service import (
    NoTokenizerWindowService,
)

from helm_longctx.data.yaml_files import parse_package_yaml
from helm_longctx.models.baselines.clients import (
    BaselineClient,
    LexicalClient,
    NullClient,
)

_MODELS: tuple[tuple[str, str, type[BaselineClient], str], ...] = (
    (
        "longctx/lexical",
        "Lexical baseline",
        LexicalClient,
        "No neural network. It finds the lines of the prompt that share the rarest"
        " words with the question and answers with text from there. A task that it"
        " solves needs no understanding.",
    ),
    (
        "longctx/null",
        "Null baseline",
        NullClient,
        "One constant answer for each task, whatever the question. Its score is the"
        " floor of the metric.",
    ),
)

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
    window = NoTokenizerWindowService
    for name, title, client, about in _MODELS:
        if name in deployments.DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT:
            continue
        models.register_model_metadata(
            models.ModelMetadata(
                name=name,
                creator_organization_name="helm-longctx",
                display_name=title,
                description=about,
                access="open",
                release_date=date(2026, 11, 20),
                tags=[models.TEXT_MODEL_TAG, models.FULL_FUNCTIONALITY_TEXT_MODEL_TAG],
            )
        )
        deployments.register_model_deployment(
            deployments.ModelDeployment(
                name=name,
                client_spec=deployments.ClientSpec(
                    f"{client.__module__}.{client.__name__}"
                ),
                tokenizer_name=WORDS,
                # Other window services would tokenize each prompt to compare its length with a limit. There is none.
                window_service_spec=deployments.WindowServiceSpec(
                    f"{window.__module__}.{window.__name__}"
                ),
            )
        )


def register_ready() -> None:
    """Register the deployments of `model_deployments.yaml` with their models and tokenizers. Idempotent.

    A model that already has a deployment gets no other one. HELM uses the last deployment that is registered for a
    model, and this must stay the user's.
    """
    for row in _read_ready("models", "model_metadata"):
        if row["name"] not in models.MODEL_NAME_TO_MODEL_METADATA:
            models.register_model_metadata(dacite.from_dict(models.ModelMetadata, row))
    known = set()
    for deployment in deployments.ALL_MODEL_DEPLOYMENTS:
        known.add(deployment.model_name)
    for row in _read_ready("model_deployments"):
        if row["model_name"] not in known:
            deployments.register_model_deployment(
                dacite.from_dict(deployments.ModelDeployment, row)
            )
    for row in _read_ready("tokenizer_configs"):
        if row["name"] not in tokenizers.TOKENIZER_NAME_TO_CONFIG:
            tokenizers.register_tokenizer_config(
                dacite.from_dict(tokenizers.TokenizerConfig, row)
            )


def _read_ready(key: str, name: str = "") -> list[dict[str, Any]]:
    path = resources.files("helm_longctx") / "models" / f"{name or key}.yaml"
    rows: list[dict[str, Any]] = parse_package_yaml(path.read_text(encoding="utf-8"))[
        key
    ]
    return rows
