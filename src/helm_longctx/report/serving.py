"""Changes the replies of helm-server: texts are compressed, and a link to an instance opens that instance."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import wraps
from typing import Any

from bottle import HTTPResponse, request

_TEXTS = ("text/", "application/json", "application/javascript")
_LEVEL = 5

_CONFIG = "/config.js"
"""A script of HELM's that every page loads before any other."""

_FIND_INSTANCE = """
const load = window.fetch;
window.fetch = async (address, ...options) => {
  const reply = await load(address, ...options);
  const id = new URLSearchParams(location.hash.split("?")[1]).get("instance");
  if (!id || !reply.ok || !String(address).endsWith("/instances.json")) return reply;
  const rows = await reply.json();
  return Response.json([...rows.filter((row) => row.id === id), ...rows.filter((row) => row.id !== id)]);
};
"""
"""HELM's page of a run starts with the first ten instances, and looks for that of `?instance=` only among them. So this
script puts that instance first."""


def open_instances(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a route's function that adds a script, so that `?instance=` finds every instance. A plugin for Bottle."""

    @wraps(callback)
    def respond(*arguments: Any, **named: Any) -> Any:
        reply = callback(*arguments, **named)
        return reply + _FIND_INSTANCE if request.path == _CONFIG and isinstance(reply, str) else reply

    return respond


def compress_reply(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a route's function that sends files of text with gzip to clients that take it. A plugin for Bottle.

    The leaderboard's scripts and tables are text of 2 MB.
    """

    @wraps(callback)
    def respond(*arguments: Any, **named: Any) -> Any:
        reply = callback(*arguments, **named)
        if isinstance(reply, HTTPResponse) and _is_compressible(reply):
            data = gzip.compress(reply.body.read(), _LEVEL)
            reply.body.close()
            reply.body = data
            reply.set_header("Content-Encoding", "gzip")
            reply.set_header("Content-Length", str(len(data)))
            # Caches between server and browser must not send compressed text to a client that did not ask for it.
            reply.set_header("Vary", "Accept-Encoding")
        return reply

    return respond


def _is_compressible(reply: HTTPResponse) -> bool:
    return (
        "gzip" in request.get_header("Accept-Encoding", "")
        and reply.status_code == 200
        # Bottle's reply to HEAD has no file.
        and hasattr(reply.body, "read")
        and not reply.get_header("Content-Encoding")
        and str(reply.content_type).startswith(_TEXTS)
    )
