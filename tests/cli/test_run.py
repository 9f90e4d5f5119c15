"""Tests of `run` with options instead of a file, in this process."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helm.common.credentials_utils import provide_api_key

from helm_longctx.benchmarks.helmet.data.recall import _warn_of_generation
from helm_longctx.config.entries import plan_entries
from helm_longctx.config.load import load_config
from helm_longctx.config.models import expand_models
from helm_longctx.config.options import read_options
from helm_longctx.config.shared import hide_chatter
from helm_longctx.data.root import DataRoot
from helm_longctx.run_settings import MIRROR
from tests.support.commands import Command
from tests.support.configs import write


def test_the_schema_is_json(command: Command) -> None:
    """`run --schema` prints a JSON schema and nothing else on standard output."""
    assert command("run", "--schema") == 0
    assert json.loads(command.out)["properties"]["models"]["type"] == "array"


def test_a_dry_run_ofread_options(command: Command) -> None:
    """`run --dry-run` prints the run entries, HELM's command and the estimate, and runs nothing."""
    options = [
        "--tasks",
        "helmet_recall:task=json_kv",
        "--length",
        "8k",
        "--argument",
        "num_samples=2",
        "--dry-run",
    ]
    assert (
        command(
            "run",
            *options,
            "--model",
            "longctx/lexical",
            "--suite",
            "x",
            "--max-retries",
            "0",
        )
        == 0
    )
    run = "helmet_recall:task=json_kv,length=8k,num_samples=2,model=longctx_lexical"
    assert command.out.startswith(f"1 run:\n  {run}\n")
    assert (
        "HELM_LONGCTX_TRIES=1 helm-run \\\n    --run-entries helmet_recall:length=8k"
        in command.out
    )
    assert "Prompt tokens: counted by" in command.out
    assert "Prices: not known: give --prices, or in YAML limits.prices" in command.out
    assert "unknown" not in command.out  # no columns of dollars without a price
    assert "│ helmet_recall:task=json_kv,length=8k,num_samples=2 │" in command.out
    assert not list(Path("benchmark_output/runs/x").glob("helmet*"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--model-type", "chta", "--model-url", "http://h"],
            "--model-type='chta' is invalid; did you mean chat? Choose from chat, compl",
        ),
        (
            ["--model-name", "m"],
            "--model-url is missing; give a server's address, --model-path for a folder, or --model",
        ),
        (
            ["--length", "9x"],
            "--length[0]='9x' is invalid; give 4k, 8k, 16k, 32k, 64k, 128k, 256k, 512k, 1m, … 16m or a whole number from 250",
        ),
        (
            [
                "--tasks",
                "helmet_recall:method=retreive",
                "--length",
                "8k",
                "--model",
                "longctx/lexical",
            ],
            "--tasks[0]: helmet_recall: method='retreive' is invalid; did you mean retrieve?",
        ),
        (
            ["--model", "openai/gpt-6-lunna"],
            "--model: 'openai/gpt-6-lunna' is not a model; did you mean openai/gpt-6-luna?",
        ),
        (
            ["--model", "longctx/lexical", "--prices", "absent.yaml"],
            "--prices: prices: absent.yaml: No such file",
        ),
        (
            ["--judge-key", "gpt=sk-proj-0123456789abcdefghij"],
            "--judge-key gpt holds a secret; give the NAME",
        ),
        (["--max-cost", "0"], "--max-cost=0.0 is invalid; give a number above 0"),
        (
            ["--argument", "num_samples"],
            "run: --argument='num_samples' is invalid; give NAME=VALUE",
        ),
        (
            ["--tasks", "any_jsonl:path=x,count_with=y"],
            "'count_with=y' is not a run entry but an argument; give it by --arg",
        ),
        (
            ["--retry-cut", "4"],
            "--retry-cut='4' is invalid; give a factor from 2x to 1000x, such as 4x",
        ),
        (["absent.yaml"], "absent.yaml: No such file or directory"),
    ],
)
def test_mistakes(command: Command, options: list[str], told: str) -> None:
    """A mistake in an option ends with status 2 and one line that names the option."""
    assert command("run", "--tasks", "aa_lcr", *options) == 2
    assert told in command.err
    assert command.err.count("\n") == 1


def test_benchmarks_are_names_of_run_entries(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A benchmark's name stands for its run entries in every command, as the missing data of both of them shows."""
    monkeypatch.setenv(MIRROR, str(tmp_path))
    options = ["--model", "longctx/lexical", "--suite", "x", "--dry-run"]
    file = write("tasks: [scbench]\nmodels: [longctx/lexical]\n")
    for arguments in (
        ["run", "--tasks", "scbench", *options],
        ["run", "--entry", "scbench:num_samples=1", *options],
        ["run", str(file), "--suite", "x", "--dry-run"],
        ["estimate", "scbench:num_samples=1,model=longctx/lexical"],
        ["fetch", "scbench"],
        ["prompts", "scbench"],
    ):
        assert command(*arguments) == 2
        assert "lacks hub/microsoft__SCBench/scbench_kv/test.jsonl, " in command.err


def test_a_dry_run_with_methods(command: Command) -> None:
    """Arguments of all tasks can name a method with its own arguments, and a mistake is told with its place."""
    content = "tasks: [helmet_recall:task=json_kv]\nlengths: [8k]\narguments:\n  num_samples: 2\n  method: retrieve\n  chunks: {}\n"
    options = ["--model", "longctx/lexical", "--suite", "x", "--dry-run"]
    assert command("run", str(write(content.format(3))), *options) == 0, command.err
    name = "helmet_recall:task=json_kv,length=8k,num_samples=2,method=retrieve,chunks=3,model=longctx_lexical"
    assert command.out.startswith(f"1 run:\n  {name}\n")
    assert command("run", str(write(content.format(0))), *options) == 2
    assert (
        "run.yaml:6: arguments.chunks: helmet_recall: chunks=0 is invalid; give a whole number from 1"
        in command.err
    )
    assert (
        command(
            "run",
            str(write(content.replace("  method: retrieve\n", "").format(3))),
            *options,
        )
        == 2
    )
    assert "chunks=3 is an argument of method=retrieve; give both" in command.err


def test_a_dry_run_with_a_larger_budget(command: Command) -> None:
    """With `--retry-cut` or `retry_cut`, each entry has a second run, whose requests are known after the first one."""
    entry = "helmet_recall:task=json_kv,length=8k,num_samples=2"
    options = ["--model", "longctx/lexical", "--suite", "x"]
    second = (
        entry.replace("num_samples=2", "num_samples=2,retry_cut=4x")
        + ",model=longctx_lexical"
    )
    path = write(f"entries: ['{entry}']\nretry_cut: 4x\n")
    for chosen in (["--entry", entry, "--retry-cut", "4x"], [str(path)]):
        assert command("run", *chosen, *options, "--dry-run") == 0, command.err
        assert command.out.startswith(
            f"2 runs:\n  {entry},model=longctx_lexical\n  {second}\n"
        )
        assert (
            "Not in the estimate: 1 run for cut answers; how many these are is known after the other runs."
            in command.out
        )
    assert command("run", *chosen, *options) == 0
    assert "2 of 2 runs are in" in command.out
    assert command("run", *chosen, *options, "--dry-run") == 0
    assert "ask again" not in command.out
    assert re.search(r"│ +0 │ +0 │ +0 to 0 │", command.out)
    path = write(f"entries: ['{entry}']\nretry_cut: 0x\n")
    assert command("run", str(path), *options) == 2
    assert (
        "run.yaml:2: retry_cut='0x' is invalid; give a factor from 2x to 1000x"
        in command.err
    )
    assert (
        command("run", "--entry", "mmlu:subject=anatomy", "--retry-cut", "4x", *options)
        == 2
    )
    assert "--retry-cut=4x is given, but all entries are HELM's own" in command.err


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "model_deployments.yaml",
            "\0",
            "local/model_deployments.yaml:1: the file is not YAML",
        ),
        (
            "model_deployments.yaml",
            "model_deployments: 5",
            "HELM cannot read the YAML files in local: ClassValidationError",
        ),
        (
            "model_metadata.yaml",
            "models: }",
            "local/model_metadata.yaml:1: the file is not YAML",
        ),
        (
            "credentials.conf",
            "openaiApiKey: [sk-a-secret-key-0123456789",
            "local/credentials.conf is not a HOCON file",
        ),
    ],
)
def test_damaged_files_of_local_path(
    command: Command, name: str, content: str, told: str
) -> None:
    """A damaged file of `--local-path` ends in one line without its keys, although HELM's own error is a traceback."""
    Path("local").mkdir()
    Path("local", name).write_text(content)
    options = ["--suite", "x", "--dry-run", "--local-path", "local"]
    assert (
        command(
            "run",
            "--entry",
            "helmet_recall:length=8k",
            "--model",
            "longctx/null",
            *options,
        )
        == 2
    )
    assert told in command.err
    assert command.err.count("\n") == 1
    assert "0123456789" not in command.err


def test_options_are_values_of_a_file() -> None:
    """Options become the values of a configuration file; the model of a server gets a name that run entries can have."""
    given = {
        "model": ["longctx/null"],
        "model_url": "http://h",
        "model_name": "us/azure/gpt 4",
        "max_cost": 2.5,
    }
    options = read_options(
        {**given, "judge": "a/b,c/d", "judge_key": ["gpt=MY_KEY"], "length": "8k, 128k"}
    )
    assert options.values == {
        "lengths": ["8k", "128k"],
        "limits": {"max_cost": 2.5},
        "judge": {"judges": ["a/b", "c/d"], "keys": {"gpt": "MY_KEY"}},
        "models": [
            "longctx/null",
            {
                "url": "http://h",
                "model": "us/azure/gpt 4",
                "name": "endpoint/us-azure-gpt-4",
            },
        ],
    }
    assert options.names["models", 1, "url"] == "--model-url"


def test_what_is_logged(command: Command, caplog: pytest.LogCaptureFixture) -> None:
    """`run` logs its own progress by default, everything with --verbose, nothing with --quiet, and always prints scores."""
    options = [
        "--entry",
        "helmet_recall:task=json_kv,length=8k,num_samples=2",
        "--model",
        "longctx/lexical",
    ]
    logs = {}
    for option in ("", "--quiet", "--verbose"):
        caplog.clear()
        suite = f"x{option}"
        assert command("run", *options, "--suite", suite, *filter(None, [option])) == 0
        assert command.out.startswith("HELMET 8k")
        logs[option] = [record.getMessage().strip() for record in caplog.records]
    assert logs["--quiet"] == []
    assert any("2 requests answered" in line for line in logs[""])
    assert (
        "helmet_recall:task=json_kv,length=8k,num_samples=2,model=longctx_lexical"
        in logs[""]
    )
    assert not any("eval instances" in line or line.endswith("{") for line in logs[""])
    assert any("2/2 eval instances" in line for line in logs["--verbose"])
    assert command("run", "--quiet", "--verbose", *options) == 2
    assert command.err.startswith("helm-longctx: error: run: --quiet and --verbose ")


def test_summarize_as_json(command: Command) -> None:
    """`summarize --json` prints only the leaderboards' scores as JSON, with the reasons why they are not comparable."""
    options = [
        "--entry",
        "helmet_recall:task=json_kv,length=8k,num_samples=2",
        "--model",
        "longctx/lexical",
    ]
    assert command("run", *options, "--suite", "x", "--quiet") == 0
    assert command("summarize", "--suite", "x", "--json") == 0
    (row,) = json.loads(command.out)
    assert (row["leaderboard"], row["scores"]) == ("HELMET", {"Recall 8k": 1.0})
    assert "Recall 8k: 2 of the benchmark's 100 examples (json_kv)" in row["notes"]


def test_models_separated_by_commas(command: Command) -> None:
    """`--model a,b` names two models, as `--tasks` and `--length` name several values; so does the option of `estimate`."""
    models = ["--model", "longctx/lexical,longctx/null"]
    assert (
        command(
            "run",
            "--entry",
            "helmet_recall:task=json_kv,length=8k,num_samples=1",
            *models,
            "--dry-run",
        )
        == 0
    )
    assert command.out.startswith("2 runs:\n")
    assert (
        command(
            "estimate", "helmet_recall:task=json_kv,length=8k,num_samples=1", *models
        )
        == 0
    )
    assert all(name in command.out for name in ("longctx/lexical", "longctx/null"))


def test_a_benchmark_stands_for_its_entries() -> None:
    """`--tasks helmet` names the run entries of HELMET's published tables, and `ruler` stays a run entry."""
    config = load_config(
        None,
        read_options(
            {"tasks": "helmet,ruler", "length": "8k", "model": ["longctx/null"]}
        ),
    )
    entries = [
        entry.text.partition(":")[0]
        for entry in plan_entries(config, expand_models(config), DataRoot.find())
    ]
    categories = ("recall", "rag", "icl", "cite", "rerank", "longqa", "summ")
    assert entries == [*(f"helmet_{name}" for name in categories), "ruler"]


def test_a_failure_is_printed_once(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The reason of a failed run is printed once, whether the run is the only one or one of several."""
    path = tmp_path / "data/helmet/json_kv/test_k105_dep6.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"context": 1}\n')
    monkeypatch.setenv(MIRROR, str(tmp_path / "data"))
    reason = "test_k105_dep6.jsonl:1: column 'context' must be str, found int"
    options = [
        "--entry",
        "helmet_recall:task=json_kv,length=8k,num_samples=2",
        "--suite",
        "x",
    ]
    for models, told in (
        ("longctx/lexical", "1 of 1 runs were not made"),
        ("longctx/lexical,longctx/null", "2 of 2"),
    ):
        caplog.clear()
        assert command("run", *options, "--model", models) == 2
        assert command.err.splitlines()[-1].startswith(f"helm-longctx: error: {told}")
        assert (command.err + caplog.text).count(reason) == len(models.split(","))


def test_generation_is_told_once(
    command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    """One line says that examples of tasks without official files are generated, whatever the number of tasks."""
    _warn_of_generation.cache_clear()
    options = [
        "--entry",
        "helmet_recall:length=8k,num_samples=1",
        "--model",
        "longctx/lexical",
        "--suite",
        "x",
    ]
    assert command("run", *options) == 0
    (line,) = [
        record.getMessage()
        for record in caplog.records
        if "are generated" in record.getMessage()
    ]
    assert line.endswith(
        "lacks official files of recall tasks; their examples are generated"
    )


def test_helms_chatter_is_hidden(
    command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    """`run`, `batch` and `estimate` do not print where HELM looks for keys, or that a key is not in its file."""
    entry = "helmet_recall:task=json_kv,length=8k,num_samples=1"
    for arguments in (
        ("run", "--entry", entry, "--model", "longctx/lexical", "--suite", "x"),
        ("run", "--entry", entry, "--model", "longctx/lexical", "--batch", "send"),
        ("batch", "status", "--suite", "x"),
        ("estimate", entry, "--model", "longctx/lexical"),
    ):
        command(*arguments)
        assert "Looking in path" not in command.out + command.err
    with hide_chatter():
        print("Looking in path: prod_env")
        provide_api_key({}, "openai")
    assert "openaiApiKey" not in caplog.text
    provide_api_key({}, "openai")
    assert "openaiApiKey" in caplog.text
