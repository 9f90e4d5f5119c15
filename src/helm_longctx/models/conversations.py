"""Models of the caller that read a conversation piece by piece, such as a method that changes the cache.

Such an object has three methods: `reset()` forgets everything, `feed(text, role)` reads a piece of the conversation, and
`ask(text, prompt)` returns the answer to a last piece. An answer and its question do not become a part of what was
read: the next piece that belongs to the conversation is fed. So a benchmark can put the official answers into later
turns, and a context that several questions share is fed once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from helm_longctx.models.objects import Prompt
from helm_longctx.tasks.prompt import message_text

_METHODS = ("reset", "feed", "ask")


def is_conversation(model: Any) -> bool:
    """Whether an object has the methods of a conversation."""
    return all(callable(getattr(model, name, None)) for name in _METHODS)


class _Piece(NamedTuple):
    """A message of a conversation, or the beginning of its last one."""

    text: str
    role: str


class Conversation:
    """Asks an object of three methods, and feeds it only what it has not read yet.

    Several threads may call it; they take turns, because the object is in one state at a time.

    Args:
        model: the object.
    """

    def __init__(self, model: Any):
        self._model = model
        self._fed: list[_Piece] = []
        self._is_new = True
        self._lock = threading.Lock()

    def __call__(self, prompt: Prompt) -> Any:
        """Return the answer to a prompt. An error of the object ends the conversation, so the next one starts anew."""
        with self._lock:
            pieces, question = _split(prompt)
            missing = None if self._is_new else _find_missing(self._fed, pieces)
            try:
                if missing is None:
                    self._model.reset()
                    missing = pieces
                self._is_new = True
                for piece in missing:
                    self._model.feed(piece.text, piece.role)
                answer = self._model.ask(question, prompt)
            except BaseException:
                self._fed = []
                self._is_new = True
                raise
            self._fed = pieces
            self._is_new = False
            return answer


def _split(prompt: Prompt) -> tuple[list[_Piece], str]:
    """Return what is fed before the question, and the question: the text after the context, or the last message."""
    pieces = []
    for message in prompt.messages[:-1]:
        pieces.append(_Piece(message_text(message), message["role"]))
    if prompt.rest is None:
        return pieces, prompt.text
    return [*pieces, _Piece(prompt.context, "user")], prompt.question


def _find_missing(
    fed: Sequence[_Piece],
    pieces: Sequence[_Piece],
) -> list[_Piece] | None:
    """Return the pieces that have not been fed. Returns None if something else was fed.

    The last piece that was fed can be the beginning of a message: a context whose question was asked.
    """
    if len(fed) > len(pieces):
        return None
    if not fed:
        return list(pieces)
    last = len(fed) - 1
    if list(fed[:last]) != list(pieces[:last]):
        return None
    longer = pieces[last]
    if longer.role != fed[last].role or not longer.text.startswith(fed[last].text):
        return None
    rest = longer.text[len(fed[last].text) :]
    missing = [_Piece(rest, longer.role)] if rest else []
    return [*missing, *pieces[last + 1 :]]
