"""Tests of the local model against plain `generate`, token by token."""

from __future__ import annotations

import math
import random
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helm_longctx.models.local import attention, batches  # noqa: E402
from helm_longctx.models.local.model import (  # noqa: E402
    Generation,
    LocalModel,
    LocalRequest,
    ModelError,
    OutOfMemoryError,
)
from helm_longctx.models.local.weights import Weights  # noqa: E402
from tests.models.small_models import save_model  # noqa: E402

LENGTHS = (1, 2, 7, 8, 23, 61)
CHUNKS = (1, 7, 4096)


def prompts(seed: int = 0, lengths: tuple[int, ...] = LENGTHS) -> list[list[int]]:
    rng = random.Random(seed)
    return [
        [0, *(rng.randrange(3, 300) for _ in range(length - 1))] for length in lengths
    ]


def load(folder: Path) -> tuple[LocalModel, Any]:
    """Load our model, and the model itself."""
    plain = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    return LocalModel(
        transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    ), plain


def ask(
    model: LocalModel,
    prompt: list[int],
    chunk_size: int = 7,
    reuse: bool = False,
    **changes: Any,
) -> Generation:
    job = {"max_tokens": 8, "stop_ids": frozenset(), "is_finished": None, **changes}
    return model.generate(
        LocalRequest(prompt=prompt, chunk_size=chunk_size, reuse_prefix=reuse, **job)
    )


def expected(plain: Any, prompt: list[int], **changes: Any) -> list[int]:
    written = plain.generate(
        torch.tensor([prompt]),
        do_sample=False,
        max_new_tokens=8,
        pad_token_id=1,
        **changes,
    )
    return written[0, len(prompt) :].tolist()


FAMILIES = [
    ("Llama", {"do_sample": True, "temperature": 0.6, "top_p": 0.9}),
    ("Qwen2", {"repetition_penalty": 1.3, "eos_token_id": [1, 2]}),
    ("Mistral", {}),
]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", params=FAMILIES, ids=lambda param: param[0])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[LocalModel, Any]:
    family, changes = request.param
    return load(save_model(tmp_path_factory.mktemp(family), family, **changes))


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[LocalModel, Any]:
    return load(save_model(tmp_path_factory.mktemp("llama")))


@pytest.mark.parametrize("chunk_size", CHUNKS)
def test_equal_to_plain_generate(pair: tuple[LocalModel, Any], chunk_size: int) -> None:
    """Tokens equal plain `generate`, whatever the family, generation configuration, prompt length and chunk size."""
    ours, plain = pair
    answers = [ask(ours, prompt, chunk_size) for prompt in prompts()]
    assert [answer.tokens for answer in answers] == [
        expected(plain, prompt) for prompt in prompts()
    ]
    assert (
        len({tuple(answer.tokens) for answer in answers}) > 3
    )  # else anything would be equal
    assert all(answer.reused == 0 for answer in answers)


@pytest.mark.parametrize("chunk_size", CHUNKS[:2])
def test_equal_with_reused_prefixes(
    pair: tuple[LocalModel, Any], chunk_size: int
) -> None:
    """Tokens are equal with reused prefixes, for books with several questions in changing order."""
    ours, plain = pair
    books = prompts(1, (50, 21))
    asked = [
        book[:cut] + question
        for book in books
        for cut in (20, 50)
        for question in prompts(2, (1, 9))
    ] + books
    wanted = {tuple(prompt): expected(plain, prompt) for prompt in asked}
    for seed in range(2):
        for prompt in random.Random(seed).sample(asked, len(asked)):
            assert (
                ask(ours, prompt, chunk_size, reuse=True).tokens
                == wanted[tuple(prompt)]
            )


@pytest.mark.parametrize(("past", "value_size"), [(0, 16), (40, 16), (40, 8)])
def test_attention_in_two_parts(past: int, value_size: int) -> None:
    """A chunk's tokens see all tokens before the chunk, and of the chunk those up to themselves."""
    rng = torch.Generator().manual_seed(0)
    query = torch.randn(1, 6, 24, 16, generator=rng)
    key = torch.randn(1, 2, past + 24, 16, generator=rng)
    value = torch.randn(1, 2, past + 24, value_size, generator=rng)
    layer = SimpleNamespace(is_causal=True, num_key_value_groups=3)
    attended, _ = attention.attend(layer, query, key, value, None, scaling=0.3)
    mask = torch.ones(24, past + 24, dtype=torch.bool).tril(past)
    weights = (
        (query @ key.repeat_interleave(3, 1).transpose(2, 3) * 0.3)
        .masked_fill(~mask, -torch.inf)
        .softmax(-1)
    )
    expected = (weights @ value.repeat_interleave(3, 1)).transpose(1, 2)
    assert torch.allclose(attended, expected, atol=1e-5)


def test_which_models_attend_in_two_parts(llama: tuple[LocalModel, Any]) -> None:
    """A model on a processor reads chunks without masks, and one with another attention stays as it is."""
    ours, plain = llama
    assert ours._model.config._attn_implementation == attention.NAME
    masks: list[Any] = []
    hook = ours._model.model.layers[0].register_forward_pre_hook(
        lambda module, args, options: masks.append(options["attention_mask"]),
        with_kwargs=True,
    )
    ask(ours, prompts(8, (40,))[0], 16, max_tokens=1)
    hook.remove()
    assert masks[:3] == [None] * 3
    plain.set_attn_implementation("eager")
    assert LocalModel(plain)._model.config._attn_implementation == "eager"
    plain.set_attn_implementation("sdpa")


def test_what_is_reused(llama: tuple[LocalModel, Any]) -> None:
    """Only whole chunks of the beginning shared with the last prompt are reused, and never the prompt's last token."""
    ours, _ = llama
    book, other = prompts(3, (40, 40))
    assert ask(ours, book, 8, reuse=True).reused == 0
    assert ask(ours, book[:30] + other[:5], 8, reuse=True).reused == 24
    assert ask(ours, book, 8, reuse=True).reused == 24
    assert ask(ours, book, 8, reuse=True).reused == 32
    assert ask(ours, book + other, 8, reuse=True).reused == 32
    assert ask(ours, book[:9], 8, reuse=True).reused == 8
    assert ask(ours, book[:8], 8, reuse=True).reused == 0
    assert ask(ours, book, 8, reuse=True).reused == 0
    assert ask(ours, book, 4, reuse=True).reused == 0, (
        "other chunks are other operations"
    )
    assert ask(ours, book, 4).reused == 0
    assert ask(ours, book, 4, reuse=True).reused == 0, (
        "a request that reuses nothing keeps nothing"
    )


def test_an_answer_does_not_depend_on_what_was_asked_before(
    llama: tuple[LocalModel, Any],
) -> None:
    """The logits are exactly the same, whichever prompt was asked before."""
    ours, _ = llama
    book, other = prompts(4, (60, 60))
    logits: list[Any] = []
    hook = ours._model.lm_head.register_forward_hook(
        lambda module, inputs, output: logits.append(output.clone())
    )
    readings = []
    for before in (other, book[:33] + other, book):
        ask(ours, before, 8, reuse=True)
        logits.clear()
        reused = ask(ours, book, 8, reuse=True, max_tokens=3).reused
        readings.append((reused, torch.cat(logits)))
    hook.remove()
    assert [reused for reused, _ in readings] == [0, 32, 56]
    assert all(torch.equal(readings[0][1], seen) for _, seen in readings)


def test_logits_of_the_last_position_only(llama: tuple[LocalModel, Any]) -> None:
    """The output head gets only the last position."""
    ours, _ = llama
    sizes: list[int] = []
    hook = ours._model.lm_head.register_forward_hook(
        lambda module, inputs, output: sizes.append(output.shape[1])
    )
    ask(ours, prompts(5, (64,))[0], 16, max_tokens=4)
    hook.remove()
    assert sizes == [1] * 4


def test_chunks(llama: tuple[LocalModel, Any]) -> None:
    """The body reads chunks of the requested size, and only new ones."""
    ours, _ = llama
    sizes: list[int] = []

    def note(module: Any, args: Any, kwargs: Any) -> None:
        sizes.append(kwargs["input_ids"].shape[1])

    hook = ours._model.model.register_forward_pre_hook(note, with_kwargs=True)
    book = prompts(6, (40,))[0]
    ask(ours, book, 16, reuse=True, max_tokens=1)
    ask(ours, [*book[:36], 5, 5], 16, reuse=True, max_tokens=1)
    hook.remove()
    assert sizes == [16, 16, 7, 1, 5, 1]


@pytest.mark.parametrize("family", ["Mistral", "Mamba"])
def test_what_cannot_be_reused_is_said_once(
    family: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Models with sliding windows or recurrent states read each whole prompt, and the log says so once."""
    ours, plain = load(save_model(tmp_path, family))
    book = prompts(7, (50,))[0]
    answers = [ask(ours, book, 8, reuse=True) for _ in range(3)]
    assert all(answer.tokens == expected(plain, book) for answer in answers)
    reused = [answer.reused for answer in answers]
    said = [
        record.getMessage()
        for record in caplog.records
        if str(tmp_path) in record.getMessage()
    ]
    if (
        family == "Mistral" and not said
    ):  # older versions of transformers keep what a window has left behind
        assert reused == [0, 48, 48]
    else:
        assert (reused, len(said)) == ([0, 0, 0], 1)


def test_stop_tokens(llama: tuple[LocalModel, Any]) -> None:
    """A stop token ends the answer as its last token, and the model's own end tokens still apply."""
    ours, plain = llama
    prompt = prompts(8, (30,))[0]
    free = expected(plain, prompt)
    stop = free[4]
    assert (
        ask(ours, prompt, stop_ids=frozenset([stop])).tokens
        == free[: free.index(stop) + 1]
    )
    done = ask(ours, prompt, is_finished=lambda tokens: len(tokens) == 3)
    assert done.tokens == free[:3]


def test_out_of_memory(llama: tuple[LocalModel, Any]) -> None:
    """A prompt that exceeds the memory fails with its length, its cache is freed, and the next prompt works."""
    ours, plain = llama
    book = prompts(9, (60,))[0]

    def refuse(module: Any, args: Any, kwargs: Any) -> None:
        if (
            "past_key_values" in kwargs
            and kwargs["past_key_values"].get_seq_length() >= 40
        ):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    assert ask(ours, book[:33], 8, reuse=True).tokens == expected(plain, book[:33])
    hook = ours._model.model.register_forward_pre_hook(refuse, with_kwargs=True)
    with pytest.raises(
        OutOfMemoryError,
        match=r"^the GPU has no memory left for a prompt of 60 tokens$",
    ):
        ask(ours, book, 8, reuse=True)
    again = ask(ours, book[:33], 8, reuse=True, max_tokens=4)
    hook.remove()
    assert again.reused == 0
    assert again.tokens == expected(plain, book[:33])[:4]


def test_tokens_of_another_model(llama: tuple[LocalModel, Any]) -> None:
    """A token that the model does not have is refused, because on a GPU it would break later requests."""
    with pytest.raises(ModelError, match="token 5000 and the model has only"):
        ask(llama[0], [0, 5000])


def test_more_positions_than_the_model_has(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rotary positions continue beyond the model's with one warning, and a table of positions ends in an error."""
    rotary, plain = load(save_model(tmp_path / "llama", positions=64))
    table, _ = load(save_model(tmp_path / "opt", "OPT", positions=64))
    book = prompts(10, (80,))[0]
    assert [ask(rotary, book).tokens for _ in range(2)] == [expected(plain, book)] * 2
    said = [
        message
        for message in caplog.messages
        if "was trained for 64 positions" in message
    ]
    assert len(said) == 1
    assert ask(table, book[:56]).tokens
    with pytest.raises(
        ModelError, match="opt has 64 positions, 65 are needed; set max_sequence_length"
    ):
        ask(table, book[:57])
    assert (
        len(
            [
                message
                for message in caplog.messages
                if "was trained for 64 positions" in message
            ]
        )
        == 1
    )


def test_freed_weights_are_loaded_again(tmp_path: Path) -> None:
    """A model whose memory was freed is gone, and is loaded again when it is needed."""
    weights = Weights.find(str(save_model(tmp_path)), None, "float32", None)
    gone = weakref.ref(weights.load()._model)
    weights.free()
    assert gone() is None
    assert weights.load()._model.dtype == torch.float32


def test_weights_are_loaded_once(tmp_path: Path) -> None:
    """Weights are loaded once for each path, commit, type and attention."""
    path = str(save_model(tmp_path))
    weights = Weights.find(path, None, "float32", None)
    assert weights.commit is None
    assert weights.load() is Weights.find(path, None, "float32", None).load()
    assert weights.load() is not Weights.find(path, None, "bfloat16", "eager").load()
    assert (
        Weights.find(path, None, "bfloat16", "eager").load()._model.dtype
        == torch.bfloat16
    )


def test_times_and_memory_of_an_answer(pair: tuple[LocalModel, Any]) -> None:
    """The time of the first token is a part of the time of the answer, and the memory is more than the weights need."""
    generation = ask(pair[0], prompts()[-1])
    assert 0 < generation.first_seconds < generation.seconds
    assert generation.peak_memory > 0.01


def test_batches_equal_single_prompts(pair: tuple[LocalModel, Any]) -> None:
    """Prompts of several lengths and contexts have the same tokens together as alone, each to its own end."""
    ours, _ = pair
    books = prompts(1, (50, 21))
    asked = [
        book[:cut] + question
        for book in books
        for cut in (20, 50)
        for question in prompts(2, (1, 9))
    ]
    asked += prompts()
    limits = [1 + number % 8 for number in range(len(asked))]
    free = [
        ask(ours, prompt, max_tokens=limit).tokens
        for prompt, limit in zip(asked, limits, strict=True)
    ]
    stops = [
        frozenset(tokens[3:4] if number % 3 == 0 else [])
        for number, tokens in enumerate(free)
    ]
    jobs = [
        LocalRequest(prompt, limit, stop, None, 7, True)
        for prompt, limit, stop in zip(asked, limits, stops, strict=True)
    ]
    alone = [ours.generate(replace(job, reuse_prefix=False)) for job in jobs]
    for size in (2, 5, 64):
        together = ours.generate_all(jobs, size)
        assert [answer.tokens for answer in together] == [
            answer.tokens for answer in alone
        ]


def test_a_batch_reads_a_shared_context_once(llama: tuple[LocalModel, Any]) -> None:
    """The context of several questions is read once, also for the questions of the next batch."""
    ours, _ = llama
    book = prompts(3, (60,))[0]
    sizes: list[int] = []
    hook = ours._model.model.register_forward_pre_hook(
        lambda module, args, options: sizes.append(options["input_ids"].shape[1]),
        with_kwargs=True,
    )
    jobs = [
        LocalRequest([*book, *question], 2, frozenset(), None, 16, True)
        for question in prompts(4, (5, 6, 7, 8))
    ]
    answers = ours.generate_all(jobs, 3)
    hook.remove()
    assert sorted(answer.reused for answer in answers) == [0, 61, 61, 61]
    assert sum(size for size in sizes if size > 1) < 60 + 4 + 4 * 8


def test_a_batch_that_exceeds_the_memory_is_halved(
    llama: tuple[LocalModel, Any],
) -> None:
    """A batch without memory is halved until it fits, and only a prompt that does not fit alone fails."""
    ours, plain = llama
    asked = prompts(9, (20, 21, 22, 23, 60))
    sizes: list[int] = []

    def refuse(module: Any, args: Any, options: Any) -> None:
        cache = options.get("past_key_values")
        sizes.append(len(options["input_ids"]))
        if len(options["input_ids"]) > 1 or (
            cache is not None and cache.get_seq_length() >= 40
        ):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    hook = ours._model.model.register_forward_pre_hook(refuse, with_kwargs=True)
    answers = ours.generate_all(
        [LocalRequest(request, 8, frozenset(), None, 16, True) for request in asked], 4
    )
    hook.remove()
    assert [answer.tokens for answer in answers[:4]] == [
        expected(plain, prompt) for prompt in asked[:4]
    ]
    assert 2 in sizes
    assert str(answers[4]) == "there is no memory left for a prompt of 60 tokens"


def test_batches_are_planned_before_they_are_read() -> None:
    """A batch has as many prompts as fit into the free memory with their answers, and prompts with one beginning."""
    jobs = [
        LocalRequest([0, book, *range(98)], 100, frozenset(), None, 16, True)
        for book in (1, 2, 1, 2, 1)
    ]
    # Three prompts of 200 tokens, and the copy of one for the next batch, need 4 times 200 times 10 bytes.
    room = math.ceil(4 * 200 * 10 / batches.SHARE)
    assert list(batches.fitting(jobs, 10, room, 16)) == [[0, 2, 4], [1, 3]]
    assert list(batches.fitting(jobs, 10, 10 * room, 16)) == [[0, 2, 4, 1, 3]]
    assert list(batches.fitting(jobs, 10, 10 * room, 2)) == [[0, 2], [4, 1], [3]]
    assert list(batches.fitting(jobs, 10, 1, 16)) == [[0], [2], [4], [1], [3]]


@pytest.mark.parametrize("family", ["Mistral", "Mamba"])
def test_models_that_have_no_batches(family: str, tmp_path: Path) -> None:
    """Models with sliding windows or recurrent states answer one prompt after the other, with the same tokens."""
    ours, plain = load(save_model(tmp_path, family))
    asked = prompts(7, (50, 30))
    answers = ours.generate_all(
        [LocalRequest(request, 8, frozenset(), None, 16, True) for request in asked], 4
    )
    assert [answer.tokens for answer in answers] == [
        expected(plain, prompt) for prompt in asked
    ]
