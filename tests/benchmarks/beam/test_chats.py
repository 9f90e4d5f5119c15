"""The chats that the official script asks with: truncated where the official repository has such a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from helm_longctx.benchmarks.beam.tasks import CHATS, LONGEST, find_truncated
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.results.comparability import task_caveats
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.stored_entry import read_entry
from tests.benchmarks.beam.fabricate import build_beam, rows

SHORTEST = min(CHATS)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> DataRoot:
    """Write fabricated data once."""
    folder = tmp_path_factory.mktemp("beam")
    build_beam(folder)
    return DataRoot(folder, mirror=True)


def count_messages(root: DataRoot, entry: str) -> dict[str, int]:
    """Return the number of messages before the first question about each chat."""
    checked = parse_entry(BENCHMARKS, entry)
    counts: dict[str, int] = {}
    for example in load_examples(checked.tasks[0], checked.settings, root):
        counts.setdefault(example.id.partition("-")[0], len(example.messages) - 1)
    return counts


@pytest.mark.parametrize("length", ["128k", "1m", "10m"])
def test_truncated_chats_are_asked_by_default(root: DataRoot, length: str) -> None:
    """The chats that the repository has truncated are shorter, and `chats=full` asks with the whole ones."""
    truncated = count_messages(root, f"beam:length={length}")
    full = count_messages(root, f"beam:length={length},chats=full")
    level = parse_entry(BENCHMARKS, f"beam:length={length}").settings.level
    for number, row in enumerate(rows(level), 1):
        plans = (
            [plan["chat"] for plan in row["plans"]]
            if level == LONGEST
            else [row["chat"]]
        )
        whole = sum(len(batch) for plan in plans for batch in plan)
        first = sum(len(plan[0]) for plan in plans)
        chat = str(number)
        assert full[chat] == whole
        assert truncated[chat] == (first if chat in find_truncated(level) else whole)


def test_how_many_chats_are_truncated() -> None:
    """The official repository has truncated 10 of 20 chats of 100K, none of 500K, 16 of 35 of 1M and all of 10M."""
    assert {
        split: len(find_truncated(length)) for length, (split, _) in CHATS.items()
    } == {
        "100K": 10,
        "500K": 0,
        "1M": 16,
        "10M": 10,
    }


def test_another_chat_is_refused(root: DataRoot, tmp_path: Path) -> None:
    """A truncated chat that does not start as the whole one, or that is none, ends in one line with the file."""
    build_beam(tmp_path)
    file = tmp_path / find_truncated(SHORTEST)["5"].path
    other = tmp_path / find_truncated(SHORTEST)["7"].path
    file.write_bytes(other.read_bytes())
    mixed = DataRoot(tmp_path, mirror=True)
    with pytest.raises(
        InputError, match=r"chat_trunecated.json: it is not the start of the chat"
    ):
        count_messages(mixed, "beam:length=128k")
    file.write_text("[]")
    with pytest.raises(
        InputError, match=r"5/chat_trunecated.json: it is not the start of the chat"
    ):
        count_messages(mixed, "beam:length=128k")
    file.unlink()
    with pytest.raises(InputError, match=r"5/chat_trunecated.json: No such file"):
        count_messages(mixed, "beam:length=128k")


def test_full_chats_have_a_mark() -> None:
    """A run with the whole chats is not comparable, and says so."""
    arguments = {"entry": "beam", "revision": "r", "length": SHORTEST, "chats": "full"}
    asked = read_entry({"scenario_spec": {"args": arguments}})
    assert asked
    codes = [caveat.code for caveat in task_caveats(asked.tasks[0], asked, {})]
    assert "chats:questions=full" in codes
