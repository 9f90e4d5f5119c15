"""Servers that answer each request in a wrong way, and commands that ask them.

Each command must end in time, with one line for a reason and no traceback, and must not pass a server without an answer.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import programs
from tests.support.json_http import JsonHandler, serve_handler
from tests.support.own_time import wait_in_own_time
from tests.support.servers.hostile import Act, bomb, drip, send

MODELS = {
    "object": "list",
    "data": [{"id": "m", "object": "model", "max_model_len": 100_000}],
}
MESSAGE = {"role": "assistant", "content": "7"}
USAGE = {"prompt_tokens": 900, "completion_tokens": 1, "total_tokens": 901}

SECONDS = 90.0
"""A command's own time may be so long. The limits of a request are a few seconds."""

STATUSES = range(4)

TOP = [
    {"token": "7", "logprob": -0.1, "bytes": [55]},
    {"token": "8", "logprob": -3.0, "bytes": [56]},
]
TOKEN = {"token": "7", "logprob": -0.1, "bytes": [55], "top_logprobs": TOP}


def make_reply(
    message: Any = None, usage: Any = None, tokens: Any = None, **fields: Any
) -> dict[str, Any]:
    """Return a chat's reply with some parts replaced."""
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": MESSAGE if message is None else message,
        "logprobs": {"content": [TOKEN] if tokens is None else tokens},
        "text": "7",
    }
    reply = {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": USAGE if usage is None else usage,
    }
    return {**reply, **fields}


def lie_about_cache(count: Any) -> Act:
    """Return an action that reports a number of cached tokens."""
    return send(
        make_reply(usage={**USAGE, "prompt_tokens_details": {"cached_tokens": count}})
    )


def lie_about_tokens(**counts: Any) -> Act:
    """Return an action that reports numbers of tokens."""
    return send(make_reply(usage={**USAGE, **counts}))


def lie_about_probabilities(*values: Any) -> Act:
    """Return an action that reports log-probabilities."""
    top = [{"token": str(7 + n), "logprob": value} for n, value in enumerate(values)]
    token = {"token": "7", "logprob": values[0], "top_logprobs": top}
    return send(make_reply(tokens=[token]))


def send_text(text: str) -> Act:
    """Return an action that sends a text as JSON."""
    return send(text.encode(), **{"Content-Type": "application/json"})


def close(handler: Any) -> None:
    """Close the connection without a reply, as a server that crashes does."""
    handler.close_connection = True


def cut(handler: Any) -> None:
    """Send fewer bytes than are announced."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"id": ')
    handler.close_connection = True


ERROR = {"error": {"message": "slow down", "type": "rate_limit", "code": None}}
DEEP = '{"choices": ' + "[" * 50_000 + "]" * 50_000 + "}"

WITHOUT_ANSWER: dict[str, Act] = {
    "429 for ever": send(ERROR, 429),
    "429 and a wait of ages": send(ERROR, 429, **{"Retry-After": "99999999"}),
    "429 and a wait before the past": send(ERROR, 429, **{"Retry-After": "-5"}),
    "429 and a wait that is no number": send(
        ERROR, 429, **{"Retry-After": "soon\tNaN"}
    ),
    "500 for ever": send({"error": {"message": "no"}}, 500),
    "503 with a page": send(
        b"<html><body>" + b"x" * 100_000, 503, **{"Content-Type": "text/html"}
    ),
    "401 with the key in it": send(
        {"error": {"message": "bad key sk-attack-0123456789abcdef"}}, 401
    ),
    "200 with an error": send(ERROR),
    "an empty body": send(b""),
    "no JSON": send_text("<html>"),
    "a list": send_text("[]"),
    "null": send_text("null"),
    "JSON that is deep": send_text(DEEP),
    "no UTF-8": send(b'{"choices": "\xff\xfe"}'),
    "no choices": send(make_reply(choices=[])),
    "choices that are null": send(make_reply(choices=None)),
    "choices that are a text": send(make_reply(choices="abc")),
    "a message that is a number": send(make_reply(message=5)),
    "a content that is a number": send(
        make_reply(message={"role": "assistant", "content": 5})
    ),
    "no content": send(make_reply(message={"role": "assistant", "content": None})),
    "an empty content": send(make_reply(message={"role": "assistant", "content": ""})),
    "a bomb": bomb(100 << 20, make_reply()),
    "a closed connection": close,
    "a cut body": cut,
    "spaces that never end": drip(make_reply(), 0.2),
}
"""Actions that give no answer."""


def take_turns(*acts: Act) -> Act:
    """Return an action that does one after the other, again and again."""
    turns = itertools.cycle(acts)
    lock = threading.Lock()

    def act(handler: Any) -> None:
        with lock:
            chosen = next(turns)
        chosen(handler)

    return act


def answer_late(seconds: float) -> Act:
    """Return an action that answers after a time."""
    answer = send(make_reply())

    def act(handler: Any) -> None:
        time.sleep(seconds)
        answer(handler)

    return act


WITH_ANSWER: dict[str, Act] = {
    "429 every second time": take_turns(send(ERROR, 429), send(make_reply())),
    "503 two of three times": take_turns(
        send(ERROR, 503), send(ERROR, 503), send(make_reply())
    ),
    "a closed connection every second time": take_turns(close, send(make_reply())),
    "an answer after a second": answer_late(1.0),
    "a negative count of cached tokens": lie_about_cache(-5),
    "a huge count of cached tokens": lie_about_cache(10**30),
    "more cached tokens than tokens": lie_about_cache(901),
    "true cached tokens": lie_about_cache(True),
    "cached tokens that are a text": lie_about_cache("many"),
    "details that are a list": send(
        make_reply(usage={**USAGE, "prompt_tokens_details": [1]})
    ),
    "a negative count of tokens": lie_about_tokens(prompt_tokens=-1, total_tokens=-1),
    "a count of tokens beyond floats": send_text(
        json.dumps(make_reply()).replace(
            '"prompt_tokens": 900', '"prompt_tokens": 1e999'
        )
    ),
    "a count of tokens that is NaN": send_text(
        json.dumps(make_reply()).replace('"prompt_tokens": 900', '"prompt_tokens": NaN')
    ),
    "a usage that is a text": send(make_reply(usage="900")),
    "a log-probability above zero": lie_about_probabilities(2.0, -1.0),
    "log-probabilities that sum above one": lie_about_probabilities(-0.01, -0.01),
    "a log-probability that is NaN": lie_about_probabilities(float("nan"), -1.0),
    "a log-probability of minus infinity": lie_about_probabilities(float("-inf"), -1.0),
    "a log-probability that is a text": lie_about_probabilities("high", -1.0),
    "a log-probability that is missing": lie_about_probabilities(None, -1.0),
    "a token that is named twice": send(
        make_reply(
            tokens=[{**TOKEN, "top_logprobs": [*TOP, {"token": "7", "logprob": -9.0}]}]
        )
    ),
    "tokens that are a text": send(make_reply(tokens="7")),
    "another model": send(make_reply(model="other")),
    "a model that is a list": send(make_reply(model=["m"])),
    "an unknown finish reason": send(
        make_reply(choices=[{**make_reply()["choices"][0], "finish_reason": ["stop"]}])
    ),
}
"""Actions that give an answer, the same to each question, with something impossible beside it."""

ACTIONS = {**WITHOUT_ANSWER, **WITH_ANSWER}

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=2,style=chat"
LIMITS = ("--max-retries", "1", "--request-timeout", "3")
QUESTIONS = ("--entry", ENTRY, *LIMITS)

COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "run": lambda url: ["run", *QUESTIONS, "--model-url", url, "--model-name", "m"],
    "doctor": lambda url: ["doctor", url],
    "certify": lambda url: [
        *(
            "certify",
            "--model-url",
            url,
            "--model-name",
            "m",
            "--claim",
            "2k",
            "--shortest",
            "1k",
        ),
        "--error",
        "0.4",
        "-m",
        "4",
        "--to",
        "out",
        *LIMITS,
    ],
    "cache-check": lambda url: [
        *(
            "cache-check",
            "--model-url",
            url,
            "--model-name",
            "m",
            "--length",
            "1k",
            "--to",
            "out",
        ),
        *LIMITS,
    ],
    "gate": lambda url: [
        "gate",
        "local/m",
        "local/n",
        *QUESTIONS,
        "--max-drop",
        "30",
        "-m",
        "4",
    ],
    "gate --logprobs": lambda url: [
        "gate",
        "local/m",
        "local/n",
        "--logprobs",
        *QUESTIONS,
        "-m",
        "4",
    ],
}
"""What asks a server."""

DEPLOYMENTS = """model_deployments:
{}"""
DEPLOYMENT = """- name: local/{0}
  model_name: local/{0}
  client_spec:
    class_name: helm_longctx.models.apis.OpenAIClient
    args: {{base_url: "{1}/", api_key: none}}
"""
MODEL = """- name: local/{0}
  display_name: {0}
  description: A server
  creator_organization_name: local
  access: open
  release_date: 2026-01-01
  tags: [TEXT_MODEL_TAG, INSTRUCTION_FOLLOWING_MODEL_TAG]
"""


class OpenRequests:
    """A count of the requests that a server has not yet answered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Count a request until the block ends."""
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    def are_there(self) -> bool:
        """Return whether a client waits for an answer."""
        return self._count > 0

    def _add(self, change: int) -> None:
        with self._lock:
            self._count += change


@contextmanager
def serve(act: Act, requests: OpenRequests) -> Iterator[str]:
    """Serve a model that answers each question by an action, and yield the address."""

    class Handler(JsonHandler):
        def do_GET(self) -> None:  # noqa: N802 (http.server's name)
            self.send_json(200, MODELS)

        def do_POST(self) -> None:  # noqa: N802 (http.server's name)
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            try:
                with requests.open():
                    act(self)
            except ConnectionError:
                self.close_connection = True

    with serve_handler(Handler) as address:
        yield address


def write_deployments(folder: Path, address: str) -> None:
    """Write the files that name the server as two models."""
    local = folder / "prod_env"
    local.mkdir(parents=True)
    deployments = "".join(DEPLOYMENT.format(name, address) for name in "mn")
    models = "".join(MODEL.format(name) for name in "mn")
    (local / "model_deployments.yaml").write_text(f"model_deployments:\n{deployments}")
    (local / "model_metadata.yaml").write_text(f"models:\n{models}")


def find_fault(command: str, action: str, folder: Path) -> str:
    """Give a command to a hostile server, and return what is wrong with its end; empty if nothing is."""
    requests = OpenRequests()

    def wait(program: programs.Program) -> None:
        wait_in_own_time(program, SECONDS, requests.are_there)

    with serve(ACTIONS[action], requests) as address:
        write_deployments(folder, address)
        try:
            done = programs.run(
                "helm-longctx",
                *COMMANDS[command](address),
                folder=folder,
                wait=wait,
                HELM_LONGCTX_TIMEOUT="3",
                HELM_LONGCTX_JUDGE_WAIT="0.01",
                OPENAI_API_KEY="sk-attack-0123456789abcdef",
            )
        except subprocess.TimeoutExpired:
            return f"more than {SECONDS:.0f} s of its own"
    printed = done.stdout + done.stderr
    if done.returncode not in STATUSES:
        return f"status {done.returncode}: {done.stderr[-300:]}"
    if "Traceback" in printed:
        return printed[-1500:]
    if "sk-attack-0123456789abcdef" in printed:
        return "the key is printed"
    if action in WITHOUT_ANSWER and done.returncode == 0:
        return f"status 0: {done.stdout[-500:]}"
    if done.returncode == 2 and not re.search("error: ", done.stderr):
        return f"status 2 without a reason: {done.stderr[-300:]}"
    return ""
