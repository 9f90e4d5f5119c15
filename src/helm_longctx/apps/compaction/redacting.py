"""Replaces secrets and personal details in transcripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from helm_longctx.apps.compaction.transcripts import Transcript, TranscriptMessage
from helm_longctx.redaction.personal import Redactor, Replaced


def redact_transcripts(
    transcripts: Sequence[Transcript],
    words: Sequence[str],
) -> tuple[list[Transcript], list[Replaced]]:
    """Return transcripts with placeholders, and what was replaced.

    Args:
        words: further words to replace.
    """
    redactor = Redactor(words)
    redacted = []
    for transcript in transcripts:
        messages = []
        for number, message in enumerate(transcript.messages, 1):
            where = f"line {message.line}" if message.line else f"message {number}"
            messages.append(
                _redact_message(message, redactor, f"{transcript.name}, {where}")
            )
        redacted.append(
            Transcript(transcript.name, transcript.format, messages, transcript.path)
        )
    return redacted, redactor.replacements


def _redact_message(
    message: TranscriptMessage,
    redactor: Redactor,
    where: str,
) -> TranscriptMessage:
    calls = []
    for call in message.calls:
        arguments = _redact_value(call.arguments, redactor, where)
        calls.append(replace(call, arguments=arguments))
    text = redactor.redact(message.text, where)
    return replace(message, text=text, calls=tuple(calls))


def _redact_value(value: Any, redactor: Redactor, where: str) -> Any:
    """Return the value of an argument with placeholders in all its texts, at any depth."""
    if isinstance(value, str):
        return redactor.redact(value, where)
    if isinstance(value, Mapping):
        return {
            redactor.redact(str(key), where): _redact_value(item, redactor, where)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_redact_value(item, redactor, where) for item in value]
    return value
