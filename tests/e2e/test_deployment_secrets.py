"""Tests that keys in the arguments of deployments are in no byte that real commands write."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from helm_longctx.data.root import DataRoot
from helm_longctx.run_settings import JUDGE_WAIT, MIRROR
from tests.judging.deployments import write_judges
from tests.judging.token_server import serve_tokens
from tests.support.programs import leave_out_sleeps, run

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=2,model="
FORMS = ("key", "header", "query", "password")
MODELS = ("good", "bad", "judge")
SECRETS = {
    model: {form: f"{model}-{form}-Zq7Zq7Zq7Zq7" for form in FORMS} for model in MODELS
}


def test_keys_in_deployments(tmp_path: Path, mirror: DataRoot) -> None:
    """No key is written although a server quotes the address and all headers, refuses a key, and serves a judge."""
    with serve_tokens(keys={SECRETS["good"]["key"]}) as server:
        _write_deployments(tmp_path, server.url)
        judged = "helmet_longqa:task=narrativeqa,length=8k,num_samples=2,judge=somewhere/judge,model=longctx/lexical"
        entries = [f"{ENTRY}somewhere/good", f"{ENTRY}somewhere/bad", judged]
        environment = {
            "HELM_LOG_LEVEL": "DEBUG",
            JUDGE_WAIT: "0.001",
            MIRROR: str(mirror.path),
        }
        made = run(
            "helm-run",
            "--run-entries",
            *entries,
            "--suite",
            "s",
            "-m",
            9,
            "--local-path",
            tmp_path,
            "--runner-class-name",
            "helm_longctx.runner.LongContextRunner",
            folder=tmp_path,
            prepare=leave_out_sleeps,
            **environment,
        )
    run("helm-longctx", "summarize", "--suite", "s", folder=tmp_path)
    keys = {SECRETS[model]["key"] for model in ("good", "judge")}
    assert {key for key in server.used if not key.startswith("Basic ")} == keys, (
        made.stderr[-3000:]
    )
    printed = {"out": made.stdout.encode(), "err": made.stderr.encode()}
    assert "Incorrect key: [redacted]" in made.stdout + made.stderr
    written = {
        path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    }
    del written["model_deployments.yaml"]
    assert {"run_spec.json", "scenario_state.json", "runs.json"} <= written.keys()
    for secret in (secret for forms in SECRETS.values() for secret in forms.values()):
        for form in (secret.encode(), base64.b64encode(secret.encode())[:-4]):
            assert [
                name
                for name, content in {**written, **printed}.items()
                if form in content
            ] == []


def _write_deployments(folder: Path, url: str) -> None:
    write_judges(folder, {f"somewhere/{model}": url for model in MODELS})
    path = folder / "model_deployments.yaml"
    content = yaml.safe_load(path.read_text())
    for row in content["model_deployments"]:
        row["client_spec"]["args"] = _arguments(SECRETS[row["name"].split("/")[1]], url)
    path.write_text(yaml.safe_dump(content))


def _arguments(secrets: dict[str, str], url: str) -> dict[str, Any]:
    # A password in an address is sent instead of the key.
    user = f"me:{secrets['password']}@" if secrets is SECRETS["bad"] else ""
    return {
        "base_url": url.replace("://", f"://{user}") + "/v1",
        "api_key": secrets["key"],
        "default_headers": {"X-Gateway-Id": secrets["header"]},
        "default_query": {"subscription-key": secrets["query"]},
        "openai_model_name": "m",
        "max_retries": 0,
    }
