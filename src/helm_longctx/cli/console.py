"""Where tables are printed."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table


def print_table(table: Table) -> None:
    """Print a table; wide enough to read where the output is no terminal."""
    Console(width=None if sys.stdout.isatty() else 120).print(table)
