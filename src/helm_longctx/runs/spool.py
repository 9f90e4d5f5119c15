"""Long texts of a run on disk while it lasts, so that memory holds those in use alone."""

from __future__ import annotations

import tempfile
from pathlib import Path
from threading import Lock
from types import TracebackType

from helm_longctx.redaction.abbreviation import digest


class Spool:
    """A nameless temporary file of texts, each once; it is gone with the process, however that ends.

    Args:
        folder: on whose disk it stands.
    """

    def __init__(self, folder: Path):
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed by __exit__
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._lock = Lock()

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, text: str) -> str:
        """Keep a text; its digest, by which it is read again."""
        name = digest(text)
        with self._lock:
            if name not in self._places:
                self._file.seek(self._end)
                size = self._file.write(text.encode("utf-8", "surrogatepass"))
                self._places[name] = (self._end, size)
                self._end += size
        return name

    def read(self, name: str) -> str:
        """The text of a digest.

        Raises:
            KeyError: it was never added.
        """
        start, size = self._places[name]
        with self._lock:
            self._file.seek(start)
            data = self._file.read(size)
        return data.decode("utf-8", "surrogatepass")
