"""Tests of probes: how they are read, placed, refused and scored."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from helm_longctx.apps.compaction.asking import ProbeReply
from helm_longctx.apps.compaction.probes import (
    Probe,
    load_probes,
    part_around,
    place_probe,
    read_list,
    save_probes,
    split_parts,
)
from helm_longctx.apps.compaction.samples import make_session, place_made_probes
from helm_longctx.apps.compaction.scoring import (
    ExtractiveReader,
    ScoreState,
    is_right,
    score_reply,
    split_reply,
)
from helm_longctx.apps.compaction.transcripts import Transcript, TranscriptMessage
from helm_longctx.apps.compaction.trial import count_compactions
from helm_longctx.errors import InputError

TRANSCRIPT = Transcript(
    "t",
    "messages",
    [
        TranscriptMessage("user", "Use the port 8123 for the proxy.", line=1),
        TranscriptMessage("assistant", "The proxy is in src/proxy.py now.", line=2),
        TranscriptMessage("tool", "exit code 77\nretry later", line=3),
        TranscriptMessage("user", "Now on to src/proxy.py again.", line=4),
    ],
)
RAW = {
    "kind": "facts",
    "question": "Which port does the proxy use?",
    "answer": "8123",
    "quote": "the port  8123",
    "exact": True,
}


def place(**fields: object) -> Probe | str:
    """Return the probe with other fields, of the first three messages."""
    return place_probe(TRANSCRIPT, 1, {**RAW, **fields}, 3)


def test_a_probe_has_its_place() -> None:
    """A probe knows the message, the line and the depth of its answer, whatever white space the quotation has."""
    probe = place()
    assert isinstance(probe, Probe)
    assert (probe.message, probe.line, probe.depth, probe.is_exact) == (0, 1, 0.0, True)
    later = place(quote="EXIT code 77 retry", answer="77", question="With which code?")
    assert isinstance(later, Probe)
    assert (later.message, later.line) == (2, 3)
    assert 0.4 < later.depth < 0.9
    said = place(answer="port number 8123", exact=True)
    assert isinstance(said, Probe)
    assert not said.is_exact


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"quote": "nowhere"}, "its quotation is not in the part that vanishes"),
        ({"quote": "Now on to"}, "its quotation is not in the part that vanishes"),
        (
            {"answer": "src/proxy.py", "quote": "src/proxy.py now"},
            "the answer is also in the part that stays",
        ),
        ({"kind": "poems"}, "the kind is unknown"),
        ({"question": " "}, "a field is missing"),
        ({"answer": 8123}, "a field is missing"),
        ({"question": "Is the port 8123?"}, "the question has the answer"),
        ({"question": "x" * 500}, "the question or the answer is too long"),
    ],
)
def test_probes_that_are_left_out(fields: dict[str, object], reason: str) -> None:
    """A probe that cannot show a loss is left out with its reason."""
    assert place(**fields) == reason


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('[{"a": 1}, {"b": 2}]', 2),
        ('Sure:\n```json\n[{"a": [1, {"c": 2}]}]\n```', 1),
        ('[{"a": 1}, {"b": ', 1),
        ("no list", 0),
        ("[1, 2]", 0),
        ("", 0),
        ("[" * 5000, 0),
    ],
)
def test_lists_in_replies(text: str, count: int) -> None:
    """The objects of a list are read, also of one that is cut or has words around it."""
    assert len(read_list(text)) == count


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("1. a\n2. b\n3. c", ["a", "b", "c"]),
        ("1) a\n2: b\n3. c", ["a", "b", "c"]),
        ("**1.** a\n**2.** b\n\n3. c", ["a", "b", "c"]),
        ("Here:\n1. a\n3. c", ["a", None, "c"]),
        ("1. first:\n- x\n- y\n2. b\n3. c", ["first:\n- x\n- y", "b", "c"]),
        ("1. a\n1. inner\n2. b\n3. c", ["a\n1. inner", "b", "c"]),
        ("2.\nb\n3. 4. July", [None, "b", "4. July"]),
        ("nothing at all", [None, None, None]),
        ("1. a\n2. 3.5 seconds\n3. 10.0.0.1", ["a", "3.5 seconds", "10.0.0.1"]),
    ],
)
def test_numbered_answers(text: str, answers: list[str | None]) -> None:
    """The answers in a reply are told apart by their numbers; one that is missing is a failure and no wrong answer."""
    replies = split_reply(ProbeReply(text, dollars=0.3), ["x", "y", "z"])
    assert [reply.text for reply in replies] == answers
    assert all((reply.text is None) == bool(reply.failure) for reply in replies)
    assert sum(reply.dollars or 0 for reply in replies) == pytest.approx(0.3)


def test_the_last_answer_of_a_cut_reply_does_not_count() -> None:
    """The output budget can end a reply within its last answer, which then has no score."""
    replies = split_reply(ProbeReply("1. a\n2. src/pro", is_cut=True), ["x", "y", "z"])
    assert [reply.text for reply in replies] == ["a", None, None]
    assert split_reply(ProbeReply("just so"), ["x"])[0].text == "just so"
    assert {
        reply.failure for reply in split_reply(ProbeReply(None, "no"), ["x", "y"])
    } == {"no"}


@pytest.mark.parametrize(
    ("reply", "answer", "expected"),
    [
        ("It is 8123.", "8123", True),
        ("`src/a.py`", "src/a.py", True),
        ("SRC/A.PY", "src/a.py", True),
        ("18123", "8123", False),
        ("src/a.pyc", "src/a.py", False),
        ("write  the\nscript", "write the script", True),
        ("", "8123", False),
        ("anything", "...", False),
    ],
)
def test_exact_answers(reply: str, answer: str, expected: bool) -> None:
    """An exact answer stands in the reply as whole words."""
    assert is_right(reply, answer) is expected


def test_states_of_probes() -> None:
    """Failures and answers without a judge have no score; unknown and wrong ones have 0."""
    probe = place()
    assert isinstance(probe, Probe)
    judged = place(exact=False)
    assert isinstance(judged, Probe)
    for own, reply, state, score in (
        (probe, ProbeReply("8123"), ScoreState.RIGHT, 1.0),
        (probe, ProbeReply("9000"), ScoreState.WRONG, 0.0),
        (probe, ProbeReply("Unknown."), ScoreState.UNKNOWN, 0.0),
        (probe, ProbeReply("not in the transcript"), ScoreState.UNKNOWN, 0.0),
        (probe, ProbeReply(None, "quota"), ScoreState.FAILED, None),
        (judged, ProbeReply("8123"), ScoreState.FAILED, None),
        (judged, ProbeReply("unknown"), ScoreState.UNKNOWN, 0.0),
    ):
        given = score_reply(own, reply, None)
        assert (given.state, given.score) == (state, score)


def test_files_of_probes(tmp_path: Path) -> None:
    """Probes are read as they were written; own lines need few fields, and those of another text are refused."""
    probe = place()
    assert isinstance(probe, Probe)
    path = tmp_path / "probes.jsonl"
    save_probes(path, [probe])
    assert load_probes(path, [TRANSCRIPT]) == [probe]
    own = {**RAW, "transcript": "t"}
    path.write_bytes(orjson.dumps(own) + b"\n")
    (read,) = load_probes(path, [TRANSCRIPT])
    assert (read.message, read.is_exact) == (0, True)
    other = Transcript(
        "t", "messages", [TranscriptMessage("user", "the port 8123 too")]
    )
    save_probes(path, [probe])
    for transcripts, expected in (
        ([other], "has changed"),
        ([Transcript("u", "", [])], "no probe about u"),
    ):
        with pytest.raises(InputError, match=expected):
            load_probes(path, transcripts)
    path.write_text("{}\n[3]\n")
    with pytest.raises(InputError, match=r"probes\.jsonl:2: not a JSON object"):
        load_probes(path, [TRANSCRIPT])
    path.write_bytes(orjson.dumps({**own, "quote": "nowhere"}))
    with pytest.raises(InputError, match="cannot be used: its quotation"):
        load_probes(path, [TRANSCRIPT])


def test_parts_share_the_probes() -> None:
    """Long transcripts are split into parts that have all probes together, and each message once."""
    messages, raws = make_session(2, turns=120, per_kind=2)
    transcript = Transcript("long", "messages", messages)
    end = transcript.find_tail(2000)
    parts = split_parts(transcript, end, 31)
    assert len(parts) > 1
    assert sum(part.count for part in parts) == 31
    assert [parts[0].start, parts[-1].end] == [0, end]
    probe = place_made_probes(transcript, raws)[5]
    around = part_around(transcript, probe, 500)
    assert transcript.messages[probe.message] in around
    assert len(around) < 40
    assert count_compactions(transcript, probe, 1) == 1
    first, last = (transcript.messages[0], transcript.messages[-1])
    assert first is not last
    assert (
        count_compactions(transcript, place_made_probes(transcript, raws[:1])[0], 8) > 4
    )


def test_the_extractive_reader_only_finds_words() -> None:
    """The reader without a model copies the best sentence, and knows nothing without a context."""
    reader = ExtractiveReader()
    context = "The lamp is red. The door of the barn is green.\nA cow."
    texts = [
        reply.text
        for reply in reader.answer(context, ["What colour is the barn door?", "Zebra?"])
    ]
    assert texts == ["The door of the barn is green.", "unknown"]
    assert reader.answer("", ["What colour is the barn door?"])[0].text == "unknown"
