"""Tests of the verdict on the parts of a gate, and of the looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import orjson
import pytest

from helm_longctx.apps.gate.folder import GateFolder
from helm_longctx.apps.gate.gate import ALL, ANSWERS, _split, decide, read_looks
from helm_longctx.errors import InputError
from helm_longctx.results.comparison import PairedInstance, SharedTable
from helm_longctx.results.statistics.comparison import Pairs
from helm_longctx.results.statistics.noninferiority import Verdict, decide_drops


def pairs(
    wins: int, losses: int, ties: int, weight: float = 1.0, name: str = ""
) -> Pairs:
    """Return a task with so many instances on which the candidate is better, worse and equal."""
    a = [1] * wins + [0] * losses + [1] * ties
    b = [0] * wins + [1] * losses + [1] * ties
    return Pairs(a, b, [f"{name} {number}" for number in range(len(a))], weight)


def verdict(parts: dict[str, Sequence[Pairs]], depths: Sequence[str] = ()) -> Verdict:
    return decide(decide_drops(parts, 0.05, 0.0, depths=depths), [])


def lengths(*counts: tuple[int, int, int]) -> dict[str, Sequence[Pairs]]:
    """Return the parts of lengths with these numbers, and of all lengths."""
    parts: dict[str, Sequence[Pairs]] = {
        f"{index}k": [pairs(*table)] for index, table in enumerate(counts)
    }
    return {
        **parts,
        ALL: [
            pairs(*table, 1 / len(counts), str(index))
            for index, table in enumerate(counts)
        ],
    }


def test_all_lengths_together_can_only_be_worse() -> None:
    """A drop that no length shows alone is worse if all show it, and all lengths never replace one that is open."""
    parts = lengths(*[(3, 16, 81)] * 6)
    drops = decide_drops(parts, 0.05, 0.0)
    assert [name for name, drop in drops.items() if drop.is_worse] == [ALL]
    assert decide(drops, []) is Verdict.WORSE
    open_ = lengths((0, 0, 500), (0, 0, 40))
    assert decide_drops(open_, 0.05, 0.0)[ALL].verdict is Verdict.NO_WORSE
    assert verdict(open_) is Verdict.UNDECIDED
    # All lengths together are open here, which says nothing, because each length is decided.
    assert (
        verdict({"4k": [pairs(0, 0, 100)], ALL: [pairs(3, 3, 94)]}) is Verdict.NO_WORSE
    )


def test_a_loss_in_the_middle_only_does_not_pass() -> None:
    """A loss at one depth that is small over all keeps a candidate from passing; few instances at a depth do not."""
    whole = {"8k": [pairs(5, 17, 878)]}
    depths = {
        "beginning": [pairs(2, 2, 296)],
        "middle": [pairs(1, 13, 236)],
        "end": [pairs(2, 2, 296)],
    }
    assert verdict(whole) is Verdict.NO_WORSE
    assert verdict({**whole, **depths}, list(depths)) is Verdict.UNDECIDED
    equal = {name: [pairs(2, 2, 36)] for name in depths}
    assert verdict({**whole, **equal}, list(equal)) is Verdict.NO_WORSE


def test_requests_that_one_side_refuses_decide_by_their_number() -> None:
    """Few requests without a score leave a decision possible, and many of them are worse."""
    assert (
        verdict({"8k": [pairs(0, 0, 600)], ANSWERS: [pairs(0, 2, 600)]})
        is Verdict.NO_WORSE
    )
    assert (
        verdict({"8k": [pairs(0, 0, 600)], ANSWERS: [pairs(0, 90, 600)]})
        is Verdict.WORSE
    )
    assert (
        verdict({"8k": [pairs(0, 0, 100)], ANSWERS: [pairs(0, 4, 100)]})
        is Verdict.UNDECIDED
    )


def split(*instances: tuple[int | None, int | None]) -> dict[str, list[int]]:
    """Return the parts of instances with these lengths and depths in percent, as of several benchmarks."""
    items = [
        PairedInstance("e", "t", length, "full", str(number))
        for number, (length, _) in enumerate(instances)
    ]
    return _split(
        cast(
            SharedTable,
            SimpleNamespace(items=items, depth=lambda item: instances[item][1]),
        )
    )


def test_parts_are_in_the_order_of_lengths_and_depths() -> None:
    """Lengths are sorted, also if a benchmark with shorter ones comes later; all lengths and the depths follow."""
    parts = split(
        (16384, 100), (8192, 0), (None, None), (16384, 60), (8192, 20), (4096, 0)
    )
    assert list(parts.items()) == [
        *(
            ("no length", [2]),
            ("4k", [5]),
            ("8k", [1, 4]),
            ("16k", [0, 3]),
            (ALL, [0, 1, 2, 3, 4, 5]),
        ),
        *(("beginning", [1, 4, 5]), ("middle", [3]), ("end", [0])),
    ]
    # One length is all lengths, and one depth says nothing else than the length does.
    assert split((8192, 0), (8192, 20)) == {"8k": [0, 1]}


def write(folder: GateFolder, **content: object) -> None:
    folder.path.mkdir(parents=True, exist_ok=True)
    part = {"part": "8k", "instances": 40}
    folder.json_path.write_bytes(
        orjson.dumps(
            {"base": "a", "candidate": "b", "parts": [part], "tasks": [], **content}
        )
    )


def test_looks_are_read(tmp_path: Path) -> None:
    """A gate knows its earlier looks. Other deployments or another margin had none."""
    folder = GateFolder(tmp_path, "g")
    path = folder.json_path
    compared = {"base": "a", "candidate": "b"}
    assert read_looks(path, compared) is None
    write(folder, looks={"8k": [20, 40]})
    assert read_looks(path, compared) == {"8k": [20, 40]}
    assert read_looks(path, compared | {"candidate": "c"}) is None
    write(folder, looks=[20, 40], max_divergence=0.05)
    assert read_looks(path, compared | {"max_divergence": 0.05}) == [20, 40]
    assert read_looks(path, compared | {"max_divergence": 0.1}) is None
    write(folder)
    with pytest.raises(InputError, match=r"gate\.json cannot be read"):
        read_looks(path, compared)
