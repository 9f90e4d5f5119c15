"""Tests of `helm-longctx gate --logprobs` against local servers that give log-probabilities of prompts."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import yaml
from helm.benchmark.model_metadata_registry import (
    INSTRUCTION_FOLLOWING_MODEL_TAG,
    MODEL_NAME_TO_MODEL_METADATA,
)

from helm_longctx.apps.gate.distributions import (
    Point,
    decide,
    divergence,
    find_differing_lengths,
    pair_tokens,
    visible_divergence,
)
from helm_longctx.apps.gate.kinds import find_main_kind
from helm_longctx.models.apis.echo import find_span_tokens
from helm_longctx.models.scoring import Distribution
from helm_longctx.results.statistics.comparison import smallest_shares
from helm_longctx.results.statistics.noninferiority import Verdict
from tests.support.commands import Command
from tests.support.deployments import register_server
from tests.support.servers.echoing import EchoServer, copying

BASE = "sim/base"
CANDIDATE = "sim/candidate"
ENTRY = "--entry=helmet_recall:task=json_kv,num_samples=6,length=4k"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def base() -> Iterator[EchoServer]:
    """Yield the base's server."""
    with EchoServer("echo") as server:
        register_server(BASE, server.url.removesuffix("/v1"), "completions")
        yield server


def weaker(text: str) -> tuple[list[str], list[float]]:
    """Score a text as `copying` does, with less certainty after the first half of the text."""
    tokens, logprobs = copying(text)
    half = len(tokens) // 2 if len(tokens) > 100 else len(tokens)
    return tokens, [
        value + (math.log(0.5) if place >= half else 0) for place, value in enumerate(logprobs)
    ]


def read(suite: str = "gate") -> Any:
    return json.loads(Path(f"benchmark_output/gates/{suite}/logprobs.json").read_text())


def test_an_equal_pair_passes(command: Command, base: EchoServer) -> None:
    """An equal candidate passes in each part; the same command asks nothing again."""
    register_server(CANDIDATE, base.url.removesuffix("/v1"), "completions")
    assert command("gate", BASE, CANDIDATE, ENTRY, "--logprobs") == 0, command.err
    assert "NO WORSE" in command.out
    assert "differs" not in command.out
    result = read()
    assert (result["verdict"], result["requests"]) == ("no_worse", 34)
    assert [part["part"] for part in result["parts"]] == [
        *(
            f"4k {place}"
            for place in ("10 %", "30 %", "50 %", "70 %", "90 %", "answer", "gold answer")
        )
    ]
    assert all(part["divergence"]["mean"] == part["loss"]["mean"] == 0 for part in result["parts"])
    calls = len(base.bodies)
    assert command("gate", BASE, CANDIDATE, ENTRY, "--logprobs") == 0, command.err
    assert len(base.bodies) <= calls + 2  # only the probes


def test_a_defect_of_the_second_half_is_found(command: Command, base: EchoServer) -> None:
    """A candidate that loses certainty in the second half is worse there, with six questions, and not before."""
    with EchoServer("echo", weaker) as server:
        register_server(CANDIDATE, server.url.removesuffix("/v1"), "completions")
        assert (
            command("gate", BASE, CANDIDATE, ENTRY, "--logprobs", "--max-divergence", "0.01") == 1
        ), command.err
    assert (
        "the candidate differs from the base by more than the base from itself at 4k ("
        in command.out
    )
    assert [each["length"] for each in read()["differences"]] == [4096]
    verdicts = {part["part"]: part["verdict"] for part in read()["parts"]}
    assert verdicts["4k 10 %"] == verdicts["4k 30 %"] == "no_worse"
    assert verdicts["4k 90 %"] == "worse"
    # Only the base writes answers: both read the same ones.
    assert [sum(len(prompt) > 1000 for prompt in each.answered) for each in (base, server)] == [
        6,
        0,
    ]


def test_the_bases_own_noise_is_subtracted(command: Command) -> None:
    """An equal pair that is not deterministic is not called worse, although its divergence is above the margin; the base
    reads all questions twice. A candidate that is worse by more than the noise is found."""
    chance = Random(0)

    def noisy(text: str) -> tuple[list[str], list[float]]:
        tokens, logprobs = copying(text)
        return tokens, [
            math.log(min(math.exp(value) * chance.uniform(0.3, 1.05), 0.99)) for value in logprobs
        ]

    def worse(text: str) -> tuple[list[str], list[float]]:
        tokens, logprobs = noisy(text)
        return tokens, [value - 2 for value in logprobs]

    with EchoServer("echo", noisy) as server, EchoServer("echo", worse) as other:
        register_server(BASE, server.url.removesuffix("/v1"), "completions")
        register_server(CANDIDATE, server.url.removesuffix("/v1"), "completions")
        assert command("gate", BASE, CANDIDATE, ENTRY, "--logprobs") in (0, 3), command.err
        result = read()
        assert result["requests"] == 42
        assert max(part["noise"] for part in result["parts"]) > 0.01
        register_server(CANDIDATE, other.url.removesuffix("/v1"), "completions")
        assert command("gate", BASE, CANDIDATE, ENTRY, "--logprobs", "--suite", "worse") == 1, (
            command.err
        )


def test_any_divergence(command: Command, base: EchoServer) -> None:
    """With a limit of 0, a divergence far below the default limit is worse, and an equal pair passes. The base reads all
    texts twice, also those of a command with another limit. A dry run says what is found."""

    def slightly(text: str) -> tuple[list[str], list[float]]:
        tokens, logprobs = copying(text)
        return tokens, [value - 0.003 for value in logprobs]

    options = ("gate", BASE, CANDIDATE, ENTRY, "--logprobs")
    with EchoServer("echo", slightly) as server:
        register_server(CANDIDATE, server.url.removesuffix("/v1"), "completions")
        assert command(*options, "--max-divergence", "0", "--dry-run") == 0, command.err
        assert "6 questions, 42 requests: BASE reads each text twice" in command.out
        assert "differs from BASE in 97% of the 6 questions of a length" in command.out
        assert command(*options) == 0, command.err
        assert command(*options, "--max-divergence", "0") == 1, command.err
        assert (
            "WORSE: CANDIDATE differs from BASE by more than BASE from itself. It took 42 requests."
            in command.out
        )
        assert all(0 < part["divergence"]["mean"] < 0.001 for part in read()["parts"])
        calls = len(base.bodies)
        assert command(*options, "--max-divergence", "0") == 1, command.err
        assert len(base.bodies) <= calls + 2  # only the probes
    register_server(CANDIDATE, base.url.removesuffix("/v1"), "completions")
    assert command(*options, "--max-divergence", "0", "--suite", "equal") == 0, command.err
    assert "NO WORSE: no divergence beyond BASE's own noise was found." in command.out
    assert command(*options, "--max-divergence", "0", "--suite", "few", "-m", "5") == 3, command.err


def test_errors_of_any_divergence() -> None:
    """With a limit of 0, equal pairs that are noisy are called worse in at most 2.5 %; a small shift of all is found."""
    chance = np.random.default_rng(11)
    wrong = found = 0
    for _ in range(300):
        rows = [
            Point(
                length,
                place,
                str(n),
                level * chance.exponential(),
                1,
                0,
                level * chance.exponential(),
            )
            for length in (1, 2)
            for n in range(10)
            for level in [chance.choice([1e-5, 0.001, 0.1])]  # of a question
            for place in ("10 %", "answer")
        ]
        verdict = decide(rows, 0)[1]
        assert verdict in (Verdict.WORSE, Verdict.NO_WORSE)
        wrong += verdict is Verdict.WORSE
        shifted = [
            row._replace(divergence=row.divergence + row.length * (row.noise or 0))
            for row in rows
            if row.length
        ]
        found += decide(shifted, 0)[1] is Verdict.WORSE
    assert wrong <= 8
    assert found > 150
    assert decide(rows[:8], 0)[1] is Verdict.UNDECIDED


def test_shares_that_a_sign_test_finds() -> None:
    """Six signs must all be positive, so 97 % of them are found with 80 %; with five nothing is."""
    assert smallest_shares(6, 0.025) == (0.97, 0.97)
    assert smallest_shares(5, 0.025) == (None, None)
    exact, noisy = smallest_shares(20, 0.025)
    assert exact is not None
    assert noisy is not None
    assert 0.3 < exact < 0.5 < noisy < 0.9


def test_the_kind_of_tokens_is_named(command: Command, base: EchoServer) -> None:
    """A candidate that is worse at tokens with digits is named so; one that is worse everywhere is not. If the tokens
    themselves differ, the error names the kind."""

    def digits(text: str) -> tuple[list[str], list[float]]:
        tokens, logprobs = copying(text)
        return tokens, [
            value - 2 * bool(re.search(r"\d", token))
            for token, value in zip(tokens, logprobs, strict=True)
        ]

    def split(text: str) -> tuple[list[str], list[float]]:
        pairs = zip(*copying(text), strict=True)
        parts = [(part, value) for token, value in pairs for part in re.findall(r"\d|\D+", token)]
        return [part for part, _ in parts], [value for _, value in parts]

    options = ("gate", BASE, CANDIDATE, ENTRY, "--logprobs", "--suite")
    for score, status, line in (
        (
            digits,
            1,
            r"mainly at digits: the log-probabilities of these tokens are [12] nats apart, those of all others 0[.]",
        ),
        (weaker, 1, None),
        (split, 2, "divide the same text into different tokens, first in digits"),
    ):
        with EchoServer("echo", score) as server:
            register_server(CANDIDATE, server.url.removesuffix("/v1"), "completions")
            assert command(*options, score.__name__, "--max-divergence", "0") == status, command.err
        assert re.search(line or "", command.out + command.err), command.out + command.err
        assert line or "mainly" not in command.out


def test_the_language_is_named() -> None:
    """A divergence of the questions in one script is named, although no question has two; noise has no kind."""
    chance = np.random.default_rng(2)
    for level, name in ((0.2, "CJK"), (0.0, None)):
        found = []
        for _ in range(40):
            rows = [
                Point(
                    None,
                    "answer",
                    f"{kind} {n}",
                    0,
                    1,
                    0,
                    0,
                    {"": (30, value, value), kind: (30, value, value)},
                )
                for n in range(6)
                for kind in ("CJK", "accents", "words and punctuation")
                for value in [level * (kind == "CJK") + chance.normal(0, 0.001)]
            ]
            found.append(find_main_kind(rows))
        assert sum((each and each.kind) == name for each in found) >= 38


def test_a_server_without_them_is_refused(command: Command, base: EchoServer) -> None:
    """A candidate that gives no log-probabilities ends the command before a question is sent; a dry run sends nothing."""
    with EchoServer("none") as server:
        register_server(CANDIDATE, server.url.removesuffix("/v1"), "completions")
        assert command("gate", BASE, CANDIDATE, ENTRY, "--logprobs", "--dry-run") == 0, command.err
        assert "6 questions, 34 requests, and 8 more if BASE is not deterministic" in command.out
        assert not base.bodies
        assert command("gate", BASE, CANDIDATE, ENTRY, "--logprobs") == 2
        assert "sim/base gives no log-probabilities of answers (" in command.err
        assert "and sim/candidate gives none of given texts: echo: " in command.err
        assert len(base.bodies) == 1  # the probe


@pytest.mark.parametrize("kind", ["completions", "chat", "both"])
def test_servers_that_write_log_probabilities(
    command: Command, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Servers that tell log-probabilities only of the tokens that they write are compared by their answers, with two
    requests for each question: an equal pair passes, and a candidate that is less certain is worse."""
    options = ("gate", BASE, CANDIDATE, ENTRY, "--logprobs", "--suite")
    with EchoServer("answers") as base, EchoServer("answers", weaker) as other:
        # A candidate that takes both forms gets the chats of a base that takes only chats.
        register_server(BASE, base.url.removesuffix("/v1"), "chat" if kind == "both" else kind)
        register_server(CANDIDATE, base.url.removesuffix("/v1"), kind)
        monkeypatch.setattr(
            MODEL_NAME_TO_MODEL_METADATA[CANDIDATE], "tags", [INSTRUCTION_FOLLOWING_MODEL_TAG]
        )
        assert command(*options, "equal") == 0, command.err
        assert "Answers are compared, up to the first token that differs" in command.out
        assert (read("equal")["verdict"], read("equal")["requests"]) == ("no_worse", 14)
        assert [part["part"] for part in read("equal")["parts"]] == ["4k answer"]
        assert len(base.bodies) == 14 + 2  # probes
        register_server(CANDIDATE, other.url.removesuffix("/v1"), kind)
        assert command(*options, "worse", "--max-divergence", "0") == 1, command.err
        assert "6 questions, 18 requests: BASE answers each twice" in command.out
        assert all(("messages" in body) == (kind != "completions") for body in other.bodies)
        (part,) = read("worse")["parts"]
        assert (part["verdict"], part["divergence"]["n"], part["noise"]) == ("worse", 6, 0)
        assert part["loss"]["mean"] == pytest.approx(math.log(2))


def test_chats_and_completions_are_not_compared(command: Command, base: EchoServer) -> None:
    """A base that gets completions and a candidate that gets chats end the command before anything is sent."""
    register_server(CANDIDATE, base.url.removesuffix("/v1"), "chat")
    assert command("gate", BASE, CANDIDATE, ENTRY, "--logprobs") == 2
    assert (
        "sim/candidate gets chats and sim/base completions; give both the same type" in command.err
    )
    assert not base.bodies + base.answered


def test_a_busy_server_is_asked_again(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that fail temporarily are sent again, so one command ends; `--max-retries 0` ends it at the first one."""
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.01")
    calls = 0

    def busy(text: str) -> tuple[list[str], list[float]]:
        nonlocal calls
        calls += 1
        if calls % 5 == 0:
            raise TimeoutError
        return copying(text)

    options = ("gate", BASE, CANDIDATE, ENTRY, "--logprobs")
    with EchoServer("echo", busy) as server:
        register_server(BASE, server.url.removesuffix("/v1"), "completions")
        register_server(CANDIDATE, server.url.removesuffix("/v1"), "completions")
        assert command(*options, "--max-retries", "0") == 2
        assert "what was compared is kept" in command.err
        assert command(*options) == 0, command.err
        assert read()["requests"] == 34


def test_a_token_that_differs() -> None:
    """Answers are compared up to the first token that differs, at which both distributions are known."""
    first, same, end = (
        Distribution(text, -0.1, {text: -0.1, other: -3.0})
        for text, other in ((" a", " b"), (" c", " d"), (" e", " f"))
    )
    other = Distribution(" b", -0.2, {" b": -0.2, " a": -1.8})
    assert pair_tokens([same, first, end], [same, other, end]) == [(same, same), (first, other)]
    assert other.find_logprob(" a") == other.find_logprob(" z") == -1.8
    assert divergence(first, other) > 1


def test_max_cost(command: Command, base: EchoServer) -> None:
    """The limit is checked before each question; what was compared is kept, and a larger limit goes on from there."""
    register_server(CANDIDATE, base.url.removesuffix("/v1"), "completions")
    Path("prices.yaml").write_text(
        f"{BASE}: {{input: 1, output: 1}}\n{CANDIDATE}: {{input: 2, output: 1}}\n"
    )
    options = ("gate", BASE, CANDIDATE, ENTRY, "--logprobs", "--prices", "prices.yaml")
    assert command(*options, "--dry-run") == 0, command.err
    (cost,) = map(float, re.findall(r"They cost about [$]([0-9]+[.][0-9]+)", command.out))
    assert 0.1 < cost < 0.3  # six questions with 7 million tokens for a dollar each
    # A request is first taken to have a token for each byte.
    assert command(*options, "--max-cost", str(0.6 * cost)) == 2
    assert "--max-cost" in command.err
    assert "what was compared is kept" in command.err
    kept = Path("benchmark_output/gates/gate/logprobs.jsonl").read_text().splitlines()
    assert 0 < len(kept) < 6
    calls = len(base.bodies)
    assert command(*options, "--max-cost", "9") == 0, command.err
    # Each arm reads two texts. Probes can be kept, too.
    assert 4 * (6 - len(kept)) <= len(base.bodies) - calls <= 4 * (6 - len(kept)) + 2


def test_a_local_model(tmp_path: Path) -> None:
    """With all tokens, the divergence is that of the full logits to 1e-4; with five it is at most that."""
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from helm_longctx.models.local.objects import TransformersModel
    from helm_longctx.models.local.scoring import read_spans
    from helm_longctx.models.scoring import SpanRequest
    from tests.models.small_models import TEXT, save_model

    folder = save_model(tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    models = [AutoModelForCausalLM.from_pretrained(folder).eval() for _ in range(2)]
    torch.manual_seed(3)
    with torch.inference_mode():
        for weight in models[1].parameters():
            weight += 0.05 * weight.std() * torch.randn_like(weight)
        ids = tokenizer(TEXT * 5)["input_ids"]
        first, second = (
            model(torch.tensor([ids])).logits[0].double().log_softmax(-1) for model in models
        )
    exact = (
        (first.exp() * (first - second)).sum(-1)[:-1].numpy()
    )  # at each token, of the one that follows
    spans = ((0, len(TEXT * 5)),)
    size = models[0].config.vocab_size
    for top, is_whole in ((size, True), (5, False)):
        read = [
            read_spans(tokenizer, TransformersModel(model, tokenizer).load(), SpanRequest(prompt=TEXT * 5, spans=spans, top=top), 64)
            for model in models
        ]  # fmt: skip
        found = np.array(
            [divergence(one, other) for one, other in zip(read[0][0], read[1][0], strict=True)]
        )
        assert exact.max() > 0.01
        assert np.all(found <= exact + 1e-4)
        if is_whole:
            np.testing.assert_allclose(found, exact, atol=1e-4)


@pytest.mark.parametrize("cache", [{"backend": "fp8"}, {"backend": "fp9"}, {"nbits": 4}])
def test_a_quantized_cache(
    command: Command, tmp_path: Path, request: pytest.FixtureRequest, cache: dict[str, Any]
) -> None:
    """A local model with an 8-bit cache differs from itself with a plain one. A cache that does not exist is refused."""
    torch = pytest.importorskip("torch")
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(1)  # threads of a small model wait for each other
    from tests.models.small_models import TEXT, save_model, write_deployment

    local = tmp_path / "prod_env"
    local.mkdir()
    write_deployment(local, save_model(tmp_path / "model"))
    for path in local.iterdir():
        ((key, (row,)),) = yaml.safe_load(path.read_text()).items()
        other = {
            name: "local/other" if value == row["name"] else value
            for name, value in copy.deepcopy(row).items()
        }
        if key == "model_deployments":
            other["client_spec"]["args"]["quantized_cache"] = cache
        path.write_text(yaml.safe_dump({key: [row, other]}))
    rows = [
        {"context": TEXT * (6 + number), "question": "What is it?", "answers": ["4711"]}
        for number in range(6)
    ]
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    entry = "--entry=any_jsonl:path=.,metric=contains,length=4k,count_with=longctx/words,num_output_tokens=4"
    options = (
        "gate",
        "local/small",
        "local/other",
        entry,
        "--logprobs",
        "--local-path",
        str(local),
    )
    status = command(*options, "--max-divergence", "0")
    if cache == {"backend": "fp8"}:
        assert status == 1, command.out + command.err
        assert "WORSE: CANDIDATE differs from BASE by more than BASE from itself." in command.out
    else:
        assert status == 2
        assert "quantized_cache=" in command.err
        assert "Traceback" not in command.err


def test_divergence_is_a_lower_bound() -> None:
    """The bound is below the divergence of the whole distributions, and equal to it if both tell all tokens."""
    chance = np.random.default_rng(5)
    for size in (3, 5, 12):
        one, other = (chance.dirichlet(np.full(12, 0.4)) for _ in range(2))
        exact = float(np.sum(one * np.log(one / other)))
        told = [
            Distribution(
                "0", math.log(p[0]), {str(n): math.log(p[n]) for n in np.argsort(-p)[:size]}
            )
            for p in (one, other)
        ]
        assert 0 <= divergence(*told) <= exact + 1e-9
    assert divergence(*told) == pytest.approx(exact, abs=1e-6)
    assert divergence(told[0], told[0]) == pytest.approx(0, abs=1e-12)


def test_decisions() -> None:
    """Certain differences decide, a single question does not, and the told power grows with the questions."""
    rows = [
        Point(None, "answer", str(n), value, 1, value)
        for n, value in enumerate((0.2, 0.21, 0.19, 0.2))
    ]
    assert decide(rows, 0.05)[1] is Verdict.WORSE
    assert decide(rows, 0.5)[1] is Verdict.NO_WORSE
    assert decide(rows, 0.2)[1] is Verdict.UNDECIDED
    assert decide(rows[:1], 0.5)[1] is Verdict.UNDECIDED
    assert (
        visible_divergence(4, 7, 0.05, 0.05, 0.8)
        > visible_divergence(20, 7, 0.05, 0.05, 0.8)
        > 0.05
    )


def test_small_differences() -> None:
    """A difference far below the margin is told with its length; the base's own noise is not one."""
    chance = np.random.default_rng(3)
    for noise, small in ((None, 1e-5), (0.001, 0.01)):
        rows = [
            Point(
                length,
                place,
                str(n),
                small * (length > 1) + (noise or 0) * chance.exponential(),
                1,
                0,
            )
            for length in (1, 2, 3)
            for n in range(8)
            for place in ("10 %", "answer")
        ]
        rows = [row._replace(noise=noise and noise * chance.exponential()) for row in rows]
        assert list(find_differing_lengths(rows)) == [2, 3]
        assert decide(rows, 0.05)[1] is Verdict.NO_WORSE
    once = [row._replace(noise=None if row.group != "0" else row.noise) for row in rows]
    assert not find_differing_lengths([row for row in once if row.length == 1])


def test_tokens_of_a_part() -> None:
    """Places are counted from the end, so a token before the text moves nothing."""
    assert find_span_tokens(["<s>", "ab", "cd", "ef"], 6, [(0, 1), (3, 6)]) == [[1], [2, 3]]
