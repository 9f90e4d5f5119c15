"""Compares a model's runs with published numbers, under the protocol by which these were reported, and shows them."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, NamedTuple

from helm_longctx.documents.document import (
    Block,
    Cell,
    Column,
    Figure,
    Section,
    Table,
    text_columns,
)
from helm_longctx.documents.numbers import MARK, add_mark, format_ends, format_percent
from helm_longctx.documents.plots import over_time
from helm_longctx.results.boards import Board, mean_of_results, show_model
from helm_longctx.results.comparability import GENERATED, describe
from helm_longctx.results.reading import BEST, CUT, Result
from helm_longctx.results.statistics.comparison import compare_intervals
from helm_longctx.results.statistics.intervals import (
    Interval,
    mean_interval,
    normal_quantile,
    weigh_lengths,
    wilson,
)
from helm_longctx.results.statistics.level import SIGNIFICANCE
from helm_longctx.results.statistics.power import detectable_from
from helm_longctx.runs.shown_models import Setup, ShownModel
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.entry import OF_PROMPTS, Entry, parse_entry
from helm_longctx.tasks.entry_data import fetch_line
from helm_longctx.tasks.publications import NO_REASONING, Protocol, Reported
from helm_longctx.tasks.registry import find_protocols
from helm_longctx.tasks.request_settings import Sampling
from helm_longctx.tasks.task import MAIN_METRIC, TEXT_GROUP

_OF_QUESTIONS = (*OF_PROMPTS, "depth")
"""Arguments of run entries that select the questions or their prompts, in addition to task and length."""

_BEGINNINGS = {
    "agrees": "Agrees with",
    "differs": "Differs from",
    "cannot tell": "Cannot tell whether the model differs from",
}

_LARGEST_UNSEEN = 0.3
"""A number agrees only if a difference of this size would be seen in 80 % of cases. About 50 right or wrong answers
are enough for it. With fewer a weak model would agree with a strong one."""

_DATE = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


@dataclass(frozen=True)
class Measurement:
    """A model's number by a protocol.

    Args:
        model, deployment: the model's name in the suite, and its deployment.
        interval: the number, 0 to 1, its interval, and the number of questions.
        cut: the share of answers that end at the token limit, 0 to 1.
        best: the number if all of these answers were right.
        reasons: why it does not compare with the published numbers, whatever they are.
        is_generated: whether this package made some of the questions instead of the benchmark's own.
        official_entries: the run entries that ask the benchmark's own questions instead of the generated ones.
    """

    model: ShownModel
    deployment: str
    interval: Interval
    cut: float
    best: float
    reasons: tuple[str, ...]
    is_generated: bool = False
    official_entries: tuple[str, ...] = ()


_Kind = Literal["agrees", "differs", "cannot tell", "not comparable", "cannot compare"]


class ReproductionVerdict(NamedTuple):
    """Whether a measurement agrees with a published number, and a sentence that says so."""

    kind: _Kind
    text: str


def measure(
    protocol: Protocol,
    benchmark: Benchmark,
    results: Iterable[Result],
) -> list[Measurement]:
    """Return the number of each of the user's models that has all runs of a protocol.

    Of several runs of a task, the one with the fewest departures from the protocol counts, and then the one with the
    most questions.

    Args:
        results: the results of a suite, with their answers.
    """
    entries = [parse_entry([benchmark], text) for text in protocol.entries]
    if not entries:
        return []
    by_model: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if (
            result.benchmark == benchmark.name
            and result.run
            and result.context == "full"
        ):
            by_model[result.model].append(result)
    measurements = []
    for of_model in by_model.values():
        parts = []
        for entry in entries:
            parts.append(_choose_results(protocol, entry, of_model))
        # A model without all runs has no number.
        if all(parts):
            measurements.append(_measure_results(protocol, entries, parts))
    return measurements


def _choose_results(
    protocol: Protocol,
    entry: Entry,
    results: Sequence[Result],
) -> list[Result]:
    """Return the result of each task of an entry, or nothing if a task has none."""
    chosen = []
    for task in entry.tasks:
        result = _choose_result(protocol, entry, task.name, results)
        if result is None:
            return []
        chosen.append(result)
    return chosen


def _choose_result(
    protocol: Protocol,
    entry: Entry,
    task: str,
    results: Iterable[Result],
) -> Result | None:
    """Return the result of a task that fits an entry best, or None if no run of the task has the protocol's metric."""
    fitting = []
    for result in results:
        key = (result.entry, result.task, result.length)
        if key != (entry.name, task, entry.settings.length):
            continue
        if result.run and result.run.entry:
            given = result.run.entry.arguments
        else:
            given = {}
        # A run asks the questions of an entry, or some of them.
        asks = all(
            str(given.get(name)) == str(entry.arguments.get(name))
            for name in _OF_QUESTIONS
        )
        if (
            asks
            and result.has_score
            and (protocol.metric or MAIN_METRIC) in result.statistics
        ):
            fitting.append(result)

    def rate(result: Result) -> tuple[int, int]:
        return len(_reasons(protocol, entry, result)), -result.interval.n

    return min(fitting, key=rate, default=None)


def _reasons(protocol: Protocol, entry: Entry, result: Result) -> list[str]:
    """Return why a run's score does not compare with numbers that were reported by the protocol."""
    allowed = set()
    # The number of questions is compared with the protocol's own, if that is known.
    if protocol.samples or _has_sample_of(entry, result):
        allowed.add("num_samples")
    asked = result.run.entry if result.run else None
    wanted = Sampling(temperature=protocol.temperature)
    if asked and wanted and asked.settings.request.sampling == wanted:
        allowed.add("sampling")
    caveats = []
    for caveat in result.caveats:
        if caveat.kind not in allowed:
            caveats.append(caveat)
    reasons = describe(caveat._replace(task="") for caveat in caveats)
    spec = result.run.spec["adapter_spec"] if result.run else {}
    trials = protocol.trials or entry.repeats
    if (own := spec.get("num_trials", 1)) != trials:
        reasons.append(f"each question was asked {own} times instead of {trials}")
    if (
        protocol.temperature is not None
        and spec.get("temperature") != protocol.temperature
    ):
        reasons.append(
            f"temperature {spec.get('temperature'):g} instead of {protocol.temperature:g}"
        )
    if (
        protocol.output_tokens is not None
        and spec.get("max_tokens") != protocol.output_tokens
    ):
        reasons.append(
            f"{spec.get('max_tokens'):,} output tokens instead of {protocol.output_tokens:,}"
        )
    return reasons


def _has_sample_of(entry: Entry, result: Result) -> bool:
    """Whether a run asked as many questions of its task as an entry names."""
    asked = result.run.entry if result.run else None
    if asked is None:
        return False
    (task,) = [task for task in asked.tasks if task.name == result.task]
    return task.sample(asked.settings) == entry.settings.num_samples


def _measure_results(
    protocol: Protocol,
    entries: Sequence[Entry],
    parts: Sequence[Sequence[Result]],
) -> Measurement:
    results: list[Result] = []
    reasons: dict[str, None] = {}
    for entry, part in zip(entries, parts, strict=True):
        results += part
        for result in part:
            reasons |= dict.fromkeys(_reasons(protocol, entry, result))
    interval = _aggregate(protocol, entries, parts)
    if protocol.samples and interval.n < protocol.samples:
        reasons[f"{interval.n:,} of {protocol.samples:,} questions"] = None
    asked = sum(result.interval.n for result in results)
    cut = 0.0
    for result in results:
        if CUT in result.statistics:
            cut += result.statistics[CUT].interval.mean * result.interval.n
    cut /= max(asked, 1)
    first = results[0]
    deployment = first.run.deployment if first.run else ""
    best = interval.mean
    if cut and protocol.metric:
        best = min(
            interval.mean + cut, 1.0
        )  # of other metrics than the score there are no bounds
    elif cut:
        best_cases = [list(map(_take_best_case, part)) for part in parts]
        best = _aggregate(protocol, entries, best_cases).mean
    # The protocol's own temperature is no other setup.
    wanted = Setup(sampling=Sampling(temperature=protocol.temperature))
    if first.model.setup == wanted:
        model = ShownModel(first.model.base)
    else:
        model = first.model
    generated = []
    for result in results:
        generated += [caveat for caveat in result.caveats if caveat.kind == GENERATED]
    official_entries = []
    for caveat in generated:
        if caveat.detail:
            official_entries.append(caveat.detail)
    return Measurement(
        model=model,
        deployment=deployment,
        interval=interval,
        cut=cut,
        best=best,
        reasons=tuple(reasons),
        is_generated=bool(generated),
        official_entries=tuple(dict.fromkeys(official_entries)),
    )


def _take_best_case(result: Result) -> Result:
    """Return a result in which all cut answers are right (`results/cells.py`)."""
    if BEST not in result.statistics:
        return result
    answers = []
    for row in result.answers:
        answers.append(row._replace(score=1.0) if row.values.get(CUT) else row)
    best = result.statistics[BEST]
    return replace(
        result,
        interval=best.interval,
        statistics={**result.statistics, MAIN_METRIC: best},
        answers=tuple(answers),
    )


def _aggregate(
    protocol: Protocol,
    entries: Sequence[Entry],
    parts: Sequence[Sequence[Result]],
) -> Interval:
    metric = protocol.metric or MAIN_METRIC
    if protocol.aggregation == "mean over questions":
        results = list(chain.from_iterable(parts))
        # A single run has its own mean and interval.
        if len(results) == 1:
            return results[0].statistics[metric].interval
        values = []
        clusters: list[object] = []
        instances = set()
        for result in results:
            for row in result.answers:
                if metric == MAIN_METRIC:
                    value = row.score
                else:
                    value = row.values.get(metric)
                if value is None:
                    continue
                values.append(value)
                instances.add((row.task, row.length, row.instance))
                # Other groups than texts have the same names in other tasks and at other lengths.
                is_text = row.group.startswith(TEXT_GROUP)
                clusters.append(
                    row.group if is_text else (row.task, row.length, row.group)
                )
        return replace(mean_interval(values, clusters), n=len(instances))
    shares = [1 / len(entries)] * len(entries)
    if protocol.aggregation != "mean over entries":
        lengths = [entry.settings.length or 0 for entry in entries]
        by_length = weigh_lengths(lengths)
        shares = [by_length[length] for length in lengths]
    weighted: list[tuple[Result, float]] = []
    for part, share in zip(parts, shares, strict=True):
        weighted += [(result, share / len(part)) for result in part]
    return mean_of_results(weighted, metric)


def published_interval(
    row: Reported,
    protocol: Protocol,
    own: Iterable[Measurement] = (),
) -> Interval:
    """Return a published number, 0 to 1, with the widest interval that its sample allows, or NaN if that is not known.

    Args:
        own: own numbers by the protocol. If a protocol asks all questions of its data, one without reasons against it
            has as many as the published number.
    """
    value = row.value / 100
    if protocol.asks_all:
        whole = []
        for number in own:
            if not number.reasons:
                whole.append(number.interval.n)
    else:
        whole = []
    samples = protocol.samples or max(whole, default=0)
    low = high = math.nan
    if samples:
        low, high = wilson(value, samples, normal_quantile())
    return Interval(value, low, high, samples)


def find_rows(rows: Iterable[Reported], model: str) -> list[Reported]:
    """Return the published rows of a model, whatever its organization, date and capital letters."""
    return [row for row in rows if _plain(row.model) == _plain(model)]


def _plain(model: str) -> str:
    name = re.sub(r"[^a-z0-9.]+", "-", model.lower().rpartition("/")[2]).strip("-")
    return _DATE.sub("", name).removeprefix("claude-")


def judge_agreement(
    own: Measurement,
    row: Reported,
    protocol: Protocol,
    effort: str | None,
) -> ReproductionVerdict:
    """Say whether a measurement agrees with a published number.

    Args:
        effort: the reasoning effort of the user's model, if it is known.
    """
    if own.is_generated:
        return ReproductionVerdict("cannot compare", describe_generated(own))
    published = published_interval(row, protocol, [own])
    reasons = [
        *own.reasons,
        *(f"the page does not say {what}" for what in protocol.not_stated),
    ]
    if not row.effort:
        reasons.append("the page does not say the reasoning effort")
    elif row.effort != (effort or NO_REASONING):
        reasons.append(
            f"the published effort is {row.effort}, and yours is {effort or 'not known'}"
        )
    reasons += _cut_reasons(own, published)
    what = f"{row.text or format(row.value, 'g')} of {row.label}"
    if reasons:
        return ReproductionVerdict(
            "not comparable",
            f"Not comparable with the published {what}: {'; '.join(reasons)}.",
        )
    kind = _compare(own.interval, published)
    difference = (
        f"the difference is {100 * (own.interval.mean - published.mean):+.1f} points"
    )
    least = detectable_from(own.interval, published)
    if least < math.inf:
        size = f"one of {100 * least:.1f} points"
    else:
        size = "none"
    power = f"{size} is found in 80 % of cases"
    if kind == "cannot tell" and least > _LARGEST_UNSEEN:
        power = f"the questions are too few to contradict, because {power}"
    if math.isnan(published.low):
        power = f"the page does not say of how many questions, and at best {power}"
    return ReproductionVerdict(
        kind, f"{_BEGINNINGS[kind]} the published {what}: {difference}; {power}."
    )


def describe_generated(own: Measurement) -> str:
    """Say that a number of generated questions compares with nothing, and how to get the benchmark's questions."""
    if not own.official_entries:
        return "cannot compare: generated questions, and the benchmark has none at this length."
    line = fetch_line(own.official_entries)
    return (
        f"cannot compare: generated questions; get the benchmark's own with `{line}`."
    )


def _cut_reasons(own: Measurement, published: Interval) -> list[str]:
    """Return a reason if cut answers decide the verdict: they could all be right with a larger output budget.

    They do if the published number lies between the number and its best case, or if only one of these differs from it.
    """
    if not own.cut:
        return []
    by = own.best - own.interval.mean
    ends = (own.interval.mean, own.interval.low, own.interval.high)
    mean, low, high = (min(end + by, 1.0) for end in ends)
    best = Interval(mean, low, high, own.interval.n)
    is_crossed = own.interval.mean <= published.mean <= own.best
    if not is_crossed and _compare(own.interval, published) == _compare(
        best, published
    ):
        return []
    return [
        f"{100 * own.cut:.3g} % of the answers were cut, and with a larger output"
        f" budget the number could be up to {100 * own.best:.1f} (`helm-longctx run"
        " --retry-cut 4x` asks for them again)"
    ]


def _compare(own: Interval, published: Interval) -> _Kind:
    is_unknown = math.isnan(published.low)
    if not is_unknown and compare_intervals(own, published).p_value < SIGNIFICANCE:
        return "differs"
    # Of few unknown questions, the published number could be any distance from the truth.
    is_far = is_unknown and not own.low <= published.mean <= own.high
    if is_far or detectable_from(own, published) > _LARGEST_UNSEEN:
        return "cannot tell"
    return "agrees"


_ABOUT = (
    "A number of a release is what its page reports by this protocol, and protocols"
    " are never mixed. Intervals of published numbers are the widest that their"
    f" samples allow. {MARK} marks an own score that departs from the protocol; its"
    " note says how."
)


UNKNOWN = "unknown"
"""The date of a page whose date no copy gives."""

_OVER_TIME = (
    "Numbers that releases and ledgers print, by the day of their page. Protocols"
    " measure different things, so the plot has a row for each of them, and there is no"
    " ranking."
)

_HEADS = (
    *text_columns("Date", "Model", "Vendor", "Protocol"),
    Column("Published", "‡ Another source prints another number, which the note has."),
    Column(
        "Open",
        "Why nobody else can run the protocol, or what its page does not say.",
        is_number=False,
    ),
)


def reported_sections(board: Board) -> list[Section]:
    """Return a section for each family of reported protocols of which the user's models have numbers."""
    results: list[Result] = []
    for _, of_run in board.runs:
        results += of_run
    families: dict[str, list[tuple[Protocol, list[Measurement]]]] = defaultdict(list)
    for protocol in _protocols_of(board) if results else ():
        if not protocol.rows:
            continue
        if measured := measure(protocol, board.benchmark, results):
            families[protocol.family].append((protocol, measured))
    own = []
    for family, points in families.items():
        own.append(_make_section(board, family, points))
    return [*own, *_published_sections(board)]


def _make_section(
    board: Board,
    family: str,
    points: Sequence[tuple[Protocol, list[Measurement]]],
) -> Section:
    words = re.sub("[^a-z0-9]+", "-", family.lower())
    name = f"reported-{board.file_name}-{words}".strip("-")
    own: dict[ShownModel, None] = {}
    published: dict[str, None] = {}
    for protocol, measurements in points:
        own |= dict.fromkeys(measurement.model for measurement in measurements)
        published |= dict.fromkeys(row.label for row in protocol.rows)
    columns = [
        *text_columns("Reported"),
        *(Column(show_model(model)) for model in own),
        *map(Column, published),
    ]
    rows = []
    for protocol, measurements in points:
        measured = {model: Cell("") for model in own}
        reported = {row_label: Cell("") for row_label in published}
        for measurement in measurements:
            interval = measurement.interval
            tag = "caveats" if measurement.reasons else ""
            ends = format_ends(interval) or "unknown"
            text = add_mark(format_percent(interval.mean), measurement.reasons)
            note = "; ".join(measurement.reasons)
            measured[measurement.model] = Cell(text, interval.mean, ends, note, tag=tag)
        for row in protocol.rows:
            interval = published_interval(row, protocol, measurements)
            ends = format_ends(interval) or "unknown"
            note = f"{row.origin}. {row.source.settings}".strip()
            reported[row.label] = Cell(row.number_text, interval.mean, ends, note)
        point = Cell(protocol.point or protocol.title)
        rows.append([point, *measured.values(), *reported.values()])
    first = points[0][0]
    about = f"{first.about} Conditions: {'; '.join(first.conditions)}. {_ABOUT}"
    return Section(name, family, [Table(name, family, columns, rows, about)])


def _published_sections(board: Board) -> list[Section]:
    """Return a section with all published numbers of a benchmark over time, if it has a ledger."""
    rows = []
    for protocol in _protocols_of(board):
        for row in protocol.rows:
            rows.append((protocol, row))
    if not rows:
        return []
    rows.sort(key=lambda pair: (pair[1].source.date, pair[0].title, -pair[1].value))
    name = f"published-{board.file_name}"
    lines = []
    points = []
    for protocol, row in rows:
        obstacles = [f"not stated: {what}" for what in protocol.not_stated]
        line = [
            Cell(row.source.date),
            Cell(row.label),
            Cell(row.vendor),
            Cell(protocol.title),
            Cell(row.number_text, row.value / 100, "", row.origin),
            Cell(protocol.obstacle or ", ".join(obstacles)),
        ]
        lines.append(line)
        if row.source.date != UNKNOWN:
            point = {
                "date": row.source.date,
                "score": row.value / 100,
                "model": row.label,
                "protocol": protocol.family,
            }
            points.append(point)
    table = Table(
        f"{name}-table", "All published numbers", _HEADS, lines, _OVER_TIME, search=True
    )
    figure = Figure(
        f"{name}-plot", "Published numbers over time", _OVER_TIME, over_time(), points
    )
    blocks: list[Block] = [figure, table] if points else [table]
    return [Section(name, "Published over time", blocks)]


def _protocols_of(board: Board) -> list[Protocol]:
    """Return the reported protocols of a board. The published tables of benchmarks are on the leaderboard."""
    if board.folder:
        return []
    protocols = find_protocols(board.benchmark)
    return [protocol for protocol in protocols if not protocol.is_table]
