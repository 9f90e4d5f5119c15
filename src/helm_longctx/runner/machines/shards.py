"""Makes one shard of each run: asks for its answers and writes them where the ordinary runner finds them.

Prompts of one context are in one shard, because of prefix caches. The runner then makes the run as if it had been
interrupted after the last answer, so the results are equal to a run on one machine.
"""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import takewhile
from pathlib import Path

from helm_longctx.environment import is_installed
from helm_longctx.errors import InputError, bad_argument, describe_count
from helm_longctx.helm_api import RunSpec
from helm_longctx.helm_log import helm_log
from helm_longctx.interruptions import seconds_to_settle
from helm_longctx.models.apis.rates import Pace, use_paces
from helm_longctx.run_settings import read_variable
from helm_longctx.runner.prefixes import PrefixDigests, order_by_prefix, prefix_keys
from helm_longctx.runner.prepared import PreparedRun
from helm_longctx.runner.runner import LongContextRunner, Strategy
from helm_longctx.runs.journal import Shard, lock_shard, process_name
from helm_longctx.runs.ledger import check_nothing_in_batches

SPLIT = 32
"""Least number of prompts that each shard gets of a context that is divided. A second shard must read the context
again, so this limits the cost."""


class OneShard(Strategy):
    """Sends the requests of one shard of each run, and ends there."""

    completes = False
    purpose = "divided into shards"

    def __init__(self, shard: Shard):
        self._shard = shard
        self.process = process_name()

    def lock(self, run_path: Path) -> AbstractContextManager[None]:
        """Return the lock of the shard, for which other processes with the same shard wait."""
        return lock_shard(run_path, self._shard)

    def select(self, total: int, prompts: Iterable[str]) -> Sequence[int]:
        """Return the numbers of the shard's prompts."""
        return select_shard(prompts, self._shard)

    def make(self, runner: LongContextRunner, spec: RunSpec) -> None:
        """Ask for the answers of the shard."""
        check_nothing_in_batches(runner.run_path(spec))
        with runner.prepare(spec) as run:
            helm_log.info(
                f"shard {self._shard}: {describe_count(len(run.requests), 'request')}"
            )
            self.ask(run)

    def ask(self, run: PreparedRun) -> None:
        """Send the requests of the shard."""
        run.ask()


def divide_paces(total: int) -> AbstractContextManager[None]:
    """Divide the limits of requests and tokens per minute by a number of processes in the block."""

    def make_pace(name: str, requests: float | None, tokens: float | None) -> Pace:
        return Pace(_divide(requests, total), _divide(tokens, total))

    return use_paces(make_pace)


def _divide(limit: float | None, total: int) -> float | None:
    return None if limit is None else limit / total


def run_shards(total: int, part: str) -> None:
    """Run this command once for each shard, at the same time, each with a GPU of its own if this machine has any.

    Args:
        part: the argument of this command that stands for all shards. Each process gets its shard in its place.

    Raises:
        InputError: there are GPUs, but fewer than shards, or a process failed. The others have ended, too.
    """
    gpus = _find_gpus()
    if gpus and len(gpus) < total:
        raise bad_argument(
            "shard", "part", part, f"at most all/{len(gpus)}, one for each GPU"
        )
    processes = []
    for number in range(1, total + 1):
        shard = f"{number}/{total}"
        arguments = [shard if word == part else word for word in sys.argv[1:]]
        variables = dict(os.environ)
        if gpus:
            variables[_GPUS] = gpus[number - 1]
        command = [sys.executable, "-m", "helm_longctx", *arguments]
        helm_log.info(
            f"shard {shard}: started{f' on GPU {gpus[number - 1]}' if gpus else ''}"
        )
        processes.append(subprocess.Popen(command, env=variables))
    try:
        statuses = [process.wait() for process in processes]
    except BaseException:
        # Ctrl-C reaches the processes, too, and each keeps its answers.
        for process in processes:
            process.terminate()
        # A scheduler kills what is left of a job whose first process has ended.
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(seconds_to_settle())
        raise
    failed = []
    for n, status in enumerate(statuses, 1):
        if status:
            failed.append(f"{n}/{total}")
    if failed:
        raise InputError(
            f"shard: {', '.join(failed)} failed, see above; the same command sends what is missing"
        )


_GPUS = "CUDA_VISIBLE_DEVICES"


def _find_gpus() -> list[str]:
    """Return the GPUs that this process may use, as the variable of CUDA names them."""
    named = read_variable(_GPUS)
    if named:
        return [name.strip() for name in named.split(",") if name.strip()]
    if not is_installed("torch"):
        return []
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


def select_shard(prompts: Iterable[str], shard: Shard) -> list[int]:
    """Return the numbers of a shard's prompts, in their order. Each prompt is in exactly one shard."""
    sizes: list[int] = []

    def measure() -> Iterator[str]:
        for prompt in prompts:
            sizes.append(len(prompt))
            yield prompt

    keys = prefix_keys(measure())
    shares: list[list[int]] = [[] for _ in range(shard.total)]
    load = [0] * shard.total
    # The largest group comes first, and each goes to the smallest shard, so all processes have the same result.

    def part_size(part: Iterable[int]) -> int:
        return sum(sizes[number] for number in part)

    for part in sorted(_parts(keys, sizes, shard.total), key=part_size, reverse=True):
        least = load.index(min(load))
        shares[least] += part
        load[least] += part_size(part)
    return sorted(shares[shard.number - 1])


def _parts(
    keys: Sequence[PrefixDigests],
    sizes: Sequence[int],
    total: int,
) -> Iterator[list[int]]:
    """Yield groups of prompts that stay together."""
    share = sum(sizes) / total
    waiting = [order_by_prefix(keys)]
    while waiting:
        group = waiting.pop()
        if len(group) < 2 or sum(sizes[number] for number in group) <= share:
            yield group
            continue
        # The prompts are sorted, so all of them have the prefix that the first and the last share.
        pairs = zip(keys[group[0]], keys[group[-1]], strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if 2 * common >= max(len(keys[number]) for number in group):
            # A context that has more than a fair share of the prompts is divided, if the pieces are large enough.
            count = max(1, min(total, len(group) // SPLIT))
            for piece in range(count):
                yield list(
                    group[
                        len(group) * piece // count : len(group) * (piece + 1) // count
                    ]
                )
        else:  # they share only a beginning, such as an instruction
            groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
            for number in group:
                groups[tuple(keys[number][common : common + 1])].append(number)
            waiting += groups.values()
