"""Tests of conversations, output lengths and repeated, judged questions, from `helm-run` with a real server to the page."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from helm_longctx.benchmarks.aa_lcr.tasks import AA_LCR as AA_LCR_BENCHMARK
from helm_longctx.benchmarks.ada_leval import BENCHMARK as ADA_LEVAL
from helm_longctx.benchmarks.longproc.data import TASKS, problems
from helm_longctx.benchmarks.scbench import BENCHMARK as SCBENCH
from helm_longctx.data.root import DataRoot
from helm_longctx.models.apis.availability import PROMPT
from helm_longctx.tasks.task import Settings
from tests.benchmarks.aa_lcr.fabricate import build_aa_lcr
from tests.benchmarks.ada_leval.fabricate import build_ada_leval
from tests.benchmarks.longproc.fabricate import build_longproc
from tests.benchmarks.mrcr.fabricate import build_mrcr, use_encoding, write_encoding
from tests.benchmarks.scbench.fabricate import build_scbench
from tests.e2e.browser import open_page, shown
from tests.judging.deployments import write_judges
from tests.support.leaderboards import stats
from tests.support.programs import run, start
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve

MRCR = "mrcr:length=8k"
LONGPROC = "longproc:length=2k"
AA_LCR = "aa_lcr:judge=tests/judge"
LONG = "mrcr:needles=8,length=16k"
TSORT = "ada_leval_tsort:length=2k"
KEYS = "scbench_multi_turn:task=kv"
ENTRIES = (MRCR, LONG, LONGPROC, AA_LCR, TSORT, KEYS)
RUNNER = ["--runner-class-name", "helm_longctx.runner.LongContextRunner"]
WRAPPED = {"html_to_tsv": "```tsv\n{}\n```", "path_traversal": "<Route>\n{}\n</Route>"}
"""How an output of a task holds the expected result."""


@dataclass(frozen=True)
class Data:
    """Fabricated data, and the right answers to its prompts in the form in which the server gets them."""

    root: Path
    encoding: Path
    conversations: list[list[dict[str, str]]]
    answers: dict[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of processes that read the data."""
        return {"HELM_LONGCTX_DATA": str(self.root)}

    @property
    def prepare(self) -> Callable[[], object]:
        """Return what these processes call first."""
        return partial(use_encoding, self.encoding)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    root = tmp_path_factory.mktemp("data")
    rows = [
        json.loads(line)
        for line in build_mrcr(root).read_text(encoding="utf-8").splitlines()
    ]
    conversations = [json.loads(row["prompt"]) for row in rows]
    answers = {
        "\n".join(m["content"] for m in c): r["answer"]
        for c, r in zip(conversations, rows, strict=True)
    }
    build_longproc(root)
    for name, files in TASKS.items():
        for problem in (
            problems(name, "2k", root / "longproc") if "2k" in files.levels else ()
        ):
            answers[problem.prompt] = WRAPPED.get(name, "{}").format(problem.reference)
    build_aa_lcr(root)
    questions = AA_LCR_BENCHMARK.tasks[0]
    for example in questions.load(
        questions, Settings(None), DataRoot(root, mirror=True)
    ):
        answers[questions.prompt(example).user_turn] = example.references[0]
    tsort = ADA_LEVAL.task("textsort")
    for example in tsort.load(
        tsort, Settings(2048), DataRoot(build_ada_leval(root), mirror=True)
    ):
        answers[example.fields["context"]] = f"Answer: {example.references[0]}"
    keys = SCBENCH.task("kv")
    build_scbench(root)
    for example in keys.load(keys, Settings(None), DataRoot(root, mirror=True)):
        answers["\n".join(message["content"] for message in example.messages)] = (
            example.references[0]
        )
        conversations += (
            [[dict(message) for message in example.messages]]
            if len(example.messages) > 1
            else []
        )
    return Data(
        root,
        write_encoding(tmp_path_factory.mktemp("encoding")),
        conversations,
        answers,
    )


def judge(prompt: str) -> str:
    """Reply whether the candidate is the official answer, without a verdict on one answer."""
    official, _, candidate = prompt.partition("The OFFICIAL ANSWER: ")[2].partition(
        "\nCANDIDATE ANSWER TO ASSESS: "
    )
    same = (
        candidate.removesuffix("\n\nReply only with CORRECT or INCORRECT.") == official
    )
    return "I cannot say." if official == "NA" else "CORRECT" if same else "INCORRECT"


@dataclass(frozen=True)
class Runs:
    """The folder of the runs, and the servers that they ask."""

    folder: Path
    data: Data
    model: Server
    judge: Server

    def command(self, *entries: str, runner: bool = True) -> list[str]:
        """Return the arguments of `helm-run`."""
        named = [f"{entry},model=tests/model" for entry in entries]
        line = [
            "--run-entries",
            *named,
            "--suite",
            "s",
            "-m",
            "1000",
            "--local-path",
            str(self.folder / "models"),
        ]
        return [*line, *(RUNNER if runner else [])]

    def make(self, *entries: str, runner: bool = True) -> None:
        """Run `helm-run`."""
        line = self.command(*entries, runner=runner)
        made = run(
            "helm-run",
            *line,
            folder=self.folder,
            prepare=self.data.prepare,
            **self.data.environment,
        )
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr

    def stats(self, entry: str) -> dict[tuple[str, str | None], float]:
        """Return a run's statistics."""
        return stats(self.folder, f"{entry},model=tests_model".replace("/", "_"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, data: Data) -> Iterator[Runs]:
    folder = tmp_path_factory.mktemp("runs")
    with serve(lambda prompt: data.answers[prompt]) as model, serve(judge) as judging:
        write_judges(
            folder / "models",
            {"tests/model": model.openai, "tests/judge": judging.openai},
        )
        runs = Runs(folder, data, model, judging)
        runs.make(*ENTRIES)
        yield runs


def check(runs: Runs) -> None:
    """Check that conversations arrived as messages, questions three times, and that right answers have all their scores."""
    asked = [body["messages"] for body in runs.model.bodies]
    assert sorted(map(str, (m for m in asked if len(m) > 1))) == sorted(
        map(str, runs.data.conversations)
    )
    assert {
        runs.stats(MRCR)["longctx_score", f"{needles}needle"] for needles in (2, 4, 8)
    } == {1.0}
    statistics = runs.stats(LONGPROC)
    scored = [name for name in TASKS if name != "pseudo_to_code"]
    assert {
        name: statistics[f"{name}_score", name] for name in scored
    } == dict.fromkeys(scored, 1.0)
    assert not any(task == "pseudo_to_code" for _, task in statistics)
    times = Counter(
        body["messages"][0]["content"]
        for body in runs.model.bodies
        if body["max_tokens"] == 16384
    )
    assert set(times.values()) == {3}
    assert len(times) == 12
    assert runs.stats(TSORT)["longctx_score", "textsort"] == 1.0
    statistics = runs.stats(KEYS)
    assert (
        statistics["longctx_score", "kv"]
        == statistics["turn_1", "kv"]
        == statistics["turn_5", "kv"]
        == 1.0
    )
    statistics = runs.stats(AA_LCR)
    assert (
        statistics["longctx_score", "questions"]
        == statistics["pass_at_3", "questions"]
        == 1.0
    )
    assert statistics["judge_failed", "questions"] == 0.25
    assert statistics["judge_score_strict", "questions"] == 0.75
    # What has no verdict is asked of the judge in every run, but not a second time in hope of another reply.
    asked = [body for body in runs.judge.bodies if PROMPT not in str(body["messages"])]
    assert {
        (body["temperature"], body["max_tokens"], "seed" in body) for body in asked
    } == {(0.0, 1024, False)}
    assert len(asked) == 12


def test_runs(runs: Runs) -> None:
    """Runs with our runner have the right requests and scores."""
    check(runs)


def test_made_again_they_ask_nothing(runs: Runs) -> None:
    """Runs that are made again send nothing, because every answer and every verdict is in the caches."""
    before = len(runs.model.calls)
    for path in runs.folder.glob("benchmark_output/runs/s/*/stats.json"):
        path.unlink()
    runs.make(*ENTRIES)
    assert len(runs.model.calls) == before
    check(runs)


def test_helms_own_runner(tmp_path: Path, data: Data) -> None:
    """HELM's own runner sends the same requests and gets the same scores."""
    with serve(lambda prompt: data.answers[prompt]) as model, serve(judge) as judging:
        write_judges(
            tmp_path / "models",
            {"tests/model": model.openai, "tests/judge": judging.openai},
        )
        runs = Runs(tmp_path, data, model, judging)
        runs.make(*ENTRIES, runner=False)
        check(runs)


def test_a_killed_run_goes_on(tmp_path: Path, data: Data) -> None:
    """A killed run that is made again sends only requests without an answer, so each question is asked three times in all."""
    with serve(
        lambda prompt: data.answers[prompt], faults.share(0.3, [Fault.TIMEOUT], seed=5)
    ) as model:
        with serve(judge) as judging:
            write_judges(
                tmp_path / "models",
                {"tests/model": model.openai, "tests/judge": judging.openai},
            )
            runs = Runs(tmp_path, data, model, judging)
            process = start(
                "helm-run",
                *runs.command(AA_LCR),
                "-n",
                "2",
                folder=tmp_path,
                prepare=data.prepare,
                **data.environment,
            )
            while model.failed()[Fault.TIMEOUT] < 2 and process.poll() is None:
                time.sleep(0.05)
            process.kill()
            assert process.wait() == -signal.SIGKILL
            assert len(model.calls) > 2
            model.plan = faults.none
            runs.make(AA_LCR)
        # An answer that was on its way when the process ended is asked for again.
        answered = Counter(call.prompt for call in model.calls if not call.fault)
        assert sum(answered.values()) - 3 * len(answered) <= 2
        assert min(answered.values()) == 3
        assert len(answered) == 12
        assert runs.stats(AA_LCR)["request_failed", "questions"] == 0


@pytest.fixture(scope="module")
def suite(runs: Runs) -> Path:
    """Summarize the runs, and return the folder."""
    summarized = run("helm-longctx", "summarize", "--suite", "s", folder=runs.folder)
    assert summarized.returncode == 0, summarized.stderr
    (runs.folder / "summary.txt").write_text(summarized.stdout)
    return runs.folder


def test_tables(suite: Path) -> None:
    """The benchmarks have tables by length, by output length and with a single column."""
    summary = (suite / "summary.txt").read_text()
    for title in ("MRCR", "LongProc", "AA-LCR"):
        table = summary[summary.index(title) :].split("└")[0]
        assert "–100.0)" in table, table
    exported = run(
        "helm-longctx", "export", "--suite", "s", "--to", "out", folder=suite
    )
    assert exported.returncode == 0, exported.stderr


def test_show(suite: Path, data: Data) -> None:
    """`show` prints the whole conversation."""
    printed = run(
        "helm-longctx", "show", f"{MRCR},model=tests_model", "mrcr-0", folder=suite
    )
    assert printed.returncode == 0, printed.stderr
    assert all(
        message["content"] in printed.stdout for message in data.conversations[0]
    )


@pytest.mark.browser
def test_page(page: str, browser: webdriver.Chrome, data: Data) -> None:
    """The run's page shows a conversation by its roles, and the link of a long one opens the whole conversation."""
    open_page(browser, f"{page}/#/runs/{quote(f'{MRCR},model=tests_model', safe='')}")
    shown(
        browser,
        "mrcr-0",
        "user",
        "assistant",
        data.conversations[0][-1]["content"][:40],
    )
    name = f"{LONG},model=tests_model"
    open_page(browser, f"{page}/#/runs/{quote(name, safe='')}")
    shown(
        browser,
        "mrcr-9",
        "Whole conversation",
        "left out",
        data.conversations[9][-1]["content"][:40],
    )
    browser.get(
        str(
            browser.find_element(By.LINK_TEXT, "Whole conversation").get_attribute(
                "href"
            )
        )
    )
    whole = str(browser.execute_script("return document.body.textContent"))
    assert json.loads(whole) == data.conversations[9]
