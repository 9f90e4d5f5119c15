"""Measures how fast a real model reads a prompt on a processor: in chunks, in chunks with masks, and as a whole.

    python -m bench.local.reading                                      # SmolLM2 135M, 4k
    python -m bench.local.reading --length 8192 --repeats 3
    python -m bench.local.reading --llama-cpp /path/to/python          # also llama.cpp, of an environment that has it

The model is `local/smollm2-135m-instruct`. `chunks` is our client's way. `masks` are the same chunks with the
attention of transformers. `whole` is plain `generate`. They take turns in one process, and the best of `--repeats`
counts. Seconds are those of one processor core, so that other work of the machine matters little.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WAYS = ("chunks", "masks", "whole")

LLAMA_CPP = """
import json, sys, time
from llama_cpp import Llama
path, ids = sys.argv[1], json.load(sys.stdin)
model = Llama(path, n_ctx=len(ids) + 8, n_threads=1, n_threads_batch=1, verbose=False)
model.eval(ids[:64])
model.reset()
start = time.process_time()
model.eval(ids)
print(time.process_time() - start)
"""


def make_prompt(length: int) -> list[int]:
    """Return the tokens of this repository's pages, repeated if they are too short."""
    from transformers import AutoTokenizer

    from helm_longctx.models.local.packaged import SMOLLM2, find_model

    pages = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
    ids = AutoTokenizer.from_pretrained(find_model(SMOLLM2))(
        "\n\n".join(map(Path.read_text, pages))
    )["input_ids"]
    repeated: list[int] = ids * (length // len(ids) + 1)
    return repeated[:length]


def ways(ids: list[int], chunk: int) -> dict[str, Callable[[], list[int]]]:
    """Return functions that read the prompt and write one token."""
    import torch

    from helm_longctx.models.local import attention
    from helm_longctx.models.local.model import LocalRequest
    from helm_longctx.models.local.packaged import SMOLLM2, find_model
    from helm_longctx.models.local.weights import Weights

    torch.set_num_threads(1)
    local = Weights.find(find_model(SMOLLM2), None, None, None).load()
    model: Any = local._model

    def read_chunks(kind: str) -> list[int]:
        model.set_attn_implementation(kind)
        return local.generate(
            LocalRequest(ids, 1, frozenset(), None, chunk, False)
        ).tokens

    def read_whole() -> list[int]:
        model.set_attn_implementation("sdpa")
        prompt = torch.tensor([ids])
        with torch.inference_mode():
            written = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                do_sample=False,
                max_new_tokens=1,
            )
        tokens: list[int] = written[0, len(ids) :].tolist()
        return tokens

    return dict(
        zip(
            WAYS,
            (
                lambda: read_chunks(attention.NAME),
                lambda: read_chunks("sdpa"),
                read_whole,
            ),
            strict=True,
        )
    )


def main() -> None:
    """Print the seconds and the tokens a second of each way, and the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--length", type=int, default=4096, help="tokens of the prompt")
    parser.add_argument("--chunk", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument(
        "--llama-cpp",
        metavar="PYTHON",
        help="interpreter of an environment with llama-cpp-python",
    )
    args = parser.parse_args()
    from helm_longctx.environment import ignore_broken_torchvision

    ignore_broken_torchvision()
    ids = make_prompt(args.length)
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    answers = set()
    read = ways(ids, args.chunk)
    for _ in range(args.repeats):
        for name, function in read.items():
            start = time.process_time()
            answers.add(tuple(function()))
            seconds[name].append(time.process_time() - start)
            print(
                f"{name:7} {seconds[name][-1]:6.1f} s  {args.length / seconds[name][-1]:5.0f} tokens/s",
                flush=True,
            )
    best = {name: min(times) for name, times in seconds.items()}
    print(f"{len(answers)} different first token(s)")
    print(
        "compared with whole:",
        "  ".join(
            f"{name} {value / best['whole']:.2f}" for name, value in best.items()
        ),
    )
    if args.llama_cpp:
        from helm_longctx.models.local.packaged import SMOLLM2, find_weights

        command = [args.llama_cpp, "-c", LLAMA_CPP, str(find_weights(SMOLLM2))]
        done = subprocess.run(
            command, input=json.dumps(ids), capture_output=True, text=True, check=True
        )
        taken = float(done.stdout)
        print(f"llama.cpp {taken:.1f} s  {args.length / taken:.0f} tokens/s")


if __name__ == "__main__":
    main()
