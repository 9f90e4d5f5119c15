"""Tests of `helm-longctx demo` with a smaller configuration, and of its errors."""

import json
import re
from pathlib import Path

import pytest
import yaml

from helm_longctx.cli import demo
from helm_longctx.errors import InputError
from helm_longctx.models.local.packaged import SMOLLM2
from helm_longctx.tasks.registry import BENCHMARKS
from tests.models.small_models import save_model, write_deployment
from tests.support.programs import BIN, ROOT, run

NEXT = "helm-longctx run --model-url https://… --model-name …"


SQUAD = {"title": "Piers", "paragraphs": [
    {"context": f"Pier {number} was built in {1900 + number}.", "qas": [
        {"question": question, "answers": [{"text": str(1900 + number)}], "is_impossible": False}
        for question in (f"When was pier {number} built?", f"What year is pier {number} of?")
    ]} for number in range(40)
]}  # fmt: skip


def configure(monkeypatch: pytest.MonkeyPatch, folder: Path, **values: object) -> None:
    """Let the demo run other entries than the package's file, in a folder of its own."""
    monkeypatch.chdir(folder)
    config = yaml.safe_load(demo.RUNS.read_text())
    (folder / "small.yaml").write_text(yaml.safe_dump({**config, **values}))
    monkeypatch.setattr(demo, "RUNS", folder / "small.yaml")


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


def test_demo_with_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a model the demo says how long it takes, runs it beside the baselines, and prints its scores and speed."""
    save_model(tmp_path / "weights")
    (tmp_path / "prod_env").mkdir()
    write_deployment(tmp_path / "prod_env", tmp_path / "weights")
    deployments = tmp_path / "prod_env/model_deployments.yaml"
    deployments.write_text(
        deployments.read_text().replace(
            "max_sequence_length: 500", "max_sequence_length: 8000"
        )
    )
    entries = {
        "Paths": "graphwalks:task=bfs,length=4k,num_samples=1,num_output_tokens=8"
    }
    local = {
        "models": ["local/small"],
        "packaged": SMOLLM2,
        "tokens": 3000,
        "written": 8,
        "parallelism": 1,
    }
    configure(
        monkeypatch,
        tmp_path,
        entries={"Graphs": "graphwalks:task=bfs,length=4k,num_samples=2"},
        models=["longctx/lexical"],
        with_model={**local, "entries": entries},
    )
    monkeypatch.setattr(
        demo,
        "BENCHMARKS",
        [benchmark for benchmark in BENCHMARKS if not benchmark.published()],
    )
    demo.demo(Path("out"), Path("prod_env"), with_model=True)
    printed = capsys.readouterr().out
    assert (
        "The speed of local/small on this machine is measured …\nIt reads " in printed
    )
    assert re.search(
        r"Its runs read about 3,000 and write up to 8: about \d+\.\d minutes, if the machine",
        printed,
    )
    assert re.search(
        r"local/small and the baselines.*\n[^│]*\n┃ Task .*\n[^│]*\n│ Paths │ \d+\.\d † ",
        printed,
    )
    assert re.search(
        r"In 1 prompt it read [\d,]+ tokens, of which 0 were .* seconds: \d+ tokens a second\.",
        printed,
    )
    assert len(list((tmp_path / "out/runs/demo").glob("*model=local_small"))) == 1


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
