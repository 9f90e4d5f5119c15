"""Malformed rows of MRCR end in an error of one line, and tokens are counted for the bins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.benchmarks.mrcr import BENCHMARK, tasks
from helm_longctx.benchmarks.mrcr.tasks import (
    LENGTHS,
    PATH,
    SOURCE,
    o200k_counter,
    score,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.task import Example, Settings
from tests.support.fabricate_words import write

MESSAGES = [
    {"role": "user", "content": "write a poem about " + "roses" * 2000},
    {"role": "assistant", "content": "roses"},
    {"role": "user", "content": "Prepend Q to the poem"},
]
ROW: dict[str, Any] = {
    "prompt": json.dumps(MESSAGES), "answer": "Qroses", "random_string_to_prepend": "Q", "n_needles": 2,
    "desired_msg_index": 1, "total_messages": 3,
}  # fmt: skip


def found(tmp_path: Path, *rows: dict[str, Any], tokens: int = 2000) -> list[Example]:
    """Return the examples of the bin 8k if each text counts the given number of tokens."""
    write(tmp_path / PATH, rows)
    task = BENCHMARK.task("2needle")
    with mock.patch.object(tasks, "o200k_counter", return_value=lambda text: tokens):
        return list(task.load(task, Settings(8192), DataRoot(tmp_path, mirror=True)))


def test_lengths() -> None:
    """There are eight bins from 8k to 1m."""
    assert LENGTHS == {"8k": 8192, "16k": 16384, "32k": 32768, "64k": 65536, "128k": 131072, "256k": 262144,
                       "512k": 524288, "1m": 1048576}  # fmt: skip


def test_the_mirror_holds_what_is_read() -> None:
    """The rows lie in the same folder as every hub data set, without a file of labels."""
    assert SOURCE.paths == ["hub/openai__mrcr/train.jsonl"]


def test_a_conversation(tmp_path: Path) -> None:
    """A row becomes messages, a record and a depth, and its number also counts rows with other needles."""
    (row,) = found(tmp_path, {**ROW, "n_needles": 4}, ROW)
    assert (row.id, row.input_tokens, row.depth) == ("mrcr-1", 8000, 0.5)
    (other,) = found(tmp_path, {**ROW, "answer": "another"})
    assert row.group == other.group
    assert row.messages[1] == {"role": "assistant", "content": "roses"}
    assert score({"prediction": "Qroses", **row.record}) == {"score": 1.0}


def conversation(*poems: str, number: int = 2, answer: str = "") -> dict[str, Any]:
    """Return a row that asks for a poem about tapirs, with these poems and another text between them."""
    messages = [
        {"role": "user", "content": "write a riddle about tapirs"},
        {"role": "assistant", "content": "roses" * 2000},
    ]
    for poem in poems:
        messages += [
            {"role": "user", "content": "Write a poem about tapirs"},
            {"role": "assistant", "content": poem},
        ]
    last = f"Prepend Q to the {number}nd (1 indexed) poem about tapirs. Do not include any other text in your response."
    return {
        **ROW,
        "prompt": json.dumps([*messages, {"role": "user", "content": last}]),
        "answer": answer,
    }


@pytest.mark.parametrize(
    ("row", "errata"),
    [
        (conversation("one", "two", answer="Qtwo"), ()),
        (conversation("one", "two", answer="Qone"), ("wrong_answer",)),
        (conversation("one", "two", "three", answer="Qtwo"), ("too_many_needles",)),
        (
            conversation("one", "two", "three", answer="Qthree"),
            ("wrong_answer", "too_many_needles"),
        ),
        (
            conversation("one", answer="Qtwo"),
            (),
        ),  # without the second poem, nothing is known
        (ROW, ()),
    ],
)
def test_known_errors_are_found(
    tmp_path: Path, row: dict[str, Any], errata: tuple[str, ...]
) -> None:
    """Rows have the names of the rules by which they are wrong, and `errata.jsonl` describes each rule for each task."""
    texts = len(json.loads(row["prompt"])) + 1
    (example,) = found(tmp_path, row, tokens=8000 // texts)
    assert example.errata == errata
    known = {(erratum.task, erratum.rule) for erratum in BENCHMARK.errata()}
    assert known >= {(task.name, rule) for task in BENCHMARK.tasks for rule in errata}


@pytest.mark.parametrize(
    ("tokens", "bins"), [(1024, 0), (1025, 1), (2048, 1), (2049, 0)]
)
def test_ends_of_bins(tmp_path: Path, tokens: int, bins: int) -> None:
    """A bin begins above half its length and ends with its length, and the answer's tokens count."""
    assert len(found(tmp_path, ROW, tokens=tokens)) == bins


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"answer": None}, ":1: column 'answer' must be str, found NoneType"),
        ({"prompt": "[{"}, ": row 1: column 'prompt' must be JSON (JSONDecodeError)"),
        ({"prompt": "[1]"}, ": row 1: column 'prompt' must be a list of objects with role and content, the last one the user's"),
        ({"prompt": '[{"role": "user"}]'}, ": row 1: column 'prompt' must be a list of objects with role and content, the last one the user's"),
        ({"prompt": '[{"role": 1, "content": "x"}]'}, ": row 1: column 'prompt' must be a list of objects with role and content, the last one the user's"),
        ({"prompt": json.dumps(MESSAGES[:2])}, ": row 1: column 'prompt' must be a list of objects with role and content, the last one the user's"),
        ({"prompt": "[]"}, ": row 1: column 'prompt' must be a list of objects with role and content, the last one the user's"),
    ],
)  # fmt: skip
def test_malformed_rows(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    """The error names the file, the row and the column."""
    with pytest.raises(InputError) as caught:
        found(tmp_path, {**ROW, **fields})
    assert str(caught.value) == f"{tmp_path / PATH}{message}"


def test_without_the_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to do if tiktoken cannot get its file."""

    def fail(name: str) -> None:
        raise ConnectionError(f"no {name}")

    monkeypatch.setattr(tiktoken, "get_encoding", fail)
    o200k_counter.cache_clear()
    with pytest.raises(
        InputError,
        match=r"o200k_base \(ConnectionError\); check the network, or set TIKTOKEN_CACHE_DIR",
    ):
        o200k_counter()


def test_special_tokens_count_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of special tokens in a conversation count as text and raise nothing."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    small = tiktoken.Encoding(
        "s", pat_str=r".", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 256}
    )
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: small)
    o200k_counter.cache_clear()
    assert o200k_counter()("<|endoftext|>") == 13
    o200k_counter.cache_clear()


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=5))
def test_scores(output: str, answer: str, prefix: str) -> None:
    """Scores are between 0 and 1; the answer itself has 1, and an output that does not begin with the random string has
    0."""
    record = {"answer": prefix + answer, "random_string_to_prepend": prefix}
    assert 0 <= score({"prediction": output, **record})["score"] <= 1
    assert score({"prediction": prefix + answer, **record})["score"] == 1
    assert (
        output.startswith(prefix)
        or score({"prediction": output, **record})["score"] == 0
    )
