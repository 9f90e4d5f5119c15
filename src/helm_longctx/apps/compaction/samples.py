"""Sessions of our own making, whose facts are known: the sample that runs without a key, and what tests and bench use.

A session is an agent's work on a service that does not exist. All names, paths and numbers are drawn from a seed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import orjson

from helm_longctx.apps.compaction.probes import KINDS, Probe, place_probe
from helm_longctx.apps.compaction.sessions import read_transcripts
from helm_longctx.apps.compaction.transcripts import (
    ASSISTANT,
    TOOL,
    USER,
    Transcript,
    TranscriptMessage,
    to_openai,
)
from helm_longctx.tasks.methods.method import ToolCall
from helm_longctx.writing import replace_page

_SYLLABLES = re.findall(
    r"\w+",
    "ba bel cor dan del fen gar hul jor kas lem mor nal nor pel quin ras sol tam tor ul"
    " van vex wil yor zan",
)
_TOOLS = ("bash", "read_file", "grep")
_REASONS = (
    "its licence allows resale",
    "it needs no second process",
    "the operators know it already",
    "it survives a lost disk",
    "its queries stay under a second",
    "the auditors have approved it",
)
_STEPS = (
    "write the rollback script",
    "ask for a second review",
    "measure the cold start",
    "remove the old flag",
    "rename the metric",
    "tag the release",
)
_CHATTER = (
    "I looked through the module and will go on with the next part.",
    "This took longer than planned, but the structure is clear now.",
    "The change is small, so I keep it in one commit.",
    "I will run the checks again after this.",
    "Nothing unusual here; the layout follows the other packages.",
    "Let me open the next file before I change anything.",
)
_WISHES = (
    "Please continue.",
    "Good. Go on with the next step.",
    "Can you check that once more?",
    "Fine with me, carry on.",
)
_LOG = (
    "collecting sources",
    "resolving dependencies",
    "compiled without warnings",
    "cache is warm",
    "waiting for the worker",
    "worker is ready",
    "formatting is unchanged",
)


@dataclass(frozen=True)
class _Fact:
    """A planted fact: what a message says, and the probe about it."""

    kind: str
    text: str
    question: str
    answer: str


class _Names:
    """Draws names, none of them twice."""

    def __init__(self, random: Random):
        self._random = random
        self._used: set[str] = set()

    def draw(self, syllables: int = 3) -> str:
        """Return a new name."""
        while True:
            parts = self._random.choices(_SYLLABLES, k=syllables)
            name = "".join(parts)
            if name not in self._used:
                self._used.add(name)
                return name

    def word(self) -> str:
        """Return a name for what no probe asks about. It is shorter than others, and can be drawn again."""
        return "".join(self._random.choices(_SYLLABLES, k=2))

    def number(self, low: int, high: int) -> str:
        """Return a new number."""
        while True:
            number = str(self._random.randrange(low, high))
            if number not in self._used:
                self._used.add(number)
                return number


_TEMPLATES = {
    "facts": (
        "The database of the {subject} service listens on port {detail}.",
        "On which port does the database of the {subject} service listen?",
        "{detail}",
    ),
    "decisions": (
        "We decided to use {other} for the {subject} queue, because {detail}.",
        "Why was it decided to use {other} for the {subject} queue?",
        "{detail}",
    ),
    "files": (
        "The {subject} handler is defined in src/{other}/{detail}.py and nowhere else.",
        "In which file is the {subject} handler defined?",
        "src/{other}/{detail}.py",
    ),
    "state": (
        "The {subject} migration is done; next I will {detail} for {other}.",
        "What comes next after the {subject} migration, and for what?",
        "{detail} for {other}",
    ),
    "constraints": (
        "In the {subject} module you must never call {other} again.",
        "What must never be called in the {subject} module?",
        "{other}",
    ),
    "tool_results": (
        "FAILED test_{subject}: exit code {detail}",
        "With which exit code did test_{subject} fail?",
        "{detail}",
    ),
}
"""For each kind what a message says, the question about it, and the answer."""


def _make_fact(kind: str, random: Random, names: _Names) -> _Fact:
    subject = names.draw()
    other = names.draw(4)
    detail = _draw_detail(kind, random, names)
    text, question, answer = (
        template.format(subject=subject, other=other, detail=detail)
        for template in _TEMPLATES[kind]
    )
    return _Fact(kind=kind, text=text, question=question, answer=answer)


def _draw_detail(kind: str, random: Random, names: _Names) -> str:
    """Return what the template of a kind says of its subject."""
    if kind == "facts":
        return names.number(2000, 60000)
    if kind == "decisions":
        return random.choice(_REASONS)
    if kind == "files":
        return names.draw()
    if kind == "state":
        return random.choice(_STEPS)
    if kind == "tool_results":
        return names.number(100, 9999)
    return ""


def make_session(
    seed: int,
    turns: int = 40,
    per_kind: int = 4,
    log_lines: int = 12,
) -> tuple[list[TranscriptMessage], list[dict[str, Any]]]:
    """Return the messages of a session, and the fields of its probes.

    Args:
        turns: how often the user writes.
        per_kind: facts of each kind, in the first three quarters of the turns.
        log_lines: lines of each tool's result.
    """
    random = Random(seed)
    names = _Names(random)
    facts: dict[int, list[_Fact]] = {}
    probes = []
    last = max(1, turns * 3 // 4)
    for kind in KINDS:
        for number in range(per_kind):
            fact = _make_fact(kind, random, names)
            # Each kind is spread over the turns.
            start = last * number // per_kind
            end = max(start + 1, last * (number + 1) // per_kind)
            facts.setdefault(random.randrange(start, end), []).append(fact)
            probes.append(
                {
                    "kind": kind,
                    "question": fact.question,
                    "answer": fact.answer,
                    "quote": fact.text,
                    "exact": True,
                }
            )
    messages: list[TranscriptMessage] = []
    for turn in range(turns):
        own = facts.get(turn, [])
        messages += _make_turn(turn, own, random, names, log_lines)
    return messages, probes


def _make_turn(
    turn: int,
    facts: Sequence[_Fact],
    random: Random,
    names: _Names,
    log_lines: int,
) -> list[TranscriptMessage]:
    def text_of(kinds: Sequence[str], filler: str) -> str:
        said = [fact.text for fact in facts if fact.kind in kinds]
        return "\n".join([filler, *said])

    call_id = f"call_{turn}_{random.randrange(10**6):06d}"
    tool = random.choice(_TOOLS)
    call = ToolCall(
        id=call_id,
        name=tool,
        arguments={"target": names.word()},
    )
    lines = []
    for _ in range(log_lines):
        lines.append(
            f"{random.randrange(24):02d}:{random.randrange(60):02d} {names.word()}"
            f" {random.choice(_LOG)}"
        )
    for fact in facts:
        if fact.kind == "tool_results":
            lines.insert(random.randrange(len(lines) + 1), fact.text)
    return [
        TranscriptMessage(USER, text_of(("constraints",), random.choice(_WISHES))),
        TranscriptMessage(
            ASSISTANT, text_of(("decisions",), random.choice(_CHATTER)), (call,)
        ),
        TranscriptMessage(TOOL, "\n".join(lines), call_id=call_id, tool=tool),
        TranscriptMessage(
            ASSISTANT, text_of(("facts", "files", "state"), random.choice(_CHATTER))
        ),
    ]


def write_messages(messages: Sequence[TranscriptMessage]) -> bytes:
    """Return a file of messages in OpenAI's form."""
    return _join_lines(to_openai(messages))


def write_claude_code(messages: Sequence[TranscriptMessage]) -> bytes:
    """Return a session file in the format of Claude Code."""
    rows: list[Mapping[str, Any]] = [
        {"type": "file-history-snapshot", "messageId": "m0", "snapshot": {}}
    ]
    parent = None
    for number, message in enumerate(messages):
        uuid = f"00000000-0000-4000-8000-{number:012d}"
        role = ASSISTANT if message.role == ASSISTANT else USER
        own: dict[str, Any] = {"role": role, "content": _anthropic_content(message)}
        if role == ASSISTANT:
            own |= {"id": f"msg_{number}", "type": "message", "model": "made"}
        rows.append(
            {
                "parentUuid": parent,
                "isSidechain": False,
                "type": role,
                "message": own,
                "uuid": uuid,
                "timestamp": "2026-11-01T10:00:00.000Z",
                "sessionId": "made",
                "cwd": "/work",
                "version": "2.1.0",
            }
        )
        parent = uuid
    return _join_lines(rows)


def _anthropic_content(message: TranscriptMessage) -> str | list[dict[str, Any]]:
    if message.role == TOOL:
        result = {"type": "tool_result", "tool_use_id": message.call_id}
        return [{**result, "content": message.text}]
    if message.role == USER:
        return message.text
    blocks: list[dict[str, Any]] = []
    if message.text:
        blocks.append({"type": "text", "text": message.text})
    for call in message.calls:
        use = {"type": "tool_use", "id": call.id, "name": call.name}
        blocks.append({**use, "input": dict(call.arguments)})
    return blocks


def write_codex(messages: Sequence[TranscriptMessage]) -> bytes:
    """Return a session file in the format of Codex."""
    rows: list[Mapping[str, Any]] = [
        {"type": "session_meta", "payload": {"id": "made", "cwd": "/work"}}
    ]
    for message in messages:
        rows += [
            {"type": "response_item", "payload": item} for item in _codex_items(message)
        ]
    stamp = {"timestamp": "2026-11-01T10:00:00.000Z"}
    return _join_lines([{**stamp, **row} for row in rows])


def _codex_items(message: TranscriptMessage) -> list[dict[str, Any]]:
    if message.role == TOOL:
        result = {"type": "function_call_output", "call_id": message.call_id}
        return [{**result, "output": message.text}]
    items: list[dict[str, Any]] = []
    if message.text:
        kind = "output_text" if message.role == ASSISTANT else "input_text"
        content = [{"type": kind, "text": message.text}]
        items.append({"type": "message", "role": message.role, "content": content})
    for call in message.calls:
        own = {"type": "function_call", "name": call.name, "call_id": call.id}
        arguments = orjson.dumps(dict(call.arguments)).decode()
        items.append({**own, "arguments": arguments})
    return items


def write_opencode(messages: Sequence[TranscriptMessage]) -> bytes:
    """Return a session as `opencode export` prints it."""
    entries: list[dict[str, Any]] = []
    tools: dict[str, dict[str, Any]] = {}
    for number, message in enumerate(messages):
        if message.role == TOOL:
            tools[message.call_id]["state"]["output"] = message.text
            continue
        parts: list[dict[str, Any]] = []
        if message.text:
            parts.append({"type": "text", "text": message.text})
        for call in message.calls:
            state = {"status": "completed", "input": dict(call.arguments), "title": ""}
            own = {"type": "tool", "callID": call.id, "tool": call.name}
            tools[call.id] = {**own, "state": state}
            parts.append(tools[call.id])
        info = {"id": f"msg_{number}", "role": message.role, "sessionID": "ses_made"}
        entries.append({"info": info, "parts": parts})
    session = {"info": {"id": "ses_made", "title": "made"}, "messages": entries}
    return orjson.dumps(session, option=orjson.OPT_INDENT_2) + b"\n"


def _join_lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


WRITERS: Mapping[str, tuple[str, Callable[[Sequence[TranscriptMessage]], bytes]]] = {
    "Claude Code": ("claude-code.jsonl", write_claude_code),
    "Codex": ("codex.jsonl", write_codex),
    "OpenCode": ("opencode.json", write_opencode),
    "messages": ("messages.jsonl", write_messages),
}
"""The ends of the names of files, and what makes them, by the name of the format."""


def write_sample(
    folder: Path,
    seeds: Sequence[int] = range(6),
    **size: int,
) -> tuple[list[Transcript], list[Probe]]:
    """Write made sessions, in three formats in turn, and return them as they are read, with their probes.

    Args:
        seeds: one for each session.
        size: the arguments of `make_session` for its size.
    """
    folder.mkdir(parents=True, exist_ok=True)
    formats = list(WRITERS.values())[:3]
    paths = []
    raws = []
    for number, seed in enumerate(seeds):
        end, write = formats[number % len(formats)]
        path = folder / f"{number + 1}-{end}"
        messages, own = make_session(seed, **size)
        replace_page(path, write(messages))
        paths.append(path)
        raws.append(own)
    transcripts = read_transcripts(paths)
    probes: list[Probe] = []
    for transcript, own in zip(transcripts, raws, strict=True):
        probes += place_made_probes(transcript, own)
    return transcripts, probes


def place_made_probes(
    transcript: Transcript,
    raws: Sequence[Mapping[str, Any]],
) -> list[Probe]:
    """Return the probes of a made session with their places."""
    probes = []
    for number, raw in enumerate(raws, 1):
        probe = place_probe(transcript, number, raw, len(transcript.messages))
        assert isinstance(probe, Probe), probe
        probes.append(probe)
    return probes
