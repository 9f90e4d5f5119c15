"""Reads MRCR's rows. Each is a conversation whose last turn asks for one of several similar answers.

Source: the hub data set openai/mrcr and its card (bins, how tokens are counted). A bin is the interval
(length/2, length], as in princeton-nlp/HELMET at 5dde2de, data_module/mrcr.py. There is no template, because a row's
messages are the prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from helm_longctx.errors import InputError, bad_argument
from helm_longctx.protocol.prompt import Message, read_messages
from helm_longctx.sources.hub import HubDataset
from helm_longctx.sources.jsonl import JsonLines, Row, Types

SOURCE = HubDataset("openai/mrcr", {"train": 2400}, labelled=False)
PATH = f"{SOURCE.folder}/train.jsonl"
"""Path of the file under the data root."""
NEEDLES = (2, 4, 8)
LENGTHS = {
    label: 8192 << power for power, label in enumerate(("8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m"))
}
"""The largest number of tokens of all messages and the answer, by the length's label."""
SAMPLE = 100
"""The number of rows in each bin."""

COLUMNS: Types = {
    "prompt": str,
    "answer": str,
    "random_string_to_prepend": str,
    "n_needles": int,
    "desired_msg_index": int,
    "total_messages": int,
}

CountTokens = Callable[[str], int]


@dataclass(frozen=True)
class Conversation:
    """A row of the file.

    Args:
        number: its place in the file, from 0.
        messages: the prompt; the last one is the user's.
        answer: the expected output, with the random string before it.
        random_string: the text with which the output has to begin.
        needle: the row's `desired_msg_index`: which of the messages, from 0, is asked for.
        tokens: number of tokens of all messages and the answer.
    """

    number: int
    messages: tuple[Message, ...]
    answer: str
    random_string: str
    needle: int
    tokens: int

    @property
    def conversation(self) -> str:
        """A digest of all messages but the last, which rows on the same conversation share."""
        digest = hashlib.sha256()
        for message in self.messages[:-1]:
            digest.update(message["content"].encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:12]

    @property
    def depth(self) -> float:
        """The position of the message that is asked for, 0 (first) to 1 (last)."""
        return min(self.needle / max(len(self.messages) - 1, 1), 1.0)

    @property
    def record(self) -> dict[str, str]:
        """The fields that the scorer reads."""
        return {"answer": self.answer, "random_string_to_prepend": self.random_string}


def conversations(path: Path, needles: int, length: int, count: CountTokens | None = None) -> Iterator[Conversation]:
    """Yield the rows of a bin in file order: more than `length` / 2 and at most `length` tokens.

    Only one row is in memory at a time.

    Args:
        needles: number of needles that a row must have.
        count: counts the tokens of a text; with o200k_base by default.

    Raises:
        InputError: an argument is not allowed, or the file is absent or malformed.
    """
    if needles not in NEEDLES:
        raise bad_argument("mrcr", "needles", needles, NEEDLES)
    if length not in LENGTHS.values():
        raise bad_argument("mrcr", "length", length, LENGTHS)
    count = count or o200k_counter()
    for number, row in enumerate(JsonLines(path, COLUMNS)):
        if row["n_needles"] != needles:
            continue
        messages = _messages(row, f"{path}: row {number + 1}")
        texts = [*(message["content"] for message in messages), row["answer"]]
        # A token has at least one byte, so a row with so few bytes is too short and need not be tokenized.
        if sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) <= length // 2:
            continue
        tokens = _tokens(texts, length, count)
        if length // 2 < tokens <= length:
            yield _conversation(row, number, messages, tokens)


def read_conversations(path: Path, chosen: Sequence[tuple[int, int]]) -> Iterator[Conversation]:
    """Yield the rows with these numbers and numbers of tokens, in this order.

    Raises:
        InputError: the file is malformed.
    """
    rows = JsonLines(path, COLUMNS).rows(number for number, _ in chosen)
    for (number, tokens), row in zip(chosen, rows, strict=True):
        yield _conversation(row, number, _messages(row, f"{path}: row {number + 1}"), tokens)


def _conversation(row: Row, number: int, messages: tuple[Message, ...], tokens: int) -> Conversation:
    answer, random_string = row["answer"], row["random_string_to_prepend"]
    return Conversation(number, messages, answer, random_string, row["desired_msg_index"], tokens)


@cache
def o200k_counter() -> CountTokens:
    """Make a counter of o200k_base tokens. It counts names of special tokens as text; the official code refuses them.

    Raises:
        InputError: tiktoken cannot load the encoding.
    """
    import tiktoken

    try:
        encoding = tiktoken.get_encoding("o200k_base")
    except Exception as error:  # of the HTTP library, the disk, or a wrong checksum
        raise InputError(
            f"tiktoken cannot load the encoding o200k_base ({type(error).__name__}); check the network, or set "
            "TIKTOKEN_CACHE_DIR to a folder that has it"
        ) from error
    # Conversations of a file share most of their messages, so counts are remembered.
    return lru_cache(1 << 14)(lambda text: len(encoding.encode_ordinary(text)))


def _messages(row: Row, where: str) -> tuple[Message, ...]:
    try:
        messages = json.loads(row["prompt"])
    except ValueError as error:
        raise InputError(f"{where}: column 'prompt' must be JSON ({type(error).__name__})") from error
    return read_messages(f"{where}: column 'prompt'", messages)


def _tokens(texts: list[str], most: int, count: CountTokens) -> int:
    """Count the tokens of all texts. Counting stops above `most`, so a larger result is not the full count."""
    total = 0
    for text in texts:
        total += count(text)
        if total > most:
            break
    return total
