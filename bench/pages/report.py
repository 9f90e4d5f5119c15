"""Measures seconds to build and to open a report of 63 published models and fabricated runs, and checks accessibility.

    python -m bench.pages.report [--pictures DIR]

Each page is opened from the file system in headless Chromium, in both themes, and checked with axe. `--pictures` also
writes a screenshot of every page. `docs/make_pictures.py` takes the screenshots of the documentation.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from selenium import webdriver
from tests.apps.report.suites import write_suite
from tests.e2e.browser import start_chromium
from tests.support.sites import AXE, RULES, complaints, open_site

from helm_longctx.apps.report.build import write_report
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark

LENGTHS = ("8k", "32k", "128k")
CATEGORIES = ("recall", "rag", "icl", "cite", "rerank", "longqa", "summ")
SKILLS = {
    "acme/alpha-2": 0.93,
    "acme/alpha-2-mini": 0.8,
    "orbit/nova": 0.6,
    "longctx/null": 0.04,
    "longctx/lexical": 0.25,
}

TEXT = "by the old harbour"

LOADED = "return performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"


def main() -> None:
    """Build the report, open its pages, and check them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pictures", type=Path)
    pictures: Path | None = parser.parse_args().pictures
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with _print_time("63 models x 7 categories x 5 lengths"):
            write_report(
                None,
                [find_benchmark("helmet")],
                folder / "published",
                "html",
                published=True,
                server="",
            )
        suite = folder / "runs" / "demo"
        write_suite(
            suite,
            [
                f"helmet_{category}:length={n}"
                for category in CATEGORIES
                for n in LENGTHS
            ],
            SKILLS,
            20,
            TEXT,
        )
        with _print_time(f"with {len(list(suite.iterdir()))} own runs"):
            write_report(
                suite, BENCHMARKS, folder / "own", "html", published=True, server=""
            )
        with start_chromium(folder / "profile") as browser:
            for theme in ("light", "dark"):
                for page in [
                    *folder.glob("published/*.html"),
                    *_own_pages(folder / "own"),
                ]:
                    _check(browser, page, theme, pictures)


@contextmanager
def _print_time(what: str) -> Iterator[None]:
    """Print the time and the processor's time to build a report; the latter is more exact on a busy machine."""
    start = time.perf_counter()
    processor = time.process_time()
    yield
    seconds = time.perf_counter() - start
    print(
        f"{what}: built in {seconds:.1f} s, {time.process_time() - processor:.1f} s of processor time"
    )


def _own_pages(folder: Path) -> list[Path]:
    return [
        *folder.glob("index.html"),
        *folder.glob("helmet-*.html"),
        next(folder.glob("instances-helmet-rag-*.html")),
    ]


def _check(
    browser: webdriver.Chrome, page: Path, theme: str, pictures: Path | None
) -> None:
    """Open a page, and print its time and its faults of accessibility."""
    start = time.perf_counter()
    open_site(browser, page, theme)
    drawn = time.perf_counter() - start
    loaded = browser.execute_script(LOADED)
    if pictures:
        _take_pictures(browser, page, theme, pictures)
    browser.set_script_timeout(300)
    browser.execute_script(
        (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    )
    faults = [
        fault
        for fault in browser.execute_async_script(AXE, RULES)
        if fault[0] in ("serious", "critical")
    ]
    name = f"{page.parent.name}/{page.name} {theme}"
    print(
        f"{name}: loaded in {loaded:.2f} s, plots in view drawn in {drawn:.2f} s",
        *faults,
        *complaints(browser),
    )


def _take_pictures(
    browser: webdriver.Chrome, page: Path, theme: str, folder: Path
) -> None:
    """Save screenshots of whole pages."""
    folder.mkdir(parents=True, exist_ok=True)
    if page.stem.startswith("instances"):
        browser.execute_script(
            "document.querySelectorAll('.instances summary')[1].click()"
        )
        time.sleep(1)
    size = browser.get_window_size()
    height = browser.execute_script("return document.documentElement.scrollHeight")
    browser.set_window_size(size["width"], min(height + 150, 6000))
    time.sleep(1.5)  # the plots that come into view
    browser.save_screenshot(str(folder / f"{page.parent.name}-{page.stem}-{theme}.png"))
    browser.set_window_size(size["width"], size["height"])


if __name__ == "__main__":
    main()
