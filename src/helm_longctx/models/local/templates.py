"""Checks a model's chat template: a program of whoever made the model."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from helm_longctx.errors import shorten
from helm_longctx.models.local.model import ModelError

_MOST_SECONDS = 10.0
"""Seconds that a template may take for a short conversation."""

_QUESTION = "longctxquestion"
"""A word that every template must pass on."""


class _StopError(BaseException):
    """Ends a template. It is no `Exception`, so that nothing in the template's environment catches it."""


def check_template(tokenizer: Any, path: str) -> None:
    """Render a short conversation.

    Raises:
        ModelError: the template has an error, leaves the question out, or does not end in `_MOST_SECONDS`.
    """
    outcome: list[str | BaseException] = []
    thread = threading.Thread(
        target=lambda: outcome.append(_render(tokenizer)), daemon=True
    )
    thread.start()
    thread.join(_MOST_SECONDS)
    if not outcome:
        # This raises the exception in the thread, at its next step in Python.
        identifier = ctypes.c_ulong(thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            identifier, ctypes.py_object(_StopError)
        )
        raise ModelError(
            f"{path}: its chat template takes more than {_MOST_SECONDS:g} seconds"
        )
    (rendered,) = outcome
    if isinstance(rendered, BaseException):
        reason = f"{type(rendered).__name__}: {shorten(str(rendered), 200)}"
        raise ModelError(f"{path}: its chat template has an error ({reason})")
    if _QUESTION not in rendered:
        raise ModelError(f"{path}: its chat template leaves out what the user says")


def _render(tokenizer: Any) -> str | BaseException:
    turns = [{"role": "user", "content": _QUESTION}]
    try:
        return str(
            tokenizer.apply_chat_template(
                turns, tokenize=False, add_generation_prompt=True
            )
        )
    except BaseException as error:  # of the template, or the end of its time
        return error
