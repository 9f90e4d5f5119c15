"""Counts how often faults of serving in front of a real SmolLM2 are found, where, and with how many requests.

    python -m bench.defects record --part cache --keep PATH [--questions 20]
    python -m bench.defects count --part cache --keep PATH [--questions 20] [--seeds 100]
    python -m bench.defects record --part cache --keep PATH --server http://127.0.0.1:8080/v1=MODEL

`record` computes once what the model answers in each state of the cache and with each fault; it goes on from what is in
PATH. `count` draws questions with replacement for each seed, and lets the commands' own functions decide. Keys and
values, blocks, quantization and positions are real (`tests/support/servers/real_cache.py`). Answers to prompts that
only fill the cache are not written, because nobody compares them.

With `--server`, the model is that of a server that runs, such as llama.cpp's or `transformers serve`, and a proxy makes
the faults (`tests/support/servers/real_proxy.py`). `--other NAME ADDRESS=MODEL` names another build of the model on a
server of its own: the worse build behind a router, or the candidate of a gate.
`--form chat` compares the answers of such servers in the gate; otherwise they read given texts. A candidate gets only
the long questions, so that its fault begins at a length. Each part is in a module of its own.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.defects.cache import (
    ask_all,
    count_cache,
    read_pools,
    record_cache,
    record_served_cache,
)
from bench.defects.gate import (
    GATE_FAULTS,
    AnsweringArm,
    BuildArm,
    ReadingArm,
    count_gate,
    record_gate,
)
from bench.defects.stack import WORSE, count_stack
from bench.local import engines
from tests.support.servers.real_cache import Build, Model, Replies
from tests.support.servers.real_proxy import Upstream

from helm_longctx.apps.cache_check.states import StateReply


def read_upstream(argument: str) -> Upstream:
    """Read `ADDRESS=MODEL;FIELDS` of the command line."""
    return Upstream(*engines.Server.read(argument))


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.defects",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("action", choices=("record", "count"))
    parser.add_argument("--part", choices=("cache", "gate", "stack"), required=True)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--server", type=read_upstream, metavar="ADDRESS=MODEL;FIELDS")
    parser.add_argument(
        "--form", choices=("completions", "chat"), default="completions"
    )
    parser.add_argument(
        "--other",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "ADDRESS=MODEL;FIELDS"),
    )
    return parser.parse_args()


def main() -> None:
    """Record, or count."""
    options = read_options()
    records = options.action == "record"
    upstream = options.server
    others: dict[str, Any] = {
        name: read_upstream(argument) for name, argument in options.other
    }
    if options.part == "cache" and upstream:
        if records:
            record_served_cache(Model(), upstream, options.questions, options.keep)
        for is_exact in (False, True):
            count_cache(read_pools(options.keep, is_exact), options.seeds, is_exact)
        return
    model = Model(Replies(options.keep))
    if options.part == "cache" and records:
        record_cache(model, options.questions)
    elif options.part == "cache":
        for is_exact in (False, True):
            pools: dict[str, list[StateReply]] = defaultdict(list)
            for fault, reply in ask_all(model, options.questions, is_exact):
                pools[fault].append(reply)
            count_cache(pools, options.seeds, is_exact)
    elif options.part == "gate":
        make_arm: Any = AnsweringArm if options.form == "chat" else ReadingArm
        base = make_arm(model, upstream) if upstream else BuildArm(model, Build())
        candidates = {name: make_arm(model, build) for name, build in others.items()}
        if not upstream:
            candidates = {
                name: BuildArm(model, build) for name, build in GATE_FAULTS.items()
            }
        if records:
            record_gate(base, candidates, options.questions)
        else:
            count_gate(base, candidates, options.questions, options.seeds)
    else:
        worse = others if upstream else {"weights of 5 bits": WORSE}
        count_stack(model, upstream, worse, 5 if records else options.seeds)


if __name__ == "__main__":
    main()
