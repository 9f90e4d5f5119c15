"""Tests of `cache-check` against local servers with a prefix cache and faults in it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm_longctx.apps.cache_check.boundary import find_boundary
from helm_longctx.apps.cache_check.prompts import TEXTS, RegisterQuestion, lines_for
from helm_longctx.apps.cache_check.sections import cache_blocks, open_cells
from helm_longctx.apps.cache_check.states import (
    BEGINNING,
    COLD,
    CONTROL,
    StateReply,
    find_build,
    find_cached,
)
from helm_longctx.apps.cache_check.verdict import (
    distance,
    find_small,
    judge,
    judge_builds,
    needed_wins,
    smallest_share,
)
from helm_longctx.models.apis.answer_logprobs import read_logprobs
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.support.cached_server import CachedServer
from tests.support.commands import Command

KEY = "sk-cache-0123456789abcdef"
OPTIONS = ("--length", "1k", "--to", "out", "--quiet")


def check(command: Command, server: CachedServer, *options: str) -> int:
    """Run the command against a server, and return its exit status."""
    with server.serve() as url:
        return command("cache-check", "--model-url", url, *OPTIONS, *options)


class Shown(NamedTuple):
    """An answer that a script shows, with the right values."""

    title: str
    values: list[str]
    answer: list[str]


def run_script(script: Path, environment: dict[str, str]) -> list[Shown]:
    """Run a reproduction with nothing but a shell and curl, and return the answers that it shows."""
    assert shutil.which("curl"), "the test needs curl"
    done = subprocess.run(
        ["/bin/sh", script], env=environment, capture_output=True, text=True, check=True
    )
    titles = re.findall(
        r"^(.*)\. The right values are (.*):$", done.stdout, re.MULTILINE
    )
    replies = [
        json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")
    ]
    answers = [
        reply["choices"][0]["message"]["content"].split(", ") for reply in replies
    ]
    return [
        Shown(title, values.split(", "), answer)
        for (title, values), answer in zip(titles, answers, strict=True)
    ]


def test_an_equal_server(command: Command) -> None:
    """A server whose cache changes nothing passes, although a third of its answers has an error of its own. The same
    command again sends only the probe."""
    server = CachedServer(slip=0.3, has_logprobs=True)
    with server.serve() as url:
        options = ("cache-check", "--model-url", url, *OPTIONS, "--questions", "10")
        assert command(*options) == 0, command.out + command.err
        assert "No state of the cache changes the answers of endpoint/m" in command.out
        assert "multiples of 16" in command.out
        sent = server.requests
        assert command(*options) == 0
        assert server.requests - sent <= 4
    cells = json.loads(Path("out/cells.json").read_text())
    assert {cell["n"] for cell in cells} == {10}


def test_a_fault_and_its_script(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shared block that is overwritten is found, and a script shows it with curl alone, in at most five requests. It
    names the variable of the key, and the key is in no file."""
    monkeypatch.setenv("CACHE_KEY", KEY)
    server = CachedServer(fault="overwritten")
    with server.serve() as url:
        options = (
            "--questions",
            "10",
            "--states",
            "warm; A, B, A; evicted",
            "--api-key-env",
            "CACHE_KEY",
        )
        assert command("cache-check", "--model-url", url, *OPTIONS, *options) == 1, (
            command.out + command.err
        )
        assert "depend on its cache: A, B, A; the shortest length is 1k" in command.out
        script = Path("out/reproduce-A-B-A-1024.sh")
        assert str(script) in command.out
        assert len(list(script.with_suffix("").glob("*.json"))) <= 5
        alone = {"CACHE_KEY": KEY}  # nothing else of this environment is needed
        cold, after = run_script(script, alone)
    assert "Bearer $CACHE_KEY" in script.read_text()
    assert not [
        path
        for path in Path().rglob("*")
        if path.is_file() and KEY in path.read_text(errors="replace")
    ]
    assert [reply.title for reply in (cold, after)] == [
        "Cold",
        "After the same prompt, and another question about it",
    ]
    assert cold.answer == cold.values
    assert after.answer != after.values


def test_a_load_that_changes_answers_is_no_fault_of_the_cache(command: Command) -> None:
    """Requests at the same time can have other roundings. The check compares with cold ones among other requests.

    Requests that are mixed are a fault all the same, because values are lost.
    """
    options = ("--states", "parallel", "--questions", "12")
    loaded = CachedServer(has_logprobs=True, load_noise=0.3)
    assert check(command, loaded, *options) == 0, command.out + command.err
    assert "Answers in parallel seem to differ" in command.out
    assert "this is the server's load" in command.out
    answers = Path("out/answers.jsonl").read_text().splitlines()
    states = [json.loads(line)["state"] for line in answers]
    assert (
        states.count("cold among others")
        == states.count("cold again among others")
        == 12
    )
    shutil.rmtree("out")
    mixed = CachedServer(has_logprobs=True, fault="mixed")
    assert check(command, mixed, *options) == 1, command.out + command.err
    assert "depend on its cache: parallel" in command.out


def test_cold_answers_to_the_same_prompts(command: Command) -> None:
    """With fields that keep a request away from the cache, cold answers are to the prompts of the states. A block that
    is read wrongly is found; a server without a fault passes. Fields that are no object are refused."""
    fields = (
        "--cold",
        '{"cache_salt": "RANDOM"}',
        "--states",
        "warm; same beginning",
        "--questions",
        "20",
    )
    assert check(command, CachedServer(has_logprobs=True), *fields, "--dry-run") == 0
    assert "160 requests" in command.out
    assert check(command, CachedServer(has_logprobs=True), *fields) == 0, command.out
    rows = [
        json.loads(line) for line in Path("out/answers.jsonl").read_text().splitlines()
    ]
    assert {(row["state"], row["copy"]) for row in rows} == {
        (COLD, "warm"), (COLD, "same beginning"), (CONTROL, "warm"), (CONTROL, "same beginning"),
        ("warm", ""), ("same beginning", ""),
    }  # fmt: skip
    assert all(not row["cached_tokens"] for row in rows if row["copy"])
    shutil.rmtree("out")
    assert check(command, CachedServer(fault="wrong block"), *fields) == 1, command.out
    assert re.search("depend on its cache: .*same beginning", command.out), command.out
    assert (
        command("cache-check", "--model-url", "http://127.0.0.1:9/v1", "--cold", "salt")
        == 2
    )
    assert "--cold='salt'" in command.err


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        ("wrong block", "same beginning"),
        ("aborted", "aborted"),
        ("mixed", "parallel"),
        ("dropped", "same beginning"),
    ],
)
def test_the_state_is_named(command: Command, fault: str, state: str) -> None:
    """The state in which a fault shows is named."""
    assert (
        check(
            command, CachedServer(fault=fault), "--questions", "20", "--states", state
        )
        == 1
    )
    assert f"depend on its cache: {state};" in command.out, command.out


def test_what_is_open(command: Command) -> None:
    """Too few questions, and a warm request that was not warm, decide nothing, and the output says so."""
    assert check(command, CachedServer(), "--questions", "2", "--states", "warm") == 3
    assert (
        "It is open whether the answers of endpoint/model depend on its cache"
        in command.out
    )
    shutil.rmtree("out")
    assert (
        check(
            command, CachedServer(capacity=0), "--questions", "10", "--states", "warm"
        )
        == 3
    )
    assert "not from the cache" in command.out


def test_failures_are_counted(command: Command) -> None:
    """A request that fails is no answer. It is counted with its reason, and asked again by the same command."""
    server = CachedServer()
    with server.serve() as url:
        options = (
            "cache-check",
            "--model-url",
            url,
            *OPTIONS,
            "--questions",
            "9",
            "--states",
            "warm",
        )
        server.fails = 0.4
        assert command(*options, "--max-tokens", "20") in (2, 3)  # 2 if the probe fails
        while not Path("out/answers.jsonl").exists():
            command(*options, "--max-tokens", "20")
        assert "have no answer (" in command.out
        server.fails = 0.0
        assert command(*options, "--max-tokens", "20") == 0, command.out


def test_a_dry_run_sends_nothing(command: Command) -> None:
    """A dry run prints the requests and tokens, and what share of changed answers is found."""
    assert (
        command(
            "cache-check",
            "--model-url",
            "http://127.0.0.1:9/v1",
            "--length",
            "8k,128k",
            "--dry-run",
        )
        == 0
    )
    assert "540 requests" in command.out
    assert "Nothing was sent." in command.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--states", "lukewarm"), "--states='lukewarm'"),
        (("--length", "8q"), "8q"),
        (("--model", "a/b"), "one model"),
    ],
)
def test_bad_input(command: Command, options: tuple[str, ...], message: str) -> None:
    """Bad input is named before anything is sent."""
    assert (
        command(
            "cache-check", "--model-url", "http://127.0.0.1:9/v1", "--dry-run", *options
        )
        == 2
    )
    assert message in command.err


def test_another_design_needs_another_folder(command: Command) -> None:
    """A folder keeps the answers of one model and one seed."""
    assert check(command, CachedServer(), "--questions", "2", "--states", "warm") == 3
    assert (
        check(
            command,
            CachedServer(),
            "--questions",
            "2",
            "--states",
            "warm",
            "--seed",
            "7",
        )
        == 2
    )
    assert "this folder has a check with other options" in command.err


@given(st.integers(0, 10**6), st.sampled_from([512, 2048, 8192]))
def test_prompts_have_their_length_and_share_what_they_should(
    seed: int, tokens: int
) -> None:
    """A prompt has about its tokens. Copies differ from their first word on, siblings after the register, and a
    relative from the border on."""
    question = RegisterQuestion(seed, lines_for(tokens))
    prompt, other = question.prompt("one").text, question.prompt("two").text
    assert abs(estimate_tokens(prompt) / tokens - 1) < 0.1
    assert prompt.split()[0] != other.split()[0]
    assert prompt.split()[1:] == other.split()[1:]
    register = prompt.rpartition("\n\n")[0]
    assert question.sibling("one").text.startswith(register)
    lines = prompt.splitlines()
    relative = question.relative("one").text.splitlines()
    border = question.border + 2
    assert lines[:border] == relative[:border]
    assert lines[border] != relative[border]
    assert all(
        question.prompt("one").find_values(
            ", ".join(str(question.lines[index][1]) for index in question.asked_lines)
        )
    )


def reply(state: str, seed: int, text: str = "", **fields: Any) -> StateReply:
    """Return a reply with five values, of which those are found whose place has a 1 in the text."""
    return StateReply(
        8192, seed, state, text, hits=tuple(mark == "1" for mark in text), **fields
    )


def test_equal_noise_is_no_difference() -> None:
    """A state whose answers are as noisy as the cold ones does not differ; one that loses a value each time does."""
    texts = ["11111", "01111", "11101", "11110", "11011"]
    cold = [reply(COLD, seed, "11111") for seed in range(20)]
    control = [reply(CONTROL, seed, texts[seed % 5]) for seed in range(20)]
    same = [reply("warm", seed, texts[(seed + 2) % 5]) for seed in range(20)]
    lost = [reply("evicted", seed, "00011") for seed in range(20)]
    warm, evicted = judge([*cold, *control, *same, *lost])
    assert not warm.differs
    assert evicted.differs
    assert evicted.lost[0] > 0.5 > evicted.lost[4]


def test_a_state_without_answers_is_open() -> None:
    """If all requests of a state failed, nothing is known about it, and the others are judged."""
    replies = [
        StateReply(
            1000,
            seed,
            state,
            "7",
            "temporary" if state == "warm" else None,
            hits=() if state == "warm" else (True,),
        )
        for seed in range(9)
        for state in (COLD, CONTROL, "warm", "evicted")
    ]
    cells = judge(replies)
    assert [(cell.state, cell.n, cell.failed) for cell in cells] == [
        ("warm", 0, 9),
        ("evicted", 9, 0),
    ]
    assert open_cells(cells) == cells[:1]


def test_differences_below_the_tie() -> None:
    """With cold answers to the same prompts, a difference below the tie is told with its state, and is no defect."""
    replies = [
        reply(name, seed, "11111", logprobs=({"a": value, "b": -3.0},), copy=copy)
        for seed in range(20)
        for state, moved in (("warm", 0.0005), ("same beginning", 0.005))
        for name, copy, value in (
            (COLD, state, -0.1),
            (CONTROL, state, -0.1),
            (state, "", -0.1 - moved),
        )
    ]
    cells = judge(replies, 0.02)
    assert not any(cell.differs for cell in cells)
    assert [finding.state for finding in find_small(replies, cells)] == [
        "same beginning"
    ]
    text = cache_blocks(cells, replies, "m")[-1].note  # type: ignore[union-attr]
    assert (
        "answers differ from cold ones to the same prompts: same beginning at 8k (0.005 nats)"
        in text
    )
    assert "warm at" not in text
    assert not find_small([replace(reply, copy="") for reply in replies], cells)


def test_needed_wins_are_enough_and_one_fewer_is_not() -> None:
    """A state differs if each of `needed_wins` questions loses a value, and does not with one question fewer."""
    for count, differs in ((needed_wins(1), True), (needed_wins(1) - 1, False)):
        replies = [
            reply(state, seed, "11111" if state != "warm" else "00000")
            for seed in range(count)
            for state in (COLD, CONTROL, "warm")
        ]
        (cell,) = judge(replies)
        assert cell.differs is differs
    assert smallest_share(20, 7) is not None
    assert smallest_share(needed_wins(7) - 1, 7) is None


def test_distance_of_log_probabilities() -> None:
    """The distance is the mean difference of the reference's tokens, up to the first other token."""
    one = reply(COLD, 0, logprobs=({"a": -0.1, "b": -3.0}, {"c": -0.2}))
    other = reply(
        "warm", 0, logprobs=({"a": -0.3, "b": -2.0}, {"d": -0.1, "c": -4.2}, {"e": 0.0})
    )
    assert distance(one, one) == 0
    assert distance(other, one) == pytest.approx((0.2 + 4.0) / 2)


def test_what_servers_report() -> None:
    """Cached tokens and log-probabilities are read from the replies of OpenAI's protocol, vLLM and llama.cpp."""
    assert (
        find_cached({"usage": {"prompt_tokens_details": {"cached_tokens": 32}}}) == 32
    )
    assert find_cached({"timings": {"cache_n": 7}}) == 7
    assert find_cached({"usage": {"prompt_tokens_details": None}}) is None
    completion = {
        "tokens": ["a"],
        "token_logprobs": [-0.5],
        "top_logprobs": [{"b": -1.0}],
    }
    assert list(read_logprobs({"choices": [{"logprobs": completion}]})) == [
        {"a": -0.5, "b": -1.0}
    ]
    chat = {"content": [{"token": "a", "logprob": -0.5}]}
    assert list(read_logprobs({"choices": [{"logprobs": chat}]})) == [{"a": -0.5}]


@pytest.mark.parametrize(
    ("fault", "states", "text"),
    [
        ("aborted", "aborted", "Values between 50% and 100% of the prompt are lost."),
        (
            "wrong block",
            "same beginning",
            "Values are lost before the end of the shared beginning.",
        ),
    ],
)
def test_where(command: Command, fault: str, states: str, text: str) -> None:
    """The search names the shortest length and what is lost, writes the script for that length, and asks nothing
    twice."""
    server = CachedServer(fault=fault, shortest=1200)
    with server.serve() as url:
        options = (
            "--model-url",
            url,
            "--length",
            "2k",
            "--to",
            "out",
            "--quiet",
            "--questions",
            "12",
            "--where",
        )
        assert command("cache-check", *options, "--states", states) == 1, command.err
        shown = " ".join(command.out.split())
        assert text in shown
        match = re.search(
            r"answers differ from about (\d+) tokens on; none was seen at (\d+)", shown
        )
        assert match, shown
        assert int(match[2]) * 0.9 <= 1200 <= int(match[1]) * 1.1
        assert f"reproduce-{states.replace(' ', '-')}-{match[1]}.sh" in shown
        sent = server.requests
        assert command("cache-check", *options, "--states", states) == 1
        assert server.requests - sent <= 4  # only the probe


@pytest.mark.parametrize(
    ("block", "first", "has_counts"), [(16, 5, True), (32, 3, True), (16, 4, False)]
)
def test_the_boundary(
    command: Command, block: int, first: int, has_counts: bool
) -> None:
    """The search names the shortest shared beginning with which answers are wrong, with the size of a block where the
    server counts cached tokens. Its script shows with five requests and curl alone that a shorter one is right. The same
    command asks nothing again."""
    server = CachedServer(
        fault="wrong block", block=block, first_hit=first, has_counts=has_counts
    )
    with server.serve() as url:
        options = (
            "--model-url",
            url,
            *OPTIONS,
            "--questions",
            "16",
            "--states",
            "same beginning",
            "--where",
        )
        assert command("cache-check", *options) == 1, command.out + command.err
        shown = " ".join(command.out.split())
        match = re.search(
            r"The fault begins at (about )?(\d+) (\w+) tokens(.*?); none was seen at (?:about )?(\d+)",
            shown,
        )
        assert match, shown
        if has_counts:
            blocks = f", {first} blocks of {block}"
            assert match.groups() == (
                None,
                str(first * block),
                "cached",
                blocks,
                str((first - 1) * block),
            )
        else:
            assert match.group(1, 3, 4) == ("about ", "shared", "")
            assert int(match[5]) - block <= first * block <= int(match[2]) + block
        (script,) = Path("out").glob("*.sh")
        assert len(list(script.with_suffix("").glob("*.json"))) == 5
        cold, wrong, right = run_script(script, {})
        assert (cold.answer, right.answer) == (cold.values, right.values)
        assert wrong.answer != wrong.values
        assert (
            wrong.title
            == f"After another prompt with the same beginning of {match[2]} tokens"
        )
        sent = server.requests
        assert command("cache-check", *options) == 1
        assert server.requests - sent <= 4  # only the probe


def test_no_boundary() -> None:
    """Answers that differ whatever beginning is shared have no boundary, and neither have equal ones."""

    def make(differs: Callable[[int, int], bool]) -> list[StateReply]:
        return [
            replace(
                reply(
                    state,
                    seed,
                    "10111"
                    if state == BEGINNING and differs(seed, border)
                    else "11111",
                ),
                shared=border,
            )
            for seed in range(24)
            for border in [5 + 3 * seed]
            for state in (COLD, CONTROL, BEGINNING)
        ]

    def ask(line: int, tried: int) -> list[StateReply]:
        return []

    logprobs = ({"a": -0.1},)
    for differs, line in (
        (lambda seed, border: border >= 50, 50),
        (lambda seed, border: seed % 2 == 0, None),
    ):
        replies = [
            replace(request, logprobs=logprobs, cached_tokens=4 * (request.shared or 0))
            for request in make(differs)
        ]
        boundary = find_boundary(replies, ask)
        assert (boundary and boundary.first.line) == line
    assert find_boundary(make(lambda seed, border: False), ask) is None


def test_kinds_of_text(command: Command) -> None:
    """A fault that shows only in one kind of text is placed there. A kind that does not exist is refused."""
    options = (
        "--states",
        "aborted",
        "--questions",
        "10",
        "--texts",
        "plain; CJK; white space; emoji; accents",
    )
    assert check(command, CachedServer(fault="aborted", only="键"), *options) == 1, (
        command.err
    )
    shown = " ".join(command.out.split())
    assert (
        "It was seen only in texts of these kinds: CJK; not in: plain, accents, emoji, white space."
        in shown
    )
    assert (
        "This script shows it (aborted (CJK)): out/reproduce-aborted-CJK-1024.sh"
        in shown
    )
    assert check(command, CachedServer(), "--texts", "plain; runes", "--dry-run") == 2
    assert "--texts='runes'" in command.err


@pytest.mark.parametrize("kind", TEXTS)
def test_texts(kind: str) -> None:
    """A text of each kind has about its tokens, and the values that it asks for can be found in it."""
    question = RegisterQuestion(3, lines_for(2048, kind), kind=kind)
    prompt = question.prompt("warm")
    assert abs(estimate_tokens(prompt.text) / 2048 - 1) < 0.1
    assert all(
        f"{key}" in prompt.text and f"{value}" in prompt.text
        for key, value in question.lines
    )
    assert all(prompt.find_values(", ".join(map(str, question.values))))


def test_cold_fields_are_found(command: Command) -> None:
    """A server that counts cached tokens and can answer past its cache is asked to; others, and `--cold {}`, are not."""
    options = ("--states", "warm", "--questions", "9")
    for server, extra, has_fields in (
        (CachedServer(), (), True),
        (CachedServer(has_zeros=False), (), True),
        (CachedServer(), ("--cold", "{}"), False),
        (CachedServer(has_counts=False), (), False),
    ):
        shutil.rmtree("out", ignore_errors=True)
        assert check(command, server, *options, *extra) == 0, command.out + command.err
        assert (
            'Cold requests have {"cache_salt": "RANDOM"}' in command.out
        ) is has_fields
        rows = [
            json.loads(line)
            for line in Path("out/answers.jsonl").read_text().splitlines()
        ]
        assert any(row["copy"] for row in rows) is has_fields


def test_a_router_with_a_worse_build(command: Command) -> None:
    """Of two builds behind one address, the worse one is named, although no state of the cache differs."""
    assert (
        check(
            command,
            CachedServer(worse_every=5),
            "--questions",
            "60",
            "--states",
            "cold",
        )
        == 1
    )
    assert "Several builds answer at this address, and m fp-2 is worse" in " ".join(
        command.out.split()
    )


@pytest.mark.parametrize("copies", [1, 8])
def test_equal_builds_behind_a_router_by_question(copies: int) -> None:
    """If a router sends all prompts of a question to one of two equal builds, one is rarely called worse, however often
    each question is asked; a worse build is found."""
    chance = Random(5)
    alarms = 0
    count = 0
    for _ in range(200):
        equal = _route_questions(chance, copies, (0.8, 0.8))
        alarms += any(build.differs for build in judge_builds(equal))
        worse = _route_questions(chance, copies, (0.9, 0.3))
        count += any(
            build.differs and build.name == "m fp-1" for build in judge_builds(worse)
        )
    assert alarms <= 16
    assert count >= 180


def _route_questions(
    chance: Random, copies: int, rights: tuple[float, float]
) -> list[StateReply]:
    """Return cold replies of builds that answer a question always alike, each right in a share of the questions."""
    replies = []
    for seed in range(40):
        build = int(chance.random() < 0.5)
        answer_scores = (chance.random() < rights[build],)
        for copy in range(copies):
            for state in (COLD, CONTROL):
                replies.append(
                    StateReply(
                        1024,
                        seed,
                        state,
                        hits=answer_scores,
                        build=f"m fp-{build}",
                        copy=str(copy or ""),
                    )
                )
    return replies


def test_builds() -> None:
    """One build, and builds that answer alike, are no finding."""
    rows = [
        StateReply(1024, seed, state, hits=(bool(seed % 5),), build=f"m fp-{seed % 2}")
        for seed in range(40)
        for state in (COLD, CONTROL)
    ]
    assert not any(judge_build.differs for judge_build in judge_builds(rows))
    assert judge_builds([replace(row, build="m") for row in rows]) == []
    assert find_build({"model": "m", "system_fingerprint": "fp"}) == "m fp"
    assert find_build({}) == ""
