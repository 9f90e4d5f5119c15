"""Probes: questions about the part of a transcript that a compaction may lose, made and checked before it is lost.

A model writes them from the transcript, part by part. A probe is kept if its quotation stands in the transcript, if it is
answered rightly with the transcript, and not without it. Probes stay in a file, so that later compactors and models
get the same ones.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from helm_longctx.apps.compaction.asking import AskedModel
from helm_longctx.apps.compaction.transcripts import Transcript, TranscriptMessage
from helm_longctx.data.jsonl import JsonLines
from helm_longctx.errors import InputError
from helm_longctx.models.apis.calls import call_all
from helm_longctx.writing import replace_file

KINDS = {
    "facts": "a name, a number, a date, a value or another fact",
    "decisions": "a decision, and the reason for it",
    "files": "a path, a function, a branch, a commit or another identifier",
    "state": "what is done, what is left, and what comes next",
    "constraints": "what the user demands, forbids or prefers",
    "tool_results": "what the result of a tool says: an error, a value, a count",
}
"""The kinds of probes, and what each asks for."""

_LONGEST = 400
"""Most characters of a question, and of an answer."""

_PART = 12_000
"""Tokens of the part of a transcript from which probes are made at once."""

_PROBE_TOKENS = 180
"""The output budget of a probe that is made."""

_SPACE = re.compile(r"\s+")

_MAKE = (
    "Below is a part of the transcript of an agent that works for a user. This part"
    " will soon be replaced by something"
    " shorter. Write {count} questions that show later whether what matters is still"
    " known. Each question must stand on"
    " its own: name what it is about, and never speak of a message, a transcript or a"
    " part. It must have one short answer"
    " that is in the part, and that nobody can guess. Do not ask for the same thing"
    " twice. The kinds are:\n{kinds}\n"
    "Use as many kinds as the part has. Write a JSON list and nothing else. Each"
    " element has: kind; question; answer (at"
    " most a dozen words); exact (true if the answer is a name, number, path or"
    " identifier that can be copied word for"
    " word, false if it can be said in other words); message (the number of the"
    " message with the answer); quote (the words"
    " of this message that have the answer, copied exactly, at most 30"
    " words).\n\n<part>\n{part}\n</part>"
)


@dataclass(frozen=True)
class Probe:
    """A question about a transcript.

    Args:
        id: its number in the file, with the name of the transcript.
        transcript: the name of the transcript.
        kind: a key of `KINDS`.
        is_exact: whether the answer must stand in the reply word for word. Otherwise a judge reads the reply.
        message: the number of the message that has the answer, from 0.
        line: the line of the file, from 1. 0 if messages have no lines of their own.
        depth: the share of the transcript's tokens before this message.
        quote: words of this message that have the answer.
        digest: the SHA-256 of the transcript's text.
    """

    id: str
    transcript: str
    kind: str
    question: str
    answer: str
    is_exact: bool
    message: int
    line: int
    depth: float
    quote: str
    digest: str


@dataclass
class MadeProbes:
    """Probes of a transcript, and why others were left out.

    Args:
        rejected: the number of probes that were left out, by the reason.
        failures: requests without a reply, by the reason. The same command sends them again.
    """

    probes: list[Probe] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


def squeeze(text: str) -> str:
    """Return a text in which all white space is a single space."""
    return _SPACE.sub(" ", text).strip()


def locate(
    transcript: Transcript,
    quote: str,
    expected: int | None,
    end: int,
) -> int | None:
    """Return the number of the message before `end` that has a quotation; of several the expected one, or the last."""
    wanted = squeeze(quote).lower()
    if not wanted:
        return None
    numbers = list(range(end - 1, -1, -1))
    if expected is not None and 0 <= expected < end:
        numbers.insert(0, expected)
    for number in numbers:
        if wanted in squeeze(transcript.messages[number].render()).lower():
            return number
    return None


def place_probe(
    transcript: Transcript,
    number: int,
    raw: Mapping[str, Any],
    end: int,
    expected: int | None = None,
) -> Probe | str:
    """Return a probe with its place, or why it is none.

    Args:
        number: the number of the probe.
        raw: its fields: kind, question, answer, exact, quote.
        end: the number of the first message that is not asked about.
        expected: the number of the message that should have the quotation.
    """
    kind, question, answer, quote = (
        raw.get(name) for name in ("kind", "question", "answer", "quote")
    )
    texts = (kind, question, answer, quote)
    if not all(isinstance(text, str) and text.strip() for text in texts):
        return "a field is missing"
    question = squeeze(str(question))
    answer = squeeze(str(answer))
    if str(kind) not in KINDS:
        return "the kind is unknown"
    if max(len(question), len(answer)) > _LONGEST:
        return "the question or the answer is too long"
    message = locate(transcript, str(quote), expected, end)
    if message is None:
        return "its quotation is not in the part that vanishes"
    if squeeze(answer).lower() in question.lower():
        return "the question has the answer"
    text = squeeze(transcript.messages[message].render()).lower()
    is_exact = raw.get("exact") is True and answer.lower() in text
    if is_exact and _is_in_tail(transcript, answer, end):
        return "the answer is also in the part that stays"
    return Probe(
        id=f"{transcript.name}#{number}",
        transcript=transcript.name,
        kind=str(kind),
        question=question,
        answer=answer,
        is_exact=is_exact,
        message=message,
        line=transcript.messages[message].line,
        depth=round(transcript.starts[message] / max(transcript.tokens, 1), 4),
        quote=squeeze(str(quote)),
        digest=transcript.digest,
    )


def _is_in_tail(transcript: Transcript, answer: str, end: int) -> bool:
    wanted = answer.lower()
    return any(
        wanted in squeeze(message.render()).lower()
        for message in transcript.messages[end:]
    )


@dataclass(frozen=True)
class _Part:
    """A part of a transcript from which probes are made.

    Args:
        start, end: the first message, and the one after the last.
        count: how many probes are asked for.
    """

    start: int
    end: int
    count: int


def split_parts(transcript: Transcript, end: int, count: int) -> list[_Part]:
    """Return the parts before a message, with their shares of a number of probes."""
    bounds = [0]
    tokens = 0
    for number, message in enumerate(transcript.messages[:end]):
        if tokens and tokens + message.tokens > _PART:
            bounds.append(number)
            tokens = 0
        tokens += message.tokens
    bounds.append(end)
    total = max(1, sum(message.tokens for message in transcript.messages[:end]))
    parts = []
    read = 0
    given = 0
    for start, stop in pairwise(bounds):
        read += sum(message.tokens for message in transcript.messages[start:stop])
        wanted = round(count * read / total) - given
        if wanted and stop > start:
            parts.append(_Part(start, stop, wanted))
            given += wanted
    return parts


def make_prompt(transcript: Transcript, part: _Part) -> str:
    """Return the prompt that asks for the probes of a part."""
    kinds = "\n".join(f"- {name}: {about}" for name, about in KINDS.items())
    shown = []
    for number in range(part.start, part.end):
        shown.append(f"(message {number})\n{transcript.messages[number].render()}")
    return _MAKE.format(
        count=part.count,
        kinds=kinds,
        part="\n\n".join(shown),
    )


def output_budget(part: _Part) -> int:
    """Return the output budget of the request for the probes of a part."""
    return _PROBE_TOKENS * part.count + 100


def read_list(text: str) -> list[Mapping[str, Any]]:
    """Return the objects in a reply: those of its first JSON list, also of one that has no end."""
    decoder = json.JSONDecoder()
    objects = []
    position = text.find("[") + 1
    while position:
        position = text.find("{", position)
        if position < 0:
            break
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if isinstance(value, Mapping):
            objects.append(value)
    return objects


def write_probes(
    transcript: Transcript,
    model: AskedModel,
    count: int,
    end: int,
    parallelism: int,
) -> MadeProbes:
    """Let a model write probes about the messages before `end`. They are not checked by answers yet."""
    parts = split_parts(transcript, end, count)
    replies = call_all(
        lambda part: model.ask(make_prompt(transcript, part), output_budget(part)),
        parts,
        parallelism,
    )
    made = MadeProbes()
    asked: set[str] = set()
    for part, reply in zip(parts, replies, strict=True):
        if reply.text is None:
            made.failures[reply.failure] += 1
            continue
        raws = read_list(reply.text)
        if not raws:
            made.rejected["the reply has no list of probes"] += part.count
        for raw in raws:
            expected = raw.get("message")
            number = len(made.probes) + 1
            # A probe asks about a message of its own part, so that it is not lost in another one.
            probe = place_probe(
                transcript,
                number,
                raw,
                end,
                expected if isinstance(expected, int) else None,
            )
            if isinstance(probe, str):
                made.rejected[probe] += 1
            elif probe.question.lower() in asked:
                made.rejected["it is asked twice"] += 1
            else:
                asked.add(probe.question.lower())
                made.probes.append(probe)
    return made


def save_probes(path: Path, probes: Iterable[Probe]) -> None:
    """Write probes to a file, a line each."""
    lines = [orjson.dumps(asdict(probe)) + b"\n" for probe in probes]
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, b"".join(lines))


def load_probes(path: Path, transcripts: Sequence[Transcript]) -> list[Probe]:
    """Read the probes in a file about these transcripts.

    A line of one's own needs `transcript`, `kind`, `question`, `answer`, `quote`, and perhaps `is_exact`.

    Raises:
        InputError: the file is damaged or empty, or its probes are about other texts.
    """
    by_name = {transcript.name: transcript for transcript in transcripts}
    probes = []
    for raw in JsonLines(path, {}):
        number = raw.number
        transcript = by_name.get(str(raw.get("transcript")))
        if transcript is None:
            continue
        known = raw.get("digest")
        if known not in (None, transcript.digest):
            raise InputError(
                f"compaction: --probes={path}:{number}: {transcript.name} has changed"
                " since its probes were made; the options --redact and --redact-words"
                " change it, too. Give another file to make new ones"
            )
        fields = {**raw, "exact": raw.get("is_exact", raw.get("exact", True))}
        expected = raw.get("message")
        probe = place_probe(
            transcript,
            number,
            fields,
            len(transcript.messages),
            expected if isinstance(expected, int) else None,
        )
        if isinstance(probe, str):
            raise InputError(
                f"compaction: --probes={path}:{number}: this probe cannot be used: {probe}"
            )
        if known is not None:
            # What was decided when it was made stays.
            own_id = str(raw.get("id") or probe.id)
            probe = replace(probe, id=own_id, is_exact=bool(raw.get("is_exact")))
        probes.append(probe)
    if not probes:
        names = ", ".join(sorted(by_name)[:3])
        raise InputError(
            f"compaction: --probes={path}: it has no probe about {names}; give another"
            " file to make new ones"
        )
    return probes


def part_around(
    transcript: Transcript,
    probe: Probe,
    tokens: int = _PART,
) -> Sequence[TranscriptMessage]:
    """Return messages around the answer to a probe, for models that cannot read the whole transcript."""
    start = probe.message
    end = probe.message + 1
    left = tokens - transcript.messages[probe.message].tokens
    while left > 0 and (start > 0 or end < len(transcript.messages)):
        if start > 0:
            start -= 1
            left -= transcript.messages[start].tokens
        if end < len(transcript.messages) and left > 0:
            left -= transcript.messages[end].tokens
            end += 1
    return transcript.messages[start:end]
