"""Tests of HELM's own long-context scenarios with our runner, summarizer, pages and commands."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tests.benchmarks.mrcr.fabricate import write_encoding
from tests.support import punkt
from tests.support.commands import Command
from tests.support.programs import run
from tests.support.scenarios import TOWNS, question, write_ruler

SPLITS = ("longbook_qa_eng", "longbook_choice_eng", "longbook_sum_eng")
MODELS = {
    "ruler_squad": "lexical",
    "ruler_hotpotqa": "null",
    "infinite_bench_en_qa": "lexical",
}
MODELS |= {
    "infinite_bench_en_mc": "null",
    "infinite_bench_en_sum": "null",
    "openai_mrcr": "lexical",
}
RUNS = [
    f"{name}:{'needles=2,' if name == 'openai_mrcr' else ''}max_num_words=2000,model=longctx/{model}"
    for name, model in MODELS.items()
]
SQUAD = "benchmark_output/runs/s/ruler_squad:max_num_words=2000,model=longctx_lexical"


def write_infinite_bench(folder: Path) -> None:
    """Write the data set as a folder, which `datasets` reads instead of the hub's data set of the same name."""
    folder.mkdir(parents=True)
    files = "".join(
        f"  - split: {split}\n    path: {split}.jsonl\n" for split in SPLITS
    )
    (folder / "README.md").write_text(
        f"---\nconfigs:\n- config_name: default\n  data_files:\n{files}---\n"
    )
    row = {"context": " ".join(TOWNS[:50]), "answer": ["Name7"], "input": question(7)}
    for split in SPLITS:
        options = (
            ["Name7", "Name8", "Name9", "Name10"]
            if split == "longbook_choice_eng"
            else []
        )
        rows = [
            json.dumps({"id": number, **row, "options": options}) + "\n"
            for number in range(3)
        ]
        (folder / f"{split}.jsonl").write_text("".join(rows))


def write_mrcr(folder: Path) -> None:
    """Write conversations in the format of OpenAI's file of two needles."""
    folder.mkdir(parents=True)
    turns = [
        ("user", "Write a poem about rain"),
        ("assistant", "Drops."),
        ("user", "Prepend abc to the first poem."),
    ]
    prompt = json.dumps([{"role": role, "content": text} for role, text in turns])
    row = {"prompt": prompt, "answer": "abcDrops.", "random_string_to_prepend": "abc"}
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist([row] * 3), folder / "2needle.parquet"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run all scenarios, and return the folder."""
    root = tmp_path_factory.mktemp("other")
    write_ruler(root)
    write_infinite_bench(root / "xinrongzhang2022/InfiniteBench")
    write_mrcr(root / "openai/mrcr")
    write_encoding(root / "encoding")
    runner = ["--runner-class-name", "helm_longctx.runner.LongContextRunner"]
    with punkt.installed(root / "nltk") as sentences:
        made = run(
            "helm-run", "--run-entries", *RUNS, "--suite", "s", "-m", "5", *runner, folder=root, HF_HUB_OFFLINE="1",
            NLTK_DATA=str(sentences), PYTHONPATH=path_with_encoding(root), HF_HOME=str(root / "hub"),
        )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return root


def path_with_encoding(root: Path) -> str:
    """Return Python's path for processes that make MRCR's scenario, which loads an encoding."""
    return os.pathsep.join((str(root / "encoding"), os.environ.get("PYTHONPATH", "")))


def read(path: Path) -> Any:
    """Return the content of a JSON file."""
    return json.loads(path.read_text())


def test_runs_tables_and_pages(folder: Path) -> None:
    """Each scenario is run and has pages with all prompts, and those with a main metric have a table."""
    summarized = run(
        "helm-longctx",
        "summarize",
        "--suite",
        "s",
        folder=folder,
        PYTHONPATH=path_with_encoding(folder),
    )
    assert summarized.returncode == 0, summarized.stderr
    suite = folder / "benchmark_output/runs/s"
    for entry in RUNS:
        answers = read(suite / entry.replace("/", "_") / "display_predictions.json")
        assert len(answers) == (5 if entry.startswith("ruler") else 3)
    tables = {path.stem for path in (suite / "groups").glob("*.json")} - {
        "all_scenarios"
    }
    assert tables == set(MODELS) - {"infinite_bench_en_qa"}
    (table,) = read(suite / "groups/ruler_squad.json")
    assert table["rows"][0][1]["value"].startswith("1.00 (")


@pytest.fixture
def command(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> Command:
    """Return `helm-longctx`, in the folder."""
    monkeypatch.chdir(folder)
    return Command(monkeypatch, capsysbinary)


def test_show_finds_a_prompt_by_its_number(command: Command) -> None:
    """`show` finds a prompt of a scenario whose ids are numbers."""
    number = read(Path(SQUAD) / "display_predictions.json")[0]["instance_id"]
    assert command("show", SQUAD, number) == 0
    assert command.out.endswith(f"Question: {question(number)} Answer:")


def test_estimate(command: Command) -> None:
    """`estimate` gives the requests and the cost of these runs as it does for ours."""
    assert command("estimate", RUNS[0], "-m", 5, "--json", "estimate.json") == 0
    (estimate,) = read(Path("estimate.json"))
    assert (estimate["requests"], estimate["output_tokens"]["most"]) == (5, 500)
    assert estimate["prompt_tokens"]["total"] > 5 * 2000


@pytest.mark.parametrize(
    "words", ["estimate", "shard 1/2 --suite t", "run --suite t --batch send --entry"]
)
def test_commands_refuse_other_scenarios_in_one_line(
    words: str, command: Command
) -> None:
    assert command(*words.split(), "boolq:model=longctx/lexical", "-m", 5) != 0
    assert (
        "only run entries of this package and HELM's long-context ones can be"
        in command.err.splitlines()[-1]
    )
    assert "Traceback" not in command.out + command.err
