"""Models that run in this process: finds their folders, reads their files, and describes them to HELM."""

from __future__ import annotations

import glob
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from helm_longctx.config.schema import Endpoint, LocalModels
from helm_longctx.environment import require_modules
from helm_longctx.errors import InputError, shorten
from helm_longctx.helm_log import helm_log
from helm_longctx.models.endpoints.files import DEPLOYMENTS, HelmFiles
from helm_longctx.models.endpoints.registration import (
    ENGINE_CLIENT,
    LOCAL_CLIENT,
    describe_deployment,
    load_tokenizer,
)
from helm_longctx.models.local.folders import count_tensors, digest_folder
from helm_longctx.models.safe_names import make_safe_name
from helm_longctx.redaction.abbreviation import describe_error, digest
from helm_longctx.tasks.steps import find_step

MADE_FROM = "made_from"
"""Key of a deployment's entry for the mapping that it was made from. HELM ignores it."""

_SETTINGS = ("*.json", "*.jinja", "*.model", "*.txt")
"""Files of a model on the hub that are read before its weights: its configuration and its tokenizer."""

_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
"""Files of which a model has one."""

_WINDOWS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


class ModelFacts(NamedTuple):
    """What is read from a model's files before it is loaded. The folder has its configuration and its tokenizer."""

    path: str
    folder: Path
    commit: str | None
    window: int | None
    has_template: bool


def expand(model: LocalModels) -> list[LocalModels]:
    """Return a mapping for each folder and revision of one, in order of steps, or raise an `InputError`."""
    paths = _find_paths(model.path)
    if isinstance(model.revision, list):
        revisions: list[str | None] = [*model.revision]
    else:
        revisions = [model.revision]
    many = len(paths) * len(revisions) > 1
    expanded = []
    for path in paths:
        for revision in revisions:
            name = _make_name(model, path, revision, many)
            update = {
                "path": path,
                "revision": revision,
                "name": name,
            }
            expanded.append(model.model_copy(update=update))
    if many and model.step is not None:
        raise InputError(
            f"step={model.step} is given, but {model.path} stands for {len(expanded)}"
            " models; leave it out"
        )
    return sorted(expanded, key=lambda one: find_order(str(one.name), one.step))


def find_order(name: str, given: int | None = None) -> tuple[int, str]:
    """Return the order of a model among others: by step, and then by name."""
    step = find_step(name, given)
    return step.number if step else -1, name


def _find_paths(path: str) -> list[str]:
    from helm_longctx.models.local.packaged import MODELS  # this imports transformers

    if path in MODELS:
        return [path]
    if glob.has_magic(path):
        folders = []
        for match in sorted(glob.glob(path)):
            if Path(match).is_dir():
                folders.append(match)
        if not folders:
            raise InputError(
                f"path={path!r} matches no folder; give folders with config.json and"
                " safetensors weights"
            )
    elif Path(path).is_dir() or path.startswith((".", "/", "~")):
        folders = [os.path.expanduser(path)]
    else:
        return [path]  # a name on the hub
    for folder in folders:
        if missing := find_missing(Path(folder)):
            advice = "give a folder with config.json and safetensors weights, or a name on the hub"
            raise InputError(f"path={folder!r} has no {missing}; {advice}")
    return folders


def find_missing(folder: Path) -> str:
    """Return the name of a file that a folder lacks for a model, or an empty text if it has all."""
    if not (folder / "config.json").is_file():
        return "config.json"
    index = folder / _WEIGHTS[1]
    if not index.is_file():
        if (folder / _WEIGHTS[0]).is_file():
            return ""
        return _WEIGHTS[0]
    try:
        parts = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
    except (ValueError, LookupError, TypeError, AttributeError):
        return f"readable {index.name}"
    for part in parts:
        if not (folder / part).is_file():
            return part
    return ""


def _make_name(
    model: LocalModels,
    path: str,
    revision: str | None,
    many: bool,
) -> str:
    is_folder = Path(path).is_dir()
    # The first part of an absolute path is its root: that is no name.
    whole = path.split("/")
    if is_folder:
        whole = [*Path(path).resolve().parts[1:]]
    parts = [make_safe_name(part) for part in whole[-2:]]
    last = "-".join(filter(None, (parts[-1], revision[:12] if revision else "")))
    organization = parts[-2] if len(parts) > 1 else ""
    if model.name is None:
        return f"{organization or 'local'}/{last}"
    if "/" in model.name:
        name = model.name
    else:
        name = f"local/{model.name}"
    if many:
        return f"{name}-{last if is_folder else revision}"
    return name


def read_facts(model: LocalModels) -> ModelFacts:
    """Read what a model's files say of it, without loading it. Raises an `InputError` if there is no such model."""
    from helm_longctx.models.local.packaged import (
        find_model,
    )  # this imports transformers

    path = find_model(model.path)
    commit = None
    folder = Path(path)
    if folder.is_dir():
        path = str(folder.resolve())
        if model.revision is not None:
            raise InputError(
                f"revision={model.revision!r} is given, but path={model.path!r} is a"
                " folder; leave it out"
            )
    else:
        folder = _download_settings(model)
        commit = folder.name
    config = _read_object(model, folder / "config.json")
    tokenizer = folder / "tokenizer_config.json"
    has_template = (folder / "chat_template.jinja").is_file() or bool(
        tokenizer.is_file() and _read_object(model, tokenizer).get("chat_template")
    )
    if model.engine == "transformers":
        _check_quantization(model, config)
    if folder == Path(model.path):
        _check_layers(model, config, folder)
    code = config.get("auto_map")
    if isinstance(code, dict):
        needed = code.get("AutoModelForCausalLM")
    else:
        needed = None
    if needed and model.engine == "transformers" and not model.remote_code:
        from transformers import CONFIG_MAPPING

        if config.get("model_type") not in CONFIG_MAPPING:
            advice = "give remote_code: true, with a name on the hub and a commit of 40 hexadecimal digits as revision"
            raise InputError(
                f"path={model.path!r} needs code of its own ({needed}); {advice}"
            )
    window = model.context
    if window is None:
        window = _find_window(model, config)
    return ModelFacts(
        path=path,
        folder=folder,
        commit=commit,
        window=window,
        has_template=has_template,
    )


def _read_object(model: LocalModels, path: Path) -> dict[str, Any]:
    """Read a JSON file of a model that has an object, or raise an `InputError`."""
    try:
        content = json.loads(path.read_bytes())
    except (
        OSError,
        ValueError,
        RecursionError,
    ) as error:  # the last for JSON that is too deep
        raise InputError(
            f"path={model.path!r}: {path.name} cannot be read ({type(error).__name__})"
        ) from None
    if not isinstance(content, dict):
        raise InputError(f"path={model.path!r}: {path.name} has no JSON object")
    return content


def _parts_of_config(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a configuration and its part about texts, if it has one."""
    parts = []
    for part in (config, config.get("text_config")):
        if isinstance(part, dict):
            parts.append(part)
    return parts


def _find_window(model: LocalModels, config: dict[str, Any]) -> int | None:
    """Return the window that a configuration says, if any. Raises an `InputError` if it is no number."""
    for part in _parts_of_config(config):
        for key in _WINDOWS:
            window = part.get(key)
            if window is None:
                continue
            if not isinstance(window, int) or isinstance(window, bool) or window < 1:
                raise InputError(
                    f"path={model.path!r}: config.json has {key}={shorten(window)}; it"
                    " must be a whole number from 1"
                )
            return window
    return None


def _check_layers(model: LocalModels, config: dict[str, Any], folder: Path) -> None:
    """Raise an `InputError` if a configuration has more layers than its weights have tensors.

    transformers makes all layers before it looks at the weights. A million of them take hours.
    """
    tensors = count_tensors(folder)
    for part in _parts_of_config(config):
        for key in _LAYERS:
            layers = part.get(key)
            if isinstance(layers, int) and tensors is not None and layers > tensors:
                raise InputError(
                    f"path={model.path!r}: config.json has {key}={layers}, and the"
                    f" weights have only {tensors} tensors"
                )


def _check_quantization(model: LocalModels, config: dict[str, Any]) -> None:
    """Raise an `InputError` if a model has a quantization that transformers does not know, and would ignore."""
    named = config.get("quantization_config")
    if named is None:
        return
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    if isinstance(named, dict):
        method = named.get("quant_method")
    else:
        method = None
    # The methods of bitsandbytes have names of their own without the method (transformers/quantizers/auto.py).
    has_own_name = isinstance(named, dict) and (
        "load_in_4bit" in named or "load_in_8bit" in named
    )
    if method not in AUTO_QUANTIZATION_CONFIG_MAPPING and not has_own_name:
        raise InputError(
            f"path={model.path!r}: config.json has the quantization {shorten(method)},"
            " which this version of transformers does not know"
        )


def _download_settings(model: LocalModels) -> Path:
    from huggingface_hub import snapshot_download

    if isinstance(model.revision, str):
        revision = model.revision
    else:
        revision = None
    try:
        return Path(
            snapshot_download(
                model.path, revision=revision, allow_patterns=list(_SETTINGS)
            )
        )
    except Exception as error:  # of the hub and of HTTP
        if model.revision:
            revision = f" with revision={model.revision!r}"
        else:
            revision = ""
        problem = "is neither a folder nor a model that can be downloaded from the hub"
        raise InputError(
            f"path={model.path!r}{revision} {problem} ({describe_error(error)})"
        ) from None


def _digest_files(model: LocalModels, facts: ModelFacts) -> str:
    """Return a digest of the files of a model and of its adapter that are in folders, or an empty text."""
    folders = [] if facts.commit else [facts.folder]
    if model.adapter is not None and Path(model.adapter).is_dir():
        folders.append(Path(model.adapter))
    digests = [digest_folder(folder) for folder in folders]
    if len(digests) == 1:
        return digests[0]
    if digests:
        return digest(" ".join(digests))[:16]
    return ""


def dump_mapping(model: Endpoint | LocalModels) -> dict[str, Any]:
    """Return a model's mapping as HELM's files have it (`MADE_FROM`)."""
    return model.model_dump(
        exclude={"name", "sampling"},
        exclude_defaults=True,
        mode="json",
    )


def make_files(model: LocalModels, facts: ModelFacts) -> HelmFiles:
    """Describe a model that `expand` returned to HELM, and log what is known of it.

    Args:
        facts: what the model's files say (`read_facts`).

    Raises:
        InputError: the model cannot be loaded, or a package is missing.
    """
    from helm_longctx.models.local.packaged import MODELS  # this imports transformers

    _check_packages(model, facts)
    name = str(model.name)
    loading = {
        "load": model.load,
        "adapter": model.adapter,
        "remote_code": model.remote_code,
        "step": model.step,
    }
    arguments = {
        "pretrained_model_name_or_path": model.path
        if model.path in MODELS
        else facts.path,
        **{"revision": facts.commit, "dtype": model.dtype},
        **{
            key: value
            for key, value in loading.items()
            if value not in (None, False, {})
        },
        "batch": model.batch_size,
    }
    if identity := _digest_files(model, facts):
        arguments["digest"] = identity
    client = LOCAL_CLIENT
    if model.engine != "transformers":
        client = ENGINE_CLIENT
        arguments |= {"engine": model.engine, "window": facts.window}
    elif model.attention is not None:
        arguments["attn_implementation"] = model.attention
    spec = {
        "class_name": client,
        "args": {key: value for key, value in arguments.items() if value is not None},
    }
    tokenizer = load_tokenizer(str(facts.folder.resolve()))
    helm_log.info(_describe(model, facts))
    files = describe_deployment(
        name,
        spec,
        tokenizer,
        facts.window,
        about=f"The model in {facts.path}",
        can_chat=facts.has_template,
    )
    files[DEPLOYMENTS][MADE_FROM] = dump_mapping(model)
    return files


def _check_packages(model: LocalModels, facts: ModelFacts) -> None:
    if model.engine != "transformers":
        for name in ("attention", "adapter"):
            if value := getattr(model, name):
                raise InputError(
                    f"{name}={value!r} is for transformers; leave it out with engine={model.engine}"
                )
        require_modules((model.engine,), f"engine={model.engine}", model.engine)
        return
    if model.adapter is not None:
        require_modules(("peft",), f"adapter={model.adapter!r}", "peft")
        is_hub_name = model.adapter.count("/") == 1 and not model.adapter.startswith(
            (".", "/")
        )
        if (
            not is_hub_name
            and not (Path(model.adapter) / "adapter_config.json").is_file()
        ):
            raise InputError(
                f"adapter={model.adapter!r} has no adapter_config.json; give a folder"
                " that PEFT has saved"
            )
    from helm_longctx.models.local.weights import Weights  # this imports torch

    Weights.find(facts.path, facts.commit, model.dtype, model.attention)


def _describe(model: LocalModels, facts: ModelFacts) -> str:
    """Say in a line what a model's window is, and whether it has a chat template."""
    window = facts.window or "unknown: prompts are not cut"
    chat = "yes" if facts.has_template else "no"
    code = ""
    if model.remote_code:
        code = f"; runs code from the hub at {facts.commit}"
    return f"{model.name}: context {window}, chat template: {chat}{code}"
