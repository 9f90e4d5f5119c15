"""A hook of MkDocs that makes the README of each benchmark's folder a page of the site.

A link between a README and a page in docs/ is a path in the repository, so that it works where the repository is shown.
In the site the same link leads to the page.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parent
BENCHMARKS = DOCS.parent / "src/helm_longctx/benchmarks"
SECTION = "Benchmarks"
"""The section of the menu that lists the pages."""

_LINK = re.compile(r"(?<=\]\()[^)#\s:]+\.md(?=[)#])")


def find_readmes() -> dict[str, Path]:
    """Return the README of each folder by the name of its page, such as `aa-lcr.md`, sorted by their titles."""
    readmes = sorted(
        BENCHMARKS.rglob("README.md"),
        key=lambda path: path.read_text(encoding="utf-8").lower(),
    )
    return {f"{path.parent.name.replace('_', '-')}.md": path for path in readmes}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages into the menu, and let `mkdocs serve` watch their files."""
    for section in config.nav or []:
        if SECTION in section:
            section[SECTION] = list(find_readmes())
    config.watch.append(str(BENCHMARKS))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to the site."""
    for page, path in find_readmes().items():
        files.append(File.generated(config, page, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **further: Any) -> str:
    """Replace each link to a file that is a page by a link to the page."""
    pages = {path: name for name, path in find_readmes().items()}
    here = Path(page.file.abs_src_path or "").parent

    def name_page(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(here / match[0]))
        name = pages.get(target) or (
            target.relative_to(DOCS).as_posix() if target.is_relative_to(DOCS) else ""
        )
        return (
            os.path.relpath(name, Path(page.file.src_uri).parent) if name else match[0]
        )

    return _LINK.sub(name_page, markdown)
