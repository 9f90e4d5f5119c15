"""Simulates the decisions of the commands, and prints how often they are wrong, and how often they decide.

python -m bench.decisions [PART ...] [--rounds N] [--seed N]

Each part is a module of this package, whose function `rows` yields figures with their claims.
`--write` puts the figures of a part into the table of docs/statistics.md, in the place of those that it had.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from bench.decisions.figures import Figure

FOLDER = Path(__file__).parent

NO_PARTS = ("__main__", "figures", "intervals")
"""Modules of this package that are no parts."""

DOCUMENT = FOLDER.parents[1] / "docs" / "statistics.md"

HEAD = "| part | what is simulated | claim | simulated | rounds | |"
"""The first line of the table of figures."""


def format_row(part: str, figure: Figure) -> str:
    """Return a row of the table."""
    return f"| {' | '.join([part, *figure.cells()])} |"


def write_figures(path: Path, part: str, figures: Sequence[Figure]) -> None:
    """Replace the rows of a part in the table of a page, or add them at its end."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = lines.index(HEAD) + 2
    end = next(
        index
        for index in range(start, len(lines) + 1)
        if not "".join(lines[index : index + 1])
    )
    table = lines[start:end]
    prefix = f"| {part} |"
    own = [index for index, line in enumerate(table) if line.startswith(prefix)]
    position = own[0] if own else len(table)
    kept = [line for line in table if not line.startswith(prefix)]
    rows = [format_row(part, figure) for figure in figures]
    lines[start:end] = [*kept[:position], *rows, *kept[position:]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Print the table of each part."""
    modules = sorted(path.stem for path in FOLDER.glob("*.py"))
    known = [name for name in modules if name not in NO_PARTS]
    parser = argparse.ArgumentParser(
        prog="python -m bench.decisions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"{', '.join(known)}; all without a name",
    )
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--write", action="store_true", help="put the figures into docs/statistics.md"
    )
    args = parser.parse_args()
    if unknown := set(args.parts) - set(known):
        parser.error(f"{', '.join(sorted(unknown))}: give {', '.join(known)}")
    for part in args.parts or known:
        print(f"{part} ({args.rounds} rounds, seed {args.seed})", flush=True)
        figures: list[Figure] = []
        room = import_module(f"bench.decisions.{part}")
        for figure in room.rows(args.rounds, args.seed):
            figures.append(figure)
            print(format_row(part, figure), flush=True)
        if args.write:
            write_figures(DOCUMENT, part, figures)


if __name__ == "__main__":
    main()
