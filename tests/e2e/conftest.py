"""The leaderboard of a module's suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.browser import served


@pytest.fixture(scope="module")
def page(suite: Path) -> Iterator[str]:
    """Return the address of the leaderboard's server."""
    with served(suite) as address:
        yield address
