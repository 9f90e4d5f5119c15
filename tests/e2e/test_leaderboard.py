"""Tests the way from `helm-run` to the leaderboard in a real browser, offline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from helm_longctx.data.root import DataRoot
from tests.e2e.browser import open_page, page_text, shown, until
from tests.e2e.commands import helm_run
from tests.support.leaderboards import stats, table
from tests.support.programs import run

ENTRIES = [
    *(
        f"helmet_recall:length={length},num_samples=6,model=longctx/{m}"
        for length in ("4k", "8k")
        for m in ("lexical", "null")
    ),
    "helmet_recall:task=json_kv,length=16k,num_samples=6,style=chat,model=longctx/lexical",
]
LEXICAL = "helmet_recall:length=4k,num_samples=6,model=longctx_lexical"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory, mirror: DataRoot) -> Path:
    """Make and summarize runs with the installed commands, and return their folder."""
    folder = tmp_path_factory.mktemp("suite")
    made = helm_run(folder, *ENTRIES)
    assert made.returncode == 0, made.stderr
    icl = "helmet_icl:task=banking77,length=4k,model=longctx/lexical"
    assert helm_run(folder, icl, HELM_LONGCTX_DATA=str(mirror.path)).returncode == 0
    summarized = run("helm-longctx", "summarize", "--suite", "s", folder=folder)
    assert summarized.returncode == 0, summarized.stderr
    (folder / "summary.txt").write_text(summarized.stdout)
    return folder


def test_scores_by_task_and_depth(suite: Path) -> None:
    """The lexical baseline finds every needle at every depth, and the constant answer finds none."""
    lexical = stats(suite, LEXICAL)
    for task in ("json_kv", "ruler_niah_mk_2", "ruler_niah_mk_3", "ruler_niah_mv"):
        assert lexical["longctx_score", task] == lexical[f"{task}_score", task] == 1.0
        assert lexical["num_instances", task] == 6
        assert lexical["generated_data", task] == 1.0
        assert lexical["request_failed", task] == 0.0
        assert [
            lexical[f"longctx_score_at_depth_{d}", task]
            for d in (0, 20, 40, 60, 80, 100)
        ] == [1.0] * 6
    assert (
        stats(suite, LEXICAL.replace("lexical", "null"))["longctx_score", "json_kv"]
        == 0.0
    )


def test_chat_form_drops_the_prefix(suite: Path) -> None:
    """With `style=chat` the request is the user turn, and the output is scored as it stands."""
    name = "helmet_recall:task=json_kv,length=16k,num_samples=6,style=chat,model=longctx_lexical"
    state = json.loads(
        (suite / f"benchmark_output/runs/s/{name}/scenario_state.json").read_text()
    )["request_states"][0]
    assert state["request"]["prompt"] == state["instance"]["input"]["text"]
    assert state["instance"]["extra_data"]["style"] == "chat"
    assert stats(suite, name)["exact_match", "json_kv"] == 1.0
    assert state["request"]["max_tokens"] == 100
    assert state["request"]["temperature"] == 0.0


def test_each_task_keeps_its_budget_in_a_run_of_several(suite: Path) -> None:
    """A run of four tasks sends each task with its own number of output tokens, in completion form."""
    states = json.loads(
        (suite / f"benchmark_output/runs/s/{LEXICAL}/scenario_state.json").read_text()
    )["request_states"]
    budgets = {s["instance"]["sub_split"]: s["request"]["max_tokens"] for s in states}
    assert budgets == {
        "json_kv": 100,
        "ruler_niah_mk_2": 50,
        "ruler_niah_mk_3": 100,
        "ruler_niah_mv": 50,
    }
    for s in states:
        extra = s["instance"]["extra_data"]
        assert (
            s["request"]["prompt"]
            == s["instance"]["input"]["text"]
            + extra["separator"]
            + extra["answer_prefix"]
        )
        assert 0 < extra["input_tokens"] <= 4096 - s["request"]["max_tokens"]


def test_no_prompt_in_the_log(tmp_path: Path) -> None:
    """No line of a prompt is logged."""
    made = helm_run(
        tmp_path,
        "helmet_recall:task=json_kv,length=4k,num_samples=2,model=longctx/lexical",
    )
    assert made.returncode == 0
    assert "JSON data" not in made.stdout + made.stderr
    assert max(map(len, (made.stdout + made.stderr).splitlines())) < 3000


def test_tables_by_length_category_and_task(suite: Path) -> None:
    """The tables of helm-summarize have the means of categories by length, and each task in its own column."""
    lexical = table(suite, "helmet", "Score")["Lexical baseline"]
    assert lexical["Recall 4k"] == lexical["Recall 8k"] == lexical["Recall 16k"] == 1.0
    assert 0 <= lexical["ICL 4k"] <= 1
    assert table(suite, "helmet_8k", "Score")["Null baseline"]["Recall 8k"] == 0.0
    assert (
        table(suite, "helmet_json_kv", "Score")["Lexical baseline"]["JSON KV 16k"]
        == 1.0
    )
    assert "JSON KV 16k" not in str(table(suite, "helmet_ruler_niah_mv", "Score"))
    assert "longctx/lexical" in (suite / "summary.txt").read_text()


def test_plain_helm_summarize(suite: Path) -> None:
    """HELM's own helm-summarize gives the same tables with the schema file that `schema` prints."""
    schema = run("helm-longctx", "schema", "--suite", "s", folder=suite)
    (suite / "schema.yaml").write_text(schema.stdout)
    # In several threads it fails at times on Python 3.11, whose parser Mako calls.
    arguments = (
        "--suite",
        "s",
        "--schema-path",
        "schema.yaml",
        "--schema-validation",
        "error",
        "--num-threads",
        "1",
    )
    summarized = run("helm-summarize", *arguments, folder=suite)
    assert summarized.returncode == 0, summarized.stderr
    assert (
        table(suite, "helmet", "Score")["longctx/lexical"]["Recall 4k - Score"] == 1.0
    )
    assert (
        run("helm-longctx", "summarize", "--suite", "s", folder=suite).returncode == 0
    )


@pytest.mark.browser
def test_leaderboard_page(page: str, browser: webdriver.Chrome) -> None:
    """The leaderboard opens with the longest length that most models have, sorts rows, and links to runs."""
    open_page(browser, f"{page}/#/leaderboard")
    shown(
        browser,
        "Leaderboard: HELMET 8k",
        "Lexical baseline",
        "Null baseline",
        "Recall 8k",
        "100.0 † (",
    )
    assert "Recall 4k" not in browser.find_element(By.TAG_NAME, "thead").text
    encodings = browser.execute_async_script(
        "const done = arguments[0]; fetch('benchmark_output/runs/s/groups/helmet.json')"
        ".then(reply => done(reply.headers.get('content-encoding')))"
    )
    assert encodings == "gzip"
    open_page(browser, f"{page}/#/leaderboard/helmet")
    text = shown(
        browser, "Lexical baseline", "Null baseline", "Recall 4k", "Recall 8k", "ICL 4k"
    )
    assert text.index("Lexical baseline") < text.index("Null baseline")
    for _ in range(2):  # first by this column, then the other way round
        headers = browser.find_elements(By.CSS_SELECTOR, "thead th, thead td")
        column = next(header for header in headers if "Recall 8k" in header.text)
        target = column.find_elements(By.CSS_SELECTOR, "button, svg, div")[-1]
        browser.execute_script(
            "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))",
            target,
        )
    until(
        browser,
        lambda tab: (
            "Null baseline" in tab.find_element(By.CSS_SELECTOR, "tbody tr").text
        ),
    )
    links = [
        a.get_attribute("href") or ""
        for a in browser.find_elements(By.CSS_SELECTOR, "tbody a")
    ]
    assert any("runs" in link for link in links)


@pytest.mark.browser
def test_length_and_category_pages(page: str, browser: webdriver.Chrome) -> None:
    """Groups by length, by category and by task have their own pages."""
    for group, texts in {
        "helmet_8k": ("HELMET 8k", "Recall 8k"),
        "helmet_recall": ("HELMET Recall", "Recall 4k", "Recall 8k"),
        "helmet_json_kv": ("JSON KV", "JSON KV 16k"),
        "helmet_recall_4k": (
            "HELMET Recall 4k",
            "By depth",
            "JSON KV 4k",
            "RULER MV 4k",
        ),
    }.items():
        open_page(browser, f"{page}/#/leaderboard/{group}")
        shown(browser, "Lexical baseline", *texts)


@pytest.mark.browser
def test_instance_page(page: str, browser: webdriver.Chrome, suite: Path) -> None:
    """An instance shows its question, answer, prediction, depth and metrics."""
    state = json.loads(
        (suite / f"benchmark_output/runs/s/{LEXICAL}/scenario_state.json").read_text()
    )["request_states"][0]
    instance = state["instance"]
    answer = state["instance"]["references"][0]["output"]["text"]
    open_page(browser, f"{page}/#/runs/{LEXICAL}?instancesPage=1")
    text = shown(browser, instance["id"], answer, "Score", "Substring EM", "Depth")
    assert (
        text.count(answer) >= 3
    )  # in the context, as the reference, as the prediction
    before = text.count(instance["extra_data"]["question"])
    browser.find_element(By.XPATH, "//*[text()='View instance extra data']").click()
    until(
        browser,
        lambda tab: page_text(tab).count(instance["extra_data"]["question"]) > before,
    )


@pytest.mark.browser
def test_a_link_opens_its_instance(page: str, browser: webdriver.Chrome) -> None:
    """A link to an instance after the first ten opens the run's page with this instance in view, once."""
    link = f"{page}/#/runs/{LEXICAL}?instance=ruler_niah_mv-5"
    open_page(browser, link)
    text = shown(browser, "Instance id: ruler_niah_mv-5", "»")
    assert text.count("Instance id: ruler_niah_mv-5") == 1
    in_view = "return document.getElementById('instance-ruler_niah_mv-5').getBoundingClientRect().top < innerHeight"
    until(browser, lambda tab: tab.execute_script(in_view))
    open_page(browser, link.partition("?")[0])
    assert "Instance id: ruler_niah_mv-5" not in shown(browser, "Instance id:", "»")
