"""Tests of `helm-longctx gate` against local servers, with proxies that change what passes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.apps.gate import command as gate_command
from helm_longctx.benchmarks.tool_calls.prompts import FORM, NO_CALL
from helm_longctx.models.baselines import lexical
from tests.support.commands import Command
from tests.support.deployments import register_server
from tests.support.loads import count_loads
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model
from tests.support.servers.proxies import PROXIES, run_proxy
from tests.support.tool_calls import solve_prompt

BASE = "sim/base"
CANDIDATE = "sim/candidate"
ENTRY = "helmet_recall:task=json_kv,num_samples=24,style=chat,length="
OPTIONS = ("--max-drop", "30", "-m", "100")


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield a server with a model that finds every value, which both deployments use."""
    with serve(
        lexical.answer, models={"base": Model(), "candidate": Model()}
    ) as server:
        for name in (BASE, CANDIDATE):
            register_server(name, server.address)
        yield server


def gate(
    command: Command, *arguments: object, lengths: tuple[str, ...] = ("4k",)
) -> int:
    return command(
        "gate",
        *(f"--entry={ENTRY}{length}" for length in lengths),
        *OPTIONS,
        *arguments,
    )


def read(suite: str = "gate") -> Any:
    return json.loads(Path(f"benchmark_output/gates/{suite}/gate.json").read_text())


def models_asked(server: Server) -> list[str]:
    """Return the models of all calls, without repetitions of neighbours."""
    names = [call.body["model"] for call in server.calls]
    return [
        name
        for position, name in enumerate(names)
        if position == 0 or names[position - 1] != name
    ]


def test_an_equal_pair_passes(
    command: Command, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two equal deployments pass at each length, and each gets the same requests in both orders.

    The questions of a length are made once for the plan, and once for both halves of both sides.
    """
    options = ("-n", "1", "--noise", "0")
    with count_loads(monkeypatch) as loads:
        status = gate(command, BASE, CANDIDATE, *options, lengths=("8k", "4k"))
    assert status == 0, command.err
    assert len(loads) == 2 * 2
    assert "No worse: at each length the drop is smaller than 30 points." in command.out
    # In each run, half of the requests go to the base first, and half to the candidate first.
    assert models_asked(server) == ["base", "candidate", "base", "candidate", "base"]
    prompts = [
        Counter(call.prompt for call in server.calls if call.body["model"] == name)
        for name in ("base", "candidate")
    ]
    assert prompts[0] == prompts[1]
    assert set(prompts[0].values()) == {1}
    result = read()
    assert (result["verdict"], result["exit_status"], result["findings"]) == (
        "no_worse",
        0,
        [],
    )
    assert [part["part"] for part in result["parts"]] == [
        "4k",
        "8k",
        "all",
        "beginning",
        "middle",
        "end",
    ]
    assert result["looks"]["8k"] == [24]
    # No score differs, as planned, so the plan and the result have the same drop.
    drop = f"A drop of {100 * result['visible_drop']:.1f} points at one depth"
    assert f"{drop} is found with the same probability." in command.out
    assert f"{drop} would have been found with a probability of 80%." in command.out
    assert [(order["part"], order["answers"]) for order in result["orders"]] == [
        ("base first", 24),
        ("candidate first", 24),
    ]
    assert all(
        answer["equal"] == answer["equal_tokens"] == answer["equal_scores"] == 1
        for answer in result["answers"]
    )


def call_tool(prompt: str) -> str:
    """Make the right call of a tool. Other prompts are probes."""
    return solve_prompt(prompt) if FORM in prompt else "yes"


def call_without_rules(prompt: str) -> str:
    """Call tools as a model that overlooks what the user demanded, and which tools were replaced."""
    lines = []
    for line in prompt.splitlines():
        if "give the ticket" not in line and "was replaced by" not in line:
            lines.append(line)
    try:
        return call_tool("\n".join(lines))
    except ValueError:  # several tools can do it
        return NO_CALL


@pytest.mark.parametrize(
    ("candidate", "status"), [(call_tool, 0), (call_without_rules, 1)]
)
def test_tool_calls_through_the_gate(
    command: Command, server: Server, candidate: Callable[[str], str], status: int
) -> None:
    """Calls of tools decide, too: an equal candidate passes, and one that overlooks rules and replacements does not."""
    server.answer = call_tool
    entry = "--entry=tool_calls:length=2k,num_samples=10"
    limits = ("--noise", "0", "--max-drop", "15", "-m", "50")
    with serve(candidate, models={"candidate": Model()}) as other:
        register_server(CANDIDATE, other.address)
        code = command("gate", BASE, CANDIDATE, entry, *limits)
    assert code == status, command.err
    (whole, *_) = read()["parts"]
    assert whole["part"] == "2k"
    assert whole["difference"] == pytest.approx(0 if status == 0 else -0.4, abs=0.15)


def test_a_finished_gate_is_not_asked_again(command: Command, server: Server) -> None:
    """The same command reads the answers again and says so, and another suite asks again."""
    assert gate(command, BASE, CANDIDATE) == 0, command.err
    calls = len(server.calls)
    assert gate(command, BASE, CANDIDATE) == 0, command.err
    assert "All answers are from an earlier command" in command.out
    assert len(server.calls) == calls
    assert gate(command, BASE, CANDIDATE, "--suite", "next") == 0, command.err
    assert len(server.calls) == 2 * calls


def test_one_deployment_twice(command: Command, server: Server) -> None:
    """One deployment is asked each question twice, and the answers of the first arm are not the second's."""
    texts: Counter[str] = Counter()

    def answer(prompt: str) -> str:
        texts[prompt] += 1
        return f"{lexical.answer(prompt)} answer {texts[prompt]}"

    server.answer = answer
    assert gate(command, BASE, BASE) == 0, command.err
    assert set(texts.values()) == {2}
    (agreement,) = read()["answers"]
    assert (agreement["equal"], agreement["equal_scores"]) == (0, 1)
    assert read()["changed"] == 0


def test_a_proxy_that_drops_the_middle_is_found(
    command: Command, server: Server
) -> None:
    """A candidate without the middle of its prompts is worse, by its scores and by its counts of tokens."""
    with run_proxy(server.address, PROXIES["drops the middle"]) as address:
        register_server(CANDIDATE, address)
        assert gate(command, BASE, CANDIDATE, "--quiet", "--max-drop", "1") == 1, (
            command.err
        )
    result = read()
    assert result["parts"][0]["difference"] < -0.2
    assert (
        result["verdict"],
        result["findings"][0]["kind"],
        result["findings"][0]["requests"],
    ) == ("worse", "cut", 24)
    assert "candidate counts far fewer prompt tokens" in command.out
    page = Path("benchmark_output/gates/gate/index.html").read_text()
    assert "Is sim/candidate (candidate) worse than sim/base (base)?" in page
    assert "candidate counts far fewer prompt tokens than base" in page


def test_another_template_is_mentioned(command: Command, server: Server) -> None:
    """A proxy that applies a second template changes all counts, which is found although the scores are equal."""
    with run_proxy(server.address, PROXIES["swaps the template"]) as address:
        register_server(CANDIDATE, address)
        assert gate(command, BASE, CANDIDATE) == 0, command.err
    (finding,) = read()["findings"]
    assert (finding["kind"], finding["requests"]) == ("counts", 24)
    assert "prompt-token counts differ" in command.out


def test_a_small_sample_cannot_tell(command: Command, server: Server) -> None:
    """A sample that is too small ends with status 3 and the number of missing instances, and a larger one asks only for them."""
    arguments = ("gate", BASE, CANDIDATE, f"--entry={ENTRY}4k", "--max-drop", "30")
    assert command(*arguments, "-m", "6") == 3, command.err
    missing = read()["missing_instances"]["4k"]
    assert (
        f"Cannot tell whether the drop is smaller than 30 points: more instances are needed, {missing} at 4k."
        in command.out
    )
    assert len(server.calls) == 12
    assert command(*arguments, "-m", str(6 + missing)) == 0, command.err
    assert len(server.calls) == 2 * (6 + missing)


def test_a_base_without_right_answers_cannot_tell(
    command: Command, server: Server
) -> None:
    """If the base answers nothing right, no candidate can be worse, so an equal one does not pass either."""
    server.answer = lambda prompt: "zq ws xr"
    assert gate(command, BASE, CANDIDATE, "--noise", "0") == 3, command.err
    (finding,) = read()["findings"]
    assert (finding["kind"], finding["requests"]) == ("floor", 24)
    assert (
        "Cannot tell whether the drop is smaller than 30 points: base scores 0 points"
        " at 4k" in command.out
    )
    assert read()["missing_instances"] == {}


def test_nothing_is_sent_in_a_dry_run(command: Command, server: Server) -> None:
    """A dry run prints the price, the sample that the power needs, and its power, and sends nothing."""
    arguments = ("gate", BASE, CANDIDATE, f"--entry={ENTRY}4k", "--dry-run")
    assert command(*arguments, "--max-drop", "30", "--power", "0.9") == 0, command.err
    assert server.calls == []
    assert "with a probability of at least" in command.out
    assert "(wanted: 90%)" in command.out
    assert not Path("benchmark_output/gates").exists()
    assert command(*arguments, "--max-drop", "2") == 0, command.err
    assert "at least 0% (wanted: 80%)" in command.out
    assert "add run entries or instances" in command.out


def test_the_sample_follows_the_power(command: Command, server: Server) -> None:
    """Without a number of instances, as many are asked as the wanted power needs."""
    arguments = (
        "gate",
        BASE,
        CANDIDATE,
        f"--entry={ENTRY}4k",
        "--max-drop",
        "40",
        "--noise",
        "0",
    )
    assert command(*arguments) == 0, command.err
    part = read()["parts"][0]
    assert part["instances"] == len(server.calls) / 2 < 24
    # Nobody is told to draw another sample: the gate has chosen it, and both sides get the same one.
    assert "num_samples=" not in command.err


def test_missing_answers_leave_it_open(command: Command, server: Server) -> None:
    """If requests of one arm fail, the verdict is open, and the same command sends only those again."""
    failing: set[str] = set()

    def plan(prompt: str, before: int) -> Fault | None:
        """Refuse three prompts when they come for the second time."""
        if before and len(failing) < 3:
            failing.add(prompt)
        return Fault.FLAGGED if before and prompt in failing else None

    server.plan = plan
    assert gate(command, BASE, CANDIDATE) == 3, command.err
    (finding,) = read()["findings"]
    assert (finding["kind"], finding["requests"]) == ("unanswered", 3)
    assert "requests have a scored answer of only one deployment" in command.out
    calls = len(server.calls)
    server.plan = lambda prompt, before: None
    assert gate(command, BASE, CANDIDATE) == 0, command.err
    assert len(server.calls) == calls + 3


def test_requests_that_are_refused_for_ever_decide(
    command: Command, server: Server
) -> None:
    """A candidate that refuses most requests whenever they are sent is worse by their number."""
    with serve(lexical.answer, models={"base": Model(), "candidate": Model()}) as other:
        register_server(CANDIDATE, other.address)
        prompts: list[str] = []

        def plan(prompt: str, before: int) -> Fault | None:
            """Refuse every other prompt, whenever it is sent."""
            if prompt not in prompts:
                prompts.append(prompt)
            return (
                Fault.FLAGGED
                if len(prompt) > 1000 and prompts.index(prompt) % 2
                else None
            )

        other.plan = plan
        assert gate(command, BASE, CANDIDATE, "--max-drop", "5", "-n", "1") == 1, (
            command.err
        )
    assert (
        "the share of requests without a scored answer grows by more than 5 points"
        in command.out
    )
    part = read()["parts"][-1]
    assert (part["part"], part["worse"], part["verdict"]) == ("answers", 12, "worse")


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.BUSY, Fault.SERVER_ERROR])
def test_a_throttled_twin_is_never_worse(
    fault: Fault, command: Command, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate that is the same model behind a limit leaves the verdict open, until its requests are answered."""
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.01")
    monkeypatch.setenv("HELM_LONGCTX_TRIES", "2")
    with serve(lexical.answer, models={"base": Model(), "candidate": Model()}) as twin:
        register_server(CANDIDATE, twin.address)
        prompts: list[str] = []

        def plan(prompt: str, before: int) -> Fault | None:
            """Throttle every other prompt, whenever it is sent."""
            if prompt not in prompts:
                prompts.append(prompt)
            return fault if len(prompt) > 1000 and prompts.index(prompt) % 2 else None

        twin.plan = plan
        assert gate(command, BASE, CANDIDATE, "--max-drop", "5", "-n", "1") == 3, (
            command.err
        )
        assert [finding["kind"] for finding in read()["findings"]] == ["passing"]
        assert "for a reason that can pass" in command.out
        twin.plan = lambda prompt, before: None
        assert gate(command, BASE, CANDIDATE, "-n", "1") == 0, command.err


def test_the_looks_are_counted(command: Command, server: Server) -> None:
    """A gate writes at how many instances somebody looked; the same command is the same look."""
    for size, looks in ((6, [6]), (6, [6]), (20, [6, 20])):
        command(
            "gate",
            BASE,
            CANDIDATE,
            f"--entry={ENTRY}4k",
            "--max-drop",
            "30",
            "-m",
            size,
        )
        assert read()["looks"]["4k"] == looks


def test_the_subset_of_long_texts_asks_as_much() -> None:
    """The subsets differ only in the lengths of their texts, so both have the same power."""
    short = gate_command._SUBSETS["ci"]
    long = gate_command._SUBSETS["ci-long"]
    assert long.max_drop == short.max_drop
    assert _leave_out_lengths(long.entries) == _leave_out_lengths(short.entries)


def _leave_out_lengths(entries: Sequence[str]) -> list[str]:
    return [re.sub(r"length=\w+", "", entry) for entry in entries]


@pytest.mark.parametrize(
    "subset", ["ci", pytest.param("ci-long", marks=pytest.mark.long)]
)
def test_the_subset_is_enough_for_its_margin(
    command: Command,
    server: Server,
    subset: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The named sample has the wanted power with the default settings, so the command does not warn about it.

    The texts are made once: four tasks at two lengths.
    """
    with count_loads(monkeypatch) as loads:
        code = command("gate", BASE, CANDIDATE, "--subset", subset, "--dry-run")
    assert code == 0, command.err
    assert len(loads) == 8
    power = int(command.out.partition("probability of at least ")[2].partition("%")[0])
    assert 80 <= power < 95
    assert "add run entries" not in command.out
    assert "points at one depth is found with the same probability" in command.out


def test_an_interrupted_gate_goes_on(command: Command, server: Server) -> None:
    """A gate that ends in the middle keeps its answers, and the same command sends only what is missing."""
    server.plan = lambda prompt, before: (
        Fault.UNAUTHORIZED if len(server.calls) >= 30 else None
    )
    assert gate(command, BASE, CANDIDATE, "-n", "1") == 2
    assert "answers are kept" in command.err
    answered = [call.question for call in server.calls if call.fault is None]
    server.forget()
    server.plan = lambda prompt, before: None
    assert gate(command, BASE, CANDIDATE, "-n", "1") == 0, command.err
    assert len(answered) + len(server.calls) == 48
    assert not set(answered) & {call.question for call in server.calls}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((BASE, CANDIDATE), "tasks is missing"),
        ((BASE, "sim/none", f"--entry={ENTRY}4k"), "sim/none"),
        (
            (BASE, CANDIDATE, "--subset", "cd"),
            "gate: subset='cd' is invalid; choose from ci, ci-long",
        ),
        (
            (BASE, CANDIDATE, "--subset", "ci", "--tasks", "mrcr"),
            "--subset ci cannot be used together with --tasks",
        ),
        (
            (BASE, CANDIDATE, f"--entry={ENTRY}4k,model=sim/base"),
            "gate: model=sim/base is in a run entry",
        ),
        (
            (BASE, CANDIDATE, f"--entry={ENTRY}4k", f"--entry={ENTRY}4k,seed=7"),
            "is in several run entries",
        ),
        ((BASE, CANDIDATE, f"--entry={ENTRY}4k", "--max-drop", "0"), "--max-drop"),
        (
            (BASE, CANDIDATE, f"--entry={ENTRY}4k", "--max-cost", "1"),
            "needs the prices of",
        ),
        ((BASE, CANDIDATE, f"--entry={ENTRY}4k", "--suite", "a/b"), "suite"),
    ],
)
def test_mistakes(
    command: Command, server: Server, arguments: tuple[str, ...], message: str
) -> None:
    """Each mistake ends in one line before anything is sent."""
    assert command("gate", *arguments) == 2
    assert message in command.err
    assert command.err.splitlines()[-1].startswith("helm-longctx: error: ")
    assert server.calls == []


def test_deployments_with_other_requests_are_refused(
    command: Command, server: Server
) -> None:
    """Deployments with different windows get different prompts, which are not compared."""
    register_server(
        CANDIDATE,
        server.address,
        tokenizer_name="longctx/words",
        max_sequence_length=1000,
    )
    assert gate(command, BASE, CANDIDATE) == 2
    assert (
        "sim/base and sim/candidate get different requests in helmet_recall"
        in command.err
    )
    assert (
        "give both deployments the same max_sequence_length, tokenizer_name and style"
        in command.err
    )
    assert server.calls == []
