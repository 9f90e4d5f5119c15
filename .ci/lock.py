"""Writes constraints.txt: for every package that an installation can bring, the version that pip chooses today.

    python .ci/lock.py PYTHON ...

PYTHON: interpreters, one of each version that the package supports. Where they get different versions, a line has a
marker. What a build of torch brings for a GPU is left out: it depends on the machine.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
# The version of every package by Python. Made by `make lock`; used as: pip install --constraint constraints.txt .
# torch and torchvision come in pairs: the newest torchvision would replace a CPU build of torch by a CUDA one.
"""
PAIR = ("torch==2.13.0", "torchvision==0.28.0")
"""Newer ones have to be tried on machines with and without a GPU, so they are chosen by hand, here and in Makefile."""

OF_A_GPU = re.compile(r"nvidia-.*|cuda-.*|triton")


def main() -> None:
    """Ask pip once for each interpreter, and write what they have in common first."""
    with ThreadPoolExecutor(2) as pool:
        chosen = dict(pool.map(choose_versions, sys.argv[1:]))
    names = sorted({name for versions in chosen.values() for name in versions})
    lines = [line for name in names for line in constraints(name, chosen)]
    (ROOT / "constraints.txt").write_text(
        HEAD + "\n".join(lines) + "\n", encoding="utf-8"
    )
    print(f"constraints.txt: {len(names)} packages for Python {', '.join(chosen)}")


def choose_versions(python: str) -> tuple[str, dict[str, str]]:
    """An interpreter's version and, by name, the versions that pip would install with it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--quiet"]
        subprocess.run([*pip, "install", "--upgrade", "pip"], check=True)
        report = Path(folder) / "report.json"
        subprocess.run(
            [
                *pip,
                "install",
                "--dry-run",
                "--report",
                str(report),
                f"{ROOT}[all,dev]",
                *PAIR,
            ],
            check=True,
        )
        found = json.loads(report.read_text(encoding="utf-8"))
    packages = (each["metadata"] for each in found["install"])
    versions = {
        re.sub(r"[-_.]+", "-", p["name"]).lower(): p["version"].partition("+")[0]
        for p in packages
    }
    kept = {
        n: v
        for n, v in versions.items()
        if n != "helm-longctx" and not OF_A_GPU.fullmatch(n)
    }
    return found["environment"]["python_version"], kept


def constraints(name: str, chosen: dict[str, dict[str, str]]) -> list[str]:
    """The lines of a package: one, or one for each Python if the versions are not the same everywhere."""
    versions = {
        python: packages[name]
        for python, packages in chosen.items()
        if name in packages
    }
    if len(versions) == len(chosen) and len(set(versions.values())) == 1:
        return [f"{name}=={next(iter(versions.values()))}"]
    return [
        f'{name}=={version} ; python_version == "{python}"'
        for python, version in versions.items()
    ]


if __name__ == "__main__":
    main()
