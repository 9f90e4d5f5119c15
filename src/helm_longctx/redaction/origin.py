"""Keeps keys and prompts at the server to which they were sent: they never follow a redirect to another one."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from helm_longctx.failures import Failure, FailureError
from helm_longctx.redaction.logs import warn_once

_PORTS = {"http": 80, "https": 443}


def check_origin(url: str, target: str) -> None:
    """Raise a `FailureError` if a redirect leaves the scheme, host and port of a request."""
    if url == target:  # nearly all requests
        return
    first = _origin(url)
    second = _origin(target)
    if first == second:
        return
    reason = f"{first} redirects to {second}, which gets no key and no prompt; give the final address"
    warn_once(reason)  # HELM's own clients omit the cause of a failed connection
    raise FailureError(Failure.UNREACHABLE, reason)


def is_direct(url: str) -> bool:
    """Whether requests to an address with keys or prompts use no proxy of the environment.

    A proxy reads everything that is sent over http. Over https it learns only the name of the server. Nobody else needs
    to know what is sent to this machine.
    """
    return is_local(url) or urlsplit(url).scheme != "https"


def is_local(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost" or host.endswith(".localhost")


def _origin(url: str) -> str:
    """Return the scheme, host and port of an address."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme)
    return f"{parts.scheme}://{parts.hostname}:{port}"
