"""Tests of the plugin in a HELM that a user already has: own `prod_env`, own schema, HELM's own runner and summarizer."""

from __future__ import annotations

import json
import random
import shlex
import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from selenium import webdriver

from tests.benchmarks.longbench_v2.fabricate import build_longbench_v2
from tests.benchmarks.longhealth.fabricate import build_longhealth
from tests.e2e.browser import open_page, served, shown
from tests.e2e.commands import helm_run
from tests.support.fabricate import json_kv_rows, write
from tests.support.programs import run

REPOSITORY = Path(__file__).parents[2]
REASONING = "synthetic_reasoning:mode=pattern_match,model=simple/model1"
RECALL = "helmet_recall:task=json_kv,length=8k,model=longctx/lexical"
COUNTED = "longhealth:task=task1,model=longctx/lexical"
TWO_REQUESTS = "longbench_v2:mode=cot,model=longctx/lexical"
RUNS = Path("benchmark_output/runs/s")
MOST = 20
"""Instances of each run. HELM's scenario has 1,000, which take most of a minute in all commands together."""

OWN: dict[str, Any] = {
    "metrics": [{"name": "quasi_exact_match", "display_name": "Our match"}],
    "metric_groups": [
        {
            "name": "score",
            "display_name": "Our accuracy",
            "metrics": [{"name": "${main_name}", "split": "test"}],
        }
    ],
    "run_groups": [
        {
            "name": "board",
            "display_name": "Our board",
            "category": "Boards",
            "subgroups": ["synthetic_reasoning"],
        },
        {
            "name": "synthetic_reasoning",
            "display_name": "Reasoning",
            "metric_groups": ["score"],
            "environment": {"main_name": "quasi_exact_match", "main_split": "test"},
        },
    ],
}
"""A user's schema. Its metric group has the name of one of ours."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a scenario of HELM and entries of ours with HELM's own runner, and return the user's folder."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "prod_env").mkdir()
    shutil.copy(REPOSITORY / "model_deployments.yaml", folder / "prod_env")
    (folder / "own.yaml").write_text(yaml.safe_dump(OWN))
    write(
        folder / "data/helmet/json_kv/test_k105_dep6.jsonl",
        json_kv_rows(random.Random(5), 104),
    )
    build_longhealth(folder / "data")
    build_longbench_v2(folder / "data")
    made = helm_run(
        folder,
        REASONING,
        RECALL,
        COUNTED,
        TWO_REQUESTS,
        most=MOST,
        HELM_LONGCTX_DATA=str(folder / "data"),
    )
    (folder / "log").write_text(made.stdout + made.stderr)
    return folder


def test_the_repositorys_deployments_are_the_packages() -> None:
    """The file at the top of the repository, which users copy to `prod_env`, is a file and has the package's content."""
    path = REPOSITORY / "model_deployments.yaml"
    assert not path.is_symlink()
    assert (
        path.read_text()
        == (
            resources.files("helm_longctx") / "models/model_deployments.yaml"
        ).read_text()
    )


def test_helms_own_runner(home: Path) -> None:
    """HELM's own runner makes runs that count tokens, and refuses in one line what it cannot send."""
    assert {path.parent.name for path in (home / RUNS).glob("*/stats.json")} == {
        entry.replace("/", "_") for entry in (REASONING, RECALL, COUNTED)
    }
    log = (home / "log").read_text()
    (line,) = [line for line in log.splitlines() if "cannot send" in line]
    assert "give --runner-class-name helm_longctx.runner.LongContextRunner" in line
    assert log.splitlines()[-1].startswith(
        "helm-longctx: error: 1 of 4 runs were not made: longbench_v2:mode=cot"
    )
    assert "Traceback" not in log


def groups(home: Path) -> dict[str, list[str]]:
    """Return the titles of the groups on HELM's pages, by category."""
    index = json.loads((home / RUNS / "groups.json").read_text())
    return {
        table["title"]: [row[0]["value"] for row in table["rows"]] for table in index
    }


def columns(home: Path, group: str) -> list[list[str]]:
    """Return the headings of a group's tables."""
    return [
        [cell["value"] for cell in table["header"]]
        for table in json.loads((home / RUNS / group).read_text())
    ]


@pytest.mark.parametrize("of_helm", [False, True], ids=["own schema", "HELM's schema"])
def test_tables_of_other_schemas_stay(home: Path, of_helm: bool) -> None:
    """The groups of the user's schema, or of HELM's, are on the leaderboard as HELM's summarizer makes them."""
    schema = () if of_helm else ("--schema-path", "own.yaml")
    assert run("helm-summarize", "--suite", "s", *schema, folder=home).returncode == 0
    stock = json.loads((home / RUNS / "groups/synthetic_reasoning.json").read_text())
    # Without an option, our command keeps the schema that was given last.
    ours = ("--without-schema",) if of_helm else schema
    summarized = run("helm-longctx", "summarize", "--suite", "s", *ours, folder=home)
    assert summarized.returncode == 0, summarized.stderr
    assert (
        json.loads((home / RUNS / "groups/synthetic_reasoning.json").read_text())
        == stock
    )
    shown_groups = groups(home)
    assert any("HELMET Recall 8k" in titles for titles in shown_groups.values())
    if of_helm:
        assert "Synthetic reasoning (abstract symbols)" in shown_groups["Scenarios"]
        assert "BoolQ" not in shown_groups["Scenarios"]
    else:
        assert next(iter(shown_groups)) == "Boards"
        assert shown_groups["Boards"] == ["Our board"]
        assert columns(home, "groups/board.json") == [
            ["Model", "Reasoning - Our match"]
        ]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--suite", "s"),
        ("--suite", "s", "--with", "own.yaml"),
    ],
    ids=["all", "suite", "suite with"],
)
def test_the_printed_schema_fits_helms_summarizer(
    home: Path, options: tuple[str, ...]
) -> None:
    """HELM's own summarizer shows our scores and HELM's with the schema that we print, without a warning about ours.

    The schema of a suite causes no warning at all about groups and statistics.
    """
    printed = run("helm-longctx", "schema", *options, folder=home)
    (home / "printed.yaml").write_text(printed.stdout)
    made = run(
        "helm-summarize", "--suite", "s", "--schema-path", "printed.yaml", folder=home
    )
    warnings = [
        line for line in (made.stdout + made.stderr).splitlines() if "WARNING" in line
    ]
    # A run was not made, and a deployment alone has no metadata.
    known = ["doesn't have run_spec.json", "Could not find model metadata"]
    if "--suite" not in options:
        known.append(
            "synthetic_reasoning"
        )  # HELM's own schema lacks a group and statistics of HELM's own scenario
    assert [line for line in warnings if not any(text in line for text in known)] == []
    titles = {title for titles in groups(home).values() for title in titles}
    own = "--with" in options
    assert {
        "HELMET Recall 8k",
        "Our board" if own else "Synthetic reasoning (abstract symbols)",
    } <= titles
    (table, *_) = json.loads(
        (home / RUNS / "groups/helmet_json_kv_8k.json").read_text()
    )
    assert isinstance(table["rows"][0][1]["value"], float)


def test_a_board_of_several_benchmarks(home: Path) -> None:
    """The columns of a user's board have the names of their benchmarks, because the short names can be the same."""
    board = {
        "name": "both",
        "display_name": "Both",
        "subgroups": ["helmet_recall_8k", "longhealth"],
    }
    (home / "mixed.yaml").write_text(
        yaml.safe_dump({**OWN, "run_groups": [*OWN["run_groups"], board]})
    )
    assert (
        run(
            "helm-longctx",
            "summarize",
            "--suite",
            "s",
            "--schema-path",
            "mixed.yaml",
            folder=home,
        ).returncode
        == 0
    )
    titles = columns(home, "groups/both.json")[0]
    assert [title for title in titles if title in {"Recall 8k", "Overall"}] == []
    assert {"HELMET Recall 8k", "LongHealth"} <= set(titles)


def test_a_printed_schema_can_be_given_back(home: Path) -> None:
    """A schema that we printed with the user's groups shows the user's groups and only those of ours that have scores."""
    printed = run("helm-longctx", "schema", "--with", "own.yaml", folder=home).stdout
    content = yaml.load(printed, yaml.CSafeLoader)
    # Reading all groups takes twenty seconds.
    content["run_groups"] = [
        group
        for group in content["run_groups"]
        if group["name"].startswith(("board", "synthetic", "helmet_recall", "ruler_"))
        or group["name"].startswith("helmet_json_kv")
    ]
    (home / "both.yaml").write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
    assert (
        run(
            "helm-longctx",
            "summarize",
            "--suite",
            "s",
            "--schema-path",
            "both.yaml",
            folder=home,
        ).returncode
        == 0
    )
    titles = [title for titles in groups(home).values() for title in titles]
    assert titles[0] == "Our board"
    assert "HELMET Recall 8k" in titles
    assert not [title for title in titles if title.startswith("RULER")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [("metrics: 3", "is not a schema of HELM"), ("[", "is not YAML")],
)
def test_a_wrong_schema_is_refused(home: Path, text: str, problem: str) -> None:
    """A file that is no schema is named in one line."""
    (home / "wrong.yaml").write_text(text)
    for command in (
        ("summarize", "--suite", "s", "--schema-path"),
        ("schema", "--with"),
    ):
        made = run("helm-longctx", *command, "wrong.yaml", folder=home)
        assert made.returncode == 2
        assert problem in made.stderr.splitlines()[-1]
        assert "wrong.yaml" in made.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def page(home: Path) -> Iterator[str]:
    """Summarize the suite with the user's schema, and return the address of the leaderboard's server."""
    assert (
        run(
            "helm-longctx",
            "summarize",
            "--suite",
            "s",
            "--schema-path",
            "own.yaml",
            folder=home,
        ).returncode
        == 0
    )
    with served(home) as address:
        yield address


@pytest.mark.browser
def test_pages_of_the_users_board_and_ours(
    page: str, browser: webdriver.Chrome
) -> None:
    """The leaderboard opens with the user's board, and our groups have pages beside it."""
    open_page(browser, f"{page}/#/leaderboard")
    shown(browser, "Our board", "Simple Model 1", "Reasoning - Our match")
    open_page(browser, f"{page}/#/groups/helmet_recall_8k")
    shown(browser, "HELMET Recall 8k", "Lexical baseline")


@pytest.fixture(scope="module")
def walked(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Walk as a user with an own board does: summarize with HELM, run again, and do exactly what is printed."""
    folder = tmp_path_factory.mktemp("walk")
    for name in ("prod_env", "data", "benchmark_output"):
        shutil.copytree(home / name, folder / name)
    (folder / "own.yaml").write_text(yaml.safe_dump(OWN))
    stock = ("--suite", "s", "--schema-path", "own.yaml")
    assert run("helm-summarize", *stock, folder=folder).returncode == 0
    other = RECALL.replace("lexical", "null")
    made = helm_run(folder, other, most=MOST, HELM_LONGCTX_DATA=str(folder / "data"))
    log = made.stdout + made.stderr
    (line,) = [line for line in log.splitlines() if "Next: " in line]
    command = line.partition("Next: ")[2].partition(" (")[0]
    program, *arguments = shlex.split(command)
    done = run(program, *arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    (folder / "printed").write_text(done.stdout)
    (folder / "told").write_text(done.stderr)
    return folder


def test_what_the_walk_prints(walked: Path) -> None:
    """The table has the user's own task beside ours, and the log names the schema that was kept, without NLTK's errors."""
    printed = (walked / "printed").read_text()
    (line,) = [line for line in printed.splitlines() if "synthetic_reasoning" in line]
    assert "quasi_exact_match" in line
    assert "HELMET" in printed
    told = (walked / "told").read_text()
    assert "own_schema.yaml, the schema of the last helm-summarize" in told
    assert "nltk" not in told + printed


@pytest.mark.browser
def test_a_user_who_does_what_is_printed_keeps_the_board(
    walked: Path, browser: webdriver.Chrome
) -> None:
    """After the printed command the leaderboard still opens with the user's board, and shows our groups beside it."""
    with served(walked) as address:
        open_page(browser, f"{address}/#/leaderboard")
        shown(browser, "Our board", "Simple Model 1", "Reasoning - Our match")
        open_page(browser, f"{address}/#/groups/helmet_recall_8k")
        shown(browser, "HELMET Recall 8k", "Lexical baseline")


def test_a_failed_run_names_no_next_command(home: Path) -> None:
    """The log of a command of which a run failed ends with the error, and has no next command."""
    assert "Next: " not in (home / "log").read_text()
