"""Tests of the adapter: forms, budgets, stop sequences, cutting, and its registration in HELM."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from helm.benchmark.adaptation.adapter_spec import ADAPT_GENERATION, AdapterSpec
from helm.benchmark.adaptation.adapters.adapter_factory import AdapterFactory
from helm.benchmark.adaptation.adapters.generation_adapter import GenerationAdapter
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.model_deployment_registry import (
    ClientSpec,
    ModelDeployment,
    register_model_deployment,
)
from helm.benchmark.model_metadata_registry import (
    ModelMetadata,
    register_model_metadata,
)
from helm.benchmark.scenarios.scenario import TEST_SPLIT, TRAIN_SPLIT, Input, Instance
from helm.benchmark.tokenizer_config_registry import (
    TokenizerConfig,
    TokenizerSpec,
    register_tokenizer_config,
)
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError, UnsupportedHelmError
from helm_longctx.helm.adapter import LongContextAdapter
from helm_longctx.helm.patches import make_our_adapter
from helm_longctx.helm.scenario import to_instance
from helm_longctx.helm.style import deployment_style
from helm_longctx.helm.truncation import Truncator
from helm_longctx.tasks.entry import ADAPTER_METHOD, parse_entry
from helm_longctx.tasks.prompt import FittedPrompt
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.sample import Sample
from tests.tasks.tokenizers import tokenizer_of

VLLM = "helm.clients.vllm_client"
OURS = "helm_longctx.models.local.huggingface.LongContextHuggingFaceClient"


def deploy(
    name: str,
    client: str,
    tags: tuple[str, ...] = (),
    arguments: dict[str, Any] | None = None,
    **limits: Any,
) -> str:
    register_model_metadata(
        ModelMetadata(name, "test", name, name, "open", None, list(tags))
    )
    register_model_deployment(
        ModelDeployment(name, ClientSpec(client, arguments or {}), **limits)
    )
    return name


def adapted(
    entry: str,
    deployment: str,
    root: DataRoot | None = None,
    **changes: Any,
) -> list[RequestState]:
    checked = parse_entry(BENCHMARKS, entry)
    budget = max(task.max_tokens for task in checked.tasks)
    root = root or DataRoot(Path("nowhere"), mirror=False)
    instances = [
        to_instance(checked.benchmark, task, checked.settings, example, budget)
        for task in checked.tasks
        for example in task.load(task, checked.settings, root)
    ]
    spec = AdapterSpec(
        method=ADAPTER_METHOD,
        model=deployment,
        model_deployment=deployment,
        max_tokens=budget,
        num_outputs=1,
        temperature=0.0,
    )
    adapter = AdapterFactory.get_adapter(dataclasses.replace(spec, **changes), None)
    return adapter.adapt(instances, parallelism=1)


RECALL = "helmet_recall:length=4k,num_samples=1"


def test_completion_form() -> None:
    """A raw-text deployment gets the answer's prefix at the end, each task's own budget, and no stop sequence."""
    states = adapted(RECALL, deploy("test/raw", f"{VLLM}.VLLMClient"))
    assert [s.request.max_tokens for s in states] == [100, 50, 100, 50]
    assert [s.request.stop_sequences for s in states] == [[]] * 4
    assert states[0].request.prompt.endswith("\nCorresponding value:")
    assert states[1].request.prompt.endswith("mentioned in the provided text is")
    assert {
        s.instance.extra_data["style"] for s in states if s.instance.extra_data
    } == {"completion"}
    assert all(s.request.temperature == 0 for s in states)


def test_chat_form() -> None:
    """A chat deployment gets the user turn, which is the instance's own text and not a copy."""
    for state in adapted(RECALL, deploy("test/chat", f"{VLLM}.VLLMChatClient")):
        assert state.request.prompt is state.instance.input.text
        assert state.request.messages is None


def test_style_overrides_the_deployment() -> None:
    """`style=chat` and `style=completion` apply whatever the deployment is."""
    chat = deploy("test/chat2", f"{VLLM}.VLLMChatClient")
    raw = deploy("test/raw2", f"{VLLM}.VLLMClient")
    assert adapted(f"{RECALL},style=completion", chat)[0].request.prompt.endswith(
        "Corresponding value:"
    )
    assert not adapted(f"{RECALL},style=chat", raw)[0].request.prompt.endswith(
        "Corresponding value:"
    )


@pytest.mark.parametrize(
    ("client", "tags", "arguments", "form"),
    [
        ("helm.clients.openai_client.OpenAIClient", (), {}, "chat"),
        ("helm.clients.anthropic_client.AnthropicMessagesClient", (), {}, "chat"),
        ("helm.clients.openai_client.OpenAILegacyCompletionsClient", ("INSTRUCTION_FOLLOWING_MODEL_TAG",), {}, "completion"),
        ("helm.clients.huggingface_client.HuggingFaceClient", (), {}, "completion"),
        ("helm.clients.huggingface_client.HuggingFaceClient", ("INSTRUCTION_FOLLOWING_MODEL_TAG",), {}, "chat"),
        ("helm.clients.huggingface_client.HuggingFaceClient", ("INSTRUCTION_FOLLOWING_MODEL_TAG",), {"apply_chat_template": False}, "completion"),
        ("helm.clients.huggingface_client.HuggingFaceClient", (), {"apply_chat_template": True}, "chat"),
        (OURS, (), {}, "completion"),
        (OURS, ("INSTRUCTION_FOLLOWING_MODEL_TAG",), {}, None),
        ("my.plugin.Client", (), {}, "completion"),
        ("my.plugin.Client", ("INSTRUCTION_FOLLOWING_MODEL_TAG",), {}, "chat"),
    ],
)  # fmt: skip
def test_auto_style(
    client: str, tags: tuple[str, ...], arguments: dict[str, Any], form: str | None
) -> None:
    """`auto` depends on the client and its arguments, else on the model's tag; None means the task's form."""
    assert deployment_style(deploy("test/auto", client, tags, arguments)) == form


def test_a_deployment_of_both_forms(mirror: DataRoot) -> None:
    """A deployment of both forms gets each task in its official form, and a chat is marked by `messages`."""
    chatty = deploy("test/both", OURS, ("INSTRUCTION_FOLLOWING_MODEL_TAG",))
    (chat,) = adapted(
        "helmet_cite:task=qampari_nocite,length=4k,num_samples=1", chatty, mirror
    )
    assert chat.request.messages == []
    assert chat.request.prompt is chat.instance.input.text
    raw = adapted(RECALL, chatty)[0]
    assert raw.request.messages is None
    assert raw.request.prompt.endswith("Corresponding value:")
    assert [s.instance.extra_data["style"] for s in (chat, raw)] == [
        "chat",
        "completion",
    ]


def test_styles_of_a_deployment_of_both_forms(mirror: DataRoot) -> None:
    """`style` overrides the task's form for a deployment of both forms, and a base model gets no chat."""
    cite = "helmet_cite:task=qampari_nocite,length=4k,num_samples=1"
    chatty = deploy("test/both2", OURS, ("INSTRUCTION_FOLLOWING_MODEL_TAG",))
    base = deploy("test/base", OURS)
    assert adapted(f"{RECALL},style=chat", chatty)[0].request.messages == []
    assert (
        adapted(f"{cite},style=completion", chatty, mirror)[0].request.messages is None
    )
    assert adapted(cite, base, mirror)[0].request.messages is None


def test_current_protocol_stops_at_newline(mirror: DataRoot) -> None:
    """`protocol=current` stops ICL completions at a newline, but no chat."""
    entry = "helmet_icl:task=trec_coarse,length=4k,num_samples=1"
    raw = deploy("test/raw3", f"{VLLM}.VLLMClient")
    assert adapted(entry, raw, mirror)[0].request.stop_sequences == []
    assert adapted(entry + ",protocol=current", raw, mirror)[
        0
    ].request.stop_sequences == ["\n"]
    assert (
        adapted(entry + ",protocol=current,style=chat", raw, mirror)[
            0
        ].request.stop_sequences
        == []
    )


def test_run_expanders_are_heeded() -> None:
    """A budget, stop sequences, samples, temperature and trials that run expanders changed reach the request."""
    raw = deploy("test/raw4", f"{VLLM}.VLLMClient")
    states = adapted(
        RECALL,
        raw,
        max_tokens=110,
        stop_sequences=["#"],
        num_outputs=2,
        temperature=0.5,
        num_trials=2,
    )
    assert [s.request.max_tokens for s in states] == [110, 60, 110, 60] * 2
    assert {
        (
            tuple(s.request.stop_sequences),
            s.request.num_completions,
            s.request.temperature,
        )
        for s in states
    } == {(("#",), 2, 0.5)}
    assert [s.request.random for s in states] == [None] * 4 + ["1"] * 4


def test_repeats_are_trials_of_one_instance() -> None:
    """Each repeat is a separate trial for HELM, with a request that its cache distinguishes from the others."""
    first, second = adapted(
        RECALL + ",task=json_kv",
        deploy("test/raw7", f"{VLLM}.VLLMClient"),
        num_trials=2,
    )
    assert (first.train_trial_index, second.train_trial_index) == (0, 1)
    assert (first.request.random, second.request.random) == (None, "1")
    assert first.instance is second.instance


@pytest.mark.parametrize(
    ("budget", "sent"),
    [
        (100, [100, 50, 100, 50]),
        (130, [130, 80, 130, 80]),
        (7, [7] * 4),
        (60, [60, 50, 60, 50]),
    ],
)
def test_changed_budgets(budget: int, sent: list[int]) -> None:
    """A larger budget by a run expander is added to each task's budget, and a smaller one limits them."""
    states = adapted(
        RECALL, deploy("test/raw7", f"{VLLM}.VLLMClient"), max_tokens=budget
    )
    assert [s.request.max_tokens for s in states] == sent


def test_training_instances_are_not_sent() -> None:
    """Only evaluation splits are adapted, so training instances are not sent."""
    raw = deploy("test/raw5", f"{VLLM}.VLLMClient")
    (state,) = adapted("helmet_recall:task=json_kv,length=4k,num_samples=1", raw)
    adapter = AdapterFactory.get_adapter(
        AdapterSpec(method="longctx", model=raw, model_deployment=raw), None
    )
    for split, sent in ((TRAIN_SPLIT, 0), (TEST_SPLIT, 1)):
        assert (
            len(adapter.adapt([dataclasses.replace(state.instance, split=split)], 1))
            == sent
        )


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Save a word tokenizer with a beginning token, register it in HELM, and return its name."""
    folder = tmp_path_factory.mktemp("words")
    tokenizer = Tokenizer(models.WordLevel({"<s>": 0, "?": 1}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", unk_token="?"
    ).save_pretrained(folder)
    kind = "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer"
    register_tokenizer_config(
        TokenizerConfig(
            "test/words",
            TokenizerSpec(kind, {"pretrained_model_name_or_path": str(folder)}),
        )
    )
    return "test/words"


def count(text: str) -> int:
    return 1 + len(pre_tokenizers.Whitespace().pre_tokenize_str(text))


def test_long_prompts_lose_the_end_of_their_context(words: str) -> None:
    """A prompt over the window is cut at the end of its context to fit exactly, and keeps the question."""
    free = deploy("test/free", f"{VLLM}.VLLMClient")
    tight = deploy(
        "test/tight",
        f"{VLLM}.VLLMClient",
        tokenizer_name=words,
        max_sequence_length=600,
    )
    entry = "helmet_recall:task=ruler_niah_mk_2,length=4k,num_samples=2"
    for whole, cut in zip(adapted(entry, free), adapted(entry, tight), strict=True):
        assert cut.prompt_truncated
        assert not whole.prompt_truncated
        assert count(cut.request.prompt) == 600 - 50
        assert whole.instance.extra_data
        _, end = whole.instance.extra_data["context_span"]
        tail = whole.request.prompt[end:]
        assert cut.request.prompt.endswith(tail)
        assert whole.request.prompt[:end].startswith(cut.request.prompt[: -len(tail)])


def test_the_length_itself_is_a_limit(words: str) -> None:
    """With a wide window a prompt is cut to its length less the output, as by the official rule."""
    wide = deploy(
        "test/wide",
        f"{VLLM}.VLLMClient",
        tokenizer_name=words,
        max_sequence_length=10**6,
    )
    (state,) = adapted(
        "helmet_recall:task=ruler_niah_mk_3,length=4k,num_samples=1", wide
    )
    longer = dataclasses.replace(
        state.instance, extra_data={**(state.instance.extra_data or {}), "length": 500}
    )
    adapter = AdapterFactory.get_adapter(
        AdapterSpec(
            method="longctx", model=wide, model_deployment=wide, max_tokens=100
        ),
        None,
    )
    (cut,) = adapter.adapt([longer], 1)
    assert count(cut.request.prompt) == 400
    chat = dataclasses.replace(
        longer, extra_data={**(longer.extra_data or {}), "request": {"style": "chat"}}
    )
    (cut,) = adapter.adapt([chat], 1)
    assert count(cut.request.prompt) <= 300


def official_chat(
    tokenizer: Any, prompt: str, span: list[int], max_length: int, max_tokens: int
) -> str:
    """Prepare a chat like HELMET's OpenAIModel.prepare_inputs, with the context's position in place of fields."""
    start, end = span
    allowed = max_length - max_tokens - 100
    excess = len(tokenizer.encode(f"Role: user\nContent: {prompt}").ids) - allowed
    if excess <= 0:
        return prompt
    context = prompt[start:end]
    return (
        prompt[:start]
        + context[: tokenizer.encode(context).offsets[-excess][0]]
        + prompt[end:]
    )


def test_a_chat_is_counted_as_the_official_code_counts_it() -> None:
    """A chat is counted with the header of a turn, so that it is cut at the same character as by the official code."""
    tokenizer = tokenizer_of("gpt_2")
    (example,) = adapted(
        "helmet_recall:task=json_kv,length=4k,num_samples=1",
        deploy("test/c", f"{VLLM}.VLLMChatClient"),
    )
    prompt = example.request.prompt
    sample = Sample.from_json(example.instance.extra_data)
    for window in (1500, 2500, 4000, 4001, 4002):
        fitted = Truncator(window, lambda: tokenizer).fit(prompt, sample, 100, "chat")
        assert fitted.cut
        assert fitted.prompt == official_chat(
            tokenizer, prompt, sample.context_span, window, 100
        )


@pytest.mark.parametrize("thinking", [0, 32768])
def test_thinking_takes_no_room_of_the_input(words: str, thinking: int) -> None:
    """A prompt that fits without `thinking_tokens` is sent whole, because the official code cuts before it adds them."""
    deployment = deploy(
        "test/thinks",
        f"{VLLM}.VLLMClient",
        tokenizer_name=words,
        max_sequence_length=131072,
    )
    truncator = Truncator.for_deployment(deployment)
    prompt = "w " * 117_070
    sample = Sample(
        "official",
        100,
        100,
        length=131072,
        context_span=[0, len(prompt)],
        thinking_tokens=thinking,
    )
    assert not truncator.fit(prompt, sample, 100 + thinking, "completion").cut
    longer = "w " * 140_000
    cut = truncator.fit(
        longer,
        sample.extend(context_span=[0, len(longer)]),
        100 + thinking,
        "completion",
    )
    assert count(cut.prompt) == 131072 - 100


def test_what_does_not_fit_without_its_context_is_an_error(words: str) -> None:
    """A prompt that is too long without its context ends in an error with task, instance, tokens and what to do."""
    tiny = deploy(
        "test/tinier",
        f"{VLLM}.VLLMClient",
        tokenizer_name=words,
        max_sequence_length=70,
    )
    entry = "helmet_recall:task=ruler_niah_mk_2,length=4k,num_samples=2"
    with pytest.raises(InputError) as caught:
        adapted(entry, tiny)
    assert re.search(
        r"^ruler_niah_mk_2: instance ruler_niah_mk_2-0: the prompt has \d+ tokens without its context, .*20 fit",
        str(caught.value),
    )
    with pytest.raises(InputError, match="2 instances of ruler_niah_mk_2 are up to"):
        adapted(f"{entry},truncation=error", tiny)


def test_a_window_without_tokenizer_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A deployment with a window and no tokenizer never cuts prompts, and one line says so once."""
    deployment = deploy("test/blind", f"{VLLM}.VLLMClient", max_sequence_length=60)
    for _ in range(2):
        assert not any(state.prompt_truncated for state in adapted(RECALL, deployment))
    told = [record for record in caplog.records if "never cut" in record.message]
    assert len(told) == 1
    assert (
        "'test/blind' has a window of 60 tokens and no tokenizer_name"
        in told[0].message
    )


def test_long_prompts_are_refused(words: str) -> None:
    """`truncation=error` says how many prompts of which task are too long and by how much, and sends what fits."""
    entry = "helmet_recall:length=4k,num_samples=2"
    tight = deploy(
        "test/strict",
        f"{VLLM}.VLLMClient",
        tokenizer_name=words,
        max_sequence_length=2600,
    )
    tokens = {
        task: [count(s.request.prompt) for s in adapted(entry, deploy("test/any", f"{VLLM}.VLLMClient")) if s.instance.sub_split == task]
        for task in ("json_kv", "ruler_niah_mk_2", "ruler_niah_mk_3", "ruler_niah_mv")
    }  # fmt: skip
    budget = {
        "json_kv": 100,
        "ruler_niah_mk_2": 50,
        "ruler_niah_mk_3": 100,
        "ruler_niah_mv": 50,
    }
    excess = {
        task: [max(0, n - (2600 - budget[task])) for n in count]
        for task, count in tokens.items()
    }
    assert 0 < sum(any(value) for value in excess.values()) < 4
    with pytest.raises(InputError) as refused:
        adapted(f"{entry},truncation=error", tight)
    for task, counts in excess.items():
        said = f"{sum(n > 0 for n in counts)} instances of {task} are up to {max(counts)} tokens too long"
        assert (said in str(refused.value)) == any(counts)
    fitting = next(task for task, count in excess.items() if not any(count))
    assert adapted(f"{entry},task={fitting},style=completion,truncation=error", tight)


@pytest.mark.parametrize(
    ("given", "request_data"),
    [
        ("", None),
        (",style=chat", {"style": "chat"}),
        (",truncation=error", {"truncation": "error"}),
        (",metric=likelihood", {"metric": "likelihood"}),
        (
            ",style=chat,top_p=0.95,top_k=20",
            {"style": "chat", "sampling": {"top_p": 0.95, "top_k": 20}},
        ),
    ],
)
def test_samples_say_how_requests_are_made(given: str, request_data: Any) -> None:
    """What an entry says of its requests is in each sample, and the sample of a plain entry does not have it."""
    checked = parse_entry(BENCHMARKS, RECALL + given)
    root = DataRoot(Path("nowhere"), mirror=False)
    task = checked.tasks[0]
    example = next(iter(task.load(task, checked.settings, root)))
    instance = to_instance(checked.benchmark, task, checked.settings, example, 100)
    assert instance.extra_data is not None
    assert instance.extra_data.get("request") == request_data
    assert Sample.from_json(instance.extra_data).request == checked.settings.request


def test_tokens_are_counted_once(words: str) -> None:
    """A prompt that was tokenized completely keeps its count; one that was cut or is surely short has none."""
    entry = "helmet_recall:task=ruler_niah_mk_2,length=4k,num_samples=1"
    wide = deploy(
        "test/counted",
        f"{VLLM}.VLLMClient",
        tokenizer_name=words,
        max_sequence_length=10**6,
    )
    tight = deploy(
        "test/uncounted",
        f"{VLLM}.VLLMClient",
        tokenizer_name=words,
        max_sequence_length=600,
    )
    (counted,), (cut,) = adapted(entry, wide), adapted(entry, tight)
    assert counted.instance.extra_data["prompt_tokens"] == count(counted.request.prompt)
    assert "prompt_tokens" not in cut.instance.extra_data


def test_without_a_window_nothing_is_tokenized() -> None:
    """No tokenizer is loaded if the deployment has no limit, or if the prompt is surely short."""
    kind = "helm.tokenizers.huggingface_tokenizer.HuggingFaceTokenizer"
    register_tokenizer_config(
        TokenizerConfig(
            "test/none",
            TokenizerSpec(kind, {"pretrained_model_name_or_path": "/nowhere"}),
        )
    )
    unlimited = deploy(
        "test/unlimited", f"{VLLM}.VLLMClient", tokenizer_name="test/none"
    )
    roomy = deploy(
        "test/roomy",
        f"{VLLM}.VLLMClient",
        tokenizer_name="test/none",
        max_sequence_length=10**6,
    )
    assert adapted(RECALL, unlimited)
    sample = Sample("generated", 100, 100, length=4096, context_span=[0, 1])
    assert Truncator.for_deployment(roomy).fit(
        "short", sample, 100, "completion"
    ) == FittedPrompt("short")
    with pytest.raises(InputError, match="'test/none' cannot be loaded"):
        adapted("helmet_recall:task=json_kv,length=1m,num_samples=1", roomy)


def test_prompts_that_are_not_unicode() -> None:
    """A prompt with a lone surrogate, which is not valid UTF-8, is counted."""
    prompt = "\ud83d is half of a character"
    sample = Sample("official", 100, 100, length=1000, context_span=[0, 1])
    assert Truncator(1000, dict).fit(prompt, sample, 100, "completion").prompt == prompt


def test_a_tokenizer_that_cannot_cut_is_refused() -> None:
    """A tokenizer without offsets ends in an error before anything is sent."""
    register_tokenizer_config(
        TokenizerConfig(
            "test/odd",
            TokenizerSpec("helm.tokenizers.cohere_tokenizer.CohereTokenizer"),
        )
    )
    odd = deploy(
        "test/odd-model",
        f"{VLLM}.VLLMClient",
        tokenizer_name="test/odd",
        max_sequence_length=1000,
    )
    with pytest.raises(InputError, match="cannot be used to cut prompts; use "):
        adapted(RECALL, odd)


def test_helms_simple_tokenizer_cuts_by_characters() -> None:
    """With `simple/tokenizer1`, whose tokens are characters, short prompts stay whole and long ones lose their context's end."""
    spec = TokenizerSpec("helm.tokenizers.simple_tokenizer.SimpleTokenizer")
    register_tokenizer_config(TokenizerConfig("simple/tokenizer1", spec))
    simple = deploy(
        "test/simple",
        f"{VLLM}.VLLMClient",
        tokenizer_name="simple/tokenizer1",
        max_sequence_length=1000,
    )
    truncator = Truncator.for_deployment(simple)
    truncator.check()
    sample = Sample("official", 0, 100, context_span=[3, 1203])
    short = Sample("official", 0, 100, context_span=[3, 500])
    whole = "Q: " + "é" * 500
    assert truncator.fit(whole, short, 100, "completion").prompt == whole
    fitted = truncator.fit("Q: " + "é" * 1200 + " A:", sample, 100, "completion")
    assert fitted.cut
    assert len(fitted.prompt) == 900
    assert fitted.prompt.endswith("é A:")


def test_a_window_without_room_is_refused(words: str) -> None:
    """A window that is smaller than the output is refused."""
    tiny = deploy(
        "test/tiny", f"{VLLM}.VLLMClient", tokenizer_name=words, max_sequence_length=60
    )
    with pytest.raises(InputError, match="has no room for a prompt"):
        adapted(RECALL, tiny)


def test_helm_has_the_hook_that_we_need() -> None:
    """HELM's adapter factory is as expected: our adapters come from us, HELM's from HELM, and registering twice is once."""
    make_our_adapter.apply()
    raw = deploy("test/raw6", f"{VLLM}.VLLMClient")
    for method, kind in (
        ("longctx", LongContextAdapter),
        (ADAPT_GENERATION, GenerationAdapter),
    ):
        assert (
            type(
                AdapterFactory.get_adapter(
                    AdapterSpec(method=method, model=raw, model_deployment=raw), None
                )
            )
            is kind
        )
    with pytest.raises(ValueError, match="Invalid adaptation method"):
        AdapterFactory.get_adapter(
            AdapterSpec(method="no such", model=raw, model_deployment=raw), None
        )


def test_a_helm_without_the_hook_fails_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registration raises an error if HELM has changed its adapter factory."""
    monkeypatch.delattr(AdapterFactory, "get_adapter")
    with pytest.raises(UnsupportedHelmError, match="not supported"):
        make_our_adapter.apply()


def test_a_conversation_without_a_context_is_sent_whole() -> None:
    """A conversation without a context is sent whole, however long it is."""
    sample = Sample("official", 10, 10, chat=True, cut="context")
    turn = "word " * 500
    assert Truncator(200, lambda: None).fit(
        turn, sample, 10, "chat", ["more"]
    ) == FittedPrompt(turn)


def test_only_the_first_turn_of_the_user_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a conversation only the context in the first user turn is cut, also after a system message."""
    name = deploy("test/conversation", "helm.clients.openai_client.OpenAIClient")
    words = Tokenizer(
        models.WordLevel(
            {
                word: n
                for n, word in enumerate(
                    ["?", "a", "b", "c", "d", "Be", "kind.", "first", "second"]
                )
            },
            "?",
        )
    )
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    truncator = Truncator(300, lambda: words)
    monkeypatch.setattr(Truncator, "for_deployment", lambda name: truncator)
    context = "a b c d " * 100
    others = ["Be kind.", "first", "second ? " * 20]
    roles = ("system", "user", "assistant", "user")
    texts = [others[0], context + "question", *others[1:]]
    messages = [
        {"role": role, "content": text} for role, text in zip(roles, texts, strict=True)
    ]
    span = (0, len(context))
    sample = Sample(
        "hub", 10, 10, chat=True, cut="context_middle", context_span=span, reserved=15
    )
    instance = Instance(
        Input(messages=messages), [], TEST_SPLIT, id="1", extra_data=sample.to_json()
    )
    spec = AdapterSpec(
        method="longctx",
        model=name,
        model_deployment=name,
        max_tokens=10,
        num_outputs=1,
    )
    (state,) = AdapterFactory.get_adapter(spec, None).adapt([instance], parallelism=1)
    sent = [message["content"] for message in state.request.messages]
    assert state.prompt_truncated
    assert [sent[0], *sent[2:]] == others
    assert sent[1].startswith("a b c d ")
    assert sent[1].endswith("question")
    # 100 for the markup, 10 for the answer, and 2, 1, 1 and 40 for the other words.
    assert len(sent[1].removesuffix("question").split()) == 300 - 100 - 10 - 44
