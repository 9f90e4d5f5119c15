"""Runs in the sandbox as a program of its own: executes pieces of code that come as lines of JSON, and answers each.

`interpreter.py` starts it and trusts nothing that it writes. It uses only the standard library.
"""

import io
import json
import os
import random
import sys
import traceback
from typing import Any

_IN = os.fdopen(os.dup(0), "rb")
_OUT = os.dup(1)
_MOST = 1 << 20


def _answer(message: Any) -> None:
    """Write a line, also if the pipe takes only pieces of it."""
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[os.write(_OUT, data) :]


def _function(name: str) -> Any:
    """Make a function that calls the one of this name outside of the sandbox."""

    def call(*arguments: Any) -> Any:
        _answer({"call": name, "arguments": arguments})
        reply = json.loads(_IN.readline())
        if "error" in reply:
            raise ValueError(reply["error"])
        return reply["result"]

    call.__name__ = name
    return call


def _plain(value: Any) -> Any:
    """Return a value as JSON can have it."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return str(value)


class _Output(io.StringIO):
    """Keeps the start of what is printed."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, _MOST - self.tell())])
        return len(text)


def main() -> None:
    """Read the variables and then pieces of code until the input ends."""
    random.seed(0)  # the same code gives the same output when a run goes on
    setup = json.loads(_IN.readline())
    space = {"__name__": "__main__", **setup["variables"]}
    space["SHOW_VARS"] = lambda: sorted(
        name for name in space if not name.startswith("_")
    )
    space.update((name, _function(name)) for name in setup["functions"])
    _answer({})
    while line := _IN.readline():
        output = _Output()
        error = ""
        sys.stdout = sys.stderr = output
        try:
            exec(compile(json.loads(line)["code"], "<code>", "exec"), space)  # noqa: S102  # in the sandbox
        except BaseException:
            kind, value, trace = sys.exc_info()
            error = "".join(
                traceback.format_exception(
                    kind, value, trace.tb_next if trace else None
                )
            )
        finally:
            sys.stdout = sys.__stdout__
            sys.stderr = sys.__stderr__
        values = {}
        for name in setup["exports"]:
            if name in space:
                values[name] = _plain(space[name])
        _answer({"text": output.getvalue(), "error": error[-20000:], "values": values})


if __name__ == "__main__":
    main()
