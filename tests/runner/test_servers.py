"""Tests that answers of one server are never used for another, and that replies without an answer are not kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helm.benchmark.runner import Runner
from helm.clients import auto_client

from helm_longctx.errors import InputError
from helm_longctx.models.baselines import lexical
from helm_longctx.models.results import describe_failure, parse_result
from helm_longctx.runner.cache import server_digest
from helm_longctx.runs.journal import NAME
from helm_longctx.runs.lookup import full_prompt
from tests.runner.making import make_run, means, read
from tests.runner.served import ENTRY, register
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import serve


@pytest.fixture(autouse=True)
def no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable HELM's retries, which wait for minutes, and ours, which wait for seconds."""
    monkeypatch.setattr(auto_client, "retry_request", lambda function: function)
    monkeypatch.setenv("HELM_LONGCTX_WAIT", "0.001")


def mean(run: Path, name: str) -> float:
    """Return the mean over a run's instances that have the statistic."""
    stats = [stat for row in read(run, "per_instance_stats") for stat in row["stats"]]
    values: list[float] = [
        stat["mean"] for stat in stats if stat["name"]["name"] == name
    ]
    return sum(values) / len(values)


def some(prompts: list[str], part: int = 3) -> Callable[[str], bool]:
    """Return every third of the prompts, or another part."""
    chosen = set(sorted(set(prompts))[::part])
    return chosen.__contains__


def test_two_servers_of_one_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two servers of one model each get all requests once, the run reports cached answers, and a refused key makes no run."""
    caplog.set_level("INFO")
    refusing = faults.always(Fault.UNAUTHORIZED)
    with (
        serve(lexical.answer) as one,
        serve(lambda prompt: "no") as two,
        serve(lexical.answer, refusing) as bad,
    ):
        for name, server in (("one", one), ("two", two), ("bad", bad)):
            register(f"corp/{name}", server.openai)
        runs = [make_run(tmp_path, f"{ENTRY}corp/{name}") for name in ("one", "two")]
        assert [len(server.calls) for server in (one, two)] == [12, 12]
        assert mean(runs[0], "longctx_score") > mean(runs[1], "longctx_score") == 0
        assert mean(runs[0], "request_cached") == 0
        before = means(runs[0])
        caplog.clear()
        make_run(tmp_path, f"{ENTRY}corp/one")
        assert len(one.calls) == 12
        assert mean(runs[0], "request_cached") == 1
        assert means(runs[0]) == before
        assert "12 of them from the request cache" in caplog.text
        with pytest.raises(InputError, match=r"bad_key: "):
            make_run(tmp_path, f"{ENTRY}corp/bad")


def test_another_address(tmp_path: Path) -> None:
    """A deployment at another address does not get answers from the cache or the journal."""
    with serve(lexical.answer) as old, serve(lexical.answer) as new:
        register("corp/moved", old.openai)
        make_run(tmp_path, f"{ENTRY}corp/moved")
        old.plan = faults.always(
            Fault.FLAGGED, some([call.prompt for call in old.calls])
        )
        run = make_run(tmp_path, f"{ENTRY}corp/moved", cache=False)
        assert (run / NAME).exists()
        register("corp/moved", new.openai, api_key="sk-other", timeout=7)
        make_run(tmp_path, f"{ENTRY}corp/moved")
        assert len(new.calls) == 12
        register("corp/moved", new.openai.rstrip("/"), api_key="sk-third")
        make_run(tmp_path, f"{ENTRY}corp/moved")
        assert len(new.calls) == 12


def test_what_tells_servers_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, addresses in credentials and variables, and HELM's proxy identify a server; keys and timeouts do not."""

    def named(
        credentials: dict[str, str] | None = None,
        proxy: str | None = None,
        **arguments: object,
    ) -> str:
        register("corp/x", **{"address": None, **arguments})  # type: ignore[arg-type]
        return server_digest("corp/x", credentials or {}, proxy)

    same = [
        named(),
        named(api_key="sk-b"),
        named(timeout=3),
        named(default_headers={"X-Api-Key": "b"}),
    ]
    others = [
        named(default_headers={"X-Route": "b"}),
        named(openai_model_name="b"),
        named(address="http://x/"),
        named({"corpBaseUrl": "http://x"}),
        named(proxy="http://x"),
    ]
    assert named({"corpApiKey": "b"}) == same[0]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://y")
    others.append(named())
    assert named(address="http://x") == others[2]
    assert len(set(same[:3])) == 1
    assert len({same[0], *others}) == 1 + len(others)


ODD = {
    Fault.NULL: "malformed: the server's answer has no text",
    Fault.NO_CHOICES: "malformed: the server's answer has no choices",
    Fault.STRANGE: "temporary: the server answered with an error",
    Fault.PAGE: "malformed: ",
    Fault.MALFORMED: "malformed: ",
    Fault.DROPPED: "temporary: ",
    Fault.REFUSED: "refused: ",
    Fault.FILTERED: "refused: ",
    Fault.FLAGGED: "refused: ",
    Fault.TOO_LONG: "too_long: ",
}
"""What is no answer, and how its error begins."""


def test_what_is_no_answer(tmp_path: Path) -> None:
    """A reply without an answer is counted by its kind and not scored, and the same command sends only it again."""
    entry = ENTRY.replace("num_samples=3", "num_samples=6") + "corp/odd"
    with serve(lexical.answer) as server:
        register("corp/odd", server.openai)
        undisturbed = make_run(tmp_path / "undisturbed", entry)
        odd = dict(
            zip(sorted(call.prompt for call in server.calls)[::2], ODD, strict=False)
        )
        server.forget()
        server.plan = lambda prompt, before: odd.get(prompt)
        run = make_run(tmp_path, entry)
        states = read(run, "scenario_state")["request_states"]
        failed = {
            full_prompt(run, state["instance"]["id"]): state["result"]
            for state in states
        }
        failed = {
            prompt: describe_failure(parse_result(result))
            for prompt, result in failed.items()
            if not result["success"]
        }
        assert failed.keys() == odd.keys()
        for prompt, fault in odd.items():
            assert failed[prompt].startswith(ODD[fault]), fault
        counts = [
            mean(run, f"request_{kind}") * 24
            for kind in ("failed", "refused", "too_long")
        ]
        assert counts == pytest.approx([6, 3, 1])
        assert (
            sum("longctx_score" in str(row) for row in read(run, "per_instance_stats"))
            == 24 - 10
        )
        server.forget()
        server.plan = faults.none
        make_run(tmp_path, entry)
        assert sorted(call.prompt for call in server.calls) == sorted(odd)
        assert means(run) == means(undisturbed)


def test_completions_without_log_probabilities(tmp_path: Path) -> None:
    """A completion without log-probabilities ends in a clear error with HELM's client, and no cached answer replaces it."""
    with serve(lexical.answer, faults.always(Fault.NO_LOGPROBS)) as server:
        register("corp/plain", server.openai, "OpenAILegacyCompletionsClient")
        with pytest.raises(
            InputError, match="malformed: the server's answer has no log-probabilities"
        ):
            make_run(tmp_path, f"{ENTRY}corp/plain")
        server.forget()
        server.plan = faults.none
        make_run(tmp_path, f"{ENTRY}corp/plain")
        assert len(server.calls) == 12


def test_helms_own_runner_counts_alike(tmp_path: Path) -> None:
    """HELM's own runner also counts an answer without a text, or with a harmless error, as a refusal."""
    with serve(lexical.answer) as server:
        register("corp/flagged", server.openai)
        make_run(tmp_path / "undisturbed", f"{ENTRY}corp/flagged")
        odd = some([call.prompt for call in server.calls])
        for fault in (Fault.FLAGGED, Fault.FILTERED):
            server.plan = faults.always(fault, odd)
            stock = make_run(
                tmp_path / fault.name / "stock", f"{ENTRY}corp/flagged", Runner
            )
            ours = make_run(tmp_path / fault.name / "ours", f"{ENTRY}corp/flagged")
            assert mean(stock, "request_refused") == pytest.approx(1 / 3)
            assert means(stock) == means(ours)
