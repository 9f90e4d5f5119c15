"""Certificates decide whether a model loses over length, find out servers, and stand on nothing that was not measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from helm_longctx.apps.certify.answers import Answered, AskedBlock, KeptReply
from helm_longctx.apps.certify.procedure import Ask, LimitReachedError, run
from helm_longctx.apps.certify.search import (
    SEEDS,
    Design,
    KindAnswers,
    LengthTest,
    Search,
    find_shifts,
)
from helm_longctx.apps.certify.sections import (
    describe_name,
    describe_verdict,
    write_certificate,
)
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.results.statistics.sequential import ThresholdDecision
from tests.support.certifying import (
    KINDS,
    SERVERS,
    Curve,
    Server,
    ask_prompts,
    fixed_records,
)
from tests.support.endpoints import SimulatedModel

CLAIM = 1024 * 1024
WINDOW = 32 * 1024
SHORTEST = 4096

DESIGN = Design(CLAIM, SHORTEST, KINDS)

ENDPOINT = {
    "model": "m",
    "made": "today",
    **dict.fromkeys(("address", "versions", "prices", "tokenizer")),
}

LARGEST_TOKENS = 60_000_000


def record_of(ask: Ask, design: Design = DESIGN) -> dict[str, Any]:
    """Return a certificate's data."""
    return run(design, ask).record()


def answer_by(chance: Callable[[AskedBlock], float], random: Random) -> Ask:
    """Return a function that gives right and wrong answers with a chance that depends on the block."""

    def reply(block: AskedBlock) -> KeptReply:
        right = block.has_text and random.random() < chance(block)
        return KeptReply(float(right), sent=round(0.95 * block.length * block.has_text))

    return lambda blocks: [
        Answered(block, [reply(block) for _ in range(block.count)]) for block in blocks
    ]


def note_tokens(ask: Ask, sent: list[int]) -> Ask:
    """Return a function that asks, and adds the tokens of each prompt to a list."""

    def ask_and_note(blocks: Sequence[AskedBlock]) -> list[Answered]:
        every = ask(blocks)
        for answered in every:
            sent.extend(reply.sent for reply in answered.replies)
        return every

    return ask_and_note


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_servers_are_found_out(server: Server) -> None:
    """A certificate of 1m tokens names the effective length, and what the server does, in 4 of 5 cases."""
    curves = [
        Curve(server, WINDOW, Random(f"{server.name} {seed}")) for seed in range(5)
    ]
    assert (
        sum(server.is_found_out(record_of(curve.ask), WINDOW) for curve in curves) >= 4
    )
    assert max(sum(curve.tokens) for curve in curves) < LARGEST_TOKENS / 0.95


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_servers_are_found_out_by_real_prompts(server: Server) -> None:
    """A certificate with prompts of up to 4k tokens, of which the server uses 2k, is right with the tasks' own scores."""
    design = Design(4096, 1024, KINDS, most=40, texts=3, seed=11)
    tokens = list[int]()
    assert server.is_found_out(
        record_of(ask_prompts(SimulatedModel(server.see(2048)), tokens), design), 2048
    )


@pytest.mark.parametrize("score", [0.5, 0.8, 0.98])
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_a_loss_is_decided_for_models_with_any_score(score: float, loss: float) -> None:
    """A flat score is certified, and a loss of 20 points is refused, within 60 million tokens of 1m.

    The answers at both lengths are independent, which is the hardest case. `bench/decisions/certify.py` has the rates;
    here 10 seeds of each show that most are right and few are wrong.
    """
    scores = list[bool | None]()
    largest = 0
    for seed in range(10):
        ask = answer_by(
            lambda block: score - loss * (block.length == CLAIM),
            Random(f"{score} {loss} {seed}"),
        )
        sent = list[int]()
        outcome = run(replace(DESIGN, seed=1000 * seed), note_tokens(ask, sent))
        scores.append(outcome.holds)
        largest = max(largest, sum(sent))
    assert scores.count(loss == 0) >= 7
    assert scores.count(loss != 0) <= 1
    assert largest <= LARGEST_TOKENS


def test_questions_are_paired() -> None:
    """Each question at the claim is asked at the shortest length, and a model that loses only easy questions is found.

    Half of the questions are always right, and half are always wrong, so pairs have hardly a variance. Without pairs, 57
    answers of both halves would not tell a loss of 10 points from none.
    """
    seeds: dict[int, set[int]] = {SHORTEST: set(), CLAIM: set()}

    def chance(block: AskedBlock) -> float:
        seeds[block.length].add(block.seed)
        return float(block.seed % 2)

    record = record_of(answer_by(chance, Random(1)), replace(DESIGN, loss=0.1))
    assert seeds[CLAIM] < seeds[SHORTEST]
    assert all(kind["pairing"] > 0.9 for kind in record["kinds"])
    assert record["holds"] is True
    assert record["lengths"][0]["n"] <= 40


def kind_of(name: str, right: int, design: Design = DESIGN) -> KindAnswers:
    """Return a kind of whose ten answers in each block at the shortest length some are right."""
    kind = KindAnswers(design, name)
    replies = [KeptReply(float(number < right)) for number in range(10)]
    kind.base.answered += [
        Answered(block, replies) for block in kind.base_blocks(range(design.first))
    ]
    return kind


def test_one_text_shows_no_pairing() -> None:
    """The answers about a single text do not show whether texts differ."""
    kind = KindAnswers(DESIGN, "recall")
    block = kind.base_blocks(range(1))[0]
    kind.base.answered.append(Answered(block, [KeptReply(1.0), KeptReply(0.0)]))
    assert kind.pairing == 0.0


def test_kinds_with_similar_means_have_one_expected_score() -> None:
    """Kinds share the mean unless their means have more than 15 % of the variance, so that answers have two values."""
    near, far = (
        [kind_of(name, right) for name, right in zip(KINDS[:2], rights, strict=True)]
        for rights in ((4, 6), (1, 9))
    )
    assert find_shifts(near) == pytest.approx({KINDS[0]: 0.1, KINDS[1]: -0.1})
    assert find_shifts(far) == {KINDS[0]: 0.0, KINDS[1]: 0.0}
    test = LengthTest(DESIGN, CLAIM, near, 57)
    for kind in near:
        test.add(KeptReply(1.0), kind.kind, 10**6)
    assert test.losses == pytest.approx([-0.5, -0.5])


@pytest.mark.parametrize(
    ("kinds", "is_paired", "asks"),
    [(5, False, False), (5, True, True), (2, False, True)],
)
def test_more_questions_at_the_shortest_length(
    kinds: int, is_paired: bool, asks: bool
) -> None:
    """The shortest length gets more questions if questions differ, or if few kinds leave it fewer than the claim has."""

    def chance(block: AskedBlock) -> float:
        return (float(block.seed % 2) if is_paired else 0.9) * (
            block.kind in KINDS[:kinds]
        )

    ask = answer_by(chance, Random(4))
    search = Search(DESIGN)
    for answered in ask(search.next_blocks()):
        search.add(answered)
    assert ({block.length for block in search.next_blocks()} == {SHORTEST}) is asks


@pytest.mark.parametrize(
    ("kinds", "claim", "most"),
    [(5, CLAIM, 57), (2, CLAIM, 55), (1, CLAIM, 54), (2, 8192, 54)],
)
def test_tokens_of_further_questions_are_spared(
    kinds: int, claim: int, most: int
) -> None:
    """What the shortest length asks in addition is left out at the claim, and at most three questions are."""
    search = Search(replace(DESIGN, claim=claim))
    ask = answer_by(lambda block: 0.9 * (block.kind in KINDS[:kinds]), Random(4))
    while (blocks := search.next_blocks()) and not search.tests:
        for answered in ask(blocks):
            search.add(answered)
    assert search.tests[claim].most == most


def test_lengths_of_a_design() -> None:
    """The lengths double up to the claim, which need not be a power of two."""
    assert Design(16384, 4096, ("a",)).lengths == (4096, 8192, 16384)
    assert Design(20000, 4096, ("a",)).lengths == (4096, 8192, 16384, 20000)
    assert Design(8192, 4096, ("a",)).lengths == (4096, 8192)


@pytest.mark.parametrize("claim", [8192, 20000, 1 << 20])
def test_the_lengths_below_the_claim_share_an_error(claim: int) -> None:
    """The claim has the whole error, and the lengths of the longest bisection have as much together."""
    design = Design(claim, 4096, ("a", "b"))
    below = [length for length in design.lengths[1:] if length != claim]
    steps = len(below).bit_length()
    assert design.error_at(claim) == design.error
    assert (
        sum(design.error_at(length) for length in below[:steps]) <= design.error + 1e-12
    )


def test_a_certificate_has_the_same_digest_again() -> None:
    """Equal answers have equal digests, and an answer that differs gives another one. The data are JSON."""
    first, again, other = (
        record_of(Curve(SERVERS[0], WINDOW, Random(seed)).ask) for seed in (1, 1, 2)
    )
    assert first["sha256"] == again["sha256"] != other["sha256"]
    assert (
        json.loads(json.dumps(first))["kinds"][0]["cells"][0]["n"]
        >= DESIGN.first * DESIGN.texts
    )


def test_a_kind_that_cannot_be_measured_is_named(tmp_path: Any) -> None:
    """A certificate that stands on one kind says so in its name, its sentence and its page, and never says `all kinds`."""
    ask = answer_by(lambda block: float(block.kind == "recall"), Random(1))
    record = record_of(ask)
    assert (record["holds"], record["stands_on"], record["all_kinds"]) == (
        True,
        ["recall"],
        False,
    )
    assert describe_name(record) == "recall only"
    verdict = describe_verdict({**record, **ENDPOINT})
    assert "the score of recall is less than 20 points below that at 4k" in verdict
    assert (
        "Not measurable at 4k, and left out: paraphrase, graph, count and conversation."
        in verdict
    )
    assert "all kinds" not in verdict
    write_certificate({**record, **ENDPOINT}, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "(recall only)" in page
    assert verdict in page


def test_all_kinds_are_named_only_if_each_is_decided() -> None:
    """`All kinds` is said if a test of each kind alone decides, for which more questions are asked."""
    mean, share = (
        record_of(
            answer_by(lambda block: 1.0, Random(1)), replace(DESIGN, each_kind=wanted)
        )
        for wanted in (False, True)
    )
    assert (mean["holds"], share["holds"], mean["all_kinds"], share["all_kinds"]) == (
        True,
        True,
        False,
        True,
    )
    assert describe_name(mean) == "the mean of 5 kinds"
    assert "all kinds are effective at this length" in describe_verdict(share)
    assert "all kinds" not in describe_verdict(mean)
    assert mean["prompt_tokens"] < share["prompt_tokens"] / 3


def test_a_kind_that_is_lost_refuses_the_claim() -> None:
    """A claim at which one kind is lost does not hold, though the mean loss over the kinds is less than allowed."""

    def chance(block: AskedBlock) -> float:
        return 0.0 if block.kind == "graph" and block.length > WINDOW else 0.95

    records = [
        record_of(answer_by(chance, Random(seed)), replace(DESIGN, seed=1000 * seed))
        for seed in range(5)
    ]
    assert [record["holds"] for record in records] == [False] * 5
    # The record is JSON, so it can come from a file.
    read = [json.loads(json.dumps(record)) for record in records]
    assert any("graph is lost there" in describe_verdict(record) for record in read)


def test_a_model_that_answers_nothing_is_told_why() -> None:
    """An open certificate says why it is open, and names no length that was never sent as asked."""
    record = record_of(answer_by(lambda block: 0.0, Random(1)))
    assert (record["holds"], record["stands_on"]) == (None, [])
    verdict = describe_verdict(record)
    assert "no kind can be measured at 4k" in verdict
    assert "recall 0, paraphrase 0" in verdict
    assert describe_name(record) == "no kind can be measured"
    assert {cell["length"] for kind in record["kinds"] for cell in kind["cells"]} == {
        SHORTEST
    }


def test_a_failing_server_is_told_apart_from_wrong_answers(tmp_path: Any) -> None:
    """A server whose requests fail has an open certificate with the reason of the failures."""

    def fail(blocks: Sequence[AskedBlock]) -> list[Answered]:
        return [
            Answered(block, [KeptReply(None, "timeout", sent=1)] * block.count)
            for block in blocks
        ]

    record = record_of(fail)
    assert "recall without an answer" in describe_verdict(record)
    assert "(failures: timeout)" in describe_verdict(record)
    write_certificate({**record, **ENDPOINT}, tmp_path / "page.html")
    assert "1m</button>" not in (tmp_path / "page.html").read_text()


def test_refused_lengths_are_not_effective() -> None:
    """A length that the server refuses is not effective, and the largest accepted length is named."""

    def ask(blocks: Sequence[AskedBlock]) -> list[Answered]:
        def reply(block: AskedBlock) -> KeptReply:
            too_long = block.length > WINDOW
            return (
                KeptReply(None, "too_long", refused=True)
                if too_long
                else KeptReply(float(block.has_text), sent=1)
            )

        return [Answered(block, [reply(block)] * block.count) for block in blocks]

    record = record_of(ask, Design(CLAIM, SHORTEST, ("a", "b")))
    assert record["accepted"] == WINDOW
    assert [finding["name"] for finding in record["findings"]] == ["refuses"]
    assert (record["effective"], record["not_effective"]) == (WINDOW, 2 * WINDOW)
    assert "refuses prompts of this length" in describe_verdict(record)


def test_what_is_open_at_the_limit_stays_open() -> None:
    """If the money is spent before the claim is decided, the certificate says so, and keeps what was answered."""
    curve = Curve(SERVERS[0], WINDOW, Random(0))

    def ask(blocks: Sequence[AskedBlock]) -> list[Answered]:
        if any(block.length == CLAIM for block in blocks):
            raise LimitReachedError("the limit is reached", curve.ask(blocks[:2]))
        return curve.ask(blocks)

    record = record_of(ask)
    assert record["stop"] == "the limit is reached"
    assert record["holds"] is None
    assert record["lengths"][0]["n"] == 2
    assert "after 2 answers, which decides nothing" in describe_verdict(record)


@pytest.mark.parametrize("pairing", [0.0, 1.0])
def test_all_questions_have_one_least_value(pairing: float) -> None:
    """The bets rely on a bound that no question passes, and that does not depend on the question that is drawn."""
    random = Random(3)
    search = Search(Design(CLAIM, SHORTEST, ("recall", "graph")))

    def reply(block: AskedBlock) -> list[KeptReply]:
        is_right = [random.random() < 0.7 for _ in range(block.count)]
        if random.random() < pairing:
            is_right = is_right[:1] * block.count
        return [KeptReply(float(right and block.has_text)) for right in is_right]

    while not search.tests and (blocks := search.next_blocks()):
        for block in blocks:
            search.add(Answered(block, reply(block)))
    test = search.tests[CLAIM]
    above, below = test.tests
    for kind, seed in search.order:
        assert test.values(0.0, kind.kind, seed)[0] >= above.least - 1e-9
        assert test.values(1.0, kind.kind, seed)[1] >= below.least - 1e-9


@pytest.mark.parametrize(("answered", "holds"), [(0.97, True), (0.6, None)])
def test_failures_are_no_reason_for_a_certificate(
    answered: float, holds: bool | None
) -> None:
    """Failures count as wrong answers, more than a tenth of them leave the claim open, and a finding counts them."""
    random = Random(2)

    def ask(blocks: Sequence[AskedBlock]) -> list[Answered]:
        answers = []
        for block in blocks:
            is_lost = block.length == CLAIM and random.random() > answered
            reply = (
                KeptReply(None, "timeout")
                if is_lost
                else KeptReply(float(block.has_text), sent=1)
            )
            answers.append(Answered(block, [reply] * block.count))
        return answers

    record = record_of(ask, Design(CLAIM, SHORTEST, ("a", "b")))
    test = record["lengths"][0]
    assert record["holds"] is holds
    assert (
        "fails" in {finding["name"] for finding in record["findings"]}
        or not test["failed"]
    )
    if holds is None:
        assert test["failed"] > 0.1 * test["asked"]
        assert "more than a tenth" in describe_verdict(record)


def test_a_model_whose_wrong_answers_fail_gets_no_certificate() -> None:
    """If a model falls from 95 to 45 % and its wrong answers fail, no answer that arrives shows the loss."""
    random = Random(5)

    def reply(block: AskedBlock) -> KeptReply:
        is_right = random.random() < (0.95 if block.length == SHORTEST else 0.45)
        if block.length > SHORTEST and not is_right and random.random() < 0.95:
            return KeptReply(None, "timeout")
        return KeptReply(float(is_right and block.has_text), sent=1)

    def ask(blocks: Sequence[AskedBlock]) -> list[Answered]:
        return [
            Answered(block, [reply(block) for _ in range(block.count)])
            for block in blocks
        ]

    outcomes = [run(replace(DESIGN, seed=1000 * seed), ask).holds for seed in range(10)]
    assert True not in outcomes


def test_a_search_asks_only_for_what_is_missing() -> None:
    """The same answers in the same order lead to the same questions, so that an interrupted certificate continues."""
    ask = Curve(SERVERS[0], WINDOW, Random(5)).ask
    search = Search(DESIGN)
    other = Search(DESIGN)
    while blocks := search.next_blocks():
        assert other.next_blocks() == blocks
        for answered in ask(blocks):
            search.add(answered)
            other.add(answered)
    assert search.decision is other.decision


def test_the_first_of_two_tests_decides() -> None:
    """If a loss is less than allowed, and certain, the test that needs fewer answers decides; if both need as many, it is open."""
    design = Design(8192, SHORTEST, ("a",), loss=0.5, most=40, texts=1)
    for loss, expected in (
        (0.1, ThresholdDecision.ABOVE),
        (0.2, ThresholdDecision.ABOVE),
        (0.25, ThresholdDecision.OPEN),
        (0.3, ThresholdDecision.BELOW),
    ):
        kind = Search(design).kinds["a"]
        for block in kind.base_blocks(range(6)):
            kind.base.answered.append(Answered(block, [KeptReply(0.8)]))
        test = LengthTest(design, design.claim, [kind], design.most)
        assert test.decision is ThresholdDecision.OPEN
        for _ in range(design.most):
            test.add(KeptReply(0.8 - loss), "a", 1000)
        assert test.decision is expected, loss


def test_the_question_without_a_text_is_not_asked_with_one() -> None:
    """With more questions than seeds, the first questions are asked again, and never the one that was asked without a text."""
    search = Search(Design(8192, SHORTEST, ("a", "b"), most=600, texts=1))
    blocks = search.next_blocks()
    without_text = {block.seed for block in blocks if not block.has_text}
    for answered in answer_by(lambda block: 1.0, Random(1))(blocks):
        search.add(answered)
    for kind in search.measurable_kinds:
        seeds = [seed for drawn_kind, seed in search.order if drawn_kind is kind]
        assert len(seeds) > SEEDS
        assert seeds == [
            kind.question(position % (len(set(seeds))))
            for position in range(len(seeds))
        ]
        assert len(set(seeds)) == SEEDS - 1
        assert not without_text & set(seeds)


@pytest.mark.parametrize(
    ("guessed", "is_measured"), [(0.0, True), (0.3, True), (0.7, False)]
)
def test_a_kind_that_is_guessed_without_its_text_cannot_be_measured(
    guessed: float, is_measured: bool
) -> None:
    """A kind is measured only if its score is above that of the model without texts, by more than the allowed loss."""

    def answer(blocks: Sequence[AskedBlock]) -> list[Answered]:
        return [
            Answered(
                block, [_guess(random, block, guessed) for _ in range(block.count)]
            )
            for block in blocks
        ]

    random = Random(2)
    kinds = {
        kind["name"]: kind
        for kind in record_of(answer, replace(DESIGN, claim=8192, most=20))["kinds"]
    }
    assert kinds["recall"]["floor"] == pytest.approx(guessed, abs=0.15)
    assert kinds["recall"]["is_measurable"] is is_measured


def _guess(random: Random, block: AskedBlock, guessed: float) -> KeptReply:
    is_recall = block.kind == "recall"
    return KeptReply(
        float(random.random() < (0.9 if block.has_text else guessed * is_recall)),
        sent=block.length,
    )


@pytest.mark.parametrize(
    ("rights", "guesses", "is_measurable"),
    # The mean of the third case is less than 40 points above the floor, and the lower end of the last one less than 20.
    [
        ([7, 8] * 6, 3, True),
        ([8] * 12, 2, True),
        ([7, 8] * 6, 4, False),
        ([8] * 12, 3, False),
    ],
)
def test_both_distances_to_the_floor_count(
    rights: Sequence[int], guesses: int, is_measurable: bool
) -> None:
    """A kind needs a mean that is far above its floor, and an interval that is above it by the allowed loss."""
    kind = KindAnswers(DESIGN, KINDS[0])
    for block, right in zip(kind.base_blocks(range(DESIGN.first)), rights, strict=True):
        kind.base.answered.append(
            Answered(block, [KeptReply(float(number < right)) for number in range(10)])
        )
    empty = AskedBlock(KINDS[0], SHORTEST, kind.question(SEEDS - 1), 10, has_text=False)
    kind.without_text.append(
        Answered(empty, [KeptReply(float(number < guesses)) for number in range(10)])
    )
    assert kind.is_measurable is is_measurable


def test_a_kind_without_an_answer_has_an_interval_of_no_question() -> None:
    """Without an answer at the shortest length nothing is known of the score, and the kind cannot be measured."""
    kind = KindAnswers(DESIGN, KINDS[0])
    assert kind.base_interval == Interval(0.0, 0.0, 1.0, 0)
    assert not kind.is_measurable


def test_a_constant_answer_is_a_floor() -> None:
    """The floor is the best answer that needs no text: the model's own guess, or a baseline that says always the same."""
    design = replace(DESIGN, claim=8192, most=20)

    def answer(blocks: Sequence[AskedBlock]) -> list[Answered]:
        reply = KeptReply(1.0, sent=100, floors={"null": 0.85, "lexical": 0.0})
        return [
            Answered(block, [reply if block.has_text else KeptReply(0.0)] * block.count)
            for block in blocks
        ]

    kinds = record_of(answer, design)["kinds"]
    assert {kind["floor"] for kind in kinds} == {0.85}
    assert not any(kind["is_measurable"] for kind in kinds)


def test_certificates_of_fixed_draws() -> None:
    """Certificates about fixed draws say what they said: each decision, count, interval, finding and digest.

    `python -m tests.golden_makers certificates` rewrites them after a change that is meant.
    """
    golden = json.loads(
        Path(__file__).with_name("golden.json").read_text(encoding="utf-8")
    )
    records = json.loads(json.dumps(fixed_records()))
    assert [*records] == [*golden]
    for name, record in records.items():
        flat, expected = (dict(_leaves(fields)) for fields in (record, golden[name]))
        assert flat.keys() == expected.keys(), name
        different = {
            key: (value, expected[key])
            for key, value in flat.items()
            if value != pytest.approx(expected[key])
        }
        assert not different, name


def _leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of JSON data with its path."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _leaves(value, f"{path}/{key}")
    else:
        yield path, data


def test_a_kind_with_little_above_the_floor_cannot_be_measured() -> None:
    """A search for words that has a third of a kind at 4k, and keeps a part of it, gets no certificate; a model with half can."""
    design = replace(DESIGN, claim=8192)
    count = 0
    for seed in range(8):
        third = run(design, answer_by(lambda block: 0.3, Random(seed)))
        assert third.search.measurable_kinds == []
        assert third.holds is None
        half = run(design, answer_by(lambda block: 0.5, Random(seed)))
        count += len(half.search.measurable_kinds)
    assert count >= 38
