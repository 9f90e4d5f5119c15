"""What a deployment takes: chats or completions, and how the tokens of answers are drawn."""

from collections.abc import Mapping
from typing import Any

from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.model_deployment_registry import (
    DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT,
    ModelDeployment,
    get_model_deployment,
)
from helm.benchmark.model_metadata_registry import (
    INSTRUCTION_FOLLOWING_MODEL_TAG,
    model_has_tag,
)
from helm.benchmark.run_spec import RunSpec
from helm.common.object_spec import get_class_by_name
from helm.common.optional_dependencies import OptionalDependencyNotInstalled

from helm_longctx.errors import InputError
from helm_longctx.models.apis.provider import helm_clients
from helm_longctx.tasks.prompt import Style
from helm_longctx.tasks.request_settings import Sampling
from helm_longctx.tasks.stored_entry import read_entry

RAW_TEXT_CLIENTS = frozenset(
    f"helm.clients.{name}"
    for name in (
        "vllm_client.VLLMClient",
        "openai_client.OpenAILegacyCompletionsClient",
        "together_client.TogetherClient",
        "together_client.TogetherCompletionClient",
        "megatron_client.MegatronClient",
        "lit_gpt_client.LitGPTClient",
        "simple_client.SimpleClient",
        "http_model_client.HTTPModelClient",
    )
)
"""HELM's clients that send the prompt unchanged as a completion."""

_MESSAGE_CLIENTS = frozenset(
    {"GoogleGenAIClient", "HuggingFaceClient", "LiteLLMCompletionClient"}
)
"""HELM's clients that send a request's messages, besides those in the records of providers. Classes derived from them
do, too; other clients omit them or fail."""

_OF_HELM = ("temperature", "top_p")
"""What HELM's own requests, and so HELM's clients, can say."""

HUGGING_FACE_CLIENT = "helm.clients.huggingface_client.HuggingFaceClient"


def find_client_arguments(deployment: str) -> Mapping[str, Any]:
    """Return the arguments of a deployment's client; none if it is not registered."""
    registered = DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT.get(deployment)
    if registered is None:
        return {}
    return registered.client_spec.args or {}


def deployment_style(name: str) -> Style | None:
    """Return the style in which a deployment sends a prompt, or None if it takes both and the request must say which.

    HELMET sends completions for recall, RAG, re-ranking and ICL, also to instruction-tuned models, and chats for
    long-document QA, summarization and citations. It always sends chats to API models. Most deployments support only
    one style, so users choose the deployment to get HELMET's style (docs/models.md).

    - A client's class can declare the style (`request_form`, as in `helm_longctx.models.apis`). If it takes both,
      models that do not follow instructions get completions.
    - HELM's `HuggingFaceClient` has `apply_chat_template`. If it is not set, models that follow instructions get chats.
    - HELM's other clients send chats, except `RAW_TEXT_CLIENTS`.
    - Any other client sends chats if the model follows instructions.
    """
    deployment = get_model_deployment(name)
    style = _declared_style(deployment)
    # A base model cannot chat, even if its client can send chats.
    if style == "both":
        return None if _follows_instructions(deployment) else "completion"
    client = deployment.client_spec.class_name
    template = None
    if client == HUGGING_FACE_CLIENT:
        template = deployment.client_spec.args.get("apply_chat_template")
    if style is not None:
        chats = style == "chat"
    elif client in RAW_TEXT_CLIENTS or template is not None:
        chats = bool(template)
    else:
        is_helms = client.startswith("helm.clients.") and client != HUGGING_FACE_CLIENT
        chats = is_helms or _follows_instructions(deployment)
    return "chat" if chats else "completion"


def takes_both_styles(deployment: str) -> bool:
    """Whether a deployment takes both styles, so that each request must say which one it has."""
    return _declared_style(get_model_deployment(deployment)) == "both"


def sends_messages(deployment: str) -> bool:
    """Whether a deployment's client sends `messages`, as it can declare; with completions it does not."""
    record = get_model_deployment(deployment)
    client = _client_class(record)
    if getattr(client, "sends_messages", False):
        return True
    if (
        _declared_style(record) is not None
        or record.client_spec.class_name == HUGGING_FACE_CLIENT
    ):
        return deployment_style(deployment) != "completion"
    names = _MESSAGE_CLIENTS.union(
        name for name, helm_client in helm_clients() if helm_client.sends_messages
    )
    return any(base.__name__ in names for base in client.__mro__)


def _declared_style(deployment: ModelDeployment) -> str | None:
    """Return the style that the client's class declares, if it does: `chat`, `completion` or `both`."""
    declare = getattr(_client_class(deployment), "request_form", None)
    if declare:
        return declare(deployment.client_spec.args or {})
    return None


def _client_class(deployment: ModelDeployment) -> type:
    """Return the client's class. `object` if it cannot be loaded; HELM reports that error when it makes the client."""
    try:
        return get_class_by_name(deployment.client_spec.class_name)
    except (ImportError, OptionalDependencyNotInstalled):
        return object


def _follows_instructions(deployment: ModelDeployment) -> bool:
    return model_has_tag(
        deployment.model_name or deployment.name, INSTRUCTION_FOLLOWING_MODEL_TAG
    )


def check_sampling(spec: RunSpec) -> None:
    """Check what a run's entry says of how tokens are drawn. A run of another package's scenario says nothing.

    Args:
        spec: without a deployment, only what holds for all is checked.

    Raises:
        InputError: an argument has no effect, or the deployment does not take it.
    """
    entry = read_entry(spec)
    if entry is not None:
        check_drawing(entry.settings.request.sampling, spec.adapter_spec)


def check_drawing(sampling: Sampling, spec: AdapterSpec) -> None:
    """Check sampling for an adapter spec, as `check_sampling` does."""
    given = dict(sampling.items())
    without_effect = [
        name for name in given if name != "temperature" and not spec.temperature
    ]
    if without_effect:
        name = without_effect[0]
        raise InputError(
            f"{name}={given[name]:.12g} has no effect at a temperature of 0; give"
            " temperature=, such as temperature=0.6",
            argument=name,
        )
    if not given or not spec.model_deployment:
        return
    deployment = get_model_deployment(spec.model_deployment)
    declare = getattr(_client_class(deployment), "takes_sampling", None)
    taken = declare(deployment.client_spec.args or {}) if declare else _OF_HELM
    if refused := [name for name in given if name not in taken]:
        if taken:
            what = f"it takes {', '.join(taken)}"
        else:
            what = "it always takes the most likely token"
        raise InputError(
            f"{refused[0]}={given[refused[0]]:.12g} cannot be sent to"
            f" {spec.model_deployment}: {what}; leave it out"
        )
