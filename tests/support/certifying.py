"""Runs certificates against simulated servers without HTTP: with real prompts, or with known curves at any length."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

from helm_longctx.apps.certify.answers import PLACES, Answered, AskedBlock, KeptReply
from helm_longctx.apps.certify.procedure import Ask, run
from helm_longctx.apps.certify.search import Design
from helm_longctx.apps.certify.sections import (
    describe_kinds,
    describe_name,
    describe_totals,
    describe_verdict,
    write_certificate,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks.registry import find_benchmark
from helm_longctx.tasks.task import MAIN_METRIC, Settings
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.support import endpoints
from tests.support.endpoints import SimulatedModel
from tests.support.searching import SearchingModel

KINDS = ("recall", "paraphrase", "graph", "count", "conversation")

SKILL = 0.97
"""Share of right answers about what a server sees."""

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)

Seen = Callable[[float, int], bool]
"""(depth, length) → whether the server uses what stands there."""


@dataclass(frozen=True)
class Server:
    """A simulated server, and what a certificate must say about it.

    Args:
        see: makes the server that reads real prompts, from the window in tokens.
        seen: which parts of a text it uses, by the window.
        findings: the names of the findings, all of them.
        counts_window: whether it counts at most the tokens of its window.
        is_honest: whether the claim holds.
    """

    name: str
    see: Callable[[int], endpoints.See]
    seen: Callable[[int], Seen]
    findings: frozenset[str] = frozenset()
    counts_window: bool = False
    is_honest: bool = False

    def is_found_out(self, record: Mapping[str, Any], window: int) -> bool:
        """Whether a certificate says the truth about the server: its effective length, and what it does."""
        if {
            finding["name"] for finding in record["findings"]
        } != self.findings or record["holds"] is not self.is_honest:
            return False
        return bool(
            record["effective"] == (record["claim"] if self.is_honest else window)
        )


def _within(window: int, seen: Callable[[float, int], bool]) -> Seen:
    return lambda depth, length: length <= window or seen(depth, length)


def _end(window: int) -> Seen:
    return _within(window, lambda depth, length: (1 - depth) * length < window)


SERVERS = (
    Server(
        "honest",
        lambda window: endpoints.honest,
        lambda window: lambda depth, length: True,
        is_honest=True,
    ),
    Server(
        "forgets beyond a length",
        endpoints.forgetful,
        lambda window: _within(window, lambda depth, length: False),
        frozenset({"nothing_used"}),
    ),
    Server(
        "cuts silently",
        endpoints.cutting,
        _end,
        frozenset({"cuts", "end_only"}),
        counts_window=True,
    ),
    Server("uses only the end", endpoints.short_sighted, _end, frozenset({"end_only"})),
    Server(
        "loses the middle",
        endpoints.middle_blind,
        lambda window: _within(window, lambda depth, length: not 0.2 < depth < 0.8),
        frozenset({"middle_lost"}),
    ),
)


def ask_prompts(model: SimulatedModel | SearchingModel, tokens: list[int]) -> Ask:
    """Return a function that asks a simulated model real prompts, and adds their tokens to a list."""
    tasks = {task.name: task for task in find_benchmark("fresh_text").tasks}

    def ask_block(block: AskedBlock) -> Answered:
        task = tasks[block.kind]
        context = "full" if block.has_text else "none"
        settings = Settings(
            block.length,
            seed=block.seed,
            texts=block.texts,
            num_samples=block.count,
            context=context,
        )
        replies = []
        for example in task.load(task, settings, DataRoot.find(".")):
            messages = task.prompt(example).messages
            text, counted = model.answer(messages)
            sent = estimate_tokens(
                "\n".join(message["content"] for message in messages)
            )
            tokens.append(sent)
            scores = task.scores({"prediction": text, "references": example.references})
            places = tuple(
                scores[position] for position in PLACES if position in scores
            )
            replies.append(
                KeptReply(
                    scores[MAIN_METRIC], places=places, sent=sent, counted=counted
                )
            )
        return Answered(block, replies)

    return lambda blocks: [ask_block(block) for block in blocks]


@dataclass
class Curve:
    """Draws scores as the tasks give them for what a server sees, without making prompts.

    Attributes:
        tokens: the tokens that were sent.
    """

    server: Server
    window: int
    random: Random
    tokens: list[int] = field(default_factory=list)

    def ask(self, blocks: Sequence[AskedBlock]) -> list[Answered]:
        """Return a drawn reply for each question of the blocks."""
        return [
            Answered(block, [self._reply(block) for _ in range(block.count)])
            for block in blocks
        ]

    def _reply(self, block: AskedBlock) -> KeptReply:
        self.tokens.append(block.length if block.has_text else 1)
        is_wrong = not block.has_text or self.random.random() > SKILL
        places, score = self.draw(block.kind, block.length, is_wrong)
        counted = (
            min(block.length, self.window)
            if self.server.counts_window
            else block.length
        )
        return KeptReply(score, places=places, sent=block.length, counted=counted)

    def draw(
        self, kind: str, length: int, is_wrong: bool
    ) -> tuple[tuple[float, ...], float]:
        """Return whether each place was found, for exact recall, and the score."""
        seen = self.server.seen(self.window)

        def look(depths: Sequence[float]) -> list[bool]:
            return [not is_wrong and seen(depth, length) for depth in depths]

        draw = self.random.random
        if kind == "recall":
            scores = tuple(map(float, look(DEPTHS)))
            return scores, fmean(scores)
        if kind == "paraphrase":
            return (), float(look([draw()])[0])
        if kind == "graph":
            return (), _prefix(look([draw() for _ in range(3)])) / 3
        if kind == "count":
            number = self.random.randint(4, 9)
            share = fmean(
                look([(position + draw()) / number for position in range(number)])
            )
            return (), (2 * share / (1 + share) + (share == 1)) / 2
        which = self.random.randrange(3)
        return (), float(
            _prefix(look([(position + draw()) / 3 for position in range(3)])) > which
        )


def fixed_records() -> dict[str, dict[str, Any]]:
    """Return what certificates of 64k say, without the single answers, about servers whose scores are drawn with fixed seeds."""
    asks: dict[str, Ask] = {
        server.name: Curve(server, 16384, Random(server.name)).ask for server in SERVERS
    }
    asks.update(
        {
            f"score {score}": _draw_places(score, Random(score))
            for score in (0.5, 0.8, 1.0)
        }
    )
    design = Design(65536, 4096, KINDS, most=24, texts=4, seed=5)
    records = {name: run(design, ask).record() for name, ask in asks.items()}
    records["each kind"] = run(
        replace(design, each_kind=True), _draw_places(0.98, Random(3))
    ).record()
    return {
        name: {key: record[key] for key in record if key != "answers"}
        for name, record in records.items()
    }


def _draw_places(score: float, random: Random) -> Ask:
    """Return a function that finds each place, and answers each question, with the chance of a score, and a half beyond 8k."""

    def reply(block: AskedBlock) -> KeptReply:
        chance = (
            score * block.has_text * (0.5 if block.length > 8192 and score < 0.9 else 1)
        )
        places = tuple(float(random.random() < chance) for _ in PLACES)
        return KeptReply(
            fmean(places),
            places=places if block.kind == "recall" else (),
            sent=block.length,
            dollars=0.5,
        )

    return lambda blocks: [
        Answered(block, [reply(block) for _ in range(block.count)]) for block in blocks
    ]


def _prefix(outcomes: Sequence[bool]) -> int:
    return outcomes.index(False) if False in outcomes else len(outcomes)


_ABOUT = {
    "model": "some/model",
    "address": "http://127.0.0.1:1",
    "made": "2026-01-01",
    "prices": None,
    "tokenizer": None,
    "versions": {"helm-longctx": "1"},
}
"""What the command adds to a record."""


_CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"holds": None},
    {"all_kinds": True},
    {"stands_on": ["recall"]},
)
"""What other certificates say than the known ones."""


def describe_records(records: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what certificates say in words, with the text of their pages, by name.

    Args:
        folder: an existing folder for the pages.
    """
    texts = {}
    for name, record in records.items():
        for change in _CHANGES:
            changed = {**record, **_ABOUT, **change}
            page = folder / "page.html"
            write_certificate(changed, page)
            body = page.read_text(encoding="utf-8").partition("</style>")[2]
            title = f"{name} {json.dumps(change)}"
            texts[title] = {
                "name": describe_name(changed),
                "verdict": describe_verdict(changed),
                "totals": describe_totals(changed),
                "kinds": describe_kinds(changed),
                "page": digest(" ".join(re.sub(r"<[^>]*>", " ", body).split())),
            }
    return texts
