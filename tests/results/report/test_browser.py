"""The site in a real browser, from the file system: plots are drawn, texts stay texts, and axe finds nothing serious."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

from tests.e2e.browser import until

pytestmark = pytest.mark.browser

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
        "if (document.documentElement.dataset.theme !== arguments[0]) document.querySelector('.theme').click()", theme
    )
    drawn = "return [...document.querySelectorAll('figure.plot')].filter((f) => f.offsetParent && f.getBoundingClientRect().top < innerHeight).every((f) => f.querySelector('svg'))"
    until(browser, lambda tab: bool(tab.execute_script(drawn)))


def complaints(browser: webdriver.Chrome) -> list[Any]:
    """The console's errors and warnings."""
    return [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_accessible_and_without_errors(site: Path, browser: webdriver.Chrome, theme: str) -> None:
    """Every page, in both themes."""
    axe = (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    for page in [*site.glob("index.html"), *site.glob("helmet-*.html"), next(site.glob("instances-*.html"))]:
        open_site(browser, page, theme)
        browser.execute_script(axe)
        # In the other theme only colours differ.
        found = browser.execute_async_script(AXE, RULES if theme == "light" else ["color-contrast"])
        assert [each for each in found if each[0] in ("serious", "critical")] == [], page.name
        assert complaints(browser) == [], page.name


def test_instances_can_be_searched_and_opened(site: Path, browser: webdriver.Chrome) -> None:
    """Filters and search leave what fits; an opened instance shows its texts as texts."""
    page = next(site.glob("instances-helmet-recall-task-json-kv-length-8k-*.html"))
    open_site(browser, page)
    found = "return document.querySelector('.found').textContent"
    assert browser.execute_script(found) == "12 of 12 instances"
    change = "const f = document.querySelector('.filters'); f.elements[arguments[0]].value = arguments[1]; f.dispatchEvent(new Event('input'))"
    browser.execute_script(change, "show", "prompt_cut")
    until(browser, lambda tab: tab.execute_script(found) == "3 of 12 instances")
    browser.execute_script(change, "show", "")
    browser.execute_script("document.querySelector('.filters').elements.whole.checked = true")
    browser.execute_script(change, "text", "pier 7 青岛")
    until(browser, lambda tab: tab.execute_script(found) == "1 of 12 instances")
    browser.execute_script("document.querySelector('.instances summary').click()")
    until(
        browser,
        lambda tab: tab.execute_script("return document.querySelectorAll('.instance .side section').length") == 3,
    )
    shown = browser.execute_script("return document.querySelector('.instance').innerText")
    assert "<script>document.title='owned'</script>" in shown
    assert "helm-longctx show 'helmet_recall:task=json_kv,length=8k,model=acme_one' 'json_kv-7'" in shown
    assert browser.execute_script("return document.querySelectorAll('.instance script, .instance img').length") == 0
    assert browser.title.startswith("helmet_recall")


def test_readers_choose_lengths_models_and_order(site: Path, browser: webdriver.Chrome) -> None:
    """A length shows its section, a column sorts, and a plot has the models that are chosen."""
    open_site(browser, site / "index.html")
    browser.execute_script("[...document.querySelectorAll('.choices input')].find((e) => e.value === '8k').click()")
    visible = "return [...document.querySelectorAll('section[data-choice]')].filter((s) => s.offsetParent).map((s) => s.dataset.choice)"
    assert browser.execute_script(visible) == ["8k"]
    browser.execute_script("document.querySelector('section:not(.other) th:nth-child(4) button').click()")
    scores = browser.execute_script(
        "return [...document.querySelectorAll('section:not(.other) tbody tr')].map((row) => Number(row.cells[3].dataset.sort))"
    )
    assert scores == sorted(scores, reverse=True)
    open_site(browser, site / "helmet-length.html")
    count = "return document.querySelectorAll('figure.plot svg .mark-line path').length"
    before = browser.execute_script(count)
    browser.execute_script("document.querySelector('[data-choose=none]').click()")
    until(browser, lambda tab: 0 < tab.execute_script(count) < before)
    assert complaints(browser) == []
