"""Tests of the JSON of a run's files."""

from __future__ import annotations

import json
import os
import tracemalloc
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from helm.common.general import asdict_without_nones
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.runs.files import (
    RUN_SPEC,
    STATES,
    parse,
    read_json,
    read_model,
    write_model,
)
from helm_longctx.runs.helm_files import (
    read_rows,
    to_plain,
    write_helm_files,
    write_states,
)


class Colour(str, Enum):
    """A text with a name, as HELM's enums are."""

    RED = "red"


@dataclass
class Part:
    """A dataclass with a value of any kind."""

    value: Any
    other: Any = None


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.just(Colour.RED)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.builds(Part, inner, inner)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_json_equals_the_json_of_helm(value: Any) -> None:
    """Any value is written as HELM writes it: without absent fields, and with two spaces for each level."""
    spec = {"adapter_spec": Part(value)}
    expected = {"adapter_spec": asdict_without_nones(Part(value))}
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_helm_files(
            folder, spec=spec, scenario=Part(1), states=[], stats=[], rows=[]
        )
        text = (folder / RUN_SPEC).read_text("ascii")
    # NaN is equal to itself as text, and numbers can have several texts.
    assert json.dumps(json.loads(text)) == json.dumps(expected)
    lines = json.dumps(expected, indent=2).splitlines()
    assert [len(line) - len(line.lstrip()) for line in text.splitlines()] == [
        len(line) - len(line.lstrip()) for line in lines
    ]


@pytest.mark.parametrize("exponent", range(-12, 24))
def test_numbers_have_the_digits_of_python(exponent: int, tmp_path: Path) -> None:
    """Small and large numbers are written as HELM writes them, to the letter."""
    numbers = [sign * 1.9864417566081476 * 10.0**exponent for sign in (1, -1)]
    numbers.append(10.0**exponent)
    spec = {"adapter_spec": {"numbers": numbers, "last": numbers[0]}}
    write_helm_files(
        tmp_path,
        spec=spec,
        scenario=Part(1),
        states=[],
        stats=[],
        rows=[],
    )
    text = (tmp_path / RUN_SPEC).read_text("ascii")
    assert text == json.dumps(spec, indent=2)


def test_a_large_file_is_not_in_memory(tmp_path: Path) -> None:
    """The memory for writing many states does not grow with the size of their file."""
    states = ({"text": "x" * 1000} for _ in range(20_000))
    tracemalloc.start()
    write_states(tmp_path / STATES, {}, None, states)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / STATES).stat().st_size > 20_000_000
    assert peak < 1_000_000


def test_objects_keep_lone_surrogates() -> None:
    """A half of a surrogate pair, which a server can send, and NaN stay in plain data."""
    plain = to_plain([Part("\ud800", float("nan"))])
    assert json.dumps(plain) == '[{"value": "\\ud800", "other": NaN}]'


@given(VALUES)
def test_plain_data_is_that_of_helm(value: Any) -> None:
    """Plain data of any value is what HELM's JSON of it is read as."""
    expected = parse(json.dumps(asdict_without_nones(Part(value))).encode())
    assert json.dumps(to_plain(Part(value))) == json.dumps(expected)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 5000, "1e400"])
def test_numbers_that_no_float_can_hold(number: str, tmp_path: Path) -> None:
    """A file with a number that is larger than any float is damaged, and is named in one line."""
    path = tmp_path / "stats.json"
    path.write_text(f'[{{"mean": {number}}}]')
    for read in (read_json, lambda path: list(read_rows(path))):
        with pytest.raises(
            InputError, match=r"stats.json cannot be read \(\w+\); repeat that run"
        ):
            read(path)


def test_an_interrupted_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What identifies the model of a run stays whole if writing it again is interrupted, so the run can go on."""

    def interrupt(descriptor: int) -> None:
        raise KeyboardInterrupt

    write_model(tmp_path, {"path": "first"})
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_model(tmp_path, {"path": "second"})
    assert read_model(tmp_path) == {"path": "first"}
