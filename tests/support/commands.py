"""The `helm-longctx` command in the process of the tests."""

from __future__ import annotations

import json
import sys

import pytest

from helm_longctx.cli.main import main


class Command:
    """Runs the command and keeps what it printed."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsysbinary: pytest.CaptureFixture[bytes],
    ):
        self.monkeypatch = monkeypatch
        self.capture = capsysbinary

    def __call__(self, *arguments: object) -> int:
        """Run the command and return its exit status."""
        self.monkeypatch.setattr(sys, "argv", ["helm-longctx", *map(str, arguments)])
        try:
            main()
            status = 0
        except SystemExit as error:
            status = int(error.code or 0)
        out, err = self.capture.readouterr()
        self.out = out.decode()
        self.err = err.decode()
        return status

    @property
    def rows(self) -> list[dict]:
        """Return the printed JSON lines."""
        return [json.loads(line) for line in self.out.split("\n")[:-1]]
