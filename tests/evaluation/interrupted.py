"""A program that calls `evaluate` again and again, and sends itself signals at random moments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[2])

INTERRUPTED = """
import os, random, signal, sys, threading, time
import helm_longctx as lc
from helm_longctx.models.objects import OBJECTS
from tests.evaluation.calls import call, look_up

random.seed(int(sys.argv[1]))
rounds = int(sys.argv[2])

def answer(prompt):
    time.sleep(0.02)
    return "x"

def make(**options):
    return call(answer, lengths="4k", num_samples=10, name="mine", **options)

begun = time.monotonic()
make()
longest = time.monotonic() - begun
out, err, environment = sys.stdout, sys.stderr, dict(os.environ)
seen = []
for number in range(rounds):
    kind = random.choice([signal.SIGINT, signal.SIGTERM])
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    timer = threading.Timer(random.random() * longest * (1 if kind == signal.SIGINT else 0.6), os.kill, [os.getpid(), kind])
    ended = "done"
    try:
        timer.start()
        try:
            make()
            # A signal after the call belongs to the caller, which has no handler of SIGTERM.
            if kind == signal.SIGTERM:
                timer.cancel()
            timer.join()
        finally:
            saved = number
    except KeyboardInterrupt:
        ended = "interrupted"
    assert saved == number
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert (sys.stdout, sys.stderr) == (out, err)
    assert not sys.stdout.closed
    assert dict(os.environ) == environment
    assert not OBJECTS
    seen.append(ended)
    # What was interrupted goes on, and has all answers.
    assert len(make(resume=True).answers) == 10
print(seen.count("interrupted"), flush=True)
"""


def run_python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start Python with the tests' modules."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
