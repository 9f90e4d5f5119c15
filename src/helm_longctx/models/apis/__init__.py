"""HELM clients on the official packages of providers, made for long prompts.

A deployment names one by class path: `helm_longctx.models.apis.OpenAIClient` or
`helm_longctx.models.apis.AnthropicClient`.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return the client of a provider. Importing this module imports none."""
    from helm_longctx.models.apis.provider import our_providers, providers

    # Ours come first, so that the provider of another package can derive its client from one of them.
    for find in (our_providers, lambda: providers().values()):
        if client := next(
            (spec.client for spec in find() if spec.client.__name__ == name), None
        ):
            return client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
