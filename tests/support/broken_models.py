"""A language model that is a table of chances, and candidates that are broken in a dozen ways.

The next token depends on the last two. A side of a comparison is a callable that answers the requests of `gate
--logprobs` as a client does: it writes answers, tells the distributions of what it writes, and reads given texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from random import Random

import numpy as np
from helm.common.request import GeneratedOutput, Request, RequestResult

from helm_longctx.apps.gate.distributions import (
    ANSWERS,
    Asked,
    Compared,
    Way,
    compare,
)
from helm_longctx.apps.gate.divergences import count_twice
from helm_longctx.models.results import add_facts
from helm_longctx.models.scoring import AnswerRequest, SpanRequest
from helm_longctx.tasks.logprobs import Distribution

END = "<|end|>"
WORDS = [
    f" {first}{second}"
    for first in ("ba", "ke", "lo", "mi", "nu")
    for second in "dfgklmnt"
]
FOREIGN = {word: f" {word[1:].upper()}o" for word in WORDS}
GARBAGE = [" zq", " ws", " xr", " qv", " jx", " vk"]

Row = tuple[list[str], np.ndarray]
"""Tokens, and their log-probabilities."""


def _hash(*parts: object) -> int:
    text = "\0".join(map(str, parts))
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest(), "big")


class TableModel:
    """A model whose distribution after two tokens is random but fixed.

    Args:
        seed: the number of the model.
        noise: standard deviation of what is added to its logits, as a rounding of weights does.
        stride: how far apart the tokens are that it looks at; 1 for a right model.
    """

    def __init__(self, seed: int, noise: float = 0.0, stride: int = 1):
        self.seed = seed
        self.noise = noise
        self.stride = stride
        self._rows: dict[tuple[str, ...], Row] = {}

    def predict(self, tokens: Sequence[str]) -> Row:
        """Return the distribution after tokens."""
        context = tuple(tokens[-1 :: -self.stride][:2])
        if context not in self._rows:
            chance = np.random.default_rng(_hash(self.seed, *context))
            logits = chance.normal(0, 2.5, len(WORDS) + 1)
            logits += self.noise * np.random.default_rng(
                _hash("noise", *context)
            ).normal(0, 1, len(logits))
            self._rows[context] = [*WORDS, END], logits - np.logaddexp.reduce(logits)
        return self._rows[context]


@dataclass
class Side:
    """One side of a comparison.

    Args:
        model: what it reads and writes with.
        most: the most tokens of an answer.
        edit: (question, tokens of the answer) → the tokens that it writes.
        words: other texts for the tokens that it predicts.
        breaks_start: whether it begins the answers to half of the questions as another model does.
        temperature: of the tokens that it writes; 0 for the most likely ones.
        swaps: whether it tells the log-probabilities of another text.
    """

    model: TableModel
    most: int = 8
    edit: Callable[[str, list[str]], list[str]] | None = None
    words: dict[str, str] | None = None
    breaks_start: bool = False
    temperature: float = 0.0
    swaps: bool = False

    def __call__(self, request: Request) -> RequestResult:
        """Return the result of a request."""
        if isinstance(request, SpanRequest):
            text = f"{request.prompt[::-1]}" if self.swaps else request.prompt
            parts = tuple(tuple(self._read(text, span)) for span in request.spans)
            return add_facts(_result(""), distributions=parts)
        tokens, rows = self._write(request.prompt)
        if not isinstance(request, AnswerRequest):
            return _result("".join(tokens))
        if self.swaps:
            others = (self._write(request.prompt + word)[1] for word in WORDS)
            rows = next(other for other in others if other) if tokens else []
        return add_facts(_result("".join(tokens)), distributions=(tuple(rows),))

    def _write(self, prompt: str) -> tuple[list[str], list[Distribution]]:
        chance = Random(_hash("write", self.model.seed, prompt))
        before = _split(prompt)
        written: list[str] = []
        while len(written) < self.most:
            token = self._choose(prompt, [*before, *written], chance)
            if token == END:
                break
            written.append(token)
        tokens = [self._say(token) for token in written]
        if self.edit:
            tokens = self.edit(prompt, tokens)
        rows = [
            self._tell(prompt, [*before, *tokens[:number]], token)
            for number, token in enumerate(tokens)
        ]
        return tokens, rows

    def _choose(self, prompt: str, tokens: list[str], chance: Random) -> str:
        names, logprobs = self._predict(prompt, tokens)
        if not self.temperature:
            return names[int(logprobs.argmax())]
        weights = np.exp(logprobs / self.temperature)
        return chance.choices(names, weights.tolist())[0]

    def _predict(self, prompt: str, tokens: list[str]) -> Row:
        if (
            self.breaks_start
            and len(tokens) == len(_split(prompt))
            and _hash(prompt) % 2
        ):
            return TableModel(self.model.seed + 99).predict(tokens)
        return self.model.predict(tokens)

    def _say(self, token: str) -> str:
        return (self.words or {}).get(token, token)

    def _tell(self, prompt: str, before: list[str], token: str) -> Distribution:
        names, logprobs = self._predict(prompt, before)
        said: dict[str, float] = {}
        for position in np.argsort(-logprobs):
            said.setdefault(self._say(names[position]), float(logprobs[position]))
        top = dict(list(said.items())[:5])
        return Distribution(
            token, said.get(token, -18.0), {token: said.get(token, -18.0), **top}
        )

    def _read(self, text: str, span: tuple[int, int]) -> list[Distribution]:
        distributions = []
        before: list[str] = []
        end = 0
        question = text[: span[0]]
        for token in _split(text):
            end += len(token)
            if max(span[0], end - len(token)) < min(span[1], end) and before:
                distributions.append(self._tell(question, before, token))
            before.append(token)
        return distributions


def _split(text: str) -> list[str]:
    return re.findall(r"\s?\S+|\s", text)


def _result(text: str) -> RequestResult:
    return RequestResult(
        True, [], [GeneratedOutput(text, 0.0, [], {"reason": "stop"})], False
    )


def _swap_answer(side: Side) -> Callable[[str, list[str]], list[str]]:
    other = replace(side, edit=None)

    def swap(prompt: str, tokens: list[str]) -> list[str]:
        return other._write(" ".join(reversed(prompt.split(" "))))[0]

    return swap


def make_candidates(seed: int) -> dict[str, Side]:
    """Return the equal candidate, and the broken ones by their faults."""
    twin = Side(TableModel(seed))
    garbage = {
        word: GARBAGE[number % len(GARBAGE)]
        for number, word in enumerate([*WORDS, END])
    }
    return {
        "twin": twin,
        "garbage": replace(twin, words=garbage),
        "log-probabilities of another text": replace(twin, swaps=True),
        "half of the answers begin wrong": replace(twin, breaks_start=True),
        "three of four answers are empty": replace(
            twin, edit=lambda prompt, tokens: tokens if _hash(prompt) % 4 == 0 else []
        ),
        "answers are repeated": replace(twin, edit=lambda prompt, tokens: tokens * 2),
        "answers are cut": replace(twin, edit=lambda prompt, tokens: tokens[:2]),
        "another language": replace(twin, words=FOREIGN),
        "swapped answers": replace(twin, edit=_swap_answer(twin)),
        "temperature 2": replace(twin, temperature=2.0),
        "rounded weights": Side(TableModel(seed, noise=1.0)),
        "positions are scaled": Side(TableModel(seed, stride=2)),
        "answers of another model": Side(TableModel(seed + 1)),
    }


def make_questions(seed: int, count: int) -> list[Asked]:
    """Return questions about random words."""
    chance = Random(seed)
    return [
        Asked(
            length=None,
            prompt="".join(chance.choices(WORDS, k=12)).strip(),
            gold="".join(chance.choices(WORDS, k=3)).strip(),
            group=str(number),
        )
        for number in range(count)
    ]


def compare_with_twin(
    name: str, seed: int, way: Way, questions: int
) -> Iterator[Compared]:
    """Yield what the gate compares of each question to a base and to one of its `make_candidates`.

    Args:
        name: the candidate.
        way: whether answers or given texts are compared.
    """
    candidates = make_candidates(seed)
    sides = (candidates["twin"], candidates[name])
    for number, question in enumerate(make_questions(seed, questions)):
        yield compare(
            question._replace(messages=() if way is ANSWERS else None),
            sides,
            ("base", "candidate"),
            way,
            is_twice=number < count_twice(1),
            is_base_first=number % 2 == 0,
        )
