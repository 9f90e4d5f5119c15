"""Makes `tests/runs/earlier_files.zip`: what the version of commit aa323a4 leaves in a user's folders.

    git worktree add --detach OLD aa323a4
    PYTHONPATH=OLD/src:OLD python tests/runs/make_earlier_files.py tests/runs/earlier_files

The modules of `tests` that it imports are those of that commit. The file has a complete run, its export and the
request cache; a run of which one request has failed; and a run in shards, of which one is done and one was killed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from helm_longctx.apps.exchange.command import export_suite
from helm_longctx.models.baselines import lexical
from helm_longctx.runner.runner import runner_arguments
from helm_longctx.tasks.registry import BENCHMARKS
from tests.runner import served
from tests.runner.making import make_run, spec_of
from tests.support.servers.faults import Fault
from tests.support.servers.llm import Server, run

ADDRESS = "http://127.0.0.1:18765/v1/"
"""The address is a part of the names of answers. In the tests no server has it."""

ENTRY = served.ENTRY + "test/earlier"
FAILED = ENTRY.replace("num_samples=3", "num_samples=3,seed=7")
DIVIDED = ENTRY.replace("num_samples=3", "num_samples=3,seed=8")


class FixedServer(Server):
    """A server that always has the address `ADDRESS`."""

    def __init__(self) -> None:
        super().__init__(lexical.answer, lambda prompt, count: None)
        handler = self.http.RequestHandlerClass
        self.http.server_close()
        self.http = type(self.http)(("127.0.0.1", urlsplit(ADDRESS).port), handler)


def make_files(folder: Path) -> None:
    """Write the files of the earlier version into a folder."""
    # These are imported here, because later versions lack them, and their tests read the constants above.
    from helm_longctx.runs.claims import Shard, take_claim

    from helm_longctx.runner.machines.shards import ShardRunner

    served.register("test/earlier", ADDRESS)
    os.chdir(folder)
    with run(FixedServer()) as server:
        make_run(folder, ENTRY)
        list(export_suite("csv", folder / "benchmark_output/runs/s", BENCHMARKS, folder / "export"))
        server.plan = lambda prompt, count: None if len(server.calls) else Fault.REFUSED
        server.forget()
        make_run(folder, FAILED, cache=False)
        server.plan = lambda prompt, count: None
        arguments = runner_arguments(folder / "benchmark_output", "s", folder, 2, has_cache=False)
        spec = spec_of(DIVIDED)
        ShardRunner(Shard(1, 3), **arguments).run_all([spec])
        run_path = folder / "benchmark_output/runs/s" / spec.name
        assert take_claim(run_path, Shard(2, 3), "a killed process")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        make_files(Path(name))
        for path in ("scenarios", "scenario_instances", "runs/s/eval_cache"):
            shutil.rmtree(Path(name, "benchmark_output", path))
        shutil.make_archive(str(Path(sys.argv[1]).absolute()), "zip", name)
