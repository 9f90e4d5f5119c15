"""Tests that request states are read as a stream in HELM's layout, and that other content is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helm.benchmark.adaptation.adapter_spec import AdapterSpec
from helm.benchmark.adaptation.scenario_state import ScenarioState
from helm.common.general import asdict_without_nones
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helm_longctx.errors import InputError
from helm_longctx.runs.helm_files import read_rows, read_states, write_states

values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
states = st.lists(
    st.dictionaries(st.text(min_size=1, max_size=5), values, min_size=1, max_size=3),
    max_size=4,
)
# HELM writes lists with objects before and after the request states, at the same depth.
around = {
    "adapter_spec": asdict_without_nones(AdapterSpec()),
    "annotator_specs": [{"class_name": "a.B", "args": {}}],
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states)
def test_every_state_is_read_and_written(
    tmp_path: Path, rows: list[dict[str, object]]
) -> None:
    """Each state is read once, whatever the states contain, and the file is written again as HELM writes it."""
    path = tmp_path / "states.json"
    content = {
        "adapter_spec": around["adapter_spec"],
        "request_states": rows,
        "annotator_specs": around["annotator_specs"],
    }
    path.write_text(json.dumps(content, indent=2))
    assert list(read_states(path)) == rows
    write_states(path, content["adapter_spec"], content["annotator_specs"], rows)
    assert json.loads(path.read_text()) == content
    assert list(read_states(path)) == rows


def test_not_a_number_passes(tmp_path: Path) -> None:
    """NaN, which HELM writes although JSON has no such value, is written and read."""
    path = tmp_path / "states.json"
    write_states(path, {}, None, [{"logprob": float("nan")}])
    assert "NaN" in path.read_text()
    (state,) = read_states(path)
    assert state["logprob"] != state["logprob"]


def test_no_states(tmp_path: Path) -> None:
    """A run without instances has the text that HELM writes."""
    path = tmp_path / "states.json"
    empty = asdict_without_nones(ScenarioState(AdapterSpec(), []))
    write_states(path, AdapterSpec(), None, [])
    assert path.read_text() == json.dumps(empty, indent=2)
    assert list(read_states(path)) == []


@pytest.mark.parametrize("kept", [0, 1, 40, 60, 100, 120])
def test_a_file_that_is_cut_off(tmp_path: Path, kept: int) -> None:
    """A file that is cut off anywhere is an error that names the file."""
    source = tmp_path / "source.json"
    whole = json.dumps(
        {
            "adapter_spec": {"method": "m"},
            "request_states": [{"text": "a long text", "n": 1}],
        },
        indent=2,
    )
    assert len(whole) > 120
    source.write_text(whole[:kept])
    with pytest.raises(InputError, match=r"source\.json cannot be read"):
        list(read_states(source))


def test_another_layout(tmp_path: Path) -> None:
    """A file without line breaks, which HELM never writes, is an error."""
    source = tmp_path / "source.json"
    source.write_text(json.dumps({"request_states": [{"text": "x"}]}))
    with pytest.raises(InputError, match="cannot be read"):
        list(read_states(source))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states, st.sampled_from([None, 2]))
def test_rows_are_read_in_any_layout(
    tmp_path: Path, rows: list[dict[str, object]], indent: int | None
) -> None:
    """A list is read row by row in HELM's layout and at once in any other, and a file that is cut off is an error."""
    path = tmp_path / "rows.json"
    text = json.dumps(rows, indent=indent)
    path.write_text(text)
    assert list(read_rows(path)) == rows
    path.write_text(text[:-1])
    with pytest.raises(InputError, match=r"rows\.json cannot be read"):
        list(read_rows(path))
