"""Tests of runs with real clients over HTTP, and with bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helm_longctx.data.root import DataRoot
from helm_longctx.models.baselines import lexical
from tests.e2e.commands import RUNNER, helm_run, write_ready
from tests.support.programs import run
from tests.support.servers.llm import serve

JSON_KV = "helmet_recall:task=json_kv,length=4k,num_samples=3"


def stat(folder: Path, run_name: str, name: str) -> float | None:
    rows = json.loads(
        (folder / f"benchmark_output/runs/s/{run_name}/stats.json").read_text()
    )
    return next((row["mean"] for row in rows if row["name"]["name"] == name), None)


def test_vllm_chat_and_completions(tmp_path: Path) -> None:
    """One deployment sends what HELMET sends: the raw prompt with its prefix, or the user turn as one message."""
    with serve(lexical.answer) as server:
        models = write_ready(tmp_path / "models", server.openai)
        entries = [
            f"{JSON_KV}{style},model=vllm/llama-3.1-8b-instruct"
            for style in ("", ",style=chat")
        ]
        made = run(
            "helm-run",
            "--run-entries",
            *entries,
            "--suite",
            "s",
            "-m",
            9,
            "--local-path",
            models,
            folder=tmp_path,
        )
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    raw = [call.body for call in server.calls if call.path == "/v1/completions"]
    chat = [call.body for call in server.calls if call.path == "/v1/chat/completions"]
    assert len(raw) == len(chat) == 3
    for body in raw:
        assert body["prompt"].startswith("JSON data:")
        assert body["prompt"].endswith("\nCorresponding value:")
    for body in chat:
        (message,) = body["messages"]
        assert message["role"] == "user"
        assert not message["content"].endswith("Corresponding value:")
    for body in server.bodies:
        assert body["model"] == "meta-llama/Llama-3.1-8B-Instruct"
        assert body["max_tokens"] == 100
        assert body["temperature"] == 0
    for style in ("", ",style=chat"):
        name = f"{JSON_KV}{style},model=vllm_llama-3.1-8b-instruct"
        assert stat(tmp_path, name, "longctx_score") == 1.0


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("helmet_recall:length=9,model=longctx/null", "length='9' is invalid"),
        (
            "helmet_recall:length=8k,model=no/model",
            "model='no/model' is not a model; give one of HELM's models, of --local-path or of `helm-longctx models`",
        ),
        ("helmet_recall:length=8k,style=x,model=longctx/null", "style='x' is invalid"),
        (
            "helmet_icl:length=8k,task=nlu,model=longctx/null",
            "lacks hub/xingkunliuxtracta__nlu_evaluation_data/train.jsonl",
        ),
    ],
)
def test_bad_entries_end_in_one_line(entry: str, message: str, tmp_path: Path) -> None:
    """A bad entry ends `helm-run` with status 1 and one line, before any run."""
    made = helm_run(tmp_path, entry, HELM_LONGCTX_DATA=str(tmp_path))
    assert made.returncode == 1
    assert "Traceback" not in made.stdout + made.stderr
    assert message in made.stderr.splitlines()[-1]
    assert not list(tmp_path.glob("benchmark_output/runs/*/*/scenario_state.json"))


def test_malformed_data_ends_in_one_line_and_other_runs_are_made(
    tmp_path: Path, mirror: DataRoot
) -> None:
    """Our runner reports a run on malformed data in one line and makes the next run."""
    data = tmp_path / "data"
    (data / "helmet/json_kv").mkdir(parents=True)
    (data / "helmet/json_kv/test_k105_dep6.jsonl").write_text('{"context": 1}\n')
    entries = [
        f"helmet_recall:task={task},length=8k,num_samples=2,model=longctx/lexical"
        for task in ("json_kv", "ruler_niah_mv")
    ]
    made = run(
        "helm-run",
        "--run-entries",
        *entries,
        "--suite",
        "s",
        "-m",
        9,
        *RUNNER,
        folder=tmp_path,
        HELM_LONGCTX_DATA=str(data),
    )
    assert made.returncode == 1
    assert "Traceback" not in made.stdout + made.stderr
    assert made.stderr.splitlines()[-1].endswith(
        f"1 of 2 runs were not made: {entries[0].replace('longctx/', 'longctx_')}: their errors are in the log"
    )
    told = made.stdout + made.stderr
    assert (
        told.count("test_k105_dep6.jsonl:1: column 'context' must be str, found int")
        == 1
    )
    assert (
        stat(tmp_path, entries[1].replace("longctx/", "longctx_"), "longctx_score")
        == 1.0
    )


def test_exit_on_error(tmp_path: Path) -> None:
    """`--exit-on-error` ends the command at the first run that fails."""
    (tmp_path / "helmet/json_kv").mkdir(parents=True)
    (tmp_path / "helmet/json_kv/test_k105_dep6.jsonl").write_text("x")
    arguments = (
        "--run-entries",
        "helmet_recall:length=8k,model=longctx/null",
        "--suite",
        "s",
        "-m",
        9,
        "--exit-on-error",
        *RUNNER,
    )
    made = run("helm-run", *arguments, folder=tmp_path, HELM_LONGCTX_DATA=str(tmp_path))
    assert made.returncode == 1
    assert "test_k105_dep6.jsonl:1: not a JSON object" in made.stderr.splitlines()[-1]


def test_doctor(tmp_path: Path) -> None:
    """The doctor finds a sound installation in order, and names credentials without showing them."""
    (tmp_path / "prod_env").mkdir()
    (tmp_path / "prod_env/credentials.conf").write_text('openaiApiKey: "sk-secret"\n')
    done = run("helm-longctx", "doctor", folder=tmp_path, OPENAI_API_KEY="sk-secret")
    assert done.returncode == 0, done.stdout
    for text in (
        "plugin: HELM has all ",
        "the adapter of helm-longctx is registered with HELM",
        "scored 1.0",
        "openaiApiKey",
        "OPENAI_API_KEY",
    ):
        assert text in done.stdout
    assert "sk-secret" not in done.stdout + done.stderr


def test_doctor_finds_what_is_broken(tmp_path: Path) -> None:
    """The doctor reports a wrong mirror, unreadable credentials and unreadable YAML with status 1."""
    (tmp_path / "prod_env").mkdir()
    (tmp_path / "prod_env/model_deployments.yaml").write_text(
        "model_deployments:\n  - name: [\n"
    )
    (tmp_path / "prod_env/credentials.conf").write_text('key: "sk-secret\n{{{')
    done = run(
        "helm-longctx",
        "doctor",
        "--no-run",
        folder=tmp_path,
        HELM_LONGCTX_DATA="/no/such/folder",
    )
    assert done.returncode == 1
    assert (
        "BROKEN  data: HELM_LONGCTX_DATA='/no/such/folder' is not a folder"
        in done.stdout
    )
    line = "BROKEN  configuration: in prod_env: prod_env/model_deployments.yaml:3: the file is not YAML: "
    assert line in done.stdout
    assert (
        "BROKEN  credentials: prod_env/credentials.conf is not a HOCON file"
        in done.stdout
    )
    assert "sk-secret" not in done.stdout + done.stderr
