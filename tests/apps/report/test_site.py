"""Tests that the site is complete, loads nothing from elsewhere, and is safe from the texts of models and data."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from helm_longctx.documents.document import (
    Cell,
    Column,
    Page,
    Report,
    Section,
    Table,
    dump_json,
)
from helm_longctx.documents.plots import curves, make_themes
from helm_longctx.documents.site import safe_json, write_site
from helm_longctx.results.statistics.level import ABOUT_SCORES
from tests.apps.report.conftest import SERVER
from tests.apps.report.suites import HOSTILE

ADDRESSES = {"src", "href", "action", "data", "poster"}


class Links(HTMLParser):
    """A parser that collects the addresses in a page, and its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[str, str]] = []
        self.scripts: list[dict[str, str | None]] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect a tag's attributes."""
        self.links += [(tag, value or "") for name, value in attrs if name in ADDRESSES]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "script":
            self.scripts.append(dict(attrs))


def read(page: Path) -> Links:
    """Parse a page, and return its addresses and scripts."""
    parser = Links()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def test_all_pages_are_there(site: Path) -> None:
    """There is a page for each topic, and one for the instances of each run entry, which its models share."""
    pages = {path.stem for path in site.glob("*.html")}
    topics = {
        "index",
        "helmet-length",
        "helmet-depth",
        "helmet-comparison",
        "helmet-runs",
    }
    assert topics < pages
    assert len([page for page in pages if page.startswith("instances-")]) == 3


def test_nothing_comes_from_elsewhere(site: Path) -> None:
    """Scripts and styles are files of the site, and every link leads to a file or to the given server."""
    for page in site.glob("*.html"):
        content = read(page)
        assert content.handlers == []
        for tag, address in content.links:
            if address.startswith(SERVER):
                assert tag == "a"
            elif not address.startswith(("#", "data:,")):
                assert (site / address).is_file(), (page.name, address)
        for script in content.scripts:
            assert script.get("type") == "application/json" or "src" in script
    assert not re.search(
        r"@import|url\(", (site / "assets/report.css").read_text(encoding="utf-8")
    )


def test_a_site_without_scores_has_no_link_to_them(tmp_path: Path) -> None:
    """Every link of a page without a table of all scores leads to a file."""
    table = Table("t", "T", [Column("n")], [[Cell("1")]])
    report = Report(
        title="Sample",
        suite="sample",
        made="today",
        about=ABOUT_SCORES,
        pages=[Page("index.html", "Result", "Sample", [Section("s", "S", [table])])],
        has_scores=False,
    )
    (page,) = write_site(report, tmp_path)
    files = []
    for _, address in read(page).links:
        if not address.startswith(("#", "data:,")):
            files.append(address)
    assert "data/t.csv" in files
    missing = [name for name in files if not (tmp_path / name).is_file()]
    assert missing == []


def test_texts_cannot_run(site: Path) -> None:
    """No file contains a hostile text unescaped, and instances' texts are only in scripts, with escaped brackets."""
    for path in [*site.glob("*.html"), *site.glob("instances-*/*.js")]:
        assert "<script>document.title" not in path.read_text(encoding="utf-8"), path
        assert "\u2028" not in path.read_text(encoding="utf-8"), path
    texts = next(site.glob("instances-*/0.js")).read_text(encoding="utf-8")
    assert "\\u003cscript\\u003edocument.title" in texts


def test_json_in_scripts() -> None:
    """JSON in a script has the same value whatever the text, and cannot end the script."""
    for value in (HOSTILE, "<!--", "]]>", "\u2029", {"a": [1, None, "é青"]}):
        text = safe_json(value)
        assert not set("<>&\u2028\u2029") & set(text)
        assert json.loads(text) == value
    assert json.loads(dump_json([float("nan"), "\ud800"])) == [None, "?"]


def test_every_plot_has_its_data(site: Path) -> None:
    """The data of every plot are files of CSV and JSON with the same rows as in the page."""
    names = re.findall(
        r'<figure class="plot" id="([^"]+)"',
        (site / "index.html").read_text(encoding="utf-8"),
    )
    assert names
    for name in names:
        rows = json.loads((site / "data" / f"{name}.json").read_bytes())
        with (site / "data" / f"{name}.csv").open(
            encoding="utf-8-sig", newline=""
        ) as file:
            table = list(csv.DictReader(file))
        assert [row["model"] for row in table] == [row["model"] for row in rows]


def test_instances_have_all_that_a_reader_needs(site: Path) -> None:
    """An instance has scores, conditions, the prompt with its evidence, errors of failed requests, and links to HELM's page."""
    page = next(site.glob("instances-helmet-recall-task-json-kv-length-8k-*.html"))
    index = json.loads(
        (site / page.stem / "index.js")
        .read_text(encoding="utf-8")
        .split("=", 1)[1]
        .rstrip(";\n")
    )
    assert [run["model"] for run in index["runs"]] == [
        "acme/one",
        "acme/two",
        "longctx/null",
    ]
    assert len(index["rows"]) == 12
    script = (site / page.stem / "0.js").read_text(encoding="utf-8")
    texts = json.loads(script.removeprefix("addTexts(0, ").removesuffix(");\n"))
    assert len(texts) == 12
    ((_, prompt),) = texts[1]["prompts"][0]
    assert "[evidence, depth" in prompt
    assert "characters left out" in prompt
    assert len(texts[1]["prompts"]) == 1  # all models got the same
    errors = [
        answer["error"]
        for text in texts
        for answer in text["answers"].values()
        if "error" in answer
    ]
    assert errors
    assert all(error.startswith("temporary: 503") for error in errors)
    answer = texts[11]["answers"]["0"]
    assert answer["name"] == "json_kv-11"
    assert answer["helm"].startswith(
        f"{SERVER}/#/runs/helmet_recall%3Atask%3Djson_kv%2Clength%3D8k%2Cmodel%3Dacme_one?"
    )
    assert answer["helm"].endswith("?instance=json_kv-11")
    flags = {
        flag for row in index["rows"] for answer in row["answers"] for flag in answer[1]
    }
    assert flags == {"request_failed", "prompt_cut"}


@pytest.mark.parametrize("name", ["index.html", "helmet-runs.html"])
def test_scores_that_are_not_comparable_are_marked(site: Path, name: str) -> None:
    """The page gives the reason why scores are not comparable."""
    assert "failed requests" in (site / name).read_text(encoding="utf-8")


def test_legends_and_axes_tell_models_and_panels_apart() -> None:
    """Twenty-four models differ by colour and shape, also in the legend, and each panel has its axis."""
    spec = curves(["Average", "Recall"], ["8k", "32k"], "length in tokens")
    assert spec["resolve"] == {"axis": {"x": "independent"}}
    points = spec["spec"]["layer"][2]["encoding"]
    assert points["color"]["legend"]["encoding"]["symbols"] == {
        "shape": {"value": {"expr": "scale('shape', datum.value)"}}
    }
    shapes = points["shape"]["scale"]["range"]
    colours = len(make_themes()["light"]["range"]["category"])
    looks = {(index % colours, shapes[index % len(shapes)]) for index in range(24)}
    assert len(looks) == 24


def test_a_heading_shows_by_which_column_models_are_ranked(beside: Path) -> None:
    """The heading of the ranked column has an arrow, and no other column has one."""
    page = (beside / "index.html").read_text()
    section = page[page.index('data-choice="32k"') :].partition("</section>")[0]
    (heading,) = re.findall(
        r'<th [^>]*aria-sort="descending"><button[^>]*>([^<]+)<', section
    )
    assert heading == "Recall"
