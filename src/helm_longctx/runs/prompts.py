"""The prompts of a run: shortened for display, and each stored whole once, in `prompts.zst` (index: `prompts.json`).

Shortened texts and conversations keep the head, the tail and the evidence in its place. A conversation is one text,
too: the JSON of its messages. A run's files identify a prompt by the SHA-256 of this text.

Prompts that share text are written one after the other, and the compressor looks back 32 MB. So a book with forty
questions, or a haystack at six depths, needs the space of one prompt. `zstd -dc prompts.zst` prints all prompts.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import orjson
import regex
import zstandard

from helm_longctx.errors import InputError, describe_count
from helm_longctx.helm_api import Input, Request
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runs.files import read_json
from helm_longctx.tasks.prompt import Message, message_text
from helm_longctx.tasks.sample import Sample
from helm_longctx.writing import replace_file

LIMIT = 8_000
"""Number of characters. A text of at most this length is shown whole, and an elided text is never longer."""

HEAD = TAIL = 1_500
"""Number of characters that are kept at each end of a text."""

EVIDENCE = 300
"""Number of characters that are kept of a piece of evidence."""

AROUND = 150
"""Number of characters that are kept on each side of a piece of evidence."""

PLACES = 5
"""Number of pieces of evidence that are kept."""

_CLUSTER = regex.compile(r"\X")
# Number of characters on each side of a cut in which grapheme clusters are searched. Unicode's stream-safe format
# allows 30 marks.
_CLUSTER_REACH = 32
# Number of UTF-8 bytes: two Chinese characters, or a word of four letters. Shorter evidence occurs everywhere in a
# text.
_SHORTEST_EVIDENCE = 4
# Number of characters. A shorter gap is shown, because its mark would be about as long.
_SHORTEST_GAP = 100

Span = tuple[int, int]


def elide(text: str, evidence: Sequence[str] = ()) -> str:
    """Shorten a text for display: keep its head, its tail, and each piece of evidence with its surroundings.

    A mark replaces each part that is left out and gives its size in characters and its place in percent of the text.
    Evidence is marked with its depth. A text of at most `LIMIT` characters is returned unchanged, so a text can be
    elided twice.

    Args:
        evidence: answers or passages, the most important first; at most `PLACES` of them are kept.
    """
    if len(text) <= LIMIT:
        return text
    places = _find_evidence(text, evidence)
    around = [(start - AROUND, end + AROUND) for start, end in places]
    spans = _merge([(0, HEAD), *around, (len(text) - TAIL, len(text))])
    parts = []
    done = 0
    for span_start, span_end in spans:
        start = _edge(text, span_start)
        end = _edge(text, span_end)
        if start > done:
            depths = f"depth {done / len(text):.0%} to {start / len(text):.0%}"
            parts.append(
                f"\n\n[... {start - done:,} characters left out, {depths} ...]\n\n"
            )
        for first, last in places:
            if start <= first and last <= end:
                parts.append(
                    f"{text[start:first]}[evidence, depth {first / len(text):.0%}: {text[first:last]}]"
                )
                start = last
        parts.append(text[start:end])
        done = end
    return "".join(parts)


def evidence_of(references: Iterable[str], sample: Sample | None) -> list[str]:
    """Return an instance's evidence: its reference answers, and its passages with the highest grade."""
    grades = (sample.record.get("qrels") if sample else None) or {}
    best = [
        passage
        for passage, grade in grades.items()
        if grade == max(grades.values()) > 0
    ]
    return [*references, *best]


def _find_evidence(text: str, evidence: Sequence[str]) -> list[Span]:
    """Find the places of evidence, ascending and without overlap; a long piece is cut to its first characters."""
    spans: list[Span] = []
    for piece in dict.fromkeys(piece.strip() for piece in evidence):
        at = -1
        if len(piece.encode("utf-8", "replace")) >= _SHORTEST_EVIDENCE:
            at = _find(text, piece)
        start = _edge(text, at)
        end = _edge(text, at + min(len(piece), EVIDENCE))
        if at >= 0 and all(end <= other[0] or start >= other[1] for other in spans):
            spans.append((start, end))
        if len(spans) == PLACES:
            break
    return sorted(spans)


def _find(text: str, piece: str) -> int:
    """Find the first whole-word occurrence after the head, or else in the head; -1 if there is none."""
    # The head is always shown, so a place after it shows more of the text.
    for begin in (HEAD, 0):
        at = text.find(piece, begin)
        while at >= 0:
            end = at + len(piece)
            if not (
                _in_word(text[at - 1 : at + 1]) or _in_word(text[end - 1 : end + 1])
            ):
                return at
            at = text.find(piece, end)
    return -1


def _in_word(pair: str) -> bool:
    """Whether two adjacent characters are inside one word. Only ASCII: Chinese has no spaces between words."""
    return len(pair) == 2 and pair.isascii() and pair.isalnum()


def _merge(spans: list[Span]) -> list[Span]:
    merged = [spans[0]]
    for start, end in spans[1:]:
        if start <= merged[-1][1] + _SHORTEST_GAP:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _edge(text: str, at: int) -> int:
    """Move a cut to the start of its grapheme cluster, so that it separates no mark from its letter."""
    # Each ASCII character is a cluster, except that "\r\n" is one. The search is slow.
    if not 0 < at < len(text) or (
        (pair := text[at - 1 : at + 1]).isascii() and pair != "\r\n"
    ):
        return at
    near = _CLUSTER.finditer(text, max(at - _CLUSTER_REACH, 0), at + _CLUSTER_REACH)
    return max(
        (cluster.start() for cluster in near if cluster.start() <= at), default=0
    )


_Asking = TypeVar("_Asking", Request, Input)
Messages = list[dict[str, Any]]

END_MESSAGES = 3
"""Number of messages at each end of a long conversation that a page shows."""


def to_text(prompt: str, messages: Sequence[Message] | None) -> str:
    """Return the prompt, or the JSON of the messages if there are any."""
    # Digests of prompts depend on this format. With escapes, Chinese texts would be illegible on pages.
    return json.dumps(messages, ensure_ascii=False) if messages else prompt


def request_text(asking: _Asking) -> str:
    """Return the prompt or conversation of a request or an input as one text."""
    return to_text(
        asking.prompt if isinstance(asking, Request) else asking.text, asking.messages
    )


def with_text(asking: _Asking, text: str) -> _Asking:
    """Replace the prompt of a request or input, or its conversation if it has one, by a text from `request_text`."""
    return _replace_text(asking, text, json.loads(text) if asking.messages else None)


def _replace_text(asking: _Asking, text: str, messages: Messages | None) -> _Asking:
    if asking.messages:
        return replace(asking, messages=messages)
    return (
        replace(asking, prompt=text)
        if isinstance(asking, Request)
        else replace(asking, text=text)
    )


def without_text(asking: _Asking) -> _Asking:
    """Remove the prompt of a request or input, or its conversation except the system message, for `with_text`."""
    kept: Messages = [
        message for message in asking.messages or () if message["role"] == "system"
    ]
    return _replace_text(asking, "", [*kept, {"role": "user", "content": ""}])


def elide_texts(asking: _Asking, evidence: Sequence[str]) -> _Asking:
    """Shorten the prompt or conversation of a request or input for display."""
    if asking.messages:
        return replace(asking, messages=elide_messages(asking.messages, evidence))
    return with_text(asking, elide(request_text(asking), evidence))


def elide_messages(messages: Sequence[Message], evidence: Sequence[str]) -> Messages:
    """Shorten a conversation for display: keep both ends and the messages with evidence, and elide each of them.

    A message with the role `left out` stands for the messages between them. Calls of tools become a part of the text.
    A conversation of at most `LIMIT` characters stays whole, so a conversation can be elided twice.
    """
    shown: Messages = []
    for message in messages:
        shown.append({"role": message["role"], "content": message_text(message)})
    if sum(len(message["content"]) for message in shown) <= LIMIT:
        return shown
    # An empty piece would occur in every message.
    pieces = [piece.strip() for piece in evidence if piece.strip()]
    visible: Messages = []
    left_out: Messages = []
    for number, message in enumerate(shown):
        is_end = number < END_MESSAGES or number >= len(shown) - END_MESSAGES
        if is_end or any(piece in message["content"] for piece in pieces):
            if left_out:
                characters = sum(len(hidden["content"]) for hidden in left_out)
                text = f"[... {describe_count(len(left_out), 'message')}, {characters:,} characters left out ...]"
                visible.append({"role": "left out", "content": text})
                left_out = []
            text = elide(message["content"], evidence)
            visible.append({"role": message["role"], "content": text})
        else:
            left_out.append(message)
    return visible


TEXTS = "prompts.zst"
INDEX = "prompts.json"

_LEVEL = 1
"""The compressor's level. Level 3 takes half as long again for files that are a tenth smaller."""

_WINDOW_LOG = 25
"""Base-2 logarithm of the number of bytes that the compressor looks back."""

_FRAME = 256 << 20
"""Number of bytes of text in a frame, which is the largest number that is decompressed to read one prompt."""


def write_prompts(run_path: Path, prompts: Iterable[tuple[str, str]]) -> None:
    """Write a run's prompts, (instance's name, prompt), of which similar ones should be neighbours.

    Equal ones are stored once. The index is written last, so it always belongs to the texts in the same folder.
    """
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL, window_log=_WINDOW_LOG, enable_ldm=True
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    index: dict[str, str] = {}
    places: dict[str, tuple[int, int, int]] = {}
    frame = start = 0
    # An index of an earlier run would point to wrong places in the new texts.
    (run_path / INDEX).unlink(missing_ok=True)
    with (
        (run_path / TEXTS).open("wb") as file,
        compressor.stream_writer(file, closefd=False) as stream,
    ):
        for instance, prompt in prompts:
            index[instance] = name = digest(prompt)
            if name in places:
                continue
            if start >= _FRAME:
                # A reader must start at a frame, so frames limit the decompression for one prompt.
                stream.flush(zstandard.FLUSH_FRAME)
                frame = file.tell()
                start = 0
            data = prompt.encode("utf-8", "surrogatepass")
            stream.write(data)
            places[name] = (frame, start, len(data))
            start += len(data)
    content = {"instances": index, "prompts": places}
    replace_file(run_path / INDEX, orjson.dumps(content, option=orjson.OPT_INDENT_2))


def read_prompts(run_path: Path) -> Iterator[tuple[str, bytes]]:
    """Read the digest and the UTF-8 text of each prompt in the store of our runner, one at a time.

    Raises a `ValueError` for a wrong digest, and OSError, KeyError or ZstdError for a damaged file.
    """
    if not (run_path / INDEX).is_file():
        return
    places = orjson.loads((run_path / INDEX).read_bytes())["prompts"]
    with (run_path / TEXTS).open("rb") as file:
        # Without `read_across_frames` the reader stops at the end of the first frame. The index has the file's order.
        stream = zstandard.ZstdDecompressor().stream_reader(
            file, read_across_frames=True
        )
        for name, (_, _, size) in places.items():
            data = stream.read(_check_size(size))
            if hashlib.sha256(data).hexdigest() != name:
                raise ValueError(f"{name} is damaged")
            yield name, data


_MOST_BYTES = 1 << 28
"""Most bytes of a prompt, or before it in its frame. Ten million tokens are about 50 MB."""


def _check_size(size: object) -> int:
    """Return a number of bytes in the index; raise a `ValueError` if no prompt of ours has it."""
    if not isinstance(size, int) or not 0 <= size <= _MOST_BYTES:
        raise ValueError(f"{size} is no number of bytes of a prompt")
    return size


def instance_names(
    prompts: Iterable[tuple[str | int | None, str | None, str]],
) -> list[str]:
    """Return a name for each instance of a run: its id, if all instances with this id have the same prompt.

    Otherwise a number and the sub-split are added: `q7#1:asqa`, `q7#2:qampari`. Prompts are id (a number in some of
    HELM's own scenarios), sub-split and digest, in the data's order.
    """
    rows = [
        (str(instance_id), sub_split, prompt_digest)
        for instance_id, sub_split, prompt_digest in prompts
    ]
    numbers: dict[str, dict[str, int]] = {}
    for instance_id, _, prompt_digest in rows:
        same = numbers.setdefault(instance_id, {})
        same.setdefault(prompt_digest, len(same) + 1)
    names = []
    for name, sub_split, prompt_digest in rows:
        if len(numbers[name]) > 1:
            suffix = f":{sub_split}" if sub_split else ""
            name = f"{name}#{numbers[name][prompt_digest]}{suffix}"
        names.append(name)
    return names


def stored_prompt(run_path: Path, prompt_digest: str, instance: str) -> str:
    """Return the prompt with a digest in a run's store. Raises an `InputError` if it is damaged."""
    index = read_json(run_path / INDEX)
    with suppress(OSError, LookupError, TypeError, ValueError, zstandard.ZstdError):
        frame, start, size = index["prompts"][prompt_digest]
        with (run_path / TEXTS).open("rb") as file:
            file.seek(frame)
            with zstandard.ZstdDecompressor().stream_reader(file) as stream:
                stream.seek(_check_size(start))
                prompt = stream.read(_check_size(size)).decode("utf-8", "surrogatepass")
        if digest(prompt) == prompt_digest:
            return prompt
    raise InputError(
        f"{run_path / TEXTS} is damaged: the prompt of {instance} is not what was sent"
    )
