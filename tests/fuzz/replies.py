"""Mutated replies of servers in both protocols, whole and streamed: each gives an answer or a failure with its reason."""

from __future__ import annotations

import json
import random
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from unittest import mock

from helm.common.general import asdict_without_nones
from helm.common.request import RequestResult

from helm_longctx.benchmarks.helmet.verdicts import read_answer
from helm_longctx.judging.judge import Judge, JudgeRequest
from helm_longctx.models.apis.client import ProviderClient
from helm_longctx.models.results import failure_of, usage_of
from helm_longctx.run_settings import JUDGE_WAIT
from helm_longctx.runs.journal import Journal
from tests.benchmarks.helmet.fabricate_replies import answer_replies
from tests.chaos.server import Http
from tests.fuzz.cases import Kind, check_finite
from tests.fuzz.judges import check_reply
from tests.fuzz.mutate import dumped, mutated, mutated_bytes
from tests.models.apis.making import KINDS, REQUEST, make
from tests.support.servers.models import Counts
from tests.support.servers.protocols import PROTOCOLS, Reply

STATUSES = (201, 204, 299, 302, 400, 401, 404, 413, 429, 500, 529)
MOST_TOKENS = 10**9
"""No model reads or writes more tokens in one request."""


class ScriptedServer:
    """A server that sends the same bytes to every request.

    Attributes:
        content, kind, status: body, media type and status of each reply.
    """

    content = b""
    kind = "application/json"
    status = 200

    def __init__(self) -> None:
        self.http = Http(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"service": self})
        )
        self.address = f"http://127.0.0.1:{self.http.server_port}"
        self.openai = f"{self.address}/v1/"
        threading.Thread(
            target=self.http.serve_forever, args=(0.01,), daemon=True
        ).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: ScriptedServer

    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.service.status)
        self.send_header("Content-Type", self.service.kind)
        self.send_header("Content-Length", str(len(self.service.content)))
        self.end_headers()
        self.wfile.write(self.service.content)


@cache
def _server() -> ScriptedServer:
    return ScriptedServer()


@cache
def _client(kind: str, stream: bool) -> ProviderClient:
    return make(kind, _server(), stream=stream, timeout=20.0)  # type: ignore[arg-type]


@cache
def _texts() -> list[str]:
    return ["It is Paris.", "", *filter(None, answer_replies())]


def run(target: str, rng: random.Random) -> None:
    """Ask a server whose reply is mutated, as a model or as a judge. Some replies are left unchanged."""
    kind, _, form = target.partition("-")
    client = _client(kind, form == "stream")
    reply = _make_reply(rng)
    is_good = reply.finish != "content_filter" and rng.random() < 0.05
    with _sending(
        _content(client, form == "stream", reply, None if is_good else rng),
        form,
        rng,
        is_good,
    ):
        if rng.random() < 0.3:
            _ask_as_judge(client)
            return
        result = client.make_request(REQUEST)
    _check_result(result)
    if is_good and reply.text:
        assert result.success, result.error
        assert result.completions[0].text == reply.text


def _make_reply(rng: random.Random) -> Reply:
    thinking = rng.choice((None, None, "Rome?"))
    counts = Counts(prompt=12, cached=rng.choice((0, 4)), output=7)
    return Reply(
        rng.choice((*_texts(), None)),
        rng.choice(("stop", "length", "content_filter")),
        thinking,
        counts,
    )


def _content(
    client: ProviderClient, is_stream: bool, reply: Reply, rng: random.Random | None
) -> bytes:
    """Return a reply as the protocol writes it, changed if there is a random generator."""
    protocol = PROTOCOLS[client.route(REQUEST)]
    body = client.body(REQUEST)
    if not is_stream:
        whole = protocol.whole(body, reply)
        content = (
            json.dumps(whole).encode()
            if rng is None
            else dumped(mutated(whole, rng), rng)
        )
    else:
        events = list(protocol.events(body, reply))
        lines = [_event(name, json.dumps(data).encode()) for name, data in events]
        if rng is not None:
            position = rng.randrange(len(events))
            lines[position] = _event(
                events[position][0], dumped(mutated(events[position][1], rng), rng)
            )
            _disorder(lines, rng)
        content = b"".join(lines) + (
            f"data: {protocol.last_event}\n\n".encode() if protocol.last_event else b""
        )
    return (
        content if rng is None or rng.random() < 0.85 else mutated_bytes(content, rng)
    )


def _event(name: str | None, data: bytes) -> bytes:
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + data + b"\n\n"


def _disorder(lines: list[bytes], rng: random.Random) -> None:
    """Now and then, lose events, repeat them, or send them in another order."""
    kind = rng.randrange(8)
    position = rng.randrange(len(lines))
    if kind == 0:
        del lines[position:]
    elif kind == 1:
        del lines[position]
    elif kind == 2:
        lines.insert(rng.randrange(len(lines)), lines[position])
    elif kind == 3:
        rng.shuffle(lines)


@contextmanager
def _sending(
    content: bytes, form: str, rng: random.Random, is_good: bool
) -> Iterator[None]:
    """Let the server send this content, sometimes with another type or status."""
    server = _server()
    kind = "text/event-stream" if form == "stream" else "application/json"
    server.content = content
    server.kind = kind
    server.status = 200
    if not is_good and rng.random() < 0.1:
        server.kind = rng.choice(
            ("text/html", "application/json", "text/event-stream", "x")
        )
    if not is_good and rng.random() < 0.1:
        server.status = rng.choice(STATUSES)
        server.content = (
            b"" if server.status == 204 else content
        )  # this status has no content
    with mock.patch.dict("os.environ", {JUDGE_WAIT: "0.000001"}):
        yield


def _ask_as_judge(client: ProviderClient) -> None:
    judge = Judge("tests/odd", "tests/odd", client)
    check_reply(judge.ask(JudgeRequest("prompt", read_answer, 16, 0.0, 1.0, 0)))


def _check_result(result: RequestResult) -> None:
    """Check that a result is one text with possible counts of tokens, or a failure with a reason."""
    assert result.success == (failure_of(result) is None)
    if not result.success:
        assert result.error, "neither an answer nor an error"
        assert "\n" not in result.error, (
            f"the error has several lines: {result.error!r}"
        )
        assert len(result.error) < 3000, f"the error has {len(result.error)} characters"
        return
    (completion,) = result.completions
    assert isinstance(completion.text, str)
    if usage := usage_of(result):
        assert all(0 <= count <= MOST_TOKENS for count in vars(usage).values()), usage
    check_finite(asdict_without_nones(result))
    with tempfile.TemporaryDirectory(prefix="fuzz-reply-") as folder:
        with Journal(Path(folder)) as journal:
            journal.add("a", result)
        with Journal(Path(folder)) as journal:
            assert replace(result, request_time=None) == replace(
                journal.get("a") or result, request_time=None
            )
            assert journal.get("a"), "the answer cannot be read again"


KIND = Kind(
    "replies",
    tuple(f"{kind}{form}" for kind in KINDS for form in ("", "-stream")),
    1000,
    run,
)
