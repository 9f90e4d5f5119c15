"""Tests that what the page of NVIDIA's fork of HELM shows works here, word for word but for hosts and keys."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from configparser import ConfigParser
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm.common.hierarchical_logger import setup_default_logging
from helm.common.request import Request

import core_evals.helm_longctx.command as command
from core_evals.helm_longctx.__main__ import _log_judges
from core_evals.helm_longctx.medical import MEDICAL
from helm_longctx.judging.keys.client import describe_key
from helm_longctx.models.apis import oauth
from helm_longctx.models.apis.sending import Retries, Sender
from tests.core_evals.asking import ask
from tests.core_evals.evaluating import KEY, SAMPLES
from tests.core_evals.fork_page import CONFIGURATIONS, COPIES, RUNS, SEARCHES
from tests.core_evals.medical_rows import write_encoding, write_licensed, write_rows
from tests.support.programs import BIN, ROOT
from tests.support.servers.llm import serve

pytest.importorskip("nemo_evaluator")


def write_page(folder: Path) -> None:
    """Write the files that the page's commands read into the folder in which they are started."""
    for name, text in CONFIGURATIONS.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, original in COPIES.items():
        (folder / name).write_text(CONFIGURATIONS[original], encoding="utf-8")
    shutil.copytree(SAMPLES, folder / "test_cases")


def show(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[str, str]:
    """Run a command of the page in this process as a dry run, and return what it prints."""
    words = shlex.split(line)
    assert words[0] == "eval-factory"
    dry = [] if "--dry_run" in words or "run_eval" not in words else ["--dry_run"]
    monkeypatch.setattr(sys, "argv", [*words, *dry])
    # NeMo Evaluator ends a dry run with `exit(0)`.
    with suppress(SystemExit):
        command.main()
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_the_commands_are_this_package_s() -> None:
    """The package installs `eval-factory`, and the function that it names exists."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    scripts = config["options.entry_points"]["console_scripts"].strip().splitlines()
    (target,) = [line for line in scripts if line.startswith("eval-factory = ")]
    module, _, function = target.removeprefix("eval-factory = ").partition(":")
    assert getattr(import_module(module), function) is command.main


def test_ls_lists_all_tasks_of_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`eval-factory ls` has the page's benchmarks and the four whose parameters it explains."""
    out, _ = show("eval-factory ls", monkeypatch, capsys)
    tasks = {line.strip("* ") for line in out.splitlines()}
    assert set(MEDICAL) <= tasks
    assert {"ehrshot", "medalign", "n2c2_ct_matching", "clear"} <= tasks


@pytest.mark.parametrize("line", RUNS)
def test_every_command_as_a_dry_run(
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each command that starts an evaluation is understood as it stands, and a note says how the key's name is read."""
    write_page(tmp_path)
    monkeypatch.chdir(tmp_path)
    out, err = show(line, monkeypatch, capsys)
    assert "Rendered command:" in out
    assert '"api_key": "OPENAI_API_KEY"' in out
    is_old = "test_cases" not in line
    assert ("api_key is read as api_key_name" in err) is is_old


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_configuration_as_a_dry_run(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each configuration is understood as it stands, and its parameters reach the command."""
    write_page(tmp_path)
    monkeypatch.chdir(tmp_path)
    out, _ = show(f"eval-factory run_eval --run_config {name}", monkeypatch, capsys)
    config = yaml.safe_load(CONFIGURATIONS[name])["config"]
    assert f'"output_dir": "{config["output_dir"]}"' in out
    for parameter, value in config.get("params", {}).get("extra", {}).items():
        shown = f'"{value}"' if isinstance(value, str) else value
        assert f'"{parameter}": {shown}' in out


def run_page(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a command with the `eval-factory` that an installation of this package has, and an encoding of tiktoken."""
    scripts = folder / "bin"
    scripts.mkdir()
    script = scripts / "eval-factory"
    script.write_text(
        f"#!{sys.executable}\nfrom core_evals.helm_longctx.command import main\nmain()\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    write_encoding(folder / "modules")
    paths = (str(folder / "modules"), os.environ.get("PYTHONPATH", ""))
    variables = {
        **os.environ,
        "PATH": os.pathsep.join([str(scripts), str(BIN), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OPENAI_API_KEY": KEY,
        "NEMO_EVALUATOR_TELEMETRY_LEVEL": "0",
    }
    return subprocess.run(
        shlex.split(line),
        cwd=folder,
        env=variables,
        text=True,
        capture_output=True,
        check=False,
    )


def test_the_first_example_to_its_end(tmp_path: Path) -> None:
    """The page's first command ends with its files, also `cache.db`, and the key is in none of them."""
    write_page(tmp_path)
    write_rows("medcalc_bench", tmp_path, tmp_path / "results/my_test")
    with serve(lambda prompt: "61") as server:
        path = tmp_path / "my_test.yml"
        text = path.read_text(encoding="utf-8")
        text = text.replace("https://api.openai.com/v1", f"{server.address}/v1")
        path.write_text(text, encoding="utf-8")
        done = run_page(tmp_path, RUNS[0])
        assert {call.key for call in server.calls} <= {f"Bearer {KEY}"}
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    folder = tmp_path / "results/my_test"
    names = {path.name for path in folder.iterdir()}
    page = ("responses", "cache.db", "instances.jsonl", "results.jsonl")
    assert {*page, "model_configs", "evaluation_config.yaml"} <= names
    with (folder / "cache.db").open("rb") as cache:
        assert cache.read(15) == b"SQLite format 3"
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in path.read_bytes() for path in files)


def test_the_example_with_all_parameters_to_its_end(tmp_path: Path) -> None:
    """EHRSHOT runs with all parameters: answers have at most 1,000 tokens, and HELM's scenario gets the length."""
    write_page(tmp_path)
    data = write_licensed("ehrshot", tmp_path / "data")["data_path"]
    with serve(lambda prompt: "A") as server:
        path = tmp_path / "all_parameters.yml"
        text = path.read_text(encoding="utf-8")
        text = text.replace("https://api.openai.com/v1", f"{server.address}/v1")
        text = text.replace("/custom/path/to/ehrshot/data", data)
        path.write_text(text, encoding="utf-8")
        line = "eval-factory run_eval --run_config all_parameters.yml"
        done = run_page(tmp_path, line)
        asked = [call.body for call in server.calls if "Patient EHR" in call.prompt]
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert {body.get("max_tokens") for body in asked} == {1000}
    assert len(asked) == 4
    folder = tmp_path / "results/ehrshot_evaluation"
    (spec,) = folder.glob("runs/*/*/run_spec.json")
    scenario = json.loads(spec.read_text(encoding="utf-8"))["scenario_spec"]["args"]
    assert scenario["max_length"] == 4096
    results = folder / "results.yml"
    scores = yaml.safe_load(results.read_text(encoding="utf-8"))["results"]["tasks"]
    assert (
        scores["ehrshot"]["metrics"]["score"]["scores"]["exact_match"]["value"] == 0.5
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("api_key: sk-proj-0123456789abcdefghij", "is not the name of an environment"),
        ("api_kay: OPENAI_API_KEY", "api_endpoint.api_kay: Extra inputs are not"),
    ],
)
def test_mistakes_in_one_line(
    content: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A key in the place of its name and a misspelt parameter end in one line without the value."""
    text = CONFIGURATIONS["my_test.yml"].replace("api_key: OPENAI_API_KEY", content)
    (tmp_path / "my_test.yml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", shlex.split(RUNS[0]))
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    (line,) = [
        line
        for line in capsys.readouterr().err.splitlines()
        if line.startswith("helm-longctx: error")
    ]
    assert told in line
    assert "sk-proj" not in line


def test_every_medical_task_has_a_sample() -> None:
    """The package has a sample of each medical task, and `commands.sh` runs each."""
    samples = {path.stem: path for path in SAMPLES.glob("*.yml")}
    expected = {f"test_case_nim_llama_3_1_8b_{name}": name for name in MEDICAL}
    types = {}
    for stem, path in samples.items():
        sample = yaml.safe_load(path.read_text(encoding="utf-8"))
        types[stem] = sample["config"]["type"]
    assert types == expected
    lines = (SAMPLES / "commands.sh").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line.startswith("eval-factory")]
    assert [line.rpartition("/")[2] for line in commands] == [
        f"{stem}.yml" for stem in expected
    ]


class LimitedError(Exception):
    """An error of a server that limits its clients."""

    status_code = 429


def test_the_page_s_searches_of_logs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The page's searches find the lines about judges' keys, rate limits and tokens, and none with a part of a key."""
    setup_default_logging()
    monkeypatch.setenv("GPT_JUDGE_API_KEY", KEY)
    judges = [
        {"name": "nvidia/gpt4o-judge", "url": "http://localhost:1/v1"},
        {"name": "nvdev/llama-3.3-70b", "url": "http://localhost:2/v1"},
    ]
    monkeypatch.setenv("LLAMA_JUDGE_API_KEY", KEY)
    _log_judges(ask(task="aci_bench", judge=judges))
    print(describe_key("CLAUDE", "ANTHROPIC_API_KEY", is_own=False))

    tokens = iter(["first-token", "second-token", "third-token"])
    life = 3600.0

    def request(client: oauth.ClientCredentials) -> Any:
        return oauth._Token(next(tokens), time.time() + life)

    monkeypatch.setattr(oauth, "request_token", request)
    source = oauth.TokenSource(
        oauth.ClientCredentials("http://localhost:3/token", "me", "secret")
    )
    life = 0.0
    first = source.current()
    life = 3600.0
    second = source.current()
    assert source.current(second) not in (first, second)

    class Client:
        """A client of a server that limits it three times."""

        calls = 0

        def make_request(self, request: Request) -> Any:
            self.calls += 1
            raise LimitedError(f"Error code: 429 - {KEY}")

    sender = Sender(Client(), Retries(tries=4, first_wait=0.001))  # type: ignore[arg-type]
    sender(Request(model="a/b", model_deployment="a/b", prompt="p"))

    printed = capfd.readouterr()
    (tmp_path / "logs").mkdir()
    log = printed.out + printed.err
    (tmp_path / "logs/run.log").write_text(log, encoding="utf-8")
    outputs = {}
    for search in SEARCHES:
        done = subprocess.run(
            ["bash", "-c", search],
            cwd=tmp_path,
            text=True,
            capture_output=True,
            check=False,
        )
        outputs[search] = len(done.stdout.splitlines())
    assert outputs == SEARCHES, log
    assert KEY not in log
    assert "token-" not in log
