"""The page of a gate: the verdict, the differences by length, the agreement of the answers, and what was found."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from helm_longctx.apps.gate.answers import AnswerPair, ArmAgreement, part_name
from helm_longctx.apps.gate.findings import Finding
from helm_longctx.apps.gate.gate import (
    ALL,
    ANSWERS,
    Gate,
    GateQuestion,
    is_counted,
)
from helm_longctx.documents.document import (
    Cell,
    Column,
    Figure,
    HeadlineAnswer,
    Page,
    Report,
    Section,
    Table,
    interval_cell,
    number_cell,
)
from helm_longctx.documents.numbers import (
    format_count,
    format_p,
    format_percent,
    format_points,
    format_signed_percent,
    one_line,
)
from helm_longctx.documents.plots import interval_plot
from helm_longctx.documents.site import write_site
from helm_longctx.results.cells import interval_row, write_scores
from helm_longctx.results.statistics.intervals import Interval
from helm_longctx.results.statistics.level import ABOUT_SCORES, LEVEL_TEXT
from helm_longctx.results.statistics.noninferiority import ONE_SIDED, Drop, Verdict

_MOST_ANSWERS = 50
"""Largest number of different answers that the page shows."""

_SHOWN_CHARACTERS = 400
"""Largest number of characters of an answer that the page shows."""


def write_gate_page(
    gate: Gate,
    sections: Sequence[Section],
    name: str,
    folder: Path,
) -> Path:
    """Write the page and its data, and return the page's file.

    Args:
        sections: see `gate_sections`.
        name: the gate's name.
    """
    page = Page(
        file="index.html",
        title="Result",
        group="Gate",
        sections=sections,
    )
    write_scores(gate.boards, folder / "data")
    return write_site(
        Report(
            title=f"Gate: {name}",
            suite=name,
            about=ABOUT_SCORES,
            pages=[page],
        ),
        folder,
    )[0]


def gate_sections(gate: Gate) -> list[Section]:
    """Return the sections of a gate's page."""
    sections = [
        Section(
            name="verdict",
            title="Verdict",
            blocks=[_answer(gate)],
        ),
        Section(
            name="scores",
            title="Scores",
            blocks=[
                _plot(gate),
                _parts("scores-lengths", "By length", gate.parts, gate.question),
            ],
        ),
        Section(
            name="answers",
            title="Answers",
            blocks=[
                _agreements("answers-lengths", "By length", "length", gate.lengths)
            ],
        ),
        Section(
            name="orders",
            title="Order",
            blocks=[_agreements("answers-order", "By order", "order", gate.orders)],
            about=_ORDER,
        ),
        Section(
            name="findings",
            title="Requests",
            blocks=[_findings(gate.findings)],
        ),
        Section(
            name="tasks",
            title="Tasks",
            blocks=[_parts("scores-tasks", "By task", gate.tasks, gate.question)],
            about=_TASKS,
        ),
    ]
    different = []
    for pair in gate.pairs:
        if pair.is_answered and not pair.are_equal:
            different.append(pair)
    if different:
        sections.append(
            Section(
                name="different",
                title="Different answers",
                blocks=[_different(different)],
            )
        )
    return sections


_ORDER = (
    "Half of the requests went to base first, and half to candidate first. If the"
    " second answer differs more or scores differently, a shared cache or the time of"
    " the request matters."
)

_TASKS = "These tests decide nothing. Their p-values are adjusted for the number of tasks and lengths."


def explain(gate: Gate) -> str:
    """Return the verdict with its main reason, as a sentence or several."""
    margin = format_points(gate.question.margin)
    verdict = gate.verdict
    worse = []
    for name, drop in gate.parts.items():
        if drop.is_worse:
            worse.append(name)
    if verdict is Verdict.NO_WORSE:
        seen = gate.visible_drop
        if seen:
            depth = (
                f" A drop of {100 * seen:.1f} points at one depth would have been found"
            )
        else:
            depth = ""
        if seen:
            chance = f" with a probability of {gate.question.power:.0%}."
        else:
            chance = ""
        return f"No worse: at each length the drop is smaller than {margin}.{depth}{chance}"
    if verdict is Verdict.WORSE:
        where = []
        for name in worse:
            if name not in (ALL, ANSWERS):
                where.append(_place(name))
        if worse == [ALL]:
            where = ["at all lengths together"]
        if where:
            reason = f"the drop is larger than {margin} {', '.join(where)}"
        else:
            reason = ""
        if ANSWERS in worse:
            few = f"the share of requests without a scored answer grows by more than {margin}"
        else:
            few = ""
        reasons = "; ".join(
            f"{finding.text} ({finding.requests} requests)"
            for finding in gate.findings
            if finding.decides_worse
        )
        return f"Worse: {'; '.join(filter(None, (reason, few, reasons)))}."
    missing = {}
    for name, more in gate.missing.items():
        if name != ANSWERS:
            missing[name] = more
    counts = ", ".join(f"{more:,} {_place(part)}" for part, more in missing.items())
    if counts:
        sentences = [f"more instances are needed, {counts}"]
    else:
        sentences = []
    if ANSWERS in gate.missing:
        sentences.append(
            "requests have a scored answer of only one deployment; run the same"
            f" command again, and if they fail again, with {gate.missing[ANSWERS]:,}"
            " more instances, so that their number decides"
        )
    for finding in gate.findings:
        if finding.leaves_open:
            sentences.append(f"{finding.text} ({finding.requests} requests)")
    return f"Cannot tell whether the drop is smaller than {margin}: {'; '.join(sentences)}."


def _place(part: str) -> str:
    """Return where a part is, for a sentence."""
    words = {
        ALL: "at all lengths together",
        "middle": "in the middle",
        **dict.fromkeys(("beginning", "end"), ""),
    }
    return words.get(part) or (f"at the {part}" if part in words else f"at {part}")


def _verdict_of(name: str, drop: Drop) -> str:
    """Return the verdict on a part in words, or empty if it has no part in the whole verdict."""
    if is_counted(name, drop):
        return drop.verdict.text
    return ""


def _answer(gate: Gate) -> HeadlineAnswer:
    question = gate.question
    verdict = gate.verdict
    different = (
        f"{format_percent(gate.difference_share)} % of the scores differ between both."
    )
    level = (
        f"“No worse” is decided by {LEVEL_TEXT} intervals at each length, and “worse”"
        f" by one-sided tests of a drop of {format_points(question.margin)} at"
        f" {100 * ONE_SIDED:g} %, adjusted for the number of lengths and depths. Both"
        " are right although somebody looks again after more instances."
    )
    return HeadlineAnswer(
        question=f"Is {one_line(question.candidate)} (candidate) worse than"
        f" {one_line(question.base)} (base)?",
        verdict=explain(gate),
        certainty=different,
        is_sure=verdict is Verdict.NO_WORSE,
        note=level,
    )


def _plot(gate: Gate) -> Figure:
    rows: list[Mapping[str, object]] = []
    for name, drop in gate.parts.items():
        rows.append(
            {
                "model": name,
                **interval_row(drop.comparison.effect),
                "kind": "own",
            }
        )
    margin = -gate.question.margin
    rows.append(
        {
            "model": "largest drop",
            **interval_row(
                Interval(
                    mean=margin,
                    low=margin,
                    high=margin,
                    n=0,
                )
            ),
            "kind": "floor",
        }
    )
    about = (
        f"The score of the candidate minus that of the base, with {LEVEL_TEXT}"
        " intervals. The dashed line is the largest drop that is accepted. Left of it,"
        " the candidate is worse."
    )
    spec = interval_plot("candidate minus base", list(gate.parts), floors=True)
    return Figure(
        name="scores-differences",
        title="Differences",
        about=about,
        spec=spec,
        rows=rows,
    )


def _parts(
    name: str,
    title: str,
    drops: Mapping[str, Drop],
    question: GateQuestion,
) -> Table:
    columns = (
        Column("part", is_number=False),
        Column("base"),
        Column("candidate"),
        Column("difference", f"candidate minus base, with the {LEVEL_TEXT} interval"),
        Column("instances"),
        Column("better", "instances with a better score of the candidate"),
        Column("worse", "instances with a worse score of the candidate"),
        Column(
            "p (worse)",
            f"one-sided p-value of a drop of at most {format_points(question.margin)}, adjusted",
        ),
        Column("verdict", is_number=False),
        Column("missing", "instances that are still needed to decide"),
    )
    return Table(
        name=name,
        title=title,
        columns=columns,
        rows=[_drop_row(row, drop) for row, drop in drops.items()],
    )


def _drop_row(name: str, drop: Drop) -> list[Cell]:
    comparison = drop.comparison
    effect = comparison.effect
    missing = 0 if name == ALL else drop.more
    counts = (effect.n, comparison.wins, comparison.losses)
    return [
        Cell(name),
        number_cell(drop.base),
        number_cell(drop.candidate),
        interval_cell(effect, format_signed_percent),
        *(number_cell(number, format_count) for number in counts),
        number_cell(drop.p_worse, format_p),
        Cell(_verdict_of(name, drop)),
        Cell(f"{missing:,}" if missing else "–", missing),
    ]


def _agreements(
    name: str,
    title: str,
    first: str,
    rows: Iterable[ArmAgreement],
) -> Table:
    columns = (
        Column(first, is_number=False),
        Column("answers", "requests that both have answered"),
        Column("equal answers", "share of answers with the same text"),
        Column(
            "equal tokens",
            "mean share of the words and signs before the first difference, of the longer answer",
        ),
        Column("equal scores", "share of requests with the same score"),
        Column("difference", "mean score of the candidate minus that of the base"),
    )
    return Table(
        name=name,
        title=title,
        columns=columns,
        rows=[_agreement_row(row) for row in rows],
    )


def _agreement_row(agreement: ArmAgreement) -> list[Cell]:
    shares = (agreement.equal, agreement.equal_tokens, agreement.equal_scores)
    return [
        Cell(agreement.part),
        number_cell(agreement.answers, format_count),
        *(number_cell(share) for share in shares),
        number_cell(agreement.difference, format_signed_percent),
    ]


def _findings(findings: Sequence[Finding]) -> Table:
    columns = (
        Column("finding", is_number=False),
        Column("requests"),
        Column("what was found", is_number=False),
    )
    rows = []
    for finding in findings:
        rows.append(
            [
                Cell(finding.kind),
                number_cell(finding.requests, format_count),
                Cell(finding.text),
            ]
        )
    nothing = [
        [
            Cell("nothing"),
            Cell("0", 0),
            Cell("all prompts have equal counts of tokens, and all have an answer"),
        ]
    ]
    return Table(
        name="findings",
        title="What was found in the requests",
        columns=columns,
        rows=rows or nothing,
    )


def _different(pairs: Sequence[AnswerPair]) -> Table:
    columns = (
        Column("instance", is_number=False),
        Column("length", is_number=False),
        Column("base"),
        Column("candidate"),
        Column("answer of base", is_number=False),
        Column("answer of candidate", is_number=False),
    )
    order = sorted(
        pairs,
        key=lambda pair: (pair.difference or 0.0, pair.base.task, pair.base.instance),
    )
    about = (
        f"The largest drops first, {min(len(order), _MOST_ANSWERS)} of {len(order):,}."
    )
    rows = []
    for pair in order[:_MOST_ANSWERS]:
        rows.append(_different_row(pair))
    return Table(
        name="different-answers",
        title="Answers that differ",
        columns=columns,
        rows=rows,
        about=about,
        search=True,
    )


def _different_row(pair: AnswerPair) -> list[Cell]:
    task = pair.base.task or pair.base.entry
    name = pair.base.instance
    texts = []
    for text in pair.texts:
        line = one_line(text or "")
        if len(line) > _SHOWN_CHARACTERS:
            line = line[:_SHOWN_CHARACTERS] + "…"
        texts.append(Cell(line))
    return [
        Cell(name if name.startswith(task) else f"{task} {name}"),
        Cell(part_name(pair.base.length)),
        number_cell(pair.base.score),
        number_cell(pair.candidate.score),
        *texts,
    ]
