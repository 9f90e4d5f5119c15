"""Finds and loads the tokenizer of an endpoint's model, by which prompts are cut to the model's context."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from helm.benchmark.tokenizer_config_registry import get_tokenizer_config
from huggingface_hub import HfApi, try_to_load_from_cache

from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.errors import InputError
from helm_longctx.models.apis.listing import PATIENCE
from helm_longctx.models.fast_tokenizers import read_fast_tokenizer
from helm_longctx.redaction.abbreviation import describe_error

CLASS = "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer"

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer that can be loaded.

    Args:
        name: its name in HELM's registry, or else its hub name or folder.
        registered: whether the name is in HELM's registry.
        begin, end: the tokens at the start and the end of a text; empty if there are none.
    """

    name: str
    registered: bool = False
    begin: str = ""
    end: str = ""

    def config(self, name: str) -> dict[str, Any] | None:
        """Return an entry of `tokenizer_configs.yaml` with a name; None if HELM's registry has the tokenizer."""
        if self.registered:
            return None
        spec = {"class_name": CLASS, "args": {"pretrained_model_name_or_path": self.name}}
        return {"name": name, "tokenizer_spec": spec, "prefix_token": self.begin, "end_of_text_token": self.end}


def load_tokenizer(name: str) -> Tokenizer:
    """Load a tokenizer by its name in HELM, its hub name or its folder.

    Raises:
        InputError: the tokenizer cannot be loaded, or cannot be used to cut prompts.
    """
    if get_tokenizer_config(name) is not None:
        return Tokenizer(name, registered=True)
    # The path is absolute, because later processes that read the file can run in another folder.
    path = str(Path(name).resolve()) if Path(name).is_dir() else name
    try:
        _check_hub(path)
        load = partial(_load_with_transformers, path)
        loaded = read_fast_tokenizer(path, load) or load()
        if not loaded.is_fast:
            raise InputError("it is not a fast tokenizer (tokenizer.json), which is needed to cut prompts")
        return Tokenizer(path, begin=loaded.bos_token or "", end=loaded.eos_token or "")
    except Exception as error:  # transformers and the hub raise many kinds
        raise InputError(f"tokenizer={name!r} cannot be loaded: {describe_error(error)}") from None


def _load_with_transformers(name: str) -> Any:
    """Load a tokenizer as HELM does in a run. This imports transformers and torch, which takes seconds."""
    from helm.tokenizers.huggingface_tokenizer import HuggingFaceTokenizer

    ignore_broken_torchvision()
    with HuggingFaceTokenizer.create_tokenizer(name) as loaded:
        return loaded


def find_tokenizer(*candidates: str | None) -> Tokenizer | None:
    """Load the first tokenizer that can be loaded; None if no candidate is a hub name or a folder.

    Raises:
        InputError: there are such candidates, but none can be loaded.
    """
    failure = None
    for candidate in dict.fromkeys(candidates):
        if candidate and (Path(candidate).is_dir() or _HUB_NAME.fullmatch(candidate)):
            try:
                return load_tokenizer(candidate)
            except InputError as error:
                failure = error
    if failure:
        raise failure
    return None


def _check_hub(name: str) -> None:
    """Ask the hub once for a name that is neither a folder nor cached. transformers would try for a minute."""
    cached = Path(name).is_dir() or isinstance(try_to_load_from_cache(name, "tokenizer_config.json"), str)
    if not cached:
        HfApi().model_info(name, timeout=PATIENCE)
