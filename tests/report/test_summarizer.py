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
from helm_longctx.errors import InputError
from helm_longctx.report import display
from helm_longctx.report.marks import NOTES
from helm_longctx.report.schema import make_schema
from helm_longctx.report.suite import run_groups
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
    """Python 3.11's parser does not bear two."""
    for entry in ENTRIES:
        write_run(tmp_path / "benchmark_output/runs/s", entry, long_prompts(1, 200))
    (tmp_path / "schema.yaml").write_text(
        yaml.safe_dump(make_schema(BENCHMARKS, run_groups(tmp_path / "benchmark_output/runs/s")))
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
    """Both write the same, but for the texts of long runs, which are elided, and whole beside; and for marks."""
    runs = tmp_path / "stock/benchmark_output/runs/s"
    for entry, characters in ENTRIES.items():
        write_run(runs, entry, long_prompts(4, characters, CHINESE if entry.startswith("lv_eval") else ENGLISH))
    (tmp_path / "stock/schema.yaml").write_text(yaml.safe_dump(make_schema(BENCHMARKS, run_groups(runs))))
    shutil.copytree(tmp_path / "stock", tmp_path / "ours")
    stock = summarized(tmp_path / "stock", monkeypatch)
    ours = summarized(tmp_path / "ours", monkeypatch, "--summarizer-class-name", SUMMARIZER)
    assert {path for path in ours if path not in stock} == {path for path in ours if "/prompts/" in path}
    tables = [path for path in stock if "/groups/" in path and stock[path] != ours[path]]
    assert tables  # these runs have one task of their category
    for path in tables:
        if path.endswith(".json"):
            assert unmarked(json.loads(ours[path])) == unmarked(json.loads(stock[path])), path
    differing = [path for path in stock if stock[path] != ours[path] and path not in tables]
    assert {path.rsplit("/", 1)[1] for path in differing} == {"instances.json", "display_requests.json"}
    assert not [path for path in differing if "length=4k" in path]
    assert sum(len(ours[path]) for path in differing) < sum(len(stock[path]) for path in differing) / 2


def unmarked(part: Any) -> Any:
    """A part of a group's file without marks; and without styles, as what has a mark is never the best."""
    if isinstance(part, list):
        return [unmarked(each) for each in part]
    if not isinstance(part, dict):
        return part
    if "rows" in part and part["header"][-1]["value"] == NOTES:
        part = {**part, "header": part["header"][:-1], "rows": [row[:-1] for row in part["rows"]]}
    value = {"value": part["number"]} if "number" in part else {}
    about = {"description": part["description"].partition(f"\n{NOTES}")[0]} if "description" in part else {}
    plain = {name: unmarked(each) for name, each in part.items() if name not in ("number", "lacking", "style")}
    return plain | value | about


@pytest.mark.parametrize("name", ["stats", "run_spec"])
def test_a_damaged_run_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line, before anything is made of the others."""
    run = write_run(tmp_path / "benchmark_output/runs/s", next(iter(ENTRIES)), long_prompts(1, 5_000))
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(make_schema(BENCHMARKS, run_groups(run.parent))))
    path = run / f"{name}.json"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"json_kv.*: run_spec.json or stats.json is damaged"):
        summarized(tmp_path, monkeypatch, "--summarizer-class-name", SUMMARIZER)
