"""Tests that a real `helm-run` whose requests fail writes none of the secrets."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.judging.token_server import serve_tokens
from tests.support.programs import leave_out_sleeps, run

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=2"
MODEL = "model=openai/gpt-4o-2024-05-13,model_deployment=somewhere/model"
SECRETS = {
    name: f"{name}Secret0123456789abc"
    for name in ("file", "other", "environment", "judge", "password")
}


def test_a_run_whose_requests_fail(tmp_path: Path) -> None:
    """A server quotes the key and the headers in its error, and no file or line has them."""
    with serve_tokens() as server:
        _prepare(tmp_path, server.url)
        variables = {
            "SOME_API_KEY": SECRETS["environment"],
            "GPT_JUDGE_CLIENT_SECRET": SECRETS["judge"],
            "HELM_LOG_LEVEL": "DEBUG",
        }
        made = run(
            "helm-run",
            "--run-entries",
            f"{ENTRY},{MODEL}",
            "--suite",
            "s",
            "-m",
            9,
            "--exit-on-error",
            folder=tmp_path,
            prepare=leave_out_sleeps,
            **variables,
        )
    assert server.used[0] == SECRETS["file"]
    assert len(server.used) >= 5
    assert made.returncode != 0
    assert "Incorrect key: [redacted]" in made.stdout
    assert "Incorrect key: [redacted]" in made.stderr
    written = {
        str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    }
    del written[str(tmp_path / "prod_env/credentials.conf")]
    assert any(name.endswith(".sqlite") for name in written)
    for secret in SECRETS.values():
        for form in (secret.encode(), base64.b64encode(secret.encode())[:-4]):
            leaks = [
                name
                for name, content in {
                    **written,
                    "out": made.stdout.encode(),
                    "err": made.stderr.encode(),
                }.items()
                if form in content
            ]
            assert leaks == []


def _prepare(folder: Path, url: str) -> None:
    (folder / "prod_env").mkdir()
    conf = {
        "somewhereApiKey": SECRETS["file"],
        "deployments": {"a/b": SECRETS["other"]},
        "mongoPassword": SECRETS["password"],
    }
    (folder / "prod_env/credentials.conf").write_text(json.dumps(conf))
    client = {
        "class_name": "helm.clients.openai_client.OpenAIClient",
        "args": {"base_url": f"{url}/v1", "max_retries": 0},
    }
    row = {
        "name": "somewhere/model",
        "model_name": "openai/gpt-4o-2024-05-13",
        "client_spec": client,
    }
    (folder / "prod_env/model_deployments.yaml").write_text(
        json.dumps({"model_deployments": [row]})
    )
