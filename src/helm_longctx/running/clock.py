"""Times of requests that a change of the system's clock does not falsify."""

from __future__ import annotations

import time

import helm.common.request


class SteadyClock:
    """What HELM's function that times a request uses of Python's module `time`.

    HELM takes the difference of two readings of the system's clock. A clock that is set back between them gives
    negative seconds, one that is set forward too many. This clock starts at the system's time and is never set.
    """

    def __init__(self) -> None:
        self._start = time.time() - time.monotonic()

    def time(self) -> float:
        """Seconds since 1970."""
        return self._start + time.monotonic()


def install_steady_clock() -> None:
    """Make HELM time requests with a `SteadyClock`, whichever runner is used. Idempotent."""
    if not isinstance(helm.common.request.time, SteadyClock):
        helm.common.request.time = SteadyClock()
