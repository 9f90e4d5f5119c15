"""Tests of `evaluate` with models, pipelines and tokenizers of transformers, with servers, and with an engine."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import helm_longctx as lc  # noqa: E402
from helm_longctx.models.baselines import lexical  # noqa: E402
from helm_longctx.models.local.model import LocalModel  # noqa: E402
from helm_longctx.runs.files import MODEL  # noqa: E402
from tests.evaluation.calls import call, call_with_short_texts  # noqa: E402
from tests.evaluation.engines import Engine  # noqa: E402
from tests.models.small_models import WINDOW, save_model, write_deployment  # noqa: E402
from tests.support.servers.llm import serve  # noqa: E402
from tests.support.servers.models import Model  # noqa: E402

TASK = "ruler:task=niah_single_1"
FEW = {"num_samples": 2, "arguments": {"seed": 1}}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread, because more threads make models of this size slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("small") / "tiny")


@pytest.fixture(scope="module")
def loaded(folder: Path) -> tuple[Any, Any]:
    """Return the model and its tokenizer."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32
    )
    return model, transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("kind", ["all", "a layer", "NaN"])
def test_weights_without_values_are_refused(kind: str, loaded: tuple[Any, Any]) -> None:
    """A model whose weights are on the device meta, or are no numbers, is refused at once with the name of one."""
    model = copy.deepcopy(loaded[0])
    if kind == "NaN":
        model.model.layers[1].self_attn.q_proj.weight.data[0, 0] = float("nan")
    else:
        (model if kind == "all" else model.model.layers[1]).to("meta")
    reason = (
        "not finite numbers"
        if kind == "NaN"
        else r"\d+ weights of the model have no values"
    )
    with pytest.raises(lc.InputError, match=reason):
        call((model, loaded[1]), lengths="4k", num_samples=1, name="broken")


@pytest.mark.parametrize(
    "missing", [("pad_token",), ("pad_token", "eos_token", "bos_token")]
)
def test_tokenizers_without_special_tokens(
    missing: tuple[str, ...], loaded: tuple[Any, Any]
) -> None:
    """A tokenizer without a token for padding or for the end answers as alone, also several prompts together."""
    model = copy.deepcopy(loaded[0])
    tokenizer = copy.deepcopy(loaded[1])
    for name in missing:
        setattr(tokenizer, name, None)
        setattr(model.generation_config, f"{name}_id", None)
        setattr(model.config, f"{name}_id", None)
    options: dict[str, Any] = {"lengths": "4k", "num_samples": 3, "context": 500}
    alone = call((model, tokenizer), name="alone", **options)
    together = call((model, tokenizer), name="together", batch_size=3, **options)
    assert list(alone.answers.answer) == list(together.answers.answer)


def test_equal_to_a_local_deployment(
    folder: Path,
    loaded: tuple[Any, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loaded model writes the tokens of a deployment with the same weights, and its prompts are cut to its window."""
    options: dict[str, Any] = {
        "local_path": write_deployment(tmp_path, folder),
        "num_samples": 3,
    }
    options |= {"arguments": {"style": "completion"}}
    monkeypatch.setattr(
        loaded[0].config, "max_position_embeddings", WINDOW["max_sequence_length"]
    )
    ours = call(loaded, lengths="4k", name="object", **options)
    theirs = call("local/small", lengths="4k", **options)
    columns = ["instance", "answer", "tokens", "finish_reason"]
    assert ours.answers[columns].equals(theirs.answers[columns])
    assert len(set(ours.answers.answer)) > 1
    assert set(ours.answers.model) == {"python/object"}
    assert (ours.answers.seconds > 0).all()
    assert set(ours.answers.finish_reason) <= {"length", "endoftext", "stop"}


def test_forms(folder: Path, loaded: tuple[Any, Any]) -> None:
    """A pair, a model with `tokenizer=` as object or folder, and a pipeline are the same model with the same answers."""
    model, tokenizer = loaded
    pipeline = transformers.pipeline(
        "text-generation", model=model, tokenizer=tokenizer
    )
    forms = [(loaded, None), (model, tokenizer), (model, str(folder)), (pipeline, None)]
    results = [
        call_with_short_texts(form, tokenizer=given, num_samples=1)
        for form, given in forms
    ]
    assert len({result.answers.answer[0] for result in results}) == 1
    assert {name for result in results for name in result.answers.model} == {
        "python/tiny"
    }
    with pytest.raises(
        lc.InputError,
        match=r"tokenizer is missing; give the model's, e.g. model=\(model, tokenizer\)",
    ):
        call(model)
    pipeline.task = "kv-press-text-generation"
    with pytest.raises(
        lc.InputError,
        match="is a pipeline for 'kv-press-text-generation'; give one for text-gen",
    ):
        call(pipeline)


def test_a_second_call_sees_a_patched_model(loaded: tuple[Any, Any]) -> None:
    """Answers of a model object never come from the request cache: a patched layer changes them."""
    model, _ = loaded
    before = call_with_short_texts(loaded).answers.answer
    hook = model.model.layers[1].register_forward_hook(
        lambda layer, given, output: torch.zeros_like(output)
    )
    try:
        patched = call_with_short_texts(loaded).answers.answer
    finally:
        hook.remove()
    assert not patched.equals(before)
    assert call_with_short_texts(loaded).answers.answer.equals(before)


def test_the_identity_of_a_model(folder: Path, loaded: tuple[Any, Any]) -> None:
    """The class, path, type of numbers, attention and packages of a model are kept with its run."""
    result = call_with_short_texts(loaded, num_samples=1)
    (path,) = result.suite.glob(f"*/{MODEL}")
    identity = orjson.loads(path.read_bytes())
    assert identity["class"].endswith("modeling_llama.LlamaForCausalLM")
    assert identity["path"] == str(folder)
    assert identity["dtype"] == "torch.float32"
    assert identity["attn_implementation"] == "sdpa"
    assert {"commit", "adapters"} <= set(identity)
    assert "torch" in identity["packages"]


def test_prompts_count_with_the_tokenizer(loaded: tuple[Any, Any]) -> None:
    """RULER is generated to the length in tokens of the tokenizer that comes with a function."""
    _, tokenizer = loaded
    lengths = []

    def count(prompt: lc.Prompt) -> str:
        lengths.append(len(prompt.encode(tokenizer)) + prompt.max_tokens)
        return ""

    call(count, TASK, "4k", tokenizer=tokenizer, num_samples=2)
    # RULER's code makes a sample that would be too long shorter by up to a half.
    assert 3500 < max(lengths) <= 4096


def test_rendering(loaded: tuple[Any, Any]) -> None:
    """`render` gives the text in the chat template, and `encode` its tokens without a second beginning token."""
    _, tokenizer = loaded
    prompts: dict[str, lc.Prompt] = {}
    for style in ("chat", "completion"):

        def keep(prompt: lc.Prompt, style: str = style) -> str:
            prompts[style] = prompt
            return ""

        call(keep, num_samples=1, arguments={"style": style})
    chat = prompts["chat"]
    completion = prompts["completion"]
    assert chat.render(tokenizer) == f"<s><turn>user: {chat.text}</s><turn>assistant: "
    assert completion.render(tokenizer) == completion.text
    assert [prompt.encode(tokenizer).count(0) for prompt in prompts.values()] == [1, 1]


def test_a_server_and_a_deployment_beside_a_function() -> None:
    """An address, the name of a deployment and a function are compared in one suite."""
    with serve(
        lambda prompt: lexical.answer(prompt) or "OK", models={"tiny": Model()}
    ) as server:
        result = call(
            [server.address, "longctx/null", lambda prompt: "x"],
            name=["my/tiny", None, "mine"],
        )
    assert set(result.answers.model) == {"my/tiny", "longctx/null", "python/mine"}
    scores = result.scores.set_index(["model", "task"]).score
    assert list(scores[[("my/tiny", "json_kv"), ("python/mine", "json_kv")]]) == [1, 0]


@pytest.fixture
def make_engine(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, Any], Engine]:
    """Return a class of engines that is in a module `vllm`."""
    monkeypatch.setitem(
        sys.modules, "vllm", SimpleNamespace(SamplingParams=SimpleNamespace)
    )
    monkeypatch.setattr(Engine, "__module__", "vllm.entrypoints.llm")
    return Engine


def test_an_engine_gets_lists_of_tokens(
    loaded: tuple[Any, Any], make_engine: Callable[[Any, Any], Engine]
) -> None:
    """An engine gets token ids in lists, and its answers equal those of the model that it runs."""
    engine = call_with_short_texts(make_engine(*loaded))
    assert set(engine.answers.model) == {"python/tiny"}
    assert engine.answers.answer.equals(
        call_with_short_texts(loaded, output_path="other").answers.answer
    )


@pytest.mark.parametrize("style", ["completion", "chat"])
def test_an_engine_gives_likelihoods(
    loaded: tuple[Any, Any], make_engine: Callable[[Any, Any], Engine], style: str
) -> None:
    """An engine's log-probabilities of the gold answers are those of the model that it runs."""
    arguments = {"metric": "likelihood", "style": style}
    results = [
        call_with_short_texts(make_engine(*loaded), arguments),
        call_with_short_texts(loaded, arguments, output_path="other"),
    ]
    ours, theirs = (_likelihoods(result) for result in results)
    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-5)


def test_an_engine_that_cannot_be_loaded(
    loaded: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that cannot be loaded is loaded once, and not again for each question."""
    tries = []

    def fail(path: str, **options: Any) -> None:
        tries.append(path)
        raise RuntimeError("no memory for the engine")

    module = SimpleNamespace(
        LLM=fail, SamplingParams=SimpleNamespace, __spec__=SimpleNamespace()
    )
    monkeypatch.setitem(sys.modules, "vllm", module)
    with pytest.raises(lc.InputError, match="no memory for the engine"):
        call({"path": loaded[0].name_or_path, "engine": "vllm"}, num_samples=4)
    assert len(tries) == 1


def _likelihoods(result: Any) -> list[float]:
    statistics = result.results[0].statistics
    return [
        statistics[name].interval.mean
        for name in ("token_logprob", "answer_logprob", "token_logprob_gain")
    ]


def test_batches_of_a_loaded_model(
    loaded: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `batch_size` the prompts of a loaded model are answered together, with the same tokens."""
    sizes: list[int] = []
    generate_all = LocalModel.generate_all

    def count(self: LocalModel, jobs: Any, most: int) -> Any:
        sizes.append(len(jobs))
        return generate_all(self, jobs, most)

    monkeypatch.setattr(LocalModel, "generate_all", count)
    one = call_with_short_texts(loaded)
    assert not sizes
    together = call_with_short_texts(loaded, batch_size=3)
    assert sum(sizes) == 3
    assert max(sizes) in (2, 3)
    columns = ["instance", "answer", "tokens", "finish_reason"]
    assert together.answers[columns].equals(one.answers[columns])


def test_a_hook_that_drops_tokens_is_refused(loaded: tuple[Any, Any]) -> None:
    """A model whose hook drops tokens of the cache is refused, because later tokens would get wrong positions."""
    model, _ = loaded

    def drop(layer: Any, given: Any, named: dict[str, Any], output: Any) -> None:
        kept = named["past_key_values"].layers[layer.layer_idx]
        kept.keys = kept.keys[:, :, ::2]
        kept.values = kept.values[:, :, ::2]

    hooks = [
        layer.self_attn.register_forward_hook(drop, with_kwargs=True)
        for layer in model.model.layers
    ]
    try:
        for arguments in ({}, {"metric": "likelihood"}):
            with pytest.raises(
                lc.InputError,
                match=r"the model's cache has \d+ of the \d+ tokens that were read.*give a",
            ):
                call(loaded, num_samples=2, arguments=arguments)
    finally:
        for hook in hooks:
            hook.remove()
