"""Tests that elided texts are short, in order, and tell how much they leave out."""

from __future__ import annotations

import re

import regex
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.runs.prompts import LIMIT, elide, evidence_of
from helm_longctx.tasks.sample import Sample

LEFT_OUT = re.compile(
    r"\n\n\[\.\.\. ([\d,]+) characters left out, depth (\d+)% to (\d+)% \.\.\.\]\n\n"
)
EVIDENCE = re.compile(r"\[evidence, depth (\d+)%: ([^\]]*)\]")
# Letters with marks, a family of joined signs, a flag, Hangul in parts, Chinese: what a careless cut would break.
CLUSTERS = ["a", " ", "é", "\r\n", "👨‍👩‍👧", "🇨🇭", "각", "北", "。", "नि"]
texts = st.builds(
    lambda clusters, times, tail: "".join(clusters) * times + tail,
    st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=40),
    st.integers(0, 4000),
    st.sampled_from(["", "end"]),
)


def pieces(shown: str) -> tuple[list[str], list[int]]:
    """Return the parts that an elided text keeps, without marks, and the numbers of characters left out between them."""
    parts = LEFT_OUT.split(shown)
    return [EVIDENCE.sub(r"\2", part) for part in parts[::4]], [
        int(n.replace(",", "")) for n in parts[1::4]
    ]


@given(texts, st.lists(st.text("abcé北。 ", max_size=12), max_size=9))
def test_nothing_is_lost_unsaid(text: str, evidence: list[str]) -> None:
    """The kept parts and the numbers of characters left out make up the whole text in order, and the result is short."""
    shown = elide(text, evidence)
    assert len(shown) <= LIMIT
    kept, left_out = pieces(shown)
    position = 0
    for part, missing in zip(kept, [*left_out, 0], strict=True):
        assert text[position : position + len(part)] == part
        position += len(part) + missing
    assert position == len(text)
    assert (shown == text) == (len(text) <= LIMIT)
    assert elide(shown, evidence) == shown


@given(texts)
def test_no_cluster_is_cut(text: str) -> None:
    """Every cut stands between grapheme clusters of the whole text."""
    kept, left_out = pieces(elide(text))
    places = {match.start() for match in regex.finditer(r"\X", text)} | {len(text)}
    at = 0
    for part, missing in zip(kept, [*left_out, 0], strict=True):
        assert {at, at + len(part)} <= places
        at += len(part) + missing


@given(
    st.integers(0, 100),
    st.sampled_from(["the code is 4711-ß.", "密码是北京的春天", "x" * 5000]),
)
def test_evidence_stands_in_place(percent: int, passage: str) -> None:
    """A passage of evidence is shown at its place with its depth, and a long one is shown by its beginning."""
    at = 600_000 * percent // 100
    text = "filler 填充 " * 60_000
    text = text[:at] + " " + passage + " " + text[at:]
    shown = elide(text, ["nowhere", passage])
    (match,) = EVIDENCE.finditer(shown)
    assert passage.startswith(match[2])
    assert len(match[2]) == min(len(passage), 300)
    assert abs(int(match[1]) - percent) <= 1


def test_evidence_is_whole_words_that_tell() -> None:
    """Evidence is neither a part of a word nor a text that is everywhere, and the place that would be left out is preferred."""
    text = (
        "Paris first. "
        + "Parisian no 12 " * 1000
        + "In Paris at last. "
        + "filler " * 1000
    )
    shown = elide(text, ["Paris", "12", " ", "no"])
    assert [match[2] for match in EVIDENCE.finditer(shown)] == ["Paris"]
    assert "In [evidence, depth 68%: Paris] at last." in shown


def test_a_handful_of_places() -> None:
    """However much evidence a text has, only the five pieces that are given first are shown."""
    text = "".join(f"needle-{number:05}{' filler' * 100}\n" for number in range(1000))
    shown = elide(text, [f"needle-{number:05}" for number in range(900, 0, -100)])
    assert [match[2] for match in EVIDENCE.finditer(shown)] == [
        f"needle-{n:05}" for n in (500, 600, 700, 800, 900)
    ]


def test_evidence_at_the_ends_of_the_text() -> None:
    """Evidence at the beginning and at the end of the text is marked."""
    text = "Alpha key. " + "filler " * 3000 + "Omega key"
    shown = elide(text, ["Alpha key", "Omega key"])
    assert shown.startswith("[evidence, depth 0%: Alpha key]")
    assert shown.endswith("[evidence, depth 100%: Omega key]")


def test_evidence_side_by_side() -> None:
    """Two adjacent pieces of evidence are both marked in either order, and of overlapping pieces only one is marked."""
    text = "填充 " * 4000 + "北京的春天上海的秋天" + "填充 " * 4000
    for evidence in (["北京的春天", "上海的秋天"], ["上海的秋天", "北京的春天"]):
        assert [match[2] for match in EVIDENCE.finditer(elide(text, evidence))] == [
            "北京的春天",
            "上海的秋天",
        ]
    assert [
        match[2]
        for match in EVIDENCE.finditer(elide(text, ["的春天上海", "北京的春天"]))
    ] == ["的春天上海"]


def test_evidence_of_an_instance() -> None:
    """The evidence of an instance is its answers, followed by the most relevant passages."""
    sample = Sample("official", 10, 10, record={"qrels": {"17": 1, "23": 3, "42": 3}})
    assert evidence_of(["Paris"], sample) == ["Paris", "23", "42"]
    assert evidence_of(["Paris"], None) == ["Paris"]
    assert (
        evidence_of([], Sample("official", 10, 10, record={"qrels": {"17": 0}})) == []
    )
