"""What only judges, citations and plots need may be missing: all else works, and one line says what to install."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import helm_longctx.plugin  # noqa: F401  # registers deployments
from helm_longctx import environment as extras
from helm_longctx.benchmarks.helmet.judge import CitationAnnotator, RubricAnnotator
from helm_longctx.cli.judge_agreement import judge_agreement
from helm_longctx.cli.shared import check_picture
from helm_longctx.errors import InputError
from helm_longctx.sources.root import ENVIRONMENT, DataRoot

SETUP = Path(__file__).parents[1] / "setup.cfg"
MODULES = sorted({module for modules in extras.EXTRAS.values() for module in modules})

WITHOUT = """
import json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None
from pathlib import Path
from typer.testing import CliRunner
from helm_longctx.cli.main import app
from helm_longctx.running import LongContextRunner
from tests.running.making import make_run

run = make_run(Path(), "helmet_longqa:task=narrativeqa,length=8k,num_samples=2,model=longctx/lexical", LongContextRunner)
for arguments in json.loads(sys.argv[2]):
    done = CliRunner().invoke(app, [run.name if text == "RUN" else text for text in arguments])
    print(json.dumps([arguments, done.exit_code, done.output[-3000:], repr(done.exception)]))
"""
COMMANDS = [
    ["list"],
    ["prompts", "helmet_longqa:length=8k,num_samples=1"],
    ["models"],
    ["show", "RUN", "narrativeqa-0"],
    ["schema"],
    ["confs", "confs"],
    ["summarize", "--suite", "s"],
    ["export", "--suite", "s"],
]


def test_all_else_works_without_the_extras(mirror: DataRoot, tmp_path: Path) -> None:
    """A run of a judged category and the commands need none of them; `export` leaves out the plot alone."""
    environment = {**os.environ, ENVIRONMENT: str(mirror.path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WITHOUT, json.dumps(MODULES), json.dumps(COMMANDS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]
    assert [(arguments, code) for arguments, code, *_ in results] == [(arguments, 0) for arguments in COMMANDS], results
    exported = results[-1][2]
    assert "averages.csv" in exported
    assert "scores.png needs matplotlib; install with: pip install 'helm-longctx[plot]'" in exported
    assert not (tmp_path / "export/scores.png").exists()


@pytest.mark.parametrize(
    ("extra", "call"),
    [
        ("judges", lambda: RubricAnnotator.check("longctx/lexical")),
        ("judges", lambda: CitationAnnotator.check("longctx/lexical")),
        ("citations", lambda: CitationAnnotator.check("an/nli-model")),
        ("judges", lambda: judge_agreement(Path("run"))),
        ("plot", lambda: check_picture("export", Path("x.png"))),
    ],
)
def test_one_line_names_the_extra(extra: str, call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked."""
    for module in extras.EXTRAS[extra]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"pip install 'helm-longctx\[{extra}\]'"):
        call()


def test_the_extras_stand_in_setup() -> None:
    """Every extra that an error names can be installed, is no longer mandatory, and is in `all`."""
    config = configparser.ConfigParser()
    config.read(SETUP)
    optional = config["options.extras_require"]
    packages = {"google.protobuf": "protobuf", "genai_prices": "genai-prices", "vl_convert": "vl-convert-python"}
    for extra, modules in extras.EXTRAS.items():
        for module in modules:
            assert packages.get(module, module.replace("_", "-")) in optional[extra]
            assert packages.get(module, module) not in config["options"]["install_requires"]
        assert extra in optional["all"]
