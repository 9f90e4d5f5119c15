"""Finds the HTTP library of a provider's package: httpx, or httpx2 since openai 3 and anthropic 1.

Both have the same names, but a client accepts only objects of its own library, and an environment can have only one of
them. So no module of ours imports them by name.
"""

from __future__ import annotations

import importlib
import os
import ssl
from functools import cache
from types import ModuleType
from typing import Any

_LIBRARIES = {"httpx": "httpcore", "httpx2": "httpcore2"}
"""The libraries, and the library below each of them that opens connections."""

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables from which the libraries take the certificates that they trust."""


def http_library(client: type) -> ModuleType | None:
    """Return the HTTP library of a class of HTTP clients; None if it is not one of the two."""
    for base in client.__mro__:
        name = base.__module__.partition(".")[0]
        if name in _LIBRARIES and base.__name__ == "Client":
            return importlib.import_module(name)
    return None


def connection_library(library: ModuleType) -> ModuleType:
    """Return httpcore or httpcore2, which opens the connections of an HTTP library."""
    return importlib.import_module(_LIBRARIES[library.__name__])


def response_type(library: Any) -> Any:
    """Return the class of raw responses, for `cast_to` of the client of a provider's package."""
    http = http_library(type(library._client))
    assert http is not None
    return http.Response


def ssl_context(library: ModuleType) -> ssl.SSLContext:
    """Return the certificates that an HTTP library trusts. They are read once, which takes longer than a request."""
    return _make_ssl_context(library, *(os.environ.get(name) for name in _CERTIFICATES))


@cache
def _make_ssl_context(library: ModuleType, *paths: str | None) -> ssl.SSLContext:
    context: ssl.SSLContext = library.create_ssl_context()
    return context


@cache
def derive(ours: type, theirs: type) -> Any:
    """Return a subclass of both classes. The libraries accept streams and authentication only of their own classes."""
    return type(ours.__name__, (ours, theirs), {})
