"""Writes a certificate of the context's length as one page, and says what it found in lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from helm_longctx.results.boards import percent, range_text
from helm_longctx.results.report.site import templates
from helm_longctx.tasks.lengths import length_label

Record = Mapping[str, Any]
"""The JSON data of a certificate."""

COLUMNS = (
    "kind",
    "effective length",
    "not effective",
    "shortest",
    "claim",
    "threshold",
    "floor",
    "word search",
    "questions",
)

_MARKS = {"above": "effective", "below": "not effective", "open": "undecided"}

_USES = {"above": "used", "below": "not used", "open": "undecided"}

_PLACES = {
    "at_start": "start",
    "at_quarter": "a quarter",
    "at_middle": "middle",
    "at_three_quarters": "three quarters",
    "at_end": "end",
}


def write_certificate(record: Record, path: Path) -> None:
    """Write the page. It loads nothing and has no scripts."""
    style = (resources.files("helm_longctx.results.report") / "assets" / "report.css").read_text(encoding="utf-8")
    columns, rows = describe_kinds(record)
    lengths = record["design"]["lengths"]
    page = (
        templates()
        .get_template("certificate.html")
        .render(
            style=style,
            record=record,
            verdict=describe_verdict(record),
            lines=describe_totals(record)[len(record["findings"]) :],
            columns=columns,
            rows=rows,
            lengths=[length_label(length) for length in lengths],
            grid=[(kind["name"], [_grid_cell(kind, length) for length in lengths]) for kind in record["kinds"]],
            place_lengths=[length_label(int(length)) for length in (record["places"] or [{"shares": {}}])[0]["shares"]],
            places=[(_PLACES[each["place"]], each, _USES[each["decision"]]) for each in record["places"]],
            cells=[
                (kind["name"], cell)
                for kind in record["kinds"]
                for cell in kind["cells"]
                if cell["n"] or cell["failures"]
            ],
            label=length_label,
            percent=percent,
            marks=_MARKS,
        )
    )
    path.write_text(page, encoding="utf-8", errors="replace")


def describe_verdict(record: Record) -> str:
    """Return the answer to the question whether the claim holds, in a sentence."""
    claim, model = length_label(record["claim"]), record.get("model", "the model")
    if record["holds"]:
        return f"{model} uses {claim}: all kinds are effective at this length."
    if record["holds"] is None:
        return f"It is open whether {model} uses {claim}."
    lengths = [kind["effective"] for kind in record["kinds"] if kind["is_measurable"]]
    least, largest = (length_label(pick(lengths)) for pick in (min, max))
    up_to = f"{least}" if least == largest else f"{least} to {largest}, depending on the kind"
    return f"{model} does not use {claim}: the effective length is {up_to}."


def describe_kinds(record: Record) -> tuple[Sequence[str], list[list[str]]]:
    """Return the titles and rows of a table with a row for each kind."""
    return COLUMNS, [_describe_kind(record, kind) for kind in record["kinds"]]


def describe_totals(record: Record) -> list[str]:
    """Return lines about the server, the tokens, the price, and what is not decided."""
    lines = [each["text"] for each in record["findings"]]
    accepted = record["accepted"]
    lines.append(f"The largest accepted length is {length_label(accepted) if accepted else 'unknown'}.")
    lines.append(_describe_tokens(record))
    dollars = "an unknown price" if record["dollars"] is None else f"${record['dollars']:.2f}"
    seconds = f", {record['seconds']:,.0f} seconds" if "seconds" in record else ""
    lines.append(f"{record['requests']} requests, {record['prompt_tokens']:,} prompt tokens, {dollars}{seconds}.")
    if record["cut_answers"]:
        lines.append(
            f"The output budget ended {record['cut_answers']} answers, which have the scores of what they say."
        )
    if record["stop"]:
        lines.append(f"It ended early: {record['stop']}.")
    return lines


def _describe_kind(record: Record, kind: Mapping[str, Any]) -> list[str]:
    cells = {cell["length"]: cell for cell in kind["cells"]}
    ends = [cells.get(record["design"][name]) for name in ("shortest", "claim")]
    scores = [_describe_score(cell) for cell in ends]
    effective = length_label(kind["effective"]) if kind["effective"] else "not measurable"
    numbers = [kind["threshold"], kind["floor"], kind["baselines"].get("lexical")]
    return [
        kind["name"],
        effective,
        length_label(kind["not_effective"]) if kind["not_effective"] else "–",
        *scores,
        *("–" if number is None else percent(number) for number in numbers),
        str(sum(cell["n"] for cell in kind["cells"])),
    ]


def _describe_score(cell: Mapping[str, Any] | None) -> str:
    if cell is None or (not cell["n"] and not cell["is_refused"]):
        return "–"
    if cell["is_refused"]:
        return "refused"
    # Whole percents, because an interval is at least ten wide.
    return f"{100 * cell['mean']:.0f} ({range_text(100 * cell['low'], 100 * cell['high'], '{:.0f}'.format)})"


def _describe_tokens(record: Record) -> str:
    tokens = record["tokens"]
    if not tokens["reported"]:
        return "The server does not report the tokens of prompts."
    if tokens["by_tokenizer"] is not None:
        ratio = tokens["by_tokenizer"]
        agrees = "agrees with" if abs(ratio - 1) <= 0.05 else "differs from"
        return f"The server's count of tokens {agrees} the tokenizer's: the ratio is {ratio:.3f}."
    return f"The server counts {tokens['by_estimate']:.2f} times as many tokens as our estimate; no tokenizer is known."


def _grid_cell(kind: Mapping[str, Any], length: int) -> dict[str, str]:
    """Return the text and the state of a cell of the grid of kinds and lengths."""
    cell = next((cell for cell in kind["cells"] if cell["length"] == length), None)
    if cell is not None and (cell["n"] or cell["is_refused"]):
        return {"text": "refused" if cell["is_refused"] else percent(cell["mean"]), "state": cell["decision"]}
    # Scores are taken not to rise with the length, so lengths between two tested ones are known, too.
    if kind["effective"] and length < kind["effective"]:
        return {"text": "", "state": "above"}
    if kind["not_effective"] and length > kind["not_effective"]:
        return {"text": "", "state": "below"}
    return {"text": "", "state": "open"}
