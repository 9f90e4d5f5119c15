"""A local proxy in front of a model's server, as faults of serving change what passes, and a model with noise behind it."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from helm_longctx.models.baselines import lexical
from tests.support.servers.models import CHARACTERS
from tests.support.servers.threads import serve_in_thread

Change = Callable[[str], str]
"""A function that changes the text of a message."""

CUT = 6000
"""Characters that a cutting proxy keeps: about 4k tokens of UUIDs."""

SHORT_CUT = 160
"""Characters that a cutting proxy keeps of short prompts."""

TEMPLATE = "<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
"""A chat template that a proxy applies although the server applies its own."""

OTHER_TEMPLATE = (
    "{% for message in messages %}[INST] {{ message['content'] }} [/INST]{% endfor %}"
)
"""The chat template of another family of models, which a server with a real model applies in place of its own."""

TEMPERATURE = 1.5
"""The temperature at which a real model's candidate answers, whatever is asked."""


def keep(text: str) -> str:
    """Return the text as it is."""
    return text


def drop_middle(text: str) -> str:
    """Return the first and the last quarter of the text."""
    return text[: len(text) // 4] + text[-(len(text) // 4) :]


def cut_start(text: str) -> str:
    """Return the end of the text, as servers do that cut from the left."""
    return text[-CUT:]


def cut_short(text: str) -> str:
    """Return the end of a short text."""
    return text[-SHORT_CUT:]


def swap_template(text: str) -> str:
    """Return the text in a second chat template."""
    return TEMPLATE.format(text=text)


class Proxy(NamedTuple):
    """What a proxy changes.

    Args:
        change: changes the text of each message.
        spoils: the share of answers that it replaces.
        fields: what it sets in each request.
    """

    change: Change = keep
    spoils: float = 0.0
    fields: Mapping[str, object] = {}


PROXIES = {
    "equal": Proxy(),
    "drops the middle": Proxy(drop_middle),
    "cuts at 4k": Proxy(cut_start),
    "swaps the template": Proxy(swap_template),
    "adds noise": Proxy(spoils=0.2),
}
"""Proxies in front of a server whose model is simulated."""

REAL_PROXIES = {
    "equal": Proxy(),
    "drops the middle": Proxy(drop_middle),
    "cuts the start": Proxy(cut_short),
    "swaps the template": Proxy(fields={"chat_template": OTHER_TEMPLATE}),
    "adds noise": Proxy(fields={"temperature": TEMPERATURE}),
}
"""Proxies in front of a server with a real model, which gets short prompts."""


class NoisyModel:
    """A model that finds most values in a prompt, and whose answers differ from request to request.

    Args:
        skill: by the smallest number of tokens of a prompt, the share of prompts whose value it finds. A second
            template takes a quarter of that.
        noise: share of requests whose answer is drawn again.
        seed: seed of the noise.
    """

    def __init__(self, skill: Mapping[int, float], noise: float, seed: int):
        self._skill = dict(sorted(skill.items()))
        self._noise = noise
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def __call__(self, prompt: str) -> str:
        """Return the answer to a prompt."""
        with self._lock:
            is_new = self._random.random() < self._noise
            chance = self._random.random()
        skill = [
            share
            for tokens, share in self._skill.items()
            if tokens <= len(prompt) / CHARACTERS
        ][-1]
        skill *= 0.75 if prompt.startswith("<|im_start|>") else 1
        return (
            find_value(prompt)
            if (chance if is_new else _difficulty(prompt)) < skill
            else "I do not know."
        )


@lru_cache(maxsize=4096)
def find_value(prompt: str) -> str:
    """Return the value that a prompt asks for, if the prompt has it."""
    return lexical.answer(prompt)


@lru_cache(maxsize=4096)
def _difficulty(prompt: str) -> float:
    """Return the place of a prompt's question among all questions, from easy (0) to hard (1)."""
    return (
        int(hashlib.sha256(prompt.strip()[-150:].encode()).hexdigest()[:8], 16) / 16**8
    )


@contextmanager
def run_proxy(address: str, proxy: Proxy, seed: int = 0) -> Iterator[str]:
    """Run a proxy in front of a server until the block ends, and return its address.

    Args:
        address: address of the server.
        proxy: what it changes.
        seed: seed of the answers that it spoils.
    """
    noise = random.Random(seed)
    lock = threading.Lock()

    def change_reply(reply: dict[str, Any]) -> dict[str, Any]:
        with lock:
            is_spoiled = noise.random() < proxy.spoils
        if is_spoiled:
            reply["choices"][0]["message"]["content"] = "lost"
        return reply

    values = {
        "target": urlsplit(address).netloc,
        "proxy": proxy,
        "end": staticmethod(change_reply),
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), values))
    with serve_in_thread(server) as own_address:
        yield own_address


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target: str
    proxy: Proxy
    end: Callable[[dict[str, Any]], dict[str, Any]]

    def setup(self) -> None:
        super().setup()
        self._upstream = HTTPConnection(self.target)

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self._upstream.request("GET", self.path)
        self._pass_on(keep)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for message in body["messages"]:
            message["content"] = self.proxy.change(message["content"])
        content = json.dumps({**body, **self.proxy.fields})
        self._upstream.request(
            "POST", self.path, content, {"Content-Type": "application/json"}
        )
        self._pass_on(self.end)

    def _pass_on(self, change: Callable[[Any], Any]) -> None:
        response = self._upstream.getresponse()
        content = response.read()
        if response.status == 200:
            content = json.dumps(change(json.loads(content))).encode()
        self.send_response(response.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
