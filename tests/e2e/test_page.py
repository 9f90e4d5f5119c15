"""Tests of the run page at long contexts, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from tests.e2e.browser import open_page, open_run, shown
from tests.support.fabricate_runs import CHINESE, long_prompts, write_run
from tests.support.programs import run

RECALL = "helmet_recall:task=json_kv,length=128k,model=longctx/"
CHINESE_RUN = "lv_eval:dataset=dureader_mixup,length=256k,model=longctx/null"
PROMPT = 550_000
COUNT = 60
MEGABYTE = 1e6


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Summarize long runs with the installed command, and return the folder."""
    folder = tmp_path_factory.mktemp("long")
    runs = folder / "benchmark_output/runs/s"
    write_run(runs, RECALL + "null", long_prompts(COUNT, PROMPT))
    write_run(runs, RECALL + "lexical", long_prompts(2, PROMPT))
    write_run(runs, CHINESE_RUN, long_prompts(COUNT, 400_000, CHINESE))
    summarized = run("helm-longctx", "summarize", "--suite", "s", folder=folder)
    assert summarized.returncode == 0, summarized.stderr
    return folder


def heap(browser: webdriver.Chrome) -> float:
    """Return the bytes of JavaScript objects, garbage included."""
    browser.execute_cdp_cmd("Performance.enable", {})
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(
        float(metric["value"])
        for metric in metrics
        if metric["name"] == "JSHeapUsedSize"
    )


@pytest.mark.browser
def test_run_page(page: str, browser: webdriver.Chrome) -> None:
    """The run page shows head, tail and evidence in little memory, and its links open the whole prompt and the list."""
    open_run(browser, page, RECALL + "null")
    number = 5
    answer = list(long_prompts(COUNT, PROMPT))[number][1]
    shown(
        browser,
        f"json_kv-{number}",
        "characters left out",
        f"depth {100 * number // (COUNT - 1)}%: {answer}",
    )
    assert heap(browser) < 60 * MEGABYTE
    instance = browser.find_element(By.ID, f"instance-json_kv-{number}")
    assert answer in instance.find_element(By.TAG_NAME, "mark").text
    links = {
        link.text: link.get_attribute("href")
        for link in instance.find_elements(By.TAG_NAME, "a")
    }
    browser.get(str(links["Whole prompt"]))
    whole = str(browser.execute_script("return document.body.textContent"))
    assert len(whole) > PROMPT
    assert f"<key> is {answer}. " in whole
    browser.get(str(links["all prompts of this run"]))
    assert [link.text for link in browser.find_elements(By.TAG_NAME, "a")] == [
        f"json_kv-{n}" for n in range(COUNT)
    ]


@pytest.mark.browser
def test_later_instances(page: str, browser: webdriver.Chrome) -> None:
    """Every page of instances opens, and so do a request's details."""
    open_run(browser, page, RECALL + "null")
    shown(browser, "json_kv-9")
    next_page = browser.find_elements(By.CSS_SELECTOR, ".join button")[-1]
    browser.execute_script("arguments[0].click()", next_page)
    shown(browser, "json_kv-10", "json_kv-19")
    details = browser.find_elements(By.XPATH, "//summary[text()='Request details']")[0]
    browser.execute_script("arguments[0].click()", details)
    shown(browser, "[whole prompt: ")


@pytest.mark.browser
def test_chinese(page: str, browser: webdriver.Chrome) -> None:
    """Chinese text is readable on the page and in the file that it links to."""
    open_run(browser, page, CHINESE_RUN)
    text = shown(browser, "dureader_mixup-0", "characters left out", "测量员沿着河岸")
    assert "\ufffd" not in text
    link = browser.find_element(By.LINK_TEXT, "Whole prompt").get_attribute("href")
    browser.get(str(link))
    whole = str(browser.execute_script("return document.body.textContent"))
    (prompt, _), *_ = long_prompts(COUNT, 400_000, CHINESE)
    assert whole.startswith(prompt)


@pytest.mark.browser
def test_leaderboard_and_comparison(page: str, browser: webdriver.Chrome) -> None:
    """The leaderboard, a group's tables and the list of runs have both models."""
    for path, texts in {
        "leaderboard": ("Lexical baseline", "Null baseline", "Recall 128k"),
        "groups/helmet_recall_128k": ("Lexical baseline", "Null baseline"),
        "runs": (
            RECALL.replace("/", "_") + "null",
            RECALL.replace("/", "_") + "lexical",
            "dureader_mixup",
        ),
    }.items():
        open_page(browser, f"{page}/#/{path}")
        shown(browser, *texts)
        assert heap(browser) < 60 * MEGABYTE
