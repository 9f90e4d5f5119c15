"""Kills the commands of a run by batches at ten moments, and compares the run with a direct one.

    python -m bench.runs.batches [--requests 300] [--protocol openai|anthropic] [--json FILE]

The requests have prompts of 0.6 MB in LV-Eval's form and go to a local server in three batches. The script ends with an
error if a request is paid for twice, if one is sent directly, or if the results differ from those of the direct run.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from bench.runs.files import fabricate_words
from tests.chaos.batches import disturb, moments
from tests.support.servers.batches import serve_batches


def main() -> None:
    """Print what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--protocol", choices=["openai", "anthropic"], action="append")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    args = parser.parse_args()
    entry = f"lv_eval:dataset=loogle_SD_mixup,length=128k,num_samples={args.requests}"
    tallies = {}
    with tempfile.TemporaryDirectory() as name:
        os.environ["HELM_LONGCTX_DATA"] = f"{name}/data"
        fabricate_words(Path(name, "data"), args.requests, "128k")
        for protocol in args.protocol or ["openai", "anthropic"]:
            with serve_batches(lambda prompt: prompt[-40:]) as server:
                size = -(-args.requests // 3)
                folder = Path(name, protocol)
                batches, direct = disturb(
                    server, folder, protocol, entry, size, moments(protocol)
                )
            tallies[protocol] = {"batches": asdict(batches), "direct": asdict(direct)}
            print(
                f"{protocol}: {len(batches.kills)} kills, {len(server.batches)} batches, "
                f"{server.paid.total()} requests paid for, each once, none directly; results as direct"
            )
            for tally in (batches, direct):
                for command, seconds in tally.seconds.items():
                    print(
                        f"  {command}: {seconds:.1f} s, peak {tally.peak[command]:.0f} MB",
                        flush=True,
                    )
    if args.json:
        args.json.write_text(json.dumps(tallies, indent=2))


if __name__ == "__main__":
    main()
