"""A program that calls `evaluate` again and again, and sends itself signals at random moments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[2])

INTERRUPTED = """
import os, random, signal, sys, time
import helm_longctx as lc
from helm_longctx.models.objects import OBJECTS
from tests.evaluation.calls import call, look_up

# A shell lets its background programs ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
random.seed(int(sys.argv[1]))
rounds = int(sys.argv[2])
SIGNALS = (signal.SIGINT, signal.SIGTERM)

def answer(prompt):
    time.sleep(0.02)
    return "x"

def make(**options):
    return call(answer, lengths="4k", num_samples=10, name="mine", **options)

def send(number, frame):
    # This runs in the thread of the call, so the call cannot restore handlers between the look and the signal.
    # Outside of a call, SIGTERM would end this program, as it should.
    if kind == signal.SIGINT or signal.getsignal(kind) != signal.SIG_DFL:
        os.kill(os.getpid(), kind)
    else:
        signal.setitimer(signal.ITIMER_REAL, 0.002)

signal.signal(signal.SIGALRM, send)
begun = time.monotonic()
make()
shortest = time.monotonic() - begun
out, err, environment = sys.stdout, sys.stderr, dict(os.environ)
interrupted = 0
# A call that ends before its signal is made again: how long it takes depends on the load of the machine.
for number in range(20 * rounds):
    kind = random.choice(SIGNALS)
    handlers = [signal.getsignal(each) for each in SIGNALS]
    begun = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, max(0.001, random.random() * shortest))
        try:
            make()
            shortest = min(shortest, time.monotonic() - begun)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            saved = number
    except KeyboardInterrupt:
        interrupted += 1
    assert saved == number
    assert [signal.getsignal(each) for each in SIGNALS] == handlers
    assert (sys.stdout, sys.stderr) == (out, err)
    assert not sys.stdout.closed
    assert dict(os.environ) == environment
    assert not OBJECTS
    # What was interrupted goes on, and has all answers.
    assert len(make(resume=True).answers) == 10
    if interrupted == rounds:
        break
print(interrupted, flush=True)
"""

LATE = """
import os, signal, sys, threading, time
from pathlib import Path
import helm_longctx.runner.engine as engine
from tests.evaluation.calls import call

# A shell lets its background programs ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
engine.SETTLE = 0.1
ended = threading.Event()

def answer(prompt):
    if prompt.id.endswith("-2"):
        os.kill(os.getpid(), signal.SIGINT)
        ended.wait(60)
    return "x"

def count_answers():
    return sum(path.read_bytes().count(b"\\n") for path in Path().glob("**/answers.jsonl"))

try:
    call(answer, lengths="4k", num_samples=4, name="mine")
except KeyboardInterrupt:
    before = count_answers()
    ended.set()
    deadline = time.monotonic() + 60
    while count_answers() == before and time.monotonic() < deadline:
        time.sleep(0.02)
    print(before, count_answers())
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
