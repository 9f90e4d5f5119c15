"""Tests that logs of inspect_ai, samples of lm-evaluation-harness and tables of others are read in their programs' formats."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helm_longctx.apps.exchange import inspect_logs
from helm_longctx.apps.exchange.export import ScoreRow, scores
from helm_longctx.apps.exchange.importing import find_readers, import_files
from helm_longctx.errors import InputError
from helm_longctx.results.boards import read_suite
from helm_longctx.tasks.registry import BENCHMARKS
from tests.apps.exchange.fabricate import (
    CHOICE,
    HELMET_NAME,
    helmet_file,
    log,
    sample,
    write_archive,
)
from tests.support.commands import Command


def read(tmp_path: Path, *files: Path, **options: str) -> dict[str, ScoreRow]:
    """Return the statistics of the runs that the files became."""
    import_files(files, tmp_path / "runs/theirs", BENCHMARKS, **options)
    return {
        f"{row.task} {row.metric}": row
        for row in scores(read_suite(tmp_path / "runs/theirs", BENCHMARKS))
    }


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_inspect_logs(suffix: str, tmp_path: Path) -> None:
    """Logs of inspect_ai are read with messages of several parts, attachments, epochs and errors."""
    parts = [
        {"type": "reasoning", "reasoning": "Rome?"},
        {"type": "text", "text": "attachment://ab"},
    ]
    content = log(
        sample(1, "It is Paris."),
        sample(
            2,
            parts,
            attachments={"ab": "Paname"},
            input=[{"role": "user", "content": "Where?"}],
        ),
        sample(1, "Rome", epoch=2),
        sample(2, "Paris", epoch=2),
        sample(3, None, error={"message": "maximum context length"}),
    )
    path = tmp_path / f"{CHOICE}{suffix}"
    path.write_text(json.dumps(content)) if suffix == ".json" else write_archive(
        path, content
    )
    rows = read(tmp_path, path)
    assert rows["nq substring_exact_match"].score == 0.75
    assert (rows["nq longctx_score"].instances, rows["nq longctx_score"].failed) == (
        2,
        1,
    )
    assert rows["nq request_too_long"].score > 0


TEXT = {"type": "text", "text": "Paris"}
REASONING = {"type": "reasoning", "reasoning": "Paris"}


def answer_of(content: Any, reason: str = "stop", **more: Any) -> dict[str, Any]:
    """Return the output of a sample of inspect_ai whose answer ended for a reason."""
    return {
        "choices": [
            {
                "message": {"role": "assistant", "content": content, **more},
                "stop_reason": reason,
            }
        ]
    }


SCORED = "longctx_score"
CUT = "output_truncated"
FAILED = "request_failed"
REFUSED = "request_refused"
ENDINGS: dict[str, tuple[Any, str, float]] = {
    "text": (answer_of("Paris"), SCORED, 1),
    "text without a reason": (answer_of("Paris", "unknown"), SCORED, 1),
    "empty text": (answer_of(""), SCORED, 0),
    "cut text": (answer_of("Paris and", "max_tokens"), CUT, 1),
    "full context": (answer_of([TEXT], "model_length"), CUT, 1),
    "cut reasoning": (answer_of([REASONING], "max_tokens"), CUT, 1),
    "null": (answer_of(None), FAILED, 1),
    "number": (answer_of(42), FAILED, 1),
    "empty list": (answer_of([]), FAILED, 1),
    "only reasoning": (answer_of([REASONING]), FAILED, 1),
    "only a tool call": (
        answer_of("", "tool_calls", tool_calls=[{"function": "f"}]),
        FAILED,
        1,
    ),
    "missing attachment": (answer_of("attachment://ab"), FAILED, 1),
    "missing attachment in a part": (
        answer_of([TEXT, {**TEXT, "text": "attachment://ab"}]),
        FAILED,
        1,
    ),
    "no message": ({"choices": [{}]}, FAILED, 1),
    "filtered": (answer_of("I can not", "content_filter"), REFUSED, 1),
    "filtered without a text": (answer_of([], "content_filter"), REFUSED, 1),
}
"""Outputs of inspect_ai, a statistic that says what they are, and its value."""


@pytest.mark.parametrize("name", ENDINGS)
def test_endings_of_inspects_answers(name: str, tmp_path: Path) -> None:
    """An answer of inspect_ai is scored, cut, refused or failed, and only scored and cut ones have a score."""
    output, metric, value = ENDINGS[name]
    path = tmp_path / f"{CHOICE}.json"
    path.write_text(json.dumps(log(sample(1, "", output=output))))
    rows = read(tmp_path, path)
    assert rows[f"nq {metric}"].score == value
    assert ("nq substring_exact_match" in rows) == (metric in (SCORED, CUT))


@pytest.mark.parametrize("status", ["error", "cancelled", "started"])
@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_samples_that_an_unfinished_evaluation_lacks(
    status: str, suffix: str, tmp_path: Path
) -> None:
    """Each sample that an evaluation has not reached is a failed request, so that its score does not look complete."""
    content = log(
        sample(1, "Paris"), sample(1, "Paris", epoch=2), sample(2, "Rome")
    ) | {"status": status}
    content["eval"] |= {"dataset": {"sample_ids": [1, 2, 3]}, "config": {"epochs": 2}}
    path = tmp_path / f"{CHOICE}{suffix}"
    path.write_text(json.dumps(content)) if suffix == ".json" else write_archive(
        path, content
    )
    rows = read(tmp_path, path)
    assert (rows["nq longctx_score"].score, rows["nq longctx_score"].failed) == (
        0.5,
        3,
    )
    assert rows["nq request_failed"].score == 0.5


def test_an_unfinished_evaluation_of_several_lengths_is_refused(tmp_path: Path) -> None:
    """Nobody knows the length of a sample that is not in the log, so a log of several lengths must be complete."""
    samples = [
        sample(number, "Paris", metadata={"max_length": 8192 * number})
        for number in (1, 2)
    ]
    content = log(*samples, task="helmet_nq") | {"status": "error"}
    content["eval"] |= {"dataset": {"sample_ids": [1, 2, 3]}}
    path = tmp_path / f"{CHOICE}.json"
    path.write_text(json.dumps(content))
    with pytest.raises(
        InputError,
        match="status 'error' and lacks 1 samples of unknown length; finish it",
    ):
        read(tmp_path, path)


def test_lm_evals_samples_of_ruler(tmp_path: Path) -> None:
    """One file can have samples of several lengths, and a name that several tasks share needs a run entry."""
    rows = [
        {
            "doc_id": number,
            "doc": {
                "index": 0,
                "input": "…",
                "outputs": ["7", "8"],
                "length": 99,
                "max_length": length,
            },
            "target": "7",
            "arguments": {"gen_args_0": {"arg_0": "prompt", "arg_1": {}}},
            "resps": [["7 and 8" if number else "7"]],
            "filtered_resps": ["x"],
            "filter": kind,
        }
        for kind in ("none", "strict")
        for number, length in enumerate((4096, 4096, 8192))
    ]
    path = (
        tmp_path / "model__name" / "samples_ruler_vt_2025-01-31T12-00-00.123456.jsonl"
    )
    path.parent.mkdir()
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(
        InputError,
        match=r"jsonl:1: task 'ruler_vt' has several run entries; give --entry with .*ruler:task=vt",
    ):
        read(tmp_path, path)
    import_files(
        [tmp_path / "model__name"],
        tmp_path / "runs/theirs",
        BENCHMARKS,
        entry="ruler:task=vt",
    )
    scores_by_model = {
        (row.model, row.length): row
        for row in scores(read_suite(tmp_path / "runs/theirs", BENCHMARKS))
        if row.metric == "longctx_score"
    }
    assert {key: (row.score, row.instances) for key, row in scores_by_model.items()} == {
        ("model/name", "4k"): (0.75, 2), ("model/name", "8k"): (1.0, 1)
    }  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_lm_evals_samples_without_an_answer(packed: bool, tmp_path: Path) -> None:
    """A null in lm-eval's samples is a failed request, and a file packed with gzip is read as the plain one."""
    rows = [
        {
            "doc_id": number,
            "doc": {"outputs": ["7"], "max_length": 4096},
            "resps": [[text]],
            "filter": "none",
        }
        for number, text in enumerate(["7", None, "8"])
    ]
    content = "\n".join(map(json.dumps, rows)).encode()
    path = (
        tmp_path / "model__name" / "samples_ruler_vt_2025-01-31T12-00-00.123456.jsonl"
    )
    path.parent.mkdir()
    if packed:
        path = path.with_name(f"{path.name}.gz")
        content = gzip.compress(content)
    path.write_bytes(content)
    import_files(
        [path.parent], tmp_path / "runs/theirs", BENCHMARKS, entry="ruler:task=vt"
    )
    (row,) = (
        row
        for row in scores(read_suite(tmp_path / "runs/theirs", BENCHMARKS))
        if row.metric == "longctx_score"
    )
    assert (row.model, row.score, row.failed) == ("model/name", 0.5, 1)


@pytest.mark.parametrize(
    "content",
    [b"\x1f\x8b damaged", gzip.compress(b"{}", mtime=0)[:-4]],
    ids=["header", "end"],
)
def test_a_damaged_gzip_file_is_named(content: bytes, tmp_path: Path) -> None:
    """A gzip file that is not complete is refused in a line with its name."""
    path = tmp_path / "samples_ruler_vt_2025-01-31T12-00-00.123456.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{path.name} is not a complete gzip file"):
        import_files(
            [path], tmp_path / "runs/theirs", BENCHMARKS, entry="ruler:task=vt"
        )


def test_tables_of_others(tmp_path: Path) -> None:
    """A table needs few columns, and scores without answers become published results."""
    answers = tmp_path / "my_answers.csv"
    table = tmp_path / "scores.csv"
    answers.write_text(
        "model,task,length,references,answer\nmine,nq,8k,Paris | Paname,Paname!\nmine,nq,8k,Rome,Oslo\n"
    )
    table.write_text(
        "model,entry,task,length,score\ntheirs,helmet_rag,nq,8k,0.25\ntheirs,helmet_rag,popqa,8k,0.5\n"
    )
    rows_by_name = read(tmp_path, answers, table)
    assert (
        rows_by_name["nq substring_exact_match"].score == 0.25
    )  # the published score, which comes last
    rows = [
        (row.model, row.task, row.score)
        for row in scores(read_suite(tmp_path / "runs/theirs", BENCHMARKS))
        if row.metric == "longctx_score"
    ]
    assert rows == [
        ("imported/mine", "nq", 0.5),
        ("published/theirs", "nq", 0.25),
        ("published/theirs", "popqa", 0.5),
    ]


MALFORMED: list[tuple[str, str | bytes, str]] = [
    (HELMET_NAME, "{", "not a JSON object"),
    (HELMET_NAME, "[]", "not a JSON object but list"),
    (HELMET_NAME, "{}", "it lacks the list 'data' or the object 'args'"),
    (HELMET_NAME, helmet_file(output=None), ": row 2: output must be text, found None"),
    (HELMET_NAME, helmet_file(answer=[1]), ": row 2: answer must be a list of texts"),
    (
        HELMET_NAME.replace("kilt_nq", "msmarco_rerank_psg"),
        helmet_file(),
        "qrel must be a list of pairs",
    ),
    (
        HELMET_NAME.replace("in8192", "in8193"),
        helmet_file(),
        ": row 1: helmet_rag: length='8193' is invalid",
    ),
    (f"{HELMET_NAME}.score", "{}", "it lacks the number 'substring_exact_match'"),
    (
        "factrecall_en_16k.jsonl",
        '{"pred": "x", "input": "?", "answers": ["y"]}\n{"pred": 1}',
        ":2: column 'pred' must be",
    ),
    (
        "factrecall_en_16k.jsonl",
        '{"pred": "x", "input": "?", "answers": [1]}',
        ":1: answers must be a list of texts",
    ),
    (
        "result.json",
        '{"factrecall_en_16k": "x"}',
        "'factrecall_en_16k': expected a data set with its length",
    ),
    ("x.eval", b"PK\x03\x04", "not an archive of inspect_ai"),
    (f"{CHOICE}.json", "{}", "it lacks the list 'samples'"),
    (
        f"{CHOICE}.json",
        json.dumps(log({"id": 1})),
        "sample 1: the accepted answers must be texts",
    ),
    (
        f"{CHOICE}.json",
        json.dumps(log({})),
        "sample 1: it must have an id, and an epoch from 1",
    ),
    (
        f"{CHOICE}.json",
        json.dumps(log(sample(1, "x"), sample(1, "y"))),
        "sample 2: the example '1' has an answer in",
    ),
    (
        f"{CHOICE}.json",
        json.dumps(log(sample(1, "x"), task="unknown")),
        "sample 1: task 'unknown' is not known",
    ),
    (
        "samples_nq_2025-01-31T12-00-00.0.jsonl",
        '{"doc": {}, "resps": [[[-1.5, false]]]}',
        ":1: resps must be a list",
    ),
    (
        "answers.csv",
        "model,task\nm,nq\n",
        "row 2: it has neither a column 'answer' nor a column 'score'",
    ),
    ("answers.csv", 'answer,task,record\nx,nq,"{"\n', "row 2: record is not JSON"),
    (
        "answers.csv",
        "answer,task,references,length\nx,nq,y,8q\n",
        "row 2: length='8q' is invalid",
    ),
    (
        "answers.csv",
        "answer,task,references,length,repeat\nx,nq,y,8k,0\n",
        "row 2: repeat='0' must be a whole number",
    ),
    (
        "scores.csv",
        "score,entry\n2,helmet_rag\n",
        "row 2: it must have a score from 0 to 1",
    ),
    ("scores.parquet", b"PAR1", "not a readable table"),
    (
        "other.txt",
        "",
        "no file has a known name (babilong: BABILong's tables of outputs",
    ),
]


@pytest.mark.parametrize(("name", "content", "message"), MALFORMED)
def test_malformed_files(
    name: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    """A malformed file gives one line with the file and the row, and nothing is written, not even what a good file holds."""
    good = tmp_path / f"good_{HELMET_NAME}".replace("good_", "a/")
    path = tmp_path / name
    good.parent.mkdir()
    good.write_text(helmet_file())
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError) as raised:
        import_files([good, path], tmp_path / "runs/theirs", BENCHMARKS)
    assert str(raised.value).startswith(str(path))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "runs").exists()


def test_archives_are_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in an archive is read up to a limit, whatever size the archive says it has."""
    path = write_archive(tmp_path / "x.eval", log(sample(1, "x" * 10_000)))
    monkeypatch.setattr(inspect_logs, "_MOST_BYTES", 5_000)
    with pytest.raises(InputError, match=r"samples/1_epoch_1.json is larger than"):
        import_files([path], tmp_path / "runs/theirs", BENCHMARKS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_value_in_any_column(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A reader yields something or raises the error for users, whatever value a row has."""
    readers = find_readers(BENCHMARKS)
    row: dict[str, Callable[[], dict[str, Any]]] = {
        "inspect": lambda: sample(1, "x"),
        "lm-eval": lambda: {
            "doc_id": 1,
            "doc": {"references": ["x"]},
            "resps": [["x"]],
            "arguments": {"gen_args_0": {}},
        },
        "helmet": lambda: {
            "output": "x",
            "answer": ["x"],
            "qrel": [["1", "2"]],
            "gpt-4-scores": {},
            "input_len": 3,
        },
        "lv_eval": lambda: {"pred": "x", "answers": ["x"], "input": "?"},
    }
    kind = data.draw(st.sampled_from(sorted(row)))
    mutated = row[kind]()
    mutated[data.draw(st.sampled_from(sorted(mutated)))] = data.draw(JSON)
    names = {
        "inspect": f"{CHOICE}.json",
        "lm-eval": "samples_nq_2025-01-31T12-00-00.0.jsonl",
    }
    name = names.get(
        kind, HELMET_NAME if kind == "helmet" else "factrecall_en_16k.jsonl"
    )
    path = tmp_path_factory.mktemp("any") / name
    content = (
        log(mutated)
        if kind == "inspect"
        else {"args": {}, "data": [mutated]}
        if kind == "helmet"
        else mutated
    )
    path.write_text(json.dumps(content))
    rows: list[object] = []
    told = str(path)
    try:
        rows = list(readers[kind].read(path, "helmet_rag:task=nq,length=8k"))
    except InputError as error:
        told = str(error)
    assert str(path) in told
    assert bool(rows) == (told == str(path))


def test_command(command: Command, tmp_path: Path) -> None:
    """`import` lists what it wrote, replaces runs that were imported and no others, and refuses names that it does not know."""
    path = Path(HELMET_NAME)
    path.write_text(helmet_file())
    for _ in range(2):
        assert command("import", path, "--suite", "theirs", "--model", "my/model") == 0
    folder = "benchmark_output/runs/theirs/helmet_rag:task=nq,length=8k,num_samples=2,model=my_model"
    assert command.out.splitlines()[-2] == f"{folder}: 2 answers"
    (Path(folder) / "scenario.json").write_text("{}")
    assert command("import", path, "--suite", "theirs", "--model", "my/model") == 2
    assert "is a run that was made here" in command.err
    assert command("import", path, "--suite", "theirs", "--format", "helmut") == 2
    assert (
        "format='helmut' is invalid; did you mean helmet? Choose from helmet"
        in command.err
        or "did you mean helmet?" in command.err
    )
    assert command("export", "--suite", "theirs", "--format", "xml") == 2
    assert "export: format='xml' is invalid; choose from csv, parquet" in command.err
