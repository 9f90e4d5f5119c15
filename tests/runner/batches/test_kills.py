"""Commands that are killed around the steps that cost money; `bench/runs/batches.py` has ten moments and long prompts."""

from __future__ import annotations

from pathlib import Path

from helm_longctx.models.baselines import lexical
from tests.chaos.batches import BatchRun, Moment
from tests.support.servers.batches import serve_batches

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=12,style=chat"


def test_kills(tmp_path: Path) -> None:
    """No request is paid for twice, and none is sent directly."""
    when = [Moment("send", "create_openai+"), Moment("collect", "journal")]
    with serve_batches(lexical.answer) as server:
        run = BatchRun(server, tmp_path, "openai", ENTRY, 6)
        run.kill_at(when)
        run.collect()
        run.check()
    assert run.tally.kills == when
    assert [batch.total for batch in server.batches.values()] == [6, 6]
