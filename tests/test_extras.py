"""Tests that all else works without the packages of judges, citations and plots, and that one line says what to install."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helm.clients.client import Client

import helm_longctx.plugin  # noqa: F401  # registers deployments
from helm_longctx import environment as extras
from helm_longctx.apps.judge_checks.command import judge_agreement
from helm_longctx.benchmarks.helmet.judge import CitationAnnotator, RubricAnnotator
from helm_longctx.config.shared import check_picture
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.judging.answer_judge import explain
from helm_longctx.judging.judge import Judge, JudgeRequest
from helm_longctx.judging.keys.client import RenewingClient, UnavailableClient
from helm_longctx.models.apis.provider import providers
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark
from tests.support.commands import Command

SETUP = Path(__file__).parents[1] / "setup.cfg"
EXTRAS = {
    **extras.EXTRAS,
    **{name: (provider.package,) for name, provider in providers().items()},
}
MODULES = sorted({module for modules in EXTRAS.values() for module in modules})

WITHOUT = """
import json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None
from pathlib import Path
from typer.testing import CliRunner
from helm_longctx.cli.main import app
from helm_longctx.runner import LongContextRunner
from tests.runner.making import make_run

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
    """A run of a judged category and the commands work without the extras, and `export` leaves out only the plot."""
    environment = {
        **os.environ,
        MIRROR: str(mirror.path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", WITHOUT, json.dumps(MODULES), json.dumps(COMMANDS)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = [
        json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")
    ]
    assert [(arguments, code) for arguments, code, *_ in results] == [
        (arguments, 0) for arguments in COMMANDS
    ], results
    exported = results[-1][2]
    assert "averages.csv" in exported
    assert (
        "scores.png needs vl_convert; install with: pip install 'helm-longctx[plot]'"
        in exported
    )
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
def test_one_line_names_the_extra(
    extra: str, call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line names the missing extra before anything is asked."""
    for module in EXTRAS[extra]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"pip install 'helm-longctx\[{extra}\]'"):
        call()


def test_the_extras_stand_in_setup() -> None:
    """Every extra that an error names can be installed, is no longer mandatory, and is in `all`."""
    config = configparser.ConfigParser()
    config.read(SETUP)
    optional = config["options.extras_require"]
    packages = {
        "google.protobuf": "protobuf",
        "genai_prices": "genai-prices",
        "vl_convert": "vl-convert-python",
    }
    for extra, modules in EXTRAS.items():
        for module in modules:
            assert packages.get(module, module.replace("_", "-")) in optional[extra]
            assert (
                packages.get(module, module)
                not in config["options"]["install_requires"]
            )
        assert extra in optional["all"]


BLOCKED = """
import json, sys
for name in json.loads(sys.argv.pop(1)):
    sys.modules[name] = None
from helm_longctx.cli.main import main
main()
"""


def run_without(
    extra: str, *arguments: str, folder: Path, data: DataRoot | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command, with a mirror if one is given, in a process that cannot import the modules of an extra."""
    command = [sys.executable, "-c", BLOCKED, json.dumps(EXTRAS[extra]), *arguments]
    environment = {**os.environ, MIRROR: str(data.path)} if data else None
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )


def missing(extra: str, purpose: str) -> str:
    """Return the error for a missing extra."""
    modules = " and ".join(EXTRAS[extra])
    return (
        f"{purpose} needs {modules}; install with: pip install 'helm-longctx[{extra}]'"
    )


def test_a_command_says_what_to_install(tmp_path: Path) -> None:
    """A command shows the whole line that says what to install."""
    done = run_without(
        "judges", "judge-check", "--judge", "longctx/lexical", folder=tmp_path
    )
    assert (done.returncode, done.stderr) == (
        2,
        f"helm-longctx: error: {missing('judges', 'judge-check')}\n",
    )


@pytest.mark.parametrize(
    ("extra", "entry", "task"),
    [
        (
            "retrieval",
            "helmet_recall:task=json_kv,length=8k,method=retrieve",
            "method=retrieve",
        ),
    ],
)
def test_a_task_says_what_to_install(
    extra: str, entry: str, task: str, mirror: DataRoot, tmp_path: Path
) -> None:
    """A run of a task or a method whose extra is missing ends in one line before the model is asked."""
    arguments = ("run", "--entry", entry, "--model", "longctx/lexical", "--suite", "s")
    done = run_without(extra, *arguments, folder=tmp_path, data=mirror)
    assert done.returncode == 2
    *_, line = done.stderr.splitlines()
    assert line.startswith(
        f"helm-longctx: error: 1 of 1 runs were not made: {entry.partition(':')[0]}"
    )
    assert line.endswith(f": {missing(extra, task)}")


def test_tasks_name_extras_that_exist() -> None:
    """Each extra that a task needs is in the table of extras, and some tasks need one."""
    named = {
        extra
        for benchmark in BENCHMARKS
        for task in benchmark.tasks
        for extra in task.extras
    }
    assert named == {"code", "openai-tokens"}
    assert named <= set(extras.EXTRAS)


def test_helmet_and_lv_eval_need_no_extra() -> None:
    """The mandatory packages are enough for all scores of HELMET and LV-Eval that need no model."""
    assert {
        extra
        for name in ("helmet", "lv_eval")
        for task in find_benchmark(name).tasks
        for extra in task.extras
    } == set()
    config = configparser.ConfigParser()
    config.read(SETUP)
    assert {"jieba==0.42.1", "pytrec-eval-terrier>=0.5.9"} <= set(
        config["options"]["install_requires"].split()
    )


DEPLOYMENTS = """
model_deployments:
- name: my/model
  model_name: openai/gpt-4o-2024-05-13
  client_spec: {class_name: helm_longctx.models.apis.OpenAIClient, args: {base_url: "http://127.0.0.1:9/v1"}}
- name: my/other
  model_name: openai/gpt-4o-2024-05-13
  client_spec: {class_name: helm_longctx.models.apis.AnthropicClient, args: {api_key_env: %s}}
"""


def test_doctor_says_what_to_do(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines of `doctor` about deployments end with the advice."""
    for module in EXTRAS["openai"]:
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "prod_env").mkdir()
    variable = (
        "A_VARIABLE_WITH_A_NAME_AS_LONG_AS_THOSE_OF_COMPANIES_WITH_MANY_DEPARTMENTS"
    )
    (tmp_path / "prod_env/model_deployments.yaml").write_text(DEPLOYMENTS % variable)
    command("doctor", "--no-run")
    lines = command.out.splitlines()
    (own,) = (line for line in lines if "my/model" in line)
    assert own.endswith(
        f"my/model was not checked: {missing('openai', 'OpenAIClient')}"
    )
    (other,) = (line for line in lines if "my/other" in line)
    assert (
        f"api_key_env='{variable}': the environment variable {variable} is not set; name "
        in other
    )
    assert other.endswith("holds the key")


@pytest.mark.parametrize(
    ("torch", "vision", "fault"),
    [
        (
            ("2.13.0+cpu", False),
            ("0.28.0", "2.13.0", True),
            "0.28.0 is built for CUDA, but torch 2.13.0+cpu is not",
        ),
        (
            ("2.13.0", False),
            ("0.27.0", "2.12.0", False),
            "0.27.0 needs torch 2.12.0, but torch 2.13.0 is installed",
        ),
        (("2.13.0", True), ("0.28.0", "2.13.0", True), ""),
        (("2.13.0+cpu", False), ("0.28.0+cpu", "2.13.0", False), ""),
        (None, ("0.28.0", "2.13.0", True), ""),
    ],
)
def test_a_torchvision_that_does_not_fit(
    torch: tuple[str, bool] | None, vision: tuple[str, str, bool], fault: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A torchvision for another torch, or for CUDA beside a build without it, is found in the installed files."""
    files = {
        "torchvision/_C.so": b"\x7fELF libtorch_cuda.so"
        if vision[2]
        else b"\x7fELF libtorch_cpu.so"
    }
    files["torchvision.dist-info/METADATA"] = (
        f"Metadata-Version: 2.1\nName: torchvision\nVersion: {vision[0]}\nRequires-Dist: torch (=={vision[1]})\n".encode()
    )
    if torch:
        files["torch.dist-info/METADATA"] = (
            f"Metadata-Version: 2.1\nName: torch\nVersion: {torch[0]}\n".encode()
        )
        files["torch/lib/libtorch_cuda.so" if torch[1] else "torch/lib/libtorch.so"] = (
            b""
        )
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert extras.explain_torchvision() == (f"torchvision {fault}" if fault else "")


def test_importing_helms_metrics_downloads_nothing() -> None:
    """Processes that tests start find a punkt model, so that HELM's metrics do not download one when they are imported."""
    command = [sys.executable, "-c", "import helm.benchmark.metrics.basic_metrics"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "nltk_data" not in done.stdout + done.stderr


QUESTION = JudgeRequest(
    "Is it right?", json.loads, max_tokens=9, temperature=0.0, top_p=1.0, seed=None
)


def test_a_failed_judgement_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A judge that cannot be made gives no verdict, and the run and its log have the whole reason."""
    for module in EXTRAS["judges"]:
        monkeypatch.setitem(sys.modules, module, None)
    purpose = "judge='corp/a-deployment-with-a-name-as-long-as-those-of-companies'"
    with pytest.raises(InputError) as caught:
        extras.require("judges", purpose)
    judge = Judge("a/b", "a/b", UnavailableClient(explain(caught.value)))
    reply = judge.ask(QUESTION)
    assert reply.error == f"the call failed: {missing('judges', purpose)}"


def test_a_failed_key_says_what_to_install() -> None:
    """A judge with its own key has the whole reason if its client cannot be made at the first request."""

    def build(key: str) -> Client:
        raise InputError(missing("code", "client"))

    judge = Judge("a/b", "a/b", RenewingClient(build, lambda refused: "sk-1", "KEY"))
    reply = judge.ask(QUESTION)
    assert reply.error == f"the call failed: {missing('code', 'client')}"
