"""HELM's summarizer and ours on the same runs."""

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

from helm_longctx.benchmarks import BENCHMARKS
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.errors import InputError
from helm_longctx.report import display
from helm_longctx.report.marks import NOTES
from helm_longctx.report.pages import OUTPUTS
from helm_longctx.report.reference import write_reference
from helm_longctx.report.schema import make_schema
from helm_longctx.report.suite import read_contents
from tests.fabricate_runs import CHINESE, ENGLISH, long_prompts, write_run

SUMMARIZER = "helm_longctx.report.LongContextSummarizer"
ENTRIES = {
    "helmet_recall:task=json_kv,length=4k,model=longctx/lexical": 5_000,
    "helmet_recall:task=json_kv,length=128k,model=longctx/lexical": 50_000,
    "helmet_recall:task=json_kv,length=128k,model=longctx/null": 50_000,
    "lv_eval:dataset=dureader_mixup,length=256k,model=longctx/null": 50_000,
}


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def summarized(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> dict[str, bytes]:
    """What `helm-summarize` leaves in a folder; stock in one thread, since in several it fails at times (docs)."""
    monkeypatch.chdir(folder)
    command = ["helm-summarize", "--suite", "s", "--schema-path", "schema.yaml"]
    monkeypatch.setattr(sys, "argv", [*command, *(options or ("--num-threads", "1"))])
    summarize.main()
    return files(folder)


def test_templates_are_parsed_in_one_thread_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11's parser does not bear two. HELM's code writes the pages of other adapters' runs."""
    for entry in ENTRIES:
        path = write_run(tmp_path / "benchmark_output/runs/s", entry, long_prompts(1, 200)) / "run_spec.json"
        path.write_text(path.read_text().replace('"method": "longctx"', '"method": "generation"'))
    (tmp_path / "schema.yaml").write_text(
        yaml.safe_dump(make_schema(BENCHMARKS, *read_contents(tmp_path / "benchmark_output/runs/s", BENCHMARKS)))
    )
    write, inside, most = display.write_run_display_json, [], []

    def watched(*arguments: Any, **options: Any) -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.05)
        write(*arguments, **options)
        inside.pop()

    monkeypatch.setattr(display, "write_run_display_json", watched)
    summarized(tmp_path, monkeypatch, "--summarizer-class-name", SUMMARIZER)
    assert most == [1] * len(ENTRIES)


def test_tables_are_those_of_helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both write the same numbers; the texts of long runs are elided, and whole beside."""
    runs = tmp_path / "stock/benchmark_output/runs/s"
    for entry, characters in ENTRIES.items():
        write_run(runs, entry, long_prompts(4, characters, CHINESE if entry.startswith("lv_eval") else ENGLISH))
    (tmp_path / "stock/schema.yaml").write_text(
        yaml.safe_dump(make_schema(BENCHMARKS, *read_contents(runs, BENCHMARKS)))
    )
    shutil.copytree(tmp_path / "stock", tmp_path / "ours")
    stock = summarized(tmp_path / "stock", monkeypatch)
    ours = summarized(tmp_path / "ours", monkeypatch, "--summarizer-class-name", SUMMARIZER)
    assert {path for path in ours if path not in stock} == {path for path in ours if "/prompts/" in path}
    assert numbers(ours) == numbers(stock)
    assert len(numbers(ours)) > 10
    pages = [path for path in stock if Path(path).name in OUTPUTS]
    differing = [path for path in pages if json.loads(ours[path]) != json.loads(stock[path])]
    assert {path.rsplit("/", 1)[1] for path in differing} == {"instances.json", "display_requests.json"}
    assert not [path for path in differing if "length=4k" in path]
    assert sum(len(ours[path]) for path in differing) < sum(len(stock[path]) for path in differing) / 2


def test_published_rows_stand_beside_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a warning, an empty row or column, or a heading that the page cuts; sorted by the first column."""
    suite = tmp_path / "benchmark_output/runs/s"
    for entry in ENTRIES:
        write_run(suite, entry, long_prompts(1, 200))
    write_reference(HELMET, suite, ["Llama-3.1-*", "GPT-4"])
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(make_schema(BENCHMARKS, *read_contents(suite, BENCHMARKS))))
    warnings: list[str] = []
    monkeypatch.setattr(summarize, "hwarn", warnings.append)
    summarized(tmp_path, monkeypatch, "--summarizer-class-name", SUMMARIZER)
    assert warnings == []
    tables = [table for path in (suite / "groups").glob("*.json") for table in json.loads(path.read_text())]
    assert any(row[0]["value"] == "published/GPT-4" for table in tables for row in table["rows"])
    for table in tables:
        assert all(len(title["value"]) <= 30 for title in table["header"])
        assert all(any("value" in cell for cell in row[1:]) for row in table["rows"])
        assert all(any("value" in cell for cell in column) for column in zip(*table["rows"], strict=True))
        first = [row[1].get("number", row[1].get("value")) for row in table["rows"]]
        assert first == sorted(first, key=lambda value: -1 if value is None else value, reverse=True)
    recall = json.loads((suite / "groups/helmet_recall.json").read_text())[0]
    assert [title["value"] for title in recall["header"]][1:] == [
        f"Recall {length}" for length in ("4k", "8k", "16k", "32k", "64k", "128k")
    ] + [NOTES]
    runs = json.loads((suite / "run_specs.json").read_text())
    assert [run["name"] for run in runs if "published" in run["name"]] == ["published_helmet"]


def test_a_run_of_helms_own_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands on the same leaderboard, with the groups and statistics that HELM's code names, and an interval."""
    suite = tmp_path / "benchmark_output/runs/s"
    for entry in list(ENTRIES)[:2]:
        run = write_run(suite, entry, long_prompts(4, 200))
    spec = json.loads((run / "run_spec.json").read_text())
    scenario = "helm.benchmark.scenarios.ruler_qa_scenarios.RULERHotpotQAScenario"
    spec["scenario_spec"] = {"class_name": scenario, "args": {"max_num_words": 4096}}
    spec["adapter_spec"]["method"] = "generation"
    spec |= {"groups": ["ruler_hotpotqa"], "name": "ruler_hotpotqa:model=longctx_null"}
    (run / "run_spec.json").write_text(json.dumps(spec))
    for name in ("stats", "per_instance_stats"):
        text = (run / f"{name}.json").read_text().replace('"split": "test"', '"split": "valid"')
        text = text.replace('"sub_split": "json_kv"', '"computed": true').replace(',\n      "computed": true', "")
        (run / f"{name}.json").write_text(text.replace("longctx_score", "ruler_string_match_part"))
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(make_schema(BENCHMARKS, *read_contents(suite, BENCHMARKS))))
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
    """The scores in the tables that were written: file, title, model and heading, which ours shortens, to number."""
    return {
        (path, table["title"], row[0]["value"], shorten(heading["value"])): cell.get("number", cell["value"])
        for path, data in written.items()
        if "/groups/" in path and path.count("/") == 4
        for table in json.loads(data)
        for row in table["rows"]
        for heading, cell in zip(table["header"][1:], row[1:], strict=True)
        if cell.get("value") is not None and heading["value"] != NOTES
    }


def shorten(heading: str) -> str:
    return heading.removesuffix(" - Score").replace(" - @", " @")


@pytest.mark.parametrize("name", ["stats", "run_spec"])
def test_a_damaged_run_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, before anything is made of the others."""
    run = write_run(tmp_path / "benchmark_output/runs/s", next(iter(ENTRIES)), long_prompts(1, 5_000))
    (tmp_path / "schema.yaml").write_text(
        yaml.safe_dump(make_schema(BENCHMARKS, *read_contents(run.parent, BENCHMARKS)))
    )
    path = run / f"{name}.json"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"json_kv.*: run_spec.json or stats.json is damaged"):
        summarized(tmp_path, monkeypatch, "--summarizer-class-name", SUMMARIZER)
