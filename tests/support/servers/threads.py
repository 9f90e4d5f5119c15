"""Lets a local HTTP server answer in a thread, and ends it at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer

_SECONDS = 0.01
"""How often a server looks whether it shall end. Python's default, half a second, is how long each test would wait."""


@contextmanager
def serve_in_thread(http: HTTPServer) -> Iterator[str]:
    """Let a server of the loopback interface answer until the block ends, and yield its address without a path."""
    # Headers and body are two writes. The system would hold the second one back until the client's system acknowledges
    # the first one, which takes 40 ms on a connection that is used again.
    http.RequestHandlerClass.disable_nagle_algorithm = True  # type: ignore[attr-defined]
    thread = threading.Thread(target=http.serve_forever, args=(_SECONDS,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
