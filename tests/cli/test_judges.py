"""Tests of `judge-check` and `judge-agreement` as a user types them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from helm_longctx.benchmarks.helmet.rubrics import checks
from helm_longctx.data.root import DataRoot
from helm_longctx.run_settings import JUDGE_WAIT, MIRROR
from tests.judging.characters import Characters
from tests.judging.deployments import write_judges
from tests.support.commands import Command
from tests.support.fabricate_books import build_rubrics
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Server]]:
    """Serve a judge that is right except for failures, and a judge that likes everything. `local` has both."""
    monkeypatch.setenv(JUDGE_WAIT, "0.001")
    build_rubrics(Path("root"))
    monkeypatch.setenv(MIRROR, "root")
    characters = Characters(checks(DataRoot(Path("root"), mirror=True)))
    plan = faults.always(Fault.UNREADABLE, characters.some(5))
    with (
        serve(characters.perfect, plan) as right,
        serve(characters.generous) as generous,
    ):
        running = {"tests/right": right, "tests/generous": generous}
        write_judges(
            Path("local"), {name: server.openai for name, server in running.items()}
        )
        yield running


def check_of_both(repeats: int) -> tuple[object, ...]:
    """Return the command that checks both judges."""
    return (
        "judge-check",
        "--judge",
        "tests/right+tests/generous",
        "--repeats",
        repeats,
        "--local-path",
        "local",
    )


def test_judge_check(command: Command, servers: dict[str, Server]) -> None:
    """`judge-check` prints tables of both judges, writes JSON and a picture, and sends no answered request again."""
    arguments = check_of_both(repeats=2)
    assert command(*arguments, "--json", "out.json", "--plot", "out.png") == 0
    for text in (
        "tests/right",
        "tests/generous",
        "fluent nonsense",
        "null answers earn",
        "the reply has no verdict",
    ):
        assert text in command.out
    assert "Traceback" not in command.err
    report = json.loads(Path("out.json").read_text())
    moved = {
        name: {m["name"]: m["value"] for m in several}
        for name, several in report["measures"].items()
    }
    assert moved["tests/right"]["null answers earn"] == 0.0
    assert moved["tests/generous"]["null answers earn"] == 1.0
    kinds = report["kinds"]["tests/right"].values()
    unread = [row for row in report["verdicts"] if row["state"] == "unreadable"]
    assert sum(kind["unreadable"] for kind in kinds) == len(unread) > 0
    assert {(row["score"], row["right"], row["verdict"]) for row in unread} == {
        (None, None, None)
    }
    assert len(report["verdicts"]) == 2 * 2 * 60
    assert {row["raters"] for row in report["agreement"]} == {
        "expected / tests/right",
        "expected / tests/generous",
        "tests/generous / tests/right",
    }
    assert Path("out.png").stat().st_size > 20_000
    paid = len(servers["tests/generous"].calls)
    assert paid == 2 * (42 + 3 * 18)
    assert command(*arguments) == 0
    assert len(servers["tests/generous"].calls) == paid


def test_a_judge_without_a_verdict(
    command: Command, servers: dict[str, Server]
) -> None:
    """A judge none of whose replies has a verdict is shown in the tables and saved, and the status is not 0."""
    servers["tests/right"].plan = faults.always(Fault.UNREADABLE, lambda prompt: True)
    arguments = check_of_both(repeats=1)
    assert command(*arguments, "--save", "out.json") == 2
    assert "judge-check: no reply of tests/right has a verdict" in command.err
    assert "unreadable" in command.out
    assert Path("out.json").is_file()


def test_compare(command: Command, servers: dict[str, Server]) -> None:
    """`judge-check --compare` prints the tables of one check of all judges from saved results, and sends nothing."""
    for name in ("right", "generous"):
        assert (
            command(
                "judge-check",
                "--judge",
                f"tests/{name}",
                "--repeats",
                1,
                "--save",
                f"{name}.json",
                "--local-path",
                "local",
            )
            == 0
        )
    asked = [len(server.calls) for server in servers.values()]
    compare = ("judge-check", "--compare", "right.json", "generous.json")
    assert command(*compare, "--save", "both.json", "--plot", "both.png") == 0
    for text in (
        "Differences between judges in the share of right",
        "tests/right",
        "tests/generous",
        "100.0",
    ):
        assert text in command.out
    saved = command.out
    check = check_of_both(repeats=1)
    assert command(*check, "--save", "joined.json") == 0
    assert command.out.endswith(saved)  # HELM prints a line before
    assert [len(server.calls) for server in servers.values()] == asked
    both, one = (
        json.loads(Path(name).read_text()) for name in ("both.json", "joined.json")
    )
    assert both["measures"] == one["measures"]
    (difference,) = both["differences"]
    assert difference["judges"] == ["tests/right", "tests/generous"]
    assert difference["effect"]["low"] > 0.3
    assert difference["p_value"] < 0.001
    assert command("judge-check", "--compare", "both.json", "--plot", "again.png") == 0
    assert Path("again.png").read_bytes() == Path("both.png").read_bytes()
    assert command("judge-check", "--compare", "both.json", "right.json") == 2
    assert "judge tests/right is in both.json and in right.json" in command.err
    right = json.loads(Path("right.json").read_text())
    Path("right.json").write_text(json.dumps({**right, "checks": "another set"}))
    assert (
        command("judge-check", "--compare", "right.json", "--compare", "generous.json")
        == 2
    )
    assert "are checks of different answers or by different rubrics" in command.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judge", "tests/none"], "HELM has no deployment 'tests/none'"),
        (["--judge", "tests/right+tests/right"], "names a judge twice"),
        (["--judge", "tests/right", "--plot", "p.gif"], "plot='p.gif' is invalid"),
        (
            ["--judge", "tests/right", "--plot", "no/p.png"],
            "plot='no/p.png': the folder no",
        ),
        (
            ["--judge", "tests/right", "--save", "no/p.json"],
            "save='no/p.json': the folder no",
        ),
        (["--judge", "tests/right", "--json", "local"], "save='local' is a folder"),
        ([], "judge-check needs --judge DEPLOYMENT or --compare FILE"),
        (["a.json"], "FILE='a.json' is invalid"),
        (["--compare", "a.json"], "compare='a.json' cannot be read: No such file"),
        (
            ["--compare", "local/model_metadata.yaml"],
            "was not saved by judge-check --save (JSONDecodeError)",
        ),
    ],
)
def test_mistakes(
    command: Command, servers: dict[str, Server], arguments: list[str], message: str
) -> None:
    """A mistake ends in one line with status 2 before anything is sent."""
    assert command("judge-check", *arguments, "--local-path", "local") == 2
    assert message in command.err
    assert command.err.count("\n") == 1
    assert not any(server.calls for server in servers.values())


def test_settings(
    command: Command, servers: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong value of a variable is reported before anything is sent."""
    monkeypatch.setenv(JUDGE_WAIT, "soon")
    assert (
        command("judge-check", "--judge", "tests/right", "--local-path", "local") == 2
    )
    assert f"{JUDGE_WAIT}='soon' is invalid" in command.err
    assert not servers["tests/right"].calls


def test_without_rubrics(
    command: Command, servers: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mirror without rubrics is reported with the command that fetches them."""
    Path("empty").mkdir()
    monkeypatch.setenv(MIRROR, "empty")
    assert (
        command("judge-check", "--judge", "tests/right", "--local-path", "local") == 2
    )
    assert "lacks helmet/scripts/eval_gpt4_longqa.py" in command.err
    assert "helm-longctx fetch" in command.err
    assert not servers["tests/right"].calls


def test_judge_agreement(command: Command) -> None:
    """`judge-agreement` prints and saves coefficients with intervals, and counts labels of other answers."""
    grades = [0, 1, 2, 3] * 5
    judged = [
        {"id": str(n), "judge_score": grade / 3} for n, grade in enumerate(grades)
    ]
    labels = [
        {"id": str(n), "judge_score": ((grade + (n < 5)) % 4) / 3}
        for n, grade in enumerate(grades)
    ]
    for name, rows in (
        ("judged", judged),
        ("labels", [*labels, {"id": "x", "judge_score": 0}]),
    ):
        Path(f"{name}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows)
        )
    assert (
        command(
            "judge-agreement",
            "--judged",
            "judged.jsonl",
            "--labels",
            "labels.jsonl",
            "--json",
            "a.json",
        )
        == 0
    )
    assert "human / judge" in command.out
    assert "1 labels do not belong to a judged instance" in command.out
    report = json.loads(Path("a.json").read_text())
    (row,) = report["agreement"]
    assert (row["of"], row["n"], row["same"]["value"]) == ("judge_score", 20, 0.75)
    assert row["kappa"]["value"] == pytest.approx(2 / 3, abs=0.01)
    assert row["kappa"]["low"] < 0.6 < 0.75 < row["kappa"]["high"]
    assert command("judge-agreement", "--judged", "judged.jsonl") == 2
    assert "labels are missing" in command.err
