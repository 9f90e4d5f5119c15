"""Reads CSV tables: large files of data, a few rows at a time, and the published tables in a benchmark's folder."""

import csv
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

from helm_longctx.errors import InputError

_ROWS_AT_ONCE = 4
"""Usual number of rows in memory. A row can hold a million tokens."""


def read_csv(
    path: Path,
    columns: Sequence[str],
    at_once: int = _ROWS_AT_ONCE,
) -> Iterator[dict[str, str]]:
    """Yield the rows of a file in UTF-8. Raises an `InputError` if a row has no text in one of these columns."""
    import pandas as pd  # slow to import, and commands that only read the table of tasks do not need it

    try:
        # Python's csv refuses fields of this size unless a limit of the whole process is changed. Values such as
        # "NA" stay strings.
        chunks = pd.read_csv(
            path,
            dtype=str,
            keep_default_na=False,
            chunksize=at_once,
        )
        rows = (row for chunk in chunks for row in chunk.to_dict("records"))
        for number, row in enumerate(rows, 1):
            for column in columns:
                if not isinstance(row.get(column), str) or not row[column]:
                    raise InputError(
                        f"{path}: row {number}: column {column!r} must be text, found nothing"
                    )
            yield row
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except InputError:
        raise
    except ValueError as error:  # pandas' own errors, and errors of decoding
        raise InputError(
            f"{path}: it is not a CSV file in UTF-8 ({type(error).__name__})"
        ) from error


def read_table(package: str, name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file in a package."""
    text = (resources.files(package) / name).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines())
