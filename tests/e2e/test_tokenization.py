"""Tests that only the adapter tokenizes a prompt in a real run, once, and what happens to a prompt that is too long."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from transformers import PreTrainedTokenizerFast

from helm_longctx.helm.truncation import CHAT_HEADER
from helm_longctx.models.baselines import lexical
from tests.support.programs import run
from tests.support.servers.llm import serve
from tests.tasks.tokenizers import tokenizer_of

CLIENTS = {
    "raw": (
        "helm.clients.openai_client.OpenAILegacyCompletionsClient",
        {"api_key": "none"},
    ),
    "chat": ("helm.clients.vllm_client.VLLMChatClient", {}),
}
ENTRY = "helmet_recall:task=ruler_niah_mk_2,length=4k,num_samples=2"
TOKENIZER = tokenizer_of("by_spaces")
REFUSE = ",truncation=error"


class Made(NamedTuple):
    """The output of two runs, as completion and as chat."""

    folder: Path
    code: int
    output: str
    prompts: list[str]


@pytest.fixture(scope="module", params=[(100_000, ""), (1500, ""), (1500, REFUSE)])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Made:
    """Make runs whose prompts fit, do not fit, or must not be cut."""
    (window, argument), folder = request.param, tmp_path_factory.mktemp("tokens")
    PreTrainedTokenizerFast(tokenizer_object=TOKENIZER).save_pretrained(
        folder / "tokenizer"
    )
    with serve(lexical.answer) as server:
        deploy(folder / "models", folder / "tokenizer", window, server.openai)
        entries = [f"{ENTRY}{argument},model=test/{kind}" for kind in CLIENTS]
        arguments = ["--suite", "s", "-m", 9, "--local-path", "models"]
        done = run("helm-run", "--run-entries", *entries, *arguments, folder=folder)
    return Made(
        folder,
        done.returncode,
        done.stdout + done.stderr,
        [call.prompt for call in server.calls],
    )


def deploy(models: Path, tokenizer: Path, window: int, address: str) -> None:
    hugging_face = "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer"
    spec = {
        "class_name": hugging_face,
        "args": {"pretrained_model_name_or_path": str(tokenizer)},
    }
    texts = ("display_name", "description", "access", "creator_organization_name")
    files = {
        "tokenizer_configs": [
            {
                "name": "test/small",
                "tokenizer_spec": spec,
                "end_of_text_token": "</s>",
                "prefix_token": "",
            }
        ],
        "model_metadata": [
            {
                "name": f"test/{kind}",
                **dict.fromkeys(texts, "test"),
                "tags": ["TEXT_MODEL_TAG"],
            }
            for kind in CLIENTS
        ],
        "model_deployments": [
            {
                "name": f"test/{kind}",
                "tokenizer_name": "test/small",
                "max_sequence_length": window,
                "client_spec": {
                    "class_name": client,
                    "args": {"base_url": address, **more},
                },
            }
            for kind, (client, more) in CLIENTS.items()
        ],
    }
    models.mkdir()
    for name, rows in files.items():
        key = "models" if name == "model_metadata" else name
        (models / f"{name}.yaml").write_text(yaml.safe_dump({key: rows}))


def tokens(prompt: str) -> int:
    return len(TOKENIZER.encode(prompt).ids)


def states(made: Made) -> list[dict]:
    paths = (made.folder / "benchmark_output/runs/s").glob("*/scenario_state.json")
    return [
        state
        for path in paths
        for state in json.loads(path.read_text())["request_states"]
    ]


def cached(made: Made) -> list[str]:
    """Return the keys of every cache of the run: requests and tokenizations."""
    keys = []
    for path in (made.folder / "models/cache").glob("*.sqlite"):
        database = sqlite3.connect(path)
        for (table,) in database.execute(
            "SELECT name FROM sqlite_master WHERE type='table'"
        ).fetchall():
            keys += [
                str(key) for (key,) in database.execute(f"SELECT key FROM {table}")
            ]
        database.close()
    return keys


@pytest.mark.parametrize("made", [(100_000, "")], indirect=True)
def test_prompts_that_fit(made: Made) -> None:
    """Prompts that fit are sent unchanged and counted, and HELM's caches have them in requests and in no tokenization."""
    assert made.code == 0, made.output[-3000:]
    assert len(made.prompts) == 4
    counts = [
        state["instance"]["extra_data"]["prompt_tokens"] for state in states(made)
    ]
    # The official code counts the header of a chat, too.
    headers = {"chat": CHAT_HEADER, "completion": ""}
    sent = [
        headers[state["instance"]["extra_data"]["style"]] + state["request"]["prompt"]
        for state in states(made)
    ]
    assert sorted(counts) == sorted(map(tokens, sent))
    long = [json.loads(key) for key in cached(made) if len(key) > 5000]
    assert sorted(
        key.get("prompt") or key["messages"][0]["content"] for key in long
    ) == sorted(made.prompts)
    assert not any("prompt_tokens" in key for key in long)


@pytest.mark.parametrize("made", [(1500, "")], indirect=True)
def test_prompts_that_are_cut(made: Made) -> None:
    """Prompts that are cut fit the window, and keep the whole question."""
    assert made.code == 0, made.output[-3000:]
    assert len(made.prompts) == 4
    assert all(1340 < tokens(prompt) <= 1450 for prompt in made.prompts)
    assert all("special magic number" in prompt[-200:] for prompt in made.prompts)
    assert all(state["prompt_truncated"] for state in states(made))


@pytest.mark.parametrize("made", [(1500, REFUSE)], indirect=True)
def test_prompts_that_are_refused(made: Made) -> None:
    """With `truncation=error` nothing is sent, and the log says how many prompts are too long without showing them."""
    assert made.code != 0
    assert made.prompts == []
    assert (
        made.output.count("truncation=error: 2 instances of ruler_niah_mk_2 are up to")
        >= 2
    )
    assert "special magic" not in made.output
