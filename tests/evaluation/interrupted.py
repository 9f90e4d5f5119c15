"""Functions that call `evaluate` in processes of their own, and are interrupted."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import helm_longctx as lc
from helm_longctx import interruptions
from helm_longctx.models.objects import OBJECTS
from tests.evaluation.calls import call, look_up
from tests.support.own_time import LONGEST
from tests.support.programs import start_function

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_function(function: Any, *arguments: Any) -> tuple[int, str, str]:
    """Call a function in a new process, and return its exit status, its output and its standard error."""
    folder = Path.cwd()
    output, errors = folder / "output.txt", folder / "errors.txt"
    program = start_function(
        function, *arguments, folder=folder, output=output, errors=errors
    )
    try:
        status = program.wait(LONGEST)
    finally:
        program.kill()
    return status, output.read_text(), errors.read_text()


def score_one_question(name: str) -> None:
    """Print the score of a model that is right, or in one line why another process makes the run."""
    try:
        result = call(look_up, name=name, lengths="4k", num_samples=1)
    except lc.InputError as error:
        print(error)
    else:
        print(result.scores.score[0])


def interrupt_calls(seed: int, rounds: int) -> None:
    """Call `evaluate` until so many calls were interrupted by signals at random moments, and print their number."""
    random.seed(seed)
    kind = signal.SIGINT

    def send(number: int, frame: Any) -> None:
        # This runs in the thread of the call, so the call cannot restore handlers between the look and the signal.
        # Outside of a call, SIGTERM would end this program, as it should.
        if kind == signal.SIGINT or signal.getsignal(kind) != signal.SIG_DFL:
            os.kill(os.getpid(), kind)
        else:
            signal.setitimer(signal.ITIMER_REAL, 0.002)

    signal.signal(signal.SIGALRM, send)
    begun = time.monotonic()
    _ask_ten()
    shortest = time.monotonic() - begun
    streams = (sys.stdout, sys.stderr)
    environment = dict(os.environ)
    interrupted = 0
    # A call that ends before its signal is made again: how long it takes depends on the load of the machine.
    for number in range(20 * rounds):
        kind = random.choice(SIGNALS)
        handlers = [signal.getsignal(known) for known in SIGNALS]
        begun = time.monotonic()
        saved = None
        try:
            signal.setitimer(signal.ITIMER_REAL, max(0.001, random.random() * shortest))
            try:
                _ask_ten()
                shortest = min(shortest, time.monotonic() - begun)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                saved = number
        except KeyboardInterrupt:
            interrupted += 1
        assert saved == number
        assert [signal.getsignal(known) for known in SIGNALS] == handlers
        assert (sys.stdout, sys.stderr) == streams
        assert not sys.stdout.closed
        assert dict(os.environ) == environment
        assert not OBJECTS
        # What was interrupted goes on, and has all answers.
        assert len(_ask_ten(resume=True).answers) == 10
        if interrupted == rounds:
            break
    print(interrupted, flush=True)


def _ask_ten(**options: Any) -> Any:
    return call(_answer_slowly, lengths="4k", num_samples=10, name="mine", **options)


def _answer_slowly(prompt: lc.Prompt) -> str:
    time.sleep(0.02)
    return "x"


def keep_a_late_answer() -> None:
    """Interrupt a call whose last answers come later, and print the number of kept answers before and after."""
    interruptions.SETTLE = 0.1
    ended = threading.Event()

    def answer(prompt: lc.Prompt) -> str:
        if prompt.id.endswith("-2"):
            os.kill(os.getpid(), signal.SIGINT)
            ended.wait(60)
        return "x"

    try:
        call(answer, lengths="4k", num_samples=4, name="mine")
    except KeyboardInterrupt:
        before = _count_answers()
        ended.set()
        deadline = time.monotonic() + 60
        while _count_answers() == before and time.monotonic() < deadline:
            time.sleep(0.02)
        print(before, _count_answers())


def _count_answers() -> int:
    return sum(
        path.read_bytes().count(b"\n") for path in Path().glob("**/answers.jsonl")
    )


def die_at_the_fourth_question() -> None:
    """Call `evaluate` with a function that kills its process at the fourth question."""

    def answer(prompt: lc.Prompt) -> str:
        if prompt.id == "json_kv-3":
            os.kill(os.getpid(), signal.SIGKILL)
        return "of the first process"

    answer.__qualname__ = "answer"  # as in the second process
    call(answer, num_samples=5)
