"""Fabricate regular and odd replies of a judge, which are the same on every machine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

VALUES = (
    "0", "1", "2", "3", "1.5", "-1", "-0.0", "true", "false", "null", '"1"', '"2.0"', '"good"', '""', "NaN", "Infinity",
    "-Infinity", "1e999", "1e308", "5e-324", "1" + "0" * 400, "9" * 5000, "[]", "[1]", "01", "+1", "1,5", "1/3", "0x1", "٣",
)  # fmt: skip
"""Texts in place of the numbers that the judge is asked for."""

SETTINGS = (
    "{}", "Reasoning first.\n{}", "{}\nThat is all.", "```json\n{}\n```", "```\n{}\n```", "```json\n{}\n```\nDone. {{x}}",
    "```JSON\n{}\n```", "```json{}``` {{", "**{}**", "{{}} {}", "{} {{}}", "{} {{oops}}", "[{}]", "[{}, {}]",
    '{{"scores": {}}}', '```json\n{{"scores": {}}}\n```', "{}{}", "{}}}", "{{{}", "\ufeff{}", "评分：{}。", "{}\x00", "😀{}\u2028",
    '{{"a": 1}}\n{}', '{}\n{{"a": 1}}', '"{}"', "a {{ b {} c }} d", "```json\n{}\n```\n```json\n[1]\n``` {{", "<think>{{</think>{}",
    "```json\n5\n``` {{x}} {}", "{{x}} ```json\nnull\n``` {{{}", 'x "{{" {}', "{}\n" * 40,
)  # fmt: skip
"""Texts around a verdict."""

WHOLE = (None, "", " ", "\n", "{}", "{", "}", "}{", "{}{}", "null", "[]", "7", "fluency: 1, correctness: 3", '"{}"', "{null}",
         "```json```", "```json {} ```", "{x} ```json [1] ```", '{x} ```json "recall" ```', "{x} ```json null ```",
         '{x} ```json {"fluency": {"correctness": 1}} ```', '{"fluency": ' + "[" * 3000 + "}", '{"fluency": ' * 200 + "1}",
         "I'm sorry, but I can't judge this.", "\ud83d")  # fmt: skip
"""Replies without a verdict."""

LAST = 150
"""The number of replies that are drawn at random, which are the last ones."""


@dataclass(frozen=True)
class Judged:
    """Three replies on a summary, and the number of key points that it should have."""

    fluency: str | None
    recall: str | None
    precision: str | None
    keypoints: int


def verdict(**values: str) -> str:
    """Return a verdict as JSON whose keys are in the given order."""
    return "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"


def settled(setting: str, text: str) -> str:
    """Return a text in which a verdict stands in its setting."""
    return setting.format(
        *[text] * setting.replace("{{", "").replace("}}", "").count("{}")
    )


def answer_replies() -> list[str | None]:
    """Return a judge's replies on answers."""
    replies = [
        verdict(fluency=value, correctness=other)
        for value in VALUES
        for other in ("0", "2")
    ]
    replies += [verdict(fluency="1", correctness=value) for value in VALUES]
    replies += [
        settled(setting, verdict(fluency="1", correctness="3")) for setting in SETTINGS
    ]
    replies += [
        verdict(fluency="1"), verdict(correctness="2"), verdict(Fluency="1", Correctness="2"), '{"fluency": 1, "correctness": 2,}',
        verdict(correctness="2", fluency="1", why='"a } brace"'), verdict(why='"{"', fluency="1", correctness="1"),
        "{'fluency': 1, 'correctness': 2}", '{"fluency": 1, "fluency": 0, "correctness": 3}', '{\n "fluency" : 1 ,\n\t"correctness":\r\n2}',
        '{"fluency": 1, "correctness": 2', '{“fluency”: 1, “correctness”: 2}', '{"flu\\u0065ncy": 1, "correctness": 2}',
        '{"fluency": 1, // none\n"correctness": 2}', '{"fluency": 1 "correctness": 2}', '{"fluency": 1.0, "correctness": 3.0}',
    ]  # fmt: skip
    return [*replies, *WHOLE, *_random_answers(random.Random(41))]


def _random_answers(rng: random.Random) -> Iterator[str]:
    for _ in range(LAST):
        text = verdict(
            fluency=rng.choice(VALUES[:9]), correctness=rng.choice(VALUES[:9])
        )
        yield "".join(
            settled(rng.choice(SETTINGS), text) for _ in range(rng.randint(1, 2))
        )


def summary_replies() -> list[Judged]:
    """Return a judge's replies on summaries."""
    fluency = verdict(fluency="1")
    recall = verdict(recall="3")
    precision = verdict(precision="5", sentence_count="7")
    cases = [Judged(verdict(fluency=value), recall, precision, 4) for value in VALUES]
    cases += [
        Judged(verdict(fluency=value), verdict(recall="0"), precision, 0)
        for value in VALUES
    ]
    cases += [
        Judged(
            verdict(fluency=value),
            verdict(recall="0"),
            verdict(precision="0", sentence_count="1"),
            4,
        )
        for value in VALUES
    ]
    cases += [
        Judged(fluency, verdict(recall=value), precision, points)
        for value in VALUES
        for points in (0, 4)
    ]
    cases += [
        Judged(fluency, recall, verdict(precision=value, sentence_count=count), 4)
        for value in VALUES
        for count in ("0", "2")
    ]
    cases += [
        Judged(fluency, recall, verdict(precision="1", sentence_count=value), 4)
        for value in VALUES
    ]
    for setting in SETTINGS:
        around = [settled(setting, text) for text in (fluency, recall, precision)]
        cases += [
            Judged(around[0], recall, precision, 4),
            Judged(fluency, around[1], precision, 4),
        ]
        cases += [Judged(fluency, recall, around[2], 4), Judged(*around, 4)]
    for reply in WHOLE:
        cases += [
            Judged(reply, recall, precision, 4),
            Judged(fluency, reply, precision, 4),
            Judged(fluency, recall, reply, 4),
        ]
    cases += [
        Judged(fluency, recall, verdict(precision="1"), 4),
        Judged(fluency, recall, verdict(sentence_count="0"), 4),
    ]
    return [*cases, *_random_summaries(random.Random(42))]


def _random_summaries(rng: random.Random) -> Iterator[Judged]:
    for _ in range(LAST):
        counts = [str(rng.choice((0, 0, 1, 2, 5, 9, 12, -1, 2.5))) for _ in range(3)]
        texts = (
            verdict(fluency=rng.choice(("0", "1", "1", "true"))),
            verdict(recall=counts[0], supported='"1, 2"'),
            verdict(precision=counts[1], sentence_count=counts[2]),
        )
        yield Judged(
            *(settled(rng.choice(SETTINGS), text) for text in texts), rng.randint(0, 6)
        )
