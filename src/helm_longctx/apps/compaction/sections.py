"""The tables, the plot and the page of a comparison of compactors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from helm_longctx.apps.compaction.compactors import NOTHING, WHOLE
from helm_longctx.apps.compaction.probes import KINDS, MadeProbes, Probe
from helm_longctx.apps.compaction.results import (
    CompactionGate,
    CompactionResults,
    Difference,
    KeptKinds,
    Recall,
)
from helm_longctx.apps.compaction.scoring import ScoreState
from helm_longctx.apps.compaction.transcripts import Transcript
from helm_longctx.apps.compaction.trial import Outcome, count_compactions
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
    text_columns,
)
from helm_longctx.documents.numbers import (
    drop_nan,
    format_amount,
    format_count,
    format_p,
    format_points,
    format_share,
    format_signed_percent,
    one_line,
)
from helm_longctx.documents.plots import interval_plot
from helm_longctx.documents.site import write_site
from helm_longctx.errors import describe_count
from helm_longctx.redaction.personal import Replaced
from helm_longctx.results.cells import interval_row
from helm_longctx.results.statistics.intervals import Interval, mean_interval
from helm_longctx.results.statistics.level import ABOUT_SCORES, LEVEL_TEXT
from helm_longctx.results.statistics.noninferiority import Verdict

_SHOWN = 300
"""Most characters of a question or an answer in a table."""

_TITLES = {
    "facts": "facts",
    "decisions": "decisions",
    "files": "files",
    "state": "state of work",
    "constraints": "constraints",
    "tool_results": "tool results",
}
assert _TITLES.keys() == KINDS.keys()


@dataclass(frozen=True)
class About:
    """What a comparison is about, for its page and its data.

    Args:
        made: how probes were made, or None if they were read from a file.
        replaced: what was redacted.
    """

    name: str
    reader: str
    transcripts: Sequence[Transcript]
    keeps: Mapping[str, int]
    made: MadeProbes | None
    replaced: Sequence[Replaced]


def make_sections(
    results: CompactionResults,
    about: About,
    gate: CompactionGate | None,
    kept: KeptKinds | None,
) -> list[Section]:
    """Return the sections of the page. The terminal shows all but the last ones."""
    sections = [
        Section(
            "recall",
            "What is still known",
            [_make_answer(results, gate), _make_plot(results), _recall_table(results)],
            about=describe_scope(results),
        ),
        Section("kinds", "By kind of probe", [_kind_table(results)]),
    ]
    if results.differences:
        title = "Differences between compactors"
        table = _difference_table("differences", title, results.differences)
        sections.append(Section("differences", title, [table]))
    if results.rounds:
        title = "Repeated compaction"
        table = _difference_table("rounds", f"{title}: less one round", results.rounds)
        blocks = [
            table,
            _survival_table(results, about.transcripts),
            _growth_table(results),
        ]
        sections.append(Section("rounds", title, blocks))
    if gate:
        sections.append(Section("gate", "Is it good enough?", [_gate_table(gate)]))
    if kept:
        sections.append(Section("kept", "Is it kept?", [_kept_table(kept)]))
    if failures := _failure_rows(results):
        sections.append(
            Section("failures", "Without a score", [_failure_table(failures)])
        )
    sections.append(Section("lost", "What was lost", [_lost_table(results)]))
    sections.append(Section("probes", "Probes", [_probe_table(results, about.made)]))
    if about.replaced:
        sections.append(
            Section("redacted", "Redacted", [redaction_table(about.replaced)])
        )
    return sections


def describe_scope(results: CompactionResults) -> str:
    """Return what intervals and tests are about."""
    names = {probe.transcript for probe in results.probes}
    if results.holds_for_others:
        return f"Intervals and tests are about other transcripts like these {len(names)}: the transcripts are the clusters."
    what = (
        "this transcript as it was"
        if len(names) == 1
        else "these transcripts as they were"
    )
    return (
        f"Intervals and tests are about {what} compacted: the messages are the"
        f" clusters. At least {results.fewest} transcripts can show what holds for"
        " others."
    )


def _make_answer(
    results: CompactionResults,
    gate: CompactionGate | None,
) -> HeadlineAnswer:
    """Return the verdict in words."""
    question = "What does compaction lose?"
    if gate is None:
        ranked = sorted(
            (
                recall
                for recall in results.recalls
                if recall.arm.compactor.name not in (WHOLE, NOTHING)
                and recall.interval.n
            ),
            key=lambda recall: -recall.interval.mean,
        )
        if not ranked:
            return HeadlineAnswer(question, "No compactor has answers.", "", False)
        best = ranked[0]
        verdict = (
            f"{best.arm.name} keeps the most: {format_share(best.interval.mean)} of the probes"
            f" are answered rightly from {format_share(best.share)} of the tokens."
        )
        return HeadlineAnswer(
            question, verdict, describe_decisions(results.differences), False
        )
    return HeadlineAnswer(
        question,
        describe_gate(gate),
        describe_decisions(results.differences),
        gate.verdict is not Verdict.UNDECIDED,
    )


def describe_gate(gate: CompactionGate) -> str:
    """Return the verdict in a sentence or two."""
    margin = format_points(gate.margin)
    against = gate.base if gate.holds_for_others else f"{gate.base} here"
    words = {
        Verdict.NO_WORSE: f"No compactor loses {margin} or more against {against}.",
        Verdict.WORSE: f"A compactor loses more than {margin} against {against}.",
        Verdict.UNDECIDED: "These probes cannot tell whether all compactors lose less"
        f" than {margin} against {against}.{_describe_floor(gate)}",
    }
    return words[gate.verdict]


def _describe_floor(gate: CompactionGate) -> str:
    """Return why no loss could be seen, in a sentence after a space; empty if one could."""
    bases = [loss.drop.base for loss in gate.losses if loss.drop.is_at_floor]
    if not bases:
        return ""
    return (
        f" With {gate.base}, only {format_share(min(bases))} of the probes are answered rightly,"
        " so no compactor could lose more: take a model that can answer them."
    )


def describe_decisions(differences: Sequence[Difference]) -> str:
    """Return which arms differ, in a sentence."""
    sentences = []
    for difference in differences:
        if difference.decision.is_different:
            sentences.append(
                f"{difference.one.name} is {difference.verdict} than"
                f" {difference.other.name}"
            )
    if not differences:
        return ""
    if not sentences:
        return "No difference between compactors is shown."
    return f"{'; '.join(sentences)}."


def _make_plot(results: CompactionResults) -> Figure:
    rows: list[dict[str, Any]] = []
    names = []
    for recall in results.recalls:
        if recall.interval.n:
            name = f"{recall.arm.name} ({format_share(recall.share)} of tokens)"
            names.append(name)
            row = {"model": name, **interval_row(recall.interval), "kind": "own"}
            rows.append(row)
    about = f"The share of probes that are answered rightly from what is left, with {LEVEL_TEXT} intervals."
    spec = interval_plot("probes answered rightly", names)
    return Figure("recall-plot", "Recall", about, spec, rows)


def _interval_cell(interval: Interval | None) -> Cell:
    return interval_cell(interval if interval and interval.n else None)


def _dollar_cell(dollars: float | None) -> Cell:
    if dollars is None:
        return number_cell(None, note="a price is not known")
    return number_cell(dollars, format_amount)


def _recall_table(results: CompactionResults) -> Table:
    columns = [
        Column("compactor", is_number=False),
        Column("recall", "probes that are answered rightly, in percent"),
        Column("tokens kept", "mean over the transcripts"),
        Column("kept", "share of the tokens, in percent"),
        Column("seconds", "of a compaction, mean over the transcripts"),
        Column("$ compaction", "all compactions"),
        Column("$ answers", "all answers and verdicts"),
        Column("unknown", "probes whose answer is that it is not known"),
        Column("wrong", "probes with another answer"),
        Column("no score", "failures, which are in no mean"),
    ]
    rows = []
    for recall in results.recalls:
        counts = []
        for state in (ScoreState.UNKNOWN, ScoreState.WRONG, ScoreState.FAILED):
            counts.append(recall.states.get(state, 0))
        rows.append(
            [
                Cell(recall.arm.name),
                _interval_cell(recall.interval),
                number_cell(recall.tokens, format_count),
                number_cell(recall.share),
                number_cell(round(recall.seconds, 2), format_amount),
                _dollar_cell(recall.dollars),
                _dollar_cell(recall.answers),
                *(number_cell(number, format_count) for number in counts),
            ]
        )
    about = (
        f"{describe_count(len(results.probes), 'probe')}. The probes are chosen so that"
        f" {WHOLE} is answered rightly and {NOTHING} is not."
    )
    return Table("recall", "Recall and what it costs", columns, rows, about)


def _kind_table(results: CompactionResults) -> Table:
    asked: set[str] = set()
    for recall in results.recalls:
        asked.update(recall.by_kind)
    kinds = [kind for kind in KINDS if kind in asked]
    numbers = Counter(probe.kind for probe in results.probes)
    columns = [
        Column("compactor", is_number=False),
        *(Column(f"{_TITLES[kind]} ({numbers[kind]})") for kind in kinds),
    ]
    rows = []
    for recall in results.recalls:
        cells = [_interval_cell(recall.by_kind.get(kind)) for kind in kinds]
        rows.append([Cell(recall.arm.name), *cells])
    return Table(
        "kinds", "Recall by kind of probe (number of probes), in percent", columns, rows
    )


def _difference_table(
    name: str,
    title: str,
    differences: Sequence[Difference],
) -> Table:
    columns = [
        *text_columns("compactor", "less"),
        Column("difference", f"points of recall, with the {LEVEL_TEXT} interval"),
        Column("better", "probes that only the first one has answered rightly"),
        Column("worse", "probes that only the second one has answered rightly"),
        Column("p", "adjusted for all differences of this table"),
        Column("verdict", is_number=False),
    ]
    rows = []
    for difference in differences:
        decision = difference.decision
        comparison = decision.comparison
        rows.append(
            [
                Cell(difference.one.name),
                Cell(difference.other.name),
                interval_cell(comparison.effect, format_signed_percent),
                number_cell(comparison.wins, format_count),
                number_cell(comparison.losses, format_count),
                number_cell(decision.adjusted, format_p),
                Cell(difference.verdict),
            ]
        )
    return Table(name, title, columns, rows)


def _survival_table(
    results: CompactionResults,
    transcripts: Sequence[Transcript],
) -> Table:
    """Return recall by the number of compactions that the message of a probe has gone through."""
    by_name = {transcript.name: transcript for transcript in transcripts}
    arms = []
    for recall in results.recalls:
        if recall.arm.rounds > 1:
            arms.append(recall.arm)
    scores: dict[tuple[str, int], list[tuple[float, str]]] = {}
    for outcome in results.outcomes:
        if outcome.arm in arms and outcome.given.score is not None:
            transcript = by_name[outcome.probe.transcript]
            times = count_compactions(transcript, outcome.probe, outcome.arm.rounds)
            scores.setdefault((outcome.arm.name, times), []).append(
                (outcome.given.score, outcome.probe.transcript)
            )
    most = max(arm.rounds for arm in arms)
    columns = [Column("compactor", is_number=False), Column("1 compaction")]
    for times in range(2, most + 1):
        columns.append(Column(f"{times} compactions"))
    rows = []
    for arm in arms:
        cells = []
        for times in range(1, most + 1):
            pairs = scores.get((arm.name, times), [])
            values = [score for score, _ in pairs]
            groups = [group for _, group in pairs] if results.holds_for_others else None
            cells.append(_interval_cell(mean_interval(values, groups)))
        rows.append([Cell(arm.name), *cells])
    title = "Recall by the number of compactions since the message, in percent"
    return Table("survival", title, columns, rows)


def _growth_table(results: CompactionResults) -> Table:
    """Return how much is left after each compaction: what grows each time leaves less and less room."""
    recalls = [recall for recall in results.recalls if recall.arm.rounds > 1]
    most = max(len(recall.sizes) for recall in recalls)
    columns = [
        Column("compactor", is_number=False),
        *(Column(f"after {number}") for number in range(1, most + 1)),
    ]
    rows = []
    for recall in recalls:
        cells = [number_cell(size, format_count) for size in recall.sizes]
        cells += [number_cell(None)] * (most - len(cells))
        rows.append([Cell(recall.arm.name), *cells])
    return Table("growth", "Tokens kept after each compaction", columns, rows)


def _kept_table(kept: KeptKinds) -> Table:
    columns = [*text_columns("compactor"), *_PROBE_COLUMNS]
    rows = []
    for outcome in kept.lost:
        rows.append([Cell(outcome.arm.name), *_probe_cells(outcome.probe)])
    kinds = ", ".join(_TITLES[kind] for kind in kept.kinds)
    about = {
        Verdict.NO_WORSE: "Every compactor keeps all of them.",
        Verdict.WORSE: f"{len(kept.lost)} are lost.",
        Verdict.UNDECIDED: f"Cannot tell: {kept.unscored} have no score.",
    }[kept.verdict]
    return Table(
        "kept", f"Lost probes that must be kept: {kinds}", columns, rows, about
    )


def _gate_table(gate: CompactionGate) -> Table:
    about = (
        "It is about these transcripts as they were compacted. At least"
        f" {gate.fewest} transcripts can show that a compactor loses so little in"
        " others, too."
    )
    where = ""
    if gate.holds_for_others:
        about = "It is about other transcripts like these, too."
        where = " in further transcripts"
    columns = [
        Column("compactor", is_number=False),
        Column(f"less {gate.base}", "points of recall, with the interval of the gate"),
        Column(
            "p (worse)", f"one-sided, of a loss of at most {format_points(gate.margin)}"
        ),
        Column("verdict", is_number=False),
        Column("missing", f"probes{where} that are still needed to decide"),
    ]
    rows = []
    for loss in gate.losses:
        is_open = loss.verdict is Verdict.UNDECIDED
        rows.append(
            [
                Cell(loss.arm.name),
                interval_cell(loss.drop.comparison.effect, format_signed_percent),
                number_cell(loss.drop.p_worse, format_p),
                Cell(loss.verdict.text),
                number_cell(loss.drop.more if is_open else None, format_count),
            ]
        )
    title = f"Losses of {format_points(gate.margin)} against {gate.base}"
    return Table("gate", title, columns, rows, about)


def _failure_rows(results: CompactionResults) -> list[list[Cell]]:
    rows = []
    for recall in results.recalls:
        for reason, number in recall.compactions.items():
            text = f"transcripts without a result: {reason}"
            rows.append(
                [Cell(recall.arm.name), number_cell(number, format_count), Cell(text)]
            )
        for reason, number in recall.failures.items():
            if not reason.startswith("no compaction"):
                cell = number_cell(number, format_count)
                rows.append([Cell(recall.arm.name), cell, Cell(f"probes: {reason}")])
    return rows


def _failure_table(rows: Sequence[Sequence[Cell]]) -> Table:
    columns = [
        Column("compactor", is_number=False),
        Column("times"),
        Column("why", is_number=False),
    ]
    about = "They are in no mean. The same command asks again for what has failed."
    return Table("failures", "What has no score", columns, rows, about)


_PROBE_COLUMNS = (
    Column("kind", is_number=False),
    Column("where", "the file, and the share of its tokens before", is_number=False),
    Column("question", is_number=False, folds=True),
    Column("answer", is_number=False, folds=True),
)


def _probe_cells(probe: Probe) -> list[Cell]:
    """Return the cells of `_PROBE_COLUMNS`."""
    return [
        Cell(_TITLES[probe.kind]),
        Cell(place_of(probe)),
        Cell(_shorten(probe.question)),
        Cell(_shorten(probe.answer)),
    ]


def find_lost(results: CompactionResults) -> list[Outcome]:
    """Return the outcomes without the right answer, of compactors and of the baseline with the last tokens."""
    return [
        outcome
        for outcome in results.outcomes
        if outcome.given.score == 0
        and outcome.arm.compactor.name not in (WHOLE, NOTHING)
    ]


def place_of(probe: Probe) -> str:
    """Return where the answer to a probe stands."""
    where = f"line {probe.line}" if probe.line else f"message {probe.message + 1}"
    return f"{probe.transcript}, {where} ({format_share(probe.depth)})"


def _lost_table(results: CompactionResults) -> Table:
    columns = [
        *text_columns("compactor"),
        *_PROBE_COLUMNS,
        Column("reply", is_number=False, folds=True),
    ]
    rows = []
    for outcome in find_lost(results):
        probe = outcome.probe
        reply = Cell(_shorten(outcome.given.text or ""))
        rows.append([Cell(outcome.arm.name), *_probe_cells(probe), reply])
    return Table("lost", "Probes that were lost", columns, rows, search=True)


def _shorten(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def describe_making(made: MadeProbes) -> list[str]:
    """Return lines about how probes were made."""
    lines = [f"{len(made.probes)} probes were made and checked."]
    for reason, number in made.rejected.most_common():
        lines.append(f"{number} left out: {reason}")
    for reason, number in made.failures.most_common():
        lines.append(f"{number} not checked: {reason}; the same command asks again")
    return lines


def _probe_table(results: CompactionResults, made: MadeProbes | None) -> Table:
    columns = [*text_columns("probe"), *_PROBE_COLUMNS, *text_columns("scored by")]
    rows = []
    for probe in results.probes:
        scored_by = Cell("rule" if probe.is_exact else "judge")
        rows.append([Cell(probe.id), *_probe_cells(probe), scored_by])
    about = " ".join(describe_making(made)) if made else ""
    return Table("probes", "All probes", columns, rows, about, search=True)


def redaction_table(replaced: Sequence[Replaced]) -> Table:
    """Return what was replaced. The texts themselves are kept nowhere."""
    columns = [
        *text_columns("what", "placeholder"),
        Column("text", "its first characters", is_number=False),
        Column("times"),
        Column("first", is_number=False),
    ]
    rows = []
    for detail in replaced:
        rows.append(
            [
                Cell(detail.kind),
                Cell(detail.placeholder),
                Cell(one_line(detail.shown)),
                number_cell(detail.times, format_count),
                Cell(detail.first),
            ]
        )
    return Table("redacted", "What was replaced", columns, rows)


def write_page(sections: Sequence[Section], about: About, folder: Path) -> Path:
    """Write the page and the data of its tables, and return the page's file."""
    about_text = f"Answers by {about.reader}. {describe_count(len(about.transcripts), 'transcript')}."
    page = Page("index.html", "Result", "Compaction", sections, about=about_text)
    report = Report(
        title=f"Compaction: {about.name}",
        suite=about.name,
        about=ABOUT_SCORES,
        pages=[page],
        has_scores=False,
    )
    return write_site(report, folder)[0]


def results_json(
    results: CompactionResults,
    about: About,
    gate: CompactionGate | None,
    kept: KeptKinds | None,
) -> dict[str, Any]:
    """Return all results as JSON data."""
    return {
        "name": about.name,
        "reader": about.reader,
        "holds_for_others": results.holds_for_others,
        "transcripts": [
            {
                "name": transcript.name,
                "format": transcript.format,
                "messages": len(transcript.messages),
                "tokens": transcript.tokens,
                "keep": about.keeps[transcript.name],
                "sha256": transcript.digest,
            }
            for transcript in about.transcripts
        ],
        "recall": [_recall_json(recall) for recall in results.recalls],
        "differences": [_difference_json(row) for row in results.differences],
        "rounds": [_difference_json(row) for row in results.rounds],
        "gate": _gate_json(gate) if gate else None,
        "must_keep": _kept_json(kept) if kept else None,
        "probes": [asdict(probe) for probe in results.probes],
        "answers": [
            {
                "probe": outcome.probe.id,
                "compactor": outcome.arm.compactor.name,
                "rounds": outcome.arm.rounds,
                "state": outcome.given.state.value,
                "score": outcome.given.score,
                "text": outcome.given.text,
                "failure": outcome.given.failure,
            }
            for outcome in results.outcomes
        ],
        "made": None
        if about.made is None
        else {
            "rejected": dict(about.made.rejected),
            "failures": dict(about.made.failures),
        },
        "redacted": [asdict(detail) for detail in about.replaced],
    }


def _recall_json(recall: Recall) -> dict[str, Any]:
    return {
        "compactor": recall.arm.compactor.name,
        "rounds": recall.arm.rounds,
        "recall": recall.interval.to_json(),
        "kinds": {
            kind: interval.to_json() for kind, interval in recall.by_kind.items()
        },
        "tokens": drop_nan(recall.tokens),
        "share": drop_nan(recall.share),
        "tokens_by_round": list(recall.sizes),
        "seconds": drop_nan(recall.seconds),
        "dollars": recall.dollars,
        "dollars_answers": recall.answers,
        "states": {state.value: recall.states.get(state, 0) for state in ScoreState},
        "failures": dict(recall.failures),
        "failed_compactions": dict(recall.compactions),
    }


def _difference_json(difference: Difference) -> dict[str, Any]:
    decision = difference.decision
    return {
        "compactor": difference.one.compactor.name,
        "other": difference.other.compactor.name,
        "rounds": difference.one.rounds,
        "other_rounds": difference.other.rounds,
        "difference": decision.comparison.effect.to_json(),
        "better": decision.comparison.wins,
        "worse": decision.comparison.losses,
        "p": drop_nan(decision.adjusted),
        "verdict": difference.verdict,
    }


def _kept_json(kept: KeptKinds) -> dict[str, Any]:
    lost = []
    for outcome in kept.lost:
        lost.append(
            {
                "compactor": outcome.arm.compactor.name,
                "rounds": outcome.arm.rounds,
                "probe": outcome.probe.id,
            }
        )
    return {
        "kinds": list(kept.kinds),
        "lost": lost,
        "no_score": kept.unscored,
        "exit_status": int(kept.verdict),
    }


def _gate_json(gate: CompactionGate) -> dict[str, Any]:
    return {
        "base": gate.base,
        "max_loss": gate.margin,
        "verdict": gate.verdict.text,
        "holds_for_others": gate.holds_for_others,
        "losses": [
            {
                "compactor": loss.arm.compactor.name,
                "rounds": loss.arm.rounds,
                "difference": loss.drop.comparison.effect.to_json(),
                "p_worse": loss.drop.p_worse,
                "verdict": loss.verdict.text,
                "more": loss.drop.more,
            }
            for loss in gate.losses
        ],
    }
