"""Options that several commands have, and what is looked at before a command works for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.extras import require

Suite = Annotated[str, typer.Option(help="The suite that helm-run wrote.")]
OutputPath = Annotated[Path, typer.Option("--output-path", "-o", help="HELM's output folder.")]
LocalPath = Annotated[Path, typer.Option(help="HELM's --local-path.")]
JsonPath = Annotated[Path | None, typer.Option("--json", help="Also write everything here, as JSON.")]

PICTURES = (".png", ".svg", ".pdf")


def check_folder(option: str, path: Path | None) -> None:
    """Whether a file can be written later, when calls are paid for.

    Raises:
        InputError: its folder is not there, or it is one.
    """
    if path and path.is_dir():
        raise InputError(f"{option}={str(path)!r} is a folder; name a file")
    if path and not path.parent.is_dir():
        raise InputError(f"{option}={str(path)!r}: there is no folder {path.parent}; make it first")


def check_picture(command: str, path: Path) -> None:
    """Whether a picture can be drawn.

    Raises:
        InputError: it cannot: its ending is no known format, or the extra `plot` is not installed.
    """
    if path.suffix not in PICTURES:
        raise bad_argument(command, "plot", str(path), f"a file that ends in {', '.join(PICTURES)}")
    require("plot", f"plot={str(path)!r}")
