"""Tests that `helm-run` ends a run that cannot work within seconds and few lines, and that a hanging run can be stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from helm_longctx.models.baselines import lexical
from helm_longctx.runs.journal import NAME
from tests.e2e.commands import RUNNER, write_ready
from tests.support import programs
from tests.support.servers import faults
from tests.support.servers.closed import closed_address
from tests.support.servers.faults import Fault
from tests.support.servers.llm import asked_again, serve
from tests.support.servers.models import count_tokens
from tests.support.servers.threads import serve_in_thread

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=12,style=chat,model=vllm/llama-3.1-8b-instruct"


def start(folder: Path, address: str, **environment: str) -> programs.Program:
    """Start `helm-run` on twelve requests to an address, with HELM's client for OpenAI's protocol."""
    write_ready(folder, address)
    options = ["--run-entries", ENTRY, "-m", "99", "--suite", "s", "-n", "3"]
    options += ["--local-path", str(folder), "--disable-cache", *RUNNER]
    return programs.start(
        "helm-run", *options, folder=folder, output=folder / "log", **environment
    )


def trouble(log: str) -> list[str]:
    """Return the lines of warnings, errors and tracebacks in a log, except those about generated data."""
    marks = re.compile(
        r" (WARNING|ERROR|CRITICAL) |^\s+File |^Traceback|^\w*(Error|Exception)\b|error:"
    )
    lines = [line for line in log.splitlines() if "nltk" not in line]
    return [line for line in lines if marks.search(line)]


def seconds(log: str) -> float:
    """Return the seconds from the start of a run to the last line with a time."""
    times = {
        line: line[:23]
        for line in log.splitlines()
        if re.match(r"\d{4}-\d\d-\d\d ", line)
    }
    first = next(
        time for line, time in times.items() if "Running helmet_recall" in line
    )
    start, end = (
        datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f")
        for text in (first, list(times.values())[-1])
    )
    return (end - start).total_seconds()


@contextmanager
def closed_port() -> Iterator[str]:
    """Return an address without a server."""
    with closed_address() as address:
        yield f"{address}/v1/"


@contextmanager
def other_keys() -> Iterator[str]:
    """Start a server that refuses every key."""
    with serve(lexical.answer, faults.always(Fault.UNAUTHORIZED)) as server:
        yield server.openai


@contextmanager
def other_models() -> Iterator[str]:
    """Start a server that has other models and answers as vLLM does."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            content = {
                "object": "error",
                "message": "The model `m` does not exist.",
                "type": "NotFoundError",
                "code": 404,
            }
            self.send_response(404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serve_in_thread(http) as address:
        yield f"{address}/v1/"


@pytest.mark.parametrize(
    ("server", "error"),
    [
        (
            closed_port,
            r"unreachable: .*Connection refused.* at http://127.0.0.1:\d+/v1/",
        ),
        (other_keys, "bad_key: .*401"),
        (other_models, "unknown_model: .*The model `m` does not exist"),
    ],
)
def test_what_every_request_would_meet(
    server: Callable[[], Iterator[str]], error: str, tmp_path: Path
) -> None:
    """An error that every request would meet ends the run at the first request, in under ten lines that say how to go on."""
    with server() as address:  # type: ignore[attr-defined]
        status = start(tmp_path, address).wait(240)
    log = (tmp_path / "log").read_text()
    assert status == 1, log
    assert 0 < len(trouble(log)) < 10, log
    assert re.search(error, log)
    assert "run the same command again to continue" in log
    assert seconds(log) < 60
    print(f"{server.__name__}: {seconds(log):.1f} s, {len(trouble(log))} lines")


def test_a_missing_package(tmp_path: Path) -> None:
    """A missing package is named before anything is read or sent."""
    (tmp_path / "stub/openai").mkdir(parents=True)
    (tmp_path / "stub/openai/__init__.py").write_text(
        'raise ModuleNotFoundError("No module named \'openai\'", name="openai")'
    )
    path = f"{tmp_path / 'stub'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    with closed_port() as address:
        assert start(tmp_path, address, PYTHONPATH=path).wait(240) == 1
    log = (tmp_path / "log").read_text()
    assert "cannot be asked: missing_package: No module named 'openai'" in log
    assert 0 < len(trouble(log)) < 10, log
    assert seconds(log) < 60
    print(f"missing package: {seconds(log):.1f} s, {len(trouble(log))} lines")


@pytest.mark.parametrize(
    ("number", "status", "fault"),
    [(signal.SIGINT, 130, Fault.TIMEOUT), (signal.SIGTERM, 143, Fault.SERVER_ERROR)],
)
def test_stopped(
    number: signal.Signals, status: int, fault: Fault, tmp_path: Path
) -> None:
    """A run that is stopped during a stall or between two attempts ends at once, keeps its answers and can go on."""
    with serve(lexical.answer) as server:
        server.plan = lambda prompt, before: fault if len(server.calls) >= 5 else None
        process = start(tmp_path, server.openai, HELM_LONGCTX_WAIT="100")
        deadline = time.monotonic() + 120
        while len(server.calls) < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)  # until each is stuck
        begin = time.monotonic()
        process.send_signal(number)
        assert process.wait(60) == status
        took = time.monotonic() - begin
        log = (tmp_path / "log").read_text()
        assert f"stopped by {number.name}: 5 answers are kept in " in log
        assert "Traceback" not in log
        (run,) = tmp_path.glob("benchmark_output/runs/s/helmet*")
        assert len((run / NAME).read_bytes().splitlines()) == 5
        server.plan = faults.none
        assert start(tmp_path, server.openai).wait(240) == 0
        assert not (run / NAME).exists()
        assert asked_again(server.calls) == []
    assert took < 60  # the next attempt is after 100 seconds
    print(f"{number.name}: {took:.1f} s")


def test_a_limit_in_dollars(tmp_path: Path) -> None:
    """No request is sent that could exceed the limit in dollars, and one line says what was spent and kept."""
    (tmp_path / "prices.yaml").write_text(
        "vllm/llama-3.1-8b-instruct: {input: 100, output: 100}"
    )
    settings = {
        "HELM_LONGCTX_PRICES": str(tmp_path / "prices.yaml"),
        "HELM_LONGCTX_MAX_COST": "1.5",
    }
    with serve(lexical.answer) as server:
        assert start(tmp_path, server.openai, **settings).wait(120) == 1
    tokens = sum(
        count_tokens(call.prompt) + count_tokens(lexical.answer(call.prompt))
        for call in server.calls
    )
    assert 2 <= len(server.calls) < 12
    *_, last = (tmp_path / "log").read_text().splitlines()
    assert last.startswith("helm-longctx: error: ")
    assert (
        f"after ${tokens * 100 / 1e6:.4f} were spent; {len(server.calls)} answers are kept in "
        in last
    )
