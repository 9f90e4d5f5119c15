"""The record of an analysis: the commands and the pages of the report that its folder adds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from helm_longctx.errors import InputError

if TYPE_CHECKING:
    from helm_longctx.documents.document import Section
    from helm_longctx.results.boards import Board

GROUP = "helm_longctx.apps"
"""The group of entry points by which other packages add analyses."""


@dataclass(frozen=True)
class Command:
    """A command of `helm-longctx`.

    Args:
        where: `module:function`. If the module has an `app`, the function is the callback of that app.
        panel: the heading in the help under which the command stands.
    """

    name: str
    where: str
    panel: str
    example: str

    def load(self) -> Any:
        """Import the command's module, and return the parser of the command."""
        import typer
        from typer.main import get_command

        own = getattr(import_module(self.where.partition(":")[0]), "app", None)
        if own is None:
            own = typer.Typer(add_completion=False)
            own.command()(load(self.where))
        parser: Any = get_command(own)
        parser.name = self.name
        parser.epilog = f"Example: helm-longctx {self.name} {self.example}"
        return parser

    def read_help(self) -> str:
        """Return the function's docstring. The module is not imported, because all of them together take seconds."""
        module, _, function = self.where.partition(":")
        spec = find_spec(module)
        code = ast.parse(
            Path(str(spec.origin)).read_text(encoding="utf-8") if spec else ""
        )
        for node in code.body:
            if isinstance(node, ast.FunctionDef) and node.name == function:
                return ast.get_docstring(node) or ""
        raise LookupError(f"{self.where}: there is no such function")


@dataclass(frozen=True)
class ReportPage:
    """A page of the report.

    Args:
        name: the last part of the file's name, or empty for a board's first page.
        where: `module:function`. The function takes a board, and returns the page's sections. With `whole`, it takes
            all boards.
        position: where the page stands among the pages, smallest first.
        whole: whether there is one page for all boards, and not a page for each of them.
    """

    name: str
    title: str
    where: str
    position: int
    whole: bool = False

    def sections(self, boards: Board | Sequence[Board]) -> list[Section]:
        """Return the sections of the page; none if there is nothing to show."""
        made: list[Section] = load(self.where)(boards)
        return made


@dataclass(frozen=True)
class App:
    """An analysis."""

    commands: Sequence[Command] = ()
    pages: Sequence[ReportPage] = ()


@cache
def find_own_apps() -> tuple[App, ...]:
    """Return the analyses in the folders beside this module."""
    modules = iter_modules([str(Path(__file__).parent)])
    folders = sorted(module.name for module in modules if module.ispkg)
    return tuple(import_module(f"{__package__}.{name}").APP for name in folders)


@cache
def find_apps() -> tuple[App, ...]:
    """Return all analyses. Those of other packages are last; one that cannot be used is left out with a warning."""
    from helm_longctx.parts import check_fields, load_plugins

    def check(record: App) -> App:
        check_fields(record, App)
        for where in (
            *(command.where for command in record.commands),
            *(page.where for page in record.pages),
        ):
            if not callable(load(where)):
                raise InputError(f"{where} is not a function")
        return record

    return (*find_own_apps(), *load_plugins(GROUP, "the analysis", check))


def load(where: str) -> Callable[..., Any]:
    """Return the function that `module:function` names."""
    module, _, name = where.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def for_each_length(
    make: Callable[[Board, int | None], Section | None],
) -> Callable[[Board], list[Section]]:
    """Make a page's function from one that returns the section of a length, or None. The main length comes first."""

    @wraps(make)
    def sections(board: Board) -> list[Section]:
        others = []
        for length in reversed(board.lengths):
            if length != board.main_length:
                others.append(length)
        made = [make(board, length) for length in (board.main_length, *others)]
        return [section for section in made if section]

    return sections
