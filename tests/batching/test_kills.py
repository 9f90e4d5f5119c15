"""Commands that are killed around the steps that cost money; `bench/batches.py` has ten moments and long prompts."""

from __future__ import annotations

from pathlib import Path

from helm_longctx.models import lexical
from tests.chaos.batches import Moment, disturb
from tests.chaos.chaos import forks
from tests.servers.batches import serve_batches

ENTRY = "helmet_recall:task=json_kv,length=4k,num_samples=12,style=chat"


def test_kills(tmp_path: Path) -> None:
    """No request is paid for twice, and the results are those of the direct way."""
    when = [Moment("submit", "create_openai+"), Moment("submit", "create_openai"), Moment("collect", "journal")]
    with forks() as started, serve_batches(lexical.answer) as server:
        batches, _ = disturb(started, server, tmp_path, "openai", ENTRY, 5, when)
    assert batches.kills == when
    assert [batch.total for batch in server.batches.values()] == [5, 5, 2]
