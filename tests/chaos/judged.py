"""Rounds of judged runs: juries with a judge that dies, judges that are slow, keys that change, and tokens that expire."""

from __future__ import annotations

import json
import random
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from helm_longctx.models.apis.availability import PROMPT
from tests.chaos.chaos import ENTRIES, PATIENCE, Chaos, ChaosError
from tests.chaos.processes import Attempt, start
from tests.judging.deployments import write_judges
from tests.judging.grades import grade
from tests.judging.token_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    TokenServer,
    serve_tokens,
)
from tests.support.fabricate import build_mirror
from tests.support.servers import faults
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, asked_again, serve

NAMES = ("chaos/gpt-one", "chaos/gpt-two", "chaos/gpt-three")
TASKS = (
    "helmet_longqa:task=narrativeqa,length=8k,num_samples=8",
    "helmet_summ:task=infbench_sum,length=8k,num_samples=4",
)
PARALLEL = 3
"""Questions that judges are asked at the same time."""

SETTINGS = {
    "HELM_LONGCTX_JUDGE_WAIT": "0.01",
    "HELM_LONGCTX_JUDGE_TIMEOUT": "1",
    "HELM_LONGCTX_JUDGE_PARALLEL": str(PARALLEL),
}


OF_OUR_CLIENT = {
    "api_key_env": "CHAOS_KEY",
    "form": "both",
    "model": "m",
    "api_key": None,
    "openai_model_name": None,
    "max_retries": None,
}
"""Arguments that HELM's client does not take, and None for those that ours does not take."""


class JudgedRun:
    """A run of the lexical baseline with judges, each on a server of its own.

    Args:
        servers: the servers of the judges, by the judges' names.
    """

    def __init__(
        self,
        chaos: Chaos,
        folder: Path,
        entry: str,
        servers: dict[str, Server],
        **environment: str,
    ):
        self._chaos = chaos
        self._folder = folder
        self._servers = servers
        self._kills = 0
        write_judges(folder, {name: server.openai for name, server in servers.items()})
        data = {
            "HELM_LONGCTX_DATA": str(_mirror(chaos)),
            "XDG_CACHE_HOME": str(folder / "user"),
        }
        self._environment = {**SETTINGS, **data, **environment}
        self._entry = f"{entry},judge={'+'.join(servers)},model=longctx/lexical"

    def make(self, rng: random.Random | None = None) -> Attempt:
        """Make the run. With a random generator, it is killed at any moment.

        Raises:
            ChaosError: the run does not end.
        """
        arguments = [
            "--run-entries",
            self._entry,
            "--suite",
            "s",
            "-m",
            "99",
            "--local-path",
            str(self._folder),
        ]
        runner = ["--runner-class-name", "helm_longctx.runner.LongContextRunner"]
        return self._wait(self._start([*arguments, *runner]), rng)

    def judge_again(self) -> None:
        """Ask for the verdicts that are missing."""
        self._wait(
            self._start(
                [
                    "helm-longctx",
                    "rejudge",
                    "--suite",
                    "s",
                    "--local-path",
                    str(self._folder),
                ]
            )
        )

    def scores(self) -> dict[str, Any]:
        """Return the statistics by instance, without the statistics of requests."""
        (path,) = self._folder.glob("benchmark_output/runs/s/*/per_instance_stats.json")
        return {
            row["instance_id"]: {
                stat["name"]["name"]: stat["mean"]
                for stat in row["stats"]
                if "request" not in stat["name"]["name"]
            }
            for row in json.loads(path.read_bytes())
        }

    def check_calls(self) -> None:
        """Check that no judge was asked a question again that it had answered, except a question in flight at a kill.

        Raises:
            ChaosError: a judge was asked again.
        """
        for name, server in self._servers.items():
            # A question that was in flight can fail several times before it is answered again.
            again = {
                call.question
                for call in asked_again(
                    call for call in server.calls if call.prompt != PROMPT
                )
            }
            if len(again) > self._kills * PARALLEL:
                raise ChaosError(
                    f"{name} was asked {len(again)} questions again that it had answered"
                )

    def log(self) -> str:
        """Return what the commands printed."""
        return (self._folder / "log").read_text()

    def _start(self, arguments: list[str]) -> Attempt:
        self._chaos.tally.attempts += 1
        return start(self._folder, arguments, environment=self._environment)

    def _wait(self, attempt: Attempt, rng: random.Random | None = None) -> Attempt:
        if rng:
            due = rng.randint(1, 20)
            until = time.monotonic() + rng.uniform(1, 10)
            while (
                self._questions() < due
                and time.monotonic() < until
                and not attempt.ended(0.002)
            ):
                pass
            self._kills += not attempt.ended(0)
            attempt.send(signal.SIGKILL)
            self._chaos.tally.events["kills of judged runs"] += 1
        if not attempt.ended_by_itself(PATIENCE):
            attempt.send(signal.SIGKILL)
            raise ChaosError(f"it did not end within {PATIENCE:.0f} s")
        self._chaos.tally.requests = self._chaos.tally.requests + self._questions()
        return attempt

    def _questions(self) -> int:
        return sum(len(server.calls) for server in self._servers.values())


@cache
def _mirror(chaos: Chaos) -> Path:
    """Return a mirror with fabricated data."""
    return build_mirror(chaos.folder / "mirror")


@contextmanager
def _judges() -> Iterator[dict[str, Server]]:
    with ExitStack() as stack:
        servers = {name: stack.enter_context(serve(grade)) for name in NAMES}
        for server in servers.values():
            server.http.handle_error = lambda *request: None  # type: ignore[method-assign]  # of a killed process
        yield servers


@cache
def _undisturbed(chaos: Chaos, entry: str) -> dict[str, Any]:
    with _judges() as servers:
        run = JudgedRun(
            chaos, chaos.folder / f"judged{TASKS.index(entry)}", entry, servers
        )
        run.make()
        return run.scores()


def _finish(chaos: Chaos, run: JudgedRun, entry: str) -> None:
    """Complete a run, and compare it with an undisturbed one."""
    expected = _undisturbed(chaos, entry)
    if run.make().status:
        raise ChaosError(f"not complete without faults: {run.log()[-500:]}")
    run.judge_again()
    if run.scores() != expected:
        raise ChaosError("scores differ from an undisturbed run's")
    run.check_calls()


def kill_a_judge(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Let a judge of a jury die in the middle; when it is back, only its missing verdicts are asked for."""
    entry = rng.choice(TASKS)
    with _judges() as servers:
        run = JudgedRun(chaos, folder, entry, servers)
        dead = servers[rng.choice(NAMES)]
        how = rng.choice(
            (Fault.SERVER_ERROR, Fault.DROPPED, Fault.UNAUTHORIZED, Fault.PAGE)
        )
        alive = rng.randint(1, 5)
        dead.plan = lambda prompt, before: (
            how if prompt != PROMPT and len(dead.calls) > alive else None
        )
        if rng.random() < 0.5:
            run.make(rng)
        run.make()
        chaos.tally.events["judges that died"] += 1
        dead.plan = faults.none
        _finish(chaos, run, entry)


def slow_down_judges(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Let judges take long, some questions longer than a client waits, while the run is killed."""
    entry = rng.choice(TASKS)
    with _judges() as servers:
        run = JudgedRun(chaos, folder, entry, servers)
        for server in servers.values():
            server.delay = rng.choice((0.0, 0.2))
            server.plan = faults.share(0.1, [Fault.TIMEOUT], rng.randrange(2**32))
        for _ in range(rng.randint(1, 2)):
            run.make(rng)
        chaos.tally.events["runs with slow judges"] += 1
        _finish(chaos, run, entry)


def change_keys(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Withdraw the model's key in the middle of a run; with the next key the run goes on.

    Raises:
        ChaosError: the run does not end with a line about the key, or a key is shown.
    """
    entry = rng.choice(ENTRIES)
    run, undisturbed = (
        chaos.make_run(folder / name, entry, rng) for name in ("run", "undisturbed")
    )
    server = chaos.server
    keys = [f"sk-{secrets.token_hex(16)}" for _ in range(3)]
    for suite in (run, undisturbed):
        _change_clients(
            suite.folder, "helm_longctx.models.apis.OpenAIClient", **OF_OUR_CLIENT
        )
        suite.order = {"environment": {"CHAOS_KEY": keys[-1]}}
    undisturbed.attempt_calmly()
    try:
        for key in keys[:-1]:
            due = rng.randint(
                1, 9
            )  # both keys together answer fewer requests than a run of `ENTRIES` has
            server.accepts = _first_calls(server, key, due)
            attempt = run.start(environment={"CHAOS_KEY": key})
            run.wait(attempt)
            run.check()
            log = (run.folder / "log").read_text()
            if attempt.status == 0 or "bad_key" not in log or "Traceback" in log:
                raise ChaosError(
                    f"status {attempt.status} with a key that was withdrawn: {log[-500:]}"
                )
            if any(key in log for key in keys):
                raise ChaosError("the log has a key")
            chaos.tally.events["keys that were withdrawn"] += 1
        server.accepts = lambda key: key.endswith(keys[-1])
        chaos.finish(run, undisturbed.results())
    finally:
        server.accepts = lambda key: True


def _first_calls(server: Server, key: str, due: int) -> Callable[[str], bool]:
    return lambda given: given.endswith(key) and len(server.calls) < due


def _change_clients(
    folder: Path, class_name: str | None = None, **arguments: Any
) -> None:
    """Let all deployments have another client, or other arguments, of which None stands for no argument."""
    path = folder / "model_deployments.yaml"
    content = yaml.safe_load(path.read_text())
    for deployment in content["model_deployments"]:
        spec = deployment["client_spec"]
        spec["class_name"] = class_name or spec["class_name"]
        values = {**spec["args"], **arguments}
        spec["args"] = {
            name: value for name, value in values.items() if value is not None
        }
    path.write_text(yaml.safe_dump(content))


def expire_tokens(chaos: Chaos, rng: random.Random, folder: Path) -> None:
    """Let the judges' OAuth tokens expire early and late while the run is made and killed.

    Raises:
        ChaosError: a verdict is missing, or a token or the secret is shown.
    """
    entry = rng.choice(TASKS)
    with (
        _judges() as servers,
        serve_tokens(life=rng.choice((1.0, 2.0, 3600.0))) as tokens,
    ):
        for server in servers.values():
            server.accepts = _valid_token(tokens)
            server.delay = 0.05
        client = {
            "CLIENT_ID": CLIENT_ID,
            "CLIENT_SECRET": CLIENT_SECRET,
            "TOKEN_URL": f"{tokens.url}/token",
        }
        environment = {f"GPT_JUDGE_{name}": value for name, value in client.items()}
        run = JudgedRun(chaos, folder, entry, servers, **environment)
        _change_clients(folder, api_key=None)
        with _losing(tokens, rng):
            if rng.random() < 0.5:
                run.make(rng)
            run.make()
        chaos.tally.events["tokens"] += len(tokens.asked)
        _finish(chaos, run, entry)
        written = b"".join(
            path.read_bytes()
            for path in (folder / "benchmark_output").rglob("*")
            if path.is_file()
        )
        shown = run.log().encode() + written
        if any(token.encode() in shown for token in (*tokens.tokens, CLIENT_SECRET)):
            raise ChaosError("a token or the secret is shown")


def _valid_token(tokens: TokenServer) -> Callable[[str], bool]:
    def accepts(key: str) -> bool:
        token = key.removeprefix("Bearer ")
        return token not in tokens.lost and tokens.tokens.get(token, 0) > time.time()

    return accepts


@contextmanager
def _losing(tokens: TokenServer, rng: random.Random) -> Iterator[None]:
    """Withdraw tokens before they expire, until the block ends."""
    ended = threading.Event()
    pauses = [rng.uniform(0.3, 2) for _ in range(100)]

    def lose() -> None:
        for pause in pauses:
            if ended.wait(pause):
                return
            tokens.lost.update(tokens.tokens)

    thread = threading.Thread(target=lose, daemon=True)
    thread.start()
    yield
    ended.set()
    thread.join()
