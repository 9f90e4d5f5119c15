"""A local server that issues tokens, and answers chat requests that carry one of them."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tests.support.servers.threads import serve_in_thread

CLIENT_ID = "judge-client"
CLIENT_SECRET = 'cs/Tr0ub4dor+&3 ="x'


@dataclass
class TokenServer:
    """What the server does, and what it was asked.

    Attributes:
        life: seconds of a token, None to leave it out.
        auth: where it wants the client's secret: basic, post or any.
        faults: statuses with which it answers the next requests for tokens.
        keys: further keys that chat requests may carry.
        lost: tokens that it calls expired, whatever it said.
    """

    url: str = ""
    life: float | None = 3600
    auth: str = "any"
    faults: list[int] = field(default_factory=list)
    answer: dict[str, Any] | None = None
    keys: set[str] = field(default_factory=set)
    tokens: dict[str, float] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    asked: list[dict[str, str]] = field(default_factory=list)
    used: list[str] = field(default_factory=list)

    def token(self, headers: Any, body: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Return the reply to a request for a token, slowly enough for others to arrive meanwhile."""
        self.asked.append(body)
        time.sleep(0.05)
        if self.faults:
            return self.faults.pop(0), {"trouble": headers["Authorization"]}
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        ways = {
            "basic": headers["Authorization"] == f"Basic {basic}",
            "post": (body.get("client_id"), body.get("client_secret"))
            == (CLIENT_ID, CLIENT_SECRET),
        }
        if not ways.get(self.auth, any(ways.values())):
            told = (
                f"wrong secret {body.get('client_secret')} {headers['Authorization']}"
            )
            return 401, {"error": "invalid_client", "error_description": told}
        value = f"opaque.token.{len(self.tokens)}.{time.time_ns()}"
        self.tokens[value] = time.time() + (
            self.life if self.life is not None else 3600
        )
        life = {} if self.life is None else {"expires_in": self.life}
        return 200, self.answer or {
            "access_token": value,
            "token_type": "Bearer",
            **life,
        }

    def chat(self, headers: Any, path: str) -> tuple[int, dict[str, Any]]:
        """Return the reply to a chat request. A request without a valid key gets everything that it sent back."""
        key = headers["Authorization"].removeprefix("Bearer ")
        self.used.append(key)
        if key not in self.keys and (
            key in self.lost or self.tokens.get(key, 0) < time.time()
        ):
            return 401, {
                "error": {
                    "message": f"Incorrect key: {key}; you sent {dict(headers)} to {path}",
                    "code": 401,
                }
            }
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "fine"},
        }
        return 200, {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }


@contextmanager
def serve_tokens(**behaviour: Any) -> Iterator[TokenServer]:
    """Start a server at `url`, with `/token` and `/v1/chat/completions`."""
    state = TokenServer(**behaviour)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if self.path == "/token":
                status, reply = state.token(
                    self.headers, {k: v[0] for k, v in parse_qs(body).items()}
                )
            else:
                status, reply = state.chat(self.headers, self.path)
            content = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    class Server(ThreadingHTTPServer):
        request_queue_size = 64

    server = Server(("127.0.0.1", 0), Handler)
    with serve_in_thread(server) as state.url:
        yield state
