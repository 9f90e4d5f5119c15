"""Tests that mistakes on `helm-run`'s command line end in one line, if the command concerns this package."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from helm.benchmark.run import build_parser

import helm_longctx.plugin  # noqa: F401  # registers the entries and the baselines
from helm_longctx.helm.command_line import (
    asks_for_ours,
    check_command_line,
    find_problems,
)
from helm_longctx.run_settings import MIRROR
from tests.support.programs import run

GOOD = "--run-entries helmet_recall:length=8k,model=longctx/lexical"


def problems(command: str) -> list[str]:
    """Return the mistakes in a command that has a suite and `-m` unless the command gives them."""
    args = build_parser().parse_args(["-m", "10", *shlex.split(command)])
    return (
        [str(problem) for problem in find_problems(args)] if asks_for_ours(args) else []
    )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("-r helmet_recal:length=8k,model=longctx/lexical", "unknown run entry 'helmet_recal'; did you mean helmet_recall?"),
        ("-r helmet:length=8k,model=longctx/lexical", "helmet is a benchmark, and helm-run takes only run entries; give helmet_recall, "),
        ("-r helmet_recall:lenght=8k,model=longctx/lexical", "unknown argument lenght='8k'; did you mean length? Choose from "),
        ("-r helmet_recall:length=8k,model", "expected name=value, found 'model'"),
        ("-r helmet_recall:length=8k", "helmet_recall names no model"),
        ("-r 'helmet_recall:length=8k, model=longctx/lexical'", "a space around the argument ' model'"),
        ("-r helmet_recall:length=8k,model=../x", "helmet_recall: model='../x' is not a model; give one of HELM's models"),
        ("-r helmet_recall:length=8k,model=longctx/lexica", "is not a model; did you mean longctx/lexical? Give one of "),
        ("-r helmet_recall:length=8k --models-to-run longctx/nul", "--models-to-run 'longctx/nul' is not a model"),
        (f"{GOOD} -n 0", "-n 0 is invalid; give a whole number from 1"),
        (f"{GOOD} -m -1", "-m -1 is invalid; give a whole number from 1"),
        (f"{GOOD} -m 0", "-m 0 is invalid"),
        (f"{GOOD} --suite a/b", "--suite 'a/b' is invalid; give a folder's name"),
        (f"{GOOD} --suite ..", "--suite '..' is invalid"),
        (f"{GOOD} --suite 'a\nb'", "--suite 'a\\nb' is invalid; give a folder's name of at most 255 bytes, without '/', line"),
        (f"{GOOD} --suite {'s' * 5000}", "of at most 255 bytes"),
        (f"{GOOD} --runner-class-name helm_longctx.runner.LongRunner", "did you mean helm_longctx.runner.LongContextRunner?"),
        (f"{GOOD} --runner-class-name pathlib.Path", "--runner-class-name 'pathlib.Path' is not a runner"),
        (f"{GOOD} --runner-class-name Runner", "--runner-class-name 'Runner' is not a runner"),
        ("-c run_specs/helmet_8k.conf", "--conf-paths 'run_specs/helmet_8k.conf': No such file or directory; helm-longctx"),
        ("-r helmet_recall:length=8k,model=longctx/null,stop=newline", "HELM refuses stop='newline': Unknown value: newline"),
        ("-r helmet_recall:length=8k,model=longctx/null,stop=newline,increase_max_tokens=more", "HELM refuses stop='newline': Unknown"),
        ("-r helmet_recall:length=8k,model=longctx/null,increase_max_tokens=more,stop=newline", "HELM refuses increase_max_tokens='more': "),
        (f"{GOOD} -c broken.conf", "--conf-paths 'broken.conf' is not a file of run entries: "),
        ("-c wrong.conf", "helmet_recall: unknown argument lenght='8k'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(command: str, message: str) -> None:
    """A mistake ends in one line that names the argument and the value, and says what to give."""
    Path("broken.conf").write_text("entries: [{description: ", encoding="utf-8")
    entry = (
        '{description: "helmet_recall:lenght=8k,model=longctx/lexical", priority: 1}'
    )
    Path("wrong.conf").write_text(f"entries: [{entry}]", encoding="utf-8")
    (line,) = problems(command)
    assert message in line
    assert len(line) < 500


def test_every_mistake_is_named_at_once() -> None:
    """All mistakes in options and entries are named at once."""
    assert (
        len(problems("-r helmet_recal:model=a/b lv_eval:length=16k -n 0 --suite a/b"))
        == 4
    )


def test_missing_data_is_named_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """HELM's own runner makes the other runs, but what an entry lacks is named before, with the command that fetches it."""
    monkeypatch.setenv(MIRROR, str(tmp_path))
    names = ("helmet_rag:task=nq,length=8k", "helmet_icl:task=nlu,length=8k")
    entries = " ".join(f"{name},model=longctx/null" for name in names)
    assert not problems(f"-r {entries}")
    check_command_line(
        [
            "helm-run",
            "--suite",
            "s",
            "-m",
            "1",
            *shlex.split(f"-r {GOOD.split()[1]} {entries}"),
        ]
    )
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    for line, name, path in zip(
        lines, names, ("nq-dev-multikilt", "nlu_evaluation_data"), strict=True
    ):
        assert path in line
        assert line.endswith(
            f"get it with: helm-longctx fetch {name} --to {tmp_path}; the other runs are made"
        )


@pytest.mark.parametrize(
    "command",
    [
        GOOD,
        "-r helmet_recall:length=8k --models-to-run longctx/lexical longctx/null",
        "-r helmet_recall:length=8k,model=text,num_outputs=1",
        "-r helmet_recall:length=8k,model=longctx/null,increase_max_tokens=10,stop=hash",
        "-r helmet_recall:length=8k,model=some/later --plugins my.plugin",
        "-c low.conf --priority 1",
        # Not ours: HELM says what it says.
        "-r mmlu:subject=anatomy,model=a/b -n 0 -m 0 --suite a/b --runner-class-name no.Runner",
        "-r nothing:like=ours -c no/such.conf",
        "-c broken.conf",
        "-r mmlu:subject=anatomy --models-to-run no/such",
    ],
)
def test_what_is_right_or_not_ours_is_left_alone(command: str) -> None:
    """Valid commands and commands of other packages are accepted, also with models that are registered later."""
    Path("broken.conf").write_text("entries: [{description: ", encoding="utf-8")
    Path("low.conf").write_text(
        'entries: [{description: "helmet_recal:x", priority: 4}]', encoding="utf-8"
    )
    assert problems(command) == []


def test_only_helm_run_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """Only `helm-run` is checked; each mistake goes to standard error, and the exit status is 1."""
    wrong = ["-m", "0", *shlex.split(GOOD)]
    check_command_line(["/usr/bin/helm-longctx", *wrong])
    check_command_line(["/usr/bin/helm-run", "-m", "1", *shlex.split(GOOD)])
    with pytest.raises(SystemExit) as ended:
        check_command_line(["/usr/bin/helm-run", "-n", "0", *wrong])
    assert ended.value.code == 1
    assert capsys.readouterr().err.splitlines() == [
        "helm-longctx: error: -n 0 is invalid; give a whole number from 1",
        "helm-longctx: error: -m 0 is invalid; give a whole number from 1",
    ]


def test_helm_run_ends_before_anything_is_made(tmp_path: Path) -> None:
    """The real `helm-run` ends with status 1 and a line for each mistake, without a traceback or a folder."""
    done = run(
        "helm-run",
        "-r",
        "helmet_recal:length=8k",
        "--suite",
        "a/b",
        "-m",
        "0",
        folder=tmp_path,
    )
    assert done.returncode == 1
    assert done.stderr.count("helm-longctx: error: ") == 3
    assert "Traceback" not in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


def test_helms_own_runner_names_the_next_command(tmp_path: Path) -> None:
    """After runs with HELM's own runner, one line names the command that shows the scores, and why not helm-summarize."""
    entry = "helmet_recall:task=json_kv,length=4k,num_samples=1,model=longctx/lexical"
    done = run(
        "helm-run", "--run-entries", entry, "--suite", "s", "-m", 9, folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    lines = [
        line
        for line in (done.stdout + done.stderr).splitlines()
        if "helm-summarize" in line
    ]
    assert len(lines) == 1
    assert (
        "Next: helm-longctx summarize --suite s -o benchmark_output (helm-summarize shows these scores only with"
        in lines[0]
    )
