"""Measures time and peak memory of a long prompt with a random Llama, for HELM's own client and for ours.

    python bench/hf.py                                    # a small model, 8k; on a GPU if there is one
    python bench/hf.py --preset 1b --length 131072        # the sizes of Llama 3.2 1B at 128k, for a GPU

Prints the seconds to read the prompt, the milliseconds for each later token, the peak memory, and the seconds for ten
questions about one book. The two clients run in turn, each time in a new process; the best of `--repeats` counts.
Without a GPU, seconds are those of one processor core, so that other work of the machine matters little.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cost import peak_mb

PRESETS = {
    "small": {"layers": 4, "hidden": 256, "vocabulary": 32000},
    "1b": {"layers": 16, "hidden": 2048, "vocabulary": 128256},
}
QUESTION = 100
"""Tokens at the end of a prompt that differ from question to question."""

SIDES = ("stock", "ours", "reuse")


def save_model(folder: Path, args: argparse.Namespace) -> None:
    """Save a random Llama without an end token, and a tokenizer of whole words."""
    from helm_longctx.environment import ignore_broken_torchvision

    ignore_broken_torchvision()
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = Tokenizer(
        models.WordLevel(
            {f"w{number}": number for number in range(args.vocabulary)}, unk_token="w0"
        )
    )
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="w1", unk_token="w0"
    ).save_pretrained(folder)
    heads = args.hidden // 64
    config = LlamaConfig(
        vocab_size=args.vocabulary, hidden_size=args.hidden, num_hidden_layers=args.layers,
        intermediate_size=4 * args.hidden, num_attention_heads=heads, num_key_value_heads=max(1, heads // 4),
        max_position_embeddings=args.length + args.new_tokens, tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    torch.set_default_dtype(getattr(torch, args.dtype))
    model = LlamaForCausalLM(config)
    print(
        f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f} M parameters, {args.dtype}, {args.length} tokens"
    )
    model.save_pretrained(folder)


def make_client(side: str, folder: str, args: argparse.Namespace) -> Any:
    """Return HELM's client or ours, without a request cache."""
    from helm.common.cache import BlackHoleCacheConfig
    from helm.tokenizers.huggingface_tokenizer import HuggingFaceTokenizer

    from helm_longctx.environment import ignore_broken_torchvision

    ignore_broken_torchvision()
    cache = BlackHoleCacheConfig()
    tokenizer = HuggingFaceTokenizer(BlackHoleCacheConfig(), "bench", folder)
    options = {"attn_implementation": args.attention} if args.attention else {}
    if side == "stock":
        from helm.clients.huggingface_client import HuggingFaceClient

        options["torch_dtype"] = f"torch.{args.dtype}"
        return HuggingFaceClient(
            cache, tokenizer, folder, apply_chat_template=False, **options
        )
    from helm_longctx.models.local.huggingface import LongContextHuggingFaceClient

    return LongContextHuggingFaceClient(
        cache,
        tokenizer,
        folder,
        dtype=args.dtype,
        chunk_size=args.chunk,
        reuse_prefix=side == "reuse",
        **options,
    )


def measure(side: str, folder: str, args: argparse.Namespace) -> dict[str, float]:
    """Return seconds, and GB in addition to the loaded model."""
    import torch
    from helm.common.request import Request

    client = make_client(side, folder, args)
    rng = random.Random(1)
    clock = time.perf_counter
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
        clock = time.process_time

    def seconds(prompt: list[str], max_tokens: int = 1) -> float:
        request = Request(
            "bench/model",
            "bench/model",
            prompt=" ".join(prompt),
            temperature=0,
            max_tokens=max_tokens,
        )
        start = clock()
        result = client.make_request(request)
        assert result.success, result.error
        assert len(result.completions[0].tokens) == max_tokens
        return clock() - start

    def text(tokens: int) -> list[str]:
        return [f"w{rng.randrange(2, args.vocabulary)}" for _ in range(tokens)]

    seconds(text(64), 4)  # loads the model
    loaded = memory(torch)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    read = seconds(text(args.length - args.new_tokens))
    # Another prompt of the same length, so that nothing of it is there already.
    written = seconds(text(args.length - args.new_tokens), args.new_tokens) - read
    peak = memory(torch)
    book = text(args.length - args.new_tokens - QUESTION)
    book_seconds = sum(
        seconds(book + text(QUESTION), args.new_tokens) for _ in range(args.questions)
    )
    per_token = 1000 * written / (args.new_tokens - 1)
    return {
        "read_s": read,
        "token_ms": per_token,
        "over_model_gb": peak - loaded,
        "peak_gb": peak,
        "book_s": book_seconds,
    }


def memory(torch: Any) -> float:
    """Return the peak GB so far: of the GPU, or without one of the process."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e9
    return peak_mb() / 1e3


def measure_in_process(side: str, folder: str) -> dict[str, float]:
    """Measure one of the two clients in a new process."""
    command = [
        sys.executable,
        __file__,
        *sys.argv[1:],
        "--side",
        side,
        "--folder",
        folder,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{side}: {done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{side:6}",
        "  ".join(f"{name} {value:.3f}" for name, value in figures.items()),
        flush=True,
    )
    return figures


def arguments() -> argparse.Namespace:
    """Parse the command line. The preset gives the sizes that are not on it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", choices=PRESETS, default="small")
    for name in ("layers", "hidden", "vocabulary"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument(
        "--length",
        type=int,
        default=8192,
        help="tokens, those that are written among them",
    )
    parser.add_argument("--new-tokens", type=int, default=20)
    parser.add_argument("--questions", type=int, default=10, help="about one book")
    parser.add_argument("--chunk", type=int, default=2048)
    parser.add_argument("--dtype", help="bfloat16 on a GPU, else float32")
    parser.add_argument(
        "--attention", help="sdpa, flash_attention_2, …; what transformers chooses"
    )
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for name, value in PRESETS[args.preset].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.dtype is None:
        import torch

        args.dtype = "bfloat16" if torch.cuda.is_available() else "float32"
    return args


def main() -> None:
    """Print a line for each client and turn, and the ratios."""
    args = arguments()
    if args.side:
        print(json.dumps(measure(args.side, args.folder, args)))
        return
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), args)
        turns = [
            {side: measure_in_process(side, folder) for side in SIDES}
            for _ in range(args.repeats)
        ]
    best = {
        side: {name: min(turn[side][name] for turn in turns) for name in turns[0][side]}
        for side in SIDES
    }
    ratios = {name: value / best["ours"][name] for name, value in best["stock"].items()}
    print(
        "stock / ours:",
        "  ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()),
    )
    gain = best["ours"]["book_s"] / best["reuse"]["book_s"]
    print(f"{args.questions} questions, ours / ours with a shared prefix: {gain:.1f}")


if __name__ == "__main__":
    main()
