"""Makes golden files, or compares published outputs with the official code.

    python -m tests.golden_makers                                 # lists what can be made
    python -m tests.golden_makers longhealth --official FOLDER    # makes one, with its own arguments

A name is a module of this package. Each says at its top which official code it needs, at which commit.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def list_makers() -> dict[str, str]:
    """Return the first line of each module whose docstring tells its command, by its name."""
    makers = {}
    for path in sorted(FOLDER.rglob("*.py")):
        name = ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if f"python -m tests.golden_makers {name}" in about and name != "__main__":
            makers[name] = about.partition("\n")[0]
    return makers


def main() -> None:
    """Run the module that the first argument names with the other arguments."""
    makers = list_makers()
    if len(sys.argv) == 1:
        width = max(map(len, makers))
        print(*(f"{name:{width}}  {line}" for name, line in makers.items()), sep="\n")
        return
    name = sys.argv[1]
    if name not in makers:
        sys.exit(
            f"{name} is not known; python -m tests.golden_makers lists what can be made"
        )
    del sys.argv[1]
    runpy.run_module(f"tests.golden_makers.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
