"""Makes one shard of each run: asks for its answers and writes them where the ordinary runner finds them.

The runner then makes the run as if it had been interrupted after the last answer, so the results are those of a run on
one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from helm.benchmark.run_spec import RunSpec
from helm.common.hierarchical_logger import hlog

from helm_longctx.apis.rates import Pace, use_paces
from helm_longctx.errors import InputError
from helm_longctx.running.interruptions import name_full_disk
from helm_longctx.running.runner import LongContextRunner
from helm_longctx.running.sending import RunStoppedError
from helm_longctx.running.spool import Spool
from helm_longctx.runs.claims import Claim, Shard, process_name, take_claim, wait_for_shards
from helm_longctx.runs.journal import Journal
from helm_longctx.runs.ledger import check_nothing_in_batches
from helm_longctx.scaling.division import select_shard


class ShardRunner(LongContextRunner):
    """The runner, except that it asks for the answers of one shard of each run and ends there.

    Args:
        shard: the shard.
        owner: name under which shards are claimed; by default that of this process.
        arguments: those of `LongContextRunner`.
    """

    logs_scores = False

    def __init__(self, shard: Shard, owner: str | None = None, **arguments: Any):
        super().__init__(**arguments)
        self._shard, self._process = shard, process_name()
        self._owner = owner or self._process

    def _run_other(self, run_spec: RunSpec) -> None:
        raise InputError("only run entries of this package and HELM's long-context ones can be divided into shards")

    def _stream_run(self, run_spec: RunSpec) -> None:
        run_path = Path(self._get_run_path(run_spec))
        if not self._skips(run_spec, run_path) and (claim := self._claim(run_path)):
            with claim, name_full_disk(run_path, "the answers are kept"):
                self._make_shard(run_spec, run_path, claim)

    def _claim(self, run_path: Path) -> Claim | None:
        claim = take_claim(run_path, self._shard, self._owner)
        if claim is None:
            wait_for_shards(run_path, self._shard)
            claim = take_claim(run_path, self._shard, self._owner)
        return claim

    def _make_shard(self, run_spec: RunSpec, run_path: Path, claim: Claim) -> None:
        check_nothing_in_batches(run_path)
        with self._prepare(run_spec, run_path) as run:
            hlog(f"shard {self._shard}: {len(run.states)} requests")
            recalled = sum(run.journal.get(run.name(state)) is not None for state in run.states)
            before = len(run.journal) - recalled
            claim.follow(len(run.states), lambda: len(run.journal) - before, run.sender.stop)
            try:
                self._ask(run)
            except RunStoppedError:
                raise InputError(
                    f"shard {self._shard} was taken over by another process, because this one seemed to be dead"
                ) from None

    def _selection(self, spool: Spool) -> Callable[[Sequence[str]], Sequence[int]]:
        return lambda names: select_shard(map(spool.get, names), self._shard)

    def _open_journal(self, run_spec: RunSpec, run_path: Path) -> Journal:
        return Journal(run_path, self._server(run_spec), self._process)


class HelpingRunner(ShardRunner):
    """Makes its own shard of each run, and then the other shards on which no process works.

    Limits of requests and tokens per minute are divided by the number of shards.

    Args:
        shard, arguments: see `ShardRunner`.
    """

    def __init__(self, shard: Shard, **arguments: Any):
        super().__init__(shard, **arguments)
        self._is_own = True
        use_paces(lambda name, requests, tokens: Pace(_part(requests, shard.total), _part(tokens, shard.total)))

    def run_all(self, run_specs: list[RunSpec]) -> None:
        """Make the shard of all runs, and then the shards of processes that were killed or never started.

        Raises:
            InputError: as `LongContextRunner`.
        """
        own = self._shard
        super().run_all(run_specs)
        self._is_own = False
        # Each process continues with the shard after its own, so that they do not all take the same one.
        for number in (*range(own.number + 1, own.total + 1), *range(1, own.number)):
            self._shard = Shard(number, own.total)
            super().run_all(run_specs)

    def _claim(self, run_path: Path) -> Claim | None:
        if self._is_own:
            return super()._claim(run_path)
        return take_claim(run_path, self._shard, self._owner, again=False)


def _part(limit: float | None, total: int) -> float | None:
    return limit / total if limit else None
