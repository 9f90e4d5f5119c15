"""Tests of `helm-longctx compaction` against a local server whose model follows rules."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helm_longctx.apps.compaction.asking import AskedModel, Purse, open_replies
from helm_longctx.apps.compaction.compactors import CompactionError
from helm_longctx.apps.compaction.endpoints import make_server_compactor
from helm_longctx.apps.compaction.probes import save_probes
from helm_longctx.apps.compaction.samples import (
    WRITERS,
    make_session,
    place_made_probes,
)
from helm_longctx.apps.compaction.sessions import read_transcripts
from tests.support.agents import AgentServer
from tests.support.commands import Command
from tests.support.deployments import register_server
from tests.support.json_http import JsonHandler, ModelServer

MODULE = """
def drop_middle(messages):
    count = len(messages)
    return messages[: count // 4] + messages[3 * count // 4 :]
def whole(messages):
    return messages
def fail(messages):
    raise ValueError("secret " + messages[0]["content"])
"""
DROP = """
import json, sys
for line in open(sys.argv[1]):
    message = json.loads(line)
    if message["role"] != "tool":
        open(sys.argv[2], "a").write(line)
"""
TOOL = f"tools={sys.executable} drop.py {{input}} {{output}}"
QUIET = ("--quiet", "--to", "out")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work in a folder with a module, a program, and a session in each of three formats."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    Path("mine.py").write_text(MODULE)
    Path("drop.py").write_text(DROP)
    probes = []
    for seed, (end, write) in enumerate(list(WRITERS.values())[:3]):
        messages, raws = make_session(seed, turns=16, per_kind=2)
        Path(end).write_bytes(write(messages))
        (transcript,) = read_transcripts([Path(end)])
        probes += place_made_probes(transcript, raws)
    save_probes(Path("known.jsonl"), probes)
    yield
    sys.modules.pop("mine", None)


SESSIONS = [end for end, _ in list(WRITERS.values())[:3]]


class SessionServer(AgentServer):
    """A model that knows the probes of the sessions of these tests."""

    def __init__(self, **options: Any):
        super().__init__([], **options)
        for seed in range(3):
            self.raws += make_session(seed, turns=16, per_kind=2)[1]


def results() -> dict[str, Any]:
    """Return the data of a comparison."""
    data: dict[str, Any] = json.loads(Path("out/compaction.json").read_text())
    return data


def recall(data: dict[str, Any]) -> dict[tuple[str, int], float]:
    """Return the recall by compactor and rounds."""
    return {
        (row["compactor"], row["rounds"]): row["recall"]["mean"]
        for row in data["recall"]
    }


def test_the_sample_needs_no_key(command: Command) -> None:
    """Without files and a model, sessions of our own are compared by the baselines, and the page is written."""
    assert command("compaction", *QUIET) == 0, command.err
    assert "copies the best sentence: it needs no model and no key" in command.out
    data = results()
    assert recall(data)["whole", 1] == 1
    assert recall(data)["nothing", 1] == 0
    assert recall(data)["last", 1] < 0.2
    assert {row["format"] for row in data["transcripts"]} == {
        "Claude Code",
        "Codex",
        "OpenCode",
    }
    assert len(data["probes"]) == 144
    page = Path("out/index.html").read_text()
    assert "Probes that were lost" in page
    lost = next(
        row
        for row in data["answers"]
        if row["compactor"] == "last" and row["score"] == 0
    )
    probe = next(row for row in data["probes"] if row["id"] == lost["probe"])
    line = (
        Path("out/sample", probe["transcript"])
        .read_text()
        .splitlines()[probe["line"] - 1]
    )
    assert json.dumps(probe["quote"])[1:-1] in line


def test_a_function_a_command_and_the_method(command: Command) -> None:
    """On sessions of three formats, the losses of a function, a command and `compact` are those that were planted."""
    server = SessionServer(
        keeps=lambda line: "FAILED" not in line and "must never" not in line
    )
    compactors = (
        "--compactor",
        "middle=mine:drop_middle",
        "--compactor",
        TOOL,
        "--compactor",
        "compact",
    )
    with server.serve() as url:
        options = ("--model-url", url, *compactors, "--rounds", "1,2", *QUIET)
        assert command("compaction", *SESSIONS, *options) == 0, command.err
        sent = len(server.prompts)
        probes = Path("out/probes.jsonl").read_text()
        assert command("compaction", *SESSIONS, *options) == 0, command.err
        # Again only the probe of the server, which finds out what it offers.
        assert [server.kind_of(prompt) for prompt in server.prompts[sent:]].count(
            "greet"
        ) == len(server.prompts) - sent
    assert Path("out/probes.jsonl").read_text() == probes
    data = results()
    assert len(data["probes"]) > 20
    by_kind = {
        row["compactor"]: row["kinds"] for row in data["recall"] if row["rounds"] == 1
    }
    assert by_kind["tools"]["tool_results"]["mean"] == 0
    assert by_kind["tools"]["facts"]["mean"] == 1
    assert by_kind["compact"]["constraints"]["mean"] == 0
    assert by_kind["compact"]["decisions"]["mean"] == 1
    assert 0 < recall(data)["middle", 1] < 1
    assert recall(data)["whole", 1] == 1
    assert recall(data)["nothing", 1] == 0
    tokens = {row["compactor"]: row["tokens"] for row in data["recall"]}
    assert tokens["nothing"] == 0 < tokens["last"] < tokens["tools"] < tokens["whole"]
    for row in data["recall"]:
        assert len(row["tokens_by_round"]) == row["rounds"]
        assert row["tokens_by_round"][-1] == row["tokens"]
        assert row["seconds"] >= 0
    assert "Tokens kept after each compaction" in command.out


def test_probes_are_checked(command: Command) -> None:
    """Probes that are guessed, invented or unanswerable are left out, and the reasons are counted."""
    server = SessionServer()
    with server.serve() as url:
        assert command("compaction", SESSIONS[0], "--model-url", url, *QUIET) == 0, (
            command.err
        )
    made = results()["made"]["rejected"]
    assert made["its quotation is not in the part that vanishes"] >= 1
    assert made["it is answered without the transcript"] == 1
    assert made["it is not answered with the transcript"] == 1
    assert "left out: it is answered without the transcript" in command.out


def test_a_judge_reads_what_is_not_exact(command: Command) -> None:
    """Answers that are not exact are judged, and verdicts are kept."""
    server = SessionServer(is_exact=False)
    with server.serve() as url:
        options = (SESSIONS[0], "--model-url", url, "--compactor", TOOL, *QUIET)
        assert command("compaction", *options) == 0, command.err
        asked = server.kinds["judge"]
        assert asked > 10
        assert command("compaction", *options) == 0, command.err
        assert server.kinds["judge"] == asked
    data = results()
    assert not any(probe["is_exact"] for probe in data["probes"])
    assert recall(data)["tools", 1] < recall(data)["whole", 1] == 1


def test_failures_are_no_wrong_answers(command: Command) -> None:
    """A request that fails is counted and in no mean, and is the only one that the same command sends again."""
    server = SessionServer()
    options = ("--compactor", "compact", "--compactor", "broken=mine:fail", *QUIET)
    with server.serve() as url:
        assert command("compaction", SESSIONS[0], "--model-url", url, *QUIET) == 0, (
            command.err
        )
        server.fails = lambda kind: (
            kind == "summarize"
            or (kind == "answer_questions" and server.kinds[kind] % 2 == 0)
        )
        assert command("compaction", SESSIONS[0], "--model-url", url, *options) == 0, (
            command.err
        )
        rows = {row["compactor"]: row for row in results()["recall"]}
        assert rows["compact"]["recall"]["n"] == 0
        assert list(rows["compact"]["failed_compactions"]) == [
            "a request failed: bad_request"
        ]
        assert list(rows["broken"]["failed_compactions"]) == [
            "the function raised ValueError"
        ]
        assert rows["broken"]["recall"]["mean"] is None
        assert "a request failed" in command.out
        assert (
            "secret"
            not in command.out + command.err + Path("out/compaction.json").read_text()
        )
        server.fails = lambda kind: False
        server.kinds.clear()
        assert command("compaction", SESSIONS[0], "--model-url", url, *options) == 0, (
            command.err
        )
        assert server.kinds["make_probes"] == 0
        assert server.kinds["summarize"] > 0
    rows = {row["compactor"]: row for row in results()["recall"]}
    assert rows["compact"]["recall"]["mean"] == 1


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (("--compactor", "same=mine:whole", "--max-loss", "15"), 0),
        (("--compactor", "middle=mine:drop_middle", "--max-loss", "10"), 1),
        (("--compactor", TOOL, "--max-loss", "17"), 3),
        (
            (
                "--compactor",
                "same=mine:whole",
                "--compactor",
                "middle=mine:drop_middle",
                "--max-loss",
                "10",
            ),
            1,
        ),
        (
            (
                "--compactor",
                "same=mine:whole",
                "--base",
                "last",
                "--max-loss",
                "15",
            ),
            0,
        ),
        (("--compactor", "broken=mine:fail", "--max-loss", "5"), 3),
        (("--compactor", "same=mine:whole", "--must-keep", "facts,constraints"), 0),
        (("--compactor", TOOL, "--must-keep", "facts"), 0),
        (("--compactor", TOOL, "--must-keep", "facts,tool_results"), 1),
        (("--compactor", "broken=mine:fail", "--must-keep", "facts"), 3),
        (
            (
                "--compactor",
                "same=mine:whole",
                "--compactor",
                TOOL,
                "--max-loss",
                "50",
                "--must-keep",
                "tool_results",
            ),
            1,
        ),
    ],
)
def test_statuses(command: Command, options: tuple[str, ...], status: int) -> None:
    """The exit status is 0, 1 or 3 as that of a gate or of what must be kept, and failures never let a compactor pass."""
    own = ("--probes", "known.jsonl", *options, *QUIET)
    assert command("compaction", *SESSIONS, *own) == status, command.err


def test_the_price_comes_first(command: Command) -> None:
    """A dry run prints the price and sends nothing; a limit ends the command before it is passed, and keeps replies."""
    Path("prices.yaml").write_text("endpoint/m: {input: 1000, output: 1000}\n")
    server = SessionServer()
    with server.serve() as url:
        named = ("--model-url", url, "--model-name", "m", "--prices", "prices.yaml")
        options = (
            SESSIONS[0],
            *named,
            "--compactor",
            "compact",
            "--compactor",
            TOOL,
            *QUIET,
        )
        assert command("compaction", *options, "--dry-run") == 0, command.err
        assert server.prompts == []
        assert "Nothing was sent." in command.out
        assert "Together at most $" in command.out
        assert "make probes" in command.out
        assert command("compaction", *options, "--max-cost", "30") == 2
        assert "all replies are kept" in command.err
        first = len(server.prompts)
        assert command("compaction", *options) == 0, command.err
        prompts = [
            prompt for prompt in server.prompts if server.kind_of(prompt) != "greet"
        ]
        assert len(prompts) == len(set(prompts))
        assert first < len(server.prompts)
    rows = {row["compactor"]: row for row in results()["recall"]}
    assert rows["compact"]["dollars"] > 0
    assert rows["whole"]["dollars_answers"] > rows["nothing"]["dollars_answers"] > 0


SECRETS = (
    "sk-ant-api03-abcdef0123456789",
    "jane.doe@example.org",
    "Fabrikam",
    "/home/janedoe/",
    "+49 170 1234567",
)


def test_secrets_are_not_sent(command: Command) -> None:
    """Secrets, personal details and the user's words are replaced in all that is sent, and what was replaced is shown."""
    messages, raws = make_session(0, turns=16, per_kind=2)
    lines = [json.loads(line) for line in WRITERS["messages"][1](messages).splitlines()]
    lines[0]["content"] += "\n" + " ".join(SECRETS)
    call = {
        "id": "x",
        "type": "function",
        "function": {"name": "mail", "arguments": json.dumps({"to": [SECRETS[1]]})},
    }
    lines.insert(1, {"role": "assistant", "content": "", "tool_calls": [call]})
    Path("own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    Path("words.txt").write_text("fabrikam\n")
    server = SessionServer()
    with server.serve() as url:
        options = (
            "own.jsonl",
            "--model-url",
            url,
            "--compactor",
            "compact",
            "--redact",
            "--redact-words",
            "words.txt",
        )
        assert command("compaction", *options, *QUIET) == 0, command.err
        sent = json.dumps(server.bodies)
    written = "".join(path.read_text() for path in Path("out").rglob("*.json*"))
    for secret in SECRETS:
        assert secret not in sent
        assert secret not in written + command.out + command.err
    for placeholder in ("[secret 1]", "[email 1]", "[word 1]", "[user 1]", "[phone 1]"):
        assert placeholder in sent
        assert placeholder in command.out
    rows = {row["kind"]: row for row in results()["redacted"]}
    assert rows["email"]["times"] == 2
    assert rows["email"]["first"] == "own.jsonl, line 1"
    assert raws


def test_openais_compaction(command: Command) -> None:
    """The server that compacts with encrypted content also answers the probes, and both are paid for once."""
    server = SessionServer()
    with server.serve() as url:
        options = (SESSIONS[0], "--model-url", url, "--compactor", "server", *QUIET)
        assert command("compaction", *options) == 0, command.err
        compactions = [
            body
            for body in server.bodies
            if "input" in body and "max_output_tokens" not in body
        ]
        assert len(compactions) == 1
        assert {"type", "call_id", "output"} <= {
            key for item in compactions[0]["input"] for key in item
        }
        sent = len(server.bodies)
        assert command("compaction", *options) == 0, command.err
        assert sum("input" in body for body in server.bodies[sent:]) == 0
    data = results()
    assert recall(data)["server", 1] == 1
    row = next(row for row in data["recall"] if row["compactor"] == "server")
    assert 0 < row["tokens"] < 7000


class AnthropicServer(ModelServer):
    """A server of Anthropic's protocol that compacts prompts of more than its trigger, and answers with a fixed text."""

    def __init__(self, compacts: bool):
        self.compacts = compacts
        self.compactions: list[dict[str, Any]] = []
        self.betas: list[str] = []

    def handle(self, handler: JsonHandler) -> None:
        """Answer a request."""
        body = handler.read_body()
        content: list[dict[str, Any]] = [{"type": "text", "text": "1. unknown"}]
        reason = "end_turn"
        usage: dict[str, Any] = {"input_tokens": 10, "output_tokens": 5}
        if "context_management" in body:
            self.compactions.append(body)
            self.betas.append(handler.headers["anthropic-beta"])
            if self.compacts:
                text = "FAILED test_x: exit code 5"
                content = [{"type": "compaction", "content": text}]
                reason = "compaction"
                own = {"type": "compaction", "input_tokens": 60000, "output_tokens": 90}
                usage["iterations"] = [own]
        message = {"id": "m", "type": "message", "role": "assistant", "model": "m"}
        handler.send_json(
            200, {**message, "content": content, "stop_reason": reason, "usage": usage}
        )


@pytest.mark.parametrize("compacts", [True, False])
def test_anthropics_compaction(compacts: bool) -> None:
    """The server's summary takes the place of the transcript; without one there is no result, which says why."""
    server = AnthropicServer(compacts)

    messages, _ = make_session(0, turns=4)
    with server.serve() as url, open_replies(Path()) as kept:
        register_server(
            "made/claude",
            url.removesuffix("/v1"),
            client="AnthropicClient",
        )
        model = AskedModel("made/claude", Path("prod_env"), kept, Purse())
        compactor = make_server_compactor("server", model, kept)
        if compacts:
            made = compactor.compact(messages, 10)
            assert [message.text for message in made.messages] == [
                "FAILED test_x: exit code 5"
            ]
        else:
            with pytest.raises(CompactionError, match="did not compact: its trigger"):
                compactor.compact(messages, 10)
    (body,) = server.compactions
    (edit,) = body["context_management"]["edits"]
    assert edit["type"] == "compact_20260112"
    assert edit["pause_after_compaction"] is True
    assert server.betas == ["compact-2026-01-12"]
    kinds = set()
    for message in body["messages"]:
        if isinstance(message["content"], list):
            kinds |= {block["type"] for block in message["content"]}
    assert kinds == {"text", "tool_use", "tool_result"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("missing.jsonl",), "No such file"),
        ((SESSIONS[0],), "give --model or --probe-model"),
        (("--rounds", "0"), "numbers from 1 to 64"),
        (("--rounds", "one"), "numbers from 1 to 64"),
        (("--baselines", "first"), "choose from whole, last, nothing"),
        (("--baselines", "none"), "there is nothing to compare"),
        (("--keep", "1m"), "leaves none to ask about"),
        (("--compactor", "compact"), "needs a model"),
        (("--compactor", "mine:whole", "--compactor", "mine:whole"), "each name once"),
        (("--max-loss", "5"), "--max-loss needs a compactor"),
        (("--must-keep", "facts"), "--must-keep needs a compactor"),
        (("--compactor", "mine:whole", "--must-keep", "facts,colours"), "choose from facts, decisions"),
        (("--compactor", "mine:whole", "--max-loss", "5", "--base", "best"), "choose from"),
        (("--compactor", "m=mine:whole", "--compactor", "n=mine:fail", "--base", "m", "--max-loss", "5", "--rounds", "2"), "1, too"),
        (("--model", "a/b,c/d"), "one model"),
        (("--judge", "no/such"), "HELM has no such deployment"),
        (("--redact",), "the sample has no secrets"),
        (("--redact-words", "missing"), "No such file"),
        (("--json", "missing/x.json"), "does not exist"),
    ],
)  # fmt: skip
def test_mistakes(command: Command, arguments: tuple[str, ...], expected: str) -> None:
    """A mistake on the command line ends in one line with the status 2, before anything is sent."""
    assert command("compaction", *arguments, *QUIET) == 2
    assert expected in command.err
    assert len(command.err.strip().splitlines()) == 1
