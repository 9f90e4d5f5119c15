"""Measures disk space, peak memory and seconds of a run with our runner and with HELM's own, in turn.

    python -m bench.runs.files [--rows 100] [--books 200] [--json FILE]

There are three workloads, none of which needs a network: 100 prompts of 128k tokens to a local OpenAI-compatible
server, whose answers HELM's client caches; 200 prompts of LV-Eval's form with 256k words and the null baseline; and
haystacks at six depths. Ratios are to the size of the prompts that were sent, in UTF-8.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.cost import measure_command
from bench.words import COMMON_WORDS
from tests.support.servers.llm import serve

from helm_longctx.run_settings import MIRROR
from helm_longctx.tasks.lengths import STANDARD

ROOT = Path(__file__).resolve().parents[2]
HELM_RUN = Path(sys.executable).parent / "helm-run"
RUNNER = ["--runner-class-name", "helm_longctx.runner.LongContextRunner"]


def write_rows(path: Path, rows: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def fabricate_words(root: Path, count: int, length: str) -> None:
    """Write LV-Eval's file at a length. Each row has a different text."""
    rng = random.Random(1)
    words = STANDARD[length]
    empty = {
        "answers": ["river"],
        "length": words,
        "language": "en",
        "answer_keywords": "",
        "confusing_facts": "",
    }
    rows = (
        {
            "context": " ".join(rng.choices(COMMON_WORDS, k=words)),
            "input": f"what is {n}?",
        }
        | empty
        for n in range(count)
    )
    write_rows(root / f"lveval/loogle_SD_mixup/loogle_SD_mixup_{length}.jsonl", rows)


def fabricate_depths(root: Path, questions: int) -> None:
    """Write NQ at 128k: one haystack for each question, with the gold passage at six depths."""
    rng = random.Random(2)
    texts = [" ".join(rng.choices(COMMON_WORDS, k=108)) for _ in range(50_000)]
    for name, passages in (("dev", 1000), ("train", 3)):
        rows = []
        for number in range(questions if name == "dev" else 20):
            hay = [
                {"psg_id": "1", "title": f"T {text[:9]}", "text": text}
                for text in rng.sample(texts, passages)
            ]
            gold = {
                "psg_id": "2",
                "title": "Gold",
                "text": f"It is called Kiri Vel {number}.",
            }
            for depth in range(6):
                at = depth * (passages - 1) // 5
                ctxs = [*hay[:at], gold, *hay[at:]][:passages]
                rows.append(
                    {
                        "question": f"what is {name} {number}",
                        "answers": ["Kiri Vel"],
                        "ctxs": ctxs,
                    }
                )
        write_rows(
            root / f"helmet/kilt/nq-{name}-multikilt_1000_k{passages}_dep6.jsonl", rows
        )


def models(folder: Path, address: str) -> Path:
    """Write the ready deployments with our address for vLLM. They have no windows: tokenizers are on the hub."""
    folder.mkdir(parents=True)
    for path in (ROOT / "src/helm_longctx/models").glob("*.yaml"):
        text = path.read_text().replace("http://localhost:8000/v1/", address)
        (folder / path.name).write_text(
            re.sub(r" *max_sequence_length: .*\n", "", text)
        )
    return folder


def measure(
    entry: str, data: Path, arguments: list[str], address: str
) -> dict[str, float]:
    """Make a run in a new folder and process. Return seconds, peak MB, and MB on disk and of prompts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        local = models(folder / "models", address)
        options: list[str | Path] = [
            "--run-entries",
            entry,
            "--suite",
            "s",
            "-m",
            "1000",
            "--local-path",
            local,
        ]
        cost = measure_command(
            [HELM_RUN, *options, *arguments], folder, {MIRROR: str(data)}
        )
        (run,) = folder.glob("benchmark_output/runs/s/*/scenario_state.json")
        left = [*run.parent.rglob("*"), *(local / "cache").rglob("*"), folder / "log"]
        disk = sum(path.stat().st_size for path in left if path.is_file())
        return {
            "seconds": cost.seconds,
            "cpu_seconds": cost.cpu_seconds,
            "peak": cost.peak_mb,
            "disk": disk / 1e6,
            "text": text_size(run.parent) / 1e6,
        }


def text_size(run: Path) -> int:
    """Return the number of bytes of the prompts that were sent."""
    if not (run / "prompts.json").exists():
        states = json.loads((run / "scenario_state.json").read_bytes())[
            "request_states"
        ]
        return sum(len(state["request"]["prompt"].encode()) for state in states)
    index = json.loads((run / "prompts.json").read_bytes())
    return sum(index["prompts"][name][2] for name in index["instances"].values())


def compare(title: str, entry: str, data: Path, turns: int) -> list[dict[str, Any]]:
    """Print a line for each run with each runner, and return the figures."""
    rows: list[dict[str, Any]] = []
    for turn in range(turns):
        for name, arguments in (("ours", RUNNER), ("stock", [])):
            with serve(lambda prompt: "x") as server:
                m = measure(entry, data, arguments, server.openai)
                server.forget()
            rows.append({"run": title, "side": name, **m})
            print(
                f"{title}, turn {turn + 1}, {name}: text {m['text']:.0f} MB, disk {m['disk'] / m['text']:.2f} times,"
                f" peak {m['peak']:.0f} MB = {m['peak'] / m['text']:.2f} times, {m['seconds']:.1f} s,"
                f" {m['cpu_seconds']:.1f} s of processors",
                flush=True,
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100, help="prompts of 128k tokens")
    parser.add_argument("--books", type=int, default=200, help="prompts of 256k words")
    parser.add_argument(
        "--questions", type=int, default=20, help="questions at six depths"
    )
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    args = parser.parse_args()
    recall = f"helmet_recall:task=json_kv,length=128k,num_samples={args.rows},style=chat,model=vllm/llama-3.1-8b-instruct"
    nq = f"helmet_rag:task=nq,length=128k,num_samples={args.questions},model=longctx/null"
    with tempfile.TemporaryDirectory() as name:
        data = Path(name)
        rows = compare("json_kv 128k, server", recall, data, args.turns)
        fabricate_words(data, args.books, "256k")
        rows += compare(
            "lv_eval 256k",
            "lv_eval:dataset=loogle_SD_mixup,length=256k,model=longctx/null",
            data,
            args.turns,
        )
        fabricate_depths(data, args.questions)
        rows += compare("nq 128k at six depths", nq, data, args.turns)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
