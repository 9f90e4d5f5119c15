"""Tests of sampling as arguments of an entry and of a model: what is sent, what is shown, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.errors import InputError
from helm_longctx.helm.run_specs import check_run_entry
from helm_longctx.models.apis.providers.anthropic import AnthropicClient
from helm_longctx.models.apis.providers.openai import OpenAIClient
from helm_longctx.models.baselines import lexical
from helm_longctx.models.sampling import with_sampling
from helm_longctx.runs.files import read_json
from helm_longctx.tasks.entry import WrittenEntry
from helm_longctx.tasks.request_settings import Sampling
from tests.models.apis.making import REQUEST, make
from tests.support.programs import run
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=2"
DRAWN = {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.01}
CARD = {
    "do_sample": True,
    "temperature": 0.7,
    "top_p": 0.8,
    "top_k": 40,
    "min_p": 0.0,
    "eos_token_id": 2,
}


def sampled(server: Server) -> list[dict[str, Any]]:
    """Return how each request of a run is sampled, without the small ones that ask what the server offers."""
    names = ("temperature", "top_p", "top_k", "min_p", "seed")
    bodies = [body for body in server.bodies if body.get("max_tokens", 0) > 50]
    return [{name: body[name] for name in names if name in body} for body in bodies]


def command(folder: Path, *words: str, status: int = 0) -> str:
    """Run `helm-longctx run` and return what it prints."""
    done = run("helm-longctx", "run", *words, folder=folder)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_arguments_of_an_entry(tmp_path: Path) -> None:
    """Each request has the entry's sampling, each repeat a seed of its own, and the result says it everywhere."""
    given = ",".join(f"{name}={value}" for name, value in DRAWN.items())
    with serve(lexical.answer, models={"tiny": Model()}) as server:
        options = (
            "--model-url",
            server.address,
            "--model-name",
            "tiny",
            "--model-type",
            "chat",
        )
        command(tmp_path, "-r", ENTRY, *options)
        assert sampled(server) == [{"temperature": 0.0}] * 2
        server.calls.clear()
        printed = command(
            tmp_path, "-r", f"{ENTRY},{given},sampling_seed=7,repeats=2", *options
        )
        assert sorted(sampled(server), key=str) == [
            {**DRAWN, "seed": seed} for seed in (7, 7, 8, 8)
        ]
    # The run without a sampling stays, because the other one has another name.
    folders = sorted(
        (tmp_path / "benchmark_output/runs/default").glob("helmet_recall*")
    )
    assert [
        ("temperature=0.6" in folder.name, "top_k=20" in folder.name)
        for folder in folders
    ] == [
        (False, False),
        (True, True),
    ]
    shown = "temperature=0.6 top_p=0.95 top_k=20 min_p=0.01 sampling_seed=7"
    assert f"tiny ({shown})" in printed
    summary = run("helm-longctx", "summarize", "--suite", "default", folder=tmp_path)
    assert f"sampled with {shown}" in " ".join(summary.stdout.split())
    specs = [read_json(folder / "run_spec.json") for folder in folders]
    assert [spec["adapter_spec"]["method"] for spec in specs] == ["longctx"] * 2
    without, given = (spec["scenario_spec"]["args"] for spec in specs)
    sampling = {"top_p": 0.95, "top_k": 20, "min_p": 0.01, "sampling_seed": 7}
    assert given == {**without, **sampling, "temperature": 0.6}


def test_sampling_of_a_model(tmp_path: Path) -> None:
    """A model's sampling goes to its own entries, and an entry's arguments replace it."""
    with serve(lexical.answer, models={"tiny": Model()}) as server:
        (tmp_path / "run.yaml").write_text(
            f"entries: ['{ENTRY}', '{ENTRY},temperature=1.0']\nmodels:\n"
            f"  - {{name: my/greedy, url: {server.address}, model: tiny, type: chat}}\n"
            f"  - {{name: my/drawn, url: {server.address}, model: tiny, type: chat,\n"
            "     sampling: {temperature: 0.6, top_p: 0.9}}\n"
        )
        printed = command(tmp_path, "run.yaml", "--dry-run")
        command(tmp_path, "run.yaml")
        assert sorted(sampled(server), key=str) == [
            *[{"temperature": 0.0}] * 2,
            *[{"temperature": 0.6, "top_p": 0.9}] * 2,
            *[{"temperature": 1.0, "top_p": 0.9}] * 2,
            *[{"temperature": 1.0, "top_p": 1}] * 2,
        ]
    assert (
        "temperature=0.6,top_p=0.9,task=json_kv,length=4k,num_samples=2,model=my/drawn"
        in printed
    )


def test_sampling_in_the_models_files(tmp_path: Path) -> None:
    """`sampling: model` takes the values of generation_config.json, which are offered where they are not taken."""
    from tests.models.small_models import save_model

    folder = save_model(tmp_path / "llama")
    (folder / "generation_config.json").write_text(json.dumps(CARD))
    entry = "entries: ['helmet_recall:task=json_kv,length=4k,num_samples=1']\n"
    model = f"models: [{{path: {folder}, name: my/small, context: 4k%s}}]\n"
    (tmp_path / "offer.yaml").write_text(entry + model % "")
    offered = command(tmp_path, "offer.yaml", "--dry-run")
    assert (
        "its generation_config.json says temperature 0.7, top_p 0.8, top_k 40; give sampling: model"
        in offered
    )
    (tmp_path / "take.yaml").write_text(entry + model % ", sampling: model")
    assert "temperature=0.7,top_p=0.8,top_k=40" in command(
        tmp_path, "take.yaml", "--dry-run"
    )
    (folder / "generation_config.json").unlink()
    assert "generation_config.json does not say how to sample" in command(
        tmp_path, "take.yaml", "--dry-run", status=2
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top_p": 0.9}, "top_p=0.9 has no effect at a temperature of 0"),
        (
            {"temperature": 0.5, "top_p": 1.5},
            "top_p=1.5 is invalid; give a number from 0.001 to 1",
        ),
        (
            {"temperature": 0.5, "top_k": 0},
            "top_k=0 is invalid; give a whole number from 1",
        ),
        (
            {"temperature": 0.5, "min_p": "x"},
            "min_p='x' is invalid; give a number from 0 to 1",
        ),
        (
            {"temperature": 0.5, "top_p": 0.5, "metric": "likelihood"},
            "top_p=0.5 and metric=likelihood exclude each",
        ),
    ],
)
def test_refused_arguments(arguments: dict[str, Any], message: str) -> None:
    """Values that are wrong or without effect are refused."""
    with pytest.raises(InputError, match=message):
        check_run_entry(
            WrittenEntry(
                "helmet_recall", {"task": "json_kv", "length": "4k", **arguments}
            )
        )


@pytest.mark.parametrize(
    ("model", "argument", "message"),
    [
        (
            "openai/gpt-4o-2024-05-13",
            "top_k=5",
            "top_k=5 cannot be sent to openai/gpt-4o-2024-05-13: it takes temp",
        ),
        ("longctx/lexical", "min_p=0.1", "min_p=0.1 cannot be sent to longctx/lexical"),
    ],
)
def test_what_a_provider_does_not_take(
    tmp_path: Path, model: str, argument: str, message: str
) -> None:
    """An argument that a provider does not take is refused before anything is sent."""
    printed = command(
        tmp_path,
        "-r",
        f"{ENTRY},temperature=1,{argument},model={model}",
        "--dry-run",
        status=2,
    )
    assert message in printed


def test_protocols() -> None:
    """OpenAI takes a seed and no top_k, other servers with its protocol take all, and Anthropic takes top_k alone."""
    assert OpenAIClient.takes_sampling({}) == ("temperature", "top_p", "sampling_seed")
    assert {"top_k", "min_p"} < set(
        OpenAIClient.takes_sampling({"base_url": "http://localhost:8000/v1"})
    )
    assert AnthropicClient.takes_sampling({}) == ("temperature", "top_p", "top_k")


@pytest.mark.parametrize("kind", ["chat", "anthropic"])
def test_cache_key_and_refusal(kind: str) -> None:
    """The sampling is a part of the cache key. A server that refuses it makes the request fail."""
    asked = with_sampling(REQUEST, Sampling(temperature=0.5, top_p=0.9))
    with serve(lambda prompt: "yes", models={"m": Model(refuses=("top_p",))}) as server:
        client = make(kind, server)
        assert client.cache_key(asked) != client.cache_key(REQUEST)
        result = client.make_request(asked)
        assert not result.success
        assert "top_p" in (result.error or "")
