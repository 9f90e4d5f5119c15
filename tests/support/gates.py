"""Gates with known results, and what their pages say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from helm_longctx.apps.gate.answers import AnswerPair, ArmAgreement
from helm_longctx.apps.gate.findings import Finding
from helm_longctx.apps.gate.gate import Gate, GateQuestion
from helm_longctx.apps.gate.sections import explain, gate_sections
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.results.statistics.comparison import Pairs
from helm_longctx.results.statistics.noninferiority import decide_drops
from tests.support.scores import make_score
from tests.support.tables import describe_value


def make_gate(**parts: tuple[int, int, int]) -> Gate:
    """Return a gate whose parts have so many instances on which the candidate is better, worse and equal."""
    pairs: dict[str, Sequence[Pairs]] = {}
    for name, (wins, losses, ties) in parts.items():
        a = [1] * wins + [0] * losses + [1] * ties
        b = [0] * wins + [1] * losses + [1] * ties
        pairs[name] = [Pairs(a, b, range(len(a)), 1.0)]
    drops = decide_drops(
        pairs, 0.05, 0.8, depths=[name for name in pairs if not name.startswith("8")]
    )
    # Of ten answers, one differs.
    answers = [
        AnswerPair(make_score(1.0), make_score(float(number > 0)), ("a", "a"), True)
        for number in range(10)
    ]
    return Gate(
        GateQuestion("base/m", "new/m", 0.05, 0.8, []),
        drops,
        {},
        [],
        [],
        [],
        answers,
        [],
        (),
    )


AGREEMENTS = (
    ArmAgreement(
        part="8k",
        answers=1234,
        equal=0.875,
        equal_tokens=0.91,
        equal_scores=0.95,
        difference=-0.0123,
    ),
    ArmAgreement(
        part="16k",
        answers=7,
        equal=1.0,
        equal_tokens=1.0,
        equal_scores=None,
        difference=None,
    ),
)

PARTS: tuple[dict[str, tuple[int, int, int]], ...] = (
    {"8k": (0, 0, 600)},
    {"8k": (0, 200, 400)},
    {"8k": (0, 0, 20)},
    {"8k": (3, 9, 80), "16k": (0, 0, 600)},
    {"8k": (0, 0, 600), "beginning": (0, 0, 250), "end": (20, 30, 350)},
    {"8k": (300, 10, 300), "16k": (200, 1, 1)},
)
"""How many instances are better, worse and equal with the candidate, by part."""


def describe_gates() -> dict[str, Any]:
    """Return what the pages of gates say, with and without findings and agreements, by the gate's parts."""
    return {str(parts): list(_describe_gate(parts)) for parts in PARTS}


def _describe_gate(parts: dict[str, tuple[int, int, int]]) -> Iterator[Any]:
    plain = make_gate(**parts)
    pairs = []
    for number in range(60):
        about = {"task": "t", "length": 8192}
        base = make_score(0.1 * (number % 7), f"t-{number}", **about)
        candidate = make_score(0.05 * (number % 11), f"t-{number}", **about)
        texts = ("x" * 40 * number, None if number == 5 else f"y\n{number}")
        pairs.append(AnswerPair(base, candidate, texts, number % 2 == 0))
    kinds = ("cut", "refused", "floor", "passing", "unanswered")
    findings = [
        Finding(kind, 1000 * number, f"{kind} was seen.")  # type: ignore[arg-type]
        for number, kind in enumerate(kinds, 1)
    ]
    full = replace(
        plain,
        tasks=plain.parts,
        lengths=AGREEMENTS,
        orders=AGREEMENTS[:1],
        pairs=pairs,
        outside=("other",),
    )
    gates = [plain, full]
    gates += [replace(full, findings=findings[:count]) for count in (2, 5)]
    for gate in gates:
        sections = {}
        for section in gate_sections(gate):
            text = json.dumps(describe_value(section.blocks))
            sections[section.name] = digest(f"{section.about} {text}")[:12]
        yield gate.verdict.name, explain(gate), sections
