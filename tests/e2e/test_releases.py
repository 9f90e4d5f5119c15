"""Tests of `reproduce` with the name of a release, on a local server whose answers are made to score a known value."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest

from helm_longctx.benchmarks.graphwalks.tasks import PATH as GRAPHS
from helm_longctx.benchmarks.mrcr import tasks
from helm_longctx.benchmarks.mrcr.tasks import PATH
from helm_longctx.benchmarks.mrcr_v2.tasks import LENGTHS, file_of
from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.registry import BENCHMARKS
from tests.benchmarks.graphwalks.fabricate import graph
from tests.benchmarks.mrcr_v2.fabricate import build_mrcr_v2, rows
from tests.support.commands import Command
from tests.support.fabricate_words import write
from tests.support.reproduction import answers, conversation, count_tokens, oracle


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror with 60 graphs of each operation up to 128k and some at 256k and 1m, and rows of both MRCRs."""
    folder = tmp_path_factory.mktemp("data")
    rng = random.Random(7)
    sizes = (*[40] * 60, *[13_000] * 8, *[45_000] * 4)
    write(
        folder / GRAPHS,
        [graph(rng, kind, edges) for kind in ("bfs", "parents") for edges in sizes],
    )
    write(
        folder / PATH,
        [
            conversation(2, length, number)
            for length in ("128k", "256k", "1m")
            for number in range(4)
        ],
    )
    build_mrcr_v2(folder)
    path = folder / file_of(8, LENGTHS["1m"]).path
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows(8, 5)).to_csv(path, index=False)
    return folder


@pytest.fixture(autouse=True)
def data_of_the_mirror(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the mirror, and count tokens without tiktoken's file."""
    monkeypatch.setenv(MIRROR, str(root))
    with mock.patch.object(tasks, "o200k_counter", return_value=count_tokens):
        yield


RELEASES = {
    "gpt 4.1 nano": (
        "",
        {
            "openai graphwalks bfs 128k": (60, "25.0", "100.0", "differs"),
            "openai graphwalks parents 128k": (6, "9.4", "10.0", "agrees"),
            "openai graphwalks bfs above 128k in 2025": (
                0,
                "2.9",
                "0.0",
                "not comparable",
            ),
            "openai graphwalks parents above 128k in 2025": (
                0,
                "5.6",
                "0.0",
                "not comparable",
            ),
            "openai mrcr v1 2-needle 128k": (1, "36.6", "25.0", "not comparable"),
            "openai mrcr v1 2-needle 256k": (2, "22.6", "50.0", "not comparable"),
            "openai mrcr v1 2-needle 1m": (4, "12.0", "100.0", "not comparable"),
        },
    ),
    "mythos 5": (
        "max",
        {
            "anthropic graphwalks bfs 256k": (0, "91.1", "0.0", "differs"),
            "anthropic graphwalks bfs 1m": (3, "79.4", "75.0", "cannot tell"),
            "anthropic graphwalks parents 256k": (8, "99.96", "100.00", "cannot tell"),
            "anthropic graphwalks parents 1m": (4, "97.5", "100.0", "cannot tell"),
        },
    ),
    "Grok-4.1-fast": (
        "reasoning",
        {
            "google mrcr v2 8-needle 128k average": (3, "54.6", "50.0", "cannot tell"),
            "google mrcr v2 8-needle 1m pointwise": (6, "6.1", "100.0", "differs"),
        },
    ),
}
"""Releases by the name that a user types: the effort, and by protocol how many questions the server answers, the published
number, the measured one, and the verdict. Fewer than about 50 questions can contradict, but not agree."""


@pytest.mark.parametrize("name", RELEASES)
def test_a_simulated_release(command: Command, root: Path, name: str) -> None:
    """One command lists, runs and compares all numbers of a release, and each has the right verdict."""
    effort, expected = RELEASES[name]
    known = {}
    for protocol, (right, *_) in expected.items():
        known |= answers(root, protocol, right)
    with oracle(known) as server:
        options = [
            "--model-url",
            server.address,
            "--model-name",
            "tiny",
            "--suite",
            "s",
            "--quiet",
        ]
        options += ["--reasoning-effort", effort] if effort else []
        assert command("reproduce", name, *options, "--dry-run") == 0, command.err
        assert server.calls == []
        assert re.search(rf"\b{len(expected)} of \d+ can be run", command.out)
        assert "prompt tokens" in command.out
        assert command("reproduce", name, *options) == 0, command.err
    shown = command.out[command.out.index("published and measured") :]
    matches = re.findall(
        r"│ +([\d.]+) │ +([\d.]+) │ [^│]+ │ (agrees|differs|cannot tell|not comparable) *│",
        shown,
    )
    assert sorted(matches) == sorted(row[1:] for row in expected.values())
    kinds = [row[3] for row in expected.values()]
    assert all(
        f"{kind}: {kinds.count(kind)}" in shown.splitlines()[-1] for kind in kinds
    )
    calls = len(server.calls)
    assert command("reproduce", name, "--suite", "s") == 0, command.err
    assert len(server.calls) == calls


def test_what_cannot_be_run_says_why(command: Command) -> None:
    """Rows without a protocol, and numbers that the page leaves open, say so, and such a release is not run."""
    assert command("reproduce", "deepseek v4-pro") == 0
    text = re.sub(r"[│\s]+", " ", command.out)
    assert "no: no protocol: the page" in text
    assert "yes; not comparable, because" in text
    assert "with the judge" in text
    listed = re.search(
        r"^10 of 11 can be run, with 13 run entries:\n((?:  .+\n)+)", command.out, re.M
    )
    assert listed
    lines = listed[1].split()
    assert len(set(lines)) == 13
    for line in lines:
        parse_entry(BENCHMARKS, line)
    assert command("reproduce", "MiMo V2.5", "--model", "longctx/null") == 2
    assert (
        "no number of MiMo-V2.5 can be run (no: no protocol: the operation and the lengths)"
        in command.err
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("deepseek v4", "'deepseek v4' can be 'DeepSeek-V4-Pro', 'DeepSeek-V4-Flash'"),
        ("gpt-77", "no protocol is called 'gpt-77'"),
        (
            "exaone openai mrcr --model longctx/null",
            "cannot be run (no protocol: the needles and the lengths)",
        ),
    ],
)
def test_mistakes(command: Command, name: str, told: str) -> None:
    """A name that several releases or none have, and a protocol without entries, end in one line."""
    words = name.partition(" --")
    assert (
        command("reproduce", words[0], *(f"--{words[2]}".split() if words[2] else ()))
        == 2
    )
    assert told in command.err
    assert command.err.count("\n") == 1


@pytest.mark.usefixtures("empty_pictures")
def test_the_report_has_all_published_numbers_over_time(
    command: Command, root: Path
) -> None:
    """The page "Reported" lists all numbers of a benchmark by date and protocol, also those that cannot be run."""
    with oracle(answers(root, "google mrcr v2 8-needle 128k average", 3)) as server:
        options = [
            "--model-url",
            server.address,
            "--model-name",
            "tiny",
            "--suite",
            "s",
            "--quiet",
        ]
        assert (
            command("reproduce", "google mrcr v2 8-needle 128k average", *options) == 0
        ), command.err
    assert (
        command("report", "--suite", "s", "--to", "report", "--format", "markdown") == 0
    ), command.err
    text = Path("report", "report.md").read_text(encoding="utf-8")
    lines = [
        line
        for line in text.splitlines()
        if re.match(r"\| (\d{4}-\d{2}-\d{2}|unknown) \|", line)
    ]
    assert any("Gemini 3.7 Flash" in line and "97" in line for line in lines)
    assert any("Gemini 1.5 Pro" in line and "no protocol" in line for line in lines)
    dates = [line.split(" | ")[0] for line in lines]
    assert dates == sorted(dates)
