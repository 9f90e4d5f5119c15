"""What a comparison costs at most, before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from helm_longctx.apps.compaction.asking import AskedModel, add_dollars
from helm_longctx.apps.compaction.compactors import NOTHING, Compactor
from helm_longctx.apps.compaction.probes import (
    Probe,
    make_prompt,
    output_budget,
    split_parts,
)
from helm_longctx.apps.compaction.scoring import answer_budget
from helm_longctx.apps.compaction.transcripts import Transcript
from helm_longctx.apps.compaction.trial import Arm
from helm_longctx.documents.document import Cell, Column, Table, number_cell
from helm_longctx.documents.numbers import format_count
from helm_longctx.tasks.answer import Usage
from helm_longctx.tasks.token_estimate import estimate_tokens

_QUESTION_TOKENS = 40
_FRAME_TOKENS = 150
"""Estimated tokens of a question, and of the instructions around questions."""

_VERDICT_INPUT = 300
_VERDICT_OUTPUT = 60
"""Estimated tokens of a judge's prompt and verdict."""


@dataclass
class EstimatedStep:
    """Requests of one kind to one model.

    Args:
        model: the model. None for a reader or a program that is no model of ours.
        requests, read, written: the number of requests, and their tokens; None if they are not known.
        dollars: the price. None if it is not known.
    """

    name: str
    model: str
    requests: int | None = 0
    read: int | None = 0
    written: int | None = 0
    dollars: float | None = 0.0

    def add(
        self,
        model: AskedModel | None,
        requests: int,
        read: int,
        written: int,
    ) -> None:
        """Add equal requests, each with so many tokens."""
        self.requests = (self.requests or 0) + requests
        self.read = (self.read or 0) + requests * read
        self.written = (self.written or 0) + requests * written
        if model is None or self.dollars is None:
            return
        if model.prices is None:
            self.dollars = None
            return
        usage = Usage(input_tokens=read, output_tokens=written)
        self.dollars += requests * (model.prices.dollars(usage) or 0.0)


@dataclass(frozen=True)
class CompactionPlan:
    """What is compared.

    Args:
        transcripts: the transcripts.
        keeps: the tokens at the end that are not asked about, by the transcript's name.
        probes: probes that are known. None if they are made.
        count: how many are made for each transcript.
        writer: the model that makes them.
        reader: the model that answers; None for the extractive reader.
        judge: the model that judges.
        compactor_model: the model of `compact` and of a server's compaction.
        together: questions in a request.
    """

    transcripts: Sequence[Transcript]
    keeps: Mapping[str, int]
    arms: Sequence[Arm]
    probes: Sequence[Probe] | None
    count: int
    writer: AskedModel | None
    reader: AskedModel | None
    judge: AskedModel | None
    compactor_model: AskedModel | None
    together: int


def estimate_steps(plan: CompactionPlan) -> list[EstimatedStep]:
    """Return what a plan sends at most, in order. Replies that are kept cost nothing again."""
    steps = []
    counts = {}
    for transcript in plan.transcripts:
        counts[transcript.name] = plan.count
        if plan.probes is not None:
            own = []
            for probe in plan.probes:
                if probe.transcript == transcript.name:
                    own.append(probe)
            counts[transcript.name] = len(own)
    if plan.probes is None:
        steps.append(_estimate_making(plan))
        check = EstimatedStep(
            "check probes with and without the transcript", _name(plan.reader)
        )
        for transcript in plan.transcripts:
            _add_answers(check, plan, plan.count, transcript.tokens)
            _add_answers(check, plan, plan.count, 0)
        steps.append(check)
    for arm in plan.arms:
        steps.append(_estimate_compaction(plan, arm))
        asked = EstimatedStep(f"answers: {arm.name}", _name(plan.reader))
        for transcript in plan.transcripts:
            left = _guess_size(arm.compactor, transcript, plan)
            _add_answers(asked, plan, counts[transcript.name], left)
        steps.append(asked)
    if plan.judge is not None:
        steps.append(_estimate_judging(plan, counts))
    return [step for step in steps if step.requests != 0]


def _name(model: AskedModel | None) -> str:
    return model.name if model else "extractive reader"


def _estimate_making(plan: CompactionPlan) -> EstimatedStep:
    step = EstimatedStep("make probes", plan.writer.name if plan.writer else "")
    for transcript in plan.transcripts:
        end = transcript.find_tail(plan.keeps[transcript.name])
        for part in split_parts(transcript, end, plan.count):
            read = estimate_tokens(make_prompt(transcript, part))
            step.add(plan.writer, 1, read, output_budget(part))
    return step


def _add_answers(
    step: EstimatedStep,
    plan: CompactionPlan,
    probes: int,
    context: int,
) -> None:
    """Add the requests with the questions of a transcript."""
    if plan.reader is None or not probes:
        return
    requests = math.ceil(probes / plan.together)
    size = min(plan.together, probes)
    read = context + _FRAME_TOKENS + size * _QUESTION_TOKENS
    step.add(plan.reader, requests, read, answer_budget([""] * size))


def _guess_size(
    compactor: Compactor,
    transcript: Transcript,
    plan: CompactionPlan,
) -> int:
    keep = plan.keeps[transcript.name]
    return compactor.guess_size(transcript.tokens, keep)


def _estimate_compaction(plan: CompactionPlan, arm: Arm) -> EstimatedStep:
    compactor = arm.compactor
    first = plan.transcripts[0]
    step = EstimatedStep(f"compact: {arm.name}", "")
    if compactor.estimate(first.tokens) is None:
        # The requests of a program are its own.
        step.requests = step.read = step.written = step.dollars = None
        step.model = "its own"
        return step
    for transcript in plan.transcripts:
        left = _guess_size(compactor, transcript, plan)
        # What is left is read again in each further round.
        tokens = transcript.tokens + (arm.rounds - 1) * left
        needed = compactor.estimate(tokens)
        if needed is not None and needed != (0, 0):
            read, written = needed
            step.add(
                plan.compactor_model,
                arm.rounds,
                read // arm.rounds,
                written // arm.rounds,
            )
            step.model = plan.compactor_model.name if plan.compactor_model else ""
    return step


def _estimate_judging(plan: CompactionPlan, counts: Mapping[str, int]) -> EstimatedStep:
    assert plan.judge is not None
    step = EstimatedStep("verdicts on answers that are not exact", plan.judge.name)
    judged = sum(counts.values())
    if plan.probes is not None:
        judged = sum(not probe.is_exact for probe in plan.probes)
    asked = []
    for arm in plan.arms:
        if arm.compactor.name != NOTHING:
            asked.append(arm)
    times = len(asked) + 2 * (plan.probes is None)
    step.add(plan.judge, judged * times, _VERDICT_INPUT, _VERDICT_OUTPUT)
    return step


def total_dollars(steps: Sequence[EstimatedStep]) -> float | None:
    """Return the price of all steps whose requests are known. None if a price is not."""
    known = []
    for step in steps:
        if step.requests is not None:
            known.append(step.dollars)
    return add_dollars(known)


def price_table(steps: Sequence[EstimatedStep]) -> Table:
    """Return the table of the steps."""
    columns = [
        Column("step", is_number=False),
        Column("model", is_number=False),
        Column("requests"),
        Column("tokens read"),
        Column("tokens written"),
        Column("dollars"),
    ]
    rows = []
    for step in steps:
        numbers = [
            number_cell(value, format_count)
            for value in (step.requests, step.read, step.written)
        ]
        price = number_cell(step.dollars, lambda value: f"{value:,.4f}")
        rows.append([Cell(step.name), Cell(step.model), *numbers, price])
    about = "At most, by estimates of tokens. Replies that are kept from earlier commands cost nothing again."
    return Table("price", "What is sent", columns, rows, about)
