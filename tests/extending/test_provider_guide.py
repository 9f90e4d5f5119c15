"""docs/adding-a-provider.md as an author follows it: one file, which every command that deals with providers reads."""

from __future__ import annotations

import configparser
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.extending.guide import Guide, run_with_modules
from tests.support.servers.acme import KEY, OTHER_KEY, AcmeServer, serve_acme

GUIDE = Guide("adding-a-provider.md")
MOST_LINES = 80
"""Lines of the provider's only file."""

ENTRY = "helmet_recall:length=4k,num_samples=2,model=acme/large"
OTHER_ENTRY = "helmet_recall:task=json_kv,length=8k,num_samples=2,model=acme/large"
"""An entry whose requests are not in the request cache."""


class Followed(NamedTuple):
    """The guide after it was followed in a folder, and what its commands printed."""

    folder: Path
    server: AcmeServer
    output: str

    def run(
        self, command: str, *arguments: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with the package that has the provider."""
        return execute([command, *arguments], self.folder, **environment)


def execute(
    command: list[str], folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, in which Python finds the provider's package."""
    return run_with_modules(
        [folder / "installed"],
        *command,
        folder=folder,
        **{"ACME_KEY": KEY, **environment},
    )


def install(folder: Path) -> None:
    """Write the guide's files, as pip would install the package."""
    GUIDE.write(folder)
    config = configparser.ConfigParser()
    config.read(folder / "setup.cfg")
    info = folder / "installed/acme-1.dist-info"
    info.mkdir(parents=True)
    (folder / "acme.py").rename(folder / "installed/acme.py")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    points = config["options.entry_points"]["helm_longctx.providers"]
    (info / "entry_points.txt").write_text(
        f"[helm_longctx.providers]\n{points.strip()}\n"
    )


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    """The guide, followed against a server with the provider's protocol."""
    folder = tmp_path_factory.mktemp("guide")
    install(folder)
    with serve_acme() as server:
        output = GUIDE.run(
            folder, folder / "installed", ACME_URL=server.address, ACME_KEY=KEY
        )
        yield Followed(folder, server, output)


def test_commands_print_what_the_guide_shows(followed: Followed) -> None:
    """The endpoint is probed through the file's protocol, and `doctor` finds the model in the list of its server."""
    assert all(line in followed.output for line in GUIDE.output)
    deployments = (followed.folder / "prod_env/model_deployments.yaml").read_text()
    assert "class_name: helm_longctx.models.apis.AcmeClient" in deployments


def test_requests_are_in_the_providers_protocol(followed: Followed) -> None:
    """Every request has the key, and a prompt that shares its beginning has the mark of the record."""
    assert followed.server.keys == {KEY}
    assert {"model", "messages", "limit", "temperature"} == set(
        followed.server.bodies[0]
    )
    code = """
import json
from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import Request
from helm_longctx.models.apis import AcmeClient
from helm_longctx.models.apis.caching import with_beginning
request = with_beginning(Request("acme/large", "acme/large", prompt="a long text and a question"), 11)
print(json.dumps(AcmeClient(BlackHoleCacheConfig(), api_key="x").body(request)["messages"]))
"""
    done = followed.run(sys.executable, "-c", code)
    parts = [
        {"type": "text", "text": "a long", "keep": True},
        {"type": "text", "text": " text and a question"},
    ]
    assert json.loads(done.stdout) == [{"role": "user", "content": parts}]


def test_answers_are_counted_and_priced(followed: Followed) -> None:
    """The run has the provider's tokens and the user's prices."""
    (path,) = (followed.folder / "benchmark_output/runs/try").glob(
        "helmet_recall*/stats.json"
    )
    stats = {
        row["name"]["name"]: row.get("mean") for row in json.loads(path.read_text())
    }
    assert stats["request_failed"] == 0
    assert stats["billed_prompt_tokens"] > 1000
    assert stats["cost"] > 0


def test_batches_are_refused_in_one_line(followed: Followed) -> None:
    """The record names no batch service."""
    done = followed.run(
        "helm-longctx", "run", "--entry", ENTRY, "--suite", "batches", "--batch", "wait"
    )
    assert done.returncode == 2
    assert (
        "acme/large has no batches; use a deployment with AnthropicClient or OpenAIClient"
        in done.stderr
    )


def test_a_model_that_is_gone_is_found(followed: Followed) -> None:
    """`models add` names the models of the server's list."""
    arguments = (
        "--url",
        followed.server.address,
        "--api",
        "acme",
        "--api-key-env",
        "ACME_KEY",
    )
    done = followed.run(
        "helm-longctx",
        "models",
        "add",
        "acme/huge",
        "--local-path",
        "other",
        *arguments,
    )
    assert done.returncode == 2
    assert "has 2 models; name one of them" in done.stderr
    assert "models; name one of them, such as large, with --model" in done.stderr


def test_keys_are_redacted(followed: Followed) -> None:
    """A key that only its format tells stands in no error and in no file."""
    followed.server.breaks = True
    try:
        done = followed.run(
            "helm-longctx", "run", "--suite", "broken", "--entry", OTHER_ENTRY
        )
    finally:
        followed.server.breaks = False
    assert "The shard with [redacted] is broken." in done.stdout + done.stderr
    assert OTHER_KEY not in done.stdout + done.stderr
    files = [path for path in followed.folder.rglob("*") if path.is_file()]
    assert [
        path
        for path in files
        if OTHER_KEY.encode() in path.read_bytes() or KEY.encode() in path.read_bytes()
    ] == []


def test_the_providers_own_errors_are_read(followed: Followed) -> None:
    """A quota that is used up is named as such, although the status is that of a bad request."""
    followed.server.is_used_up = True
    try:
        done = followed.run(
            "helm-longctx", "run", "--suite", "used-up", "--entry", OTHER_ENTRY
        )
    finally:
        followed.server.is_used_up = False
    assert "quota: the quota of the account is used up" in done.stdout + done.stderr
    assert "bad_request" not in done.stdout + done.stderr


def test_the_key_of_another_provider_is_never_sent(followed: Followed) -> None:
    """The package `openai` would read OpenAI's key from its variable; the record's variable is read instead."""
    code = """
import sys
from helm.common.cache import BlackHoleCacheConfig
from helm_longctx.models.apis import AcmeClient
from helm_longctx.errors import InputError
try:
    library = AcmeClient(BlackHoleCacheConfig()).client
    print(library.api_key, library.base_url)
except InputError as error:
    print(error)
"""
    done = followed.run(
        sys.executable,
        "-c",
        code,
        OPENAI_API_KEY="sk-of-openai",
        OPENAI_BASE_URL="http://x.example",
    )
    assert done.stdout.startswith(
        "AcmeClient: the environment variable ACME_API_KEY is not set"
    )
    done = followed.run(
        sys.executable, "-c", code, OPENAI_API_KEY="sk-of-openai", ACME_API_KEY=KEY
    )
    assert done.stdout.split() == [KEY, "https://api.acme.example"]


def test_a_file_in_our_folder_needs_no_entry_point(tmp_path: Path) -> None:
    """The same file, in a copy of this package, is found by itself."""
    code = """
import helm_longctx.models.apis.providers as folder
folder.__path__.append("extra")
from helm_longctx.models.apis.provider import providers
print(*providers())
"""
    (tmp_path / "extra").mkdir()
    GUIDE.write(tmp_path)
    (tmp_path / "acme.py").rename(tmp_path / "extra/acme.py")
    done = execute([sys.executable, "-c", code], tmp_path)
    assert done.stdout.strip() == "acme anthropic openai"


def test_providers_that_cannot_be_used_are_left_out(tmp_path: Path) -> None:
    """One that fails to load and one with a name that is taken leave a warning, and the others work."""
    install(tmp_path)
    (tmp_path / "installed/broken.py").write_text("raise RuntimeError('no licence')\n")
    (tmp_path / "installed/again.py").write_text(
        "from helm_longctx.models.apis.providers.openai import PROVIDER\n"
    )
    points = "[helm_longctx.providers]\nacme = acme:PROVIDER\nagain = again:PROVIDER\nbroken = broken:PROVIDER\n"
    (tmp_path / "installed/acme-1.dist-info/entry_points.txt").write_text(points)
    done = execute(
        [
            sys.executable,
            "-c",
            "from helm_longctx.models.apis.provider import *; print(*providers())",
        ],
        tmp_path,
    )
    assert done.stdout.split() == ["anthropic", "openai", "acme"]
    assert (
        "provider broken:PROVIDER is left out: RuntimeError: no licence" in done.stderr
    )
    assert (
        "provider again:PROVIDER is left out: another one has its name" in done.stderr
    )


def test_a_provider_is_short() -> None:
    """The guide has one file, and it is read in a minute."""
    (source,) = (text for path, text in GUIDE.files.items() if path.endswith(".py"))
    assert source.count("\n") <= MOST_LINES
