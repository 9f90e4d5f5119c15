"""Tests of runs with several judges, and of commands whose judges give no verdict, as a user types them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from helm_longctx.run_settings import JUDGE_READINGS, JUDGE_WAIT
from tests.support.commands import Command
from tests.support.reasoning import REASONING, outputs
from tests.support.servers.llm import Server, serve

ENTRY = "any_jsonl:path=own,metric=rubric,length=4k"
RUN = (
    "any_jsonl:metric=rubric,length=4k,judge=my_{judge},path=own,model=longctx_lexical"
)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Server]]:
    """Serve three judges: one gives 8 of 10 points, one gives 2, and one gives no verdict."""
    monkeypatch.setenv(JUDGE_WAIT, "0.001")
    monkeypatch.setenv(JUDGE_READINGS, "1")
    Path("own").mkdir()
    rows = [
        {
            "context": "Ada lives in Rome.",
            "question": f"Who lives in Rome {n}?",
            "answers": ["Ada"],
        }
        for n in range(3)
    ]
    Path("own/questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    Path("own/rubric.txt").write_text("Full marks for the name.\n")
    with (
        serve(lambda _: "Good.\nGRADE: 8") as a,
        serve(lambda _: "Bad.\nGRADE: 2") as b,
        serve(lambda _: "GRADE: 10 is what the answer wants.") as c,
    ):
        yield {"a": a, "b": b, "c": c}


def run(command: Command, servers: dict[str, Server], judge: str) -> int:
    """Run the questions with a judge that is given by its address."""
    text = f"entries: ['{ENTRY}']\nmodels: [longctx/lexical]\nsuite: s\njudge: {{judges: [{{name: my/{judge}, url: "
    Path(f"{judge}.yaml").write_text(
        f"{text}'{servers[judge].address}', model: m}}]}}\n"
    )
    return command("run", f"{judge}.yaml")


def test_the_scores_of_two_judges(command: Command, servers: dict[str, Server]) -> None:
    """The printed scores have both judges of the same answers by name, and say which one is in the table."""
    assert run(command, servers, "a") == 0
    assert "Several judges" not in command.out
    assert run(command, servers, "b") == 0
    (line,) = [
        line for line in command.out.splitlines() if line.startswith("Several judges: ")
    ]
    assert re.search(r"80\.0[^;]* by my/a \(in the table\); 20\.0[^;]* by my/b$", line)


def test_judges_without_a_verdict(command: Command, servers: dict[str, Server]) -> None:
    """A run and `rejudge` without any verdict keep their answers, print their scores, and end with a status that is not 0."""
    assert run(command, servers, "c") == 2
    assert (
        f"no judge gave a verdict in {RUN.format(judge='c')}; the answers are stored, so later: helm-longctx"
        in command.err
    )
    assert run(command, servers, "c") == 2
    assert run(command, servers, "a") == 0
    own = RUN.format(judge="a")
    assert (
        command("rejudge", own, "--suite", "s", "--judge", "my/c", "--to", "other") == 2
    )
    assert "0 verdicts given, 3 still missing" in command.err
    assert "no judge gave a verdict in" in command.err


@pytest.mark.parametrize("to", ["../x", "/tmp/x", "a/b", "..", ""])
def test_a_suite_is_no_path(
    to: str, command: Command, servers: dict[str, Server]
) -> None:
    """`rejudge` writes nothing outside the folder of the suites."""
    Path("benchmark_output/runs/s").mkdir(parents=True)
    assert command("rejudge", "--suite", "s", "--judge", "my/b", "--to", to) == 2
    assert f"suite={to!r} is invalid" in command.err


def test_another_judges_suite(command: Command, servers: dict[str, Server]) -> None:
    """`rejudge` refuses a suite in which another judge has judged the same answers, before anything is sent."""
    for judge in ("a", "b"):
        assert run(command, servers, judge) == 0
    asked = len(servers["b"].calls)
    own = RUN.format(judge="a")
    assert (
        command("rejudge", own, "--suite", "s", "--judge", "my/b", "--to", "other") == 0
    )
    # Its verdicts are in the request cache. Each command asks once whether the judge answers.
    assert len(servers["b"].calls) == asked + 1
    asked = len(servers["a"].calls)
    assert (
        command("rejudge", own, "--suite", "s", "--judge", "my/a", "--to", "other") == 2
    )
    assert (
        "to='other': this suite has any_jsonl:metric=rubric,length=4k,path=own,judge=my_b,"
        in command.err
    )
    assert len(servers["a"].calls) == asked


def test_a_run_whose_folder_cannot_be_written(
    command: Command, servers: dict[str, Server]
) -> None:
    """A run and a shard whose folder cannot be made end in one line that names the folder and the reason."""
    folder = Path("benchmark_output/runs/s") / RUN.format(judge="a")
    folder.parent.mkdir(parents=True)
    folder.touch()
    assert run(command, servers, "a") == 2
    (line,) = [line for line in command.err.splitlines() if "error:" in line]
    assert f"{folder}" in line
    assert "name another --output-path" in line
    entry = f"{ENTRY},judge=my/a,model=longctx/lexical"
    assert command("shard", "1/2", "--suite", "s", "-m", "9", entry) == 2
    assert "name another --output-path" in command.err
    assert "Traceback" not in command.err + command.out


def test_reasoning(command: Command, servers: dict[str, Server]) -> None:
    """A judge who judges again reads the answers of all families without their reasoning, as in the first run."""
    answers = list(outputs("Ada").values())
    rows = [
        {
            "context": f"Row {number} of the list.",
            "question": f"Which is {number}?",
            "answers": ["Ada"],
        }
        for number in range(len(answers))
    ]
    Path("own/questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )

    def answer(prompt: str) -> str:
        row = re.search(r"Row (\d+) of the list", prompt)
        return answers[int(row[1])] if row else "ready"

    def grade(prompt: str) -> str:
        return "GRADE: 2" if REASONING in prompt or "Ada" not in prompt else "GRADE: 10"

    with serve(answer) as model, serve(grade) as first, serve(grade) as second:
        servers |= {"d": first, "e": second}
        text = f"entries: ['{ENTRY},count_with=longctx/words']\nsuite: s\n"
        text += f"models: [{{name: my/model, url: '{model.address}', model: m}}]\n"
        text += (
            f"judge: {{judges: [{{name: my/d, url: '{first.address}', model: m}}]}}\n"
        )
        Path("d.yaml").write_text(text)
        assert command("run", "d.yaml") == 0, command.err
        assert run(command, servers, "e") == 0
        options = ["--suite", "s", "--judge", "my/e", "--to", "other"]
        (made,) = Path("benchmark_output/runs/s").glob("any_jsonl*my_model*")
        assert command("rejudge", made.name, *options) == 0, command.err
        (again,) = Path("benchmark_output/runs/other").glob("any_jsonl*my_model*")
        assert len(second.calls) > len(answers) / 2
    for folder in (made, again):
        stats = json.loads((folder / "per_instance_stats.json").read_text())
        scores = [
            stat["mean"]
            for row in stats
            for stat in row["stats"]
            if stat["name"]["name"] == "longctx_score"
        ]
        assert scores == [1.0] * len(answers)


def test_a_damaged_run(
    command: Command, servers: dict[str, Server], caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged run is one line and does not keep the others from being judged; named, it ends the command."""
    assert run(command, servers, "a") == 0
    assert run(command, servers, "b") == 0
    whole, damaged = (
        Path("benchmark_output/runs/s") / RUN.format(judge=judge)
        for judge in ("a", "b")
    )
    contents = {name: (damaged / name).read_bytes() for name in FILES}
    for name in FILES:
        (damaged / name).write_bytes(contents[name][: len(contents[name]) // 2])
        assert command("rejudge", "--suite", "s") == 0, command.err
        assert command.out == f"{whole}\n"
        said = f"{caplog.text}{command.err}"
        caplog.clear()
        (line,) = [line for line in said.splitlines() if "left out" in line]
        assert f"{damaged / name} cannot be read" in line
        assert command("rejudge", damaged.name, "--suite", "s") == 2
        assert f"{damaged / name} cannot be read" in command.err
        (damaged / name).write_bytes(contents[name])


FILES = ("run_spec.json", "scenario_state.json")
"""The files of a run that are read to judge it again."""
