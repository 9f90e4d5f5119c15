"""Tests that NeMo Evaluator reads `framework.yml`."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_evals.helm_longctx.framework import EXTRA, default_length
from core_evals.helm_longctx.medical import MEDICAL
from helm_longctx.helm.patches import load_with_libyaml, yaml_reader
from helm_longctx.tasks.entry import check_entry
from helm_longctx.tasks.lengths import length_label
from helm_longctx.tasks.registry import BENCHMARKS, find_benchmark

nemo = pytest.importorskip("nemo_evaluator.core.input")

OURS = [(benchmark, name) for benchmark in BENCHMARKS for name in benchmark.entries]


def render(config: dict[str, Any], target: dict[str, Any]) -> Any:
    """Return the configuration that the rendered command hands over, with the command split as bash does it."""
    run = {
        "config": {"output_dir": "out", **config},
        "target": {"api_endpoint": target},
    }
    with yaml_reader(load_with_libyaml):
        words = shlex.split(nemo.validate_configuration(run).render_command())
    assert words[:3] == ["python", "-m", "core_evals.helm_longctx"]
    assert len(words) == 4
    return json.loads(words[3])


def test_every_entry_is_listed() -> None:
    """NeMo Evaluator lists every run entry of the package, and then HELM's medical tasks."""
    frameworks, _, _ = nemo.get_available_evaluations()
    assert list(frameworks["helm_longctx"]) == [*(name for _, name in OURS), *MEDICAL]


@pytest.mark.parametrize(
    ("benchmark", "name"),
    OURS,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_default_lengths(benchmark: Any, name: str) -> None:
    """Each task can be run with nothing but its name, at a length at which all its tasks exist."""
    asked = render(
        {"type": name}, {"url": "http://h/v1", "model_id": "m", "type": "chat"}
    )
    length = default_length(benchmark, benchmark.entries[name])
    assert asked["extra"] == EXTRA | {
        "length": None if length is None else length_label(length)
    }
    entry = check_entry(
        benchmark, name, {} if length is None else {"length": asked["extra"]["length"]}
    )
    assert entry.tasks == benchmark.entries[name].tasks


def test_default_lengths_are_those_of_main_tables() -> None:
    """The default length is the length of a benchmark's main table, and a benchmark without lengths has none."""
    lengths = {
        benchmark.name: default_length(benchmark, benchmark.categories[0])
        for benchmark in BENCHMARKS
    }
    assert {name: lengths[name] for name in ("helmet", "lv_eval", "longproc")} == {
        "helmet": 131072,
        "lv_eval": 131072,
        "longproc": 8192,
    }
    assert find_benchmark("aa_lcr").axis is None
    assert lengths["aa_lcr"] is None


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="{}\0"), min_size=1)


@settings(max_examples=15, deadline=None)  # NeMo Evaluator reads the file for each
@given(model=TEXTS, path=TEXTS)
def test_values_are_one_word_to_bash(model: str, path: str) -> None:
    """The shell runs no part of a configuration: quotes, `$(…)` and line ends arrive unchanged."""
    target = {
        "url": "http://h/v1",
        "model_id": model,
        "type": "chat",
        "api_key_name": "MY_KEY",
    }
    asked = render({"type": "aa_lcr", "params": {"extra": {"data_path": path}}}, target)
    assert (asked["target"]["model_id"], asked["extra"]["data_path"]) == (model, path)
    assert asked["target"]["api_key"] == "MY_KEY"


@pytest.mark.parametrize(
    ("adapter", "mode", "interceptors", "reuses"),
    [
        (None, "client", ["caching", "endpoint", "response_stats"], True),
        ({"use_nvcf": True}, "client", ["caching", "nvcf", "response_stats"], True),
        (
            {"mode": "server", "use_caching": False},
            "server",
            ["caching", "endpoint", "response_stats"],
            False,
        ),
        ({"interceptors": ["endpoint"]}, "client", ["endpoint"], False),
    ],
)
def test_adapters(
    adapter: Any, mode: str, interceptors: list[str], reuses: bool
) -> None:
    """NeMo Evaluator's adapter hands over its mode, its interceptors, and whether it reuses responses."""
    target = {
        "url": "http://h/v1",
        "model_id": "m",
        "type": "chat",
        "adapter_config": adapter,
    }
    rendered = render({"type": "aa_lcr"}, target)["target"]
    assert (
        rendered["mode"],
        rendered["interceptors"],
        rendered["reuses_responses"],
    ) == (
        mode,
        interceptors,
        reuses,
    )
