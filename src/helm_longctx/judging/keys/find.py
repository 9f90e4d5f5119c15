"""Where a judge's key is looked for: its family's own variables, its host's, HELM's credentials file, its library's."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from helm.benchmark.model_deployment_registry import ModelDeployment
from helm.common.object_spec import get_class_by_name
from helm.common.optional_dependencies import OptionalDependencyNotInstalled

from helm_longctx.errors import InputError
from helm_longctx.judging.keys.oauth import ClientCredentials
from helm_longctx.judging.keys.renewal import FixedKey, KeySource
from helm_longctx.judging.keys.tokens import token_source
from helm_longctx.redaction.text import register_secret

FAMILIES = {
    "CLAUDE": r"claude|\banthropic\b",
    "LLAMA": r"llama|\bmeta\b",
    "GPT": r"gpt|\bo[1-9]\b|\bopenai\b",
}
"""Prefixes of judges' own variables, and what names a model of the family; the first that fits."""

LIBRARIES = {
    "AnthropicClient": "ANTHROPIC",
    "AnthropicMessagesClient": "ANTHROPIC",
    "AzureOpenAIClient": "AZURE_OPENAI",
    "OpenAIClient": "OPENAI",
    "OpenAIResponseClient": "OPENAI",
    "OpenAILegacyCompletionsClient": "OPENAI",
    "OpenRouterClient": "OPENROUTER",
    "TogetherClient": "TOGETHER",
    "TogetherChatClient": "TOGETHER",
    "TogetherCompletionClient": "TOGETHER",
}
"""HELM's clients that cannot do without a key, and whose key their library reads from the environment."""

TOKEN_URL = re.compile(r"https://|http://(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?(?:/|$)")
"""Where a client's secret may be sent: nowhere in the clear but to this machine."""

IN_FILE = "the key in HELM's credentials file"


@dataclass(frozen=True)
class FoundKey:
    """A key, or what gives one after the other, and what it is called: never its value."""

    origin: str
    keys: KeySource


class UnavailableJudgeError(InputError):
    """A judge cannot be asked: there is no key for it, or its client's package is missing."""


def find_key(deployment: ModelDeployment, credentials: Mapping[str, Any]) -> FoundKey | None:
    """The key that a deployment's client is to be given; None if it takes none, or can do without.

    Raises:
        InputError: a set of OAuth variables is incomplete, or an `UnavailableJudgeError`.
    """
    needs = _needs(deployment)
    if needs is None:
        return None
    library, needed = needs
    prefixes = [*judge_prefix(deployment), _host_prefix(deployment)]
    found = (
        _first_in_environment(prefixes)
        or _in_credentials(deployment, credentials)
        or _first_in_environment([library] if library else [])
    )
    if found is None and needed:
        raise _missing_key_error(deployment, list(dict.fromkeys([*prefixes, *([library] if library else [])])))
    return found


def _needs(deployment: ModelDeployment) -> tuple[str | None, bool] | None:
    """The prefix of the variable that a client's library reads, and whether it needs a key; None if it takes none."""
    spec = deployment.client_spec
    if "api_key" in spec.args:
        register_secret(str(spec.args["api_key"]))
        return None
    try:
        client = get_class_by_name(spec.class_name)
    except (ImportError, OptionalDependencyNotInstalled) as error:
        raise UnavailableJudgeError(f"judge={deployment.name}: its client cannot be loaded: {error}") from None
    parameter = inspect.signature(client.__init__).parameters.get("api_key")
    if parameter is None:
        return None
    theirs = [base.__name__ for base in client.__mro__ if base.__module__.startswith("helm.clients.")]
    # Grok's client inherits from OpenAI's: its library needs a key, but OpenAI's is none of its business.
    library = LIBRARIES.get(theirs[0]) if theirs else None
    return library, parameter.default is inspect.Parameter.empty or any(name in LIBRARIES for name in theirs)


def judge_prefix(deployment: ModelDeployment) -> list[str]:
    """What the names of the judge's own variables begin with; none for a model of another family."""
    names = f"{deployment.name} {deployment.model_name or ''}".lower()
    return [f"{family}_JUDGE" for family, pattern in FAMILIES.items() if re.search(pattern, names)][:1]


def _host_prefix(deployment: ModelDeployment) -> str:
    return re.sub(r"\W", "_", deployment.host_organization).upper()


def _first_in_environment(prefixes: list[str]) -> FoundKey | None:
    for prefix in prefixes:
        if client := _oauth(prefix):
            return FoundKey(f"{prefix}_CLIENT_ID", token_source(client))
        if key := variable(f"{prefix}_API_KEY"):
            return FoundKey(f"{prefix}_API_KEY", FixedKey(key))
    return None


def _oauth(prefix: str) -> ClientCredentials | None:
    names = [f"{prefix}_{name}" for name in ("CLIENT_ID", "CLIENT_SECRET", "TOKEN_URL")]
    missing = [name for name in names if not variable(name)]
    # Other programs know a GOOGLE_CLIENT_ID, but no GOOGLE_TOKEN_URL.
    meant = any(map(variable, names)) if prefix.endswith("_JUDGE") else bool(variable(names[2]))
    if not meant:
        return None
    if missing:
        given = [name for name in names if name not in missing]
        raise InputError(f"{' and '.join(given)} set, but not {' and '.join(missing)}; see docs/keys.md")
    client_id, client_secret, token_url = map(variable, names)
    if not TOKEN_URL.match(token_url):
        raise InputError(f"{names[2]} is no https:// address, nor one of this machine; see docs/keys.md")
    return ClientCredentials(token_url, client_id, client_secret, variable(f"{prefix}_SCOPE") or None)


def variable(name: str) -> str:
    """The value of an environment variable, without spaces around it; empty if there is none."""
    return os.environ.get(name, "").strip()


def _in_credentials(deployment: ModelDeployment, credentials: Mapping[str, Any]) -> FoundKey | None:
    """As HELM's `provide_api_key` looks, but also for names with dots, which HOCON keeps quoted."""
    names = {name.strip('"'): key for name, key in credentials.get("deployments", {}).items()}
    key = credentials.get(f"{deployment.host_organization}ApiKey", None) or names.get(deployment.name)
    return FoundKey(IN_FILE, FixedKey(key)) if key else None


def _missing_key_error(deployment: ModelDeployment, prefixes: list[str]) -> UnavailableJudgeError:
    keys = ", ".join(f"{prefix}_API_KEY" for prefix in prefixes)
    return UnavailableJudgeError(
        f"judge={deployment.name} needs a key, and there is none; allowed: {keys},"
        f" {prefixes[0]}_CLIENT_ID with {prefixes[0]}_CLIENT_SECRET and {prefixes[0]}_TOKEN_URL,"
        f" or {deployment.host_organization}ApiKey in HELM's credentials.conf; see docs/keys.md"
    )
