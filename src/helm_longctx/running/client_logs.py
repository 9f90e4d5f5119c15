"""What HELM's clients log while they are asked: no traceback for each request that fails."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_thread = threading.local()
_helm = logging.getLogger("helm")


@contextmanager
def logged_errors() -> Iterator[list[BaseException]]:
    """Collect the exceptions that are logged in this thread, which then stand in no log.

    HELM's clients log the exception and put only its last words into their result. Anything else that they log passes
    once for each place in their code. At the level DEBUG nothing is held back.
    """
    _helm.addFilter(_filter)
    errors: list[BaseException] = []
    _thread.errors = errors
    try:
        yield errors
    finally:
        del _thread.errors


class _ClientFilter(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._places: set[tuple[str, int]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        errors: list[BaseException] | None = getattr(_thread, "errors", None)
        if errors is None:
            return True
        place = record.pathname, record.lineno
        is_new = place not in self._places
        self._places.add(place)
        # The record's own exception is gone where a secret was taken out of it.
        has_error = bool(record.exc_info or record.exc_text)
        if has_error and (error := sys.exc_info()[1]):
            errors.append(error)
        return _helm.isEnabledFor(logging.DEBUG) or (is_new and not has_error)


_filter = _ClientFilter()
