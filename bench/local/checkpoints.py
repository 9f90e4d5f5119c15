"""Evaluates ten checkpoints of a small real model with one command, kills it in the middle, and continues it.

    python -m bench.local.checkpoints                       # SmolLM2 135M, twelve short questions about six contexts
    python -m bench.local.checkpoints --folder /tmp/steps   # keeps the checkpoints (2.7 GB)

The checkpoints are the model with noise on all its matrices, less from step to step, so that scores rise. The questions
are sentences to complete, which a base model can do: one of two or four sentences of the context again. Printed are
the largest memory of the process while each checkpoint was evaluated, the requests that each command sent, and the
table of `helm-longctx checkpoints`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NOISE = (0.5, 0.3, 0.25, 0.22, 0.18, 0.14, 0.1, 0.06, 0.03, 0.0)
"""The noise of each checkpoint, as a share of the standard deviation of each matrix."""

NAMES = (
    "Olive",
    "Rye",
    "Clover",
    "Basil",
    "Sage",
    "Hazel",
    "Fern",
    "Ivy",
    "Juniper",
    "Laurel",
    "Myrtle",
    "Poppy",
)


def make_checkpoints(folder: Path) -> None:
    """Save the model with noise as `step-100`, `step-200`, …"""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from helm_longctx.environment import ignore_broken_torchvision
    from helm_longctx.models.local.packaged import SMOLLM2, find_model

    ignore_broken_torchvision()
    path = find_model(SMOLLM2)
    # The types of transformers' own methods `to` are wrong.
    model: Any = AutoModelForCausalLM.from_pretrained(path)
    tokenizer = AutoTokenizer.from_pretrained(path)
    whole = {name: weight.clone() for name, weight in model.state_dict().items()}
    generator = torch.Generator().manual_seed(1)
    noise = {
        name: torch.randn(weight.shape, generator=generator)
        for name, weight in whole.items()
        if weight.ndim > 1
    }
    for number, share in enumerate(NOISE, 1):
        step = folder / f"step-{100 * number}"
        with torch.no_grad():
            for name, weight in model.state_dict().items():
                weight.copy_(
                    whole[name] + share * whole[name].std() * noise[name]
                    if name in noise
                    else whole[name]
                )
        model.to(torch.bfloat16).save_pretrained(step)
        model.to(torch.float32)
        tokenizer.save_pretrained(step)


def write_questions(folder: Path, contexts: int = 6) -> None:
    """Write own questions, two for each context."""
    folder.mkdir()
    rng = random.Random(1)
    rows = []
    for group in range(contexts):
        codes = {
            name: str(rng.randrange(1000, 9999))
            for name in rng.sample(NAMES, 2 + group % 2 * 2)
        }
        context = " ".join(
            f"The door of {name} opens with the number {code}."
            for name, code in codes.items()
        )
        rows += [
            {
                "context": context,
                "question": f"The door of {name} opens with the number",
                "answers": [codes[name]],
            }
            | {"group": str(group)}
            for name in rng.sample([*codes], 2)
        ]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")


def run(folder: Path, kill_after: int) -> tuple[dict[str, float], str]:
    """Run the command, and return the largest GiB of its process for each checkpoint, and its log.

    Args:
        kill_after: number of complete runs after which the process is killed; 0 for never.
    """
    tasks = [
        "--entry",
        "any_jsonl:path=questions,length=4k,style=completion,num_output_tokens=6",
    ]
    models = ["--model-path", "checkpoints/step-*", "--dtype", "float32"]
    command = [
        sys.executable,
        "-m",
        "helm_longctx",
        "run",
        "--suite",
        "steps",
        *models,
        *tasks,
    ]
    peaks: dict[str, float] = {}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        while process.poll() is None:
            runs = sorted(
                folder.glob("benchmark_output/runs/steps/*step-*"),
                key=lambda path: path.stat().st_mtime,
            )
            status = Path(f"/proc/{process.pid}/status").read_text()
            if runs and (memory := re.search(r"VmRSS:\s*(\d+) kB", status)):
                name = runs[-1].name.rpartition("_")[2]
                peaks[name] = max(peaks.get(name, 0), int(memory[1]) / (1 << 20))
            done = list(
                folder.glob(
                    "benchmark_output/runs/steps/*step-*/per_instance_stats.json"
                )
            )
            if kill_after and len(done) >= kill_after:
                time.sleep(2)  # within the next run
                process.send_signal(signal.SIGKILL)
            time.sleep(0.2)
    return peaks, (folder / "log").read_text()


def main() -> None:
    """Print what the module's text says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if not (folder / "checkpoints").is_dir():
            make_checkpoints(folder / "checkpoints")
            write_questions(folder / "questions")
        for kill_after in (4, 0):
            peaks, log = run(folder, kill_after)
            print(
                "killed" if kill_after else "continued",
                {name: f"{peak:.2f} GiB" for name, peak in peaks.items()},
            )
            print(*re.findall(r"\d+ requests answered.*", log), sep="\n", flush=True)
        command = [
            sys.executable,
            "-m",
            "helm_longctx",
            "checkpoints",
            "--suite",
            "steps",
            "--json",
            "curves.json",
        ]
        print(
            subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout
        )
        for curve in json.loads((folder / "curves.json").read_text()):
            print(
                curve["benchmark"],
                {
                    step: round(100 * score["mean"], 1)
                    for step, score in curve["scores"].items()
                },
            )


if __name__ == "__main__":
    main()
