"""Tests of HELM's pages of a suite with several benchmarks and many published rows, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.results.leaderboard.pages import MOST_OPTIONS
from tests.apps.report.suites import write_suite
from tests.e2e.browser import open_page, page_text, shown, until
from tests.support.programs import run

MODELS = {"acme/good": 0.7, "acme/bad": 0.1}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Summarize a suite with the installed command, and return its folder."""
    folder = tmp_path_factory.mktemp("first")
    entries = [
        f"helmet_{category.name}:length=16k"
        for category in HELMET.categories
        if category.averaged
    ]
    entries += [
        "helmet_recall:length=4k",
        "helmet_recall:length=8k",
        "any_jsonl:path=data/law,length=8k",
    ]
    write_suite(folder / "benchmark_output/runs/s", entries, MODELS, instances=3)
    for benchmark in ("helmet", "ada_leval"):
        assert (
            run(
                "helm-longctx", "reference", benchmark, "--suite", "s", folder=folder
            ).returncode
            == 0
        )
    summarized = run("helm-longctx", "summarize", "--suite", "s", folder=folder)
    assert summarized.returncode == 0, summarized.stderr
    return folder


def rows(browser: webdriver.Chrome) -> Iterator[list[WebElement]]:
    for row in browser.find_elements(By.CSS_SELECTOR, "tbody tr"):
        yield row.find_elements(By.TAG_NAME, "td")


WIDTH = "return document.querySelector('table.shadow-md').parentElement.scrollWidth + 2 * 32"
"""A script that returns the width that a table needs with the page's margins."""


@contextmanager
def window(browser: webdriver.Chrome, width: int, height: int) -> Iterator[None]:
    """Give the page a window of this size, which can be smaller than Chromium's smallest, until the block ends."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.browser
def test_the_first_view(page: str, browser: webdriver.Chrome) -> None:
    """The leaderboard opens with the user's benchmark and models, and fits windows of 1,500 and 1,300 pixels."""
    open_page(browser, f"{page}/#/leaderboard")
    shown(browser, "Leaderboard: HELMET 16k", "Summ 16k", "acme/good", "acme/bad")
    assert browser.execute_script("return innerWidth") == 1500
    assert browser.execute_script(WIDTH) <= 1500
    with window(browser, width=1300, height=1200):
        assert browser.execute_script("return innerWidth") == 1300
        assert browser.execute_script(WIDTH) <= 1300
    own = [cells for cells in rows(browser) if cells[0].text in MODELS]
    assert len(own) == 2
    assert all(cells[0].find_elements(By.CLASS_NAME, "font-bold") for cells in own)
    assert all(cells[0].rect["y"] < 1200 for cells in own)
    options = [option.text for option in browser.find_elements(By.TAG_NAME, "option")]
    assert len(set(options)) == len(options) <= MOST_OPTIONS
    assert [text for text in options if text in ("HELMET 4k", "HELMET 8k", "Ada-LEval 64k", "Own questions law 8k")] == [
        "HELMET 4k", "HELMET 8k", "Own questions law 8k", "Ada-LEval 64k"
    ]  # fmt: skip


@pytest.mark.browser
def test_all_lengths_fit_a_window(page: str, browser: webdriver.Chrome) -> None:
    """There is a tab for each category instead of a table of forty columns. On phones, only the table scrolls."""
    open_page(browser, f"{page}/#/leaderboard/helmet")
    text = shown(
        browser, "Leaderboard: HELMET", "Recall 8k", "Recall 128k", "acme/good"
    )
    assert "RAG 16k" not in text
    assert {"Average", "Recall", "RAG", "Summ"} <= set(text.split("\n"))
    assert browser.execute_script(WIDTH) <= 1500
    with window(browser, width=390, height=844):
        assert (
            browser.execute_script("return document.documentElement.scrollWidth") <= 390
        )


@pytest.mark.browser
def test_links_of_the_overall_score(page: str, browser: webdriver.Chrome) -> None:
    """An overall score links to the runs that it is made of, and never to the predictions of all models."""
    open_page(browser, f"{page}/#/leaderboard")
    shown(browser, "Leaderboard: HELMET 16k", "acme/good")
    links = {
        cells[0].text: [
            a.get_attribute("href") for a in cells[1].find_elements(By.TAG_NAME, "a")
        ]
        for cells in rows(browser)
    }
    published = [
        link
        for name, model_links in links.items()
        if name not in MODELS
        for link in model_links
    ]
    assert not [link for link in published if link]
    browser.get(str(links["acme/good"][0]))
    shown(browser, "7 results")


@pytest.mark.browser
def test_the_order_of_groups(page: str, browser: webdriver.Chrome) -> None:
    """On the page of groups, lengths ascend, no cell is empty, and a group's link opens its page."""
    open_page(browser, f"{page}/#/groups")
    shown(browser, "HELMET leaderboards")
    tab = browser.find_element(By.XPATH, "//*[text()='HELMET leaderboards']")
    browser.execute_script("arguments[0].click()", tab)
    until(browser, lambda tab: "HELMET 8k" in page_text(tab))
    texts = [[cell.text for cell in cells] for cells in rows(browser)]
    assert [row[0] for row in texts] == [
        "HELMET",
        *(f"HELMET {length}" for length in ("4k", "8k", "32k", "64k", "128k")),
    ]
    assert not [cell for row in texts for cell in row if cell in ("", "-")]
    browser.execute_script(
        "arguments[0].click()", browser.find_element(By.LINK_TEXT, "HELMET 8k")
    )
    shown(browser, "Leaderboard: HELMET 8k", "Recall 8k")


@pytest.mark.browser
def test_pages_beside_the_leaderboard(page: str, browser: webdriver.Chrome) -> None:
    """The pages of scenarios and models are not blank."""
    open_page(browser, f"{page}/#/scenarios")
    shown(
        browser,
        "HELMET Recall",
        "HELMET JSON KV",
        "Own questions law",
        "Total scenarios",
    )
    open_page(browser, f"{page}/#/models")
    shown(browser, "acme/good", "acme/bad")
