"""The documentation says what the table says."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.benchmarks.lv_eval.tasks import LV_EVAL
from helm_longctx.cli.models import list_deployments
from helm_longctx.cli.shared import READY
from helm_longctx.protocol.entry import ARGUMENTS
from helm_longctx.protocol.lengths import STANDARD
from helm_longctx.protocol.metric_names import headline_text
from helm_longctx.protocol.task import Task
from helm_longctx.sources.hub import HubDataset, HubFile
from helm_longctx.sources.release import ReleaseFile
from tests.tasks import entry_of

ROOT = Path(__file__).parents[1]
OFFICIAL = list(STANDARD.values())[:6]


def rows(path: str) -> list[list[str]]:
    """Table rows of a Markdown file, cells stripped."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


@pytest.mark.parametrize("task", LV_EVAL.tasks, ids=lambda task: task.name)
def test_lv_eval_table(task) -> None:
    """Each data set's row gives its number of questions, budget and metrics."""
    (row,) = (row for row in rows("docs/lv-eval.md") if row[0] == f"`{task.name}`")
    assert row[2:] == [str(task.num_samples), str(task.max_tokens), task.headline[0]]


PAGES = {
    "graphwalks": "docs/graphwalks.md",
    "helmet2": "docs/helmet2.md",
    "helmet2_mrcr": "docs/helmet2.md",
    "ruler": "docs/ruler.md",
    "mrcr": "docs/mrcr.md",
    "longproc": "docs/longproc.md",
    "aa_lcr": "docs/aa-lcr.md",
    "ada_leval": "docs/ada-leval.md",
    "longhealth": "docs/longhealth.md",
    "longbench_write": "docs/longbench-write.md",
    "longgenbench": "docs/longgenbench.md",
}
SUITES = [(PAGES[each.name], task) for each in BENCHMARKS if each.name in PAGES for task in each.tasks]


@pytest.mark.parametrize(("page", "task"), SUITES, ids=lambda value: getattr(value, "name", ""))
def test_pages_of_suites(page: str, task: Task) -> None:
    """Each task's row ends with its budgets and its headline metric, and has its sample."""
    (row,) = (row for row in rows(page) if row[0] == f"`{task.name}`")
    assert row[-2:] == [numbers(task.max_tokens), headline_text(task)]
    assert numbers(task.num_samples) in row


def numbers(given: int | Mapping[int, int]) -> str:
    """A number, or the distinct ones of all lengths."""
    return ", ".join(map(str, [given] if isinstance(given, int) else dict.fromkeys(given.values())))


@pytest.mark.parametrize("task", HELMET.tasks, ids=lambda task: task.name)
def test_run_entries_table(task) -> None:
    """Each task's row gives its sizes, sample, budget and headline metric."""
    (row,) = (row for row in rows("docs/run-entries.md") if row[1] == f"`{task.name}`")
    assert row[0] == f"`{entry_of(task)}`"
    _, _, data, sizes, sample, budget, headline = row
    given = ", ".join(str(task.sizes[length]) for length in OFFICIAL) + f" {task.unit}"
    assert sizes == ("the length in tokens" if task.unit == "tokens" else given)
    assert (sample, budget, headline) == (str(task.num_samples), str(task.max_tokens), headline_text(task))
    assert data == ("official file or generated" if task.any_length else described(task))


def described(task: Task) -> str:
    """Where a task's data comes from: the release, or data sets of the hub."""
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
    """Every argument is in the table of arguments. `docs/reference/commands.md` has the commands."""
    documented = {row[0].strip("`") for row in rows("docs/run-entries.md")}
    assert {*ARGUMENTS, *(benchmark.task_argument for benchmark in BENCHMARKS)} <= documented


def test_ready_deployments_table() -> None:
    """Each ready deployment has a row with its server, key and window, and each model of a provider a dated source."""
    documented = {row[0].strip("`"): row[1:] for row in rows("docs/models.md") if len(row) == 5}
    ready = list(list_deployments(READY))
    assert [name for name in documented if "/" in name] == [name for name, *_ in ready]
    for name, server, key, window in ready:
        assert documented[name][:3] == [server, f"`{key}`" if key else "none", window]
        assert bool(re.fullmatch(r"\[\d{4}-\d\d-\d\d\]\(https://.*\)", documented[name][3])) == bool(key)


def test_readme_names_every_run_entry() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for benchmark in BENCHMARKS:
        assert all(f"`{name}`" in readme for name in benchmark.entries)


def test_reference_pages_are_up_to_date() -> None:
    """`make reference` would change nothing."""
    pages = runpy.run_path(str(ROOT / "docs/make_reference.py"))["pages"]()
    assert {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference").iterdir()} == pages


def test_the_site_builds(tmp_path: Path) -> None:
    """Every page is in the menu, and every link and anchor leads somewhere; titles of code blocks are shown."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "adding-a-benchmark/index.html").read_text(encoding="utf-8")
    assert '<span class="filename">mystery/mystery.py</span>' in page


def test_pages_and_pictures_exist() -> None:
    """The site's pages are those in docs/, and pictures that pages show exist."""
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(page in config for page in pages)
    for picture in ("leaderboard.png", "instance.png"):
        assert (ROOT / "docs/images" / picture).stat().st_size > 10_000
