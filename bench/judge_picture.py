"""Draws docs/images/judge-check.png from the output of `helm-longctx judge-check`: python bench/judge_picture.py

The simulated judges are servers on this machine. Each is checked and saved separately, then all are compared. The
rubrics are fabricated, because we do not copy the official ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fabricate_books import build_rubrics  # noqa: E402
from tests.judging.characters import Characters  # noqa: E402
from tests.judging.deployments import write_judges  # noqa: E402
from tests.servers.llm import serve  # noqa: E402

from helm_longctx.benchmarks.helmet.judge_check import checks  # noqa: E402
from helm_longctx.sources.root import ENVIRONMENT, DataRoot  # noqa: E402

PICTURE = ROOT / "docs" / "images" / "judge-check.png"

JUDGES = ("perfect", "generous", "obedient", "moody")
"""Characters of the simulated judges."""


def main() -> None:
    """Check each judge and draw the picture."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        build_rubrics(folder / "mirror")
        characters = Characters(checks(DataRoot(folder / "mirror", mirror=True)))
        with ExitStack() as stack:
            servers = {name: stack.enter_context(serve(getattr(characters, name))) for name in JUDGES}
            addresses = {f"simulated/{name}": server.openai for name, server in servers.items()}
            write_judges(folder / "prod_env", dict(addresses))
            for name in JUDGES:
                run(folder, "--judge", f"simulated/{name}", "--repeats", "2", "--save", f"{name}.json")
        run(folder, "--compare", *(f"{name}.json" for name in JUDGES), "--plot", str(PICTURE))


def run(folder: Path, *arguments: str) -> None:
    """Run `helm-longctx judge-check` in a folder."""
    command = [str(Path(sys.executable).with_name("helm-longctx")), "judge-check", *arguments]
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, ENVIRONMENT: str(folder / "mirror")})


if __name__ == "__main__":
    main()
