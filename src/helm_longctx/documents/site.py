"""Writes a report as a static site (it needs no server and no network), or as one Markdown, LaTeX or PDF document.

Of pages with a choice of lengths, a document has the main length, and plots are files.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from helm_longctx.documents.document import (
    Cell,
    Figure,
    Page,
    Report,
    Section,
    Table,
    TableRow,
    dump_json,
    write_data,
)
from helm_longctx.documents.numbers import escape_markdown, escape_tex
from helm_longctx.documents.plots import make_themes, write_picture
from helm_longctx.environment import cache_folder
from helm_longctx.errors import InputError
from helm_longctx.writing import replace_page

_ASSETS = ("report.css", "report.js", "theme.js", "instances.js")

EMBED = "window.vegaEmbed = vegaEmbed;"
"""The line that makes Vega's function visible to our scripts."""

_POLICY = (
    "default-src 'none'; script-src 'self' file: 'unsafe-eval'; style-src 'self' file:"
    " 'unsafe-inline'; img-src 'self' file: data: blob:"
)
"""The policy forbids to load anything from elsewhere and to run scripts in texts. Vega needs functions from strings."""


def write_site(report: Report, folder: Path) -> list[Path]:
    """Write the pages, the data of their plots and tables, and everything that they load."""
    _write_assets(folder)
    (folder / "data").mkdir(exist_ok=True)
    for page in report.pages:
        for block in page.blocks:
            write_data(block, folder / "data")
        write_page(
            folder / page.file,
            "page.html",
            report=report,
            page=page,
            active=page.group,
        )
    return [folder / page.file for page in report.pages]


def write_page(path: Path, template: str, **values: Any) -> None:
    """Write a page from a template, in which all texts are escaped."""
    page = templates().get_template(template).render(policy=_POLICY, **values)
    replace_page(path, page.encode(errors="replace"))


def _write_assets(folder: Path) -> None:
    """Write the scripts and styles, of which Vega comes from the package vl-convert-python."""
    assets = folder / "assets"
    assets.mkdir(parents=True, exist_ok=True)
    for name in _ASSETS:
        asset = resources.files("helm_longctx.documents") / "assets" / name
        replace_page(assets / name, asset.read_bytes())
    themes = f"window.THEMES = {safe_json(make_themes())};\n"
    replace_page(assets / "themes.js", themes.encode())
    replace_page(assets / "vega.js", make_plot_script().encode())


def safe_json(value: Any) -> str:
    """Serialize a value for a script element, without characters that could end the element."""
    text = dump_json(value).decode()
    for character in "<>&\u2028\u2029":
        # `</script>` and `<!--` end or change a script element, and U+2028 ends a line in old JavaScript.
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@cache
def make_plot_script() -> str:
    """Return the JavaScript that draws plots. Making it takes two seconds, so it is kept in the user's cache."""
    import vl_convert

    made_of = f"{version('vl-convert-python')}\n{EMBED}"
    name = hashlib.sha256(made_of.encode()).hexdigest()[:16]
    path = cache_folder() / f"plots-{name}.js"
    kept = _read_script(path)
    if kept:
        return kept
    script = str(vl_convert.javascript_bundle(EMBED))
    with suppress(OSError):  # a cache that cannot be written
        _write_script(path, script.encode())
    return script


def _read_script(path: Path) -> str:
    """Return the script that `_write_script` wrote. Empty if there is none, or the file is damaged."""
    try:
        first, _, script = path.read_bytes().partition(b"\n")
    except OSError:
        return ""
    if first != _mark(script):
        return ""
    return script.decode()


def _write_script(path: Path, script: bytes) -> None:
    """Write a script after a line with its checksum. Of several processes, the last one's file stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(_mark(script) + b"\n" + script)
    os.replace(file.name, path)


def _mark(script: bytes) -> bytes:
    return b"// sha256 " + hashlib.sha256(script).hexdigest().encode()


@cache
def templates() -> Environment:
    """Return the templates of pages, in which all texts are escaped."""
    environment = Environment(
        loader=PackageLoader("helm_longctx.documents"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["json_block"] = lambda value: Markup(safe_json(value))  # noqa: S704  # it is escaped
    environment.filters["unbroken"] = _join_numbers
    return environment


def _join_numbers(text: str) -> str:
    """Return a text in which no line ends between a number and its percent sign."""
    return re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text)


_BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
"""Names of Chromium and of browsers that are based on it. The environment variable CHROMIUM can name another one."""

_PRINT_SECONDS = 120


@dataclass(frozen=True)
class PageFormat:
    """A format of documents. `escape` is None for HTML, whose templates escape all texts."""

    template: str
    file: str
    picture: str
    escape: Callable[[str], str] | None = None
    table: Callable[[Table], str] | None = None


def markdown_table(table: Table) -> str:
    """Return the header and the rows of a table in Markdown. The user's models are bold."""
    align = []
    for column in table.columns:
        align.append("---:" if column.is_number else "---")
    rows = []
    for row in table.rows:
        rows.append([_show(cell, escape_markdown, "**{}**", "({})") for cell in row])
    header = map(escape_markdown, table.header)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, align, *rows))


def latex_table(table: Table, *, is_long: bool = False) -> str:
    """Return a table in LaTeX with booktabs and caption. It may be longer than a page if `is_long`."""
    align = "".join("r" if column.is_number else "l" for column in table.columns)
    if table.about:
        about = f"{table.title}. {table.about}"
    else:
        about = f"{table.title}."
    caption = rf"\caption{{{escape_tex(about)}}}"
    start = [r"\begin{table}", r"\centering", caption, rf"\begin{{tabular}}{{{align}}}"]
    end = [r"\end{tabular}", r"\end{table}"]
    after_header = []
    if is_long:
        start = [r"{\footnotesize", rf"\begin{{longtable}}{{{align}}}", rf"{caption}\\"]
        end = [r"\end{longtable}}"]
        after_header = [r"\endhead"]
    rows = []
    for row in table.rows:
        cells = []
        for cell in row:
            cells.append(_show(cell, escape_tex, r"\textbf{{{}}}", r"{{\tiny ({})}}"))
        text = " & ".join(cells)
        # After the end of a row, a bracket or a star would be an argument of that end.
        guard = "{}" if text.startswith(("[", "*")) else ""
        rows.append(rf"{guard}{text} \\")
    header = " & ".join(map(escape_tex, table.header))
    lines = [
        *start,
        r"\toprule",
        rf"{header} \\",
        r"\midrule",
        *after_header,
        *rows,
        r"\bottomrule",
        *end,
    ]
    return "\n".join(lines)


def _show(
    cell: Cell,
    escape: Callable[[str], str],
    own: str,
    detail: str,
) -> str:
    text = escape(cell.text)
    shown = own.format(text) if cell.tag == "own" else text
    if cell.detail:
        return f"{shown} {detail.format(escape(cell.detail))}"
    return shown


_KINDS: Mapping[str, PageFormat] = {
    "markdown": PageFormat(
        "report.md", "report.md", "svg", escape_markdown, markdown_table
    ),
    "latex": PageFormat(
        "report.tex",
        "report.tex",
        "pdf",
        escape_tex,
        partial(latex_table, is_long=True),
    ),
    "pdf": PageFormat("document.html", "report.html", "svg"),
}


def write_document(report: Report, folder: Path, kind: str) -> Path:
    """Write a report as a document of one of `_KINDS`, with plots and data, or raise an `InputError`."""
    if kind != "pdf":
        return _write(report, folder, _KINDS[kind])
    browser = _find_browser()
    with tempfile.TemporaryDirectory(prefix="report-") as temporary:
        page = _write(report, Path(temporary), _KINDS[kind])
        return _print_page(browser, page, folder / "report.pdf")


def _find_browser() -> str:
    """Find Chromium. Raises an `InputError` if there is none."""
    for name in (os.environ.get("CHROMIUM", ""), *_BROWSERS):
        path = shutil.which(name) if name else None
        if path:
            return path
    raise InputError(
        "format=pdf needs Chromium or Chrome; install it, or use markdown, latex or html instead"
    )


def _print_page(browser: str, page: Path, target: Path) -> Path:
    """Print a page into a PDF file. Raises an `InputError` if the browser fails."""
    # Chromium's sandbox does not work for root, who starts browsers only in containers.
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        sandbox = ["--no-sandbox"]
    else:
        sandbox = []
    command = [
        browser,
        "--headless",
        "--disable-gpu",
        *sandbox,
        "--no-pdf-header-footer",
    ]
    # The profile is new, because with the profile of a running browser Chromium only opens the page there.
    command += [
        f"--user-data-dir={page.parent / 'profile'}",
        f"--print-to-pdf={target.resolve()}",
        page.as_uri(),
    ]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=_PRINT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InputError(
            f"format=pdf: {browser} did not print the report in {_PRINT_SECONDS} s; use"
            " another format"
        ) from None
    # Chromium can end with status 0 although it has not written the file.
    if done.returncode or not target.is_file():
        raise InputError(
            f"format=pdf: {browser} failed with status {done.returncode}; use another format"
        )
    return target


def _write(report: Report, folder: Path, kind: PageFormat) -> Path:
    for name in ("plots", "data"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    pages = [(page, _first_sections(page)) for page in report.pages]
    for page, sections in pages:
        for section in sections:
            for block in section.blocks:
                write_data(block, folder / "data")
                if isinstance(block, Figure):
                    picture = folder / "plots" / f"{block.name}.{kind.picture}"
                    write_picture(block.full_spec(_first_rows(block, page)), picture)
    text = (
        _environment(kind)
        .get_template(kind.template)
        .render(report=report, pages=pages)
    )
    path = folder / kind.file
    # Texts can contain lone surrogates. UTF-8 does not allow these.
    replace_page(path, text.encode(errors="replace"))
    return path


def _first_sections(page: Page) -> list[Section]:
    """Return the sections that need no choice, and those with the choice of the page's first section."""
    # The first section of a page is about the main length.
    choices = ("", page.sections[0].choice) if page.sections else ()
    return [section for section in page.sections if section.choice in choices]


def _first_rows(figure: Figure, page: Page) -> list[TableRow]:
    """Return the rows of a plot for the models that pages show at first."""
    if not figure.by_model:
        return list(figure.rows)
    rows = []
    for row in figure.rows:
        is_shown = page.models.get(str(row.get("model")), True)
        if is_shown or row.get("kind") == "floor":
            rows.append(row)
    return rows


def _environment(kind: PageFormat) -> Environment:
    if kind.escape is None:
        return templates()
    # Jinja's usual delimiters are changed, because LaTeX uses braces and percent signs.
    marks = {"block": ("<%", "%>"), "variable": ("<<", ">>"), "comment": ("<#", "#>")}
    delimiters: dict[str, Any] = {}
    for name, (start, _) in marks.items():
        delimiters[f"{name}_start_string"] = start
    delimiters |= {f"{name}_end_string": end for name, (_, end) in marks.items()}
    # Jinja escapes nothing here, but the templates pass each text through the filter.
    environment = templates().overlay(autoescape=False, **delimiters)
    environment.filters = {
        **environment.filters,
        "text": kind.escape,
        "table": kind.table,
    }
    return environment
