"""Cases of fuzzing: each is made from a seed and its own name alone, is judged in a limited time, and is easy to make again."""

from __future__ import annotations

import json
import math
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from helm_longctx.errors import InputError
from tests.support.drawing import draw_in_new_processes, has_drawn

SEED = 20260
LIMIT = 60.0
"""Seconds of processor time that a case may take."""

PATIENCE = 10
"""How much longer a case may take by the clock: it may wait, and on a busy machine it has a part of a processor."""

FILE_LIMIT = 512 << 20
"""Bytes that a case in a process of its own may write into one file."""


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Args:
        name: the name of the kind.
        targets: what reads such input.
        cases: how many `make fuzz` runs for each target.
        run: runs one case on a target with its own random generator; it raises anything if the outcome is wrong.
        limit: seconds of processor time that a case may take.
    """

    name: str
    targets: Sequence[str]
    cases: int
    run: Callable[[str, random.Random], None]
    limit: float = LIMIT


@dataclass(frozen=True)
class Failure:
    """A case whose outcome is wrong."""

    case: str
    about: str


class HangError(BaseException):
    """An error that says that a case took too long. It is no `Exception`, because code under test may catch those."""


def run_case(
    kind: Kind, target: str, number: int, seed: int, limit: float | None = None
) -> Failure | None:
    """Run one case, and return what is wrong with its outcome, or None."""
    case = f"{kind.name}/{target}/{number}"
    try:
        with limited(limit or kind.limit):
            kind.run(target, random.Random(f"{seed}/{case}"))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        return Failure(case, about(error))
    return None


def about(error: BaseException) -> str:
    """Return what went wrong and where, without the mutated text."""
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if "/helm" in f.filename or "/fuzz/" in f.filename
    ]
    where = " < ".join(
        f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[::-1][:4]
    )
    return f"{type(error).__name__}: {str(error)[:600]} ({where})"


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `HangError` in the block if it takes more processor time, or `PATIENCE` times as long by the clock.

    This works only in the main thread.
    """
    processor_end = time.process_time() + seconds
    clock_end = time.monotonic() + PATIENCE * seconds

    def stop(signum: int, frame: object) -> None:
        left = processor_end - time.process_time()
        if left <= 0 or time.monotonic() >= clock_end:
            raise HangError(f"no outcome after {seconds:.0f} s of processor time")
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check_line(error: InputError) -> None:
    """Check that an error for users is one line that is short enough to read."""
    message = str(error)
    assert message, "the error says nothing"
    assert "\n" not in message, f"the error has several lines: {message!r}"
    assert len(message) < 3000, f"the error has {len(message)} characters"


def check_finite(value: Any) -> None:
    """Check that every reader of JSON can read the value."""
    json.dumps(value, allow_nan=False)


@dataclass(frozen=True)
class Done:
    """The outcome of a process that ended."""

    status: int
    out: bytes
    err: str


def run_forked(act: Callable[[], object], folder: Path, limit: float = LIMIT) -> Done:
    """Run `act` in a process of its own, in `folder`; `SystemExit` gives the process's status.

    The process may take `limit` seconds of processor time, and `PATIENCE` times as long by the clock.

    The process has what this one has imported, so that it starts at once.

    Raises:
        HangError: the process took too long, and was killed.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        cannot_draw = has_drawn()
        child = os.fork()
        if not child:
            if cannot_draw:
                draw_in_new_processes()
            _become(act, folder, limit, out.fileno(), err.fileno())
        status = _wait(child, limit)
        for file in (out, err):
            file.seek(0)
        return Done(status, out.read(), err.read().decode("utf-8", "replace"))


def _become(
    act: Callable[[], object], folder: Path, limit: float, out: int, err: int
) -> NoReturn:
    status = 70
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(
            2, "w", encoding="utf-8", errors="backslashreplace", closefd=False
        )  # as Python has it
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), most))
        os.chdir(folder)
        act()
        status = 0
    except SystemExit as error:
        status = (
            error.code if isinstance(error.code, int) else int(error.code is not None)
        )
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)


def _wait(child: int, limit: float) -> int:
    """Return the child's exit status, or minus the number of the signal that ended it."""
    end = time.monotonic() + PATIENCE * limit
    try:
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                child = 0
                exit_status = os.waitstatus_to_exitcode(status)
                if exit_status == -signal.SIGXCPU:
                    break
                return exit_status
            time.sleep(0.005)
        raise HangError(f"no outcome after {limit:.0f} s of processor time")
    finally:
        if child:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
