"""What HELM's clients log while they are asked: no traceback for each request that fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_helm = logging.getLogger("helm")
_is_asking: ContextVar[bool] = ContextVar("is_asking", default=False)


@contextmanager
def quiet_clients() -> Iterator[None]:
    """Within the block HELM's log gets no tracebacks, and anything else once for each place in the code.

    Errors are in the results of requests, too, and are logged by kind. At the level DEBUG nothing is held back.
    """
    _helm.addFilter(_filter)
    token = _is_asking.set(True)
    try:
        yield
    finally:
        _is_asking.reset(token)


class _ClientFilter(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._places: set[tuple[str, int]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if not _is_asking.get() or _helm.isEnabledFor(logging.DEBUG):
            return True
        place = record.pathname, record.lineno
        is_new = place not in self._places
        self._places.add(place)
        # Where a secret was taken out of a traceback, the record has its text alone.
        return is_new and not (record.exc_info or record.exc_text)


_filter = _ClientFilter()
