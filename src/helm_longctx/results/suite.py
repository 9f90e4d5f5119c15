"""Finds the folders of a suite and of its report."""

from pathlib import Path
from urllib.parse import quote

from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.helm.names import SUITE_NAME, is_suite_name
from helm_longctx.runs.files import STATS

PAGES = "groups.json"
"""The file of a suite that the summarizer writes last. It is the index of what helm-server shows."""


def suite_path(output_path: Path, suite: str) -> Path:
    """Return `<output path>/runs/<suite>`, which need not exist, or raise an `InputError` for a wrong name."""
    if not is_suite_name(suite):
        raise InputError(f"suite={shorten(suite)} is invalid; give {SUITE_NAME}")
    return output_path / "runs" / suite


def suite_folder(output_path: Path, suite: str) -> Path:
    """Return the folder of an existing suite. Raises an `InputError` if the suite does not exist."""
    folder = suite_path(output_path, suite)
    if not folder.is_dir():
        # HELM makes a link `latest` in the folder of the suites.
        suites = sorted(path.name for path in folder.parent.glob("*") if path.is_dir() and path.name != "latest")
        choices = list_choices(suite, suites) or "there is no suite yet"
        raise InputError(f"suite={suite!r} is not in {folder.parent}; {choices}")
    return folder


def has_pages(folder: Path) -> bool:
    """Return whether what helm-server shows of a suite was written, and is not older than a run or a report."""
    pages = folder / PAGES
    changes = [*folder.glob(f"*/{STATS}"), report_path(folder.parent.parent, folder.name) / "index.html"]
    return pages.is_file() and all(
        each.stat().st_mtime_ns <= pages.stat().st_mtime_ns for each in changes if each.is_file()
    )


def report_path(output_path: Path, suite: str) -> Path:
    """Return the folder of a suite's report, which need not exist. helm-server also serves it."""
    return output_path / "reports" / suite


def report_link(output_path: Path, suite: str) -> list[str]:
    """Return a link to a suite's report as Markdown, which HELM's pages show; nothing if there is no report."""
    if not (report_path(output_path, suite) / "index.html").is_file():
        return []
    # helm-server serves HELM's output folder under this name.
    return [f"[Report with intervals and comparisons](benchmark_output/reports/{quote(suite)}/index.html)"]
