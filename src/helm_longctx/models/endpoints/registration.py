"""Makes the entries of HELM's YAML files for an endpoint, with the tokenizer by which prompts are cut, and finds the
parts of benchmarks that do not fit it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from helm.benchmark.tokenizer_config_registry import get_tokenizer_config
from helm.benchmark.window_services.no_tokenizer_window_service import (
    NoTokenizerWindowService,
)

from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.errors import InputError
from helm_longctx.models.apis.availability import PATIENCE
from helm_longctx.models.endpoints.files import (
    DEPLOYMENTS,
    METADATA,
    TOKENIZERS,
    HelmFiles,
)
from helm_longctx.models.endpoints.probe import ProbedEndpoint
from helm_longctx.models.fast_tokenizers import FILE, read_fast_tokenizer
from helm_longctx.models.tokenizer_checks import check_size
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.lengths import STANDARD

LOCAL_CLIENT = "helm_longctx.models.local.huggingface.LongContextHuggingFaceClient"
ENGINE_CLIENT = "helm_longctx.models.engines.EngineClient"
LOCAL_CLIENTS = (LOCAL_CLIENT, ENGINE_CLIENT)
"""The clients of models that deployments name and that run in this process."""

_CLASS = "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer"

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer that can be loaded.

    Args:
        name: its name in HELM's registry, or else its hub name or folder.
        begin, end: the tokens at the start and the end of a text, or empty if there are none.
    """

    name: str
    registered: bool = False
    begin: str = ""
    end: str = ""

    def config(self, name: str) -> dict[str, Any] | None:
        """Return an entry of `tokenizer_configs.yaml` with a name, or None if HELM's registry has the tokenizer."""
        if self.registered:
            return None
        # Without the second argument transformers asks at the terminal whether code from the hub may run.
        arguments = {
            "pretrained_model_name_or_path": self.name,
            "trust_remote_code": False,
        }
        spec = {"class_name": _CLASS, "args": arguments}
        return {
            "name": name,
            "tokenizer_spec": spec,
            "prefix_token": self.begin,
            "end_of_text_token": self.end,
        }


def load_tokenizer(name: str) -> Tokenizer:
    """Load a tokenizer by its name in HELM, its hub name or its folder.

    Raises an `InputError` if the tokenizer cannot be loaded, or cannot be used to cut prompts.
    """
    if get_tokenizer_config(name) is not None:
        return Tokenizer(name, registered=True)
    # The path is absolute, because later processes that read the file can run in another folder.
    if Path(name).is_dir():
        path = str(Path(name).resolve())
    else:
        path = name
    check_size(f"tokenizer={name!r}", Path(path) / FILE)

    def load() -> (
        Any
    ):  # as HELM does in a run; this imports transformers and torch, which takes seconds
        from helm.tokenizers.huggingface_tokenizer import HuggingFaceTokenizer

        ignore_broken_torchvision()
        with HuggingFaceTokenizer.create_tokenizer(
            path, trust_remote_code=False
        ) as whole:
            return whole

    try:
        # The import takes a quarter of a second, and a run without a tokenizer does not need it.
        from huggingface_hub import HfApi, try_to_load_from_cache

        if not Path(path).is_dir() and not isinstance(
            try_to_load_from_cache(path, "tokenizer_config.json"), str
        ):
            # The hub is asked once for a name that is not cached. transformers would try for a minute.
            HfApi().model_info(path, timeout=PATIENCE)
        loaded = read_fast_tokenizer(path, load) or load()
        if not loaded.is_fast:
            raise InputError(
                "it is not a fast tokenizer (tokenizer.json), which is needed to cut prompts"
            )
        return Tokenizer(path, begin=loaded.bos_token or "", end=loaded.eos_token or "")
    except Exception as error:  # transformers and the hub raise many kinds
        raise InputError(
            f"tokenizer={name!r} cannot be loaded: {describe_error(error)}"
        ) from None


def find_tokenizer(*candidates: str | None) -> Tokenizer | None:
    """Load the first tokenizer that can be loaded, or None if no candidate is a hub name or a folder.

    Raises an `InputError` if there are such candidates, but none can be loaded.
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


def describe_deployment(
    name: str,
    client_spec: Mapping[str, Any],
    tokenizer: Tokenizer | None,
    window: int | None,
    *,
    about: str,
    can_chat: bool,
) -> HelmFiles:
    """Return an entry for each of HELM's files, by the file's name.

    Args:
        name: the name of the deployment, of its model, and of its tokenizer if HELM's registry does not have it.
        client_spec: the `client_spec` of the deployment.
        window: the model's window in tokens. None if it is not known.
        about: the description of the model.
        can_chat: whether the model answers chats.
    """
    config = None
    fields: dict[str, Any] = {}
    if tokenizer:
        config = tokenizer.config(name)
        # A tokenizer in HELM's registry keeps its name. Any other is registered under the deployment's name.
        fields["tokenizer_name"] = name if config else tokenizer.name
    if window is not None:
        fields["max_sequence_length"] = window
    if len(fields) == 1:
        # HELM's own adapters need both to cut a prompt. With only one they fail, unless the deployment has this class.
        kind = NoTokenizerWindowService
        fields["window_service_spec"] = {
            "class_name": f"{kind.__module__}.{kind.__qualname__}"
        }
    files: HelmFiles = {
        DEPLOYMENTS: {
            "name": name,
            "model_name": name,
            **fields,
            "client_spec": client_spec,
        },
        METADATA: _describe_model(name, about, can_chat),
    }
    if config:
        files[TOKENIZERS] = config
    return files


def make_entries(
    endpoint: ProbedEndpoint,
    name: str,
    tokenizer: Tokenizer | None,
) -> HelmFiles:
    """Return an entry for each of HELM's files."""
    return describe_deployment(
        name,
        endpoint.client_spec(),
        tokenizer,
        endpoint.context,
        about=f"{endpoint.model} at {endpoint.url}",
        can_chat="chat" in endpoint.routes,
    )


def make_local_entries(
    folder: Path,
    name: str,
    context: int | None,
    can_chat: bool,
) -> HelmFiles:
    """Return an entry for each of HELM's files, for a model in a folder that runs in HELM's process.

    Raises an `InputError` if the folder's tokenizer cannot be loaded.
    """
    path = str(folder.resolve())
    client = {
        "class_name": LOCAL_CLIENT,
        "args": {"pretrained_model_name_or_path": path, "reuse_prefix": True},
    }
    return describe_deployment(
        name,
        client,
        load_tokenizer(path),
        context,
        about=f"The model in {path}",
        can_chat=can_chat,
    )


def _describe_model(name: str, about: str, can_chat: bool) -> dict[str, Any]:
    """Return a model's entry of `model_metadata.yaml`."""
    # HELM's own scenarios use this tag to find out whether a model can chat.
    if can_chat:
        follows = ["INSTRUCTION_FOLLOWING_MODEL_TAG"]
    else:
        follows = []
    return {
        "name": name,
        "display_name": name.partition("/")[2],
        "description": about,
        "creator_organization_name": name.partition("/")[0],
        "access": "limited",
        # HELM's metadata must have a date or null, and the server does not say one.
        "release_date": date.today(),
        "tags": ["TEXT_MODEL_TAG", "LIMITED_FUNCTIONALITY_TEXT_MODEL_TAG", *follows],
    }


def find_gaps(
    endpoint: ProbedEndpoint,
    tokenizer: Tokenizer | None,
    benchmarks: Sequence[Benchmark],
) -> Iterator[str]:
    """Yield a line for each reason why parts of the benchmarks do not fit an endpoint."""
    context = endpoint.context
    if context is None:
        yield "no context: the server does not say its length, so prompts are never cut; give --context"
    elif tokenizer is None:
        yield "no tokenizer: prompts are never cut, and the server refuses prompts that are too long; give --tokenizer"
    if context and (
        longer := " ".join(
            label for label, length in STANDARD.items() if length > context
        )
    ):
        outcome = "cut to it" if tokenizer else "too long for it"
        yield f"a context of {context} tokens: prompts of {longer} are {outcome}"
    tasks = []
    for benchmark in benchmarks:
        for entry, category in benchmark.entries.items():
            for task in category.tasks:
                tasks.append((entry, task))
    if "completions" not in endpoint.routes:
        entries = ", ".join(
            dict.fromkeys(entry for entry, task in tasks if not task.chat)
        )
        yield f"no completions: {entries} are sent as chats, but the official code sends completions"
    if "chat" not in endpoint.routes:
        entries = ", ".join(dict.fromkeys(entry for entry, task in tasks if task.chat))
        yield (
            f"no chats: {entries} are sent as completions, but the official code sends"
            " chats; conversations of several turns cannot be sent"
        )
