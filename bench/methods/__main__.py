"""Measures methods of many requests with scripted models, which know only what stands in a prompt.

    python -m bench.methods [loss|frontier|kills|flight|retrieve …]

- `loss`: a summarizer that loses a known share of the facts. The script prints how often the interval of the measured
  loss has that share, over 100 seeds.
- `frontier`: score and tokens of compaction at 25 %, 50 % and 100 % of the context.
- `kills`: runs of every method that are killed at random requests, and continued. The script prints how many requests
  that had an answer were sent again: at most those that were in flight.
- `flight`: the most requests in flight with `map_reduce`, and the memory, at 1M tokens a question.
- `retrieve`: the time and the memory of a search in 128k and in 1M tokens: split, search, join.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import random
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from bench.cost import peak_mb
from tests.runner import making
from tests.runner.kills import KILLED, kill
from tests.runner.scripted_runs import MODEL
from tests.support import scripted
from tests.support.deployments import register_server
from tests.support.servers.llm import serve

from helm_longctx.results.statistics.intervals import mean_interval
from helm_longctx.run_settings import SANDBOX
from helm_longctx.tasks.methods.chunks import find_best, join, split
from helm_longctx.tasks.methods.prompts import RETRIEVE
from helm_longctx.tasks.sandbox import BUBBLEWRAP
from helm_longctx.tasks.token_estimate import estimate_tokens

SEEDS = 100
QUESTIONS = 100

WORDS = 50_000
"""Number of different words of a text to search, as of long texts of several books."""

SEARCHED_FOR = (
    "Who built the bridge over the river in the north of the town, and in which year?"
)


def measure_loss() -> None:
    """Print for each share how often the interval of the measured loss has it."""
    for share in (0.0, 0.1, 0.3, 0.5):
        inside = 0
        widths = []
        for seed in range(SEEDS):
            rows = []
            for number in range(QUESTIONS):
                one = seed * QUESTIONS + number
                question, value = scripted.make_question(
                    30, one, 0.1, "compact", turn=300, threshold=700, kept=5000
                )
                rows.append(
                    float(
                        scripted.ask(question, "compact", scripted.lose(share, one))[0]
                        != value
                    )
                )
                assert question.notes["compactions"] > 0
            interval = mean_interval(rows)
            inside += interval.low <= share <= interval.high
            widths.append(interval.high - interval.low)
        mean = sum(widths) / len(widths)
        print(
            f"loss of {share:.0%}: in the interval in {inside} of {SEEDS} seeds; mean width {100 * mean:.1f} points"
        )


def measure_frontier() -> None:
    """Print score and size of the prompts of compaction at shares of the context, with a loss of a third."""
    pairs = 300
    tokens = 23_000
    for share in (0.25, 0.5, 1.0):
        right = size = compactions = 0
        for number in range(50):
            limit = int(share * tokens)
            question, value = scripted.make_question(
                pairs,
                number,
                number / 50,
                "compact",
                turn=1000,
                threshold=limit,
                kept=20_000,
            )
            text, seen = scripted.ask(question, "compact", scripted.lose(1 / 3, number))
            right = right + (text == value)
            size = size + seen
            compactions = compactions + question.notes["compactions"]
        print(
            f"compaction at {share:.0%}: score {right / 50:.0%}, {size / 50:,.0f} characters of prompts,"
            f" {compactions / 50:.1f} compactions"
        )


def _in_child(function: Callable[..., None], *arguments: object) -> BaseProcess:
    child = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    child.start()
    return child


def measure_kills(kills: int = 10) -> None:
    """Kill each method at random requests, and print what was sent again."""
    os.environ.update({SANDBOX: BUBBLEWRAP, "HELM_LONGCTX_WAIT": "0.001"})
    for name in KILLED:
        with tempfile.TemporaryDirectory() as folder:
            outcome = kill(Path(folder), name, kills, random.Random(name))
        print(
            f"{name}: {kills} kills, {'same' if outcome.equal else 'OTHER'} answers; {outcome.sent} of {outcome.requests}"
            f" requests; {outcome.again} that were in flight at a kill were sent again, and {outcome.answered} others",
            flush=True,
        )


def measure_flight() -> None:
    """Print the most requests in flight and the memory of `map_reduce` on two and on six questions of 1M tokens."""
    os.environ["HELM_LONGCTX_WAIT"] = "0.001"
    for samples in (1, 4):
        parent, child_end = multiprocessing.Pipe(False)
        child = _in_child(_fly, child_end, samples)
        print(parent.recv())
        child.join()


def _fly(result: Connection, samples: int) -> None:
    from helm_longctx.runner.runner import LongContextRunner, runner_arguments

    flying = most = 0
    lock = threading.Lock()

    def answer(prompt: str) -> str:
        nonlocal flying, most
        with lock:
            flying += 1
            most = max(most, flying)
        time.sleep(0.3)
        with lock:
            flying -= 1
        return scripted.answer(prompt)

    folder = Path(tempfile.mkdtemp())
    entry = (
        f"helmet_recall:task=json_kv,length=1m,num_samples={samples},style=chat,method=map_reduce,part=8000"
        + MODEL
    )
    with serve(answer) as server:
        register_server("corp/scripted", server.address)
        arguments = runner_arguments(folder / "out", "s", folder, 64, has_cache=False)
        LongContextRunner(**arguments).run_all([making.spec_of(entry)])
        calls = len(server.calls)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    shutil.rmtree(folder)
    # The server of this process keeps all prompts.
    kept = sum(len(call.prompt) for call in server.calls) * 2 / 1e6
    result.send(
        f"map_reduce, {samples} questions of 1M tokens: {calls} requests, {most} in flight; peak {peak:,.0f} MB, of"
        f" which about {kept:,.0f} MB are the prompts that the server of the script keeps"
    )


def measure_search() -> None:
    """Print the time and the memory of a search in texts of two lengths."""
    for length in (128_000, 1_000_000):
        context = make_text(length)
        before = peak_mb()
        start = time.perf_counter()
        chunks = split(context, int(RETRIEVE.arguments["chunk_size"]))
        excerpts = join(
            chunks, find_best(chunks, SEARCHED_FOR, int(RETRIEVE.arguments["chunks"]))
        )
        seconds = time.perf_counter() - start
        print(
            f"{estimate_tokens(context):,} tokens, {len(context) / 1e6:.2f} M characters, {len(chunks):,} chunks:"
            f" {seconds:.2f} s, peak memory {before:.0f} MB before, {peak_mb():.0f} MB after;"
            f" {len(excerpts):,} characters found"
        )


def make_text(tokens: int) -> str:
    """Return a text of about so many tokens, whose words are as frequent as in a language."""
    rng = random.Random(1)
    words = [
        "".join(rng.choices("abcdefghilmnoprstuv", k=rng.randint(2, 8)))
        for _ in range(WORDS)
    ]
    frequencies = [1 / (rank + 2) for rank in range(WORDS)]
    drawn = rng.choices(words, frequencies, k=round(tokens / 1.89))
    return "\n\n".join(
        " ".join(drawn[at : at + 80]) + "." for at in range(0, len(drawn), 80)
    )


PARTS = {
    "loss": measure_loss,
    "frontier": measure_frontier,
    "kills": measure_kills,
    "flight": measure_flight,
    "retrieve": measure_search,
}


def main() -> None:
    """Measure the parts that are named; all by default."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.methods", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    logging.disable(logging.WARNING)
    for part in parser.parse_args().parts or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
