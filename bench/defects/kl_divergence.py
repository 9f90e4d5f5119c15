"""Compares our divergence with that of llama.cpp's `llama-perplexity --kl-divergence`, on the same text and weights.

    llama-perplexity -m base.gguf -f text.txt -c 256 -ctk f32 -ctv f32 -fa off --kl-divergence-base base.kld
    llama-perplexity -m candidate.gguf -c 256 -ctk f32 -ctv f32 -fa off --kl-divergence-base base.kld --kl-divergence
    python -m bench.defects.kl_divergence base.gguf candidate.gguf text.txt [--context 256]

Both files should have weights in float32 (`dequantize.py`), because llama.cpp rounds what it multiplies with others.
llama.cpp divides the tokens into pieces of the context, reads each alone, and compares the second half of each.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import stdev
from typing import Any

from helm_longctx.apps.gate.distributions import TOP, divergence
from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.models.local.gguf import convert
from helm_longctx.models.local.model import LocalModel
from helm_longctx.models.local.scoring import Scored, score_tokens
from helm_longctx.tasks.logprobs import Distribution

LEAST = 16.0
"""llama.cpp keeps logarithms of probabilities down to so many nats below the most likely token, in 16 bits."""


def read(source: Path, text: str, context: int) -> Iterator[list[Scored]]:
    """Yield the distributions over all tokens in the second half of each piece of a text."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        convert(source, folder)
        tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        model: Any = AutoModelForCausalLM.from_pretrained(folder)
        local = LocalModel(model.eval())
        ids = tokenizer(text)["input_ids"]
        for start in range(0, len(ids) - context + 1, context):
            piece = ids[start : start + context]
            yield score_tokens(
                local, [piece], [context // 2 + 1], context, len(tokenizer)
            )[0]


def store(logprobs: Any) -> Any:
    """Return logarithms of probabilities as llama.cpp keeps those of the base: in 16 bits, from the least one on."""
    import torch

    top = logprobs.max()
    least = torch.maximum(logprobs.min(), top - LEAST)
    scale = (top - least) / 65535
    return torch.where(
        logprobs > least,
        least + scale * ((logprobs - least) / scale + 0.5).floor(),
        least,
    )


def as_distribution(scored: Scored) -> Distribution:
    """Return what a server tells of a distribution."""
    return Distribution(
        str(scored.top[0][0]),
        scored.top[0][1],
        {str(n): value for n, value in scored.top[:TOP]},
    )


def main() -> None:
    """Print the mean divergence with all tokens, as llama.cpp keeps them, and with the most likely ones."""
    import torch

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", type=Path)
    parser.add_argument("candidate", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--context", type=int, default=256)
    options = parser.parse_args()
    ignore_broken_torchvision()
    arms = (
        read(arm, options.text.read_text(), options.context)
        for arm in (options.base, options.candidate)
    )
    exact = []
    stored = []
    bounds = []
    same = []
    for pieces in zip(*arms, strict=True):
        for one, other in zip(*pieces, strict=True):
            first, second = (
                torch.tensor([v for _, v in sorted(token.top)]).double()
                for token in (one, other)
            )
            exact.append(float((first.exp() * (first - second)).sum()))
            kept = store(first)
            stored.append(float(((kept.exp() * (kept - second))[kept > -LEAST]).sum()))
            bounds.append(divergence(as_distribution(one), as_distribution(other)))
            same.append(one.top[0][0] == other.top[0][0])
    print(
        f"{len(exact)} tokens, the same most likely token at {sum(same) / len(same):.3%}"
    )
    for name, values in (
        ("all tokens", exact),
        ("as llama.cpp keeps the base", stored),
        (f"{TOP} tokens", bounds),
    ):
        error = stdev(values) / math.sqrt(len(values))
        print(
            f"mean divergence, {name}: {sum(values) / len(values):.6f} ± {error:.6f}, largest {max(values):.6f}"
        )


if __name__ == "__main__":
    main()
