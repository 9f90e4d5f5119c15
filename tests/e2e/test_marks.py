"""Tests what the pages show of scores that are not comparable and of texts that look like HTML, in a real browser."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from helm_longctx.benchmarks.helmet.tasks import HELMET
from tests.e2e.browser import open_page, open_run, shown
from tests.support.fabricate_runs import long_prompts, write_run
from tests.support.programs import run

IMAGE = '<br><img src="data:image;base64,x" onerror="window.broken_out = true">'
EVIL = f"Before {IMAGE}<script>window.broken_out = true</script><b>after</b> [x](javascript:alert(1)) $$"
EVIL_RUN = "helmet_recall:task=json_kv,length=32k,model=longctx/null"
SCORES = {"longctx/lexical": 0.4, "longctx/null": 0.6, "simple/model1": 0.5}
FEW = "helmet_recall:length=8k,num_samples=4,model=longctx/null"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Summarize fabricated runs with the installed command, and return the folder."""
    folder = tmp_path_factory.mktemp("marks")
    runs = folder / "benchmark_output/runs/s"
    for model, score in SCORES.items():
        samples = ",num_samples=4" if model == "longctx/null" else ""
        write_category(runs, f"helmet_recall:length=8k{samples}", model, score)
    write_evil(runs)
    summarized = run("helm-longctx", "summarize", "--suite", "s", folder=folder)
    assert summarized.returncode == 0, summarized.stderr
    (folder / "summary.txt").write_text(summarized.stdout)
    return folder


def write_category(runs: Path, entry: str, model: str, score: float) -> None:
    """Write a run of all tasks of a category, in which each answer has this score."""
    one = write_run(
        runs,
        entry.replace("length", "task=json_kv,length") + ",model=longctx/null",
        long_prompts(2, 500),
    )
    spec = json.loads((one / "run_spec.json").read_text())
    del spec["scenario_spec"]["args"]["task"]
    spec["name"] = f"{entry},model={model.replace('/', '_')}"
    spec["adapter_spec"] |= {"model": model, "model_deployment": model}
    tasks = [task.name for task in HELMET.entries["helmet_recall"].tasks]
    spec["groups"] = [
        spec["groups"][0],
        *(spec["groups"][1].replace("json_kv", task) for task in tasks),
    ]
    (one / "run_spec.json").write_text(json.dumps(spec))
    stats = {
        task: [
            stat_of(name, task, score) for name in ("longctx_score", f"{task}_score")
        ]
        for task in tasks
    }
    answers = [
        {
            "instance_id": f"{task}-{number}",
            "train_trial_index": 0,
            "stats": stats[task],
        }
        for task in tasks
        for number in range(2)
    ]
    (one / "stats.json").write_text(
        json.dumps([stat for rows in stats.values() for stat in rows])
    )
    (one / "per_instance_stats.json").write_text(json.dumps(answers))
    states = json.loads((one / "scenario_state.json").read_text())
    states["request_states"] = [
        {
            **state,
            "instance": {
                **state["instance"],
                "id": f"{task}-{number}",
                "sub_split": task,
            },
        }
        for task in tasks
        for number, state in enumerate(states["request_states"])
    ]
    (one / "scenario_state.json").write_text(json.dumps(states, indent=2))
    one.rename(runs / spec["name"])


def stat_of(metric: str, task: str, value: float) -> dict[str, Any]:
    """The JSON of a statistic with one value."""
    counts = {
        "count": 1,
        "sum": value,
        "sum_squared": value**2,
        "min": value,
        "max": value,
        "mean": value,
    }
    name = {"name": metric, "split": "test", "sub_split": task}
    return {"name": name, **counts, "variance": 0.0, "stddev": 0.0}


def write_evil(runs: Path) -> None:
    """Write a run in which every text that the page shows is HTML that would run a script."""
    path = (
        write_run(runs, EVIL_RUN, [(EVIL, EVIL), (EVIL + " long" * 3000, EVIL)])
        / "scenario_state.json"
    )
    content: dict[str, Any] = json.loads(path.read_text())
    for state in content["request_states"]:
        state["instance"]["extra_data"] |= {"question": EVIL, "record": {EVIL: [EVIL]}}
        state["annotations"] = {"jury": {"replies": {EVIL: EVIL}}}
        state["result"]["completions"][0] |= {"text": EVIL, "thinking": {"text": EVIL}}
    path.write_text(json.dumps(content, indent=2))


@pytest.mark.browser
def test_no_text_is_html(page: str, browser: webdriver.Chrome) -> None:
    """Inputs, references, predictions and all other texts are shown unchanged and run no script."""
    open_run(browser, page, EVIL_RUN)
    shown(browser, "json_kv-1", "characters left out")
    for summary in browser.find_elements(By.TAG_NAME, "summary"):
        browser.execute_script("arguments[0].click()", summary)
    text = shown(browser, "json_kv-1", EVIL)
    assert text.count(EVIL) >= 10
    assert browser.execute_script("return window.broken_out") is None
    assert not browser.find_elements(By.CSS_SELECTOR, "script:not([src]), img[onerror]")


@pytest.mark.browser
def test_marks_on_the_leaderboard(page: str, browser: webdriver.Chrome) -> None:
    """A score that is not comparable has a mark and its reason, is sorted among the others, and is not the best."""
    open_page(browser, f"{page}/#/leaderboard/helmet_8k")
    shown(
        browser,
        "60.0 †",
        "† Not comparable",
        "4 of the benchmark's 100 examples (json_kv, ruler_niah_mk_2",
    )
    cells = [
        [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
        for row in rows(browser)
    ]
    assert [row[1].split(" (")[0] for row in cells] == ["60.0 †", "50.0", "40.0"]
    assert [row[2] == "-" for row in cells] == [False, True, True]
    (bold,) = browser.find_elements(By.CSS_SELECTOR, "td .font-bold")
    assert bold.text.startswith("50.0 (")
    button = browser.find_elements(By.CSS_SELECTOR, "thead th button")[1]
    browser.execute_script(
        "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", button
    )
    texts = [row.find_elements(By.TAG_NAME, "td")[1].text for row in rows(browser)]
    assert [text.split(" (")[0] for text in texts] == ["40.0", "50.0", "60.0 †"]


def rows(browser: webdriver.Chrome) -> Any:
    return browser.find_elements(By.CSS_SELECTOR, "tbody tr")


@pytest.mark.browser
def test_marks_on_the_page_of_a_run(page: str, browser: webdriver.Chrome) -> None:
    """A run's page shows why its score is not comparable, and shows no such tag for a comparable run."""
    open_run(browser, page, FEW)
    shown(
        browser,
        "† 4 of the benchmark's 100 examples (json_kv, ruler_niah_mk_2, ruler_niah_mk_3, ruler_niah_mv)",
    )
    open_run(
        browser, page, FEW.replace(",num_samples=4", "").replace("null", "lexical")
    )
    assert "†" not in shown(browser, "Lexical baseline", "long_context")


def test_marks_in_files(suite: Path) -> None:
    """`summarize` prints the marks, and `export` writes them."""
    summary = " ".join((suite / "summary.txt").read_text().split())
    assert re.search(r"60\.0 † \([\d.]+–[\d.]+\)", summary)
    few = "4 of the benchmark's 100 examples (json_kv, ruler_niah_mk_2, ruler_niah_mk_3, ruler_niah_mv)"
    assert f"† Not comparable: HELMET, longctx/null: Recall 8k: {few}" in summary
    assert (
        "Recall 32k: no score (ruler_niah_mk_2, ruler_niah_mk_3, ruler_niah_mv)"
        in summary
    )
    exported = run("helm-longctx", "export", "--suite", "s", folder=suite)
    assert exported.returncode == 0, exported.stderr
    with (suite / "export/scores.csv").open(encoding="utf-8-sig") as file:
        lacking = {
            (row["run"], row["task"]): row["caveats"] for row in csv.DictReader(file)
        }
    assert lacking[FEW.replace("/", "_"), "json_kv"] == "num_samples:json_kv=4/100"
    assert lacking[EVIL_RUN.replace("/", "_"), "json_kv"] == ""
    with (suite / "export/averages.csv").open(encoding="utf-8-sig") as file:
        averages = {
            (row["model"], row["task"], row["length"]): row["caveats"]
            for row in csv.DictReader(file)
        }
    assert averages["longctx/lexical", "average", "8k"] == ""
    assert averages["longctx/null", "average", "32k"].startswith(
        "missing:ruler_niah_mk_2;missing:"
    )
