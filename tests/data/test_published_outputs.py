"""Tests of `helm-longctx verify`: outputs and printed tables are downloaded, checked, scored and compared."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from helm_longctx.apps.verification.sections import write_page
from helm_longctx.apps.verification.verification import (
    ScoreVerdict,
    Verification,
    verify_benchmark,
)
from helm_longctx.benchmarks.babilong import proof as babilong
from helm_longctx.benchmarks.infinite_bench import proof as infinite_bench
from helm_longctx.benchmarks.infinite_bench.tasks import INFINITE_BENCH
from helm_longctx.benchmarks.leval import proof as leval
from helm_longctx.benchmarks.longbench import proof as longbench
from helm_longctx.data import web
from helm_longctx.data.jsonl import JsonLines
from helm_longctx.data.root import DataRoot
from helm_longctx.data.web import RepositoryFolder, WebFile, object_id, tree_id
from helm_longctx.errors import InputError
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.proofs import (
    OutputScores,
    PrintedScore,
    Proof,
    Reason,
    ScoredOutputs,
    is_printed_as,
)
from helm_longctx.tasks.registry import BENCHMARKS
from tests.data.release_server import ReleaseHub
from tests.support.commands import Command
from tests.support.fabricate import write

RIGHT = {"prediction": "12345", "references": ["12345"]}
WRONG = {"prediction": "no", "references": ["12345"]}
TABLE = b"a 66.67\nb < 5%\nc 50\nd 100\ne 1.00\nf 2\n"
FOLDER = "proof/made"


def make_files() -> dict[str, bytes]:
    """Return files of outputs whose scores are 66.67, 0, 100, 0 and 0 percent, and a file that is malformed."""
    outputs = {"a": [RIGHT, RIGHT, WRONG], "b": [WRONG], "c": [RIGHT], "d": [WRONG]}
    files = {
        f"out/{name}.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode()
        for name, rows in outputs.items()
    }
    return {**files, "out/e.jsonl": b"not JSON\n"}


def read_outputs(root: DataRoot, path: str) -> ScoredOutputs:
    return ScoredOutputs(
        INFINITE_BENCH.task("passkey"), list(JsonLines(root / path, {}))
    )


def read_cells(root: DataRoot) -> Iterator[PrintedScore]:
    reasons = {
        "c": Reason("Half of the points are taken away.", lambda scores: 50.0),
        "d": Reason("The points are counted twice.", lambda scores: 99.0),
        "e": Reason("The file is damaged."),
    }
    for line in (root / f"{FOLDER}/table").read_text().splitlines():
        name, _, text = line.partition(" ")
        path = f"{FOLDER}/out/{name}.jsonl"
        compute = None if name == "f" else partial(OutputScores.percent, path=path)
        yield PrintedScore("m", name, text, compute, reasons.get(name))


@pytest.fixture
def proof(served: ReleaseHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proof:
    """Return made outputs in a repository whose archive, and whose table, a local server sends."""
    monkeypatch.setattr(web, "_ARCHIVES", f"{served.url}/files")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in make_files().items():
            member = tarfile.TarInfo(f"name-c0ffee/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
            target = tmp_path / "expected" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    served.files["owner/name/tar.gz/c0ffee"] = buffer.getvalue()
    served.files["table"] = TABLE
    made = Proof(
        title="made outputs",
        page="https://h/owner/name",
        sources=(
            RepositoryFolder(
                repo="owner/name",
                commit="c0ffee",
                folder="out",
                tree=tree_id(tmp_path / "expected/out"),
                path=f"{FOLDER}/out",
                files=tuple(f"{name}.jsonl" for name in "abcde"),
            ),
            WebFile(
                f"{served.url}/files/table", f"{FOLDER}/table", object_id("blob", TABLE)
            ),
        ),
        read_cells=read_cells,
        read_outputs=read_outputs,
        license="MIT",
    )
    monkeypatch.setattr(sys.modules[__name__], "PROOF", made, raising=False)
    return made


def verify(tmp_path: Path, mirror: bool = False) -> Verification:
    benchmark = replace(INFINITE_BENCH, proof=f"{__name__}.PROOF")
    return verify_benchmark(benchmark, DataRoot(tmp_path / "data", mirror))


def test_downloaded_outputs(proof: Proof, served: ReleaseHub, tmp_path: Path) -> None:
    """Both are downloaded once. Each cell is equal, explained, different or without outputs, and outputs are counted."""
    for _ in range(2):
        verification = verify(tmp_path)
        assert [
            (cell.cell.column, cell.verdict, cell.reason) for cell in verification.cells
        ] == [
            ("a", ScoreVerdict.EQUAL, ""),
            ("b", ScoreVerdict.EQUAL, ""),
            ("c", ScoreVerdict.EXPLAINED, "Half of the points are taken away."),
            # The reason does not give the printed score.
            ("d", ScoreVerdict.DIFFERENT, ""),
            ("e", ScoreVerdict.EXPLAINED, "The file is damaged."),
            ("f", ScoreVerdict.NO_OUTPUTS, ""),
        ]
        assert [cell.is_computed for cell in verification.cells] == [False] * 2 + [
            True
        ] + [False] * 3
        assert (verification.outputs, verification.files) == (6, 4)
        assert not verification.missing
        assert not verification.is_passed
    assert len(served.downloads) == 2


@pytest.mark.parametrize(
    ("name", "change"), [("tree", {"tree": "0" * 40}), ("blob", {"blob": "0" * 40})]
)
def test_other_content_is_refused(
    proof: Proof,
    name: str,
    change: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A folder or a file whose content is not that of the pinned commit is refused before anything is scored."""
    sources = tuple(
        replace(source, **change) if hasattr(source, name) else source
        for source in proof.sources
    )
    monkeypatch.setattr(sys.modules[__name__], "PROOF", replace(proof, sources=sources))
    with pytest.raises(InputError, match=f"git (tree )?id .*expected {'0' * 40}"):
        verify(tmp_path)


def test_files_that_a_mirror_lacks(proof: Proof, tmp_path: Path) -> None:
    """A mirror can lack files: their cells have no score, and the files are listed. Without the table it is an error."""
    with pytest.raises(InputError, match=r"proof/made/out/a\.jsonl"):
        verify(tmp_path, mirror=True)
    folder = tmp_path / "data" / FOLDER
    folder.mkdir(parents=True)
    (folder / "table").write_bytes(TABLE)
    write(folder / "out/a.jsonl", [RIGHT, RIGHT, WRONG])
    verification = verify(tmp_path, mirror=True)
    assert verification.counts == {
        ScoreVerdict.EQUAL: 1,
        ScoreVerdict.NO_FILE: 4,
        ScoreVerdict.NO_OUTPUTS: 1,
    }
    assert verification.missing == [f"{FOLDER}/out/{name}.jsonl" for name in "bcde"]
    assert verification.other == [f"{FOLDER}/out"]


def test_a_file_that_a_mirror_has_cut(
    proof: Proof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git's ids tell a cut file from the published one. A missing file whose id is known does not hide that."""
    outputs_folder = tmp_path / "data" / FOLDER
    for name, content in {**make_files(), "table": TABLE}.items():
        (outputs_folder / name).parent.mkdir(parents=True, exist_ok=True)
        (outputs_folder / name).write_bytes(content)
    assert verify(tmp_path, mirror=True).other == []
    missing = outputs_folder / "out/b.jsonl"
    blob = object_id("blob", missing.read_bytes())
    missing.unlink()
    assert verify(tmp_path, mirror=True).other == [f"{FOLDER}/out"]
    folder, table = proof.sources
    assert isinstance(folder, RepositoryFolder)
    sources = (replace(folder, blobs={"b.jsonl": blob}), table)
    monkeypatch.setattr(sys.modules[__name__], "PROOF", replace(proof, sources=sources))
    verification = verify(tmp_path, mirror=True)
    assert verification.other == []
    assert "is that of the pinned commits" in write_page([verification])
    (outputs_folder / "out/a.jsonl").write_bytes(make_files()["out/a.jsonl"][:-20])
    (outputs_folder / "table").write_bytes(TABLE + b"\n")
    verification = verify(tmp_path, mirror=True)
    assert verification.other == [f"{FOLDER}/out", f"{FOLDER}/table"]
    assert f"or is not whole: `{FOLDER}/out`, `{FOLDER}/table`" in write_page(
        [verification]
    )


@pytest.mark.parametrize(
    ("percent", "text", "expected"),
    [
        (92.714, "92.71%", True),
        (92.716, "92.71%", False),
        (92.705, "92.71", True),
        (99.6, "100%", True),
        (99.4, "100", False),
        (4.99, "< 5%", True),
        (5.0, "< 5%", False),
        (38.83883883883884, "38.83883883883884", True),
        (38.83883883, "38.83883883883884", False),
    ],
)
def test_printed_digits(percent: float, text: str, expected: bool) -> None:
    """A score equals a printed one if it rounds to its digits, or is below its bound."""
    assert is_printed_as(percent, text) == expected


def test_a_text_that_is_no_score() -> None:
    """A text that is no number is an error, and never equal."""
    with pytest.raises(ValueError, match="'n/a' is not a printed score"):
        is_printed_as(0, "n/a")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write small outputs and tables in the formats of the real ones into a mirror."""
    monkeypatch.setenv(MIRROR, str(tmp_path))
    names = " | ".join(infinite_bench.MODELS.values())
    table = (
        f"| Task | {names} |\n| Retrieve.PassKey | 50% | 50.00%{' | < 5%' * 5} |\n"
        f"| Code.Debug | < 5%  | < 5%{' | < 5%' * 5} |\n"
    )
    (tmp_path / infinite_bench.TABLE).parent.mkdir(parents=True)
    (tmp_path / infinite_bench.TABLE).write_text(table)
    results = tmp_path / infinite_bench.FOLDER
    passkeys = [
        {"id": number, "prediction": text, "ground_truth": "7"}
        for number, text in enumerate("78")
    ]
    debug = {"id": 0, "prediction": " B.", "ground_truth": ["f", "B"]}
    for model in infinite_bench.MODELS:
        write(
            results / model / "preds_passkey.jsonl",
            passkeys[model not in ("gpt4", "yarn-mistral") :],
        )
        write(
            results / model / "preds_code_debug.jsonl",
            [debug if model == "yarn-mistral" else {**debug, "prediction": "no"}],
        )

    titles = " | ".join(leval.TASKS)
    row = "66.66 | 100.00 | 100 | 5 | 0.00 | 0.00"
    (tmp_path / leval.TABLE).parent.mkdir(parents=True)
    (tmp_path / leval.TABLE).write_text(
        f"text\n| Model | {titles} |\n|---|---|---|---|---|---|---|\n"
        f"| [Other](https://h) | {row} |\n| {leval.MODEL} | {row} |\n\nmore\n"
    )
    for task in leval.TASKS.values():
        answers = "AAB" if task == "tpo" else "A"
        gold = "A" if task in ("tpo", "quality") else "9"
        rows = [{"gt": gold, "gpt4-x_pred": answer} for answer in answers]
        write(tmp_path / leval.FOLDER / f"gpt4-32k/{task}.pred.jsonl", rows)

    folder = tmp_path / longbench.FOLDER / "qwen3-8b"
    write(folder / "hotpotqa.jsonl", [{"pred": "a cat", "answers": ["dog", "cat"]}])
    classes = ["Food", "Date"]
    write(
        folder / "trec.jsonl",
        [{"pred": "x", "answers": ["Date"], "all_classes": classes}],
    )
    (folder / "result.json").write_text('{"hotpotqa": 100.0, "trec": 50.0}')

    model = "Yukang/LongAlpaca-13B"
    source = [f"model_name = '{model}'\n", f"prompt_name = '{babilong.FORMS[0]}'\n"]
    lines = ["100 0 ", "0 0 ", "0 0 ", "0 0 ", "0 0 "]
    cell = {"source": source, "outputs": [{"text": ["\n".join(lines)]}]}
    notebook = tmp_path / f"{babilong.FOLDER}/notebooks/eval_LongAlpaca-13B.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text(json.dumps({"cells": [cell]}))
    for task in ("qa1", "qa2", "qa3", "qa4", "qa5"):
        for length in ("0k", "1k"):
            text = "target,output,question\n"
            if task == "qa1":
                text += f"garden,{'garden' if length == '0k' else 'office'},Where is Mary?\n"
            elif task == "qa5":
                # The earlier official code took the name in the question for a second answer.
                text += "mary,Bill gave it to Mary.,What did Bill give?\n"
            else:
                text += "garden,kitchen,Where is it?\n"
            path = (
                tmp_path
                / f"{babilong.FOLDER}/94a73a3/babilong_evals/{model}/{task}_{length}_{babilong.FORMS[0]}.csv"
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return tmp_path


def count_verdicts(name: str, root: Path) -> dict[ScoreVerdict, int]:
    (benchmark,) = (benchmark for benchmark in BENCHMARKS if benchmark.name == name)
    return dict(verify_benchmark(benchmark, DataRoot(root, mirror=True)).counts)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("infinite_bench", {ScoreVerdict.EQUAL: 13, ScoreVerdict.EXPLAINED: 1}),
        # A digit that is cut off explains the first cell. One model and one task have no outputs.
        (
            "leval",
            {
                ScoreVerdict.EQUAL: 4,
                ScoreVerdict.EXPLAINED: 1,
                ScoreVerdict.NO_OUTPUTS: 7,
            },
        ),
        ("longbench", {ScoreVerdict.EQUAL: 1, ScoreVerdict.DIFFERENT: 1}),
        ("babilong", {ScoreVerdict.EQUAL: 8, ScoreVerdict.EXPLAINED: 2}),
    ],
)
def test_each_benchmark_reads_its_files(
    name: str, expected: dict[ScoreVerdict, int], mirror: Path
) -> None:
    """The formats of the published outputs and tables are read, and known differences are explained by a computation."""
    assert count_verdicts(name, mirror) == expected


def test_the_command(mirror: Path, command: Command, tmp_path: Path) -> None:
    """The command prints each cell and the counts, writes the page, and ends with status 1 if a score differs."""
    assert command("verify", "infinite_bench") == 0
    assert "YaRN-Mistral-7B" in command.out
    assert "explained" in command.out
    page = tmp_path / "proof.md"
    assert command("verify", "all", "--page", page) == 1
    text = page.read_text()
    assert (
        "Different, without a known reason: qwen3-8b TREC (printed 50.0, from the outputs 0.00)."
        in text
    )
    assert "only since e60e8dc" in text
    assert "Computed in this way, the score is the printed one." in text
    assert "They are not published by the benchmark's authors." in text
    assert str(tmp_path) not in text
    assert command("verify", "helmet") == 2
    assert "benchmark='helmet' is invalid; choose from all, " in command.err
