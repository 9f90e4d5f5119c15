"""Tests of `helm-longctx demo` with a smaller configuration, and of its errors."""

import json
import re
from pathlib import Path

import pytest
import yaml

from helm_longctx.cli import demo
from helm_longctx.errors import InputError
from helm_longctx.tasks.registry import BENCHMARKS
from tests.support.demos import configure
from tests.support.programs import BIN, ROOT, run

NEXT = "helm-longctx run --model-url https://… --model-name …"


SQUAD = {"title": "Piers", "paragraphs": [
    {"context": f"Pier {number} was built in {1900 + number}.", "qas": [
        {"question": question, "answers": [{"text": str(1900 + number)}], "is_impossible": False}
        for question in (f"When was pier {number} built?", f"What year is pier {number} of?")
    ]} for number in range(40)
]}  # fmt: skip


def test_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo prints the baselines' scores in a few lines, also for its own questions, and writes a report."""
    entries = {
        "Graphs": "graphwalks:task=bfs,length=4k,num_samples=2",
        "Talk": "any_jsonl:length=4k,path={questions}/conversation-4k",
    }
    configure(monkeypatch, tmp_path, entries=entries, models=["longctx/lexical"])
    squad = tmp_path / "out/scenarios/helm_longctx/ruler_source/squad.json"
    squad.parent.mkdir(parents=True)
    squad.write_text(json.dumps({"data": [SQUAD]}))
    monkeypatch.setattr(
        demo,
        "BENCHMARKS",
        [
            benchmark
            for benchmark in BENCHMARKS
            if benchmark.name == "ruler" or not benchmark.published()
        ],
    )
    demo.demo(Path("out"), Path("prod_env"))
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert len(lines) + len(printed.err.splitlines()) <= 40
    assert max(map(len, lines[:-1])) <= 200
    assert printed.out.count("┏") == 1
    table = [line for line in lines if line.startswith(("│", "┃", "┏"))]
    assert max(map(len, table)) <= 100
    assert re.search(r"│ Graphs │ 100\.0 † \(\d+\.\d–100\.0\) +│", printed.out)
    assert re.search(r"│ Talk   │ 100\.0 \(\d+\.\d–100\.0\) +│", printed.out)
    assert "not a published benchmark" in printed.out
    learned, report, model = lines[-3:]
    assert re.match(r"Learned: +comparing words gets 100\.0 % of ", learned)
    assert report == "The report: out/reports/demo/index.html"
    assert model.startswith("Your model: ")
    assert lines[-1].endswith(f"{NEXT} --tasks graphwalks --length 8k,128k")
    assert (tmp_path / "out/reports/demo/index.html").is_file()


def test_a_step_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that fails ends in an error with the last line of the log, which names the log."""
    configure(monkeypatch, tmp_path, entries={"Short": "helmet_recall:length=3"})
    monkeypatch.setattr(demo, "BENCHMARKS", ())
    with pytest.raises(
        InputError,
        match=r"demo: helm-longctx run ended with status 2: .*length='3'.* \(see out/demo/log.txt\)",
    ):
        demo.demo(Path("out"), Path("prod_env"))


def demo_in_docs() -> list[str]:
    """Return the lines that docs/quickstart.md shows of the demo."""
    page = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
    block = page.partition("    helm-longctx demo\n")[2].partition("```text\n")[2]
    return block.partition("```")[0].splitlines()


def test_the_docs_show_each_row_of_the_demo() -> None:
    """The page shows the demo's table with a row for each entry, in 100 columns, and its last three lines."""
    lines = demo_in_docs()
    table = [line for line in lines if line.startswith(("│", "┏", "┃"))]
    assert max(map(len, table)) <= 100
    titles = [line.split("│")[1].strip() for line in table if line.startswith("│")]
    assert titles == list(yaml.safe_load(demo.RUNS.read_text())["entries"])
    starts = [line.partition(":")[0] for line in lines[-3:]]
    assert starts == ["Learned", "The report", "Your model"]


@pytest.mark.long
def test_the_docs_show_what_the_demo_prints(tmp_path: Path) -> None:
    """The page shows what the demo prints, line by line."""
    done = run("helm-longctx", "demo", folder=tmp_path, PATH=f"{BIN}:/usr/bin:/bin")
    assert done.returncode == 0, done.stderr
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed == demo_in_docs()
