"""Tests of the client for local models: forms, stops, the request cache, errors, and a real run."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helm.common.cache import (
    BlackHoleCacheConfig,
    SqliteCacheConfig,
    get_all_from_sqlite,
)
from helm.common.request import Request, RequestResult
from helm.proxy.retry import NonRetriableException
from helm.tokenizers.huggingface_tokenizer import HuggingFaceTokenizer

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.models.apis.sending import Retries, Sender
from helm_longctx.models.results import failure_of
from helm_longctx.models.sampling import with_fields, with_sampling
from helm_longctx.models.scoring import AnswerRequest, SpanRequest, distributions_of
from helm_longctx.tasks.request_settings import Sampling
from tests.support.programs import run

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helm_longctx.models.local.huggingface import LongContextHuggingFaceClient  # noqa: E402
from helm_longctx.models.local.weights import Weights, load_weights  # noqa: E402
from tests.models.small_models import BOS, TEXT, save_model, write_deployment  # noqa: E402

SECRET = "the secret prompt"


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("llama"))


@pytest.fixture(scope="module")
def plain(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder)


def client(
    folder: Path, cache: Path | None = None, **arguments: Any
) -> LongContextHuggingFaceClient:
    config = SqliteCacheConfig(str(cache)) if cache else BlackHoleCacheConfig()
    tokens = HuggingFaceTokenizer(BlackHoleCacheConfig(), str(folder), str(folder))
    return LongContextHuggingFaceClient(config, tokens, str(folder), **arguments)


def request(prompt: str = "", **changes: Any) -> Request:
    settings = {
        "model": "test/small",
        "model_deployment": "test/small",
        "temperature": 0.0,
        "max_tokens": 8,
        **changes,
    }
    return Request(prompt=prompt, **settings)


def chat(prompt: str, **changes: Any) -> Request:
    return request(prompt, messages=[], **changes)


def written(plain: Any, tokens: list[int], max_tokens: int = 8) -> list[int]:
    output = plain.generate(
        torch.tensor([tokens]),
        do_sample=False,
        max_new_tokens=max_tokens,
        pad_token_id=1,
    )
    return output[0, len(tokens) :].tolist()


def completion_text(result: RequestResult) -> str:
    assert result.success
    return result.completions[0].text


@pytest.mark.parametrize("dtype", ["auto", "bfloat16", "float32"])
def test_number_types(
    dtype: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights have the number type that was given, and transformers warns of no old argument."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    monkeypatch.setattr(
        transformers.utils.logging.get_logger("transformers"), "handlers", [handler]
    )
    transformers.utils.logging.warning_once.cache_clear()
    model = load_weights(Weights.find(str(folder), None, dtype, None))
    assert model.dtype == (torch.float32 if dtype == "auto" else getattr(torch, dtype))
    assert not [line for line in lines if "deprecated" in line]


def test_completion(folder: Path, plain: Any, tokenizer: Any) -> None:
    """A completion sends the prompt after one BOS, and returns text and tokens without special tokens."""
    tokens = tokenizer(TEXT)["input_ids"]
    assert tokens.count(tokenizer.bos_token_id) == 1
    result = client(folder).make_request(request(TEXT))
    expected = written(plain, tokens)
    assert completion_text(result) == tokenizer.decode(
        expected, skip_special_tokens=True
    )
    assert [token.text for token in result.completions[0].tokens] == [
        tokenizer.decode([token]) for token in expected
    ]
    assert result.completions[0].finish_reason["reason"] == "length"
    assert result.request_time is not None
    assert result.request_time > 0


def test_chat_has_one_bos(
    folder: Path, tmp_path: Path, plain: Any, tokenizer: Any
) -> None:
    """A chat uses the template without doubling its BOS, with a message or a prompt alike."""
    templated = f"{BOS}<turn>user: {TEXT}</s><turn>assistant: "
    tokens = tokenizer(templated, add_special_tokens=False)["input_ids"]
    assert tokens.count(tokenizer.bos_token_id) == 1
    messages = request(messages=[{"role": "user", "content": TEXT}])
    result = client(folder, tmp_path / "cache.sqlite").make_request(chat(TEXT))
    assert completion_text(result) == tokenizer.decode(
        written(plain, tokens), skip_special_tokens=True
    )
    assert client(folder, tmp_path / "cache.sqlite").make_request(messages).cached
    ((_, response),) = get_all_from_sqlite(str(tmp_path / "cache.sqlite"))
    assert response["prompt_tokens"] == len(tokens)


def test_a_conversation_with_calls_of_tools(folder: Path, tmp_path: Path) -> None:
    """A conversation of an agent is answered, and the cache distinguishes what its calls say."""
    call = {"id": "1", "type": "function"}

    def ask(arguments: str) -> RequestResult:
        function = {"name": "look", "arguments": arguments}
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": TEXT},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{**call, "function": function}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "nothing"},
        ]
        ours = client(folder, tmp_path / "cache.sqlite")
        return ours.make_request(request(messages=messages))

    results = [ask('{"a": 1}'), ask('{"a": 1}'), ask('{"a": 2}')]
    assert all(result.success for result in results)
    assert [result.cached for result in results] == [False, True, False]


def test_no_template_no_chat(tmp_path: Path) -> None:
    """A base model without a template refuses a chat, and the error does not repeat the prompt."""
    save_model(tmp_path)
    for path in tmp_path.glob("*chat_template*"):
        path.unlink()
    config = tmp_path / "tokenizer_config.json"
    config.write_text(
        json.dumps(
            {
                k: v
                for k, v in json.loads(config.read_text()).items()
                if k != "chat_template"
            }
        )
    )
    with pytest.raises(
        NonRetriableException, match="has no chat template; give style=completion"
    ) as error:
        client(tmp_path).make_request(chat(SECRET))
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("role", "refusal"),
    [
        ("system", "{{ raise_exception('System role not supported') }}"),
        (
            "user",
            "{{ raise_exception('Conversation roles must alternate user/assistant/...') }}",
        ),
        ("assistant", "{{ messages[9]['content'].strip() }}"),
    ],
)
def test_a_template_that_refuses_turns(role: str, refusal: str, tmp_path: Path) -> None:
    """A template that takes a question but refuses a turn before it is a bad request at once, without the prompt."""
    save_model(tmp_path)
    template = (
        f"{{% if messages | length > 1 and messages[0]['role'] == '{role}' %}}{refusal}{{% endif %}}"
        "{{ messages[-1]['content'] }}"
    )
    for path in tmp_path.glob("*chat_template*"):
        path.write_text(template)
    config = tmp_path / "tokenizer_config.json"
    config.write_text(
        json.dumps({**json.loads(config.read_text()), "chat_template": template})
    )
    own = client(tmp_path)
    assert own.make_request(chat("Hello.")).success
    start = time.monotonic()
    asked = request(SECRET, messages=[{"role": role, "content": "Hello."}])
    result = Sender(own, Retries(3, 60))(asked).result
    assert failure_of(result) is Failure.BAD_REQUEST
    assert "the chat template refuses the turns" in str(result.error)
    assert SECRET not in str(result.error)
    assert time.monotonic() - start < 30


def newline_after(plain: Any, tokenizer: Any) -> tuple[str, int]:
    """Return a prompt after which the model writes a newline token, not as the first one, and its position."""
    newline = tokenizer.convert_tokens_to_ids("Ċ")
    for number in range(400):
        tokens = written(plain, tokenizer(f"{number} {TEXT}")["input_ids"], 24)
        if newline in tokens[1:] and 1 not in tokens:
            return f"{number} {TEXT}", tokens.index(newline)
    raise AssertionError("no such prompt")


def test_newline_stops_by_token(folder: Path, plain: Any, tokenizer: Any) -> None:
    """With a newline as stop sequence the answer ends before a newline token, and without it the answer continues."""
    prompt, position = newline_after(plain, tokenizer)
    expected = written(plain, tokenizer(prompt)["input_ids"], 24)
    stopped = client(folder).make_request(
        request(prompt, max_tokens=24, stop_sequences=["\n"])
    )
    assert completion_text(stopped) == tokenizer.decode(
        expected[:position], skip_special_tokens=True
    )
    assert len(stopped.completions[0].tokens) == position
    assert stopped.completions[0].finish_reason["reason"] == "stop"
    free = client(folder).make_request(request(prompt, max_tokens=24))
    assert completion_text(free) == tokenizer.decode(expected, skip_special_tokens=True)


def test_other_stops_by_text(folder: Path, plain: Any, tokenizer: Any) -> None:
    """A stop sequence across tokens ends the answer before it, and nothing more is generated."""
    tokens = tokenizer(TEXT)["input_ids"]
    whole = tokenizer.decode(written(plain, tokens, 24), skip_special_tokens=True)
    stop = whole[5:9]
    result = client(folder).make_request(
        request(TEXT, max_tokens=24, stop_sequences=["not there", stop])
    )
    assert completion_text(result) == whole[: whole.index(stop)]
    assert result.completions[0].finish_reason["reason"] == "stop"
    assert len(result.completions[0].tokens) < 24


def test_end_of_text(folder: Path, tmp_path: Path, plain: Any, tokenizer: Any) -> None:
    """An answer ends at every end token of the generation configuration, and not only at the tokenizer's."""
    end = written(plain, tokenizer(TEXT)["input_ids"])[3]
    changed = tmp_path / "model"
    shutil.copytree(folder, changed)
    path = changed / "generation_config.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "eos_token_id": [1, end]})
    )
    result = client(changed).make_request(request(TEXT))
    assert result.completions[0].finish_reason["reason"] == "endoftext"
    assert len(result.completions[0].tokens) <= 3


def test_cache_holds_no_prompt(folder: Path, tmp_path: Path) -> None:
    """A repeated answer comes from HELM's cache, whose keys distinguish form, prompt and settings by a hash."""
    cache = tmp_path / "cache.sqlite"
    asked = [
        request(SECRET),
        chat(SECRET),
        request(SECRET, max_tokens=9),
        request(SECRET, random="1"),
        request("x"),
    ]
    ours = client(folder, cache)
    answers = [ours.make_request(r) for r in asked]
    again = [client(folder, cache, reuse_prefix=True).make_request(r) for r in asked]
    assert [r.cached for r in answers + again] == [False] * 5 + [True] * 5
    assert [completion_text(r) for r in answers] == [completion_text(r) for r in again]
    assert not client(folder, cache, chunk_size=3).make_request(asked[0]).cached
    for key, value in get_all_from_sqlite(str(cache)):
        assert SECRET not in json.dumps(key) + json.dumps(value)
        assert value["prompt_tokens"] > 0


def test_several_samples_and_threads(folder: Path) -> None:
    """Greedy samples are equal, and threads wait for each other."""
    ours = client(folder, chunk_size=4, reuse_prefix=True)
    prompts = [f"{TEXT[:n]} {n}" for n in range(10, 40)]
    with ThreadPoolExecutor(4) as pool:
        answers = list(
            pool.map(
                lambda p: ours.make_request(request(p, num_completions=2)), prompts
            )
        )
    for prompt, answer in zip(prompts, answers, strict=True):
        first, second = answer.completions
        assert first.text == second.text
        assert (
            first.text
            == client(folder, chunk_size=4)
            .make_request(request(prompt))
            .completions[0]
            .text
        )


@pytest.mark.parametrize("batch", [1, 4])
def test_sampling(folder: Path, batch: int, tmp_path: Path) -> None:
    """Tokens are drawn as `model.generate` draws them with the same seed, and each repeat has its own draw."""
    ours = client(folder, tmp_path / "cache.sqlite", batch=batch)
    drawn = {"temperature": 1.5, "top_p": 0.9, "top_k": 20, "min_p": 0.01}
    sampling = Sampling(
        temperature=1.5, top_p=0.9, top_k=20, min_p=0.01, sampling_seed=7
    )
    asked = with_sampling(request(TEXT[:200], temperature=1.5), sampling)
    ids = ours._encode(asked)
    torch.manual_seed(7)
    with torch.inference_mode():
        theirs = ours._weights.load()._model.generate(
            torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids)),
            do_sample=True,
            max_new_tokens=8,
            pad_token_id=0,
            **drawn,
        )
    answer = ours.make_request(asked).completions[0]
    assert answer.text == ours._decode(theirs[0, len(ids) :].tolist())
    assert answer.text != ours.make_request(request(TEXT[:200])).completions[0].text
    again = with_sampling(replace(asked, random="1"), sampling, trial=1)
    assert ours.make_request(again).completions[0].text != answer.text
    assert ours.make_request(asked).cached


def test_distributions_of_an_answer(folder: Path) -> None:
    """An answer has the distributions that the model gives when it reads the answer: each token is the best one."""
    ours = client(folder)
    prompt = TEXT[:6]  # its answer has no parts of characters
    result = ours.make_request(
        with_fields(AnswerRequest, request(prompt, max_tokens=4), top=3)
    )
    (distributions,) = distributions_of(result)
    assert completion_text(result) == completion_text(
        ours.make_request(request(prompt, max_tokens=4))
    )
    assert "".join(
        distribution.text for distribution in distributions
    ) == completion_text(result)
    assert all(
        distribution.text == distribution.best and len(distribution.top) == 3
        for distribution in distributions
    )
    text = prompt + completion_text(result)
    read = ours.make_request(
        with_fields(
            SpanRequest, request(text), spans=((len(prompt), len(text)),), top=3
        )
    )
    assert distributions_of(read) == (distributions,)
    with pytest.raises(InputError, match="compare completions"):
        ours.make_request(with_fields(AnswerRequest, chat(TEXT)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"echo_prompt": True}, "echo_prompt=True is invalid; give False"),
        ({"embedding": True}, "embedding=True is invalid; give False"),
    ],
)
def test_refused_requests(folder: Path, change: dict[str, Any], message: str) -> None:
    """A request that the client cannot fulfil is refused without its prompt, and HELM does not repeat it."""
    with pytest.raises(NonRetriableException, match=message) as error:
        client(folder).make_request(request(SECRET, **change))
    assert isinstance(error.value, InputError)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (
            {"dtype": "int8"},
            "dtype='int8' is invalid; choose from bfloat16, float16, float32, auto",
        ),
        (
            {"attn_implementation": "x"},
            "attn_implementation='x' is invalid; give one of eager, sdpa",
        ),
        (
            {"attn_implementation": "flash_attention_3"},
            "needs the module flash_attn_interface, which is not installed",
        ),
        ({"chunk_size": 0}, "chunk_size=0 is invalid; give a whole number from 1"),
        (
            {"pretrained_model_name_or_path": "/nowhere"},
            "'/nowhere' with revision=None is neither a folder nor",
        ),
    ],
)
def test_refused_arguments(
    folder: Path, argument: dict[str, Any], message: str
) -> None:
    """Wrong arguments are refused before any request."""
    arguments = {"pretrained_model_name_or_path": str(folder), **argument}
    tokens = HuggingFaceTokenizer(BlackHoleCacheConfig(), str(folder), str(folder))
    with pytest.raises(InputError, match=message):
        LongContextHuggingFaceClient(BlackHoleCacheConfig(), tokens, **arguments)


def test_pickled_weights_are_refused(folder: Path, tmp_path: Path, plain: Any) -> None:
    """Weights that are not safetensors are refused, even if they are in the model's folder."""
    shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "model/model.safetensors").unlink()
    torch.save(plain.state_dict(), tmp_path / "model/pytorch_model.bin")
    with pytest.raises(NonRetriableException, match="cannot be loaded: OSError"):
        client(tmp_path / "model").make_request(request(TEXT))


def test_out_of_memory_fails_the_request_alone(folder: Path, tmp_path: Path) -> None:
    """A request that exceeds the memory fails alone, is not cached, and its error has no prompt."""
    ours = client(folder, tmp_path / "cache.sqlite")
    model = ours._weights.load()._model

    def refuse(*arguments: Any) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    hook = model.model.register_forward_pre_hook(refuse)
    failed = ours.make_request(request(SECRET))
    hook.remove()
    assert not failed.success
    assert [output.text for output in failed.completions] == [""]
    assert SECRET not in str(failed.error)
    assert failed.error_flags
    assert (failed.error_flags.is_retriable, failed.error_flags.is_fatal) == (
        False,
        False,
    )
    assert not ours.make_request(request(SECRET)).cached


def test_one_deployment_serves_both_forms(
    mirror: DataRoot, folder: Path, tmp_path: Path, plain: Any, tokenizer: Any
) -> None:
    """In helm-run one deployment gets ICL as completions and questions about books as chats, with plain generate's outputs.

    Prompts are cut to the window, and a torchvision that was built for another torch does no harm.
    """
    entries = [
        "helmet_icl:task=trec_coarse,length=4k,num_samples=2,model=local/small",
        "helmet_longqa:task=infbench_qa,length=4k,num_samples=2,model=local/small",
    ]
    broken = tmp_path / "broken/torchvision"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')"
    )
    paths = os.pathsep.join([str(broken.parent), os.environ.get("PYTHONPATH", "")])
    made = run(
        "helm-run", "--run-entries", *entries, "--suite", "s", "-m", 9, "--local-path", write_deployment(tmp_path, folder),
        folder=tmp_path, HELM_LONGCTX_DATA=str(mirror.path), OMP_NUM_THREADS="1", PYTHONPATH=paths,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    for entry, form in zip(entries, ("completion", "chat"), strict=True):
        path = (
            tmp_path
            / f"benchmark_output/runs/s/{entry.replace('local/', 'local_')}/scenario_state.json"
        )
        for state in json.loads(path.read_text())["request_states"]:
            sent = state["request"]
            assert state["instance"]["extra_data"]["style"] == form
            assert state["prompt_truncated"]
            if form == "chat":
                assert sent["messages"] == []
                turn = {"role": "user", "content": sent["prompt"]}
                tokens = tokenizer.apply_chat_template(
                    [turn], tokenize=False, add_generation_prompt=True
                )
                tokens = tokenizer(tokens, add_special_tokens=False)["input_ids"]
            else:
                assert "messages" not in sent
                tokens = tokenizer(sent["prompt"])["input_ids"]
            expected = written(plain, tokens, sent["max_tokens"])
            (completion,) = state["result"]["completions"]
            assert completion["text"] == tokenizer.decode(
                expected, skip_special_tokens=True
            )
