"""The log of HELM's commands: the logger `helm`, on which HELM and this package write their messages.

Other modules of this package have loggers of their own, whose warnings HELM's commands show, but not their messages.
"""

import logging
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any


# In Python 3.10 the class takes no parameter.
class _IndentedLog(logging.LoggerAdapter):  # type: ignore[type-arg]
    """A logger with blocks. What is written in a block is indented, as HELM does it."""

    def __init__(self) -> None:
        super().__init__(logging.getLogger("helm"), {})
        self._depth = 0

    def process(
        self,
        msg: Any,
        kwargs: MutableMapping[str, Any],
    ) -> tuple[str, MutableMapping[str, Any]]:
        """Return the indented message."""
        return "  " * self._depth + str(msg), kwargs

    @contextmanager
    def block(self, title: str) -> Iterator[None]:
        """Write a title before the block, and how long it took after it."""
        start = time.monotonic()
        self.info(f"{title} {{")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.info(f"}} [{time.monotonic() - start:.3f}s]")


helm_log = _IndentedLog()
