"""HELM clients on the official packages of OpenAI and Anthropic, made for long prompts.

A deployment names one by class path: `helm_longctx.apis.OpenAIClient` or `helm_longctx.apis.AnthropicClient`.
"""

from helm_longctx.apis.anthropic_client import AnthropicClient
from helm_longctx.apis.openai_client import OpenAIClient

__all__ = ["AnthropicClient", "OpenAIClient"]
