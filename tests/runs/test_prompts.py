"""Tests that a run's prompts are stored once, and come back unchanged."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.runs import prompts
from helm_longctx.runs.lookup import full_prompt
from helm_longctx.runs.prompts import write_prompts

anything = st.text(st.characters(codec=None), max_size=50)  # lone surrogates too


@settings(max_examples=30)
@given(st.dictionaries(st.text(min_size=1, max_size=5), anything, max_size=8))
def test_lossless(stored: dict[str, str]) -> None:
    """Every prompt comes back unchanged, whatever its characters, even if two prompts are equal."""
    with tempfile.TemporaryDirectory() as name:
        write_prompts(Path(name), stored.items())
        assert {
            instance: full_prompt(Path(name), instance) for instance in stored
        } == stored


def test_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts from several frames come back unchanged, and any zstd program reads all frames."""
    monkeypatch.setattr(prompts, "_FRAME", 100)
    stored = {str(number): f"{number} " * 30 for number in range(20)}
    write_prompts(tmp_path, stored.items())
    index = json.loads((tmp_path / prompts.INDEX).read_bytes())["prompts"]
    assert len({frame for frame, _, _ in index.values()}) > 5
    assert {number: full_prompt(tmp_path, number) for number in stored} == stored
    with (tmp_path / prompts.TEXTS).open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(
            file, read_across_frames=True
        )
        assert stream.read().decode() == "".join(stored.values())


def haystack(gold: str, at: int) -> str:
    rng = random.Random(1)
    passages = [rng.randbytes(150).hex() for _ in range(1000)]
    return "\n".join([*passages[:at], gold, *passages[at:]])


def test_what_prompts_share_is_stored_once(tmp_path: Path) -> None:
    """Forty questions about a book, and a haystack with the needle at six depths, take little more room than one prompt."""
    one = tmp_path / "one"
    many = tmp_path / "many"
    for folder in (one, many):
        folder.mkdir()
    book = haystack("", 0)
    write_prompts(one, [("0", book)])
    alike = [book + f"question {number}" for number in range(40)] + [
        haystack("gold", 199 * depth) for depth in range(6)
    ]
    write_prompts(many, ((str(number), prompt) for number, prompt in enumerate(alike)))
    assert (many / prompts.TEXTS).stat().st_size < 1.1 * (
        one / prompts.TEXTS
    ).stat().st_size


def test_damage_is_told(tmp_path: Path) -> None:
    """A stored text that differs from the prompt that was sent is an error."""
    write_prompts(tmp_path, [("a", "one"), ("b", "two")])
    path = tmp_path / prompts.INDEX
    index = json.loads(path.read_bytes())
    (first, second) = index["prompts"]
    index["prompts"][first] = index["prompts"][second]
    path.write_text(json.dumps(index))
    with pytest.raises(InputError, match="damaged: the prompt of a"):
        full_prompt(tmp_path, "a")


@pytest.mark.parametrize("size", [-1, 1 << 60, 1.5, None, "3"])
@pytest.mark.parametrize("field", [1, 2], ids=["start", "size"])
def test_an_index_that_lies(size: object, field: int, tmp_path: Path) -> None:
    """A place that no prompt can have is damage, and is not read."""
    write_prompts(tmp_path, [("a", "one")])
    path = tmp_path / prompts.INDEX
    index = json.loads(path.read_bytes())
    (name,) = index["prompts"]
    index["prompts"][name][field] = size
    path.write_text(json.dumps(index))
    with pytest.raises(InputError, match="damaged: the prompt of a"):
        full_prompt(tmp_path, "a")


def test_unknown(tmp_path: Path) -> None:
    """An error names a folder that is no run, or an instance that the run lacks."""
    with pytest.raises(InputError, match="is not the folder of a run"):
        full_prompt(tmp_path, "a")
    write_prompts(tmp_path, [("a", "one")])
    with pytest.raises(InputError, match="instance='b' is invalid; give one of a"):
        full_prompt(tmp_path, "b")


@pytest.mark.parametrize("name", [prompts.TEXTS, prompts.INDEX])
@pytest.mark.parametrize(
    "damaged", [b"", b"no such form", None], ids=["empty", "other", "cut"]
)
def test_a_damaged_file(name: str, damaged: bytes | None, tmp_path: Path) -> None:
    """One line names a damaged file of prompts."""
    write_prompts(
        tmp_path, [("a", "one " * 500), ("b", random.Random(1).randbytes(500).hex())]
    )
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-200] if damaged is None else damaged)
    with pytest.raises(InputError, match=f"{name} (is damaged|cannot be read)"):
        full_prompt(tmp_path, "b")


def test_an_elided_prompt_is_none(tmp_path: Path) -> None:
    """An elided prompt without the stored one is an error, while the prompt of a stock run is taken unchanged."""

    def states(extra: dict[str, object]) -> None:
        instance = {
            "id": "a",
            "extra_data": {
                "source": "hub",
                "max_tokens": 9,
                "run_max_tokens": 9,
                **extra,
            },
        }
        state = {
            "instance": instance,
            "request": {"prompt": "[... left out ...] \ud800"},
        }
        (tmp_path / "scenario_state.json").write_text(
            json.dumps({"request_states": [state]}, indent=2)
        )

    states({"full_prompt": {"sha256": "0" * 64, "characters": 9_000}})
    with pytest.raises(
        InputError,
        match=r"prompts\.json is missing, and scenario_state.json has only a part of the prompt of a",
    ):
        full_prompt(tmp_path, "a")
    states({})
    assert full_prompt(tmp_path, "a") == "[... left out ...] \ud800"


def test_writing_again_is_cut_off(tmp_path: Path) -> None:
    """If writing prompts again is interrupted, no index is left that could name other texts."""
    write_prompts(tmp_path, [("a", "one")])

    def broken() -> Iterator[tuple[str, str]]:
        yield "a", "another"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_prompts(tmp_path, broken())
    assert not (tmp_path / prompts.INDEX).exists()
