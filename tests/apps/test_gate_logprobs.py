"""Tests of `helm-longctx gate --logprobs` against local servers that give log-probabilities of prompts."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterable, Iterator
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
    ANSWERS,
    TEXTS,
    Point,
    Way,
    Written,
    divergence,
    pair_tokens,
)
from helm_longctx.apps.gate.divergences import (
    DivergenceDecision,
    count_fewest,
    decide,
    find_differing_lengths,
    parts_table,
    visible_divergence,
)
from helm_longctx.apps.gate.kinds import find_main_kind
from helm_longctx.apps.gate.teacher_forcing import spread_numbers
from helm_longctx.failures import FailureError
from helm_longctx.models.apis.answer_logprobs import read_distributions
from helm_longctx.models.apis.echo import find_span_tokens
from helm_longctx.results.statistics.noninferiority import Verdict
from helm_longctx.tasks.logprobs import Distribution
from tests.support.broken_models import compare_with_twin, make_candidates
from tests.support.commands import Command
from tests.support.deployments import register_server
from tests.support.readings import draw_points
from tests.support.servers.echoing import EchoServer, copying

BASE = "sim/base"
CANDIDATE = "sim/candidate"
ENTRY = "--entry=any_jsonl:path=.,metric=contains,length=4k,count_with=longctx/words,num_output_tokens=4"
ROWS = 48


@pytest.fixture(autouse=True)
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder that has only questions about registers of codes."""
    monkeypatch.chdir(tmp_path)
    chance = Random(1)
    rows = []
    for _ in range(ROWS):
        codes = [chance.randint(1000, 9999) for _ in range(40)]
        lines = [
            f"The code of room {room} is {code}, and nobody knows it."
            for room, code in enumerate(codes)
        ]
        rows.append(
            {
                "context": "\n".join(lines),
                "question": "What is the code of room 20?",
                "answers": [str(codes[20])],
            }
        )
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, rows)))


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
        value + (math.log(0.5) if position >= half else 0)
        for position, value in enumerate(logprobs)
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
    assert (result["verdict"], result["requests"]) == ("no_worse", 48 * 6 + 6 * 5)
    assert result["looks"] == [8, 16, 32, 48]
    assert [part["part"] for part in result["parts"]] == [
        *(
            f"4k {depth}"
            for depth in (
                "10 %",
                "30 %",
                "50 %",
                "70 %",
                "90 %",
                "answer",
                "gold answer",
            )
        )
    ]
    assert all(
        part["divergence"]["mean"] == part["loss"]["mean"] == 0
        for part in result["parts"]
    )
    calls = len(base.bodies)
    assert command("gate", BASE, CANDIDATE, ENTRY, "--logprobs") == 0, command.err
    assert len(base.bodies) <= calls + 2  # only the probes


def test_a_defect_of_the_second_half_is_found(
    command: Command, base: EchoServer
) -> None:
    """A candidate that loses certainty in the second half is worse there, with eight questions, and not before."""
    with EchoServer("echo", weaker) as server:
        register_server(CANDIDATE, server.url.removesuffix("/v1"), "completions")
        assert (
            command(
                "gate", BASE, CANDIDATE, ENTRY, "--logprobs", "--max-divergence", "0.01"
            )
            == 1
        ), command.err
    assert (
        "the candidate differs from the base by more than both from themselves at 4k ("
        in command.out
    )
    assert [difference["length"] for difference in read()["differences"]] == [4096]
    verdicts = {part["part"]: part["verdict"] for part in read()["parts"]}
    assert verdicts["4k 10 %"] == verdicts["4k 30 %"] == "undecided"
    assert verdicts["4k 90 %"] == "worse"
    # Both read the base's answers. What the candidate writes is compared with what it reads.
    assert [
        sum(len(prompt) > 1000 for prompt in side.answered) for side in (base, server)
    ] == [
        8 + 6,
        8,
    ]


def test_the_bases_own_noise_is_subtracted(command: Command) -> None:
    """An equal pair that is not deterministic is not called worse, although its divergence is above the margin; the base
    reads all questions twice. A candidate that is worse by more than the noise is found."""
    chance = Random(0)

    def noisy(text: str) -> tuple[list[str], list[float]]:
        tokens, logprobs = copying(text)
        return tokens, [
            math.log(min(math.exp(value) * chance.uniform(0.3, 1.05), 0.99))
            for value in logprobs
        ]

    def worse(text: str) -> tuple[list[str], list[float]]:
        tokens, logprobs = noisy(text)
        return tokens, [value - 2 for value in logprobs]

    with EchoServer("echo", noisy) as server, EchoServer("echo", worse) as other:
        register_server(BASE, server.url.removesuffix("/v1"), "completions")
        register_server(CANDIDATE, server.url.removesuffix("/v1"), "completions")
        options = ("gate", BASE, CANDIDATE, ENTRY, "--logprobs", "-m", "9")
        assert command(*options) == 3, command.err
        result = read()
        assert result["requests"] == 9 * 11
        assert max(part["noise"] for part in result["parts"]) > 0.01
        register_server(CANDIDATE, other.url.removesuffix("/v1"), "completions")
        assert command(*options, "--suite", "worse") == 1, command.err


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
        assert "8 questions, 88 requests: both read each text twice" in command.out
        assert "differs from BASE in 81% of the 8 questions of a length" in command.out
        assert command(*options, "-m", "8") == 3, command.err
        assert command(*options, "--max-divergence", "0") == 1, command.err
        assert (
            "WORSE: CANDIDATE differs from BASE by more than both from themselves. It took 88 requests."
            in command.out
        )
        assert all(0 < part["divergence"]["mean"] < 0.001 for part in read()["parts"])
        calls = len(base.bodies)
        assert command(*options, "--max-divergence", "0") == 1, command.err
        assert len(base.bodies) <= calls + 2  # only the probes
    register_server(CANDIDATE, base.url.removesuffix("/v1"), "completions")
    assert command(*options, "--max-divergence", "0", "--suite", "equal") == 0, (
        command.err
    )
    assert "NO WORSE: no divergence beyond the noise of both was found." in command.out
    assert (
        command(*options, "--max-divergence", "0", "--suite", "few", "-m", "5") == 3
    ), command.err


@pytest.mark.parametrize(
    ("base", "candidate", "is_rare"),
    [(0.1, 0.1, False), (0.1, 0.1, True), (0.1, 0.2, False), (0.0, 0.1, False)],
)
def test_errors_of_any_divergence(base: float, candidate: float, is_rare: bool) -> None:
    """With a limit of 0, equal pairs are called worse in at most 2.5 %, also if one has more noise, or if noise is rare.
    A pair of which one has more noise is not called equal; a shift of all distributions is found."""
    chance = np.random.default_rng(11)

    def draw(
        noise: tuple[float, float], rare: float = 1.0, shift: float = 0.0
    ) -> list[Point]:
        points = []
        for length in (1, 2):
            points += draw_points(
                chance, 12, noise, rare=rare, shift=shift, length=length
            )
        return points

    rare = 0.2 if is_rare else 1.0
    verdicts = [
        decide(draw((base, candidate), rare), [], 0.0).verdict for _ in range(300)
    ]
    assert verdicts.count(Verdict.WORSE) <= 8
    is_equal = base == candidate
    assert (verdicts.count(Verdict.NO_WORSE) > 270) == is_equal
    shifted = [
        decide(draw((base, candidate), shift=0.3), [], 0.0).verdict for _ in range(50)
    ]
    assert shifted.count(Verdict.WORSE) > 40
    few = [point for point in draw((base, base)) if int(point.group) < 4]
    assert decide(few, [], 0.0).verdict is Verdict.UNDECIDED


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
        parts = [
            (part, value)
            for token, value in pairs
            for part in re.findall(r"\d|\D+", token)
        ]
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
            assert (
                command(*options, score.__name__, "--max-divergence", "0") == status
            ), command.err
        assert re.search(line or "", command.out + command.err), (
            command.out + command.err
        )
        assert line or "mainly" not in command.out


def test_the_language_is_named() -> None:
    """A divergence of the questions in one script is named, although no question has two; noise has no kind."""
    chance = np.random.default_rng(2)
    for level, name in ((0.2, "CJK"), (0.0, None)):
        findings = []
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
            findings.append(find_main_kind(rows))
        assert sum((finding and finding.kind) == name for finding in findings) >= 38


def test_a_server_without_them_is_refused(command: Command, base: EchoServer) -> None:
    """A candidate that gives no log-probabilities ends the command before a question is sent; a dry run sends nothing."""
    with EchoServer("none") as server:
        register_server(CANDIDATE, server.url.removesuffix("/v1"), "completions")
        assert (
            command("gate", BASE, CANDIDATE, ENTRY, "--logprobs", "--dry-run") == 0
        ), command.err
        assert (
            "48 questions, 318 requests, and 210 more if BASE is not deterministic"
            in command.out
        )
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
        register_server(
            BASE, base.url.removesuffix("/v1"), "chat" if kind == "both" else kind
        )
        register_server(CANDIDATE, base.url.removesuffix("/v1"), kind)
        monkeypatch.setattr(
            MODEL_NAME_TO_MODEL_METADATA[CANDIDATE],
            "tags",
            [INSTRUCTION_FOLLOWING_MODEL_TAG],
        )
        assert command(*options, "equal") == 0, command.err
        assert "Answers are compared, up to the first token that differs" in command.out
        assert (read("equal")["verdict"], read("equal")["requests"]) == (
            "no_worse",
            48 * 2 + 6 * 2,
        )
        assert [part["part"] for part in read("equal")["parts"]] == ["4k answer"]
        assert len(base.bodies) == 108 + 2  # probes
        register_server(CANDIDATE, other.url.removesuffix("/v1"), kind)
        assert command(*options, "worse", "--max-divergence", "0") == 1, command.out
        assert "8 questions, 32 requests: both answer each twice" in command.out
        assert all(
            ("messages" in body) == (kind != "completions") for body in other.bodies
        )
        (part,) = read("worse")["parts"]
        assert (part["verdict"], part["divergence"]["n"], part["noise"]) == (
            "worse",
            8,
            0,
        )
        assert part["loss"]["mean"] == pytest.approx(math.log(2))


def test_chats_and_completions_are_not_compared(
    command: Command, base: EchoServer
) -> None:
    """A base that gets completions and a candidate that gets chats end the command before anything is sent."""
    register_server(CANDIDATE, base.url.removesuffix("/v1"), "chat")
    assert command("gate", BASE, CANDIDATE, ENTRY, "--logprobs") == 2
    assert (
        "sim/candidate gets chats and sim/base completions; give both the same type"
        in command.err
    )
    assert not base.bodies + base.answered


def test_a_busy_server_is_asked_again(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that fail temporarily are sent again, so one command ends; `--max-retries 0` ends it at the first one."""
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.01")
    calls = 0

    def busy(text: str) -> tuple[list[str], list[float]]:
        nonlocal calls
        calls += 1
        if calls % 5 == 0:
            raise TimeoutError
        return copying(text)

    options = ("gate", BASE, CANDIDATE, ENTRY, "--logprobs", "-m", "4")
    with EchoServer("echo", busy) as server:
        register_server(BASE, server.url.removesuffix("/v1"), "completions")
        register_server(CANDIDATE, server.url.removesuffix("/v1"), "completions")
        assert command(*options, "--max-retries", "0") == 2
        assert "what was compared is kept" in command.err
        assert command(*options) == 3, command.err
        assert read()["requests"] == 4 * 11


def test_a_token_that_differs() -> None:
    """Answers are compared up to the first token that differs, at which both distributions are known."""
    first, same, end = (
        Distribution(text, -0.1, {text: -0.1, other: -3.0})
        for text, other in ((" a", " b"), (" c", " d"), (" e", " f"))
    )
    other = Distribution(" b", -0.2, {" b": -0.2, " a": -1.8})
    assert pair_tokens([same, first, end], [same, other, end]) == [
        (same, same),
        (first, other),
    ]
    assert other.find_logprob(" a") == -1.8
    assert other.find_logprob(" z") == pytest.approx(
        math.log(1 - math.exp(-0.2) - math.exp(-1.8))
    )
    assert divergence(first, other) > 1


def test_max_cost(command: Command, base: EchoServer) -> None:
    """The limit is checked before each question; what was compared is kept, and a larger limit goes on from there."""
    register_server(CANDIDATE, base.url.removesuffix("/v1"), "completions")
    Path("prices.yaml").write_text(
        f"{BASE}: {{input: 1, output: 1}}\n{CANDIDATE}: {{input: 2, output: 1}}\n"
    )
    few = ("-m", "6", "--prices", "prices.yaml")
    options = ("gate", BASE, CANDIDATE, ENTRY, "--logprobs", *few)
    assert command(*options, "--dry-run") == 0, command.err
    (cost,) = map(
        float, re.findall(r"They cost about [$]([0-9]+[.][0-9]+)", command.out)
    )
    assert (
        0.02 < cost < 0.1
    )  # six questions of about 500 tokens with 17 dollars for a million
    # A request is first taken to have a token for each byte.
    assert command(*options, "--max-cost", str(0.6 * cost)) == 2
    assert "--max-cost" in command.err
    assert "what was compared is kept" in command.err
    kept = Path("benchmark_output/gates/gate/logprobs.jsonl").read_text().splitlines()
    assert 0 < len(kept) < 6
    calls = len(base.bodies)
    assert command(*options, "--max-cost", "9") == 3, command.err
    # Both sides read two texts twice. Probes can be kept, too.
    assert 8 * (6 - len(kept)) <= len(base.bodies) - calls <= 8 * (6 - len(kept)) + 2


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
            model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
            for model in models
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
        values = np.array(
            [
                divergence(one, other)
                for one, other in zip(read[0][0], read[1][0], strict=True)
            ]
        )
        assert exact.max() > 0.01
        assert np.all(values <= exact + 1e-4)
        if is_whole:
            np.testing.assert_allclose(values, exact, atol=1e-4)


@pytest.mark.parametrize(
    "cache", [{"backend": "fp8"}, {"backend": "fp9"}, {"nbits": 4}]
)
def test_a_quantized_cache(
    command: Command,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    cache: dict[str, Any],
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
        assert (
            "WORSE: CANDIDATE differs from BASE by more than both from themselves."
            in command.out
        )
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
                "0",
                math.log(p[0]),
                {str(n): math.log(p[n]) for n in np.argsort(-p)[:size]},
            )
            for p in (one, other)
        ]
        assert 0 <= divergence(*told) <= exact + 1e-9
    assert divergence(*told) == pytest.approx(exact, abs=1e-6)
    assert divergence(told[0], told[0]) == pytest.approx(0, abs=1e-12)


def make_points(values: Iterable[float], place: str = "answer") -> list[Point]:
    """Return a point of each question with this divergence."""
    return [
        Point(
            length=None,
            stretch=place,
            group=str(number),
            divergence=value,
            same=1.0,
            loss=0.0,
        )
        for number, value in enumerate(values)
    ]


def verdict_of(values: Iterable[float], margin: float) -> Verdict:
    """Return the verdict on questions with these divergences."""
    return decide(make_points(values), [], margin).verdict


def test_decisions() -> None:
    """Certain differences decide, a few questions never pass, and the told divergence falls with the questions."""
    values = [0.18, 0.2, 0.22, 0.2] * 12
    assert verdict_of(values, 0.05) is Verdict.WORSE
    assert verdict_of(values[:4], 0.05) is Verdict.WORSE
    assert verdict_of(values, 2.0) is Verdict.NO_WORSE
    assert verdict_of(values, 0.2) is Verdict.UNDECIDED
    assert verdict_of(values[:1], 0.05) is Verdict.UNDECIDED
    assert count_fewest() == 40
    assert verdict_of([0.0] * 40, 0.05) is Verdict.NO_WORSE
    assert verdict_of([0.0] * 39, 0.05) is Verdict.UNDECIDED
    divergences = [
        visible_divergence(count, 7, 0.05, 1.0, 0.8) for count in (4, 30, 100)
    ]
    assert divergences[0] > 5 * divergences[1]
    assert divergences[1] > divergences[2] > 0.05
    # Two questions of a skewed divergence often show nothing.
    assert visible_divergence(2, 7, 0.05, 2.0, 0.8) == math.inf


def test_the_table_has_a_row_for_each_part() -> None:
    """Each length and stretch has a row with its name, its questions and its verdict."""
    points = [
        *make_points([0.2] * 48),
        *make_points([0.0] * 48, "90 %"),
    ]
    decision = decide(points, [], 0.05)
    table = parts_table(decision, TEXTS)
    rows = [[row[0].text, row[1].text, row[-1].text] for row in table.rows]
    names = [part.name for part in decision.parts]
    assert len(set(names)) == 2
    assert rows == [
        [name, "48", verdict]
        for name, verdict in zip(names, ("no worse", "worse"), strict=True)
    ]


def test_the_answers_of_the_candidate_count() -> None:
    """Empty, cut and other faulty answers make a candidate worse, or keep it from passing, unless the base's second
    answer has them, too."""
    points = make_points([0.0] * 48)

    def decide_with(
        faults: int, noise: str = "", margin: float = 0.05
    ) -> DivergenceDecision:
        written = [
            Written(None, str(number), "empty" if number < faults else "", noise)
            for number in range(48)
        ]
        return decide(points, written, margin)

    assert decide_with(0).verdict is Verdict.NO_WORSE
    assert decide_with(2).verdict is Verdict.UNDECIDED
    assert decide_with(36).verdict is Verdict.WORSE
    assert decide_with(36).answers[0].faults == {"empty": 36}
    assert decide_with(36, "empty").verdict is Verdict.NO_WORSE
    assert decide_with(36, margin=0.0).verdict is Verdict.WORSE


BROKEN = [name for name in make_candidates(0) if name != "twin"]


@pytest.mark.parametrize("way", [TEXTS, ANSWERS])
@pytest.mark.parametrize("name", ["twin", *BROKEN])
def test_a_broken_candidate_does_not_pass(
    name: str, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates that are broken in a dozen ways never pass, by texts and by answers; an equal one does."""
    monkeypatch.setattr("helm_longctx.apps.gate.distributions.ANSWER_TOKENS", 8)
    points: list[Point] = []
    written: list[Written] = []
    for compared in compare_with_twin(name, 7, way, ROWS):
        points += compared.points
        written += compared.written
    decision = decide(points, written, 0.05)
    assert (decision.verdict is Verdict.NO_WORSE) == (name == "twin"), decision


def test_a_larger_sample_continues_a_smaller_one() -> None:
    """The numbers of questions are about evenly spaced at the beginning of their order, which has each once."""
    for count in (1, 2, 7, 100):
        assert sorted(spread_numbers(count)) == list(range(count))
    assert spread_numbers(8)[:4] == [0, 4, 2, 6]
    assert max(np.diff(sorted(spread_numbers(1000)[:50]))) <= 32


def test_tokens_with_one_text() -> None:
    """If a list names one text twice, the chosen token, or else the most likely one, keeps its log-probability."""
    top = [
        {"token": "?", "logprob": -1.0},
        {"token": "a", "logprob": -2.0},
        {"token": "?", "logprob": -9.0},
    ]
    content = [{"token": "a", "logprob": -2.5, "top_logprobs": top}]
    (row,) = read_distributions({"choices": [{"logprobs": {"content": content}}]})
    assert (row.logprob, dict(row.top)) == (-2.5, {"a": -2.5, "?": -1.0})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ((-0.01, -0.02), "the probabilities of a token sum above 1"),
        ((0.5, -3.0), "a token has no log-probability"),
        ((math.nan, -3.0), "a token has no log-probability"),
        ((-math.inf, -3.0), "a token has no log-probability"),
        ((None, -3.0), "a token has no log-probability"),
        (("-1", -3.0), "a token has no log-probability"),
    ],
)
def test_impossible_log_probabilities(values: tuple[Any, Any], reason: str) -> None:
    """Log-probabilities that no distribution has are a failure of the reply, and are not compared."""
    top = [
        {"token": text, "logprob": value}
        for text, value in zip("ab", values, strict=True)
    ]
    content = [{"token": "a", "logprob": values[0], "top_logprobs": top}]
    with pytest.raises(FailureError, match=reason):
        read_distributions({"choices": [{"logprobs": {"content": content}}]})


def test_disjoint_tokens_are_far_apart() -> None:
    """A candidate that names none of the base's tokens has a large divergence, and the larger, the surer both are."""
    base = Distribution(
        " a", math.log(0.9), {" a": math.log(0.9), " b": math.log(0.05)}
    )
    sure = Distribution(" a", -18.0, {" x": math.log(0.9), " y": math.log(0.01)})
    unsure = Distribution(" a", -18.0, {" x": math.log(0.4), " y": math.log(0.3)})
    missing = Distribution(
        " x", math.log(0.9), {" x": math.log(0.9), " y": math.log(0.01)}
    )
    assert divergence(base, sure) > divergence(base, missing) > 3
    assert divergence(base, unsure) > 1


def test_small_differences() -> None:
    """A difference far below the margin is told with its length, if enough questions are read twice; noise is none."""
    chance = np.random.default_rng(3)
    for noise, small in ((0.0, 1e-5), (0.001, 0.01)):
        rows = [
            Point(
                length=length,
                stretch=depth,
                group=str(number),
                divergence=small * (length > 1) + noise * chance.exponential(),
                same=1.0,
                loss=0.0,
                noise=noise * chance.exponential(),
            )
            for length in (1, 2, 3)
            for number in range(8)
            for depth in ("10 %", "answer")
        ]
        assert list(find_differing_lengths(rows)) == [2, 3]
    once = [row if int(row.group) < 5 else row._replace(noise=None) for row in rows]
    assert not find_differing_lengths(once)


def test_tokens_of_a_part() -> None:
    """Places are counted from the end, so a token before the text moves nothing."""
    assert find_span_tokens(["<s>", "ab", "cd", "ef"], 6, [(0, 1), (3, 6)]) == [
        [1],
        [2, 3],
    ]
