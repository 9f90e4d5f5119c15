"""Opens the leaderboard that the real command serves in a headless Chromium."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from selenium import webdriver
from selenium.common.exceptions import (
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.programs import start

QUIET = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--window-size=1500,1200",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip


@contextmanager
def served(folder: Path, suite: str = "s") -> Iterator[str]:
    """Serve a suite with `helm-longctx serve`, and return the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = start(
        "helm-longctx", "serve", "--suite", suite, "--port", port, folder=folder
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"{address}/config.js", timeout=60).close()
                break
            except OSError:
                assert server.poll() is None, "the server ended"
                time.sleep(0.1)
        yield address
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(10)


@contextmanager
def start_chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """Start a headless Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    for argument in (*QUIET, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    driver = webdriver.Chrome(
        options, Service(os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver"))
    )
    try:
        yield driver
    finally:
        driver.quit()


def page_text(browser: webdriver.Chrome) -> str:
    """Return the text that the page shows. It is empty while the page has no body, such as during a reload."""
    return "".join(body.text for body in browser.find_elements(By.TAG_NAME, "body"))


def open_page(browser: webdriver.Chrome, address: str) -> None:
    """Load an address on a fresh page, because a browser does not load a page again if only the part after `#` changes."""
    browser.get("about:blank")
    browser.get(address)


def open_run(browser: webdriver.Chrome, address: str, entry: str) -> None:
    """Open the page of a run entry's run."""
    open_page(browser, f"{address}/#/runs/{quote(entry.replace('/', '_'), safe='')}")


def until(
    browser: webdriver.Chrome, condition: Callable[[webdriver.Chrome], bool]
) -> None:
    """Wait for a condition on a page that may be redrawn meanwhile. AssertionError has the page's text."""
    redrawn = [NoSuchElementException, StaleElementReferenceException]
    try:
        WebDriverWait(browser, 30, ignored_exceptions=redrawn).until(condition)
    except TimeoutException as error:
        raise AssertionError(f"not in 30 s:\n{page_text(browser)[:2000]}") from error


def shown(browser: webdriver.Chrome, *texts: str) -> str:
    """Return the page's text as soon as it contains all of these, and keep a screenshot if SCREENSHOTS names a folder."""
    until(browser, lambda tab: all(text in page_text(tab) for text in texts))
    if folder := os.environ.get("SCREENSHOTS"):
        name = re.sub(r"\W+", "-", browser.current_url.split("#")[-1])[:60]
        browser.save_screenshot(f"{folder}/{name}.png")
    return page_text(browser)
