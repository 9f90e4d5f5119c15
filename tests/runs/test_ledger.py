"""Tests that the ledger knows after a crash what was sent, and that a run sends no request that is in a batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from helm.common.request import Request

from helm_longctx.errors import InputError
from helm_longctx.runs.ledger import NAME, Ledger, Receiver, check_nothing_in_batches

REQUESTS = {
    "a": (
        Request("m/d", "m/m", prompt="Where?", stop_sequences=["\n"], random="1"),
        {"max_tokens": 5},
    ),
    "b": (
        Request(
            "m/d",
            "m/m",
            messages=[{"role": "user", "content": "Why?"}],
            temperature=0.5,
        ),
        {},
    ),
}


def announce(ledger: Ledger) -> str:
    return ledger.announce(Receiver("m/d", "openai"), "/v1/completions", REQUESTS).id


def test_steps_come_back(tmp_path: Path) -> None:
    """All steps are read back, and requests are stored without their prompts but with the fact that they had messages."""
    with Ledger(tmp_path) as ledger:
        for _ in range(3):
            announce(ledger)
        first, second, third = ledger.parts
        ledger.set_batch(first, "batch_1")
        ledger.set_absent(second)
        ledger.set_batch(third, "batch_3")
        ledger.set_collected(third, {"refused": 1})
        expected = ledger.parts
    with Ledger(tmp_path) as ledger:
        assert ledger.parts == expected
        (part,) = ledger.open_parts
        assert (part.batch, part.service, part.route) == (
            "batch_1",
            "openai",
            "/v1/completions",
        )
        assert part.request("a") == Request(
            "m/d", "m/m", prompt="", stop_sequences=["\n"], random="1"
        )
        assert part.request_fields("a") == {"max_tokens": 5}
        assert part.request("b") == Request("m/d", "m/m", messages=[], temperature=0.5)
    assert "Wh" not in (tmp_path / NAME).read_text()


def test_a_reader_leaves_a_torn_line_to_its_writer(tmp_path: Path) -> None:
    """A reader leaves a torn line, which another process may be writing, and the next writer drops it."""
    with Ledger(tmp_path) as ledger:
        announce(ledger)
    whole = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(whole + b'{"part": "x"')
    with Ledger(tmp_path) as ledger:
        assert len(ledger.parts) == 1
        assert (tmp_path / NAME).read_bytes() != whole
        announce(ledger)
    with Ledger(tmp_path) as ledger:
        assert len(ledger.parts) == 2


@pytest.mark.parametrize(
    "line",
    [
        b'{"part": "x", "batch": "y"}\n',
        b'{"part": 1, "requests": {}}\n',
        b"[]\n",
        b"{\n",
    ],
)
def test_damage(tmp_path: Path, line: bytes) -> None:
    """One line names a damaged ledger."""
    (tmp_path / NAME).write_bytes(line)
    with pytest.raises(InputError, match=r"batches\.jsonl is damaged"):
        Ledger(tmp_path)


def test_what_waits_is_not_sent_directly(tmp_path: Path) -> None:
    """No request is sent directly from the moment before its batch is created until its answers are there."""
    check_nothing_in_batches(tmp_path)
    with Ledger(tmp_path) as ledger:
        announce(ledger)
        (part,) = ledger.parts
        for step in (lambda: None, lambda: ledger.set_batch(part, "batch_1")):
            step()
            with pytest.raises(
                InputError,
                match=r"2 requests of this run are in batches .* run` with --batch wait",
            ):
                check_nothing_in_batches(tmp_path)
        ledger.set_collected(part, {})
        check_nothing_in_batches(tmp_path)
