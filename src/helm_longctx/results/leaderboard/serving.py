"""Changes helm-server: it refuses other sites and links out of its folders, compresses texts, and opens instances."""

import gzip
import os
import re
import socket
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIServer

from bottle import HTTPError, HTTPResponse, request

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
"""HELM's page of a run starts with the first ten instances, and looks for the instance of `?instance=` only among them.
So this script puts that instance first."""

_STYLES = """
const style = document.createElement("style");
style.textContent = `
  table.shadow-md :is(th, td) { padding: 0.5rem 0.3rem; font-size: 0.8125rem; }
  table.shadow-md th > div { width: auto; min-width: 0; }
  table.shadow-md :is(th, td):first-child {
    position: sticky; left: 0; z-index: 1; min-width: 9.5rem; background-color: white; overflow-wrap: anywhere;
  }
  table.shadow-md td:first-child { font-size: 0.9375rem; }
  table.shadow-md td:last-child { min-width: 9rem; }
  div:has(> table.shadow-md) { overflow-x: auto; }
  span.tremor-Badge-root { width: auto; flex-shrink: 1; }
  span.tremor-Badge-text { white-space: normal; }
  @media (max-width: 640px) {
    main .flex-row:has(> .w-1\\\\/4 select) { flex-direction: column; }
    main .w-1\\\\/4:has(select) { width: 100%; padding-top: 0.5rem; }
  }
`;
document.head.append(style);
"""
"""HELM's columns are 224 pixels wide, so HELMET's categories at one length would need 2,300. Wide tables scroll and not
the whole page. On phones the title is above the selector."""


# Any port, because a tunnel can forward another port to the server.
_LOOPBACK_HOST = re.compile(
    r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE
)


_IDLE = 60.0
"""Seconds after which a connection is closed that sends nothing."""


class _ThreadingServer(ThreadingMixIn, WSGIServer):
    """A server with a thread for each connection, so that one that sends nothing keeps no other one waiting."""

    daemon_threads = True

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection."""
        connection, address = super().get_request()
        connection.settimeout(_IDLE)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing if a browser has closed or left its connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def change_server(server: Any) -> None:
    """Let HELM's server serve only this machine, refuse requests of other sites, and compress replies."""
    # HELM's server has no options for the address and the kind of server, and its own code calls `app.run`.
    run = server.app.run
    server.app.run = lambda **options: run(
        **{**options, "host": "127.0.0.1", "server_class": _ThreadingServer}
    )
    server.app.add_hook("before_request", _refuse_other_sites)
    server.static_file = _refuse_links_out(
        server.static_file
    )  # every route of HELM's uses it to send a file
    server.app.install(_open_instances)
    server.app.install(_compress_reply)


def _refuse_other_sites() -> None:
    """Refuse a request that a web page of another site makes. A hook for Bottle, before any route.

    A site can give its own name the address 127.0.0.1 (DNS rebinding): `Host` shows that. It can load our files as
    scripts: `Sec-Fetch-Site` shows that. Links on pages of other sites still work.
    """
    if not _LOOPBACK_HOST.fullmatch(request.get_header("Host", "")):
        raise HTTPError(
            403,
            "The address must name this machine, such as http://127.0.0.1 or http://localhost.",
        )
    site = request.get_header("Sec-Fetch-Site", "none")
    mode = request.get_header("Sec-Fetch-Mode")
    if site not in ("same-origin", "none") and mode != "navigate":
        raise HTTPError(403, "Pages of other sites cannot read this server.")


def _refuse_links_out(
    send_file: Callable[..., HTTPResponse],
) -> Callable[..., HTTPResponse]:
    """Return Bottle's `static_file` with one more check: links must not lead out of the folders with results.

    HELM's link `latest` does not. HELM's own pages can be links, because some installers link the files of packages.
    """

    @wraps(send_file)
    def respond(filename: str, root: str, **options: Any) -> HTTPResponse:
        path = os.path.abspath(
            os.path.join(root, filename.strip("/\\"))
        )  # as Bottle computes it
        is_outside = os.path.exists(path) and not Path(path).resolve().is_relative_to(
            Path(root).resolve()
        )
        if is_outside and root != request.app.config["helm.staticpath"]:
            return HTTPError(403, "The path leads out of the folder that is served.")
        return send_file(filename, root, **options)

    return respond


def _open_instances(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a route's function that adds a script, so that `?instance=` finds every instance. A plugin for Bottle."""

    @wraps(callback)
    def respond(**named: Any) -> Any:
        reply = callback(**named)
        if request.path == _CONFIG and isinstance(reply, str):
            return reply + _FIND_INSTANCE + _STYLES
        return reply

    return respond


def _compress_reply(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Return a route's function that sends text, such as 2 MB of tables, with gzip to clients that take it."""

    @wraps(callback)
    def respond(**named: Any) -> Any:
        reply = callback(**named)
        is_compressible = (
            isinstance(reply, HTTPResponse)
            and "gzip" in request.get_header("Accept-Encoding", "")
            and reply.status_code == 200
            # Bottle's reply to HEAD has no file.
            and hasattr(reply.body, "read")
            and not reply.get_header("Content-Encoding")
            and str(reply.content_type).startswith(_TEXTS)
        )
        if is_compressible:
            data = gzip.compress(reply.body.read(), _LEVEL)
            reply.body.close()
            reply.body = data
            reply.set_header("Content-Encoding", "gzip")
            reply.set_header("Content-Length", str(len(data)))
            # Caches between server and browser must not send compressed text to a client that did not ask for it.
            reply.set_header("Vary", "Accept-Encoding")
        return reply

    return respond
