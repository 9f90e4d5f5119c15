"""Tests that commands which need no HELM start without it, and that Ctrl-C ends in one line while libraries load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helm.benchmark.run_spec import get_run_spec_function

from helm_longctx.cli import doctor
from helm_longctx.cli.main import BY_NAME, load_parser
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.registry import may_be_helms, read_helms_names
from tests.e2e.commands import heed_signals
from tests.support.commands import Command
from tests.support.programs import BIN

LIST_MODULES = """
import sys
from helm_longctx.cli.main import main
try:
    main()
finally:
    print([name for name in sys.modules if name.partition(".")[0] in ("helm", "pandas", "requests", "scipy")])
"""
TASK = ["run", "--model", "longctx/lexical", "--suite", "s", "--tasks"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--help"], 0),
        (["run", "--help"], 0),
        (["list"], 0),
        (["list", "helmt"], 2),
        ([*TASK, "helmet_recal"], 2),
        (["estimate", "helmet_recal:length=8k"], 2),
        (["run", "bad.yaml"], 2),
    ],
    ids=str,
)
def test_commands_without_helm(
    arguments: list[str], status: int, tmp_path: Path
) -> None:
    """Help, lists and messages about mistakes import neither HELM nor other libraries that take long."""
    (tmp_path / "bad.yaml").write_text("suite: s\ntusks: [helmet_recall]\n")
    command = [sys.executable, "-c", LIST_MODULES, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (status, "[]"), (
        done.stderr
    )


def test_doctor_needs_no_nltk(tmp_path: Path) -> None:
    """`doctor` does not import NLTK, which imports SciPy and scikit-learn and takes longer than all else."""
    code = LIST_MODULES.replace(
        '("helm", "pandas", "requests", "scipy")', '("nltk", "sklearn")'
    )
    command = [sys.executable, "-c", code, "doctor", "--no-network", "--no-run"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_the_registry_needs_no_helm() -> None:
    """The registry of benchmarks can be read without HELM, so that another host than HELM can use it."""
    code = "import sys; sys.modules['helm'] = None\nfrom helm_longctx.tasks.registry import BENCHMARKS\nprint(len(BENCHMARKS))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 10
    assert done.stderr == ""


def test_names_of_helms_entries() -> None:
    """The names in HELM's files are the names that HELM registers."""
    assert len(read_helms_names()) > 100
    assert [
        name for name in read_helms_names() if get_run_spec_function(name) is None
    ] == []
    assert may_be_helms("mmlu")
    assert not may_be_helms("helmet_recal")


def test_the_patch_comes_with_the_factory() -> None:
    """HELM's adapter factory is patched when it is imported, whether the package is imported before it or after it."""
    factory = "helm.benchmark.adaptation.adapters.adapter_factory"
    check = "from helm_longctx.helm.patches import has_our_adapter; print(has_our_adapter())"
    for code in (
        f"import helm_longctx, {factory}; {check}",
        f"import {factory}, helm_longctx; {check}",
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout == "True\n"


def test_every_command_has_a_docstring() -> None:
    """The help that is read from a command's file is the one of its function."""
    parser = load_parser()
    for name, command in BY_NAME.items():
        assert parser.commands[name].help == command.read_help() != ""


def test_doctor_makes_a_tiny_run(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor makes its tiny run without the user's mirror, and a deprecated Python is a note and no fault."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "_OLDEST_PYTHON", (4, 0))
    monkeypatch.setenv(MIRROR, str(tmp_path))
    assert command("doctor", "--no-network") == 0
    assert "scored 1.0, expected 1.0" in command.out
    assert command.out.startswith("note    versions: Python 3.")
    assert command.err == ""
    assert os.environ[MIRROR] == str(tmp_path)


SLOW = """
import sys, time
slow = sys.argv[1]
class Slow:
    def find_spec(self, name, path, target=None):
        if name == slow:
            print("imports", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
from helm_longctx.__main__ import main
sys.argv[1:] = ["run", "--model", "longctx/lexical", "--tasks", "helmet_recall", "--length", "8k", "--suite", "s"]
main()
"""


@pytest.mark.parametrize("module", ["typer", "pydantic", "helm.benchmark.run_spec"])
def test_ctrl_c_during_an_import(module: str, tmp_path: Path) -> None:
    """Ctrl-C while a library is imported ends the command with status 130 and one line."""
    command = [sys.executable, "-c", SLOW, module]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_signals,
    )
    assert process.stdout
    assert process.stdout.readline() == "imports\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.strip()) == (
        130,
        "helm-longctx: stopped by SIGINT",
    )


def test_the_installed_command_is_the_module() -> None:
    """The installed command and `python -m helm_longctx` are the same program."""
    outputs = {
        subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=True
        ).stdout
        for command in (
            [str(BIN / "helm-longctx")],
            [sys.executable, "-m", "helm_longctx"],
        )
    }
    assert len(outputs) == 1
