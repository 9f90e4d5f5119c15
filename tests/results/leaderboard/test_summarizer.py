"""Tests that HELM's summarizer and ours write the same for the same runs."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm.benchmark.presentation import summarize

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError
from helm_longctx.results.boards import read_suite
from helm_longctx.results.leaderboard import display
from helm_longctx.results.leaderboard.display import OUTPUTS
from helm_longctx.results.leaderboard.schema import suite_schema
from helm_longctx.results.leaderboard.tables import NOTES
from helm_longctx.results.suite import PAGES_RECORD, write_reference
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.fabricate_runs import CHINESE, ENGLISH, long_prompts, write_run

SUMMARIZER = "helm_longctx.results.leaderboard.LongContextSummarizer"
ENTRIES = {
    "helmet_recall:task=json_kv,length=4k,model=longctx/lexical": 5_000,
    "helmet_recall:task=json_kv,length=128k,model=longctx/lexical": 50_000,
    "helmet_recall:task=json_kv,length=128k,model=longctx/null": 50_000,
    "lv_eval:dataset=dureader_mixup,length=256k,model=longctx/null": 50_000,
}


def files(folder: Path) -> dict[str, bytes]:
    """Return the content of all files except locks."""
    paths = (
        path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def summarized(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str
) -> dict[str, bytes]:
    """Run `helm-summarize`, and return the files; the stock one runs in one thread, since several can fail (see the docs)."""
    monkeypatch.chdir(folder)
    stock = ("--schema-path", "schema.yaml", "--num-threads", "1")
    monkeypatch.setattr(
        sys, "argv", ["helm-summarize", "--suite", "s", *(options or stock)]
    )
    summarize.main()
    return files(folder)


def test_templates_are_parsed_in_one_thread_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of other adapters' runs are written one at a time, because Python 3.11's parser can fail in two threads."""
    for entry in ENTRIES:
        path = (
            write_run(tmp_path / "benchmark_output/runs/s", entry, long_prompts(1, 200))
            / "run_spec.json"
        )
        path.write_text(
            path.read_text().replace('"method": "longctx"', '"method": "generation"')
        )
    write = display.write_run_display_json
    inside = []
    most = []

    def watched(*arguments: Any, **options: Any) -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.05)
        write(*arguments, **options)
        inside.pop()

    monkeypatch.setattr(display, "write_run_display_json", watched)
    summarized(tmp_path, monkeypatch, "--summarizer-class-name", SUMMARIZER)
    assert most == [1] * len(ENTRIES)


def test_tables_are_those_of_helm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HELM's summarizer and ours write the same numbers; only long texts are elided, with their whole prompts in files."""
    runs = tmp_path / "stock/benchmark_output/runs/s"
    for entry, characters in ENTRIES.items():
        write_run(
            runs,
            entry,
            long_prompts(
                4, characters, CHINESE if entry.startswith("lv_eval") else ENGLISH
            ),
        )
    schema = suite_schema(read_suite(runs, BENCHMARKS).boards)
    (tmp_path / "stock/schema.yaml").write_text(yaml.safe_dump(schema))
    shutil.copytree(tmp_path / "stock", tmp_path / "ours")
    stock = summarized(tmp_path / "stock", monkeypatch)
    ours = summarized(
        tmp_path / "ours", monkeypatch, "--summarizer-class-name", SUMMARIZER
    )
    new = [
        path for path in ours if path not in stock and not path.endswith(PAGES_RECORD)
    ]
    assert all("/prompts/" in path or "/groups/" in path for path in new)
    # On the page of a category, HELM's heading of the mean is another, and ours has columns of tasks.
    mine = numbers(ours)
    others = {key: value for key, value in numbers(stock).items() if key[-1] != "Score"}
    assert {key: mine[key] for key in others} == others
    assert len(others) >= 10
    pages = [path for path in stock if Path(path).name in OUTPUTS]
    differing = [
        path for path in pages if json.loads(ours[path]) != json.loads(stock[path])
    ]
    assert {path.rsplit("/", 1)[1] for path in differing} == {
        "instances.json",
        "display_requests.json",
    }
    assert not [path for path in differing if "length=4k" in path]
    assert (
        sum(len(ours[path]) for path in differing)
        < sum(len(stock[path]) for path in differing) / 2
    )


def test_published_rows_stand_beside_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Published rows appear without warnings, empty rows or columns, and cut headings, and are sorted by the first column."""
    suite = tmp_path / "benchmark_output/runs/s"
    for entry in ENTRIES:
        write_run(suite, entry, long_prompts(1, 200))
    write_reference(HELMET, suite, ["Llama-3.1-*", "GPT-4"])
    warnings: list[str] = []
    monkeypatch.setattr(summarize, "hwarn", warnings.append)
    summarized(tmp_path, monkeypatch, "--summarizer-class-name", SUMMARIZER)
    assert warnings == []
    tables = [
        table
        for path in (suite / "groups").glob("*.json")
        for table in json.loads(path.read_text())
    ]
    assert any(
        row[0]["value"] == "published/GPT-4"
        for table in tables
        for row in table["rows"]
    )
    for table in tables:
        assert all(len(title["value"]) <= 30 for title in table["header"])
        assert all(any("value" in cell for cell in row[1:]) for row in table["rows"])
        assert all(
            any("value" in cell for cell in column)
            for column in zip(*table["rows"], strict=True)
        )
        keys = []
        for cell in (row[1] for row in table["rows"]):
            missing = sum(lack[0] == "missing" for lack in cell.get("caveats") or [])
            number = cell.get("number", cell.get("value"))
            keys.append((number is None, missing, -(number or 0)))
        # Means over fewer tasks come after means over more.
        assert keys == sorted(keys)
    recall = json.loads((suite / "groups/helmet_recall.json").read_text())[0]
    assert [title["value"] for title in recall["header"]][1:] == [
        f"Recall {length}" for length in ("4k", "8k", "16k", "32k", "64k", "128k")
    ] + [NOTES]
    runs = json.loads((suite / "run_specs.json").read_text())
    assert [run["name"] for run in runs if "published" in run["name"]] == [
        "published_helmet"
    ]


def test_a_run_of_helms_own_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of HELM's own scenario is on the same leaderboard, with an interval and the groups and statistics that HELM names."""
    suite = tmp_path / "benchmark_output/runs/s"
    for entry in list(ENTRIES)[:2]:
        run = write_run(suite, entry, long_prompts(4, 200))
    spec = json.loads((run / "run_spec.json").read_text())
    scenario = "helm.benchmark.scenarios.ruler_qa_scenarios.RULERHotpotQAScenario"
    spec["scenario_spec"] = {"class_name": scenario, "args": {"max_num_words": 4096}}
    spec["adapter_spec"]["method"] = "generation"
    spec |= {"groups": ["ruler_hotpotqa"], "name": "ruler_hotpotqa:model=longctx_null"}
    (run / "run_spec.json").write_text(json.dumps(spec))
    content = json.loads((run / "scenario_state.json").read_text())
    for state in content["request_states"]:
        state["instance"]["split"] = "valid"
        del state["instance"]["sub_split"]
    (run / "scenario_state.json").write_text(json.dumps(content, indent=2))
    for name in ("stats", "per_instance_stats"):
        text = (
            (run / f"{name}.json")
            .read_text()
            .replace('"split": "test"', '"split": "valid"')
        )
        text = text.replace('"sub_split": "json_kv"', '"computed": true').replace(
            ',\n      "computed": true', ""
        )
        (run / f"{name}.json").write_text(
            text.replace("longctx_score", "ruler_string_match_part")
        )
    warnings: list[str] = []
    monkeypatch.setattr(summarize, "hwarn", warnings.append)
    summarized(tmp_path, monkeypatch, "--summarizer-class-name", SUMMARIZER)
    assert warnings == []
    index = json.loads((suite / "groups.json").read_text())
    names = [row[0]["value"] for table in index for row in table["rows"]]
    assert "HELMET Recall 4k" in names
    assert "RULER HotPotQA" in names
    (row,) = json.loads((suite / "groups/ruler_hotpotqa.json").read_text())[0]["rows"]
    assert row[1]["number"] == 1.0
    assert 0 < row[1]["low"] < row[1]["high"] == 1.0


def numbers(written: dict[str, bytes]) -> dict[tuple[str, ...], float]:
    """Return the scores in the first tables of the groups by file, model and heading, which ours shortens."""
    return {
        (path, row[0]["value"], shorten(heading["value"])): cell.get(
            "number", cell["value"]
        )
        for path, data in written.items()
        if "/groups/" in path and path.count("/") == 4
        for table in json.loads(data)[:1]
        for row in table["rows"]
        for heading, cell in zip(table["header"][1:], row[1:], strict=True)
        if cell.get("value") is not None and heading["value"] != NOTES
    }


def shorten(heading: str) -> str:
    return heading.removesuffix(" - Score").replace(" - @", " @")


@pytest.mark.parametrize("name", ["stats", "run_spec"])
def test_a_damaged_run_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line names a damaged run before anything is written of the others."""
    run = write_run(
        tmp_path / "benchmark_output/runs/s",
        next(iter(ENTRIES)),
        long_prompts(1, 5_000),
    )
    path = run / f"{name}.json"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=rf"json_kv.*{name}.json cannot be read"):
        summarized(tmp_path, monkeypatch, "--summarizer-class-name", SUMMARIZER)
