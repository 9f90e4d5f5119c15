"""Tests that answers are on disk as they come, and that a torn end of the journal costs only one answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helm.common.request import GeneratedOutput, Request, RequestResult, Thinking, Token

from helm_longctx.errors import InputError
from helm_longctx.runs.journal import NAME, Journal, read_answers

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
    """The answers that are read after a crash are those that were written."""
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
    """If a crash tears the last line, the other answers count, and the next line is written whole."""
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
    """One line tells of damage before the end, and the file stays unchanged, because answers may have cost money."""
    with Journal(tmp_path) as journal:
        journal.add("a", ANSWER)
        journal.add("b", ANSWER)
    data = (tmp_path / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(b"\0" * 9 + data[9:])
    with pytest.raises(
        InputError,
        match=f"{NAME} is damaged in line 1; remove this line, and its answer is requested",
    ):
        Journal(tmp_path)
    assert (tmp_path / NAME).read_bytes() == b"\0" * 9 + data[9:]


def write(folder: Path) -> bytes:
    """Write a journal with two answers, and return its content."""
    with Journal(folder) as journal:
        journal.add("a", ANSWER)
        journal.add("b", ANSWER)
    return (folder / NAME).read_bytes()


@pytest.mark.parametrize("line", [0, 1])
def test_changed_bytes(tmp_path: Path, line: int) -> None:
    """An error names the line of any changed byte, so that no changed answer counts."""
    data = write(tmp_path)
    start = line * len(data) // 2
    for at in range(start, start + len(data) // 2 - 1):
        changed = bytes([data[at] ^ 1])
        # A byte that becomes a newline makes two lines of one.
        if changed == b"\n":
            continue
        (tmp_path / NAME).write_bytes(data[:at] + changed + data[at + 1 :])
        with pytest.raises(
            InputError, match=f"{NAME} is damaged in line {line + 1}; remove this line"
        ):
            Journal(tmp_path)


def test_without_the_damaged_line(tmp_path: Path) -> None:
    """Without the damaged line, the journal has the other answers, as the error promises."""
    data = write(tmp_path)
    (tmp_path / NAME).write_bytes(data[len(data) // 2 :])
    with Journal(tmp_path) as journal:
        assert (journal.get("a"), journal.get("b")) == (None, ANSWER)


@pytest.mark.parametrize("line", ["7", "[7, {}]", '["a"]', '["a", [1]]', "{}"])
def test_lines_that_are_no_answers(line: str, tmp_path: Path) -> None:
    """A line that holds no answer is damage."""
    (tmp_path / NAME).write_text(line + "\n")
    with pytest.raises(InputError, match="is damaged"):
        Journal(tmp_path)


def test_answers_without_a_text(tmp_path: Path) -> None:
    """Answers whose text is not text, which earlier versions wrote, are read but do not count."""
    with Journal(tmp_path) as journal:
        for name, text in (("null", None), ("list", ["x"]), ("empty", "")):
            journal.add(
                name, replace(ANSWER, completions=[GeneratedOutput(text, 0, [])])
            )  # type: ignore[arg-type]
        journal.add("none", replace(ANSWER, completions=[]))
    with Journal(tmp_path) as journal:
        assert [
            name for name in ("null", "list", "none", "empty") if journal.get(name)
        ] == ["empty"]


def test_requests_are_told_apart(tmp_path: Path) -> None:
    """A request with another field or another server is another request."""
    request = Request(prompt="p", model="a/b", model_deployment="a/b")
    others = [replace(request, random="1"), replace(request, stop_sequences=["\n"])]
    with Journal(tmp_path, "here") as journal:
        names = [journal.name(known, "d") for known in (request, *others)] + [
            journal.name(request, "e")
        ]
        assert (
            journal.name(replace(request, prompt="elided otherwise"), "d") == names[0]
        )
    with Journal(tmp_path, "there") as journal:
        names.append(journal.name(request, "d"))
    assert len(set(names)) == 5


@pytest.mark.parametrize("target", ["other.txt", "absent.txt"])
def test_a_link_in_the_place_of_the_journal(target: str, tmp_path: Path) -> None:
    """A link is not followed, so that no answer is written to a file elsewhere and none is read from there."""
    (tmp_path / "other.txt").write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    (run / NAME).symlink_to(tmp_path / target)
    for read in (lambda: Journal(run), lambda: read_answers(run / NAME)):
        with pytest.raises(InputError, match="is a link, which is not followed"):
            read()
    assert (tmp_path / "other.txt").read_text() == "mine"
    assert not (tmp_path / "absent.txt").exists()


def test_a_failure_is_no_answer(tmp_path: Path) -> None:
    """A failure that stands in a journal, or a text that a policy or an error ended, is asked again; a cut answer is not."""
    endings = {
        "length": True,
        "stop": True,
        "content_filter": False,
        "error": False,
        "tool_calls": False,
        "new": False,
    }
    with Journal(tmp_path) as journal:
        for reason in endings:
            completion = replace(
                ANSWER.completions[0], finish_reason={"reason": reason}
            )
            journal.add(reason, replace(ANSWER, completions=[completion]))
        journal.add(
            "failed", replace(ANSWER, success=False, error="temporary: overloaded")
        )
    with Journal(tmp_path) as journal:
        assert {
            reason: journal.get(reason) is not None for reason in endings
        } == endings
        assert journal.get("failed") is None
