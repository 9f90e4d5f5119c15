"""Measures the whole command for own questions beside lm-evaluation-harness, inspect_ai and the bare `openai` package.

    python -m bench.peers [--folder peers] [--questions 2000] [--characters 16000] [--length 8k] [--threads 32]
                          [--turns 3] [--after 0.02] [--programs helm-longctx openai …] [--json FILE]

The bare client runs in this environment, so that both have the same packages: openai 3, for example, also imports
aiohttp where it is installed, as it is beside HELM. Another version of it is measured with `pip install --no-deps
--target DIR openai==VERSION` and PYTHONPATH=DIR. Each other peer is installed from the package index into an
environment of its own in the folder, which is kept for the next time; remove it when this environment has another
version of `openai`. A server in a separate process answers each request after a fixed time. Each program reads the same
file of questions, by default with contexts of about 4k tokens, sends them with the same number of requests in flight,
scores the answers, and writes its files. They take turns. The script prints medians of the elapsed seconds, of the
processor seconds, and of the peak memory in MB of the whole process, imports included.

Programs and server share the machine, so compare only figures of one run. If the machine does other work, the
processor time says more. 200 prompts of about 1m tokens are `--questions 200 --characters 4500000 --length 1m --threads
8 --turns 1 --programs helm-longctx`, with two GB of disk.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Collection
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.cost import Cost, measure_command
from bench.requests.clients import local_server
from bench.requests.overhead import RNG, WORDS

OURS = "helm-longctx"
_PACKAGE = f"openai=={version('openai')}"

BARE_CLIENT = "openai"

PEERS = {
    "lm-evaluation-harness": ("lm_eval[api]",),
    "inspect_ai": ("inspect_ai", _PACKAGE),
}
"""What pip installs for each peer. The package `openai` has the version of this environment: versions differ by more
than a third in their own processor time."""

BARE = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
import openai
address, threads = sys.argv[1:]
client = openai.OpenAI(base_url=address, api_key="none", max_retries=0)
def ask(line):
    row = json.loads(line)
    messages = [{"role": "user", "content": row["context"] + row["question"]}]
    reply = client.chat.completions.create(model="m", messages=messages, max_tokens=50, temperature=0)
    return reply.choices[0].message.content in row["answers"]
with ThreadPoolExecutor(int(threads)) as pool, open("questions.jsonl") as file:
    scores = list(pool.map(ask, file))
print(sum(scores) / len(scores))
"""

HARNESS = """
task: own
dataset_path: json
dataset_kwargs: {data_files: {test: questions.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{context}}{{question}}"
doc_to_target: "{{answers[0]}}"
generation_kwargs: {max_gen_toks: 50, until: []}
metric_list: [{metric: exact_match}]
"""

INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import match
from inspect_ai.solver import generate
def sample(row):
    return Sample(input=row["context"] + row["question"], target=row["answers"])
@task
def own():
    return Task(dataset=json_dataset("questions.jsonl", sample), solver=generate(max_tokens=50), scorer=match())
"""


def commands(
    folder: Path, address: str, threads: int, length: str
) -> dict[str, list[str | Path]]:
    """Return the command of each program."""
    programs = {name: folder / "environments" / name / "bin" for name in PEERS}
    model = f"model=m,base_url={address}chat/completions,num_concurrent={threads},tokenizer_backend=None"
    return {
        OURS: [
            *(
                Path(sys.executable).parent / "helm-longctx",
                "run",
                "--suite",
                "s",
                "--model-type",
                "chat",
            ),
            *(
                "--model-url",
                address,
                "--model-name",
                "m",
                "--context",
                "2m",
                "-n",
                str(threads),
            ),
            "--entry",
            f"any_jsonl:path=.,length={length},count_with=longctx/words",
        ],
        BARE_CLIENT: [sys.executable, "bare.py", address, str(threads)],
        "lm-evaluation-harness": [
            *(
                programs["lm-evaluation-harness"] / "lm_eval",
                "run",
                "--model",
                "local-chat-completions",
            ),
            "--model_args",
            model,
            "--tasks",
            "own.yaml",
            "--apply_chat_template",
            "--output_path",
            "harness",
            "--log_samples",
        ],
        "inspect_ai": [
            *(
                programs["inspect_ai"] / "inspect",
                "eval",
                "own.py",
                "--model",
                "openai-api/local/m",
            ),
            *(
                "--max-connections",
                str(threads),
                "--display",
                "none",
                "--log-dir",
                "inspect",
            ),
        ],
    }


def install(folder: Path, programs: Collection[str]) -> None:
    """Install the peers among the programs into environments of their own, unless they are there."""
    for name, packages in PEERS.items():
        if name not in programs:
            continue
        environment = folder / "environments" / name
        if not (environment / "installed").exists():
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
            subprocess.run(
                [environment / "bin/pip", "install", "--quiet", *packages], check=True
            )
            (environment / "installed").touch()


def write_inputs(folder: Path, questions: int, characters: int) -> None:
    """Write the questions, and what the peers need to read them."""
    with (folder / "questions.jsonl").open("w") as file:
        for number in range(questions):
            context = f"{number} {' '.join(RNG.choices(WORDS, k=characters // 3))}"[
                :characters
            ]
            file.write(
                json.dumps(
                    {"context": context, "question": "How is it?", "answers": ["fine"]}
                )
                + "\n"
            )
    for name, text in (("bare.py", BARE), ("own.yaml", HARNESS), ("own.py", INSPECT)):
        (folder / name).write_text(text)


def measure(folder: Path, args: argparse.Namespace) -> dict[str, list[Cost]]:
    """Measure the programs in turn."""
    costs: dict[str, list[Cost]] = {}
    with local_server() as server:
        address = f"{server}/{round(args.after * 1000)}/v1/"
        variables = {
            "LOCAL_API_KEY": "none",
            "LOCAL_BASE_URL": address,
            "OPENAI_API_KEY": "none",
            "HF_HUB_OFFLINE": "1",
        }
        for turn in range(args.turns):
            every = commands(folder, address, args.threads, args.length)
            for name, command in ((name, every[name]) for name in args.programs):
                work_folder = folder / "work"
                shutil.rmtree(work_folder, ignore_errors=True)
                work_folder.mkdir(parents=True)
                write_inputs(work_folder, args.questions, args.characters)
                cost = measure_command(command, work_folder, variables)
                costs.setdefault(name, []).append(cost)
                print(f"turn {turn + 1}, {name}: {cost}", flush=True)
    return costs


def main() -> None:
    """Install, measure and print."""
    every_program = [OURS, BARE_CLIENT, *PEERS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("peers"),
        help="where the environments are kept",
    )
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument(
        "--characters", type=int, default=16_000, help="of each context"
    )
    parser.add_argument(
        "--length", default="8k", help="that holds a context, for helm-longctx"
    )
    parser.add_argument(
        "--programs", nargs="+", choices=every_program, default=every_program
    )
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--after",
        type=float,
        default=0.02,
        help="seconds after which the server answers",
    )
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    args = parser.parse_args()
    folder = args.folder.resolve()
    install(folder, args.programs)
    costs_by_program = measure(folder, args)
    rows: list[dict[str, Any]] = []
    for name, costs in costs_by_program.items():
        middle = {
            key: statistics.median(asdict(cost)[key] for cost in costs)
            for key in asdict(costs[0])
        }
        rows.append({"program": name, **middle})
        print(
            f"{name:22} {middle['seconds']:6.1f} s {middle['cpu_seconds']:6.1f} s of processors",
            end="",
        )
        print(f" {middle['peak_mb']:6.0f} MB")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
