"""Write golden.json: the tokens that HELMET's code sends to SmolLM2, with and without the chat template.

    python -m tests.golden_makers real_prompts CHECKOUT

CHECKOUT: a checkout of princeton-nlp/HELMET at 4526dfb. Only the functions `format_chat` and `tokenize` of its
`model_utils.py` run.
"""

from __future__ import annotations

import ast
import sys
import typing
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizer

from helm_longctx.environment import ignore_broken_torchvision
from helm_longctx.models.local.packaged import SMOLLM2, find_model
from tests.golden_makers.running import write_golden
from tests.models.real_prompts import TEXTS, digest_ids

FUNCTIONS = ("format_chat", "tokenize")


def load_functions(source: Path) -> dict[str, Any]:
    """Return the official functions by name, without the imports of their module."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    tree.body = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS
    ]
    names: dict[str, Any] = {**vars(typing), "PreTrainedTokenizer": PreTrainedTokenizer}
    exec(
        compile(tree, str(source), "exec"), names
    )  # the official code at a pinned commit
    return names


def main() -> None:
    """Run the official code on the texts."""
    ignore_broken_torchvision()
    functions = load_functions(Path(sys.argv[1]) / "model_utils.py")
    tokenizer = AutoTokenizer.from_pretrained(find_model(SMOLLM2))
    data = {"user_template": "{text}", "prompt_template": "{text}"}
    golden = {}
    for form, use_chat_template in (("chat", True), ("completion", False)):
        for name, text in TEXTS.items():
            # HELMET's command sends no system message by default (arguments.py:48).
            inputs = functions["tokenize"](
                {"text": text},
                data,
                tokenizer,
                8192,
                100,
                use_chat_template=use_chat_template,
                system_message=None,
            )
            golden[f"{form} {name}"] = digest_ids(inputs.input_ids[0].tolist())
    write_golden("models", golden, indent=1)


if __name__ == "__main__":
    main()
