"""Tests that the documentation agrees with the tables of tasks."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.cli.models import list_deployments
from helm_longctx.config.shared import READY
from helm_longctx.data.hub import HubDataset, HubFile
from helm_longctx.data.release import ReleaseFile
from helm_longctx.tasks.entry import ARGUMENTS
from helm_longctx.tasks.lengths import STANDARD
from helm_longctx.tasks.methods.registry import load_methods
from helm_longctx.tasks.metric_names import headline_text
from helm_longctx.tasks.registry import BENCHMARKS, read_folders
from helm_longctx.tasks.task import Task
from tests.support.tasks import entry_of, page_of

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    f"helm_longctx/benchmarks/{name}/README.md"
    for name in ("any_jsonl", "helmet", "mrcr_v2")
}
"""Pages without a row for each task: HELMET's table is in docs/run-entries.md."""
LINK = re.compile(r"(?<=\]\()[^)#\s:]+(?=[)#])")
"""The path in a relative link."""
OFFICIAL = list(STANDARD.values())[:6]


def rows(path: str) -> list[list[str]]:
    """Return the table rows of a Markdown file, with stripped cells."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]


SUITES = [
    (page, task)
    for benchmark in BENCHMARKS
    if (page := page_of(benchmark)) not in ELSEWHERE
    for task in benchmark.tasks
    if task.alias
    not in {
        other.name for other in benchmark.tasks
    }  # such a task repeats the other one, and has its row
]


@pytest.mark.parametrize(
    ("page", "task"), SUITES, ids=lambda value: getattr(value, "name", "")
)
def test_pages_of_suites(page: str, task: Task) -> None:
    """Each task's row ends with its headline metric, and has its budget and its sample."""
    (row,) = (row for row in rows(f"src/{page}") if row[0] == f"`{task.name}`")
    assert row[-1] == headline_text(task)
    assert any(re.match(rf"{numbers(task.max_tokens)}\b", cell) for cell in row)
    assert numbers(task.num_samples) in row


@pytest.mark.parametrize(
    ("page", "is_meant"),
    [
        ("fidelity.md", lambda task: task.cut != "nothing"),
        ("methods.md", load_methods()["retrieve"].can_ask),
    ],
    ids=("cut", "methods"),
)
def test_tables_name_all_benchmarks(
    page: str, is_meant: Callable[[Task], bool]
) -> None:
    """The tables of what is cut and of what methods can ask name every benchmark with such a task."""
    cells = "\n".join(row[0] for row in rows(f"docs/{page}")).lower()
    meant = [
        benchmark for benchmark in BENCHMARKS if any(map(is_meant, benchmark.tasks))
    ]
    assert meant
    missing = []
    for benchmark in meant:
        names = (benchmark.title.lower(), page_of(benchmark).lower())
        if not any(name in cells for name in names):
            missing.append(benchmark.title)
    assert missing == [], f"add a row for each of them to the table of docs/{page}"


def numbers(given: int | Mapping[int, int]) -> str:
    """Return a number, or the distinct numbers of all lengths."""
    return ", ".join(
        map(str, [given] if isinstance(given, int) else dict.fromkeys(given.values()))
    )


@pytest.mark.parametrize("task", HELMET.tasks, ids=lambda task: task.name)
def test_run_entries_table(task) -> None:
    """The row of each HELMET task gives its sizes, sample, budget and headline metric."""
    (row,) = (row for row in rows("docs/run-entries.md") if row[1] == f"`{task.name}`")
    assert row[0] == f"`{entry_of(task)}`"
    _, _, data, sizes, sample, budget, headline = row
    given = ", ".join(str(task.sizes[length]) for length in OFFICIAL) + f" {task.unit}"
    assert sizes == ("the length in tokens" if task.unit == "tokens" else given)
    assert (sample, budget, headline) == (
        str(task.num_samples),
        str(task.max_tokens),
        headline_text(task),
    )
    assert data == (
        "official file or generated" if task.any_length else described(task)
    )


def described(task: Task) -> str:
    """Say where a task's data comes from: the release, or data sets of the hub."""
    names = {}
    for source in task.sources(OFFICIAL[0]):
        if isinstance(source, ReleaseFile):
            names["release"] = None
        elif isinstance(source, HubDataset):
            names[source.name + (f" ({source.config})" if source.config else "")] = None
        elif isinstance(source, HubFile) and source.kind == "dataset":
            names[source.repo] = None
    return ", ".join(names)


def test_arguments_are_documented() -> None:
    """Every argument of run entries is in the table of arguments."""
    documented = {row[0].strip("`") for row in rows("docs/run-entries.md")}
    assert {
        *ARGUMENTS,
        *(benchmark.task_argument for benchmark in BENCHMARKS),
    } <= documented


def test_ready_deployments_table() -> None:
    """Each ready deployment has a row with its server, key and window, and each model of a provider has a dated source."""
    documented = {
        row[0].strip("`"): row[1:] for row in rows("docs/models.md") if len(row) == 5
    }
    ready = list(list_deployments(READY))
    assert [name for name in documented if "/" in name] == [name for name, *_ in ready]
    for name, server, key, window in ready:
        assert documented[name][:3] == [server, f"`{key}`" if key else "none", window]
        assert bool(
            re.fullmatch(r"\[\d{4}-\d\d-\d\d\]\(https://.*\)", documented[name][3])
        ) == bool(key)


def test_readme_names_every_run_entry() -> None:
    """The README names every run entry of every benchmark."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = []
    for benchmark in BENCHMARKS:
        for name in benchmark.shown_entries:
            if f"`{name}`" not in readme:
                missing.append(name)
    assert missing == [], "run `make reference`"


def test_generated_texts_are_up_to_date() -> None:
    """`make reference` would change nothing."""
    # In a process of its own, because other tests change benchmarks.
    script = "import json, runpy; print(json.dumps(runpy.run_path('docs/make_reference.py')['files']()))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = json.loads(done.stdout)
    stale = []
    for path, text in files.items():
        if (ROOT / path).read_text(encoding="utf-8") != text:
            stale.append(path)
    assert stale == [], "run `make reference`"
    assert {
        f"docs/reference/{path.name}" for path in (ROOT / "docs/reference").iterdir()
    } <= set(files)


def test_the_site_builds(tmp_path: Path) -> None:
    """Every page is in the menu, every link and every old address leads to a section, and titles of code are shown.

    The README of each benchmark's folder is a page, and is in the menu.
    """
    pytest.importorskip("mkdocs")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        str(tmp_path),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "adding-a-benchmark/index.html").read_text(encoding="utf-8")
    assert '<span class="filename">mystery/mystery.py</span>' in page
    for folder in read_folders().values():
        name = folder.name.replace("_", "-")
        assert f'<a href="../{name}/" class="md-nav__link">' in page
        assert (tmp_path / name / "index.html").is_file()
    for old, new in runpy.run_path(str(ROOT / "docs/redirects.py"))["MOVED"].items():
        page, _, anchor = new.partition("/#")
        assert f"url=../{new}" in (tmp_path / old / "index.html").read_text(
            encoding="utf-8"
        )
        assert f'id="{anchor}"' in (tmp_path / page / "index.html").read_text(
            encoding="utf-8"
        )


CLAIM = re.compile(r"(?P<bound>at most|at least|planned) (?P<percent>[\d.]+) %")
FIGURE = re.compile(r"(?P<share>[\d.]+) ± (?P<error>[\d.]+) %")
ERRORS = 3
"""Standard errors of the simulation by which a figure may differ from its claim: hundreds are compared."""
LEAST_ERROR = 0.05
"""Percent. Smaller errors are shown as 0.0."""
OF_PLANS = 3
"""Points by which a simulated share may differ from a planned one, as docs/gate.md says."""


def test_simulated_figures_keep_their_claims() -> None:
    """No figure in the table of docs/statistics.md is off its claim by more than the error of its simulation."""
    wrong = []
    checked = 0
    for row in rows("docs/statistics.md"):
        figure = FIGURE.fullmatch(row[3]) if len(row) == 6 else None
        claim = CLAIM.search(row[2]) if figure else None
        if figure is None or claim is None:
            continue
        checked += 1
        share = float(figure["share"])
        bound = float(claim["percent"])
        allowed = ERRORS * max(float(figure["error"]), LEAST_ERROR)
        is_kept = {
            "at most": share <= bound + allowed,
            "at least": share >= bound - allowed,
            "planned": abs(share - bound) <= OF_PLANS + allowed,
        }
        if not is_kept[claim["bound"]]:
            wrong.append(row)
    assert not wrong
    assert checked > 200


def test_links_lead_to_files() -> None:
    """Relative links of all pages lead to files of the repository, where it is shown without the site."""
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(folder / "README.md" for folder in read_folders().values()),
    ]
    links = [
        (page, link)
        for page in pages
        for link in LINK.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 300
    assert [
        f"{page}: {link}" for page, link in links if not (page.parent / link).exists()
    ] == []


def test_pages_and_pictures_exist() -> None:
    """Every page in docs/ is in the site's menu, and the pictures that pages show exist."""
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(page in config for page in pages)
    for picture in ("leaderboard.png", "instance.png"):
        assert (ROOT / "docs/images" / picture).stat().st_size > 10_000
