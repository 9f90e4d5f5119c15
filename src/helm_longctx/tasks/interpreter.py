"""A Python interpreter in the sandbox: runs pieces of code that a model writes one after the other, with its variables.

The code can call functions of this process by name, with arguments and results in JSON. It sees no module outside the
standard library, and each piece has limits on time, memory and output (`tasks/sandbox.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from helm_longctx.errors import InputError
from helm_longctx.tasks import sandbox

PYTHON = "/usr/bin/python3"
"""The interpreter in the sandbox. The sandbox has only the machine's own programs."""

_MOST_SECONDS = 60.0
"""Wall-clock seconds of a piece of code, without the calls of functions."""

TOTAL_SECONDS = 600
"""Seconds of processor time of all pieces."""

MOST_TEXT = 1 << 20
"""Most characters of the output of a piece that are kept."""

_DRIVER = (Path(__file__).parent / "interpreter_driver.py").read_text(encoding="utf-8")


class _Output(NamedTuple):
    """What a piece of code printed, the error with which it ended, and the variables that were asked for."""

    text: str
    error: str = ""
    values: Mapping[str, Any] = {}


class Interpreter:
    """An interpreter that is started with the first piece of code.

    Args:
        variables: the variables that the code has at first, as JSON data.
        functions: the functions that it can call.
        exports: names of variables whose values each piece returns.
    """

    def __init__(
        self,
        variables: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
        exports: tuple[str, ...] = (),
    ):
        self._variables = variables
        self._functions = functions
        self._exports = exports
        self._dialogue: sandbox.Dialogue | None = None

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def run(self, code: str) -> _Output:
        """Run a piece of code. If a limit ends it, the variables are reset to their values at the start."""
        if self._dialogue is None:
            command = [PYTHON, "-I", "-S", "-c", _DRIVER]
            self._dialogue = sandbox.Dialogue(command, seconds=TOTAL_SECONDS)
            setup = {
                "variables": self._variables,
                "functions": [*self._functions],
                "exports": self._exports,
            }
            if self._dialogue.exchange(_write(setup), _MOST_SECONDS) is None:
                return self._end("the interpreter did not start")
        message: Any = {"code": code}
        while True:
            line = self._dialogue.exchange(_write(message), _MOST_SECONDS)
            try:
                # Texts can have lone surrogates. orjson refuses them.
                answer = json.loads(line or b"null")
            except (ValueError, RecursionError):
                answer = None
            if not isinstance(answer, dict):
                return self._end(
                    f"the code was ended: it exceeded {_MOST_SECONDS:g} seconds, the"
                    " memory, or the output"
                )
            if "call" not in answer:
                texts = (
                    str(answer.get(name) or "")[:MOST_TEXT]
                    for name in ("text", "error")
                )
                text, error = (
                    text.encode("utf-8", "replace").decode() for text in texts
                )
                values = answer.get("values")
                return _Output(text, error, values if isinstance(values, dict) else {})
            message = self._call(answer)

    def _call(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a function, or the error that the code gets as an exception."""
        function = self._functions.get(str(request["call"]))
        arguments = request.get("arguments")
        if function is None or not isinstance(arguments, list):
            return {"error": f"there is no function {request['call']!r}"}
        try:
            return {"result": function(*arguments)}
        except InputError:
            raise
        except Exception as error:  # the code's arguments are wrong
            return {"error": f"{type(error).__name__}: {error}"}

    def _end(self, reason: str) -> _Output:
        self._close()
        return _Output("", reason)

    def _close(self) -> None:
        if self._dialogue is not None:
            self._dialogue.close()
            self._dialogue = None


def _write(message: Any) -> bytes:
    try:
        return orjson.dumps(message)
    except TypeError:  # a lone surrogate: UTF-8 excludes it, and JSON escapes it
        return json.dumps(message).encode()
