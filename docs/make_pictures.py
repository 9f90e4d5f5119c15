"""Makes all pictures in docs/images/: `python docs/make_pictures.py`, or `make pictures`. Needs Chromium.

`helm-longctx demo --with-model` makes the runs, unless an output folder with that demo is given as the first argument.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from selenium import webdriver

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.apps.report.suites import write_suite  # noqa: E402
from tests.e2e.browser import open_page, served, shown, start_chromium  # noqa: E402
from tests.judging.characters import Characters  # noqa: E402
from tests.judging.deployments import write_judges  # noqa: E402
from tests.support.fabricate_books import build_rubrics  # noqa: E402
from tests.support.programs import BIN  # noqa: E402
from tests.support.servers.llm import serve  # noqa: E402
from tests.support.sites import open_site  # noqa: E402

from helm_longctx.apps.report.build import write_report  # noqa: E402
from helm_longctx.benchmarks.helmet.rubrics import checks  # noqa: E402
from helm_longctx.data.root import ENVIRONMENT, DataRoot  # noqa: E402
from helm_longctx.tasks.registry import BENCHMARKS  # noqa: E402

IMAGES = ROOT / "docs" / "images"
RUN = "helmet_recall:length=128k,num_samples=10,model=longctx_lexical"
INSTANCE = "json_kv-0"
"""An instance of RUN. Pictures show only texts that are generated here."""

SKILLS = {"acme/alpha-2": 0.93, "acme/alpha-2-mini": 0.8, "orbit/nova": 0.6}
"""Invented models with their share of right answers, for the report's page of instances."""

JUDGES = ("perfect", "generous", "obedient", "moody")
"""Characters of the simulated judges in the picture of `judge-check`."""

WIDTH = 1400
"""Pixels."""


def main() -> None:
    """Run the demo and take all pictures."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = (
            Path(sys.argv[1]).resolve().parent
            if len(sys.argv) > 1
            else _run_demo(Path(temporary))
        )
        with start_chromium(Path(temporary) / "profile") as browser:
            with served(folder, "demo") as address:
                _take_leaderboard(browser, address)
                _take_instance(browser, address)
            report = folder / "benchmark_output" / "reports" / "demo"
            _take_report(browser, report)
            _take_small_model(browser, report)
            _take_answers(browser, Path(temporary) / "invented")
        _draw_judges(Path(temporary) / "judges")


def _run_demo(folder: Path) -> Path:
    subprocess.run(
        [str(BIN / "helm-longctx"), "demo", "--with-model"], cwd=folder, check=True
    )
    return folder


def _take_leaderboard(browser: webdriver.Chrome, address: str) -> None:
    browser.set_window_size(WIDTH, 900)
    open_page(browser, f"{address}/#/leaderboard/helmet_128k")
    shown(browser, "GPT-4o-08", "Summ")
    browser.execute_script(
        "document.body.style.zoom = 0.66"
    )  # all columns are to be in the picture
    _save(browser, "leaderboard")


def _take_instance(browser: webdriver.Chrome, address: str) -> None:
    browser.set_window_size(WIDTH, 1150)
    open_page(browser, f"{address}/#/runs/{quote(RUN, safe='')}?instance={INSTANCE}")
    shown(browser, INSTANCE, "correct")
    _save(browser, "instance")


def _take_report(browser: webdriver.Chrome, report: Path) -> None:
    browser.set_window_size(WIDTH, 1100)
    open_site(browser, report / "index.html")
    _save(browser, "report")


def _take_small_model(browser: webdriver.Chrome, report: Path) -> None:
    """Take the answers to a question of HELMET's recall, whose text is generated."""
    browser.set_window_size(WIDTH, 800)
    open_site(
        browser,
        next(report.glob("instances-helmet-recall-task-json-kv-length-4k-*.html")),
    )
    browser.execute_script("document.querySelector('.instances summary').click()")
    browser.execute_script("document.querySelector('.instances').scrollIntoView()")
    _save(browser, "small-model")


def _take_answers(browser: webdriver.Chrome, folder: Path) -> None:
    write_suite(
        folder / "suite", ["helmet_rag:length=32k"], SKILLS, 20, "by the old harbour"
    )
    write_report(
        folder / "suite",
        BENCHMARKS,
        folder / "report",
        "html",
        published=False,
        server="",
    )
    open_site(browser, next(folder.glob("report/instances-*.html")))
    browser.execute_script("document.querySelectorAll('.instances summary')[1].click()")
    _save(browser, "report-instances")


def _draw_judges(folder: Path) -> None:
    """Check four simulated judges, which are servers on this machine, and draw the plot of `judge-check --compare`.

    The rubrics are fabricated, because the official ones are not ours to copy.
    """
    build_rubrics(folder / "mirror")
    characters = Characters(checks(DataRoot(folder / "mirror", mirror=True)))
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(serve(getattr(characters, name)))
            for name in JUDGES
        }
        write_judges(
            folder / "prod_env",
            {f"simulated/{name}": server.openai for name, server in servers.items()},
        )
        for name in JUDGES:
            _check_judges(
                folder,
                "--judge",
                f"simulated/{name}",
                "--repeats",
                "2",
                "--save",
                f"{name}.json",
            )
    files = [f"{name}.json" for name in JUDGES]
    _check_judges(
        folder, "--compare", *files, "--plot", str(IMAGES / "judge-check.png")
    )


def _check_judges(folder: Path, *arguments: str) -> None:
    command = [str(BIN / "helm-longctx"), "judge-check", *arguments]
    subprocess.run(
        command,
        cwd=folder,
        check=True,
        env={**os.environ, ENVIRONMENT: str(folder / "mirror")},
    )


def _save(browser: webdriver.Chrome, name: str) -> None:
    """Save what the window shows as soon as animations have ended."""
    browser.execute_script(
        "document.documentElement.style.overflow = 'hidden'"
    )  # no scroll bars
    time.sleep(1.5)
    browser.save_screenshot(str(IMAGES / f"{name}.png"))


if __name__ == "__main__":
    main()
