"""Tests of `reproduce` on a local server whose answers are made to score a known value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from unittest import mock

import pytest

import helm_longctx.plugin  # noqa: F401  # registers the tokenizer that counts words
from helm_longctx.benchmarks.mrcr import tasks
from helm_longctx.benchmarks.mrcr.tasks import LENGTHS, NEEDLES, PATH
from helm_longctx.data.root import DataRoot
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.registry import BENCHMARKS, find_protocol
from helm_longctx.tasks.task import Settings
from tests.benchmarks.aa_lcr.fabricate import build_aa_lcr
from tests.benchmarks.graphwalks.fabricate import build_graphwalks
from tests.benchmarks.longbench_v2.fabricate import build_longbench_v2
from tests.benchmarks.lv_eval.fabricate import build_lv_eval
from tests.benchmarks.mrcr_v2.fabricate import build_mrcr_v2
from tests.benchmarks.ruler.fabricate import build_sources
from tests.support.commands import Command
from tests.support.fabricate import build_mirror
from tests.support.fabricate_words import write
from tests.support.reproduction import (
    WRONG,
    answers,
    conversation,
    count_tokens,
    oracle,
)
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

ROWS = 4
"""Conversations in a bin."""
RIGHT = dict(zip(LENGTHS, (4, 3, 3, 2, 2, 1, 1, 0), strict=True))
"""How many of them the server answers, by length, so that each bin has another score."""

SHORT = ("8k", "16k", "32k", "64k", "128k")
"""The lengths that have rows of all needles; the others have rows of 8 needles."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror with the data of several benchmarks."""
    folder = tmp_path_factory.mktemp("data")
    places = [
        (needles, length)
        for needles in NEEDLES
        for length in LENGTHS
        if needles == 8 or length in SHORT
    ]
    write(
        folder / PATH,
        [
            conversation(*position, number)
            for position in places
            for number in range(ROWS)
        ],
    )
    for build in (
        build_graphwalks, build_mrcr_v2, build_longbench_v2, build_lv_eval, build_aa_lcr, build_mirror, build_sources,
    ):  # fmt: skip
        build(folder)
    return folder


@pytest.fixture(autouse=True)
def data_of_the_mirror(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the mirror, and count tokens without tiktoken's file."""
    monkeypatch.setenv(MIRROR, str(root))
    with mock.patch.object(tasks, "o200k_counter", return_value=count_tokens):
        yield


def score_of(out: str, model: str = "endpoint/tiny") -> tuple[float, str, str]:
    """Return the score, the interval and the number of questions that the table shows for a model."""
    row = re.search(
        rf"│ {re.escape(model)} +│ +([\d.]+) │ (.+?) +│ +([\d,]+) │ measured here", out
    )
    assert row, out
    return float(row[1]), row[2], row[3]


def run(command: Command, protocol: str, server: Server, *options: str) -> None:
    """Run a protocol against a server."""
    arguments = [
        "--model-url",
        server.address,
        "--model-name",
        "tiny",
        "--suite",
        "s",
        "--quiet",
        *options,
    ]
    assert command("reproduce", protocol, *arguments) == 0, command.err


def compare(command: Command, protocol: str) -> None:
    """Compare the runs of the suite with a protocol, without asking a model."""
    assert command("reproduce", protocol, "--suite", "s") == 0, command.err


def test_every_bin_and_every_mean_over_bins(command: Command, root: Path) -> None:
    """MRCR's bins, DeepSeek's mean over eight bins and Context Arena's area are printed to the digit, with one run of each bin."""
    with oracle(answers(root, "deepseek mrcr 1m mmr", RIGHT)) as server:
        run(command, "DeepSeek's MRCR 1M (MMR)", server)
        shares = {length: count / ROWS for length, count in RIGHT.items()}
        assert (
            score_of(command.out)[0] == round(100 * fmean(shares.values()), 2) == 50.0
        )
        assert score_of(command.out)[2] == "32"
        asked = len(server.calls)
        run(command, "openai mrcr v2 8-needle 4k-8k", server)
        # Nothing is asked twice, because a protocol has the runs of the others.
        assert len(server.calls) == asked
    for length, share in shares.items():
        compare(command, f"openai mrcr v2 8-needle {LENGTHS[length] // 2048}k-{length}")
        assert score_of(command.out)[0] == 100 * share
    compare(command, "context arena 8-needle auc 1m")
    # The trapezoidal rule, written out: each pair of neighbours counts by the width between them.
    points = list(zip(LENGTHS.values(), shares.values(), strict=True))
    area = sum(
        (b - a) * (low + high) / 2 for (a, low), (b, high) in pairwise(points)
    ) / (points[-1][0] - points[0][0])
    assert score_of(command.out)[0] == round(100 * area, 2)


def test_anthropics_graphwalks(command: Command, root: Path) -> None:
    """Anthropic's protocol asks each question five times at temperature 1, and an empty answer to no node scores 1."""
    protocol = "anthropic graphwalks bfs 256k"
    with oracle(answers(root, protocol, 1)) as server:
        run(command, protocol, server, "--published", "Claude Opus 4.8")
        assert score_of(command.out) == (100.0, score_of(command.out)[1], "1")
        asked = [body for body in server.bodies if "Operation:" in json.dumps(body)]
        assert len(asked) == 5
        assert {body["temperature"] for body in asked} == {1.0}
    assert (
        "Not comparable with the published 85.9 of Claude Opus 4.8: the page does not say the reasoning eff"
        in command.out
    )


def test_openais_graphwalks_is_graded_by_the_card(command: Command, root: Path) -> None:
    """OpenAI's protocol uses the metric of the card, which reads only the very last line."""
    protocol = "openai graphwalks parents 1m"
    known = {prompt: f"{text}\n" for prompt, text in answers(root, protocol, 1).items()}
    with oracle(known) as server:
        run(command, protocol, server)
        assert score_of(command.out)[0] == 0.0
    with oracle(answers(root, protocol, 1)) as server:
        run(command, protocol, server, "--suite", "t", "--local-path", "other")
        assert score_of(command.out)[0] == 100.0


@pytest.mark.parametrize(
    ("protocol", "right", "expected", "n"),
    [
        ("google mrcr v2 8-needle 128k average", 3, 50.0, 6),
        ("longbench v2 no cot", 9, 75.0, 12),
        ("openai graphwalks bfs <128k", 3, 50.0, 6),
        ("nemo graphwalks 1m", 1, 100 * 6 / 16, 16),
        ("openai mrcr v1 2-needle 128k", 1, 25.0, 4),
        ("nemo mrcr 128k", 2, 50.0, 60),
    ],
)
def test_means_over_questions(
    command: Command, root: Path, protocol: str, right: int, expected: float, n: int
) -> None:
    """Protocols that average over questions print the share of right answers to the digit."""
    with oracle(answers(root, protocol, right)) as server:
        run(command, protocol, server)
    assert score_of(command.out)[0] == expected
    assert score_of(command.out)[2] == str(n)


def test_few_questions_cannot_agree(command: Command, root: Path) -> None:
    """A model without a reasoning effort compares with a published one, but six questions could not contradict it."""
    protocol = "openai graphwalks bfs <128k"
    with oracle(answers(root, protocol, 4)) as server:
        run(command, protocol, server, "--published", "GPT-4.1")
    told = "Cannot tell whether the model differs from the published 61.7 of GPT-4.1: the difference is +5.0 points;"
    assert (
        f"endpoint/tiny: {told} the questions are too few to contradict, because none is found"
        in command.out
    )


def test_judged_answers(command: Command, root: Path) -> None:
    """AA-LCR asks each question three times, and its score is the share of answers that the judge calls correct."""

    def answer(prompt: str) -> str:
        if prompt.startswith("Assess whether"):
            return (
                "CORRECT"
                if "CANDIDATE ANSWER TO ASSESS: right" in prompt
                else "INCORRECT"
            )
        return "right" if prompt.strip().endswith(known) else "wrong"

    examples = list(
        load_examples(
            find_protocol("aa-lcr 1.0", BENCHMARKS)[0].task("questions"),
            *settings(root),
        )
    )
    known = tuple(
        f"{example.fields['question']}\n\n            END QUESTION"
        for example in examples[:3]
    )
    with serve(
        answer, models={"tiny": Model(), "qwen3-235b-a22b-instruct-2507-fp8": Model()}
    ) as server:
        judge = "judge/qwen3-235b-a22b-instruct-2507-fp8"
        Path("run.yaml").write_text(
            f"suite: s\nprotocols: [aa-lcr 1.0]\nmodels: [{{name: endpoint/tiny, model: tiny, url: '{server.address}'}}]\n"
            f"judge: {{judges: [{{name: {judge}, url: '{server.address}'}}]}}\n"
        )
        assert command("run", "run.yaml", "--quiet") == 0, command.err
        asked = [call for call in server.calls if "START QUESTION" in call.prompt]
    assert len(asked) == 3 * len(examples) == 36
    assert score_of(command.out)[0] == 25.0


def settings(root: Path) -> tuple[Settings, DataRoot]:
    """Return the settings of a run entry without arguments, and the mirror."""
    return Settings(None), DataRoot(root, mirror=True)


def judge_reply(prompt: str) -> str:
    """Return full marks for a right answer, in the form for answers or for summaries, and none for another."""
    points = len(re.findall(r"^\d+\. ", prompt, re.MULTILINE))
    marks = {
        "fluency": 1,
        "correctness": 3,
        "recall": points,
        "precision": 1,
        "sentence_count": 1,
    }
    return json.dumps(
        {name: 0 if WRONG in prompt else value for name, value in marks.items()}
    )


@pytest.mark.parametrize(
    ("protocols", "argument", "expected"),
    [
        # One, two, three or four of four questions are right; the number is the mean over tasks, whatever their sizes.
        (
            ["ruler 4k", "jamba ruler 4k", "qwen ruler 4k"],
            "count_with=longctx/words",
            31 / 52,
        ),
        (["lv-eval 16k"], "", 26 / 44),
        (["helmet recall 8k"], "", 10 / 16),
        # Questions stand at six depths, and HotpotQA's at three.
        (["helmet rag 8k"], "", (1 / 24 + 2 / 24 + 3 / 12 + 4 / 24) / 4),
        (["helmet icl 8k"], "", 11 / 20),
        (["helmet rerank 8k"], "", 1 / 12),
        (["helmet longqa 8k"], "", (1 / 4 + 2 / 4 + 3 / 4) / 3),
        (["helmet summ 8k"], "", (1 / 4 + 2 / 4) / 2),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_means_over_tasks(
    command: Command, root: Path, protocols: list[str], argument: str, expected: float
) -> None:
    """RULER's, LV-Eval's and HELMET's numbers are unweighted means over tasks, which are printed to the digit."""
    arguments = ["num_samples=4", *filter(None, [argument])]
    known = answers(root, protocols[0], 1, ",".join(arguments), uneven=True)
    with oracle(known) as server, serve(judge_reply, models={"tiny": Model()}) as judge:
        text = "\n".join(f"  {argument.replace('=', ': ')}" for argument in arguments)
        Path("run.yaml").write_text(
            f"suite: s\nprotocols: [{protocols[0]}]\narguments:\n{text}\n"
            f"models: [{{name: endpoint/tiny, model: tiny, url: '{server.address}'}}]\n"
            f"judge: {{judges: [{{name: judge/tiny, url: '{judge.address}'}}]}}\n"
        )
        assert command("run", "run.yaml", "--quiet") == 0, command.err
    assert score_of(command.out)[0] == round(100 * expected, 2)
    for other in protocols[1:]:
        compare(command, other)
        assert score_of(command.out)[0] == round(100 * expected, 2)
    # Of dozens of published numbers, the ten highest are in one table, and a sentence names a few models. Another table
    # has a row for each task.
    assert sum("│" in line for line in command.out.splitlines()) < 40
    assert command.out.rpartition("numbers are published for ")[2].count(",") < 8
    assert "Not comparable" in command.out


def test_scores_of_another_kind_of_judge_are_no_numbers_of_a_protocol(
    command: Command, root: Path
) -> None:
    """HELMET's citations have no score without its NLI model, and the error names the judge that is missing."""
    with oracle({}) as server:
        options = [
            "--model-url",
            server.address,
            "--model-name",
            "tiny",
            "--argument",
            "num_samples=1",
            "--quiet",
        ]
        assert command("reproduce", "helmet cite 8k", *options) == 2
    told = "it needs scores of helmet_cite:length=8k, judged by google/t5_xxl_true_nli_mixture"
    assert told in command.err


def test_a_yaml_file_and_a_dry_run(command: Command, root: Path) -> None:
    """A YAML file with protocols does the same as the command, and a dry run sends nothing and names the run entries."""
    protocol = "openai mrcr v2 8-needle 8k-16k"
    with oracle(answers(root, protocol, 3)) as server:
        Path("run.yaml").write_text(
            f"suite: s\nprotocols: [{protocol}]\nmodels: [{{name: endpoint/tiny, model: tiny, url: '{server.address}'}}]\n"
        )
        assert command("run", "run.yaml", "--dry-run") == 0, command.err
        assert "mrcr:needles=8,length=16k" in command.out
        assert "Introducing GPT-5.5, 2026-04-23" in command.out
        assert server.calls == []
        assert command("run", "run.yaml", "--quiet") == 0, command.err
    assert score_of(command.out)[0] == 75.0
    assert (
        "endpoint/tiny: Not comparable: no number of this model is published (numbers are published for GPT-5.2"
        in command.out
    )


def test_a_trial_with_fewer_questions_and_another_model(
    command: Command, root: Path
) -> None:
    """Fewer questions and an unknown effort are reasons, and a registered effort is sent and known."""
    protocol = "openai mrcr v2 8-needle 4k-8k"
    with oracle(answers(root, protocol, 4)) as server:
        options = ("--argument", "num_samples=2", "--published", "gpt 5.5")
        run(command, protocol, server, *options)
        told = (
            "2 of 100 questions; the published effort is xhigh, and yours is not known"
        )
        assert (
            f"Not comparable with the published 98.1 of GPT-5.5 (xhigh): {told}."
            in command.out
        )
        run(
            command,
            protocol,
            server,
            "--reasoning-effort",
            "xhigh",
            "--suite",
            "e",
            "--local-path",
            "e",
            *options[2:],
        )
        assert {
            body.get("reasoning_effort")
            for body in server.bodies
            if "Prepend" in json.dumps(body)
        } == {
            None,
            "xhigh",
        }
        assert (
            "Not comparable with the published 98.1 of GPT-5.5 (xhigh): 4 of 100 questions."
            in command.out
        )


@pytest.mark.usefixtures("empty_pictures")
def test_the_report_has_reported_rows_beside_ours(command: Command, root: Path) -> None:
    """The report shows own and reported numbers of a protocol as columns, and no other protocol's numbers among them."""
    protocol = "openai mrcr v2 8-needle 4k-8k"
    with oracle(answers(root, protocol, 1)) as server:
        run(command, protocol, server)
    assert (
        command("report", "--suite", "s", "--to", "report", "--format", "markdown") == 0
    ), command.err
    text = Path("report", "report.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("| 4k-8k |")]
    header = text[: text.index(line)].rstrip().splitlines()[-2]
    assert "endpoint/tiny | GPT-5.2 | GPT-5.4 (xhigh) | GPT-5.5 (xhigh)" in header
    assert "Gemini" not in header
    assert re.match(
        r"\| 4k-8k \| 25\.0 † \(0\.6–80\.6\) \| 98\.2 \(93\.3–99\.5\) \| 97\.3 .* \| 98\.1 ",
        line,
    )
    assert "Conditions: mean over questions; one trial; temperature not stated" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["openai mrcr v9"], "no protocol is called 'openai mrcr v9'; did you mean"),
        (
            ["--model", "longctx/null"],
            "reproduce: --model is given, and the name of a protocol is missing",
        ),
        (["mmr", "--suite", "absent"], "absent"),
        (
            ["mmr", "--argument", "shots=3", "--model", "longctx/null"],
            "--argument shots is not an argument of mrcr",
        ),
        (["mmr", "--model", "longctx/nul"], "longctx/nul"),
    ],
)
def test_mistakes(command: Command, arguments: list[str], told: str) -> None:
    """A mistake ends with status 2 and one line, before anything is asked."""
    assert command("reproduce", *arguments) == 2
    assert told in command.err
    assert command.err.count("\n") == 1


def test_the_list_and_the_record(command: Command) -> None:
    """Without a name the protocols are listed, and without a model a protocol is printed with its sources."""
    assert command("reproduce") == 0
    assert "deepseek mrcr 1m mmr" in command.out
    assert command("reproduce", "deepseek mrcr 1m mmr") == 0
    assert "mrcr:needles=8,length=1m" in command.out
    assert (
        "https://huggingface.co/deepseek-ai/DeepSeek-V4-Pro: MRCR 1M (MMR)"
        in command.out
    )
    assert command("reproduce", "helmet recall 8k") == 0
    assert re.search(r"│ GPT-4o-08 +│ +[\d.]+ │ [\d.]+–[\d.]+ +│ +400 │", command.out)
    assert command("reproduce", "deepseek mrcr 1m mmr") == 0
    assert re.search(
        r"DeepSeek-V4-Pro \(max\) +│ +83\.5 │ 80\.8–85\.9 +│ 800 │ DeepSeek-V4",
        command.out,
    )
