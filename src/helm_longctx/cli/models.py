"""`models`: list the deployments that come with the package."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.table import Table

from helm_longctx.cli.shared import print_table
from helm_longctx.errors import InputError

FILES = ("model_deployments.yaml", "model_metadata.yaml", "tokenizer_configs.yaml")


def models(
    copy_to: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Copy the files to this folder, to edit them."),
    ] = None,
) -> None:
    """List the deployments that come with the package, and the folder with their files."""
    folder = Path(str(resources.files("helm_longctx") / "config"))
    if copy_to:
        _copy(folder, copy_to)
        folder = copy_to
    deployments = yaml.safe_load((folder / FILES[0]).read_text(encoding="utf-8"))["model_deployments"]
    table = Table(title="Deployments", title_justify="left")
    for column in ("model", "client", "window"):
        table.add_column(column, overflow="fold")
    for name, about in (("longctx/lexical", "no network: finds words"), ("longctx/null", "no network: a constant")):
        table.add_row(name, about, "any")
    for row in deployments:
        table.add_row(
            row["name"], row["client_spec"]["class_name"].rsplit(".", 1)[-1], str(row.get("max_sequence_length", "any"))
        )
    print_table(table)
    print(f"helm-run … --local-path {folder}")


def _copy(source: Path, target: Path) -> None:
    existing = [name for name in FILES if (target / name).exists()]
    if existing:
        raise InputError(f"--copy-to={str(target)!r} already has {', '.join(existing)}; name another folder")
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (target / name).write_text((source / name).read_text(encoding="utf-8"), encoding="utf-8")
    print(f"Wrote {', '.join(FILES)} to {target}", file=sys.stderr)
