"""Tests `import` with files that attack: huge values, deep nesting, other folders, archives that unpack to gigabytes."""

from __future__ import annotations

import io
import json
import os
import stat
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.apps.exchange import inspect_logs
from helm_longctx.apps.exchange.importing import import_files
from helm_longctx.errors import InputError
from helm_longctx.tasks.registry import BENCHMARKS
from tests.apps.exchange.fabricate import CHOICE, log, sample

ENTRY = "helmet_rag:task=nq,length=8k"
SAMPLES = "samples_nq_2025-01-31T12-00-00.0.jsonl"
LOG = f"{CHOICE}.json"
DEEP = "[" * 100_000 + "]" * 100_000
MANY = 10**6
"""The number of columns of a table that is too wide."""


def line(**changes: Any) -> str:
    """Return a line of lm-evaluation-harness."""
    return json.dumps(
        {
            "doc_id": 1,
            "doc": {"references": ["x"]},
            "target": "x",
            "resps": [["x"]],
            **changes,
        }
    )


def own_line(repeat: object, notes: object) -> str:
    """Return a line of our own export."""
    return line(
        doc={
            "record": {"references": ["x"]},
            "answers": [{"repeat": repeat, "notes": notes}],
        }
    )


def log_of(model: str) -> str:
    """Return a log of inspect_ai about a model."""
    content = log(sample(1, "x"))
    content["eval"]["model"] = model
    return json.dumps(content)


def tokens(number: int) -> dict[str, Any]:
    """Return the output of a sample of inspect_ai with a number of tokens."""
    return {
        "choices": [{"message": {"content": "x"}}],
        "usage": {"input_tokens": number},
    }


def archive(*members: tuple[str | zipfile.ZipInfo, str | bytes]) -> bytes:
    """Return a log of inspect_ai as an archive, with a header and these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in (("header.json", json.dumps(log())), *members):
            file.writestr(name, content)
    return buffer.getvalue()


def link(name: str) -> zipfile.ZipInfo:
    """Return a member that is a symbolic link."""
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


REFUSED: dict[str, tuple[str, str | bytes, str]] = {
    "deep": (SAMPLES, f'{{"doc": {DEEP}, "resps": [["x"]]}}', "not a JSON object"),
    "5000 digits": (
        SAMPLES,
        f'{{"doc": {{"id": {"9" * 5000}}}, "resps": [["x"]]}}',
        "not a JSON object",
    ),
    "NaN": (
        SAMPLES,
        '{"doc": {"references": ["x"], "depth": NaN}, "resps": [["x"]]}',
        "depth must be a finite",
    ),
    "id in no encoding": (
        SAMPLES,
        line(doc={"id": "\udc80", "references": ["x"]}),
        "id must be a text in UTF-8",
    ),
    "many repeats": (
        SAMPLES,
        line(resps=[["x"] * 2000]),
        "repeat must be a whole number below 1000",
    ),
    "huge repeat": (
        SAMPLES,
        own_line(10**9, {}),
        "repeat must be a whole number below 1000",
    ),
    "negative repeat": (
        SAMPLES,
        own_line(-5, {}),
        "repeat must be a whole number below 1000",
    ),
    "repeat of text": (
        SAMPLES,
        own_line("1", {}),
        "repeat must be a whole number below 1000",
    ),
    "notes that are a number": (
        SAMPLES,
        own_line(0, {"judge": 5}),
        "notes must be an object of objects",
    ),
    "huge epoch": (
        LOG,
        json.dumps(log(sample(1, "x", epoch=10**400))),
        "repeat must be a whole number below 1000",
    ),
    "huge tokens": (
        LOG,
        json.dumps(log(sample(1, "x", output=tokens(10**400)))),
        "input_tokens must be a number of",
    ),
    "model of 300 characters": (
        LOG,
        log_of(f"a/{'b' * 300}"),
        "the run's name has 337 bytes, and 255 are allowed",
    ),
    "RTL mark": (LOG, log_of("a/b\u202e"), "is not a name; give --model"),
    "link": (
        "x.eval",
        archive((link("samples/1.json"), "/etc/passwd")),
        "samples/1.json: not readable",
    ),
    "deep header": (
        "x.eval",
        archive(("samples/1.json", DEEP)),
        "samples/1.json: not readable",
    ),
    "infinite repeat": (
        "answers.csv",
        "answer,task,references,repeat\nx,nq,x,inf\n",
        "repeat='inf' must be a whole",
    ),
    "huge repeat in a table": (
        "answers.csv",
        "answer,task,references,repeat\nx,nq,x,1e308\n",
        "repeat must be a whole",
    ),
    "no reference": (
        "answers.csv",
        "answer,task,references\nx,nq,\n",
        "row 2: the accepted answers must be texts that",
    ),
    "empty reference": (
        "answers.csv",
        "answer,task,references\nx,nq,y | \n",
        "answers must be texts that are not",
    ),
    "empty target": (
        LOG,
        json.dumps(log(sample(1, "x", target=[""]))),
        "answers must be texts that are not empty",
    ),
    "no target": (
        LOG,
        json.dumps(log(sample(1, "x", target=[]))),
        "answers must be texts that are not empty",
    ),
    "many samples that are missing": (
        LOG,
        json.dumps(
            {**log(sample(1, "x")), "status": "error"}
            | {
                "eval": {
                    "task": "t",
                    "model": "a/b",
                    "dataset": {"sample_ids": [1]},
                    "config": {"epochs": 10**9},
                }
            }
        ),
        "a log may have 100000 with all epochs",
    ),
    "depth that is no number": (
        "answers.csv",
        "answer,task,references,depth\nx,nq,x,nan\n",
        "depth must be a finite",
    ),
    "deep record": (
        "answers.csv",
        f'answer,task,record\nx,nq,"{DEEP}"\n',
        "record is not JSON",
    ),
    "infinite score": (
        "scores.csv",
        "score,entry\n1e309,helmet_rag\n",
        "it must have a score from 0 to 1",
    ),
    "score that is no number": (
        "scores.csv",
        "score,entry\nnan,helmet_rag\n",
        "it must have a score from 0 to 1",
    ),
}

ACCEPTED: dict[str, tuple[str, str | bytes | Callable[[], str]]] = {
    "a million columns": (
        SAMPLES,
        lambda: line(**dict.fromkeys(map(str, range(MANY)), 0)),
    ),
    "a million fields": (
        SAMPLES,
        lambda: line(
            doc={"references": ["x"], **dict.fromkeys(map(str, range(MANY)), 0)}
        ),
    ),
    "a table of a million columns": (
        "answers.csv",
        lambda: f"answer,task,references,{','.join(map(str, range(MANY)))}\nx,nq,x\n",
    ),
    "lone surrogate": (
        SAMPLES,
        '{"doc": {"references": ["\\ud83d"], "id": "a"}, "resps": [["\\ud83d"]]}',
    ),
    "NUL": (
        SAMPLES,
        '{"doc": {"references": ["\\u0000"], "id": "\\u0000"}, "resps": [["\\u0000"]]}',
    ),
    "id that is a path": (LOG, json.dumps(log(sample(1, "x") | {"id": "../../../x"}))),
    "model that is a path": (LOG, log_of("../../x")),
    "model that is a command": (LOG, log_of("$(id)/x")),
    "two dots": (LOG, log_of("..")),
    "paths in an archive": (
        "x.eval",
        archive(
            ("samples/../../../../evil.json", json.dumps(sample(1, "x"))),
            ("../../evil", ""),
            ("/evil", ""),
        ),
    ),
}


def place(folder: Path, name: str, content: str | bytes | Callable[[], str]) -> Path:
    """Write the file into a folder of its own, and return its path."""
    path = folder / "a/b/model" / name
    path.parent.mkdir(parents=True)
    if callable(content):  # a large file, which only its test makes
        content = content()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def import_file(path: Path, folder: Path) -> Iterable[Path]:
    """Import a file, and return the runs that it becomes."""
    is_table = path.suffix == ".csv"
    scores = path.name == "scores.csv"
    return import_files(
        [path],
        folder / "runs/s",
        BENCHMARKS,
        None,
        "" if scores else ENTRY,
        "a/b" if is_table else "",
    ).runs


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    """A hostile file is refused with one short line that names the file, and nothing is written."""
    file, content, told = REFUSED[name]
    path = place(tmp_path, file, content)
    with pytest.raises(InputError) as refused:
        import_file(path, tmp_path / "out")
    message = str(refused.value)
    assert told in message
    assert len(message) < 1000
    assert "\n" not in message
    assert not list((tmp_path / "out").rglob("*.json"))


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str, tmp_path: Path) -> None:
    """An odd but valid file becomes a run in its own folder, and nothing is written outside it."""
    path = place(tmp_path, *ACCEPTED[name])
    (run,) = import_file(path, tmp_path / "out")
    assert run.parent == tmp_path / "out/runs/s"
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == {
        path,
        *run.glob("*"),
    }


def test_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of 100 kB whose sample has 100 MB is read only up to the limit."""
    monkeypatch.setattr(inspect_logs, "_MOST_BYTES", 1 << 20)
    path = place(
        tmp_path, "x.eval", archive(("samples/1_epoch_1.json", b" " * (100 << 20)))
    )
    assert path.stat().st_size < 200_000
    with pytest.raises(
        InputError, match=r"samples/1_epoch_1\.json is larger than 1 MiB"
    ):
        import_file(path, tmp_path / "out")


def test_samples_that_are_large_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive whose samples are each below the limit is read only up to the limit of all samples together."""
    monkeypatch.setattr(inspect_logs, "_MOST_BYTES_IN_ALL", 10 << 20)
    large = json.dumps(sample(1, "x") | {"store": "x" * (4 << 20)})
    path = place(
        tmp_path,
        "x.eval",
        archive(*((f"samples/{number}.json", large) for number in range(12))),
    )
    with pytest.raises(InputError, match="its files are larger than 10 MiB in all"):
        import_file(path, tmp_path / "out")


def test_an_archive_is_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of an archive's files is read once and not for each sample, which took hours with 10,000 samples."""
    opened: list[object] = []

    class Counted(zipfile.ZipFile):
        def __init__(self, *arguments: Any):
            opened.append(arguments)
            super().__init__(*arguments)

    path = place(
        tmp_path,
        "x.eval",
        archive(
            *((f"samples/{n}.json", json.dumps(sample(n, "x"))) for n in range(20))
        ),
    )
    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    (run,) = import_file(path, tmp_path / "out")
    assert len(opened) == 1
    assert len(json.loads((run / "per_instance_stats.json").read_text())) == 20


def test_a_folder_with_pipes_and_links(tmp_path: Path) -> None:
    """Pipes, broken links and links to the own folder are left out, because reading them fails or never ends."""
    good = place(tmp_path, SAMPLES, line())
    os.mkfifo(good.with_name(SAMPLES.replace("nq", "popqa")))
    good.with_name(SAMPLES.replace("nq", "triviaqa")).symlink_to("nowhere")
    (good.parent / "loop").symlink_to(good.parent)
    good.with_name(SAMPLES.replace("nq", "hotpotqa")).symlink_to("/dev/zero")
    assert (
        len(
            import_files(
                [good.parent], tmp_path / "out/runs/s", BENCHMARKS, entry=ENTRY
            ).runs
        )
        == 1
    )
