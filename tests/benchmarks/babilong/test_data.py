"""BABILong's samples are downloaded and read."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from helm_longctx.benchmarks.babilong.tasks import BABILONG
from helm_longctx.data.fetch import ensure
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.lengths import parse_length
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.task import Settings
from tests.data.hub_server import Hub, point_at, serve
from tests.support.fabricate import write

ROW = {
    "input": " Mary went to the garden. ",
    "question": "Where is Mary? ",
    "target": "garden",
}


def parquet(rows: int) -> bytes:
    """Return samples in the hub's parquet format."""
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([ROW] * rows), buffer)
    return buffer.getvalue()


def test_both_sets_are_downloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A length of each set is fetched from a server in the hub's formats and read."""
    files = {
        "RMT-team/babilong-1k-samples": {"1k/qa3/0000.parquet": parquet(862)},
        "RMT-team/babilong": {"data/qa3/10M.json": json.dumps([ROW] * 100).encode()},
    }
    root = DataRoot(tmp_path / "data", mirror=False)
    with serve(Hub(files)) as hub:
        point_at(monkeypatch, hub.url, tmp_path)
        for length, count in (("1k", 862), ("10m", 100)):
            task = BABILONG.task("qa3")
            settings = Settings(parse_length(length))
            ensure(task.sources(settings.level), root, "fetch it")
            examples = list(load_examples(task, settings, root))
            assert len(examples) == count == task.official_sample(settings)
            assert examples[0].references == ["garden"]
            assert examples[0].record == {"question": "Where is Mary? "}
            assert task.prompt(examples[0]).user_turn.endswith(
                "<context>\nMary went to the garden.\n</context>\n\nQuestion: Where is Mary?"
            )


@pytest.mark.parametrize(
    ("name", "shots", "allowed"),
    [("qa1", 1, "choose from 0, 2"), ("qa1_bare", 2, "give 0")],
)
def test_other_numbers_of_examples_are_refused(
    tmp_path: Path, name: str, shots: int, allowed: str
) -> None:
    """The examples can only be sent or left out as a whole."""
    task = BABILONG.task(name)
    write(tmp_path / task.paths(0)[0], [ROW])
    with pytest.raises(InputError, match=f"shots='?{shots}'? is invalid; {allowed}"):
        list(
            load_examples(
                task, Settings(0, shots=shots), DataRoot(tmp_path, mirror=True)
            )
        )


def test_lengths() -> None:
    """The main tasks reach ten million tokens, five others a million, and the rest has only the facts."""
    assert {
        max(BABILONG.task(f"qa{number}").sizes.values()) for number in range(1, 6)
    } == {10**7}
    assert {
        max(BABILONG.task(f"qa{number}").sizes.values()) for number in range(6, 11)
    } == {10**6}
    assert {tuple(BABILONG.task(f"qa{number}").sizes) for number in range(11, 21)} == {
        (0,)
    }


def test_without_a_question_there_is_no_score() -> None:
    """A record without the question gets no score, because labels in the question do not count."""
    assert (
        BABILONG.task("qa1").score({"prediction": "garden", "references": ["garden"]})
        == {}
    )
