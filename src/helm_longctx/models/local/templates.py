"""Checks a model's chat template: a program of whoever made the model."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from helm_longctx.errors import shorten
from helm_longctx.models.local.model import ModelError

_MOST_SECONDS = 10.0
"""Seconds that a template may take for a short conversation."""

_TOKENIZER_SECONDS = 20.0
"""Seconds that a tokenizer may take for long texts. Others need a tenth of a second."""

_QUESTION = "longctxquestion"
"""A word that every template must pass on."""


_PROBE_SIZE = 50_000
_PROBES = (" ", "a", "1", "\n", ".", "word ", "一")
"""Texts of one kind, for which patterns of a tokenizer that take quadratic time are slowest."""


def check_tokenizer(tokenizer: Any, path: str) -> None:
    """Encode long texts of one kind each with a tokenizer in Rust, whose patterns a folder can choose.

    Raises:
        ModelError: the tokenizer needs more than `_TOKENIZER_SECONDS`, or fails.
    """
    if not getattr(tokenizer, "is_fast", False):
        return
    backend = tokenizer.backend_tokenizer
    texts = []
    for probe in _PROBES:
        texts.append(probe * (_PROBE_SIZE // len(probe)) + "\0")
    outcome: list[BaseException | None] = []

    def encode() -> None:
        try:
            backend.encode_batch(texts)
            outcome.append(None)
        # A pattern that gives up is a panic in Rust, of which Python makes an error that is no `Exception`.
        except BaseException as error:
            outcome.append(error)

    # The tokenizer lets other threads work while it encodes.
    thread = threading.Thread(target=encode, daemon=True)
    thread.start()
    thread.join(_TOKENIZER_SECONDS)
    if not outcome:
        raise ModelError(
            f"{path}: its tokenizer needs more than {_TOKENIZER_SECONDS:g} seconds for"
            f" {_PROBE_SIZE:,} characters of one kind; its pattern takes quadratic time"
        )
    if (error := outcome[0]) is not None:
        reason = f"{type(error).__name__}: {shorten(str(error), 200)}"
        raise ModelError(f"{path}: its tokenizer fails for a long text ({reason})")


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
