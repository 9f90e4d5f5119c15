"""Tests of what replaces secrets and personal details in texts."""

from __future__ import annotations

import time

import pytest

from helm_longctx.redaction.personal import Redactor
from helm_longctx.redaction.text import MARK, redact, replace_secrets


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("to jane.doe+x@mail.example.org.", "to [email 1]."),
        ("git@github.com:org/repo.git", "git@github.com:org/repo.git"),
        ("cd /home/jane/work", "cd /home/[user 1]/work"),
        ("/Users/jane/a and /Users/Shared/b", "/Users/[user 1]/a and /Users/Shared/b"),
        (r"C:\Users\jane\a", r"C:\Users\[user 1]\a"),
        ("call +49 170 1234567 now", "call [phone 1] now"),
        ("(415) 555-2671", "[phone 1]"),
        ("from 10.1.2.3 to 127.0.0.1", "from [ip 1] to 127.0.0.1"),
        ("version 1.2.3.400", "version 1.2.3.400"),
        ("mask 255.255.255.0", "mask 255.255.255.0"),
        ("4111 1111 1111 1111", "[card 1]"),
        ("4111 1111 1111 1112", "4111 1111 1111 1112"),
        ("0000000000000000", "0000000000000000"),
        ("DE89 3704 0044 0532 0130 00", "[account 1]"),
        ("DE88370400440532013000", "DE88370400440532013000"),
        ("key sk-ant-api03-abcdef0123456789", "key [secret 1]"),
        ("https://me:hunter22@host/x", "https://[secret 1]@host/x"),
        ('"api_key": "abcd1234efgh"', '"api_key": "[secret 1]"'),
        ("commit 9f2c1e7a3b at 2026-11-29 10:00", "commit 9f2c1e7a3b at 2026-11-29 10:00"),
        ("lines 100-200, 300-400-500", "lines 100-200, 300-400-500"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_is_replaced(text: str, expected: str) -> None:
    """Details that pass their checks are replaced, and numbers, versions and paths that only look similar stay."""
    assert Redactor().redact(text) == expected


def test_equal_details_have_one_placeholder() -> None:
    """The same detail has the same placeholder in all texts, others have others, and nothing keeps the details."""
    redactor = Redactor(["Jane Doe", "Jane"])
    texts = ["a@b.org, c@d.org", "c@d.org and JANE DOE", "Jane, Janet"]
    shown = [
        redactor.redact(text, f"line {number}") for number, text in enumerate(texts, 1)
    ]
    assert shown == [
        "[email 1], [email 2]",
        "[email 2] and [word 1]",
        "[word 2], Janet",
    ]
    rows = {row.placeholder: row for row in redactor.replacements}
    assert (rows["[email 2]"].times, rows["[email 2]"].first) == (2, "line 1")
    assert rows["[word 1]"].first == "line 2"
    assert all("@" not in row.shown and "doe" not in row.shown for row in rows.values())


def test_named_secrets_are_the_redacted_ones() -> None:
    """What a name replaces is what `redact` replaces, and nothing around it."""
    text = (
        "Authorization: Bearer abc123def456ghi sk-ant-api03-abcdef0123456789"
        " https://u:p4ssw0rd@h/?key=abcd1234&x=1 password=hunter2222"
    )
    secrets: list[str] = []

    def name(secret: str) -> str:
        secrets.append(secret)
        return MARK

    assert replace_secrets(text, name) == redact(text)
    assert "sk-ant-api03-abcdef0123456789" in secrets
    assert "hunter2222" in secrets
    assert all(secret in text for secret in secrets)


def test_long_texts_take_no_long_time() -> None:
    """The time grows with the length of a text, whatever characters it repeats."""
    start = time.process_time()
    for piece in ("a", "1", "1 ", "a.", "@", "+1", "DE12", "/home/", "a@b"):
        Redactor().redact(piece * (200_000 // len(piece)))
    assert time.process_time() - start < 30


def test_many_details_take_no_long_time() -> None:
    """Twenty thousand different addresses are numbered in seconds: a number is counted on, and not counted anew."""
    text = " ".join(f"user{number}@example.com" for number in range(20_000))
    redactor = Redactor()
    start = time.process_time()
    assert redactor.redact(text).endswith("[email 20000]")
    assert time.process_time() - start < 5
