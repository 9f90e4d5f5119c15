"""The marks with which models set their reasoning apart from their answer, and the split of an output at them.

All parts of the package that need an answer use the marks in `reasoning_marks.yaml`: runs, imports, `score`, judges' own
replies, methods and local models. A mark counts at the beginning of an output, where chat templates and the parsers of
servers expect it. A plain answer that quotes a mark somewhere else stays as it is.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

from helm_longctx.data.yaml_files import parse_package_yaml


@dataclass(frozen=True)
class Marks:
    """A row of the table: the texts around a part of an output.

    Args:
        family: the models that write the marks.
        source: the chat template or the parser that says so.
        part: whether the marks are around the reasoning or around the answer.
        is_prefilled: whether a chat template puts the opening mark at the end of the prompt, so that an output can
            have the closing mark alone.
        is_markup: whether the marks are plain markup that a prompt can ask for, too. They are removed only around a
            whole answer after reasoning.
    """

    family: str
    opening: str
    closing: str
    source: str
    part: Literal["reasoning", "answer"] = "reasoning"
    is_prefilled: bool = False
    is_markup: bool = False


def _read_data() -> dict[str, Any]:
    path = resources.files("helm_longctx") / "tasks/reasoning_marks.yaml"
    data: dict[str, Any] = parse_package_yaml(path.read_text(encoding="utf-8"))
    return data


_DATA = _read_data()

TABLE = tuple(Marks(**row) for row in _DATA["marks"])
"""All known marks, each with its source."""

ENDS: tuple[str, ...] = tuple(_DATA["ends"])
"""Marks that can follow an answer after reasoning, where special tokens are kept."""

_BY_OPENING = {marks.opening: marks for marks in TABLE}

_THINK = _BY_OPENING["<think>"]
"""The only marks that the official code of a benchmark knows: the last closing mark counts, wherever it is."""

HARMONY = _BY_OPENING["<|channel|>analysis<|message|>"]
"""The first of the messages of gpt-oss. Each has a channel, and the answer is in the channel `final`."""

BARE_HARMONY = _BY_OPENING["analysis"]
"""What is left of them where a server or a tokenizer drops special tokens."""

_MOST_ENDS = 100
"""Number of such marks that are removed. A model that repeats one for ever has more."""


@dataclass(frozen=True)
class SplitOutput:
    """An output without its marks.

    Args:
        answer: the answer without white space at its ends; the whole output if it has no known marks, or if its
            reasoning never ends.
        reasoning: the reasoning, or None if there are no known marks. It is empty if an answer has marks and no reasoning.
        is_open: whether the reasoning begins and never ends, so that there is no answer.
    """

    answer: str
    reasoning: str | None = None
    is_open: bool = False


def split_reasoning(output: str) -> SplitOutput:
    """Split an output into its reasoning and its answer, in time that is linear in its length.

    An output whose reasoning never ends is returned whole, because the official code scores it (HELMET eval.py:105).
    """
    if _has_channels(output):
        return _split_channels(output)
    start = _skip_space(output, 0)
    if output.startswith(_BARE_HARMONY_STARTS, start):
        split = _split_bare_channels(output, start)
        if split is not None:
            return split
    marks = _find_opening(output, start)
    if marks is None:
        end = _find_lone_closing(output)
        if end is None:
            return SplitOutput(output)
        closing_start, closing_end = end
        return _finish(output, [output[:closing_start]], closing_end)
    return _split_blocks(output, start)


def split_answer(text: str, reasoning: str | None) -> SplitOutput:
    """Split a text whose reasoning a server may have put into a field of its own.

    White space around an answer after such reasoning is what the server's parser has left, so it is removed as after
    reasoning in the text. White space around any other text is the model's own and stays.

    Args:
        reasoning: the content of the field; empty or None without reasoning.
    """
    split = split_reasoning(text)
    if split.is_open or not reasoning:
        return split
    return SplitOutput(split.answer.strip(), reasoning)


def remove_reasoning(output: str) -> str:
    """Return the part of an output that is scored; see `SplitOutput.answer`."""
    return split_reasoning(output).answer


def special_marks() -> frozenset[str]:
    """Return the pieces of marks that tokenizers can have as special tokens, such as `<|channel|>`."""
    texts = {*ENDS, "<|start|>", "<|constrain|>", "<|call|>"}
    for marks in TABLE:
        texts.update((marks.opening, marks.closing))
    return frozenset(texts.union(*map(_PIECE.findall, texts)))


_PIECE = re.compile(r"<[^<>\s]{1,60}>")


@cache
def _openings() -> dict[str, tuple[Marks, ...]]:
    """Return the rows by the first character of their opening marks, so that few are compared."""
    rows: dict[str, tuple[Marks, ...]] = {}
    for marks in TABLE:
        if marks not in (HARMONY, BARE_HARMONY):
            rows[marks.opening[0]] = (*rows.get(marks.opening[0], ()), marks)
    return rows


def _find_opening(
    output: str,
    start: int,
    parts: tuple[str, ...] = ("reasoning", "answer"),
) -> Marks | None:
    """Return the row whose opening mark stands at a position."""
    for marks in _openings().get(output[start : start + 1], ()):
        is_wanted = marks.part in parts and not marks.is_markup
        if is_wanted and output.startswith(marks.opening, start):
            return marks
    return None


def _skip_space(output: str, start: int) -> int:
    """Return the position of the first character that is no white space."""
    match = _SPACE.match(output, start)
    assert match is not None
    return match.end()


_SPACE = re.compile(r"\s*")


def _split_blocks(output: str, start: int) -> SplitOutput:
    """Split an output that begins with marks. Blocks of reasoning can follow each other."""
    reasoning: list[str] = []
    position = start
    while marks := _find_opening(output, position, ("reasoning",)):
        begin = position + len(marks.opening)
        # The official code takes the last closing mark of these marks (HELMET eval.py:105).
        find = output.rfind if marks is _THINK else output.find
        end = find(marks.closing, begin)
        if end < 0:
            whole = output[position:].strip() if reasoning else output
            return SplitOutput(
                whole, "\n".join([*reasoning, output[begin:]]), is_open=True
            )
        reasoning.append(output[begin:end])
        position = _skip_space(output, end + len(marks.closing))
    if reasoning and _CHANNEL_START.match(output, position):
        rest = _split_channels(output[position:])
        return replace(
            rest, reasoning="\n".join([*reasoning, rest.reasoning or ""]).strip()
        )
    return _finish(output, reasoning, position)


def _finish(output: str, reasoning: list[str], start: int) -> SplitOutput:
    """Return the answer that starts at a position, without the marks around it."""
    rows = []
    for marks in _answer_marks():
        if reasoning or not marks.is_markup:
            rows.append(marks)
    answer = _unwrap(_strip_ends(output[start:].strip()), rows)
    return SplitOutput(_strip_ends(answer), "\n".join(reasoning).strip())


@cache
def _answer_marks() -> tuple[Marks, ...]:
    return tuple(marks for marks in TABLE if marks.part == "answer")


def _unwrap(answer: str, rows: Iterable[Marks]) -> str:
    """Return an answer without marks around all of it. The closing mark can be missing."""
    for marks in rows:
        if not answer.startswith(marks.opening):
            continue
        inner = answer[len(marks.opening) :]
        if marks.is_markup:
            if inner.endswith(marks.closing):
                return inner.removesuffix(marks.closing)
            return answer
        return inner.partition(marks.closing)[0]
    return answer


def _strip_ends(answer: str) -> str:
    """Remove the marks after an answer."""
    end = len(answer.rstrip())
    for _ in range(_MOST_ENDS):
        mark = next((mark for mark in ENDS if answer.endswith(mark, 0, end)), None)
        if mark is None:
            break
        end -= len(mark)
        while end and answer[end - 1].isspace():
            end -= 1
    return answer[:end].strip()


_QUOTES = frozenset("`'\"“”‘’«»() \t.,;:")


def _is_quoted(output: str, start: int, end: int) -> bool:
    """Whether a text stands within a sentence: models write a closing mark at the edge of a line, or glued to text."""
    before = output[start - 1 : start]
    after = output[end : end + 1]
    return before in _QUOTES and (after in _QUOTES or not after) and start > 0


@cache
def _list_prefilled_marks() -> tuple[Marks, ...]:
    prefilled = []
    for marks in TABLE:
        if marks.is_prefilled and marks not in (_THINK, HARMONY):
            prefilled.append(marks)
    return tuple(prefilled)


def _find_lone_closing(output: str) -> tuple[int, int] | None:
    """Return the place of a closing mark whose opening mark was the end of the prompt.

    An answer that quotes both marks, or one within a sentence, has none.
    """
    start = output.rfind(_THINK.closing)
    if start >= 0:
        return start, start + len(_THINK.closing)
    for marks in _list_prefilled_marks():
        start = output.find(marks.closing)
        if start < 0:
            continue
        end = start + len(marks.closing)
        if output.find(marks.opening, 0, start) < 0 and not _is_quoted(
            output, start, end
        ):
            return start, end
    return None


_CHANNEL_MARK = re.compile(r"<\|(start|channel|message|end|return|call|constrain)\|>")
_CHANNEL_START = re.compile(
    r"\s*(?:(?:<\|start\|>\s*)?assistant(?:\s+to=[\w.-]{1,100})?\s*)?<\|channel\|>"
    r"|\s*(?:analysis|commentary|final)\s*<\|message\|>"
)
_FINAL = "<|channel|>final"


def _has_channels(output: str) -> bool:
    """Whether an output has gpt-oss' messages, or the last of them after a beginning that was in the prompt."""
    if _CHANNEL_START.match(output):
        return True
    start = output.find(_FINAL)
    if start < 0:
        return False
    message = output.find("<|message|>", start, start + 100)
    return message >= 0 and not _is_quoted(output, start, message + len("<|message|>"))


def _read_messages(output: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the channel and the text of each of gpt-oss' messages, and whether it ended.

    The text before the first mark is reasoning whose header was in the prompt, or the name of a channel. Text after
    the end of a message is an answer without a header.
    """
    channel = ""
    position = 0
    state = "start"
    header: list[str] = []
    for match in _CHANNEL_MARK.finditer(output):
        mark = match[1]
        text = output[position : match.start()]
        position = match.end()
        if state == "body":
            yield channel, text, mark in ("end", "return", "call")
        elif state == "channel":
            header.append(text)
        elif state == "start" and mark == "message":
            header = [text]
        elif state == "start" and text.strip() not in ("", "assistant"):
            yield "analysis", text, True
        elif state == "between" and text.strip():
            yield "final", text, True
        if mark == "message":
            channel = "".join(header).strip().partition(" ")[0] or "final"
            state = "body"
        elif mark == "channel":
            header = []
            state = "channel"
        elif mark == "start":
            state = "role"
        elif mark != "constrain":
            state = "between"
    rest = output[position:]
    if state == "body":
        yield channel, rest, False
    elif state == "channel":
        # The header itself was cut.
        yield "analysis", rest, False
    elif state == "between" and rest.strip():
        yield "final", rest, False


def _split_channels(output: str) -> SplitOutput:
    """Split gpt-oss' messages: the answer is the first one in the channel `final`, or a comment if it is the last."""
    messages = list(_read_messages(output))
    finals = [text for channel, text, _ in messages if channel == "final"]
    others = [text for channel, text, _ in messages if channel != "final"]
    if finals:
        return SplitOutput(_strip_ends(finals[0].strip()), "\n".join(others).strip())
    channel, text, has_ended = messages[-1] if messages else ("analysis", "", False)
    if channel == "commentary":
        return SplitOutput(text.strip(), "\n".join(others[:-1]).strip())
    reasoning = "\n".join(others).strip()
    if has_ended:
        return SplitOutput("", reasoning)
    return SplitOutput(output, reasoning, is_open=True)


_BARE_HARMONY_STARTS = (
    "analysis",
    "commentary",
    "assistantanalysis",
    "assistantcommentary",
)
"""What an output of gpt-oss without special tokens begins with, glued to the reasoning."""


def _split_bare_channels(output: str, start: int) -> SplitOutput | None:
    """Split an output of gpt-oss without special tokens, or None if it is a plain answer."""
    opening = next(
        word for word in _BARE_HARMONY_STARTS if output.startswith(word, start)
    )
    begin = start + len(opening)
    is_glued = output[begin : begin + 1].isalnum()
    closing = output.find(BARE_HARMONY.closing, begin)
    end = closing + len(BARE_HARMONY.closing)
    # A plain answer can begin with the word `analysis`, and quote the other mark.
    while closing >= 0 and not is_glued and _is_quoted(output, closing, end):
        closing = output.find(BARE_HARMONY.closing, end)
        end = closing + len(BARE_HARMONY.closing)
    if closing >= 0:
        return SplitOutput(
            _strip_ends(output[end:].strip()), output[begin:closing].strip()
        )
    # A single word can be a name such as `analysis2`.
    if is_glued and _TWO_WORDS.match(output, begin):
        return SplitOutput(output, output[begin:], is_open=True)
    return None


_TWO_WORDS = re.compile(r"\S+\s+\S")

_SPECIAL_START = re.compile(
    r"<[|｜][^\s<>]{1,60}>|<[^\s<>|｜]{1,60}[|｜]>|◁[^\s◁▷]{1,40}▷"
)
_TAG_START = re.compile(r"<([A-Za-z][\w:.-]{0,40})>|\[([A-Z][A-Z_ ]{1,30})\]")
_LABEL_START = re.compile(r"(?:thought|thinking|reasoning|analysis)\n")
_REASONING_NAME = re.compile(
    r"think|thought|reason|analy[sz]|scratch|reflect|\bcot\b|ponder|deliberat|monolog|rationale|brainstorm|musing",
    re.IGNORECASE,
)
_ANSWER_NAME = re.compile(
    r"answer|final|response|solution|output|result|summary|code|table|tsv|csv|json|xml|html|body|head|div|span"
    r"|route|list|path|plan|[abipqu]|em|strong|[ou]l|li|h[1-6]|pre|br|tr|td|th",
    re.IGNORECASE,
)


def may_contain_reasoning(output: str, references: Iterable[str] = ()) -> bool:
    """Whether an output begins with a tag or a channel that no row of the table knows.

    Such a tag has a name of reasoning, or text after its closing tag. What a reference answer begins with, too, is the
    form that the question asks for.
    """
    if split_reasoning(output).reasoning is not None:
        return False
    start = _skip_space(output, 0)
    match = _SPECIAL_START.match(output, start) or _LABEL_START.match(output, start)
    if match is None:
        match = _TAG_START.match(output, start)
        if match is None or not _looks_like_reasoning(output, match):
            return False
    begin = match[0]
    return not any(reference.lstrip().startswith(begin) for reference in references)


def _looks_like_reasoning(output: str, tag: re.Match[str]) -> bool:
    name = tag[1] or tag[2]
    if _REASONING_NAME.search(name):
        return True
    if _ANSWER_NAME.fullmatch(name):
        return False
    closing = f"</{name}>" if tag[1] else f"[/{name}]"
    end = output.find(closing, tag.end())
    return end >= 0 and _skip_space(output, end + len(closing)) < len(output)
