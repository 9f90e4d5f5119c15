"""Counts the proportions of Python code: small private functions, imports, comments, and lengths of functions.

    python -m bench.proportions [FOLDER …] [--peers] [--once]

Without a folder it reads src. `--peers` adds httpx, structlog and pydantic_evals, which pip installs into a temporary
folder. `--once` lists the private functions that are called once and have fewer than eight lines, file by file.

A private function has a name that starts with one underscore. It is called once if its file names it once outside its
definition. Lines of a function include its decorators and docstring.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
PEERS = {"httpx": "httpx", "structlog": "structlog", "pydantic_evals": "pydantic-evals"}
"""The folder of each peer, and what pip installs for it."""

FEW_LINES = 8


@dataclass
class Counts:
    """What was counted in a tree of Python files."""

    lines: int = 0
    import_lines: int = 0
    comment_lines: int = 0
    lengths: list[int] = field(default_factory=list)
    private: int = 0
    once: list[tuple[str, int]] = field(default_factory=list)
    """Place and number of lines of each private function that is called once."""

    def add(self, path: Path, path_name: str) -> None:
        """Count a file."""
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        self.lines += len(source.splitlines())
        self.comment_lines += sum(
            token.type == tokenize.COMMENT
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
        )
        named: Counter[str] = Counter()
        functions: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, int]] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.import_lines += (node.end_lineno or node.lineno) - node.lineno + 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min(
                    [
                        node.lineno,
                        *(decorator.lineno for decorator in node.decorator_list),
                    ]
                )
                functions.append((node, (node.end_lineno or node.lineno) - first + 1))
            elif isinstance(node, ast.Name | ast.Attribute):
                named[node.id if isinstance(node, ast.Name) else node.attr] += 1
        self.lengths += [lines for _, lines in functions]
        private = [
            (node, lines)
            for node, lines in functions
            if node.name[0] == "_" and node.name[:2] != "__"
        ]
        self.private += len(private)
        self.once += [
            (f"{path_name}:{node.lineno} {node.name}", lines)
            for node, lines in private
            if named[node.name] == 1
        ]

    def row(self) -> dict[str, str]:
        """Return the figures that are printed."""
        lengths = sorted(self.lengths) or [0]
        short = sum(lines < FEW_LINES for _, lines in self.once)
        return {
            "lines": f"{self.lines:,}",
            "private functions": f"{self.private:,}",
            "called once": f"{len(self.once):,}",
            "%": f"{100 * len(self.once) / max(self.private, 1):.0f}",
            f"under {FEW_LINES} lines": f"{short:,}",
            "imports %": f"{100 * self.import_lines / max(self.lines, 1):.1f}",
            "comments %": f"{100 * self.comment_lines / max(self.lines, 1):.1f}",
            "p90": f"{lengths[int(len(lengths) * 0.9)]}",
            "longest": f"{lengths[-1]}",
        }


def count(folder: Path) -> Counts:
    """Count all Python files below a folder."""
    counts = Counts()
    for path in sorted(folder.rglob("*.py")):
        counts.add(path, str(path.relative_to(folder)))
    return counts


def print_table(rows: dict[str, dict[str, str]]) -> None:
    """Print a line for each tree."""
    names = list(next(iter(rows.values())))
    first = max(map(len, rows))
    print(" " * first, *names, sep="  ")
    for tree, row in rows.items():
        print(
            tree.ljust(first), *(row[name].rjust(len(name)) for name in names), sep="  "
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, default=[SOURCE])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--once", action="store_true")
    arguments = parser.parse_args()
    counts_by_tree = {str(folder): count(folder) for folder in arguments.folders}
    if arguments.once:
        print(
            *(
                f"{lines} {definition}"
                for c in counts_by_tree.values()
                for definition, lines in c.once
                if lines < FEW_LINES
            ),
            sep="\n",
        )
    if arguments.peers:
        with tempfile.TemporaryDirectory() as folder:
            command = (
                sys.executable,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--target",
                folder,
                *PEERS.values(),
            )
            subprocess.run(command, check=True)
            counts_by_tree |= {name: count(Path(folder, name)) for name in PEERS}
    print_table({name: counts.row() for name, counts in counts_by_tree.items()})


if __name__ == "__main__":
    main()
