"""Builds the package as setup.cfg describes it. Its description is README.md, with links that work on PyPI, too."""

from __future__ import annotations

import configparser
import re
import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)\s]+)\)")


def describe() -> str:
    """Return README.md, whose relative links and pictures get their addresses in the repository at the tag."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    tag = f"v{runpy.run_path(str(ROOT / 'src/helm_longctx/_version.py'))['VERSION']}"
    repository = config["metadata"]["url"]

    def link(found: re.Match[str]) -> str:
        mark, text, path = found.groups()
        return f"{mark}[{text}]({repository}/{'raw' if mark else 'blob'}/{tag}/{path})"

    return _LINK.sub(link, (ROOT / "README.md").read_text(encoding="utf-8"))


class BuildWithPages(build_py):
    """Copies the pages in `docs` into the package: messages name them (`helm_longctx.environment.page_address`)."""

    def run(self) -> None:
        """Build the package, with the pages unless it stays in the clone."""
        super().run()
        if self.editable_mode:
            return
        for page in sorted((ROOT / "docs").rglob("*.md")):
            copy = Path(
                self.build_lib, "helm_longctx/pages", page.relative_to(ROOT / "docs")
            )
            copy.parent.mkdir(parents=True, exist_ok=True)
            # The pages of benchmarks are in the package, too.
            copy.write_text(
                page.read_text(encoding="utf-8").replace("../src/helm_longctx/", "../"),
                encoding="utf-8",
            )


if __name__ == "__main__":
    setup(long_description=describe(), cmdclass={"build_py": BuildWithPages})
