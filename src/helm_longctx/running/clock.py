"""Makes HELM time requests by a clock that jumps of the system clock do not affect."""

from __future__ import annotations

import time

import helm.common.request


class SteadyClock:
    """Replaces the module `time` in HELM's function that times a request.

    HELM subtracts two readings of the system clock. If the clock is set back between them, the result is negative; if
    it is set forward, the result is too large. This clock starts at the system's time and is never set.
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
