"""Finds the folders of a suite and of its report, and stores published results in a suite.

Tables show published results together with the user's runs. There is one folder of them for each benchmark: a run
without instances and groups, so that HELM's pages can link to it. Its file `published.json` has the rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from helm_longctx.errors import InputError, list_choices, shorten
from helm_longctx.runs.files import STATS, read_json, reading
from helm_longctx.runs.shown_models import PUBLISHED
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import ADAPTER_METHOD
from helm_longctx.tasks.publications import Published
from helm_longctx.tasks.run_names import SUITE_NAME, is_suite_name
from helm_longctx.writing import replace_file

PAGES = "groups.json"
"""The index of what helm-server shows of a suite."""

PAGES_RECORD = "pages.json"
"""The file that our summarizer writes last. It has the `schema_path` that the user gave, or null."""


def suite_path(output_path: Path, suite: str) -> Path:
    """Return `<output path>/runs/<suite>`, even if it does not exist, or raise an `InputError` for a wrong name."""
    if not is_suite_name(suite):
        raise InputError(f"suite={shorten(suite)} is invalid; give {SUITE_NAME}")
    return output_path / "runs" / suite


def suite_folder(output_path: Path, suite: str) -> Path:
    """Return the folder of an existing suite. Raises an `InputError` if the suite does not exist."""
    folder = suite_path(output_path, suite)
    if not folder.is_dir():
        # HELM makes a link `latest` in the folder of the suites.
        suites = []
        for path in folder.parent.glob("*"):
            if path.is_dir() and path.name != "latest":
                suites.append(path.name)
        suites = sorted(suites)
        choices = list_choices(suite, suites) or "there is no suite yet"
        raise InputError(f"suite={suite!r} is not in {folder.parent}; {choices}")
    return folder


def needs_pages(folder: Path) -> bool:
    """Return whether helm-server has nothing to show of a suite, or pages of ours older than a run or the report.

    Pages of HELM's own summarizer stay as they are.
    """
    record = folder / PAGES_RECORD
    if not record.is_file():
        return not (folder / PAGES).is_file()
    changes = [
        *folder.glob(f"*/{STATS}"),
        report_path(folder.parent.parent, folder.name) / "index.html",
    ]
    return any(
        change.stat().st_mtime_ns > record.stat().st_mtime_ns
        for change in changes
        if change.is_file()
    )


def find_chosen_schema(folder: Path) -> Path | None:
    """Return the schema file with which a suite's pages were written, or None for HELM's, or without pages of ours."""
    record = folder / PAGES_RECORD
    path = read_json(record)["schema_path"] if record.is_file() else None
    return Path(path) if path else None


def report_path(output_path: Path, suite: str) -> Path:
    """Return the folder of a suite's report, even if it does not exist. helm-server also serves it."""
    return output_path / "reports" / suite


def report_link(output_path: Path, suite: str) -> list[str]:
    """Return a link to a suite's report as Markdown for HELM's pages, or nothing if there is no report."""
    if not (report_path(output_path, suite) / "index.html").is_file():
        return []
    # helm-server serves HELM's output folder under this name.
    return [
        f"[Report with intervals and comparisons](benchmark_output/reports/{quote(suite)}/index.html)"
    ]


MAKER = PUBLISHED
"""Name of the runs of published scores, and of a statistic that is 1: these scores were not run here."""

_ROWS = "published.json"

SCENARIO_CLASS = "helm_longctx.helm.scenario.LongContextScenario"
"""The scenario of runs without instances. It is never made."""

_NO_INSTANCES: dict[str, Any] = {
    "stats": [],
    "per_instance_stats": [],
    "instances": [],
    "display_predictions": [],
    "display_requests": [],
}


def write_reference(
    benchmark: Benchmark,
    folder: Path,
    models: Sequence[str] = ("*",),
    length: int | None = None,
) -> int:
    """Add published rows to those in the suite, and return their number, or raise an `InputError` if none matches.

    `models` are patterns of names, in which `*` stands for any characters; case is ignored.
    """
    rows = []
    for row in benchmark.published():
        if length in (None, row.length):
            rows.append(row)
    chosen = []
    for row in rows:
        if any(fnmatch(row.model.lower(), pattern.lower()) for pattern in models):
            chosen.append(row)
    if not chosen:
        names = (
            ", ".join(dict.fromkeys(row.model for row in rows)) or "none at that length"
        )
        raise InputError(
            f"no published result of {benchmark.title} matches"
            f" model={','.join(models)!r}; choose from {names}"
        )
    add_rows(benchmark, folder, chosen)
    return len(chosen)


def add_rows(benchmark: Benchmark, folder: Path, rows: Iterable[Published]) -> None:
    """Add results without instances to those in the suite. A new score of a task replaces the old one."""
    run = folder / f"{MAKER}_{benchmark.name}"
    run.mkdir(parents=True, exist_ok=True)
    # Existing rows are replaced, not doubled.
    every: dict[tuple[str, str, int | None], Published] = {}
    for row in (*read_reference_rows(folder, benchmark), *rows):
        key = (row.model, row.category, row.length)
        every[key] = every.get(key, row).update(row)
    about = f"Published results, not run here. Source: {benchmark.url}"
    # The run's page needs the files of instances. These are empty. The run spec makes the run complete, so it is last.
    files = {
        "scenario": {
            "name": benchmark.name,
            "description": about,
            "definition_path": benchmark.url,
            "tags": [MAKER],
        },
        **_NO_INSTANCES,
        Path(_ROWS).stem: [asdict(row) for row in every.values()],
        "run_spec": {
            "name": run.name,
            "scenario_spec": {
                "class_name": SCENARIO_CLASS,
                "args": {MAKER: benchmark.url},
            },
            "adapter_spec": {
                "method": ADAPTER_METHOD,
                "model": MAKER,
                "model_deployment": MAKER,
            },
            "metric_specs": [],
            "groups": [],
        },
    }
    for stem, content in files.items():
        replace_file(run / f"{stem}.json", orjson.dumps(content))


def read_reference_rows(folder: Path, benchmark: Benchmark) -> list[Published]:
    """Return the published rows of a benchmark in a suite. Raises an `InputError` if the rows are damaged."""
    path = folder / f"{MAKER}_{benchmark.name}" / _ROWS
    if not path.is_file():
        return []
    rows = read_json(path)
    with reading(path):
        return [Published(**row) for row in rows]
