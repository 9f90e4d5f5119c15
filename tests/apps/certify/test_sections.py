"""Tests of the lines and the page of a certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.apps.certify.sections import describe_totals
from tests.support.certifying import describe_records

FOLDER = Path(__file__).parent

TOTALS: dict[str, Any] = {
    **{
        "findings": [],
        "accepted": 8192,
        "dollars": None,
        "requests": 3,
        "prompt_tokens": 1000,
        "cut_answers": 0,
    },
    "stop": "",
}


def describe_tokens(**tokens: Any) -> str:
    """Return the line about the server's tokens."""
    known = {"reported": 3, "by_tokenizer": None, "by_estimate": None}
    return describe_totals({**TOTALS, "tokens": {**known, **tokens}})[1]


@pytest.mark.parametrize(
    ("ratio", "agrees"),
    [
        (0.9, False),
        (0.96, True),
        (1.0, True),
        (1.04, True),
        (1.06, False),
        (2.0, False),
    ],
)
def test_the_tokens_agree_within_five_percent(ratio: float, agrees: bool) -> None:
    """The server's count agrees with the tokenizer's if it is at most 5 % more or less, and the ratio is always shown."""
    words = "agrees with" if agrees else "differs from"
    expected = f"The server's count of tokens {words} the tokenizer's: the ratio is {ratio:.3f}."
    assert describe_tokens(by_tokenizer=ratio) == expected


def test_tokens_without_a_tokenizer() -> None:
    """Without a tokenizer the estimate is named, and a server that reports nothing is said to report nothing."""
    assert describe_tokens(by_estimate=1.25).startswith(
        "The server counts 1.25 times as many tokens as our estimate"
    )
    assert (
        describe_tokens(reported=0)
        == "The server does not report the tokens of prompts."
    )


def test_what_certificates_say(tmp_path: Path) -> None:
    """The sentences, tables and pages of certificates with known records are those of the file.

    `python -m tests.golden_makers certificates` rewrites it after a change that is meant.
    """
    records = json.loads((FOLDER / "golden.json").read_text(encoding="utf-8"))
    texts = json.loads((FOLDER / "texts.json").read_text(encoding="utf-8"))
    described = json.loads(json.dumps(describe_records(records, tmp_path)))
    assert described.keys() == texts.keys()
    for name, text in described.items():
        assert text == texts[name]
