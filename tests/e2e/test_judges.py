"""Tests of judged runs from `helm-run` on, with servers that fail."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import pytest

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import describe_count
from helm_longctx.models.apis.availability import PROMPT
from tests.judging.deployments import write_judges
from tests.judging.grades import grade
from tests.support.leaderboards import stats, table
from tests.support.programs import run, start
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Call, Server, asked_again, serve

TASKS = {
    "narrativeqa": "helmet_longqa:task=narrativeqa,length=8k",
    "infbench_sum": "helmet_summ:task=infbench_sum,length=8k",
    "multi_lexsum": "helmet_summ:task=multi_lexsum,length=8k",
}
ENVIRONMENT = {
    "HELM_LONGCTX_JUDGE_WAIT": "0.01",
    "HELM_LONGCTX_JUDGE_TIMEOUT": "4",
    "ANTHROPIC_API_KEY": "sk-none",
}
LASTING = (Fault.SERVER_ERROR, Fault.REFUSED, Fault.UNREADABLE, Fault.SHORT)


def paid_twice(server: Server) -> list[Call]:
    """Return the questions about answers that were asked again although they had been answered.

    Each process also asks whether the judge exists, which does not count.
    """
    return asked_again(call for call in server.calls if call.prompt != PROMPT)


def questions(server: Server) -> int:
    """Return the number of questions about answers."""
    return sum(call.prompt != PROMPT for call in server.calls)


def fails_for_ever(prompt: str, before: int) -> Fault | None:
    """Return the fault of a call: some questions never get an answer, each for its own reason."""
    return (
        LASTING[len(prompt) % 4]
        if faults.share(0.1, [Fault.EMPTY])(prompt, 0)
        else None
    )


PLANS = {
    "tests/plain": faults.none,
    "tests/faulty": faults.share(0.2, faults.PASSING, seed=5),
    "tests/anthropic": faults.share(0.2, faults.PASSING, seed=6),
    "tests/broken": fails_for_ever,
}


@dataclass(frozen=True)
class Suite:
    """Runs that were made, and the servers of their judges."""

    folder: Path
    servers: dict[str, Server]
    output: str

    def run(self, task: str, judge: str) -> str:
        """Return the name of the run's folder."""
        return f"{TASKS[task]},judge={judge},model=longctx/lexical".replace("/", "_")

    def scores(self, task: str, judge: str) -> dict[str, dict[str, float]]:
        """Return the judged statistics of each instance."""
        path = (
            self.folder
            / "benchmark_output/runs/s"
            / self.run(task, judge)
            / "per_instance_stats.json"
        )
        return {
            row["instance_id"]: {
                stat["name"]["name"]: stat["mean"]
                for stat in row["stats"]
                if stat["name"]["name"].startswith("judge_")
                or stat["name"]["name"] == "longctx_score"
            }
            for row in json.loads(path.read_text())
            if row.get("perturbation") is None
        }


def command(*entries: str, local: Path, runner: bool) -> list[str]:
    arguments = [
        "--run-entries",
        *entries,
        "--suite",
        "s",
        "-m",
        "1000",
        "--local-path",
        str(local),
    ]
    return [
        *arguments,
        *(
            ["--runner-class-name", "helm_longctx.runner.LongContextRunner"]
            if runner
            else []
        ),
    ]


@pytest.fixture(scope="module")
def suite(
    tmp_path_factory: pytest.TempPathFactory, mirror: DataRoot
) -> Iterator[Suite]:
    """Run the three judged tasks with each of four judges."""
    folder = tmp_path_factory.mktemp("judged")
    with (
        serve(grade, PLANS["tests/plain"]) as plain,
        serve(grade, PLANS["tests/faulty"]) as faulty,
        serve(grade, PLANS["tests/anthropic"]) as anthropic,
        serve(grade, PLANS["tests/broken"]) as broken,
    ):
        servers = dict(zip(PLANS, (plain, faulty, anthropic, broken), strict=True))
        addresses = {
            name: None if server is anthropic else server.openai
            for name, server in servers.items()
        }
        local = write_judges(folder / "models", addresses)
        entries = [
            f"{entry},judge={judge},model=longctx/lexical"
            for judge in PLANS
            for entry in TASKS.values()
        ]
        environment = {
            **ENVIRONMENT,
            "HELM_LONGCTX_DATA": str(mirror.path),
            "ANTHROPIC_BASE_URL": anthropic.address,
        }
        made = run(
            "helm-run",
            *command(*entries, local=local, runner=True),
            folder=folder,
            **environment,
        )
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr
        yield Suite(folder, servers, made.stdout + made.stderr)


@pytest.mark.parametrize("task", TASKS)
def test_without_faults(suite: Suite, task: str) -> None:
    """Without faults every answer is judged, and scores differ."""
    scores = suite.scores(task, "tests/plain")
    assert len(scores) > 8
    assert all(values["judge_failed"] == 0 for values in scores.values())
    assert len({values["longctx_score"] for values in scores.values()}) > 2
    (mean,) = [
        v
        for (name, sub), v in stats(
            suite.folder, suite.run(task, "tests/plain")
        ).items()
        if name == "longctx_score"
    ]
    assert mean == pytest.approx(
        fmean(values["longctx_score"] for values in scores.values())
    )


@pytest.mark.parametrize("judge", ["tests/faulty", "tests/anthropic"])
def test_a_fifth_of_all_calls_fails(suite: Suite, judge: str) -> None:
    """If a fifth of all calls fail, every score is the same as without faults, and no answered question is asked again."""
    server = suite.servers[judge]
    assert 0.13 < server.failed().total() / len(server.calls) < 0.27
    assert len(server.failed()) >= 6
    for task in TASKS:
        assert suite.scores(task, judge) == suite.scores(task, "tests/plain")
    assert paid_twice(server) == []


@pytest.mark.parametrize("task", TASKS)
def test_questions_that_are_never_answered(suite: Suite, task: str) -> None:
    """Questions that are never answered are counted and in no mean, and all other scores are the same as without faults."""
    plain, broken = (
        suite.scores(task, judge) for judge in ("tests/plain", "tests/broken")
    )
    failed = {
        instance
        for instance, statistics in broken.items()
        if statistics["judge_failed"]
    }
    assert 0 < len(failed) < len(broken)
    for instance, statistics in broken.items():
        if instance in failed:
            assert {name for name in statistics if "strict" not in name} == {
                "judge_failed"
            }
        else:
            assert statistics == plain[instance]
    statistics = stats(suite.folder, suite.run(task, "tests/broken"))
    assert statistics["judge_failed", task] == pytest.approx(len(failed) / len(broken))
    others = [
        scores["longctx_score"]
        for instance, scores in plain.items()
        if instance not in failed
    ]
    assert statistics["longctx_score", task] == pytest.approx(fmean(others))
    assert "judge tests/broken gave no verdict on" in suite.output


def test_a_run_that_is_killed_while_it_is_judged(
    tmp_path: Path, mirror: DataRoot
) -> None:
    """A run with HELM's runner that was killed while it was judged asks only for the missing verdicts when it is repeated."""
    asked = {
        "HELM_LONGCTX_JUDGE_PARALLEL": "3",
        "HELM_LONGCTX_DATA": str(mirror.path),
        **ENVIRONMENT,
    }
    asked["HELM_LONGCTX_JUDGE_TIMEOUT"] = "100"
    answered = faults.share(0.5, [Fault.TIMEOUT], seed=1)
    with serve(grade, answered) as server:
        local = write_judges(tmp_path / "models", {"tests/slow": server.openai})
        entry = f"{TASKS['infbench_sum']},judge=tests/slow,model=longctx/lexical"
        process = start(
            "helm-run",
            *command(entry, local=local, runner=False),
            folder=tmp_path,
            **asked,
        )
        # Once all three threads wait for an answer, they have kept all those that they got before.
        while server.failed()[Fault.TIMEOUT] < 3 and process.poll() is None:
            time.sleep(0.05)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        before = len(server.calls)
        assert before > server.failed().total() == 3
        server.plan = faults.none
        made = run(
            "helm-run",
            *command(entry, local=local, runner=False),
            folder=tmp_path,
            **asked,
        )
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    assert len(server.calls) > before
    assert paid_twice(server) == []
    statistics = stats(tmp_path, entry.replace("/", "_"))
    assert statistics["judge_failed", "infbench_sum"] == 0
    summarized = run("helm-longctx", "summarize", "--suite", "s", folder=tmp_path)
    assert summarized.returncode == 0, summarized.stderr
    shown, *_ = table(tmp_path, "helmet_infbench_sum", "Score")[
        "Lexical baseline"
    ].values()
    assert float(str(shown).split()[0]) == pytest.approx(
        statistics["longctx_score", "infbench_sum"], abs=5e-4
    )
    assert {call.question for call in server.calls if not call.fault} == {
        call.question for call in server.calls
    }


def test_a_judge_without_a_key(tmp_path: Path, mirror: DataRoot) -> None:
    """Our runner refuses a judge without a key before the model is asked; HELM's runner keeps answers without scores."""
    entry = (
        f"{TASKS['narrativeqa']},judge=openai/gpt-4o-2024-05-13,model=longctx/lexical"
    )
    environment = {
        "HELM_LONGCTX_DATA": str(mirror.path),
        "OPENAI_API_KEY": "",
        "GPT_JUDGE_API_KEY": "",
    }
    made = run(
        "helm-run",
        *command(entry, local=tmp_path, runner=True),
        folder=tmp_path,
        **environment,
    )
    assert made.returncode != 0
    assert "GPT_JUDGE_API_KEY" in made.stderr.splitlines()[-1]
    assert not list(tmp_path.rglob("scenario_state.json"))
    assert not list(tmp_path.rglob("answers.jsonl"))
    made = run(
        "helm-run",
        *command(entry, local=tmp_path, runner=False),
        folder=tmp_path,
        **environment,
    )
    assert made.returncode == 0, made.stdout[-3000:] + made.stderr
    assert "answers are not judged" in made.stderr
    statistics = stats(tmp_path, entry.replace("/", "_"))
    assert statistics["judge_failed", "narrativeqa"] == 1
    assert ("longctx_score", "narrativeqa") not in statistics


def test_the_official_judge_was_withdrawn(tmp_path: Path, mirror: DataRoot) -> None:
    """A run with the key of the withdrawn official judge ends in one line before the model is asked."""
    entry = f"{TASKS['narrativeqa']},model=longctx/lexical"
    with serve(grade, faults.always(Fault.GONE)) as server:
        environment = {
            "HELM_LONGCTX_DATA": str(mirror.path),
            "OPENAI_API_KEY": "sk-none",
            "GPT_JUDGE_API_KEY": "",
        }
        environment["OPENAI_BASE_URL"] = server.openai
        made = run(
            "helm-run",
            *command(entry, local=tmp_path, runner=True),
            folder=tmp_path,
            **environment,
        )
    assert made.returncode != 0
    assert (
        "openai/gpt-4o-2024-05-13 does not exist or was withdrawn"
        in made.stderr.splitlines()[-1]
    )
    assert "judge=none" in made.stderr.splitlines()[-1]
    assert len(server.calls) == 1
    assert not list(tmp_path.rglob("answers.jsonl"))


def test_rejudge(suite: Suite, tmp_path: Path, mirror: DataRoot) -> None:
    """`rejudge` asks only for failed verdicts, writes another judge's scores to another suite, and never asks the model."""
    folder = tmp_path / "copy"
    shutil.copytree(suite.folder, folder)
    shutil.rmtree(folder / "models/cache/longctx", ignore_errors=True)
    broken, plain = (suite.servers[f"tests/{name}"] for name in ("broken", "plain"))
    before = len(broken.calls)
    broken.plan = faults.none
    environment = {
        **ENVIRONMENT,
        "HELM_LONGCTX_JUDGE_READINGS": "6",
        "HELM_LONGCTX_DATA": str(mirror.path),
    }
    options = ["--suite", "s", "--local-path", folder / "models"]
    name = suite.run("narrativeqa", "tests/broken")
    failed = sum(
        bool(values["judge_failed"])
        for values in suite.scores("narrativeqa", "tests/broken").values()
    )
    made = run("helm-longctx", "rejudge", *options, name, folder=folder, **environment)
    assert (
        f"{name}: {describe_count(failed, 'verdict')} recovered, 0 still missing"
        in made.stderr.splitlines()
    )
    copied = replace(suite, folder=folder)
    assert copied.scores("narrativeqa", "tests/broken") == suite.scores(
        "narrativeqa", "tests/plain"
    )
    assert len(broken.calls) > before
    assert paid_twice(broken) == []
    refused = run(
        "helm-longctx",
        "rejudge",
        *options,
        name,
        "--judge",
        "tests/plain",
        folder=folder,
        **environment,
    )
    assert refused.returncode == 2
    assert "--to" in refused.stderr
    rival = suite.run("narrativeqa", "tests/faulty")
    refused = run(
        "helm-longctx",
        "rejudge",
        *options,
        name,
        rival,
        "--judge",
        "none",
        "--to",
        "one",
        folder=folder,
        **environment,
    )
    assert refused.returncode == 2
    assert (
        f"runs {name} and {rival} would both be written to"
        in refused.stderr.splitlines()[-1]
    )
    assert not list(folder.glob("benchmark_output/runs/one/helmet*"))
    nobody = ["--judge", "none", "--to", "nobody"]
    made = run(
        "helm-longctx", "rejudge", *options, name, *nobody, folder=folder, **environment
    )
    target = folder / "benchmark_output/runs/nobody" / suite.run("narrativeqa", "none")
    assert (made.returncode, made.stdout.splitlines()[-1]) == (
        0,
        str(target.relative_to(folder)),
    ), made.stderr
    assert (
        "judge_score" not in (target / "stats.json").read_text()
    )  # no other judge's score under this name
    known = questions(plain)
    other = ["--judge", "tests/plain", "--to", "other"]
    made = run(
        "helm-longctx", "rejudge", *options, name, *other, folder=folder, **environment
    )
    target = (
        folder / "benchmark_output/runs/other" / suite.run("narrativeqa", "tests/plain")
    )
    assert (made.returncode, made.stdout.splitlines()[-1]) == (
        0,
        str(target.relative_to(folder)),
    ), made.stderr
    assert questions(plain) == known  # it was asked the same in its own run
    spec = json.loads((target / "run_spec.json").read_text())
    assert spec["annotators"][0]["args"] == {"judge": "tests/plain"}
    assert spec["groups"] == [
        f"helmet_{name}_8k_judged_by_tests--plain" for name in ("longqa", "narrativeqa")
    ]


def test_each_judge_has_columns_of_its_own(suite: Suite) -> None:
    """The runs of all judges are in one suite, and no score is a mean over two judges."""
    made = run("helm-longctx", "summarize", "--suite", "s", folder=suite.folder)
    assert made.returncode == 0, made.stderr
    for task in TASKS:
        row = table(suite.folder, f"helmet_{task}", "Score")["Lexical baseline"]
        for judge in PLANS:
            (shown,) = [
                value for title, value in row.items() if f"by {judge} 8k" in title
            ]
            means = stats(suite.folder, suite.run(task, judge))
            assert float(str(shown).split()[0]) == pytest.approx(
                means["longctx_score", task], abs=5e-4
            )
