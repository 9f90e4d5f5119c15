"""Tests that follow docs/adding-a-benchmark.md as a user does: a package of its own is found by every command."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

import helm_longctx.tasks
from helm_longctx.tasks import STANDARD, DataRoot, Settings
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.extending.guide import Guide

GUIDE = Guide("adding-a-benchmark.md")
FOLDER = "mystery/"

INSTALL = {
    "PIP_NO_DEPS": "1",
    "PIP_NO_INDEX": "1",
    "PIP_NO_BUILD_ISOLATION": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
"""For pip: no network; the version of helm-longctx that is being tested satisfies the dependency."""


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Follow the guide, and return the folder and what its commands printed."""
    folder = tmp_path_factory.mktemp("guide")
    target = tmp_path_factory.mktemp("installed")
    GUIDE.write(folder)
    output = GUIDE.run(folder, target, **INSTALL, PIP_TARGET=str(target))
    return folder, output


def test_commands_print_what_the_guide_shows(followed: tuple[Path, str]) -> None:
    """The commands print the prompts, scores and leaderboard rows that the guide shows, in the guide's order."""
    rest = followed[1]
    for line in GUIDE.output:
        assert line in rest
        rest = rest.partition(line)[2]


def test_every_part_finds_the_benchmark(followed: tuple[Path, str]) -> None:
    """`list`, the run and the leaderboard all know the guide's benchmark, with its score and revision."""
    folder, output = followed
    rows = re.findall(r"^│ (\S+) +│ (\S+) +│ (\S+) ", output, re.MULTILINE)
    assert ("mystery", "whodunit", "4k-8k") in rows
    suite = folder / "benchmark_output/runs/try"
    run = suite / "mystery:length=4k,model=longctx_null"
    assert json.loads((run / "run_spec.json").read_text())["scenario_spec"]["args"][
        "revision"
    ] == ("example-org/mystery@1.0")
    stats = {
        row["name"]["name"]: row.get("mean")
        for row in json.loads((run / "stats.json").read_text())
    }
    assert (stats["accuracy"], stats["longctx_score"], stats["whodunit_score"]) == (
        0,
        0,
        0,
    )
    assert stats["request_failed"] == 0
    groups = {path.stem for path in (suite / "groups").glob("*.json")}
    assert {"mystery", "mystery_4k", "mystery_whodunit"} <= groups


def test_generated_text_fills_its_length_and_has_the_answer() -> None:
    """The guide's generated questions have the answer's line once at each length, and take the lengths that it says."""
    module: dict[str, Any] = {}
    exec(GUIDE.files["codeword/codeword.py"], module)
    benchmark, task = module["BENCHMARK"], module["FIND"]
    assert benchmark.axis.longest == max(task.sizes) == STANDARD["128k"]
    for length in task.sizes:
        settings = Settings(length, num_samples=1)
        (example,) = task.load(task, settings, DataRoot.find("."))
        text = example.fields["context"]
        assert text.count(f" is {example.references[0]}.") == 1
        assert 0.85 * length < estimate_tokens(text) < length
        answer = {"prediction": f" {example.references[0]}\n"}
        assert task.score({**answer, "references": example.references}) == {
            "exact_match": 1
        }


def test_only_public_names_are_used() -> None:
    """The guide's package imports only `helm_longctx.tasks`, and the guide lists exactly what that exports."""
    modules = [text for path, text in GUIDE.files.items() if path.endswith(".py")]
    imported = [
        node
        for text in modules
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
    ]
    ours = [node for node in imported if (node.module or "").startswith("helm_longctx")]
    assert {node.module for node in ours} == {"helm_longctx.tasks"}
    assert {alias.name for node in ours for alias in node.names} <= set(
        helm_longctx.tasks.__all__
    )
    section = GUIDE.text.partition("## Public names")[2].partition("\n## ")[0]
    table = [
        line.split("|")[1] for line in section.splitlines() if line.startswith("| `")
    ]
    assert sorted(re.findall(r"`(\w+)`", "".join(table))) == sorted(
        helm_longctx.tasks.__all__
    )
