"""Makes the effective-context file of a certificate."""

from __future__ import annotations

from datetime import date

from helm_longctx._version import VERSION
from helm_longctx.apps.certify.sections import CertificateRecord
from helm_longctx.documents.numbers import drop_nan
from helm_longctx.results.effective_context import (
    CertifiedLength,
    EffectiveContext,
    MeasuredLength,
    MeasuredTask,
)
from helm_longctx.results.statistics.level import LEVEL

_DECISIONS = {"above": True, "below": False, "open": None}


def make_effective_context(
    record: CertificateRecord,
    deployment: str,
    today: date,
) -> EffectiveContext:
    """Return what a certificate measured. The kinds stand as tasks, with the lengths that were sent."""
    design = record["design"]
    tasks = []
    for kind in record["kinds"]:
        lengths = []
        for cell in kind["cells"]:
            if not cell["n"]:
                continue
            is_shortest = cell["length"] == design["shortest"]
            lengths.append(
                MeasuredLength(
                    length=cell["length"],
                    score=cell["mean"],
                    low=drop_nan(cell["low"]),
                    high=drop_nan(cell["high"]),
                    level=LEVEL,
                    questions=cell["n"],
                    failed=sum(cell["failures"].values()),
                    is_effective=True if is_shortest else _DECISIONS[cell["decision"]],
                    caveats=[],
                    measured_on=today,
                )
            )
        points = f"{100 * design['loss']:g} points"
        tasks.append(
            MeasuredTask(
                task=f"certify/{kind['name']}",
                protocol=f"helm-longctx certify, format {record['format']}",
                unit="tokens of the prompt, about",
                rule=f"less than {points} below the score at the shortest length",
                effective_tokens=kind["effective"],
                lengths=lengths,
            )
        )
    return EffectiveContext(
        model=deployment,
        made_by=f"helm-longctx {VERSION}",
        certificate=CertifiedLength(
            claim=record["claim"],
            holds=record["holds"],
            effective_tokens=record["effective"],
            not_effective_tokens=record["not_effective"],
            error=design["error"],
            stands_on=record["stands_on"],
        ),
        tasks=tasks,
    )
