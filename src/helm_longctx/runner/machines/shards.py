"""Makes one shard of each run: asks for its answers and writes them where the ordinary runner finds them.

Prompts of one context are in one shard, because of prefix caches. The runner then makes the run as if it had been
interrupted after the last answer, so the results are equal to a run on one machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from helm.benchmark.run_spec import RunSpec
from helm.common.hierarchical_logger import hlog

from helm_longctx.errors import InputError
from helm_longctx.models.apis.rates import Pace, use_paces
from helm_longctx.runner.interruptions import explain_full_disk
from helm_longctx.runner.prefixes import Key, order_by_prefix, prefix_keys
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runner.spool import Spool
from helm_longctx.runs.journal import Journal
from helm_longctx.runs.ledger import check_nothing_in_batches
from helm_longctx.runs.shards import Shard, lock_shard, process_name

SPLIT = 32
"""Least number of prompts that each shard gets of a context that is divided. A second shard must read the context
again, so this limits the cost."""


class ShardRunner(LongContextRunner):
    """The runner, except that it asks for the answers of one shard of each run and ends there.

    Args:
        shard: the shard.
        arguments: the arguments of `LongContextRunner`.
    """

    logs_scores = False

    def __init__(self, shard: Shard, **arguments: Any):
        super().__init__(**arguments)
        self._shard = shard

    def _run_other(self, run_spec: RunSpec) -> None:
        raise InputError("only run entries of this package and HELM's long-context ones can be divided into shards")

    def _stream_run(self, run_spec: RunSpec) -> None:
        run_path = Path(self._get_run_path(run_spec))
        if not self._skips(run_spec, run_path):
            with lock_shard(run_path, self._shard), explain_full_disk(run_path, "the answers are kept"):
                self._make_shard(run_spec, run_path)

    def _make_shard(self, run_spec: RunSpec, run_path: Path) -> None:
        check_nothing_in_batches(run_path)
        with self._prepare(run_spec, run_path) as run:
            hlog(f"shard {self._shard}: {len(run.requests)} requests")
            self._ask(run)

    def _selection(self, spool: Spool) -> Callable[[Sequence[str]], Sequence[int]]:
        return lambda names: select_shard(map(spool.get, names), self._shard)

    def _open_journal(self, run_spec: RunSpec, run_path: Path) -> Journal:
        return Journal(run_path, self._server(run_spec), process_name())


def divide_paces(total: int) -> None:
    """Divide the limits of requests and tokens per minute by a number of processes."""
    use_paces(lambda name, requests, tokens: Pace(_part(requests, total), _part(tokens, total)))


def _part(limit: float | None, total: int) -> float | None:
    return limit / total if limit else None


def select_shard(prompts: Iterable[str], shard: Shard) -> list[int]:
    """Return the numbers of a shard's prompts, in their order. Each prompt is in exactly one shard.

    Args:
        prompts: all prompts of the run, which are read once and one at a time.
    """
    sizes: list[int] = []

    def measure() -> Iterator[str]:
        for prompt in prompts:
            sizes.append(len(prompt))
            yield prompt

    keys = prefix_keys(measure())
    shares: list[list[int]] = [[] for _ in range(shard.total)]
    load = [0] * shard.total
    # The largest group comes first, and each goes to the smallest shard, so all processes have the same result.
    for part in sorted(_parts(keys, sizes, shard.total), key=lambda part: -sum(sizes[each] for each in part)):
        least = load.index(min(load))
        shares[least] += part
        load[least] += sum(sizes[each] for each in part)
    return sorted(shares[shard.number - 1])


def _parts(keys: Sequence[Key], sizes: Sequence[int], total: int) -> Iterator[list[int]]:
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
                yield list(group[len(group) * piece // count : len(group) * (piece + 1) // count])
        else:  # they share only a beginning, such as an instruction
            groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
            for number in group:
                groups[tuple(keys[number][common : common + 1])].append(number)
            waiting += groups.values()
