"""Asks the probes about what is left of a transcript, and scores the answers: by rules, or by a judge."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import orjson

from helm_longctx.apps.compaction.asking import (
    AskedModel,
    ProbeReply,
    add_dollars,
    name_of,
)
from helm_longctx.apps.compaction.probes import Probe, squeeze
from helm_longctx.judging.judge import JudgeRequest, make_judge
from helm_longctx.models.baselines.lexical import words
from helm_longctx.runs.journal import KeptValues

_ANSWER_TOKENS = 80
"""The output budget of the answer to a probe."""

_VERDICT_TOKENS = 200
"""The output budget of a verdict."""

UNKNOWN = "unknown"
"""What a model answers if what is left does not say it."""

_ASK = (
    "Answer the questions below about the work of an agent for its user. {source}"
    " Write the answer to each question on a"
    " line of its own that begins with its number and a point. An answer is a few"
    " words. Copy names, numbers, paths and"
    f" identifiers word for word. If you do not know an answer, write: {UNKNOWN}\n\n{{questions}}"
)
_SOURCE = "Use only the transcript above, of which parts may be missing or shortened."
_NO_SOURCE = "You do not have the transcript of this work."

_JUDGE = (
    "A question has a known answer. Decide whether a reply gives the same answer."
    " Other words are right if they say the"
    " same. A reply is wrong if it lacks an essential part of the answer, contradicts"
    " it, or names several different"
    ' answers. Write a JSON object with the only field "right": true or'
    " false.\n\nQuestion: {question}\nKnown answer:"
    " {answer}\nReply: {reply}"
)

_SENTENCE_ENDS = re.compile(r"\n|(?<=[.!?]) ")
_LONGEST_LINE = 400
"""What the extractive reader copies, and its most characters."""

_NUMBERED = re.compile(
    r"^\W{0,3}(\d{1,3})\s?[.):]\W{0,3}\s(.*)$|^\W{0,3}(\d{1,3})\s?[.):]\s*$"
)
_UNKNOWN_REPLY = re.compile(
    r"\W*(?:unknown|not (?:known|stated|in (?:the )?(?:context|transcript))|i (?:do not|don't) know)\W*",
    re.IGNORECASE,
)


class ScoreState(Enum):
    """What became of a probe."""

    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    FAILED = "failed"


@dataclass(frozen=True)
class Given:
    """The answer to a probe.

    Args:
        text: the answer. None without one.
        failure: why there is no answer, or no verdict.
        score: 1 or 0. None if the probe is not answered or not judged: such a probe is in no mean.
        dollars: the price of the answer and of its verdict. None if it is not known.
    """

    text: str | None
    state: ScoreState
    score: float | None
    failure: str = ""
    dollars: float | None = 0.0


class Reader(Protocol):
    """What answers probes."""

    name: str

    def answer(self, context: str, questions: Sequence[str]) -> list[ProbeReply]:
        """Return the answer to each question about a context. An empty context stands for none."""


class ModelReader:
    """A model that answers several questions in one request."""

    def __init__(self, model: AskedModel):
        self.name = model.name
        self._model = model

    def answer(self, context: str, questions: Sequence[str]) -> list[ProbeReply]:
        """Send the context with the questions after it, so that a provider's cache can have the context."""
        prompt = question_prompt(questions, bool(context))
        if context:
            prompt = f"<transcript>\n{context}\n</transcript>\n\n{prompt}"
        return split_reply(self._model.ask(prompt, answer_budget(questions)), questions)


def question_prompt(questions: Sequence[str], has_context: bool) -> str:
    """Return the part of a prompt after the transcript."""
    numbered = []
    for number, text in enumerate(questions, 1):
        numbered.append(f"{number}. {text}")
    source = _SOURCE if has_context else _NO_SOURCE
    return _ASK.format(source=source, questions="\n".join(numbered))


def answer_budget(questions: Sequence[str]) -> int:
    """Return the output budget of the answers to questions."""
    return _ANSWER_TOKENS * len(questions)


def split_reply(reply: ProbeReply, questions: Sequence[str]) -> list[ProbeReply]:
    """Return the answers in a reply. A question whose number is missing has none.

    The price of the request is shared among the questions.
    """
    count = len(questions)
    share = None if reply.dollars is None else reply.dollars / count
    if reply.text is None:
        return [ProbeReply(None, reply.failure, dollars=share)] * count
    answers: dict[int, list[str]] = {}
    expected = 1
    for line in reply.text.splitlines():
        match = _NUMBERED.match(line)
        number = int(match[1] or match[3]) if match else 0
        # A list within an answer starts again with 1.
        if match and expected <= number <= count:
            answers[number] = [match[2] or ""]
            expected = number + 1
        elif expected > 1:
            answers[expected - 1].append(line)
    if not answers and count == 1:
        answers[1] = [reply.text]
    replies = []
    for number in range(1, count + 1):
        text = "\n".join(answers.get(number, ())).strip()
        # The last answer of a cut reply can be only its beginning.
        is_open = reply.is_cut and number == expected - 1
        if not text or is_open:
            what = "the reply was cut" if reply.is_cut else "the reply has no answer"
            replies.append(ProbeReply(None, what, dollars=share))
        else:
            replies.append(ProbeReply(text, dollars=share))
    return replies


class ExtractiveReader:
    """The reader without a model: it copies the sentence or line that shares most words with the question.

    It understands nothing, always answers the same, and costs nothing. It can only find what still stands word for word.
    """

    name = "extractive reader"

    def answer(self, context: str, questions: Sequence[str]) -> list[ProbeReply]:
        """Return the best sentence for each question; without one `unknown`."""
        sentences = _Sentences(context)
        return [
            ProbeReply(sentences.find(question) or UNKNOWN) for question in questions
        ]


class _Sentences:
    """The sentences and lines of a text, by their words."""

    def __init__(self, text: str):
        self._texts = _SENTENCE_ENDS.split(text)
        self._numbers: dict[str, list[int]] = {}
        for number, sentence in enumerate(self._texts):
            for word in set(words(sentence)):
                self._numbers.setdefault(word, []).append(number)

    def find(self, question: str) -> str:
        """Return the beginning of the best sentence; empty if none shares a word. Rare words weigh more, as in BM25."""
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words(question)):
            numbers = self._numbers.get(word, [])
            if word in _COMMON or not numbers:
                continue
            others = len(self._texts) - len(numbers)
            weight = math.log1p((others + 0.5) / (len(numbers) + 0.5))
            for number in numbers:
                scores[number] = scores.get(number, 0.0) + weight
        if not scores:
            return ""
        # Of equal sentences the first one counts.
        best = min(scores, key=lambda number: (-scores[number], number))
        return self._texts[best].strip()[:_LONGEST_LINE]


_COMMON = frozenset(
    words(
        "a an and are at be by comes did do does for from has have how in is it its"
        " must of on or that the this to was were what when where which who why will"
        " with"
    )
)


def is_right(reply: str, answer: str) -> bool:
    """Whether a reply has the answer word for word, apart from white space and upper case."""
    wanted = squeeze(answer).lower().strip(" .,;:!?\"'`")
    if not wanted:
        return False
    pattern = rf"(?<![\w]){re.escape(wanted)}(?![\w])"
    return bool(re.search(pattern, squeeze(reply).lower()))


class JudgeOfProbes:
    """A language model that says whether a reply gives the known answer. Verdicts are kept as replies are."""

    def __init__(self, model: AskedModel, kept: KeptValues):
        self.name = model.name
        self._model = model
        self._kept = kept
        self._judge = make_judge(model.name, model.connect())

    def judge(self, probe: Probe, reply: str) -> tuple[float | None, str, float | None]:
        """Return the score, why there is none, and the price."""
        prompt = judge_prompt(probe, reply)
        name = name_of("judge", self.name, prompt)
        known = self._kept.get(name)
        if known is not None:
            return known["score"], "", known["dollars"]
        request = JudgeRequest(
            prompt,
            _parse_verdict,
            max_tokens=_VERDICT_TOKENS,
            temperature=0.0,
            top_p=1.0,
            seed=None,
            readings=2,
        )
        with self._model.pay(2 * len(prompt.encode()), 2 * _VERDICT_TOKENS) as payment:
            verdict = self._judge.ask(request)
            prices = self._model.prices
            costs = []
            for usage in verdict.usages:
                costs.append(prices.dollars(usage) if prices else None)
            dollars = add_dollars(costs)
            payment.dollars = dollars or 0.0
        if verdict.verdict is None:
            return None, f"no verdict: {verdict.error}", dollars
        score = float(verdict.verdict["right"])
        self._kept.add(name, {"score": score, "dollars": dollars})
        return score, "", dollars


def judge_prompt(probe: Probe, reply: str) -> str:
    """Return the prompt of a judge."""
    return _JUDGE.format(
        question=probe.question,
        answer=probe.answer,
        reply=reply,
    )


def _parse_verdict(text: str) -> Mapping[str, Any] | None:
    match = re.search(r"\{[^{}]*\}", text)
    if match is None:
        return None
    try:
        value = orjson.loads(match[0])
    except orjson.JSONDecodeError:
        return None
    right = value.get("right")
    return {"right": right} if isinstance(right, bool) else None


def score_reply(probe: Probe, reply: ProbeReply, judge: JudgeOfProbes | None) -> Given:
    """Score the reply to a probe. Without an answer, or without a judge that is needed, there is no score."""
    if reply.text is None:
        return Given(None, ScoreState.FAILED, None, reply.failure, reply.dollars)
    if _UNKNOWN_REPLY.fullmatch(reply.text):
        return Given(reply.text, ScoreState.UNKNOWN, 0.0, dollars=reply.dollars)
    if probe.is_exact:
        score: float | None = float(is_right(reply.text, probe.answer))
        failure = ""
        dollars = reply.dollars
    elif judge is None:
        return Given(
            reply.text,
            ScoreState.FAILED,
            None,
            "it needs a judge (--judge)",
            reply.dollars,
        )
    else:
        score, failure, cost = judge.judge(probe, reply.text)
        dollars = add_dollars([reply.dollars, cost])
    if score is None:
        return Given(reply.text, ScoreState.FAILED, None, failure, dollars)
    return Given(
        reply.text, ScoreState.RIGHT if score else ScoreState.WRONG, score, "", dollars
    )
