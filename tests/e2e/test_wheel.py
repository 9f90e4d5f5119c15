"""Tests of the package as an installed wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from tests.support.programs import BIN

ROOT = Path(__file__).parents[2]


def test_wheel_works_outside_the_clone(tmp_path: Path) -> None:
    """An installed wheel lists tasks, prints its models and schema, and is found through HELM's entry point."""
    # The developer's folder of sources would hide the wheel.
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    build = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(ROOT),
    ]
    assert (
        subprocess.run(build, capture_output=True, cwd=tmp_path, check=False).returncode
        == 0
    )
    venv.create(tmp_path / "v", system_site_packages=False, with_pip=False)
    python = tmp_path / "v/bin/python"
    wheel = next(tmp_path.glob("*.whl"))
    # The pip of this environment installs into the other one, which has none.
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", str(wheel)],
        check=True,
        env=environment,
        capture_output=True,
    )
    # Its dependencies are those of this environment.
    packages = next(Path(sys.prefix).glob("lib/python*/site-packages"))
    target = (
        next((tmp_path / "v").glob("lib/python*/site-packages")) / "dependencies.pth"
    )
    target.write_text(f"{packages}\n")
    command = [
        str(python),
        "-c",
        "import helm_longctx, sys; print(helm_longctx.__file__)",
    ]
    where = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert str(tmp_path) in where
    entry = "helmet_recall:task=json_kv,length=4k,num_samples=3,model=longctx/lexical"
    code = "from helm.benchmark.run import main; main()"
    arguments = ["--run-entries", entry, "--suite", "s", "-m", "9"]
    made = subprocess.run(
        [str(python), "-c", code, *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    listed = subprocess.run(
        [str(tmp_path / "v/bin/helm-longctx"), "models"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "vllm/llama-3.1-8b-instruct" in listed.stdout
    assert str(tmp_path / "v") in listed.stdout.replace("\n", "")
    assert tmp_path / "v/bin" != BIN
