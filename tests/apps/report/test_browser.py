"""Tests of the site in a real browser, opened from files: plots are drawn, texts stay texts, and axe finds no serious fault."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest
from selenium import webdriver

from tests.e2e.browser import until
from tests.support.sites import AXE, RULES, complaints, open_site

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_accessible_and_without_errors(
    site: Path, browser: webdriver.Chrome, theme: str
) -> None:
    """Every page has no serious fault of accessibility and no error in the console, in both themes."""
    axe = (resources.files("axe_core_python") / "axe.min.js").read_text(
        encoding="utf-8"
    )
    complaints(browser)  # of other tests, which use the same browser
    for page in [
        *site.glob("index.html"),
        *site.glob("helmet-*.html"),
        next(site.glob("instances-*.html")),
    ]:
        open_site(browser, page, theme)
        browser.execute_script(axe)
        # In the other theme only colours differ.
        reply = browser.execute_async_script(
            AXE, RULES if theme == "light" else ["color-contrast"]
        )
        assert [
            complaint for complaint in reply if complaint[0] in ("serious", "critical")
        ] == [], page.name
        assert complaints(browser) == [], page.name


def test_instances_can_be_searched_and_opened(
    site: Path, browser: webdriver.Chrome
) -> None:
    """Filters and search show only the instances that match, and an opened instance shows its texts without obeying markup."""
    page = next(site.glob("instances-helmet-recall-task-json-kv-length-8k-*.html"))
    open_site(browser, page)
    count_text = "return document.querySelector('.found').textContent"
    assert browser.execute_script(count_text) == "12 of 12 instances"
    change = "const f = document.querySelector('.filters'); f.elements[arguments[0]].value = arguments[1]; f.dispatchEvent(new Event('input'))"
    browser.execute_script(change, "show", "prompt_cut")
    until(browser, lambda tab: tab.execute_script(count_text) == "3 of 12 instances")
    browser.execute_script(change, "show", "")
    browser.execute_script(
        "document.querySelector('.filters').elements.whole.checked = true"
    )
    browser.execute_script(change, "text", "pier 7 青岛")
    until(browser, lambda tab: tab.execute_script(count_text) == "1 of 12 instances")
    browser.execute_script("document.querySelector('.instances summary').click()")
    until(
        browser,
        lambda tab: (
            tab.execute_script(
                "return document.querySelectorAll('.instance .side section').length"
            )
            == 3
        ),
    )
    scores = browser.execute_script(
        "return [...document.querySelectorAll('.chip b')].map((each) => each.textContent)"
    )
    assert scores
    assert all(re.fullmatch(r"\d+\.\d|–", score) for score in scores)
    shown = browser.execute_script(
        "return document.querySelector('.instance').innerText"
    )
    assert "<script>document.title='owned'</script>" in shown
    assert (
        "helm-longctx show 'helmet_recall:task=json_kv,length=8k,model=acme_one' 'json_kv-7'"
        in shown
    )
    assert (
        browser.execute_script(
            "return document.querySelectorAll('.instance script, .instance img').length"
        )
        == 0
    )
    assert browser.title.startswith("helmet_recall")


def test_readers_choose_lengths_models_and_order(
    site: Path, browser: webdriver.Chrome
) -> None:
    """A chosen length shows only its section, a click on a heading sorts, and a plot has only the chosen models."""
    open_site(browser, site / "index.html")
    browser.execute_script(
        "[...document.querySelectorAll('.choices input')].find((e) => e.value === '8k').click()"
    )
    visible = "return [...document.querySelectorAll('section[data-choice]')].filter((s) => s.offsetParent).map((s) => s.dataset.choice)"
    assert browser.execute_script(visible) == ["8k"]
    open_site(browser, site / "helmet-length.html")
    count = "return document.querySelectorAll('figure.plot svg .mark-line path').length"
    before = browser.execute_script(count)
    browser.execute_script("document.querySelector('[data-choose=none]').click()")
    until(browser, lambda tab: 0 < tab.execute_script(count) < before)
    assert complaints(browser) == []


def test_rows_stay_apart_when_sorted(beside: Path, browser: webdriver.Chrome) -> None:
    """Own models, floors and published models are sorted each among themselves, and missing numbers are last."""
    open_site(browser, beside / "index.html")
    values = """return [...document.querySelector('section:not(.other) table').tBodies]
        .map((body) => [body.className, [...body.rows].map((row) => row.cells[2].dataset.value ?? null)])"""
    assert [kind for kind, _ in browser.execute_script(values)] == [
        "own",
        "floor",
        "other",
    ]
    browser.execute_script(
        "delete document.querySelector('section:not(.other) tbody.other').rows[2].cells[2].dataset.value"
    )
    for down in (True, False):
        browser.execute_script(
            "document.querySelector('section:not(.other) th:nth-child(3) button').click()"
        )
        reply = dict(browser.execute_script(values))
        assert reply["own"] == [None, None]
        *numbers, missing = reply["other"]
        assert missing is None
        assert numbers == sorted(numbers, key=float, reverse=down)


def set_width(browser: webdriver.Chrome, width: int, height: int) -> None:
    """Give the page a window of this size, which can be smaller than Chromium's smallest."""
    size = {
        "width": width,
        "height": height,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def test_depth_maps_stand_below_each_other_on_phones(
    site: Path, browser: webdriver.Chrome
) -> None:
    """The panels of a plot are below each other on a phone, so that it needs no sideways scrolling."""
    try:
        set_width(browser, 390, 844)
        open_site(browser, site / "helmet-depth.html")
        assert (
            browser.execute_script(
                "return document.querySelector('figure.plot .scroll').scrollWidth"
            )
            <= 390
        )
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_pages_fit_phones_and_wide_windows(
    beside: Path, browser: webdriver.Chrome
) -> None:
    """Navigation leaves the screen to the content, and HELMET's table at a length needs no sideways scrolling."""
    hidden = "return [...document.querySelectorAll('.scroll')].filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1).length"
    try:
        for page in (
            *beside.glob("helmet-*.html"),
            next(beside.glob("instances-*.html")),
        ):
            set_width(browser, 390, 844)
            open_site(browser, page)
            assert (
                browser.execute_script(
                    "return document.querySelector('header.top').offsetHeight"
                )
                < 0.2 * 844
            )
            assert (
                browser.execute_script("return document.documentElement.scrollWidth")
                <= 390
            ), page.name
        open_site(browser, beside / "index.html")
        assert (
            browser.execute_script(
                "return document.querySelector('figure.plot .scroll').scrollWidth"
            )
            <= 390
        )
        for width in (1300, 1500):
            set_width(browser, width, 1200)
            open_site(browser, beside / "index.html")
            assert browser.execute_script(hidden) == 0, width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


_TABLE = """
const table = [...document.querySelectorAll('.table')].find((each) => each.offsetParent);
const scroll = table.querySelector('.scroll');
if (arguments[0]) scroll.scrollLeft = arguments[0];
const name = table.querySelector('tbody td.name').getBoundingClientRect();
return [table.classList.contains('cut'), name.left - scroll.getBoundingClientRect().left];
"""


def test_a_wide_table_says_that_it_scrolls(
    beside: Path, browser: webdriver.Chrome
) -> None:
    """A table that is wider than the page says so until its end is in view, and the model's name stays in sight."""
    try:
        set_width(browser, 800, 1200)
        open_site(browser, beside / "index.html")
        until(browser, lambda tab: tab.execute_script(_TABLE, 0)[0])
        browser.execute_script(_TABLE, 10_000)
        until(browser, lambda tab: not tab.execute_script(_TABLE, 0)[0])
        assert browser.execute_script(_TABLE, 0)[1] == 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
