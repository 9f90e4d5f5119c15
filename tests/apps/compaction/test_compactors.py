"""Tests of compactors: baselines, functions, commands, the method, and rounds."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest

from helm_longctx.apps.compaction.asking import AskedModel
from helm_longctx.apps.compaction.compactors import (
    BASELINES,
    CompactionError,
    Compactor,
    compact_in_rounds,
    make_baselines,
    make_compactor,
    read_method_arguments,
    split_label,
    split_rounds,
)
from helm_longctx.apps.compaction.samples import make_session
from helm_longctx.apps.compaction.transcripts import (
    TranscriptMessage,
    count_tokens,
    render,
)
from helm_longctx.errors import InputError

MODULE = """
def drop_tools(messages):
    return [message for message in messages if message["role"] != "tool"]
def text(messages):
    return f"{len(messages)} messages"
def generate(messages):
    yield from messages[:2]
def number(messages):
    return 3
def fail(messages):
    raise KeyError(messages[0]["content"])
"""


@pytest.fixture(scope="module")
def messages() -> list[TranscriptMessage]:
    """Return the messages of a session."""
    return make_session(1, turns=10)[0]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)


def refuse(what: str) -> NoReturn:
    """Stand for a model that is not there."""
    raise InputError(f"{what} needs a model")


def make(spec: str, seconds: float = 20) -> Compactor:
    """Return a compactor that needs no model."""
    return make_compactor(spec, refuse, refuse, seconds)


def test_baselines(messages: list[TranscriptMessage]) -> None:
    """The baselines keep everything, the last tokens but no more, and nothing."""
    whole, last, nothing = (
        baseline.compact(messages, 400) for baseline in make_baselines(BASELINES)
    )
    assert list(whole.messages) == messages
    assert nothing.tokens == 0
    assert 300 < last.tokens <= 400
    assert list(last.messages) == messages[-len(last.messages) :]
    short = make_baselines(["last"])[0].compact(
        [TranscriptMessage("user", "word " * 1000)], 100
    )
    assert 80 <= short.tokens <= 120


def test_functions(messages: list[TranscriptMessage]) -> None:
    """A function in the folder of the command gets messages of OpenAI's form; its errors name no content."""
    Path("mine.py").write_text(MODULE)
    made = make("mine:drop_tools").compact(messages, 1).messages
    assert [message.text for message in made] == [
        message.text for message in messages if message.role != "tool"
    ]
    assert (
        render(make("mine:text").compact(messages, 1).messages)
        == f"[user]\n{len(messages)} messages"
    )
    assert len(make("mine:generate").compact(messages, 1).messages) == 2
    with pytest.raises(CompactionError, match="a compactor returns"):
        make("mine:number").compact(messages, 1)
    with pytest.raises(CompactionError, match="KeyError"):
        make("mine:fail").compact(messages, 1)
    for spec, expected in (
        ("mine:nothing", "has no function nothing"),
        ("nowhere:f", "cannot be imported"),
    ):
        with pytest.raises(InputError, match=expected):
            make(spec)


COPY = "import sys; lines = open(sys.argv[1]).readlines(); open(sys.argv[2], 'w').writelines(lines[:4])"


@pytest.mark.parametrize(
    ("code", "words", "expected"),
    [
        (COPY, "{input} {output}", 4),
        ("import sys; sys.stdout.writelines(sys.stdin.readlines()[:3])", "", 3),
        (
            "import json, sys; print(json.dumps([json.loads(line) for line in sys.stdin][:5]))",
            "",
            5,
        ),
        ("print('a summary')", "{input}", 1),
        ("print('[user asked] a summary')", "{input}", 1),
        ("pass", "{input}", 0),
    ],
)
def test_commands(
    messages: list[TranscriptMessage], code: str, words: str, expected: int
) -> None:
    """A command reads files or its input, and writes lines, a document, or a text."""
    Path("tool.py").write_text(code)
    made = make(f"{sys.executable} tool.py {words}").compact(messages, 1)
    assert len(made.messages) == expected


def test_commands_are_not_read_by_a_shell(messages: list[TranscriptMessage]) -> None:
    """Nothing in a command or a transcript is run by a shell."""
    hostile = [
        TranscriptMessage(
            "user", "$(touch hacked); `touch hacked` | touch hacked\n'; touch hacked; '"
        )
    ]
    Path("tool.py").write_text(
        "import sys; print(sys.argv[1:]); print(sys.stdin.read())"
    )
    command = make(
        f"{sys.executable} tool.py ';' touch hacked '$(touch hacked)' '&&' touch hacked > out"
    )
    text = render(command.compact(hostile, 1).messages)
    assert "'$(touch hacked)', '&&', 'touch', 'hacked', '>', 'out'" in text
    assert not Path("hacked").exists()
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import sys; sys.exit(4)", "the status 4"),
        ("import time; time.sleep(60)", "more than 1 seconds"),
        ('print(\'{"role": "robot"}\')', "a message needs a role"),
    ],
)
def test_commands_that_fail(
    messages: list[TranscriptMessage], code: str, expected: str
) -> None:
    """A command that fails, hangs or writes no messages has no result."""
    Path("tool.py").write_text(code)
    start = time.monotonic()
    with pytest.raises(CompactionError, match=expected):
        make(f"{sys.executable} tool.py", 1).compact(messages, 1)
    assert time.monotonic() - start < 20


def test_a_command_without_its_output(messages: list[TranscriptMessage]) -> None:
    """A command that should write a file and does not has no result."""
    Path("tool.py").write_text("pass")
    with pytest.raises(CompactionError, match="wrote no file"):
        make(f"{sys.executable} tool.py " + "{input} {output}").compact(messages, 1)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("no-such-program {input}", "there is no program no-such-program"),
        ("tool 'unclosed", "No closing quotation"),
        ("", "compact, server, MODULE:FUNCTION or a command"),
        ("last=tool", "this one is a baseline"),
        ("compact", "compact needs a model"),
        ("compact:size=3", "choose from turn, threshold, kept"),
        ("compact:kept=many", "kept"),
        ("''", "there is no program"),
    ],
)
def test_specs_that_are_refused(spec: str, expected: str) -> None:
    """A compactor that cannot be made is refused in one line."""
    with pytest.raises(InputError, match=expected) as caught:
        make(spec)
    assert "\n" not in str(caught.value)


def test_labels_and_arguments() -> None:
    """A name can stand before a compactor, and arguments of the method take lengths."""
    assert split_label("mine=tool --in={input}") == ("mine", "tool --in={input}")
    assert split_label("tool --in={input}") == (
        "tool --in={input}",
        "tool --in={input}",
    )
    assert split_label("compact:kept=1k") == ("compact:kept=1k", "compact:kept=1k")
    assert read_method_arguments("threshold=16k,kept=500") == {
        "threshold": 16384,
        "kept": 500,
    }


class _Counting(Compactor):
    """Keeps the last messages, and counts."""

    def __init__(self) -> None:
        super().__init__("counting")
        self.sizes: list[int] = []

    def compact(self, messages: Any, keep: int) -> Any:
        """Keep two messages."""
        self.sizes.append(len(messages))
        return make_baselines(["last"])[0].compact(messages[-2:], 10**6)


def test_rounds(messages: list[TranscriptMessage]) -> None:
    """A transcript comes in parts of equal size, and what is left is compacted again with each."""
    for rounds in (1, 2, 4, 100):
        parts = split_rounds(messages, rounds)
        assert [message for part in parts for message in part] == messages
        assert len(parts) <= rounds
        if rounds <= 4:
            assert len(parts) == rounds
            sizes = [count_tokens(part) for part in parts]
            assert max(sizes) - min(sizes) < 400
    counting = _Counting()
    made = compact_in_rounds(counting, messages, 4, 10)
    assert list(made.messages) == messages[-2:]
    assert len(made.sizes) == 4
    assert made.sizes[-1] == made.tokens
    parts = split_rounds(messages, 4)
    assert counting.sizes == [len(parts[0]), *(len(part) + 2 for part in parts[1:])]


def test_the_method_fits_short_transcripts() -> None:
    """Each transcript is compacted at least once: the default threshold is at most half of it, unless it is given."""

    class Fake:
        name = "m"

    fake: Any = Fake()

    def find(what: str) -> AskedModel:
        return fake

    own: Any = make_compactor("compact", find, refuse, 1)
    given: Any = make_compactor("compact:threshold=8k,kept=1000", find, refuse, 1)
    for tokens in (10, 1000, 6000, 100_000, 10**6):
        arguments = own.arguments_for(tokens)
        assert arguments["turn"] <= arguments["threshold"] <= max(1, tokens // 2)
        assert arguments["kept"] <= arguments["threshold"]
        assert given.arguments_for(tokens)["threshold"] == 8192
    assert own.arguments_for(10**6) == {
        "max_requests": 1000,
        "turn": 8000,
        "threshold": 32000,
        "kept": 2000,
    }
