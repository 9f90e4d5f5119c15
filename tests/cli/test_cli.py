"""Tests of the `helm-longctx` command in this process."""

from __future__ import annotations

import json
import re
import sys
from itertools import product
from operator import attrgetter
from pathlib import Path

import pytest
import yaml

from helm_longctx._version import VERSION
from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.cli.tables import conf_files
from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.helm import errors
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import MOST_SCORED
from tests.benchmarks.lv_eval.fabricate import build_lv_eval
from tests.fuzz.records import OF_BENCHMARK
from tests.support.commands import Command
from tests.support.fabricate_runs import write_run


@pytest.fixture
def with_mirror(monkeypatch: pytest.MonkeyPatch, mirror: DataRoot) -> None:
    """Set the fabricated mirror in the environment."""
    monkeypatch.setenv(MIRROR, str(mirror.path))


def test_prompts(command: Command, with_mirror: None) -> None:
    """`prompts` prints JSON lines with fixed keys in the official order, limited and in either form, and nothing else."""
    assert (
        command(
            "prompts",
            "helmet_recall:task=json_kv,length=8k",
            "--style",
            "chat",
            "--limit",
            3,
        )
        == 0
    )
    chat = command.rows
    assert [list(row) for row in chat] == [
        ["id", "task", "length", "prompt", "references", "max_tokens", "stop"]
    ] * 3
    assert {(row["task"], row["length"], row["max_tokens"]) for row in chat} == {
        ("json_kv", "8k", 100)
    }
    assert (
        command("prompts", "helmet_recall:task=json_kv,length=8192", "--limit", 3) == 0
    )
    for one, two in zip(chat, command.rows, strict=True):
        assert two["prompt"] == one["prompt"] + "\nCorresponding value:"
        assert one["stop"] == two["stop"] == []


def test_prompts_of_a_category_and_protocol(
    command: Command, with_mirror: None
) -> None:
    """`prompts` prints a category's tasks one after the other, and `protocol=current` and `style=` have their effects."""
    assert (
        command("prompts", "helmet_icl:length=4k,num_samples=2,protocol=current") == 0
    )
    assert [row["task"] for row in command.rows][::2] == [
        "trec_coarse",
        "trec_fine",
        "banking77",
        "clinic150",
        "nlu",
    ]
    assert {tuple(row["stop"]) for row in command.rows} == {("\n",)}
    assert (
        command(
            "prompts",
            "helmet_icl:task=nlu,length=4k,num_samples=1,protocol=current,style=chat",
        )
        == 0
    )
    assert command.rows[0]["stop"] == []
    assert not command.rows[0]["prompt"].endswith("label:")


def test_score(command: Command, tmp_path: Path) -> None:
    """`score` prints a line of scores with the official names for each record, in the same order."""
    records = [
        {"prediction": f"label: {n}", "references": ["3"], "more": 1} for n in (3, 4)
    ]
    (tmp_path / "r.jsonl").write_text(
        "".join(json.dumps(record) + "\n" for record in records)
    )
    assert (
        command("score", "helmet_icl:task=nlu,length=8k", "--records", "r.jsonl") == 0
    )
    assert [row["longctx_score"] for row in command.rows] == [1.0, 0.0]
    assert set(command.rows[0]) == {*HELMET.task("nlu").metrics, "longctx_score"}


@pytest.mark.parametrize(
    "entry",
    [
        "loogle:task=shortdep_qa",
        "leval:task=tpo",
        "longgenbench_qa:task=gsm8k",
        "fresh_text:task=recall,length=4k",
    ],
)
def test_a_record_without_references_is_refused(entry: str, command: Command) -> None:
    """A scorer that needs a reference says so in one line with the file and the line of the record."""
    Path("r.jsonl").write_text('{"prediction": "x", "references": []}\n')
    assert command("score", entry, "--records", "r.jsonl") == 2
    assert "r.jsonl:1: references is empty, but" in command.err


def test_a_very_long_prediction_is_scored_in_part(command: Command) -> None:
    """`score` reads no more of a prediction than a run does, and says how many it read in part."""
    prediction = "label: 3" + " x" * MOST_SCORED
    record = json.dumps({"prediction": prediction, "references": ["3 x"]})
    Path("r").write_text(
        record + "\n" + '{"prediction": "label: 3", "references": ["3"]}'
    )
    assert (
        command("score", "helmet_longqa:task=infbench_qa,length=8k", "--records", "r")
        == 0
    )
    assert (
        "only the first 524,288 characters of 1 predictions were scored" in command.err
    )
    first, second = command.rows
    kept = {"prediction": prediction[:MOST_SCORED], "references": ["3 x"]}
    assert first == HELMET.task("infbench_qa").scores(kept)
    assert second["longctx_score"] < 1


def test_half_characters_are_scored(command: Command) -> None:
    """`score` takes lone surrogates, which models write and JSON escapes, as characters, like the official codes."""
    outputs = ["label: 3", "label: 3 \ud83d", "\ud83dlabel: 3"]
    records = [
        json.dumps({"prediction": output, "references": ["3"]}) for output in outputs
    ]
    Path("r").write_text("\n\n".join(records))
    assert command("score", "helmet_icl:task=nlu,length=8k", "--records", "r") == 0
    assert [row["longctx_score"] for row in command.rows] == [1.0, 0.0, 1.0]
    Path("r").write_text(
        "\n\n".join([*records, '{"prediction": "", "references": [1]}'])
    )
    assert command("score", "helmet_icl:task=nlu,length=8k", "--records", "r") == 2
    assert (
        command.err == "helm-longctx: error: r:7: references must be strings, found 1\n"
    )


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=attrgetter("name"))
def test_no_output_of_a_model_ends_scoring(benchmark: Benchmark) -> None:
    """No scorer fails on a lone surrogate in an output, in a reference or in the id of a passage."""
    fields = {**OF_BENCHMARK.get(benchmark.name, {}), "qrels": {"1": 1, "\ud83d": 2}}
    predictions = (
        "\ud83d",
        "Answer: A [1].\n- \udc00 The correct answer is (B)",
        "```\n\ud83d\n```",
    )
    references = ["A", "\ud83d"]
    if benchmark.name == "tool_calls":
        # A reference is a call.
        references = [
            json.dumps({"name": text, "arguments": {}}) for text in references
        ]
    for task, prediction, reference in product(
        benchmark.tasks, predictions, references
    ):
        record = {**fields, "prediction": prediction, "references": [reference]}
        assert all(
            isinstance(score, float) for score in task.scores(record).values()
        ), task.name


def test_half_characters_of_prompts(command: Command, tmp_path: Path) -> None:
    """`prompts` prints a prompt with a lone surrogate as JSON escapes it."""
    row = {"context": "half: \ud83d", "question": "Which?", "answers": ["\ud83d"]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row))
    assert (
        command(
            "prompts", f"any_jsonl:path={tmp_path},length=8k,count_with=longctx/words"
        )
        == 0
    )
    assert "half: \ud83d\n" in command.rows[0]["prompt"]
    assert command.rows[0]["references"] == ["\ud83d"]


def test_lines_are_lines_for_every_reader(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`prompts` escapes the characters at which `str.splitlines` ends a line, so its lines can be read back."""
    build_lv_eval(tmp_path)
    monkeypatch.setenv(MIRROR, str(tmp_path))
    assert command("prompts", "lv_eval:dataset=cmrc_mixup,length=16k") == 0
    assert [json.loads(line) for line in command.out.splitlines()] == command.rows
    assert any("\u2028" in row["prompt"] for row in command.rows)


def test_list(command: Command, with_mirror: None) -> None:
    """`list` has a row for each task and says whether its data is present."""
    assert command("list", "--length", "8k", "--json") == 0
    rows = {(row["entry"], row["task"]): row for row in json.loads(command.out)}
    assert {task for _, task in rows} == {
        task.argument for benchmark in BENCHMARKS for task in benchmark.tasks
    }
    assert (
        rows["helmet_icl", "nlu"]["data"]
        == rows["helmet_recall", "json_kv"]["data"]
        == "here"
    )
    assert command("list", "--all") == 0
    assert "banking77" in command.out


def test_list_of_benchmarks(command: Command) -> None:
    """`list` has a line for each benchmark, selects tasks by name, and suggests the nearest names for an unknown one."""
    assert command("list") == 0
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in command.out.splitlines()
        if line[:1] == "│"
    ]
    rows = [row for row in rows if row[0]]  # a long line goes on in the next row
    assert [row[0] for row in rows] == [benchmark.name for benchmark in BENCHMARKS]
    for name, tasks, lengths, about in rows:
        assert tasks == str(
            len(
                next(
                    benchmark for benchmark in BENCHMARKS if benchmark.name == name
                ).tasks
            )
        )
        assert lengths.endswith("-16m") == (
            name
            in (
                "any_jsonl",
                "fresh_text",
                "graphwalks",
                "ppl",
                "ruler",
                "ruler2",
                "tool_calls",
            )
        )
        assert len(about.split()) >= 4
    assert command("list", "aa_lcr", "helmet_cite", "nq", "--json") == 0
    entries = ["aa_lcr", "aa_lcr_v1_1", "helmet_rag", *["helmet_cite"] * 4]
    assert [row["entry"] for row in json.loads(command.out)] == entries


def test_list_without_data(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`list` says that absent data is generated, fetched on first use, or missing from the mirror."""
    assert command("list", "--json") == 0
    states = {"generated", "none at this length"}
    assert {row["data"] for row in json.loads(command.out)} == {
        *states,
        "fetched on first use",
    }
    monkeypatch.setenv(MIRROR, str(tmp_path))
    assert command("list", "--json") == 0
    assert {row["data"] for row in json.loads(command.out)} == {*states, "missing"}


def test_fetch_of_what_is_here(
    command: Command, with_mirror: None, mirror: DataRoot
) -> None:
    """`fetch` prints where data is that is present already."""
    assert command("fetch", "helmet_icl:task=nlu,length=8k") == 0
    assert str(mirror.path) in command.out
    assert command("fetch", "helmet_recall:length=8k") == 0
    assert command.out.split() == [
        str(mirror / path) for path in paths("helmet_recall", 8192)
    ]
    assert command("fetch", "helmet_recall:length=1m") == 0
    assert command.out.count("will be generated") == 4


def paths(entry: str, length: int) -> list[str]:
    return [path for task in HELMET.entries[entry].tasks for path in task.paths(length)]


def test_models(command: Command, tmp_path: Path) -> None:
    """`models` lists the package's deployments and copies them, but does not replace existing files."""
    assert command("models") == 0
    assert "vllm/llama-3.1-8b-instruct" in command.out
    assert "longctx/lexical" in command.out
    assert command("models", "--copy-to", tmp_path / "mine") == 0
    assert yaml.safe_load((tmp_path / "mine/model_deployments.yaml").read_text())[
        "model_deployments"
    ]
    assert command("models", "--copy-to", tmp_path / "mine") == 2
    assert "already has model_deployments.yaml" in command.err


def test_files_of_run_entries_in_the_repository() -> None:
    """The files of HELMET and LV-Eval in `run_specs` are those that their tables give, and none is missing."""
    folder = Path(__file__).parents[2] / "run_specs"
    shown = {
        name: text
        for name, text in conf_files(BENCHMARKS).items()
        if name.startswith(("helmet_", "lv_eval_"))
    }
    assert len(shown) > 10
    for name, text in shown.items():
        assert (folder / name).read_text(encoding="utf-8") == text, name


def test_schema_and_confs(command: Command, tmp_path: Path) -> None:
    """`schema` prints YAML with the run groups, and `confs` writes the files of run entries."""
    assert command("schema") == 0
    assert {"helmet", "lv_eval", "aa_lcr"} <= {
        group["name"] for group in yaml.safe_load(command.out)["run_groups"]
    }
    assert command("confs", tmp_path / "confs") == 0
    assert command.out.splitlines() == [
        str(tmp_path / "confs" / name) for name in conf_files(BENCHMARKS)
    ]
    assert {path.name for path in (tmp_path / "confs").glob("*")} == set(
        conf_files(BENCHMARKS)
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["confs", "file/below"], "'file/below': Not a directory"),
        (["confs", "taken"], "'taken/ruler_8k.conf': Is a directory"),
        (["confs", "x" * 300], "File name too long"),
        (["confs", "x" * 5000], "xxx…': File name too long"),
        (["models", "--copy-to", "file/below"], "'file/below': Not a directory"),
        (
            ["models", "--copy-to", "/proc/none"],
            "'/proc/none': No such file or directory",
        ),
        (
            ["export", "--suite", "s", "--plot", "", "--to", "file/below"],
            "'file/below': Not a directory",
        ),
        (["reference", "lv_eval", "--suite", "s", "-o", "file"], "Not a directory"),
    ],
)
def test_targets_that_cannot_be_written(
    command: Command, tmp_path: Path, arguments: list[str], told: str
) -> None:
    """An output folder or file that cannot be written ends in one line that says what to do."""
    (tmp_path / "file").write_text("")
    (tmp_path / "taken/ruler_8k.conf").mkdir(parents=True)
    (tmp_path / "benchmark_output/runs/s").mkdir(parents=True)
    assert command(*arguments) == 2
    assert told in command.err
    assert command.err.endswith(
        "; name another path, or make it readable and writable\n"
    )
    assert command.err.count("\n") == 1


ODD_FIELDS = [
    (
        "rerank",
        "msmarco",
        "qrels",
        ["3"],
        "grades (whole numbers from 0 to 1000) by passage id, found ['3']",
    ),
    ("rerank", "msmarco", "qrels", {"3": "1"}, "found {'3': '1'}"),
    ("rerank", "msmarco", "qrels", {"3": True}, "found {'3': True}"),
    ("rerank", "msmarco", "qrels", {"3": 10**12}, "found {'3': 1000000000000}"),
    (
        "rerank",
        "msmarco",
        "passages",
        "7",
        "passages must be a whole number, found '7'",
    ),
    ("longqa", "narrativeqa", "judge", ["x"], "judge must be a judge's reply"),
    (
        "longqa",
        "narrativeqa",
        "jury",
        {"a": "b"},
        "jury must be an object with 'replies'",
    ),
    (
        "longqa",
        "narrativeqa",
        "jury",
        {"replies": ["b"]},
        "jury must be an object with 'replies'",
    ),
    ("longqa", "narrativeqa", "jury", "x", "jury must be an object with 'replies'"),
    (
        "summ",
        "multi_lexsum",
        "keypoints",
        "one",
        "keypoints must be a list of texts, found 'one'",
    ),
    (
        "cite",
        "asqa",
        "qa_pairs",
        "x",
        "qa_pairs must be a list of objects with 'short_answers'",
    ),
    (
        "cite",
        "asqa",
        "qa_pairs",
        [{"short_answers": "ab"}],
        "qa_pairs must be a list of objects",
    ),
    (
        "cite",
        "asqa",
        "citations",
        [1],
        "citations must be the result of a judge of citations, found [1]",
    ),
    (
        "cite",
        "qampari",
        "answers",
        ["Paris"],
        "answers must be a list of lists of texts, found ['Paris']",
    ),
]


@pytest.mark.parametrize(("category", "task", "name", "value", "told"), ODD_FIELDS)
def test_odd_fields_of_records(
    command: Command, category: str, task: str, name: str, value: object, told: str
) -> None:
    """A field of a record with an unexpected type ends in one line that names the field."""
    Path("r").write_text(
        json.dumps({"prediction": "1 > 2", "references": ["1"], name: value})
    )
    assert (
        command("score", f"helmet_{category}:task={task},length=8k", "--records", "r")
        == 2
    )
    assert f"r:1: {name} must be" in command.err
    assert told in command.err
    assert command.err.count("\n") == 1
    assert command.out == ""


def test_odd_keywords_of_records(command: Command) -> None:
    """A field of an LV-Eval record with an unexpected type ends in one line that names the field."""
    Path("r").write_text(
        '{"prediction": "", "references": ["a"], "answer_keywords": 3}'
    )
    assert (
        command(
            "score", "lv_eval:dataset=hotpotwikiqa_mixup,length=16k", "--records", "r"
        )
        == 2
    )
    assert "r:1: answer_keywords must be text, found 3" in command.err


@pytest.mark.parametrize(
    ("path", "content", "told"),
    [
        ("helmet/alce/asqa_eval_gtr_top2000.json", "{}", "not a JSON array"),
        ("helmet/alce/asqa_eval_gtr_top2000.json", '[{"question": "a", "docs": []}', "not a complete JSON array"),
        ("helmet/alce/asqa_eval_gtr_top2000.json", '[{"question": "a", "docs": [7]}]', "must be a list of documents"),
        ("helmet/prompts/asqa_revised.json", "[]", "not a prompt file of HELMET's citation tasks"),
        ("helmet/prompts/asqa_revised.json", '{"instruction": "", "demo_prompt": "", "doc_prompt": "", "demos": 5}', "does not have asqa's format"),
    ],
)  # fmt: skip
def test_prompts_of_malformed_files(
    command: Command,
    mirror: DataRoot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    content: str,
    told: str,
) -> None:
    """`prompts` explains a malformed file in one line, as a run does."""
    for kept in (
        "helmet/alce/asqa_eval_gtr_top2000.json",
        "helmet/prompts/asqa_revised.json",
    ):
        target = tmp_path / "mirror" / kept
        target.parent.mkdir(parents=True)
        target.write_bytes(
            (mirror / kept).read_bytes() if kept != path else content.encode()
        )
    monkeypatch.setenv(MIRROR, str(tmp_path / "mirror"))
    assert command("prompts", "helmet_cite:task=asqa,length=8k", "--limit", 1) == 2
    assert str(tmp_path / "mirror" / path) in command.err
    assert told in command.err
    assert command.err.count("\n") == 1


def test_summarize_of_damaged_runs(command: Command, tmp_path: Path) -> None:
    """`summarize` names the file in one line if a statistic occurs twice in it."""
    run = write_run(
        tmp_path / "benchmark_output/runs/s",
        "helmet_recall:task=json_kv,length=8k,model=longctx/null",
        [("p", "a")],
    )
    stats = json.loads((run / "stats.json").read_text())
    (run / "stats.json").write_text(json.dumps(stats * 2))
    assert command("summarize", "--suite", "s") == 2
    assert "stats.json cannot be read (ValueError); repeat that run" in command.err
    assert "Traceback" not in command.err


def test_version(command: Command) -> None:
    """`--version` prints the version."""
    assert command("--version") == 0
    assert VERSION in command.out


BAD = [
    (["prompts", "nope:length=8k"], "unknown run entry 'nope'"),
    (["prompts", "helmet_recall:length=9"], "length='9' is invalid"),
    (["prompts", "helmet_recall:length=8k,task=x"], "task='x' is invalid"),
    (["prompts", "helmet_recall:length=8k,style=x"], "style='x' is invalid"),
    (["prompts", "helmet_icl:length=8k"], "lacks hub/CogComp__trec/train.jsonl"),
    (["score", "helmet_recall:length=8k", "--records", "r"], "task is missing; choose from json_kv"),
    (["score", "helmet_recall:task=json_kv,length=8k", "--records", "none"], "none: No such file"),
    (["score", "helmet_recall:task=json_kv,length=8k", "--records", "r:"], "the file has no rows"),
    (["score", "helmet_recall:task=json_kv,length=8k", "--records", "r:x"], ":1: not a JSON object"),
    (["score", "helmet_recall:task=json_kv,length=8k", "--records", 'r:{"prediction": 1}'], "column 'prediction' must be str, found int"),
    (["score", "helmet_recall:task=json_kv,length=8k", "--records", 'r:{"prediction": ""}'], "column 'references' must be list, found nothing"),
    (["score", "helmet_recall:task=json_kv,length=8k", "--records", 'r:{"prediction": "", "references": "a"}'], "must be list, found str"),
    (["score", "helmet_recall:task=json_kv,length=8k", "--records", 'r:{"prediction": "", "references": [1]}'], "references must be strings, found 1"),
    (["score", "helmet_recall:task=json_kv,length=8k", "--records", "."], "Is a directory"),
    (["list", "--length", "100"], "length='100' is invalid"),
    (["list", "helmt_rag"], "NAME='helmt_rag' is unknown; did you mean helmet_rag, "),
    (["list", "xyz"], "NAME='xyz' is unknown; give aa_lcr, ada_leval, "),
    (["fetch", "helmet_icl:length=8k,task=x"], "task='x' is invalid"),
    (["fetch", "helmet_icl:length=8k"], "nothing is downloaded"),
    (["summarize", "--suite", "none"], "suite='none' is not in benchmark_output/runs; there is no suite yet"),
    (["serve", "--suite", "none"], "suite='none' is not in"),
    (["reference", "lv_eval", "--suite", "../s"], "suite='../s' is invalid; give a folder's name"),
    (["reference", "lv_eval", "--suite", ""], "suite='' is invalid"),
    (["export", "--suite", ".."], "suite='..' is invalid"),
    (["schema", "--suite", "none"], "suite='none' is not in"),
    (["export", "--suite", "none"], "suite='none' is not in"),
    (["export", "--suite", "empty", "--plot", "x.doc"], "plot='x.doc' is invalid; give a file that ends in .png"),
    (["export", "--suite", "empty", "--plot", "no/x.png"], "plot='export/no/x.png': the folder export/no"),
    (["schema", "--suite", "empty"], "has no scores; first use helm-longctx run with it"),
    (["summarize", "--suite", "broken"], "run_spec.json cannot be read (JSONDecodeError); repeat that run"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input(
    command: Command,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each mistake ends in one line on standard error with status 2, and prints nothing on standard output."""
    (tmp_path / "mirror").mkdir()
    (tmp_path / "r").write_text("{}")
    if "empty" in arguments:
        (tmp_path / "benchmark_output/runs/empty").mkdir(parents=True)
    if "broken" in arguments:
        (tmp_path / "benchmark_output/runs/broken/a").mkdir(parents=True)
        (tmp_path / "benchmark_output/runs/broken/a/run_spec.json").write_text(
            '{"groups": '
        )
    if arguments[-1].startswith("r:"):
        (tmp_path / "records").write_text(arguments[-1][2:])
        arguments = [*arguments[:-1], "records"]
    monkeypatch.setenv(MIRROR, str(tmp_path / "mirror"))
    assert command(*arguments) == 2
    assert message in command.err
    assert command.err.count("\n") == 1
    assert command.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["prompts"],
        ["score", "x"],
        ["prompts", "x", "--style", "raw"],
        ["prompts", "x", "--limit", "-1"],
        ["serve", "--suite", "s", "--port", "0"],
        ["export", "--suite", "s", "--to", __file__],
        ["confs", __file__],
    ],
)
def test_wrong_usage(command: Command, arguments: list[str]) -> None:
    """A wrong option ends in one line with status 2 that names the help."""
    assert command(*arguments) == 2
    assert re.fullmatch(
        r"helm-longctx: error: .*; see helm-longctx.* --help\n", command.err
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "--modle", "x"],
            "run: No such option: --modle; did you mean --model?",
        ),
        (
            ["batch", "status", "--suit"],
            "batch status: No such option: --suit; did you mean --suite?",
        ),
        (["summarise"], "No such command 'summarise'. Did you mean 'summarize'?"),
        (["y" * 9000], f"No such command '{'y' * 299}…; see helm-longctx --help\n"),
    ],
)
def test_misspelled_options(
    command: Command, arguments: list[str], message: str
) -> None:
    assert command(*arguments) == 2
    assert command.err.startswith(f"helm-longctx: error: {message}")
    assert command.err.count("\n") == 1
    assert not command.out


def test_help_without_arguments(command: Command) -> None:
    """A command without the sub-command that it needs prints its help."""
    assert command() == 2
    assert "Before and during runs" in command.out + command.err


def test_a_mirror_that_is_no_folder(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error for a wrong HELM_LONGCTX_DATA names the variable and the folder."""
    monkeypatch.setenv(MIRROR, "/no/such/folder")
    assert command("prompts", "helmet_recall:length=8k") == 2
    assert (
        command.err
        == "helm-longctx: error: HELM_LONGCTX_DATA='/no/such/folder' is not a folder; set it to a mirror folder, or unset it\n"
    )


def test_excepthook(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception hook in helm-run prints bad input and unknown models in one line, and leaves other errors unchanged."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    errors.install_excepthook()
    errors.install_excepthook()
    sys.excepthook(InputError, InputError("a\nb"), None)
    sys.excepthook(
        ValueError,
        ValueError("Unknown model or no default model deployment found for model x"),
        None,
    )
    first, second = capsys.readouterr().err.splitlines()
    assert first == "helm-longctx: error: a b"
    assert "for model x; give one of HELM's models" in second
    sys.excepthook(ValueError, ValueError("other"), None)
    assert capsys.readouterr().err == "ValueError: other\n"


def test_no_prompt_in_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """The traceback of an error of HELM's executor does not contain the prompt that a provider's error repeats."""
    prompt = "a line of the prompt\n" * 1000
    inner = ValueError(f"bad request: {prompt}")
    outer = RuntimeError(f"{inner} Request: …")
    outer.__cause__ = inner
    errors._excepthook(RuntimeError, outer, None)
    said = capsys.readouterr().err
    assert "ValueError: bad request: a line" in said
    assert "RuntimeError: bad request: a line" in said
    assert len(said) < 1500


def test_prompts_know_the_tokenizers_of_helm(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`count_with` accepts a name in HELM's registry, also with a mirror that has no tokenizers."""
    (tmp_path / "mirror").mkdir()
    monkeypatch.setenv(MIRROR, str(tmp_path / "mirror"))
    assert (
        command(
            "prompts", "ruler:task=vt,length=4k,num_samples=1,count_with=longctx/words"
        )
        == 0
    ), command.err
    assert [row["task"] for row in command.rows] == ["vt"]


def test_a_failed_download_is_one_line(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of a network library ends in one line without a traceback."""
    monkeypatch.setattr(
        "helm_longctx.cli.records.parse_entries",
        lambda *_: (_ for _ in ()).throw(ConnectionError("x")),
    )
    assert command("prompts", "aa_lcr") == 2
    assert command.err.startswith("helm-longctx: error: a download failed: 'x'")
    assert command.err.count("\n") == 1
