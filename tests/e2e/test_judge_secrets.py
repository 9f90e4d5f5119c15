"""Tests that a judged run whose judges fail and quote their keys writes none of the secrets in use."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from urllib.parse import quote

import yaml

from helm_longctx.data.root import DataRoot
from helm_longctx.models.apis.availability import PROMPT
from tests.judging.deployments import write_judges
from tests.judging.grades import grade
from tests.support.programs import run
from tests.support.servers.faults import Fault, share
from tests.support.servers.llm import serve

SECRETS = {
    "tests/arguments": "in the deployment/s+arguments=9",
    "file/judge": "In-Helms-Credentials-File-77",
    "tests/anthropic": "In_The_Environment_31337_abcd",
}
ENTRY = "helmet_longqa:task=narrativeqa,length=8k,num_samples=4"


def quotes_keys(prompt: str, before: int) -> Fault | None:
    """Return the fault of a call: nearly every call fails, mostly with the key in its message."""
    if prompt == PROMPT:
        return None  # else the run would end before the judge gets an answer to grade
    return share(
        0.8,
        [Fault.UNAUTHORIZED, Fault.UNAUTHORIZED, Fault.SERVER_ERROR, Fault.MALFORMED],
    )(prompt, before)


def prepare(folder: Path, address: str) -> Path:
    """Write one key into a deployment's arguments and one into HELM's credentials file.

    The third is in the environment.
    """
    judges = {
        "tests/arguments": address,
        "file/judge": address,
        "tests/anthropic": None,
    }
    local = write_judges(folder / "models", judges, key=SECRETS["tests/arguments"])
    path = local / "model_deployments.yaml"
    rows = yaml.safe_load(path.read_text())
    del rows["model_deployments"][1]["client_spec"]["args"]["api_key"]
    path.write_text(yaml.safe_dump(rows))
    (local / "credentials.conf").write_text(
        json.dumps({"fileApiKey": SECRETS["file/judge"]})
    )
    return local


def written(folder: Path, ours: set[Path]) -> dict[str, bytes]:
    """Return the unpacked content of every file, except the files that a user wrote."""
    files = [path for path in folder.rglob("*") if path.is_file() and path not in ours]
    return {
        str(p): gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes()
        for p in files
    }


def forms(secret: str) -> set[bytes]:
    """Return the forms of a secret: as it is, in an address, and in a header of basic authentication."""
    return {
        secret.encode(),
        quote(secret, safe="").encode(),
        base64.b64encode(secret.encode()).rstrip(b"="),
    }


def test_a_judged_run_that_fails(tmp_path: Path, mirror: DataRoot) -> None:
    """Logs, results, annotations, the page's files and the cache contain no key."""
    with serve(grade, quotes_keys) as server:
        local = prepare(tmp_path, server.openai)
        ours = set(local.iterdir())
        environment = {
            "HELM_LONGCTX_DATA": str(mirror.path), "HELM_LONGCTX_JUDGE_WAIT": "0.01", "ANTHROPIC_BASE_URL": server.address,
            "ANTHROPIC_API_KEY": SECRETS["tests/anthropic"], "HELM_LOG_LEVEL": "DEBUG",
        }  # fmt: skip
        entry = f"{ENTRY},judge={'+'.join(SECRETS)},model=longctx/lexical"
        made = [
            run("helm-run", "--run-entries", entry, "--suite", "s", "-m", 9, "--local-path", local, folder=tmp_path, **environment),
            run("helm-longctx", "summarize", "--suite", "s", folder=tmp_path, **environment),
            run("helm-longctx", "rejudge", "--suite", "s", "--local-path", local, folder=tmp_path, **environment),
        ]  # fmt: skip
    assert [done.returncode for done in made] == [0, 0, 0], [
        done.stderr[-2000:] for done in made
    ]
    assert {call.key.removeprefix("Bearer ") for call in server.calls} == set(
        SECRETS.values()
    )
    assert server.failed()[Fault.UNAUTHORIZED] > 5
    files = written(tmp_path, ours)
    files |= {
        f"output {number}": (done.stdout + done.stderr).encode()
        for number, done in enumerate(made)
    }
    everything = b"".join(files.values())
    assert b"It went wrong" in everything
    assert b"401" in everything
    for secret in SECRETS.values():
        for form in forms(secret):
            assert [name for name, content in files.items() if form in content] == []
