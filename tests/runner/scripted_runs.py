"""Runs of methods with a scripted model on a local server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.runner import making
from tests.support import scripted
from tests.support.deployments import register_server
from tests.support.servers.llm import Server, serve

SAMPLES = 4
BASE = f"helmet_recall:task=json_kv,length=8k,num_samples={SAMPLES},style=chat,method="
MODEL = ",model=corp/scripted,model_deployment=corp/scripted"
METHODS = {
    "compact": "compact,turn=1000,threshold=2000,kept=4000",
    "map_reduce": "map_reduce,part=1000",
    "refine": "refine,part=1000",
    "read_twice": "read_twice,part=1000",
    "memory": "memory,turn=1000",
}


@contextmanager
def serving(answer: Any = scripted.answer) -> Iterator[Server]:
    """Serve a scripted model as `corp/scripted`."""
    with serve(answer) as server:
        register_server("corp/scripted", server.address)
        yield server


def make(folder: Path, method: str, cache: bool = False) -> Path:
    return making.make_run(folder, BASE + method + MODEL, cache=cache)


def scores(run: Path) -> dict[str, float]:
    rows = making.read(run, "per_instance_stats")
    return {
        row["instance_id"]: stat["mean"]
        for row in rows
        for stat in row["stats"]
        if stat["name"]["name"] == "longctx_score"
    }


def answers(run: Path) -> list[str]:
    return [
        state["result"]["completions"][0]["text"]
        for state in making.read(run, "scenario_state")["request_states"]
    ]
