"""Measures how fast commands start, in seconds of processor time.

    python -m bench.start [--turns 5] [--json start.json]

Each command runs in a process of its own, several times; the least time counts, because other programs on the machine
only add to it. `run` is measured until the server gets the first request, and compared with the import of HELM alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-m", "helm_longctx"]
COMPLETION = {
    "_HELM_LONGCTX_COMPLETE": "complete_bash",
    "COMP_WORDS": "helm-longctx su",
    "COMP_CWORD": "1",
}
BAD_YAML = "suite: a\ntusks: [helmet_recall]\n"
COMMANDS: dict[str, tuple[list[str], float]] = {
    "--help": (["--help"], 0.3),
    "--version": (["--version"], 0.3),
    "completion": ([], 0.3),
    "list": (["list"], 0.8),
    "a mistyped command": (["lisd"], 0.8),
    "a mistyped task": (
        [
            "run",
            "--model",
            "longctx/lexical",
            "--tasks",
            "helmet_recal",
            "--suite",
            "s",
        ],
        0.8,
    ),
    "a mistyped entry": (
        [
            "estimate",
            "helmet_recal:length=8k",
        ],
        0.8,
    ),
    "a bad YAML file": (["run", "bad.yaml"], 0.8),
    "doctor": (["doctor", "--no-network"], 3.0),
}
"""The commands, and the most seconds that each may take."""

MOST_OVER_HELM = 2.5
"""The most seconds of `run` until its first request, besides the import of HELM."""


def measure(command: list[str], folder: Path, **variables: str) -> float:
    """Return the processor time of a process and of those that it started."""
    before = os.times()
    subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    after = os.times()
    return (
        after.children_user
        + after.children_system
        - before.children_user
        - before.children_system
    )


class FirstRequest(ThreadingHTTPServer):
    """A server that notes the processor time of a process when its first request arrives, and answers with errors."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.has_request = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, FirstRequest)
        self.server.has_request.set()
        self.send_error(503)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def measure_first_request(folder: Path) -> float:
    """Return the processor time of `run` until its first request."""
    server = FirstRequest()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    options = [
        "--model-url",
        url,
        "--tasks",
        "helmet_recall:task=json_kv",
        "--length",
        "8k",
        "--suite",
        "s",
    ]
    process = subprocess.Popen(
        [*PROGRAM, "run", *options],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert server.has_request.wait(300), "no request arrived"
        return processor_time(process.pid)
    finally:
        process.kill()
        process.wait()
        server.shutdown()


def processor_time(process: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_all(turns: int) -> list[dict[str, Any]]:
    """Return a row for each command: its name, seconds, and limit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bad.yaml").write_text(BAD_YAML)
        rows: list[dict[str, Any]] = []
        for what, (arguments, limit) in COMMANDS.items():
            variables = {} if arguments else COMPLETION
            seconds = min(
                measure([*PROGRAM, *arguments], folder, **variables)
                for _ in range(turns)
            )
            rows.append({"what": what, "seconds": seconds, "limit": limit})
        helm = min(
            measure([sys.executable, "-c", "import helm.benchmark.run"], folder)
            for _ in range(turns)
        )
        first = min(measure_first_request(folder) for _ in range(turns))
    rows.append(
        {
            "what": "run until its first request",
            "seconds": first,
            "limit": helm + MOST_OVER_HELM,
        }
    )
    return [
        *rows,
        {"what": "import helm.benchmark.run", "seconds": helm, "limit": None},
    ]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = measure_all(args.turns)
    for row in rows:
        print(
            f"{row['seconds']:6.2f} s   {row['what']}",
            *([f"(at most {row['limit']:.2f})"] if row["limit"] else []),
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
