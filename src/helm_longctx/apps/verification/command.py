"""The command `verify`."""

from pathlib import Path
from typing import Annotated

import typer

from helm_longctx.apps.verification.sections import (
    summarize,
    tabulate_cells,
    write_page,
)
from helm_longctx.apps.verification.verification import verify_benchmark
from helm_longctx.data.root import DataRoot
from helm_longctx.documents.terminal import print_table
from helm_longctx.errors import bad_argument
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.writing import write_output

_ALL = "all"


def verify(
    benchmark: Annotated[
        str, typer.Argument(help="Benchmark with published outputs, or `all`.")
    ],
    page: Annotated[
        Path | None, typer.Option(help="File to write the results into, in Markdown.")
    ] = None,
) -> None:
    """Score published outputs of real models again, and compare the scores with the printed table, cell by cell.

    Status 1: a score differs from the printed one, and no reason is known.
    """
    with_proof = {known.name: known for known in BENCHMARKS if known.proof}
    if benchmark not in (_ALL, *with_proof):
        raise bad_argument("verify", "benchmark", benchmark, (_ALL, *with_proof))
    if benchmark == _ALL:
        chosen = list(with_proof.values())
    else:
        chosen = [with_proof[benchmark]]
    root = DataRoot.find()
    verifications = []
    for known in chosen:
        verification = verify_benchmark(known, root)
        print_table(tabulate_cells(verification))
        for path in verification.missing:
            print(f"Not there: {path}")
        for path in verification.other:
            print(f"Not the content of the pinned commit: {path}")
        verifications.append(verification)
    print_table(summarize(verifications))
    if page:
        write_output(page, write_page(verifications).encode())
    if not all(verification.is_passed for verification in verifications):
        raise typer.Exit(1)
