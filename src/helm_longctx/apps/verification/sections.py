"""Shows verified tables: on the terminal cell by cell, and on the page docs/proof.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from helm_longctx.apps.verification.verification import (
    ScoreVerdict,
    Verification,
    VerifiedScore,
    group_reasons,
)
from helm_longctx.documents.document import Table, text_table

_MOST_NAMES = 6
"""Number of cells that a sentence names."""

_INTRODUCTION = """# Proof with published outputs

Some authors publish the outputs of real models beside the table that they made of them. `helm-longctx verify BENCHMARK`
fetches both at a pinned commit, scores the outputs with this package's scorers, and prints the table cell by cell. This
command writes this page:

    helm-longctx verify all --page docs/proof.md

A cell is *equal* if the score of the outputs rounds to the printed digits. It is
*explained* if it differs for a known reason; where a reason says how the printed score was made, the command computes
it in that way and requires the printed digits. Any other difference ends the command with status 1.

A folder of a repository is checked by git's tree id, and a single file by its blob id, when it is downloaded and
when it is scored ([Data](data.md)). With a [mirror folder](data.md), the files are under `proof/`.
"""


def summarize(verifications: Sequence[Verification]) -> Table:
    """Return the table of counts."""
    rows = []
    for verification in verifications:
        rows.append(
            [
                verification.benchmark.title,
                verification.proof.title,
                f"{verification.outputs:,}",
                f"{len(verification.cells):,}",
                *(f"{verification.counts[verdict]:,}" for verdict in ScoreVerdict),
            ]
        )
    return text_table(
        "Published outputs, scored again",
        (
            "benchmark",
            "what was published",
            "outputs",
            "cells",
            *(v.value for v in ScoreVerdict),
        ),
        rows,
        right=("outputs", "cells", *(verdict.value for verdict in ScoreVerdict)),
    )


def tabulate_cells(verification: Verification) -> Table:
    """Return the table of all cells."""
    rows = []
    for verified in verification.cells:
        rows.append(
            [
                verified.cell.model,
                verified.cell.column,
                verified.cell.text,
                _format_score(verified),
                verified.verdict.value,
                verified.reason,
            ]
        )
    return text_table(
        f"{verification.benchmark.title}: {verification.proof.title}",
        ("model", "task", "printed", "from the outputs", "verdict", "reason"),
        rows,
        right=("printed", "from the outputs"),
    )


def _format_score(verified: VerifiedScore) -> str:
    if verified.percent is None:
        return ""
    return f"{verified.percent:.2f}"


def write_page(verifications: Sequence[Verification]) -> str:
    """Return the page docs/proof.md."""
    lines = [_INTRODUCTION, *_format_table(summarize(verifications)), ""]
    for verification in verifications:
        lines += [*_describe(verification), ""]
    return "\n".join(lines).rstrip() + "\n"


def _describe(verification: Verification) -> Iterator[str]:
    proof = verification.proof
    if proof.is_by_authors:
        publisher = ""
    else:
        publisher = " They are not published by the benchmark's authors."
    yield f"## {verification.benchmark.title}"
    yield ""
    yield (
        f"[{proof.title[0].upper()}{proof.title[1:]}]({proof.page}).{publisher}"
        f" {verification.outputs:,} outputs in {verification.files:,} files were scored."
    )
    yield ""
    yield from _format_table(_tabulate_models(verification))
    reasons = list(group_reasons(verification))
    if reasons:
        yield ""
        yield "Explained:"
        yield ""
        for reason, cells in reasons:
            if all(cell.is_computed for cell in cells):
                check = "Computed in this way, the score is the printed one."
            else:
                check = "No computation gives the printed score."
            yield f"- {_name_cells(cells)}: {reason} {check}"
    different = []
    for cell in verification.cells:
        if cell.verdict is ScoreVerdict.DIFFERENT:
            different.append(cell)
    if different:
        yield ""
        yield f"Different, without a known reason: {_name_cells(different, len(different))}."
    yield ""
    yield _describe_content(verification)
    if verification.missing:
        yield ""
        yield f"Files that could not be had: {', '.join(f'`{path}`' for path in verification.missing)}."


def _describe_content(verification: Verification) -> str:
    """Say whether the files were those of the pinned commits."""
    if verification.other:
        names = ", ".join(f"`{path}`" for path in verification.other)
        return f"By git's ids, the content is not that of the pinned commits, or is not whole: {names}."
    return "By git's ids, the content of all files that were there is that of the pinned commits."


def _tabulate_models(verification: Verification) -> Table:
    models = dict.fromkeys(verified.cell.model for verified in verification.cells)
    rows = []
    for model in models:
        cells = []
        for cell in verification.cells:
            if cell.cell.model == model:
                cells.append(cell)
        counts = []
        for verdict in ScoreVerdict:
            counts.append(sum(cell.verdict is verdict for cell in cells))
        rows.append([model, str(len(cells)), *map(str, counts)])
    names = [verdict.value for verdict in ScoreVerdict]
    return text_table("", ("model", "cells", *names), rows, right=("cells", *names))


def _name_cells(cells: Sequence[VerifiedScore], most: int = _MOST_NAMES) -> str:
    names = []
    for verified in cells[:most]:
        names.append(
            f"{verified.cell.model} {verified.cell.column}"
            f" (printed {verified.cell.text}, from the outputs {_format_score(verified) or 'none'})"
        )
    rest = len(cells) - len(names)
    return "; ".join(names) + (f"; and {rest} more" if rest else "")


def _format_table(table: Table) -> Iterable[str]:
    """Yield the lines of a table in Markdown. Columns of zeros are left out."""
    shown = []
    for index, column in enumerate(table.columns):
        if not column.is_number or any(row[index].text != "0" for row in table.rows):
            shown.append(index)
    columns = [table.columns[index] for index in shown]
    yield "| " + " | ".join(column.title for column in columns) + " |"
    yield (
        "|"
        + "|".join("---:" if column.is_number else "---" for column in columns)
        + "|"
    )
    for row in table.rows:
        yield (
            "| "
            + " | ".join(row[index].text.replace("|", "\\|") for index in shown)
            + " |"
        )
