"""Tests of the readers of transcripts, and of what programs get and return."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from helm_longctx.apps.compaction.samples import WRITERS, make_session
from helm_longctx.apps.compaction.sessions import read_transcripts
from helm_longctx.apps.compaction.transcripts import (
    Transcript,
    TranscriptMessage,
    from_openai,
    read_message,
    to_openai,
)
from helm_longctx.errors import InputError
from helm_longctx.tasks.methods.method import ToolCall


def says(messages: Any) -> list[tuple[Any, ...]]:
    """Return what messages say, without their places."""
    return [
        (
            message.role,
            message.text,
            [(call.name, dict(call.arguments)) for call in message.calls],
            message.tool,
        )
        for message in messages
    ]


def read(path: Path, rows: list[Any], document: bool = False) -> list[Transcript]:
    """Write rows to a file, and read it."""
    if document:
        path.write_bytes(orjson.dumps(rows[0] if len(rows) == 1 else rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_transcripts([path])


@pytest.mark.parametrize("name", list(WRITERS))
def test_formats_say_the_same(tmp_path: Path, name: str) -> None:
    """A session in each format has the same messages, calls and results, and each line number leads to its message."""
    messages, _ = make_session(3, turns=6)
    end, write = WRITERS[name]
    path = tmp_path / end
    path.write_bytes(write(messages))
    (transcript,) = read_transcripts([tmp_path])
    assert transcript.format == name
    assert says(transcript.messages) == says(messages)
    lines = path.read_text().splitlines()
    for message in transcript.messages:
        if message.line:
            assert json.dumps(message.text)[1:30] in lines[message.line - 1]
        else:
            assert message.id


def entry(
    uuid: str, parent: str | None, role: str, content: Any, **others: Any
) -> dict[str, Any]:
    """Return a line of Claude Code."""
    message = {"role": role, "content": content}
    return {
        "type": role,
        "uuid": uuid,
        "parentUuid": parent,
        "message": message,
        **others,
    }


def test_claude_code_without_what_the_model_does_not_see(tmp_path: Path) -> None:
    """Turns that were taken back, other agents, summaries, thinking and notes are left out, and split answers joined."""
    one = entry(
        "3",
        "2",
        "assistant",
        [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Yes."}],
    )
    one["message"]["id"] = "m"
    two = entry(
        "4",
        "3",
        "assistant",
        [{"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}}],
    )
    two["message"]["id"] = "m"
    result = [
        {
            "type": "tool_result",
            "tool_use_id": "t",
            "content": [{"type": "text", "text": "x"}, {"type": "image"}],
        }
    ]
    rows = [
        {"type": "summary", "summary": "old"},
        entry("0", None, "user", "first"),
        entry("1", "0", "user", "taken back"),
        entry("1a", "1", "assistant", [{"type": "text", "text": "gone"}]),
        entry("2", "0", "user", [{"type": "text", "text": "asked anew"}]),
        one,
        two,
        entry("5", "4", "user", result),
        entry(
            "6",
            "5",
            "assistant",
            [{"type": "text", "text": "of a helper"}],
            isSidechain=True,
        ),
        {"type": "system", "subtype": "compact_boundary"},
        entry("7", "5", "user", "a summary", isCompactSummary=True),
    ]
    (transcript,) = read(tmp_path / "s.jsonl", rows)
    assert says(transcript.messages) == [
        ("user", "first", [], ""),
        ("user", "asked anew", [], ""),
        ("assistant", "Yes.", [("ls", {"a": 1})], ""),
        ("tool", "x\n[image]", [], "ls"),
    ]


def test_codex_items(tmp_path: Path) -> None:
    """All kinds of calls and outputs of Codex are read, and events, reasoning and earlier compactions are not."""

    def item(**fields: Any) -> dict[str, Any]:
        return {"type": "response_item", "payload": fields}

    rows = [
        {"type": "session_meta", "payload": {}},
        item(
            type="message",
            role="developer",
            content=[{"type": "input_text", "text": "rules"}],
        ),
        item(
            type="message", role="user", content=[{"type": "input_text", "text": "go"}]
        ),
        {"type": "event_msg", "payload": {"type": "user_message", "message": "go"}},
        item(type="reasoning", summary=[], encrypted_content="x"),
        item(
            type="function_call",
            name="shell",
            arguments='{"command":["ls"]}',
            call_id="1",
        ),
        item(
            type="function_call_output",
            call_id="1",
            output='{"output":"a.py","metadata":{"exit_code":0}}',
        ),
        item(type="custom_tool_call", name="patch", input="*** Begin", call_id="2"),
        item(type="custom_tool_call_output", call_id="2", output="ok"),
        item(
            type="local_shell_call",
            call_id="3",
            action={"type": "exec", "command": ["pwd"]},
        ),
        item(
            type="function_call_output",
            call_id="3",
            output=[{"type": "input_text", "text": "/w"}],
        ),
        {
            "type": "compacted",
            "payload": {"message": "", "replacement_history": [{"type": "message"}]},
        },
        item(
            type="message",
            role="assistant",
            content=[{"type": "output_text", "text": "done"}],
        ),
    ]
    (transcript,) = read(tmp_path / "rollout.jsonl", rows)
    assert says(transcript.messages) == [
        ("user", "go", [], ""),
        ("assistant", "", [("shell", {"command": ["ls"]})], ""),
        ("tool", "a.py", [], "shell"),
        ("assistant", "", [("patch", {"input": "*** Begin"})], ""),
        ("tool", "ok", [], "patch"),
        ("assistant", "", [("local_shell", {"type": "exec", "command": ["pwd"]})], ""),
        ("tool", "/w", [], "local_shell"),
        ("assistant", "done", [], ""),
    ]


def test_opencode_parts(tmp_path: Path) -> None:
    """Texts, files, results and errors of tools are read; summaries, reasoning and ignored texts are not."""
    tool = {"type": "tool", "callID": "c", "tool": "bash"}
    session = {
        "info": {"id": "ses_1"},
        "messages": [
            {"info": {"id": "m1", "role": "user"}, "parts": [
                {"type": "text", "text": "look"}, {"type": "text", "text": "no", "ignored": True},
                {"type": "file", "filename": "a.png", "mime": "image/png"}]},
            {"info": {"id": "m2", "role": "assistant"}, "parts": [
                {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "I look."},
                {**tool, "state": {"status": "error", "input": {"cmd": "x"}, "error": "not found"}},
                {**tool, "callID": "d", "state": {"status": "running", "input": {}}},
                {"type": "text", "text": "It fails."}]},
            {"info": {"id": "m3", "role": "assistant", "summary": True}, "parts": [{"type": "text", "text": "sum"}]},
        ],
    }  # fmt: skip
    (transcript,) = read(tmp_path / "s.json", [session], document=True)
    assert says(transcript.messages) == [
        ("user", "look\n[file a.png]", [], ""),
        ("assistant", "I look.", [("bash", {"cmd": "x"})], ""),
        ("tool", "not found", [], "bash"),
        ("assistant", "", [("bash", {})], ""),
        ("tool", "[interrupted]", [], "bash"),
        ("assistant", "It fails.", [], ""),
    ]
    assert transcript.messages[1].id == "m2"


def test_messages_of_both_protocols(tmp_path: Path) -> None:
    """Messages of OpenAI and of Anthropic say the same, in lines, in one line each, and as one document."""
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "f", "arguments": '{"x": 2}'},
    }
    openai = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "4"},
    ]
    anthropic = [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "1", "name": "f", "input": {"x": 2}}
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": "4"}],
        },
    ]
    expected = [
        ("user", "hi", [], ""),
        ("assistant", "", [("f", {"x": 2})], ""),
        ("tool", "4", [], "f"),
    ]
    path = tmp_path / "t.jsonl"
    for rows in (openai, anthropic):
        for document in (False, True):
            (transcript,) = read(path, rows, document)
            assert says(transcript.messages) == expected
            assert transcript.format == "messages"
    both = read(path, [{"id": "a", "messages": openai}, {"messages": anthropic}])
    assert [says(transcript.messages) for transcript in both] == [expected, expected]
    assert [transcript.name for transcript in both] == ["t.jsonl a", "t.jsonl line 2"]


def test_an_incomplete_last_line(tmp_path: Path) -> None:
    """A last line that an agent is still writing is left out; a damaged line before it is an error with its number."""
    path = tmp_path / "s.jsonl"
    path.write_text('{"role": "user", "content": "hi"}\n{"role": "assis')
    assert says(read_transcripts([path])[0].messages) == [("user", "hi", [], "")]
    path.write_text(
        '{"role": "user", "content": "hi"}\n{"role": "assis\n{"role": "user", "content": "x"}\n'
    )
    with pytest.raises(InputError, match=r"s\.jsonl:2: this line is not JSON"):
        read_transcripts([path])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "the file is empty"),
        ("hello", "this line is not JSON"),
        ("[1, 2]", "a transcript is an object"),
        ('{"a": 1}\n', "this is no transcript"),
        ('{"role": "robot", "content": "x"}\n', "a message needs a role"),
        ('{"role": "user", "content": 3}\n', "the content of a message"),
        ('{"role": "assistant", "tool_calls": [1]}\n', "a tool call needs a function"),
        ('{"role": "system", "content": "only rules"}\n', "there is no message"),
        ('{"messages": [3]}\n', "is no message"),
        (
            '{"info": {"role": "user"}, "parts": [3]}\n',
            "a part of a message of OpenCode",
        ),
    ],
)
def test_what_is_no_transcript(tmp_path: Path, content: str, expected: str) -> None:
    """A file that is no transcript is refused in one line that says why."""
    path = tmp_path / "x.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=expected) as caught:
        read_transcripts([path])
    assert "\n" not in str(caught.value)


def test_a_folder_without_transcripts(tmp_path: Path) -> None:
    """A folder without files of transcripts, and a file that does not exist, are refused."""
    with pytest.raises(InputError, match="no file in this folder"):
        read_transcripts([tmp_path])
    with pytest.raises(InputError, match=r"missing\.jsonl: No such file"):
        read_transcripts([tmp_path / "missing.jsonl"])


def test_programs_get_what_they_may_return() -> None:
    """Messages in OpenAI's form are read again as they were; a text is one message, and other values are refused."""
    call = ToolCall(id="1", name="f", arguments={"x": [1, "é"]})
    messages = [
        TranscriptMessage("user", "hi"),
        TranscriptMessage("assistant", "I try.", (call,)),
        TranscriptMessage("tool", "ok", call_id="1", tool="f"),
    ]
    assert says(from_openai(to_openai(messages))) == says(messages)
    assert says(from_openai({"messages": to_openai(messages)})) == says(messages)
    assert says(from_openai("a summary")) == [("user", "a summary", [], "")]
    assert from_openai("  ") == []
    for value in (3, None, [3], [{"content": "x"}]):
        with pytest.raises(ValueError, match=r"a compactor returns|a message needs"):
            from_openai(value)


def test_an_answer_between_results() -> None:
    """A text beside results of tools stands after them, as the user wrote it."""
    raw = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "a"},
            {"type": "text", "text": "stop"},
        ],
    }
    assert [(message.role, message.text) for message in read_message(raw)] == [
        ("tool", "a"),
        ("user", "stop"),
    ]
