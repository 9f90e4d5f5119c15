"""Makes one shard of each run: asks for its answers and writes them where the ordinary runner finds them.

The runner then makes the run as if it had been interrupted after the last answer, so the results are equal to a run on
one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from helm.benchmark.run_spec import RunSpec
from helm.common.hierarchical_logger import hlog

from helm_longctx.errors import InputError
from helm_longctx.models.apis.rates import Pace, use_paces
from helm_longctx.runner.interruptions import explain_full_disk
from helm_longctx.runner.machines.division import select_shard
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runner.spool import Spool
from helm_longctx.runs.journal import Journal
from helm_longctx.runs.ledger import check_nothing_in_batches
from helm_longctx.runs.shards import Shard, lock_shard, process_name


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
