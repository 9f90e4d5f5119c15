"""Opens a page of HELM's site in headless Chromium, and measures how long that takes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from selenium.webdriver.remote.webdriver import WebDriver
from tests.e2e.browser import served, start_chromium

PATIENCE = 300
"""Seconds after which a page counts as one that cannot be opened."""

PAINTED = "requestAnimationFrame(() => requestAnimationFrame(arguments[arguments.length - 1]))"
"""Ends when the browser has drawn what is in the page by now."""


@dataclass(frozen=True)
class OpenPage:
    """Args: the browser, and the seconds until the page was drawn."""

    browser: WebDriver
    seconds: float


@contextmanager
def open_page(folder: Path, route: str, selector: str) -> Iterator[OpenPage]:
    """Open a page of a folder's site, and wait until an element is drawn.

    Args:
        route: what follows `#` in the address.
        selector: the CSS selector of the element.
    """
    with (
        served(folder) as address,
        tempfile.TemporaryDirectory() as profile,
        start_chromium(Path(profile)) as browser,
    ):
        browser.set_script_timeout(PATIENCE)
        browser.execute_cdp_cmd("Performance.enable", {})
        start = time.perf_counter()
        browser.get(f"{address}/#{route}")
        script = "return document.querySelector(arguments[0]) !== null"
        while not browser.execute_script(script, selector):
            waited = time.perf_counter() - start
            assert waited < PATIENCE, "the page does not open"
            time.sleep(0.02)
        browser.execute_async_script(PAINTED)
        yield OpenPage(browser=browser, seconds=time.perf_counter() - start)
