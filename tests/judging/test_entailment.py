"""Tests of judges of passages and claims: small real models, a client that fails, and stored verdicts."""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from helm.clients.auto_client import AutoClient
from helm.common.cache_backend_config import BlackHoleCacheBackendConfig

from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.errors import InputError
from helm_longctx.judging import entailment
from helm_longctx.judging.entailment import (
    TRUE_NLI_COMMIT,
    CachedEntailment,
    DeploymentEntailment,
    HubEntailment,
    Pair,
    find_entailment,
)
from helm_longctx.judging.judge import Judge
from helm_longctx.run_settings import JUDGE_WAIT
from helm_longctx.tasks.judge_scores import TRUE_NLI
from tests.data.hub_server import COMMIT, Hub, point_at, serve

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
WORDS = ["1", "0", "premise:", "hypothesis:", *(f"w{number}" for number in range(40))]


ignore_broken_torchvision()


def save_tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocab = {
        word: number for number, word in enumerate(["<pad>", "</s>", "<unk>", *WORDS])
    }
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    fast.save_pretrained(folder)
    return fast


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a small T5 that writes 1 if `w0` to `w19` prevail in its input, else 0, and then the end."""
    folder = tmp_path_factory.mktemp("t5")
    tokenizer = save_tokenizer(folder)
    torch.manual_seed(3)
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=1, dropout_rate=0.0,
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(60):
        texts = [
            "premise: {} hypothesis: {}".format(*pair) for pair in pairs(24, seed=step)
        ]
        inputs = tokenizer(texts, return_tensors="pt", padding=True)
        small = ((inputs.input_ids >= 7) & (inputs.input_ids < 27)).sum(1) > (
            inputs.input_ids >= 27
        ).sum(1)
        labels = torch.stack(
            [torch.where(small, 3, 4), torch.ones(24, dtype=torch.long)], dim=1
        )
        model(**inputs, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a small classifier of three labels."""
    folder = tmp_path_factory.mktemp("classifier")
    tokenizer = save_tokenizer(folder)
    torch.manual_seed(5)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=600, pad_token_id=0, id2label={0: "contradiction", 1: "Entailment", 2: "neutral"},
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    with torch.no_grad():
        model.classifier.weight *= 50
    model.save_pretrained(folder)
    return folder


SMALL: dict[str, Any] = {
    "pad_token_id": 0,
    "eos_token_id": 1,
    "id2label": {0: "no", 1: "neutral", 2: "Entailment"},
}
LAYERS: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "type_vocab_size": 2,
}  # fmt: skip
RELATIVE: dict[str, Any] = {
    "relative_attention": True, "position_biased_input": False, "pos_att_type": "p2c|c2p", "position_buckets": 32,
    "share_att_key": True,
}  # fmt: skip
BART: dict[str, Any] = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "bos_token_id": 1, "decoder_start_token_id": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("family", "settings", "longest"),
    [
        ("Bert", LAYERS, 64),
        ("Roberta", LAYERS, 63),  # position 0 is the padding's
        ("Bart", BART, 64),
        ("DebertaV2", {**LAYERS, **RELATIVE}, None),
    ],
)
def test_pairs_beyond_the_positions_of_a_classifier(
    family: str,
    settings: dict[str, Any],
    longest: int | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Pairs beyond the positions of a classifier get no verdict, other pairs of the batch do, and relative positions have no end."""
    tokenizer = save_tokenizer(tmp_path)
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(tokenizer), max_position_embeddings=64, **SMALL, **settings
    )
    kind = getattr(transformers, f"{family}ForSequenceClassification")
    kind(config).save_pretrained(tmp_path)
    model = kind.from_pretrained(tmp_path).eval()
    judge = HubEntailment(str(tmp_path))
    for length in (61, 62, 63, 64, 65, 100):
        asked = pairs(6)
        expected = []
        asked[2] = (" ".join(["w7"] * (length - 4)), "w1 w2")
        for pair in asked:
            inputs = tokenizer(*pair, return_tensors="pt")
            with torch.inference_mode():
                fits = longest is None or inputs.input_ids.shape[1] <= longest
                expected.append(
                    int(model(**inputs).logits.argmax()) == 2 if fits else None
                )
        assert judge.entails(asked) == expected
    assert ("1 of 6 pairs are too long for it" in caplog.text) == (longest is not None)
    assert "w7" not in caplog.text


def test_a_t5_that_has_its_sentencepiece_model_alone(t5: Path, tmp_path: Path) -> None:
    """A T5 that has only its sentencepiece model, as the official judge's repository can, gives the library's pieces and the end."""
    sentencepiece = pytest.importorskip("sentencepiece")
    pytest.importorskip("google.protobuf")
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        shutil.copy(t5 / name, tmp_path / name)
    (tmp_path / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "T5Tokenizer", "extra_ids": 0}'
    )
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(pair) for pair in pairs(200)]), model_prefix=str(tmp_path / "spiece"),
        vocab_size=40, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, normalization_rule_name="nmt_nfkc", minloglevel=2,
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "spiece.model")
    )
    judge = HubEntailment(str(tmp_path))
    assert None not in judge.entails(pairs(3))
    assert isinstance(judge._loaded, entailment._NliModel)
    for passage in (
        "Title: w1\nw2  w3",
        "w4\u2028\u00a0w5\t",
        "\uff57\uff16 \ufb01 <b>",
    ):
        text = f"premise: {passage} hypothesis: w7"
        assert judge._loaded.tokenizer(text).input_ids == [*pieces.encode(text), 1]


def test_the_commit_is_part_of_the_name(
    t5: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is a part of a hub model's name, and nothing is loaded if all verdicts are stored."""
    asked = pairs(5)
    verdicts = tmp_path / "verdicts.sqlite"
    files = {file.name: file.read_bytes() for file in t5.iterdir()}
    with serve(Hub({"org/nli": files})) as hub:
        point_at(monkeypatch, hub.url, tmp_path)
        judge = CachedEntailment(HubEntailment("org/nli"), verdicts)
        said = judge.entails(asked)
        name = judge.name
    assert name == f"org/nli@{COMMIT}"
    assert said == HubEntailment(str(t5)).entails(asked)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(entailment.HubEntailment, "_load", None)
    later = CachedEntailment(HubEntailment("org/nli"), verdicts)
    assert (later.entails(asked), later.name) == (said, name)


def test_what_is_downloaded_is_pinned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A model is loaded at one commit: the official judge's, the requested one, or the current one of a branch."""
    asked: list[str | None] = []

    def download(model: str, file: str, revision: str | None) -> str:
        asked.append(revision)
        return str(tmp_path / COMMIT / file)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    names = [
        TRUE_NLI,
        f"{TRUE_NLI}@{COMMIT}",
        f"{TRUE_NLI}@main",
        f"org/nli@{COMMIT}",
        "org/nli@v2",
        "org/nli",
    ]
    judges = [HubEntailment(name) for name in names]
    assert [judge.name for judge in judges] == [
        f"{TRUE_NLI}@{TRUE_NLI_COMMIT}", f"{TRUE_NLI}@{COMMIT}", f"{TRUE_NLI}@{COMMIT}", *[f"org/nli@{COMMIT}"] * 3
    ]  # fmt: skip
    assert asked == ["main", "v2", None]
    assert [judge.official for judge in judges] == [True, *[False] * 5]


def test_a_model_of_no_commit_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose commit is unknown is not loaded."""
    monkeypatch.setattr(entailment, "find_commit", lambda model, revision: None)
    monkeypatch.setattr(
        transformers.AutoConfig,
        "from_pretrained",
        lambda *arguments, **named: pytest.fail("loaded"),
    )
    with pytest.raises(
        InputError, match="nor a model that can be loaded on this machine"
    ):
        HubEntailment("org/nli").entails([("a", "b")])


def test_code_of_a_model_is_not_run(t5: Path, tmp_path: Path) -> None:
    """The code of a model is not run, and nobody is asked whether it may run."""
    shutil.copytree(t5, tmp_path / "nli")
    config = json.loads((tmp_path / "nli/config.json").read_text())
    names = {"AutoConfig": "code.Config", "AutoModelForSeq2SeqLM": "code.Model"}
    (tmp_path / "nli/config.json").write_text(
        json.dumps({**config, "model_type": "other", "auto_map": names})
    )
    (tmp_path / "nli/code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(
        InputError, match="nor a model that can be loaded on this machine"
    ):
        HubEntailment(str(tmp_path / "nli")).entails([("a", "b")])
    assert not (tmp_path / "ran").exists()


def test_a_folder_has_the_name_of_its_files(t5: Path, tmp_path: Path) -> None:
    """Other weights in the same place are another judge, also if size and time stay; a new time alone changes no name."""
    shutil.copytree(t5, tmp_path / "nli")
    name = HubEntailment(str(tmp_path / "nli")).name
    assert name == HubEntailment(str(tmp_path / "nli")).name
    weights = tmp_path / "nli/model.safetensors"
    os.utime(weights, (1, 1))
    assert HubEntailment(str(tmp_path / "nli")).name == name
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    os.utime(weights, (1, 1))
    assert HubEntailment(str(tmp_path / "nli")).name != name


def pairs(count: int, seed: int = 1) -> list[Pair]:
    rng = random.Random(seed)
    return [
        tuple(
            " ".join(rng.choices(WORDS[4:], k=rng.randint(1, longest)))
            for longest in (60, 9)
        )  # type: ignore[misc]
        for _ in range(count)
    ]


def test_batches_equal_the_official_rule_one_by_one(
    t5: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict in a batch equals the official rule for one pair: whether the model writes exactly `1`."""
    monkeypatch.setattr(entailment, "_BATCH_TOKENS", 300)
    model = transformers.T5ForConditionalGeneration.from_pretrained(t5).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(t5)
    asked = pairs(60)
    expected = []
    for passage, claim in asked:
        inputs = tokenizer(
            f"premise: {passage} hypothesis: {claim}", return_tensors="pt"
        ).input_ids
        with torch.inference_mode():
            written = model.generate(inputs, max_new_tokens=10)
        expected.append(tokenizer.decode(written[0], skip_special_tokens=True) == "1")
    judge = HubEntailment(str(t5))
    assert judge.entails(asked) == expected
    assert set(expected) == {True, False}
    assert judge.name.startswith(f"{t5}@local-")
    assert not judge.official
    assert HubEntailment(TRUE_NLI).official


def test_a_classifier(classifier: Path) -> None:
    """A classifier entails if the label that begins with "entail" is the best."""
    model = transformers.BertForSequenceClassification.from_pretrained(
        classifier
    ).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(classifier)
    asked = pairs(40)
    expected = []
    for passage, claim in asked:
        with torch.inference_mode():
            expected.append(
                int(
                    model(
                        **tokenizer(passage, claim, return_tensors="pt")
                    ).logits.argmax()
                )
                == 1
            )
    assert HubEntailment(str(classifier)).entails(asked) == expected
    assert set(expected) == {True, False}


def test_models_that_are_none(classifier: Path, tmp_path: Path) -> None:
    """A model without the label, and a path without a model, end in one line; the second question does not load again."""
    model = transformers.BertForSequenceClassification.from_pretrained(classifier)
    model.config.id2label = {0: "good", 1: "bad", 2: "ugly"}
    model.save_pretrained(tmp_path / "other")
    with pytest.raises(
        InputError, match="has no label 'entailment', only good, bad, ugly"
    ):
        HubEntailment(str(tmp_path / "other")).entails([("a", "b")])
    nothing = HubEntailment(str(tmp_path / "nothing"))
    for _ in range(2):
        with pytest.raises(
            InputError,
            match="neither a HELM deployment nor a model that can be loaded on this machine",
        ):
            nothing.entails([("a", "b")])


@pytest.mark.parametrize("limit", [1, 40, 10**6])
def test_batches_hold_every_pair_once(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches have every pair once and stay within the limit of padded tokens, except for a single pair."""
    monkeypatch.setattr(entailment, "_BATCH_TOKENS", limit)
    lengths = [random.Random(number).randint(1, 30) for number in range(50)]
    batches = list(entailment._batches(lengths))
    assert sorted(number for batch in batches for number in batch) == list(range(50))
    assert all(
        len(b) == 1 or len(b) * max(lengths[n] for n in b) <= limit for b in batches
    )


class Client:
    """Replies by the number of the passage. An exception is raised, and None is a failed request."""

    def __init__(self, replies: list[Any]):
        self.replies = replies
        self.lock = threading.Lock()
        self.requests = []

    def make_request(self, request: Any) -> Any:
        """Return the reply for the passage in the prompt."""
        from helm.common.request import GeneratedOutput, RequestResult

        with self.lock:
            self.requests.append(request)
            number = int(request.prompt.split("passage ")[1].split("\n")[0])
        reply = self.replies[number]
        if isinstance(reply, Exception):
            raise reply
        outputs = (
            [GeneratedOutput(text=reply, logprob=0, tokens=[])]
            if reply is not None
            else []
        )
        return RequestResult(
            success=bool(outputs), embedding=[], completions=outputs, cached=False
        )


def test_a_deployment_as_judge(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deployment's verdict is the first word 1 or 0, everything else is no verdict, and no passage is logged."""
    replies = [
        "1",
        " 0\n",
        "1.",
        "0. It says\nnothing.",
        "yes 1",
        "",
        None,
        ValueError("secret"),
        "10",
    ]
    client = Client(replies)
    monkeypatch.setenv(JUDGE_WAIT, "0.001")
    judge = DeploymentEntailment(Judge("org/model-a", "org/model", client))  # type: ignore[arg-type]
    asked = [(f"passage {number}", "claim") for number in range(len(replies))]
    assert judge.entails(asked) == [
        True,
        False,
        True,
        False,
        None,
        None,
        None,
        None,
        None,
    ]
    assert {(r.model, r.model_deployment, r.temperature) for r in client.requests} == {
        ("org/model", "org/model-a", 0.0)
    }
    assert "no verdict on 5 of 9 pairs" in caplog.text
    assert "passage" not in caplog.text
    assert "secret" not in caplog.text


class Counting:
    name = "counting@1"
    official = True

    def __init__(self) -> None:
        self.asked: list[Pair] = []

    def entails(self, pairs: Sequence[Pair]) -> list[bool | None]:
        """Return verdicts by a rule."""
        self.asked += pairs
        return [None if claim == "?" else len(claim) % 2 == 0 for _, claim in pairs]


def test_verdicts_are_remembered(tmp_path: Path) -> None:
    """Verdicts are stored by judge, passage and claim across processes; missing ones are requested, and no text is kept."""
    path = tmp_path / "folder/verdicts.sqlite"
    asked = [
        ("long passage", "ab"),
        ("long passage", "abc"),
        ("long passage", "ab"),
        ("long passage", "?"),
    ]
    for expected in (3, 1):
        judge = Counting()
        assert CachedEntailment(judge, path).entails(asked) == [True, False, True, None]
        assert len(judge.asked) == expected
    other = Counting()
    other.name = "other@1"
    CachedEntailment(other, path).entails(asked)
    assert len(other.asked) == 3
    # Folders may have any name.
    other.name = "counting@2"
    other.asked = []
    CachedEntailment(other, path).entails(asked)
    assert len(other.asked) == 3
    assert b"long passage" not in path.read_bytes()


def test_many_threads(tmp_path: Path) -> None:
    """Many threads get right verdicts from one store."""
    judge = CachedEntailment(Counting(), tmp_path / "verdicts.sqlite")
    wrong = []

    def work(start: int) -> None:
        for number in range(start, start + 40):
            if judge.entails([(str(number), "ab")]) != [True]:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 10, 20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_who_judges(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge of citations is none, a deployment, a model of the hub, or the official judge if a GPU has room."""
    import helm_longctx.plugin  # noqa: F401

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    client = AutoClient({}, str(tmp_path), BlackHoleCacheBackendConfig())
    assert find_entailment("none", client, tmp_path) is None
    monkeypatch.setattr(entailment, "gpu_has_room", lambda needed: False)
    assert find_entailment("auto", client, tmp_path) is None
    assert "no GPU has room" in caplog.text
    monkeypatch.setattr(entailment, "gpu_has_room", lambda needed: True)
    for judge, name, official in (
        ("auto", f"{TRUE_NLI}@{TRUE_NLI_COMMIT}", True),
        ("org/nli", "org/nli", False),
        ("longctx/null", "longctx/null", False),
    ):
        model = find_entailment(judge, client, tmp_path)
        assert model is not None
        assert (model.name, model.official) == (name, official)
