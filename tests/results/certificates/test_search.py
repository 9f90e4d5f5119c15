"""The search of certificates finds out servers with known curves, with few questions and few errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from helm_longctx.results.certificates.answers import Answered, Block, Reply
from helm_longctx.results.certificates.search import Design
from helm_longctx.runner.certification.procedure import Ask, LimitReachedError, run
from tests.support.certifying import KINDS, SERVERS, Curve, Grid, Server, ask_prompts

CLAIM, WINDOW = 1024 * 1024, 32 * 1024

DESIGN = Design(CLAIM, 4096, KINDS)


def record_of(ask: Ask, design: Design = DESIGN) -> dict[str, Any]:
    """Return a certificate's data."""
    return run(design, ask).record()


def constant(score_at: dict[int, float], random: Random) -> Ask:
    """Return a function that gives right and wrong answers with a chance that depends on the length."""

    def reply(block: Block) -> Reply:
        chance = score_at.get(block.length, 1.0) if block.has_text else 0.0
        return Reply(float(random.random() < chance), sent=block.length)

    return lambda blocks: [Answered(block, [reply(block) for _ in range(block.count)]) for block in blocks]


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_servers_are_found_out(server: Server) -> None:
    """A certificate of 1m tokens names the effective length of each kind, and what the server does, in 4 of 5 cases."""
    curves = [Curve(server, WINDOW, Random(f"{server.name} {seed}")) for seed in range(5)]
    assert sum(server.is_found_out(record_of(curve.ask), WINDOW) for curve in curves) >= 4
    assert max(sum(curve.tokens) for curve in curves) < Grid(DESIGN, 77).tokens / 4


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_servers_are_found_out_by_real_prompts(server: Server) -> None:
    """A certificate with prompts of up to 4k tokens, of which the server uses 2k, is right with the tasks' own scores."""
    design, tokens = Design(4096, 1024, KINDS, seed=11), list[int]()
    assert server.is_found_out(record_of(ask_prompts(server.see(2048), tokens), design), 2048)


def test_lengths_of_a_design() -> None:
    """The lengths double up to the claim, which need not be a power of two."""
    assert Design(16384, 4096, ("a",)).lengths == (4096, 8192, 16384)
    assert Design(20000, 4096, ("a",)).lengths == (4096, 8192, 16384, 20000)
    assert Design(8192, 4096, ("a",)).lengths == (4096, 8192)


@pytest.mark.parametrize("claim", [8192, 20000, 1 << 20])
def test_the_errors_of_a_kind_add_up_to_its_share(claim: int) -> None:
    """The claim and all further lengths of the longest bisection have at most the error of the kind."""
    design = Design(claim, 4096, ("a", "b"))
    errors = [design.error_at(length) for length in design.lengths[1:-1]][: design.most_lengths - 1]
    assert sum(errors) + design.error_at(claim) <= design.error / 2 + 1e-12


def test_errors_are_rare() -> None:
    """If the score at the claim is at the threshold, it is called effective or not in at most 5 % of 100 cases."""
    design, decided = Design(8192, 4096, ("a",), share=0.7), 0
    for seed in range(100):
        record = record_of(constant({8192: 0.7}, Random(seed)), design)
        decided += record["holds"] is not None
    assert decided <= 5


def test_a_certificate_has_the_same_digest_again() -> None:
    """Equal answers have equal digests, and an answer that differs gives another one. The data are JSON."""
    first, again, other = (record_of(Curve(SERVERS[0], WINDOW, Random(seed)).ask) for seed in (1, 1, 2))
    assert first["sha256"] == again["sha256"] != other["sha256"]
    assert json.loads(json.dumps(first))["kinds"][0]["cells"][0]["n"] == DESIGN.first


def test_a_kind_that_the_model_cannot_do_is_left_out() -> None:
    """A kind with the same score without the text is not measurable, and does not decide the claim."""

    def ask(blocks: Sequence[Block]) -> list[Answered]:
        right = {block: float(block.kind == "a" and block.has_text) for block in blocks}
        return [Answered(block, [Reply(right[block], sent=1)] * block.count) for block in blocks]

    record = record_of(ask, Design(8192, 4096, ("a", "b")))
    assert [kind["is_measurable"] for kind in record["kinds"]] == [True, False]
    assert [kind["effective"] for kind in record["kinds"]] == [8192, None]
    assert record["holds"] is True
    assert len(record["kinds"][1]["cells"]) == 1


def test_the_threshold_is_above_the_floor() -> None:
    """The threshold is the floor and the share of what is above it; a constant answer can be the floor."""

    def ask(blocks: Sequence[Block]) -> list[Answered]:
        floors = {"null": 0.5, "lexical": 1.0}
        replies = [Reply(0.9 if block.has_text else 0.2, floors=floors, sent=1) for block in blocks]
        return [Answered(block, [reply] * block.count) for block, reply in zip(blocks, replies, strict=True)]

    (kind,) = record_of(ask, Design(8192, 4096, ("a",)))["kinds"]
    assert kind["floor"] == 0.5
    assert kind["threshold"] == pytest.approx(0.5 + 0.7 * 0.4)
    assert kind["baselines"]["lexical"] == 1


def test_refused_lengths_are_not_effective() -> None:
    """A length that the server refuses is not effective, and the largest accepted length is named."""

    def ask(blocks: Sequence[Block]) -> list[Answered]:
        def reply(block: Block) -> Reply:
            too_long = block.length > WINDOW
            return Reply(None, "too_long", refused=True) if too_long else Reply(float(block.has_text), sent=1)

        return [Answered(block, [reply(block)] * block.count) for block in blocks]

    record = record_of(ask, Design(CLAIM, 4096, ("a", "b")))
    assert record["accepted"] == WINDOW
    assert [finding["name"] for finding in record["findings"]] == ["refuses"]
    assert {(kind["effective"], kind["not_effective"]) for kind in record["kinds"]} == {(WINDOW, 2 * WINDOW)}


def test_what_is_open_at_the_limit_stays_open() -> None:
    """If the money is spent before the claim is decided, the certificate says so, and keeps what was answered."""
    curve = Curve(SERVERS[0], WINDOW, Random(0))

    def ask(blocks: Sequence[Block]) -> list[Answered]:
        if any(block.length == CLAIM for block in blocks):
            first = blocks[0]
            raise LimitReachedError("the limit is reached", [Answered(first, curve.ask([first])[0].replies[:2])])
        return curve.ask(blocks)

    record = record_of(ask)
    assert record["stop"] == "the limit is reached"
    assert record["holds"] is None
    assert [cell["n"] for cell in record["kinds"][0]["cells"]] == [30, 2]
    assert all(kind["undecided"] == [CLAIM] for kind in record["kinds"])
