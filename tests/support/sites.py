"""Opens a report's site in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from selenium import webdriver

from tests.e2e.browser import until

# Without most rows of long tables, which are alike.
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")

AXE = """
const done = arguments[arguments.length - 1];
axe.run({exclude: [["tbody tr:nth-child(n+12)"]]}, {runOnly: arguments[0]})
   .then((found) => done(found.violations.map((v) => [v.impact, v.id, v.nodes.map((node) => node.html.slice(0, 200))])));
"""


def open_site(browser: webdriver.Chrome, page: Path, theme: str = "light") -> None:
    """Open a page in a theme, and wait for the plots in view."""
    browser.get(page.as_uri())
    browser.execute_script(
        "if (document.documentElement.dataset.theme !== arguments[0]) document.querySelector('.theme').click()",
        theme,
    )
    drawn = "return [...document.querySelectorAll('figure.plot')].filter((f) => f.offsetParent && f.getBoundingClientRect().top < innerHeight).every((f) => f.querySelector('svg'))"
    until(browser, lambda tab: bool(tab.execute_script(drawn)))


def complaints(browser: webdriver.Chrome) -> list[Any]:
    """The console's errors and warnings."""
    return [
        entry
        for entry in browser.get_log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]
