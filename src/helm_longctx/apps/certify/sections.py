"""Writes a certificate of the context's length as one page, and says what it found in lines of text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from helm_longctx.documents.numbers import format_percent, format_range
from helm_longctx.documents.site import templates
from helm_longctx.results.statistics.level import LEVEL_TEXT
from helm_longctx.tasks.lengths import length_label
from helm_longctx.writing import replace_file

CertificateRecord = Mapping[str, Any]
"""The JSON data of a certificate."""

_COLUMNS = (
    "kind",
    "effective for sure",
    "lost for sure",
    "shortest",
    "claim",
    "floor",
    "word search",
    "questions",
)

_MARKS = {
    "above": "effective",
    "below": "not effective",
    "open": "undecided",
}

_USES = {
    "above": "used",
    "below": "not used",
    "open": "undecided",
}

_PLACES = {
    "at_start": "start",
    "at_quarter": "a quarter",
    "at_middle": "middle",
    "at_three_quarters": "three quarters",
    "at_end": "end",
}


def write_certificate(record: CertificateRecord, path: Path) -> None:
    """Write the page. It loads nothing and has no scripts."""
    style = (
        resources.files("helm_longctx.documents") / "assets" / "report.css"
    ).read_text(encoding="utf-8")
    columns, rows = describe_kinds(record)
    cells = []
    for kind in record["kinds"]:
        for cell in kind["cells"]:
            if _was_sent(cell):
                cells.append((kind["name"], cell))
    # Lengths that were never sent have no column.
    lengths = sorted({cell["length"] for _, cell in cells})
    shortest = record["design"]["shortest"]
    grid = []
    for kind in record["kinds"]:
        row = []
        for length in lengths:
            row.append(_grid_cell(kind, length, shortest))
        grid.append((kind["name"], row))
    losses = []
    for loss in record["lengths"]:
        losses.append((loss, _describe_loss(loss)))
    parts = []
    for part in record["places"]:
        parts.append((_PLACES[part["place"]], part, _USES[part["decision"]]))
    part_lengths = []
    if parts:
        for length in record["places"][0]["shares"]:
            part_lengths.append(length_label(int(length)))
    template = templates().get_template("certificate.html")
    page = template.render(
        style=style,
        record=record,
        verdict=describe_verdict(record),
        lines=describe_totals(record)[len(record["findings"]) :],
        columns=columns,
        rows=rows,
        lengths=[length_label(length) for length in lengths],
        name=describe_name(record),
        grid=grid,
        losses=losses,
        place_lengths=part_lengths,
        places=parts,
        cells=cells,
        label=length_label,
        percent=format_percent,
        level=LEVEL_TEXT,
        marks=_MARKS,
    )
    replace_file(path, page.encode(errors="replace"))


def describe_name(record: CertificateRecord) -> str:
    """Return what a certificate stands on, such as `recall only`."""
    kinds = record["stands_on"]
    every = len(record["kinds"])
    if not kinds:
        return "no kind can be measured"
    if len(kinds) < every:
        return f"{_join(kinds)} only"
    if record["all_kinds"]:
        return f"all {every} kinds, each alone"
    return f"the mean of {every} kinds"


def describe_verdict(record: CertificateRecord) -> str:
    """Return the answer to the question whether the claim holds, with what it stands on, in sentences."""
    claim = length_label(record["claim"])
    model = record.get("model", "the model")
    kinds = record["stands_on"]
    shortest = length_label(record["design"]["shortest"])
    if record["holds"] is None:
        return f"It is open whether {model} uses {claim}: {_describe_open(record)}."
    left_out = []
    for kind in record["kinds"]:
        if kind["name"] not in kinds:
            left_out.append(kind["name"])
    if left_out:
        about = f" Not measurable at {shortest}, and left out: {_join(left_out)}."
    else:
        about = ""
    points = f"{100 * record['design']['loss']:.0f} points"
    if record["holds"]:
        if record["all_kinds"]:
            return f"{model} uses {claim}: all kinds are effective at this length ({_join(kinds)})."
        if len(kinds) > 1:
            what = f"the mean score of {_join(kinds)}"
        else:
            what = f"the score of {kinds[0]}"
        if len(kinds) > 1:
            least = " No kind alone was found to lose."
        else:
            least = ""
        return f"{model} uses {claim}: {what} is less than {points} below that at {shortest}.{least}{about}"
    return f"{model} does not use {claim} ({describe_name(record)}): {_describe_lost(record)}.{about}"


def _describe_open(record: CertificateRecord) -> str:
    """Return the reason why the claim is open."""
    shortest = length_label(record["design"]["shortest"])
    tests = record["lengths"]
    if record["stop"] and not tests:
        return f"not all questions at {shortest} were asked"
    if not record["stands_on"]:
        texts = []
        failures = Counter[str]()
        for kind in record["kinds"]:
            cell = kind["cells"][0]
            failures.update(cell["failures"])
            if cell["n"]:
                texts.append(f"{kind['name']} {100 * cell['mean']:.0f}")
            else:
                texts.append(f"{kind['name']} without an answer")
        scores = ", ".join(texts)
        if failures:
            failed = f" (failures: {_join(list(failures))})"
        else:
            failed = ""
        why = "the scores are not far enough above what needs no text, so nothing longer was sent"
        return f"no kind can be measured at {shortest}, where {why}. Scores: {scores}{failed}"
    if not tests or not tests[0]["n"]:
        return "no question at this length has an answer"
    if tests[0]["has_too_many_failures"]:
        return (
            f"{tests[0]['failed']} of {tests[0]['asked']} requests of this length have"
            f" no answer, more than a tenth, and {_describe_loss(tests[0])} in the"
            " others"
        )
    return f"{_describe_loss(tests[0])} after {tests[0]['n']} answers, which decides nothing"


def _describe_lost(record: CertificateRecord) -> str:
    """Return what was lost at the claim, and what is known about the effective length."""
    claim = next(
        loss for loss in record["lengths"] if loss["length"] == record["claim"]
    )
    lost = []
    for kind in record["kinds"]:
        for cell in kind["cells"]:
            if cell["length"] == record["claim"] and cell["decision"] == "below":
                lost.append(kind["name"])
    if lost:
        what = f"{_join(lost)} {'is' if len(lost) == 1 else 'are'} lost there, and "
    else:
        what = ""
    if claim["n"]:
        what = f"{what}{_describe_loss(claim)}"
    else:
        what = "it refuses prompts of this length"
    low = record["effective"]
    high = record["not_effective"]
    lengths = record["design"]["lengths"]
    is_known = lengths.index(high) == lengths.index(low) + 1
    if is_known:
        known = f"is {length_label(low)}"
    else:
        known = f"is at least {length_label(low)} and below {length_label(high)}"
    return f"{what}; the effective length {known}"


def _describe_loss(test: Mapping[str, Any]) -> str:
    if not test["n"]:
        return "no answer"
    if test["low"] is None:
        ends = ""
    else:
        ends = f" ({100 * test['low']:.0f} to {100 * test['high']:.0f})"
    return f"the mean loss is {100 * test['loss']:.0f} points{ends}"


def _join(names: Sequence[str]) -> str:
    *others, last = names
    if others:
        return f"{', '.join(others)} and {last}"
    return last


def _was_sent(cell: Mapping[str, Any]) -> bool:
    return bool(cell["n"] or cell["failures"])


def describe_kinds(record: CertificateRecord) -> tuple[Sequence[str], list[list[str]]]:
    """Return the titles and rows of a table with a row for each kind."""
    return _COLUMNS, [_describe_kind(record, kind) for kind in record["kinds"]]


def describe_totals(record: CertificateRecord) -> list[str]:
    """Return lines about the server, the tokens, the price, and what is not decided."""
    lines = []
    for finding in record["findings"]:
        lines.append(finding["text"])
    accepted = record["accepted"]
    lines.append(
        f"The largest accepted length is {length_label(accepted) if accepted else 'unknown'}."
    )
    lines.append(_describe_tokens(record))
    if record["dollars"] is None:
        dollars = "an unknown price"
    else:
        dollars = f"${record['dollars']:.2f}"
    if "seconds" in record:
        seconds = f", {record['seconds']:,.0f} seconds"
    else:
        seconds = ""
    lines.append(
        f"{record['requests']} requests, {record['prompt_tokens']:,} prompt tokens,"
        f" {dollars}{seconds}."
    )
    if record["cut_answers"]:
        lines.append(
            f"The output budget ended {record['cut_answers']} answers, which have the"
            " scores of what they say."
        )
    if record["stop"]:
        lines.append(f"It ended early: {record['stop']}.")
    return lines


def _describe_kind(record: CertificateRecord, kind: Mapping[str, Any]) -> list[str]:
    cells = {}
    for cell in kind["cells"]:
        cells[cell["length"]] = cell
    ends = []
    for name in ("shortest", "claim"):
        ends.append(cells.get(record["design"][name]))
    scores = [_describe_score(cell) for cell in ends]
    if kind["effective"]:
        effective = length_label(kind["effective"])
    else:
        effective = "–"
    numbers = [kind["floor"], kind["baselines"].get("lexical")]
    return [
        kind["name"],
        effective if kind["is_measurable"] else "not measurable",
        length_label(kind["not_effective"]) if kind["not_effective"] else "–",
        *scores,
        *("–" if number is None else format_percent(number) for number in numbers),
        str(sum(cell["n"] for cell in kind["cells"])),
    ]


def _describe_score(cell: Mapping[str, Any] | None) -> str:
    if cell is None or (not cell["n"] and not cell["is_refused"]):
        return "–"
    if cell["is_refused"]:
        return "refused"
    # Whole percents, because an interval is at least ten wide.
    return f"{100 * cell['mean']:.0f} ({format_range(100 * cell['low'], 100 * cell['high'], '{:.0f}'.format)})"


def _describe_tokens(record: CertificateRecord) -> str:
    tokens = record["tokens"]
    if not tokens["reported"]:
        return "The server does not report the tokens of prompts."
    if tokens["by_tokenizer"] is not None:
        ratio = tokens["by_tokenizer"]
        if abs(ratio - 1) <= 0.05:
            agrees = "agrees with"
        else:
            agrees = "differs from"
        return f"The server's count of tokens {agrees} the tokenizer's: the ratio is {ratio:.3f}."
    return f"The server counts {tokens['by_estimate']:.2f} times as many tokens as our estimate; no tokenizer is known."


def _grid_cell(kind: Mapping[str, Any], length: int, shortest: int) -> dict[str, str]:
    """Return the text and the state of a cell of the grid of kinds and lengths."""
    cell = next((cell for cell in kind["cells"] if cell["length"] == length), None)
    if cell is None or not _was_sent(cell):
        return {"text": "", "state": "open"}
    if length == shortest and kind["is_measurable"]:
        state = "above"
    else:
        state = cell["decision"]
    text = format_percent(cell["mean"]) if cell["n"] else "–"
    if cell["is_refused"]:
        text = "refused"
    return {"text": text, "state": state}
