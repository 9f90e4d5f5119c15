"""Tests of log-probabilities of given texts: by local models, and by servers in each of their ways."""

from __future__ import annotations

import math
import random
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import Request

from helm_longctx.errors import InputError
from helm_longctx.models.apis.echo import find_answer_start
from helm_longctx.models.apis.providers.openai import OpenAIClient
from helm_longctx.models.scoring import (
    ScoringRequest,
    check_scoring,
    scored_texts,
    windows_output,
    with_answers,
)
from helm_longctx.tasks.logprobs import WINDOW, mean_logprob, split_windows
from tests.support.servers.echoing import EchoServer, copying

CONTEXT = "The key of the door is 8813. Olive is a cat in Paris. "
PROMPT = f"{CONTEXT}\nWhat is Olive?\nAnswer:"
ANSWERS = ("a cat", "cat in Paris", "ein Kätzchen 8813 本")


def request(
    prompt: str = PROMPT, answers: tuple[str, ...] = ANSWERS, **changes: Any
) -> ScoringRequest:
    """Return a request for the log-probabilities of answers with and without the context."""
    given = Request(
        model="endpoint/small",
        model_deployment="endpoint/small",
        prompt=prompt,
        **changes,
    )
    return with_answers(given, answers, (0, prompt.index("\n")))


def test_texts_of_a_request() -> None:
    """Each answer follows the whole prompt, and then the prompt without its context, after a space."""
    texts = [prompt + answer for prompt, answer in scored_texts(request(), PROMPT)]
    rest = PROMPT.removeprefix(CONTEXT)
    assert texts == [
        f"{before} {answer}" for before in (PROMPT, rest) for answer in ANSWERS
    ]
    assert [answer for _, answer in scored_texts(request(), PROMPT + "\n")][:3] == list(
        ANSWERS
    )


def test_start_of_an_answer() -> None:
    """A token that the prompt and the answer share is one of the answer's; other ends are not found."""
    assert find_answer_start(["a", " b", " c"], " c") == 2
    assert find_answer_start(["a", " b", " c"], "b c") == 1
    assert find_answer_start(["a", "�", "�"], "本") is None


def test_windows_of_a_text() -> None:
    """Windows have all tokens but the first, and the mean of a text weighs each token alike."""
    values = [-float(position) for position in range(1, WINDOW + WINDOW // 4)]
    windows = split_windows(values)
    assert [window.tokens for window in windows] == [WINDOW - 1, WINDOW // 4]
    assert [window.is_representative for window in windows] == [True, False]
    assert mean_logprob(windows) == pytest.approx(fmean(values))
    assert mean_logprob(split_windows([-2.0, -4.0])) == -3.0
    assert len(split_windows([-1.0] * (2 * WINDOW - 1))) == 2
    assert windows_output(windows).logprob == pytest.approx(sum(values))


@pytest.mark.parametrize("tokens", [1_000, 1_500, 2_047, 2_300])
def test_perplexity_of_texts_between_windows(tokens: int) -> None:
    """No token of a text is left out of its perplexity, wherever its last window ends."""
    values = [-(index % 7) / 3 for index in range(tokens)]
    assert mean_logprob(split_windows(values)) == pytest.approx(fmean(values))


@pytest.mark.parametrize("way", ["echo", "prompt_logprobs", "generate"])
@pytest.mark.parametrize("splits", [False, True])
def test_a_server_gives_the_numbers_of_its_model(way: str, splits: bool) -> None:
    """The tokens of each answer have the model's log-probabilities, in each way of a server."""
    with EchoServer(way, splits=splits) as server:
        client = OpenAIClient(
            BlackHoleCacheConfig(),
            base_url=server.url,
            form="completions",
            model="small",
        )
        check_scoring(client, "endpoint/small")
        result = client.make_request(request())
    assert result.success, result.error
    assert [output.text for output in result.completions] == [*ANSWERS, *ANSWERS]
    for output, (prompt, answer) in zip(
        result.completions, scored_texts(request(), PROMPT), strict=True
    ):
        tokens, logprobs = copying(prompt + answer)
        start = len(copying(prompt)[0])
        assert [token.text for token in output.tokens] == [
            token.removeprefix(" ") if splits else token for token in tokens[start:]
        ]
        assert [token.logprob for token in output.tokens] == pytest.approx(
            logprobs[start:]
        )
        assert output.logprob == pytest.approx(sum(logprobs[start:]))


@pytest.mark.parametrize(
    ("server", "form", "words"),
    [
        (EchoServer("none"), "completions", "echo: .*prompt_logprobs: .*generate: "),
        (
            EchoServer("echo", is_shifted=True),
            "completions",
            "do not belong to the text's tokens",
        ),
        (EchoServer("echo"), "chat", "sends only chats"),
    ],
    ids=["none", "shifted", "chat"],
)
def test_a_server_that_cannot_is_refused(
    server: EchoServer, form: str, words: str
) -> None:
    """A run is refused in one line before its first question."""
    with server:
        client = OpenAIClient(
            BlackHoleCacheConfig(), base_url=server.url, form=form, model="small"
        )
        with pytest.raises(InputError, match=words) as caught:
            check_scoring(client, "endpoint/small")
    assert "\n" not in str(caught.value)


def test_other_clients_are_refused() -> None:
    """A client without the method is named, with what can be used instead."""
    with pytest.raises(InputError, match=r"x/y \(object\) gives no log-probabilities"):
        check_scoring(object(), "x/y")


torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from helm.tokenizers.huggingface_tokenizer import WrappedPreTrainedTokenizer  # noqa: E402

from helm_longctx.models.local.huggingface import LongContextHuggingFaceClient  # noqa: E402
from helm_longctx.models.local.model import LocalModel  # noqa: E402
from helm_longctx.models.local.scoring import make_scorer, respond, score_tokens  # noqa: E402
from helm_longctx.models.local.weights import Weights  # noqa: E402
from tests.models.small_models import save_model  # noqa: E402
from tests.support.key_texts import (  # noqa: E402
    PACKAGED,
    SMALL,
    check_case,
    read_cases,
)


def independent_loss(model: Any, ids: list[int], start: int) -> float:
    """Return transformers' own loss of the tokens from a place."""
    labels = torch.tensor([[-100] * start + ids[start:]])
    with torch.inference_mode():
        return float(model(input_ids=torch.tensor([ids]), labels=labels).loss)


@pytest.fixture(scope="module", params=["Llama", "Mistral", "OPT"])
def loaded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Any]:
    """Return a small random model and its tokenizer."""
    folder = save_model(
        tmp_path_factory.mktemp("models") / request.param, request.param
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return transformers.AutoModelForCausalLM.from_pretrained(folder), tokenizer


def test_local_scores_are_the_loss_of_transformers(loaded: tuple[Any, Any]) -> None:
    """Each answer has transformers' own loss, with one text in chunks of 16 tokens and a prompt of many characters."""
    model, tokenizer = loaded
    words = random.Random(3)
    text = " ".join(
        words.choice(["river", "key", "4711", "town\n", "king"]) for _ in range(900)
    )
    prompt = f"{text}\nWhat is the key? It is"
    asked = with_answers(
        Request(model="m", model_deployment="m", prompt=prompt), ANSWERS, (0, len(text))
    )
    response = respond(
        tokenizer,
        make_scorer(LocalModel(model, keeps_attention=True), 16),
        asked,
        prompt,
    )
    for row, (before, answer) in zip(
        response["scored"], scored_texts(asked, prompt), strict=True
    ):
        ids = tokenizer(before + answer)["input_ids"]
        start = len(ids) - len(row)
        assert tokenizer.decode(ids[start:]).endswith(answer.strip())
        mean = sum(value for _, value in row) / len(row)
        assert mean == pytest.approx(-independent_loss(model, ids, start), abs=1e-5)


def test_top_tokens_are_those_of_the_logits(loaded: tuple[Any, Any]) -> None:
    """The most likely tokens and their log-probabilities are those of the model's own logits."""
    model, tokenizer = loaded
    ids = tokenizer(
        "The river runs north of the town, where a king once built a school."
    )["input_ids"]
    ((*token_scores,),) = score_tokens(
        LocalModel(model, keeps_attention=True), [ids], [1], 7, top=3
    )
    with torch.inference_mode():
        logprobs = torch.log_softmax(
            model(input_ids=torch.tensor([ids])).logits[0].float(), -1
        )
    for position, scored in enumerate(token_scores):
        assert scored.logprob == pytest.approx(
            float(logprobs[position, ids[position + 1]]), abs=1e-5
        )
        best = logprobs[position].topk(3)
        assert [value for _, value in scored.top] == pytest.approx(
            best.values.tolist(), abs=1e-5
        )


def test_a_local_client_scores_chats(loaded: tuple[Any, Any]) -> None:
    """In a chat the answer follows the template at once, and the context is left out inside of the turn."""
    model, tokenizer = loaded
    asked = request(answers=("Olive",), messages=[])
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPT}],
        tokenize=False,
        add_generation_prompt=True,
    )
    texts = [before + answer for before, answer in scored_texts(asked, text)]
    assert texts == [f"{text}Olive", f"{text.replace(CONTEXT, '')}Olive"]
    client = LongContextHuggingFaceClient.__new__(LongContextHuggingFaceClient)
    client._tokenizer = WrappedPreTrainedTokenizer(tokenizer)
    client._weights = Weights(
        "small", None, "float32", None
    )  # an error would name them
    assert client._render(tokenizer, asked) == text
    assert client.score_support() == ""
    assert math.isfinite(
        respond(tokenizer, make_scorer(LocalModel(model), 64), asked, text)["scored"][
            0
        ][0][1]
    )


@pytest.mark.parametrize("case", read_cases(SMALL))
def test_longppl_is_that_of_its_package(case: dict[str, Any], tmp_path: Path) -> None:
    """LongPPL, the number of key tokens and the perplexity are those of the package, also if a token is added."""
    check_case(case, str(save_model(tmp_path)))


def test_golden_texts_have_key_tokens() -> None:
    """Each model has key tokens, so that the comparison compares something."""
    compared = set()
    for case in [*read_cases(SMALL), *read_cases(PACKAGED)]:
        if case["n_key_token"]:
            compared.add((case["model"], case["adds_token"]))
    assert compared == {(SMALL, False), (SMALL, True), (PACKAGED, True)}


def test_servers_and_engines_find_no_key_tokens() -> None:
    """A client that cannot find key tokens is refused in one line, before anything is sent."""
    with pytest.raises(InputError, match=r"metric=longppl: x/y .* key tokens") as error:
        check_scoring(object(), "x/y", "longppl")
    assert "\n" not in str(error.value)
