"""Measures the error of the estimate of tokens on real prompts, in percent of what a tokenizer counts.

    helm-longctx prompts helmet_rag:task=nq,length=8k --limit 20 > prompts.jsonl
    python -m bench.prompts.tokens prompts.jsonl o200k_base FOLDER …

Each tokenizer is an encoding of tiktoken, or a folder with `tokenizer.json`. The folder's name tells whether each digit
is a token, as the model's name does in an estimate.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from helm_longctx.tasks.token_estimate import estimate_tokens, splits_digits


def load_counter(name: str) -> Callable[[str], int]:
    """Return the function that counts a text's tokens with a tokenizer."""
    if Path(name).is_dir():
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(Path(name) / "tokenizer.json"))
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
    import tiktoken

    encoding = tiktoken.get_encoding(name)
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def main() -> None:
    """Print the error for each tokenizer."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "prompts", type=Path, help="what `helm-longctx prompts` printed"
    )
    parser.add_argument(
        "tokenizers",
        nargs="+",
        help="encodings of tiktoken, or folders with tokenizer.json",
    )
    arguments = parser.parse_args()
    prompts = [
        json.loads(line)["prompt"]
        for line in arguments.prompts.read_text(encoding="utf-8").splitlines()
    ]
    for name in arguments.tokenizers:
        counted = sum(map(load_counter(name), prompts))
        estimated = sum(
            estimate_tokens(prompt, splits_digits(name)) for prompt in prompts
        )
        print(f"{name}: {100 * (estimated / counted - 1):+.0f} % of {counted:,} tokens")


if __name__ == "__main__":
    main()
