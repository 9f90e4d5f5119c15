"""Rows of MRCR with known answers, and a server that gives right answers to some questions of a protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from helm_longctx.benchmarks.mrcr.tasks import LENGTHS
from helm_longctx.data.root import DataRoot
from helm_longctx.helm.truncation import settings_with_tokenizer
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.registry import BENCHMARKS, find_protocol
from helm_longctx.tasks.task import Example
from tests.support.servers.llm import Server, serve
from tests.support.servers.models import Model

WRONG = "Unknown."
"""A wrong answer that shares no word with an answer."""


def conversation(needles: int, length: str, number: int) -> dict[str, object]:
    """Return a row of MRCR of a bin, whose first text says its tokens."""
    tokens = LENGTHS[length] * 3 // 4
    secret = f"q{needles}{length}{number}"
    text = f"A poem {number} of {length}."
    messages = [
        {
            "role": "user",
            "content": f"tokens={tokens} " + "a " * (LENGTHS[length] // 3),
        },
        {"role": "assistant", "content": text},
        {
            "role": "user",
            "content": f"Prepend {secret} to the 1st (1 indexed) poem about {needles}. Do not include any other text.",
        },
    ]
    return {
        "prompt": json.dumps(messages), "answer": secret + text, "random_string_to_prepend": secret, "n_needles": needles,
        "desired_msg_index": 1, "total_messages": 3,
    }  # fmt: skip


def count_tokens(text: str) -> int:
    """Return the tokens that a text says it has, because tiktoken's file is not there."""
    said = re.match(r"tokens=(\d+)", text)
    return int(said[1]) if said else 0


def answers(
    root: Path,
    protocol: str,
    right: Mapping[str, int] | int,
    arguments: str = "",
    uneven: bool = False,
) -> dict[str, str]:
    """Return the right answers to the first questions of each of a protocol's entries, by the prompt.

    Args:
        arguments: further arguments of the entries, such as `num_samples=4`.
        uneven: whether one question more is answered of each next task, up to three more, so that the scores differ.
    """
    benchmark, named_protocol = find_protocol(protocol, BENCHMARKS)
    mirror = DataRoot(root, mirror=True)
    known = {}
    for entry in (
        parse_entry([benchmark], ",".join(filter(None, [text, arguments])))
        for text in named_protocol.entries
    ):
        settings = settings_with_tokenizer(entry, mirror)
        count = right if isinstance(right, int) else right[entry.label]
        for number, task in enumerate(entry.tasks):
            examples = list(load_examples(task, settings, mirror))
            for example in examples[: count + uneven * (number % 4)]:
                prompt = task.prompt(example).messages[-1]["content"]
                known[prompt] = answer_of(
                    task.name if benchmark.name == "helmet" else benchmark.name, example
                )
    return known


def answer_of(name: str, example: Example) -> str:
    """Return an answer of a benchmark or of HELMET's task that is right."""
    references = example.references
    if name == "graphwalks":
        return f"Final Answer: [{', '.join(references)}]"
    if name == "longbench_v2":
        return f"The correct answer is ({references[0]})"
    # RULER and HELMET's tasks like RULER's ask for all answers, other tasks accept each of them.
    return ", ".join(references) if name.startswith("ruler") else references[0]


@contextmanager
def oracle(known: Mapping[str, str]) -> Iterator[Server]:
    """Run a server that knows some answers."""

    def answer(prompt: str) -> str:
        # A completion has the start of the answer behind the question.
        return next(
            (text for question, text in known.items() if question in prompt), WRONG
        )

    with serve(answer, models={"tiny": Model()}) as server:
        yield server
