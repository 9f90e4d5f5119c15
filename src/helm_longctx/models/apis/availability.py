"""Checks whether the model of a deployment exists: by a tiny request, or in the list of its server.

A list costs nothing, but it can be wrong: hosts list models that they do not serve, Azure lists models instead of
deployments, and some servers have no list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from helm.clients.client import Client
from helm.common.request import Request

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of
from helm_longctx.models.apis.attempt import try_once
from helm_longctx.models.apis.listing import ListedModel, get_model, list_models, nearest
from helm_longctx.models.apis.oauth import TokenError
from helm_longctx.models.apis.usage import is_empty
from helm_longctx.redaction.abbreviation import abbreviate, describe_error
from helm_longctx.redaction.text import redact

PROMPT = "Reply with the word yes."

FEWEST_TOKENS = 16
"""The smallest output limit that OpenAI's newer models accept."""

MISSING = (Failure.UNKNOWN_MODEL, Failure.BAD_KEY)
"""Failures after which no later request can succeed. All others may pass, or say nothing about the model."""


@dataclass(frozen=True)
class Availability:
    """Whether a model exists.

    Args:
        failure: why it did not answer, or is not known to exist; None if it exists.
        reason: the text of the failure, without secrets and prompts.
        listed: what the server's list says about the model; None if it was not looked up.
        is_silent: whether it answered with an empty text, and did not reason.
    """

    failure: Failure | None = None
    reason: str = ""
    listed: ListedModel | None = None
    is_silent: bool = False

    @property
    def exists(self) -> bool | None:
        """Whether the model exists and the key is right; None if that is unknown."""
        return True if self.failure is None else False if self.failure in MISSING else None


def tiny_request(model: str, deployment: str, messages: list[dict[str, str]] | None = None) -> Request:
    """Return a request that costs next to nothing.

    Args:
        messages: the messages before the prompt.
    """
    return Request(model, deployment, prompt=PROMPT, messages=messages, max_tokens=FEWEST_TOKENS)


def ask_model(client: Client, request: Request) -> Availability:
    """Send a tiny request once, and return what its result says about the model.

    Raises:
        InputError: the client cannot be used, for example because a package is missing.
    """
    result = try_once(client.make_request, request).result
    failure = failure_of(result)
    is_silent = failure is None and is_empty(result) and not result.completions[0].thinking
    return Availability(failure, abbreviate(redact(" ".join((result.error or "").split()))), is_silent=is_silent)


def list_available(client: Any) -> tuple[list[ListedModel], Availability]:
    """Return the models in the list of a server, and why there is no list.

    Args:
        client: a HELM client on the package of a provider.
    """
    try:
        return list_models(client), Availability()
    except Exception as error:  # of the package, of its HTTP library or of a parser
        status = getattr(error, "status_code", None)
        # Only 401 means that the key is wrong. Some servers answer 403 or 404 because they have no models route.
        kind = Failure.BAD_KEY if status == 401 else Failure.UNKNOWN
        # Without a status there was no response.
        if isinstance(error, TokenError):
            kind = error.kind
        elif status is None and not isinstance(error, ValueError | InputError):
            kind = Failure.UNREACHABLE
        # The cause of a connection error says more than the error.
        cause = error if isinstance(error, InputError) else error.__cause__ or error
        return [], Availability(kind, describe_error(cause))


def look_up(client: Any, name: str, models: Sequence[ListedModel]) -> Availability:
    """Return what a server with a list says about a model.

    Args:
        models: the list. A model that it lacks is looked up by its name, because lists can lack aliases.
    """
    if found := next((each for each in models if each.name == name), None):
        return Availability(listed=found)
    try:
        return Availability(listed=get_model(client, name))
    except Exception as error:  # as above
        if getattr(error, "status_code", None) != 404:
            return Availability(Failure.UNKNOWN, "the list may be incomplete")
        return Availability(Failure.UNKNOWN_MODEL, f"it has {nearest(name, [each.name for each in models])}")
