"""HELM clients on the official packages of OpenAI and Anthropic, made for long prompts.

A deployment names one by class path: `helm_longctx.apis.OpenAIClient` or `helm_longctx.apis.AnthropicClient`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from helm_longctx.apis.anthropic_client import AnthropicClient
    from helm_longctx.apis.openai_client import OpenAIClient

__all__ = ["AnthropicClient", "OpenAIClient"]

_MODULES = {"AnthropicClient": "anthropic_client", "OpenAIClient": "openai_client"}


def __getattr__(name: str) -> Any:
    """Import a client at its first use, because its HTTP library is slow to import and few commands send requests."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
