"""A local server that speaks the OpenAI completions and chat protocols."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str], str]
"""From a prompt to the answer."""


@contextmanager
def serve(answer: Answer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The base address, and the bodies of requests as they come, each with its `path`."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append({**body, "path": self.path})
            chat = self.path.endswith("/chat/completions")
            text = answer(body["messages"][0]["content"] if chat else body["prompt"])
            logprobs = {"tokens": [text], "token_logprobs": [0.0], "top_logprobs": [{text: 0.0}], "text_offset": [0]}
            choice = {"index": 0, "finish_reason": "stop", "logprobs": None if chat else logprobs}
            choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
            kind = "chat.completion" if chat else "text_completion"
            reply = {"id": "1", "object": kind, "created": 1, "model": body["model"], "choices": [choice]}
            reply["usage"] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            content = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/", requests
    finally:
        server.shutdown()
        server.server_close()
