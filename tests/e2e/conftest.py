"""A browser for a module's suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.e2e.browser import chromium, served


@pytest.fixture(scope="module")
def page(suite: Path) -> Iterator[str]:
    """The address of the leaderboard's server."""
    with served(suite) as address:
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A headless Chromium."""
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver
