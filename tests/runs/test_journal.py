"""Answers are on disk as they come, and a torn end costs one answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helm.common.request import GeneratedOutput, Request, RequestResult, Thinking, Token

from helm_longctx.errors import InputError
from helm_longctx.runs.journal import NAME, Journal

ANSWER = RequestResult(
    success=True,
    embedding=[],
    completions=[
        GeneratedOutput(
            text="ein 文 \udc80",
            logprob=-0.5,
            tokens=[Token("ein", -0.5)],
            finish_reason={"reason": "stop"},
            thinking=Thinking("so"),
        )
    ],
    cached=False,
    request_time=0.1,
    request_datetime=5,
)


def test_answers_come_back(tmp_path: Path) -> None:
    """What is read after a crash is what was written."""
    with Journal(tmp_path) as journal:
        journal.add("a", ANSWER)
        assert journal.get("a") == ANSWER
        assert journal.get("b") is None
    with Journal(tmp_path) as journal:
        assert journal.get("a") == ANSWER
        journal.finish()
    assert not (tmp_path / NAME).exists()


@pytest.mark.parametrize("lost", range(1, 60, 7))
def test_a_torn_end(tmp_path: Path, lost: int) -> None:
    """Whatever the crash left of the last line, the others count, and the next is whole."""
    with Journal(tmp_path) as journal:
        journal.add("a", ANSWER)
        journal.add("b", ANSWER)
    data = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(data[:-lost])
    with Journal(tmp_path) as journal:
        assert journal.get("a") == ANSWER
        assert journal.get("b") is None
        journal.add("c", ANSWER)
    with Journal(tmp_path) as journal:
        assert journal.get("c") == ANSWER


def test_damage_before_the_end(tmp_path: Path) -> None:
    """It is told in one line: answers may have cost money, so they are not thrown away unasked."""
    with Journal(tmp_path) as journal:
        journal.add("a", ANSWER)
        journal.add("b", ANSWER)
    data = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(b"\0" * 9 + data[9:])
    with pytest.raises(InputError, match=f"{NAME} is damaged; remove it, and its answers are requested again"):
        Journal(tmp_path)
    assert (tmp_path / NAME).read_bytes() == b"\0" * 9 + data[9:]


@pytest.mark.parametrize("line", ["7", "[7, {}]", '["a"]', '["a", [1]]', "{}"])
def test_lines_that_are_no_answers(line: str, tmp_path: Path) -> None:
    """They are damage as well."""
    (tmp_path / NAME).write_text(line + "\n")
    with pytest.raises(InputError, match="is damaged"):
        Journal(tmp_path)


def test_answers_without_a_text(tmp_path: Path) -> None:
    """Earlier versions wrote answers whose text is null: they are read, and do not count."""
    with Journal(tmp_path) as journal:
        for name, text in (("null", None), ("list", ["x"]), ("empty", "")):
            journal.add(name, replace(ANSWER, completions=[GeneratedOutput(text, 0, [])]))  # type: ignore[arg-type]
        journal.add("none", replace(ANSWER, completions=[]))
    with Journal(tmp_path) as journal:
        assert [name for name in ("null", "list", "none", "empty") if journal.get(name)] == ["empty"]


def test_requests_are_told_apart(tmp_path: Path) -> None:
    """Any field of a request makes it another, and so does another server."""
    request = Request(prompt="p", model="a/b", model_deployment="a/b")
    others = [replace(request, random="1"), replace(request, stop_sequences=["\n"])]
    with Journal(tmp_path, "here") as journal:
        names = [journal.name(known, "d") for known in (request, *others)] + [journal.name(request, "e")]
        assert journal.name(replace(request, prompt="elided otherwise"), "d") == names[0]
    with Journal(tmp_path, "there") as journal:
        names.append(journal.name(request, "d"))
    assert len(set(names)) == 5
