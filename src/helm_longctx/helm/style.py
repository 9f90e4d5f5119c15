"""Chat or completion: what the task's official configuration and the deployment allow."""

from __future__ import annotations

from helm.benchmark.model_deployment_registry import ModelDeployment, get_model_deployment
from helm.benchmark.model_metadata_registry import INSTRUCTION_FOLLOWING_MODEL_TAG, model_has_tag
from helm.common.object_spec import get_class_by_name

from helm_longctx.protocol.prompt import Form

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
"""HELM clients that send the prompt as it stands."""

MESSAGE_CLIENTS = frozenset(
    {
        "OpenAIClient",
        "OpenAIResponseClient",
        "AnthropicMessagesClient",
        "GoogleGenAIClient",
        "HuggingFaceClient",
        "LiteLLMCompletionClient",
        "LongContextHuggingFaceClient",
        "BaselineClient",
    }
)
"""Clients, and those derived from them, that send a request's messages; HELM's others leave them out or fail."""

HUGGING_FACE_CLIENT = "helm.clients.huggingface_client.HuggingFaceClient"


BOTH_FORMS_CLIENT = "helm_longctx.models.hf.LongContextHuggingFaceClient"
"""Ours, which chats where a request has `messages`, if only none before the prompt, and else sends the prompt raw."""


def deployment_form(name: str) -> Form | None:
    """What a deployment makes of a prompt: raw text, or the user turn of a chat; None if the request says which.

    Local Hugging Face models: `apply_chat_template` where it is set. Other HELM clients chat, but for those that are
    known to send raw text. Where the client does not tell, an instruction-following model chats.
    """
    deployment = get_model_deployment(name)
    client = deployment.client_spec.class_name
    if client == BOTH_FORMS_CLIENT:
        return None if _follows_instructions(deployment) else "completion"
    if client in RAW_TEXT_CLIENTS:
        return "completion"
    if client == HUGGING_FACE_CLIENT:
        template = deployment.client_spec.args.get("apply_chat_template")
        return _form(template if template is not None else _follows_instructions(deployment))
    return _form(client.startswith("helm.clients.") or _follows_instructions(deployment))


def resolve_style(style: str, deployment: str) -> Form | None:
    """The form to send: what was asked for, else (`auto`) what the deployment makes of a prompt; None: the task's.

    HELMET sends a raw completion for recall, RAG, re-ranking and ICL, also to instruction-tuned models, and its chat
    template for long-document QA, summarization and citations; API models always chat. Most deployments do one of the
    two, so a category is sent as HELMET sends it by choosing the deployment: see docs/models.md.
    """
    if style == "chat":
        return "chat"
    return "completion" if style == "completion" else deployment_form(deployment)


def takes_both_forms(deployment: str) -> bool:
    """Whether each request must say which form it has."""
    return bool(get_model_deployment(deployment).client_spec.class_name == BOTH_FORMS_CLIENT)


def sends_messages(deployment: str) -> bool:
    """Whether its client sends a request's `messages`, a conversation or a system message among them.

    A local model without a chat template is sent none.
    """
    name = get_model_deployment(deployment).client_spec.class_name
    if name in (HUGGING_FACE_CLIENT, BOTH_FORMS_CLIENT) and deployment_form(deployment) == "completion":
        return False
    client = get_class_by_name(name)
    return any(base.__name__ in MESSAGE_CLIENTS for base in client.__mro__)


def _form(chats: bool) -> Form:
    return "chat" if chats else "completion"


def _follows_instructions(deployment: ModelDeployment) -> bool:
    return model_has_tag(deployment.model_name or deployment.name, INSTRUCTION_FOLLOWING_MODEL_TAG)
