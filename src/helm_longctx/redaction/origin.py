"""Keeps keys and prompts at the server to which they were sent: they never follow a redirect to another one."""

from __future__ import annotations

from urllib.parse import urlsplit

from helm_longctx.failures import Failure, FailureError
from helm_longctx.redaction.logs import warn_once

_PORTS = {"http": 80, "https": 443}


def check_origin(url: str, target: str) -> None:
    """Check that a redirect stays at the scheme, host and port of the request.

    Args:
        url: address of the request.
        target: address to which its server redirects.

    Raises:
        FailureError: the redirect leads to another origin. The message names both.
    """
    first, second = _origin(url), _origin(target)
    if first == second:
        return
    reason = f"{first} redirects to {second}, which gets no key and no prompt; give the final address"
    warn_once(reason)  # HELM's own clients omit the cause of a failed connection
    raise FailureError(Failure.UNREACHABLE, reason)


def _origin(url: str) -> str:
    """Return the scheme, host and port of an address."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme)
    return f"{parts.scheme}://{parts.hostname}:{port}"
