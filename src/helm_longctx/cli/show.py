"""`show`: a prompt of a run, as it was sent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from helm_longctx.cli.options import OutputPath
from helm_longctx.errors import bad_argument


def show(
    run: Annotated[str, typer.Argument(help="A run's folder, or its name under any suite of --output-path.")],
    instance: Annotated[
        str,
        typer.Argument(help="The instance's id, as on the run's page; if several share it, the error has their names."),
    ],
    output_path: OutputPath = Path("benchmark_output"),
) -> None:
    """Print the whole prompt that was sent for an instance: exactly its bytes, with no newline added."""
    from helm_longctx.runs.prompts import full_prompt

    prompt = full_prompt(_run_folder(run, output_path), instance)
    sys.stdout.buffer.write(prompt.encode("utf-8", "surrogatepass"))


def _run_folder(run: str, output_path: Path) -> Path:
    if Path(run).is_dir():
        return Path(run)
    name = run.replace("/", "_")  # as HELM does in the names of models
    found = [path for path in output_path.glob("runs/*/*") if path.is_dir() and path.name == name]
    if len(found) != 1:
        allowed = f"a folder, or the name of one run under {output_path / 'runs'}; {len(found)} have this name"
        raise bad_argument("show", "run", run, allowed)
    return found[0]
