"""Tests of `models add` and of the doctor's questions to providers, in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.models.endpoints.scripted import CHAT, MESSAGE, TEXT, Route, scripted
from tests.support.commands import Command
from tests.support.servers.closed import closed_address

pytest.importorskip("torch")
from tests.models.small_models import save_tokenizer

KEY = "sk-hidden-0123456789abcdef"
FILES = ("model_deployments.yaml", "model_metadata.yaml", "tokenizer_configs.yaml")


def routes(folder: Path, context: int = 32768) -> dict[str, Route]:
    """Return the routes of a server like vLLM with one model, whose weights are in a folder."""
    row = {"id": "tiny", "max_model_len": context, "root": str(folder)}
    chats = {
        "/v1/chat/completions": CHAT,
        "/v1/completions": TEXT,
        "/v1/messages": MESSAGE,
    }
    return {
        **chats,
        "/v1/models": (
            200,
            {"data": [row, {"id": "tiny-2", "shutdown_date": "2027-01-14"}]},
        ),
    }


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
) -> Command:
    """Return the command, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return Command(monkeypatch, capsysbinary)


def read(name: str) -> dict:
    """Return the only entry of a file in the local path."""
    ((row,),) = yaml.safe_load((Path("prod_env") / name).read_text()).values()
    return row


def test_add(command: Command, tmp_path: Path) -> None:
    """`models add` writes the files that HELM needs without the key, and reports what does not fit."""
    save_tokenizer(tmp_path / "tokenizer")
    with scripted(routes(tmp_path / "tokenizer"), key=KEY) as server:
        options = [
            "--url",
            server.address,
            "--api-key-env",
            "MY_KEY",
            "--header",
            "X-Team: nlp",
        ]
        assert command("models", "add", "my/tiny", *options) == 0
    assert "tiny answers chat and completions" in command.out
    assert (
        "a context of 32768 tokens: prompts of 64k 128k 256k 512k 1m are cut to it"
        in command.out
    )
    assert (
        "helm-longctx run --suite first --model my/tiny --tasks helmet_recall --length 8k"
        in command.out
    )
    deployment, model, tokenizer = map(read, FILES)
    arguments = {"base_url": f"{server.address}/v1", "model": "tiny", "form": "both"}
    arguments |= {"api_key_env": "MY_KEY", "headers": {"X-Team": "nlp"}}
    assert deployment == {
        "name": "my/tiny",
        "model_name": "my/tiny",
        "tokenizer_name": "my/tiny",
        "max_sequence_length": 32768,
        "client_spec": {
            "class_name": "helm_longctx.models.apis.OpenAIClient",
            "args": arguments,
        },
    }
    assert "INSTRUCTION_FOLLOWING_MODEL_TAG" in model["tags"]
    assert tokenizer["tokenizer_spec"]["args"] == {
        "pretrained_model_name_or_path": str(tmp_path / "tokenizer"),
        "trust_remote_code": False,
    }
    assert KEY not in command.out + command.err + "".join(
        (Path("prod_env") / name).read_text() for name in FILES
    )


def test_add_without_a_tokenizer(command: Command, tmp_path: Path) -> None:
    """`models add` reports a base model that answers only completions, and accepts the name of a tokenizer of HELM."""
    only = {
        "/v1/completions": TEXT,
        "/v1/models": (200, {"data": [{"id": "org/base"}]}),
    }
    with scripted(only) as server:
        options = ["models", "add", "my/base", "--url", server.address]
        assert command(*options) == 0
        for said in (
            "tokenizer='org/base' cannot be loaded",
            "the server does not say its length",
            "but the official code sends chats",
        ):
            assert said in command.out
        assert set(read(FILES[0])) == {"name", "model_name", "client_spec"}
        assert "INSTRUCTION_FOLLOWING_MODEL_TAG" not in read(FILES[1])["tags"]
        assert command(*options) == 2
        assert "already has 'my/base'" in command.err
        assert command(*options, "--replace", "--tokenizer", "openai/o200k_base") == 0
        assert read(FILES[0])["window_service_spec"]["class_name"].endswith(
            ".NoTokenizerWindowService"
        )
        assert (
            command(
                *options,
                "--replace",
                "--context",
                "8k",
                "--tokenizer",
                "openai/o200k_base",
            )
            == 0
        )
    assert {
        "tokenizer_name": "openai/o200k_base",
        "max_sequence_length": 8192,
    }.items() <= read(FILES[0]).items()
    assert "window_service_spec" not in read(FILES[0])
    assert "prompts of 16k" in command.out
    assert not (tmp_path / "prod_env" / FILES[2]).exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ["--type", "completion"],
            "type='completion' is invalid; did you mean completions? Choose from chat, completions, both",
        ),
        (["--api", "google"], "api='google' is invalid; choose from anthropic, openai"),
        (["--api-key-env", "ABSENT"], "the environment variable ABSENT is not set"),
        (["--model", "tini"], "does not have this model"),
        (["--context", "many"], "--context: length='many' is invalid"),
        (["--tokenizer", "no/tokenizer"], "tokenizer='no/tokenizer' cannot be loaded"),
        (["--header", "X-Team"], "header='X-Team' is invalid; give 'NAME: VALUE'"),
        (
            ["--header", f"X-Api-Key: {KEY}"],
            "header='X-Api-Key' is invalid; give 'X-Api-Key: $VAR'",
        ),
    ],
)
def test_bad_input(
    command: Command, tmp_path: Path, options: list[str], told: str
) -> None:
    """A mistake ends in one line with status 2 and without the key, and writes nothing."""
    gone = (404, {"error": {"message": "The model `tini` does not exist."}})
    closed = {**routes(tmp_path), "/v1/chat/completions": gone, "/v1/completions": gone}
    with scripted(closed if "tini" in options else routes(tmp_path)) as server:
        assert (
            command("models", "add", "my/tiny", "--url", server.address, *options) == 2
        )
    assert told in command.err
    assert command.err.count("\n") == 1
    assert KEY not in command.out + command.err
    assert not Path("prod_env").exists()


def test_no_server(command: Command) -> None:
    """A server that cannot be reached is named; an invalid model name is refused before anything is sent."""
    with closed_address() as address:
        assert command("models", "add", "my/tiny", "--url", address) == 2
        assert f"{address}/v1 cannot be reached" in command.err
        assert command.err.count("\n") == 1
        for name in ("tiny", "my/ti:ny", "my/tiny,x", "a/b/c", "my/tïny "):
            assert command("models", "add", name, "--url", address) == 2
            assert f"NAME={name!r} is invalid" in command.err
    assert not Path("prod_env").exists()


@pytest.mark.parametrize(
    ("version", "client", "is_noted"),
    [
        ("2.12.0", "helm.clients.anthropic_client.AnthropicMessagesClient", True),
        ("0.125.0", "helm.clients.anthropic_client.AnthropicMessagesClient", False),
        ("2.12.0", "helm_longctx.models.apis.AnthropicClient", False),
    ],
)
def test_doctor_notes_helms_client_for_anthropic(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    client: str,
    is_noted: bool,
) -> None:
    """A deployment with HELM's client for Anthropic gets a note if the installed package is too new for that client."""
    installed = tmp_path / f"anthropic-{version}.dist-info/METADATA"
    installed.parent.mkdir()
    installed.write_text(
        f"Metadata-Version: 2.1\nName: anthropic\nVersion: {version}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    Path("prod_env").mkdir()
    Path("prod_env/model_deployments.yaml").write_text(
        "model_deployments:\n- name: doctor/claude\n  model_name: anthropic/claude-2.1\n  tokenizer_name: anthropic/claude\n"
        f"  max_sequence_length: 1000\n  client_spec: {{class_name: {client}}}\n"
    )
    assert command("doctor", "--no-run", "--no-network") == 0
    told = [line for line in command.out.splitlines() if "doctor/claude" in line]
    assert [
        line.startswith(
            "note    configuration: doctor/claude: HELM's own client cannot"
        )
        for line in told
    ] == ([True] * is_noted)


def test_doctor_asks_for_models(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor reports a model that the provider does not have as broken, and one that cannot be checked as a note."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with scripted(routes(tmp_path), key=KEY) as server, closed_address() as closed:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{closed}/v1")
        options = ["--url", server.address, "--api-key-env", "MY_KEY"]
        for name in ("my/tiny", "my/tiny-2", "my/gone"):
            assert (
                command(
                    "models",
                    "add",
                    name,
                    "--model",
                    "tiny-2" if "2" in name else "tiny",
                    *options,
                )
                == 0
            )
        path = Path("prod_env/model_deployments.yaml")
        text = path.read_text().replace("model: tiny\n", "model: tiny-0\n")
        path.write_text(text.replace("model: tiny-0\n", "model: tiny\n", 1))
        assert command("doctor", "--no-run") == 1
        for line in (
            "ok      models: my/tiny exists\n",
            "ok      models: my/tiny-2 exists until 2027-01-14\n",
            f"BROKEN  models: my/gone: {server.address}/v1/ does not have the model tiny-0; it has tiny",
            f"was not checked: {closed}/v1/: [Errno 111] Connection refused\n",
        ):
            assert line in command.out
        monkeypatch.delenv("MY_KEY")
        assert command("doctor", "--no-run") == 0
        assert (
            "note    models: my/tiny was not checked: api_key_env='MY_KEY'"
            in command.out
        )
        assert command("doctor", "--no-run", "--no-network") == 0
        assert "models:" not in command.out
    assert KEY not in command.out + command.err
