"""Write answers.json: answers of a small real model to shortened prompts of all suites, as the scorers get them.

    python -m tests.golden_makers model_answers

The model is `local/smollm2-135m-instruct`, which the first call downloads. The prompts are those of the fabricated data. Of
a prompt, the model reads the first and the last bytes, because it reads 100 tokens a second on a processor. An entry whose
answers are in the file is not asked again.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from helm.common.cache import BlackHoleCacheConfig
from helm.common.request import Request

import helm_longctx.plugin  # noqa: F401  # benchmarks
from helm_longctx.benchmarks.mrcr import tasks as mrcr
from helm_longctx.data.root import DataRoot
from helm_longctx.helm.scenario import stop_sequences
from helm_longctx.helm.truncation import settings_with_tokenizer
from helm_longctx.models.local.huggingface import LongContextHuggingFaceClient
from helm_longctx.models.local.packaged import SMOLLM2, PackagedTokenizer
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.prompt import RenderedPrompt
from helm_longctx.tasks.reasoning import remove_reasoning
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Example, Settings, Task
from tests.benchmarks.ruler.fabricate import build_sources
from tests.models.answers.entries import ENTRIES
from tests.models.answers.records import ANSWERS
from tests.support.fabricate import build_mirror
from tests.support.fabricated import fabricated

EXAMPLES = 2
TOKENS = 40
HEAD = 300
TAIL = 900
"""Bytes of a message that the model reads."""
MESSAGES = 4
"""Messages of a conversation that the model reads, from the end."""


def build(folder: Path) -> DataRoot:
    """Fabricate the data of all benchmarks, and count the tokens of MRCR's conversations in bytes from then on."""
    for make in (build_mirror, *fabricated("build_{name}").values(), build_sources):
        make(folder)
    vars(mrcr)["o200k_counter"] = lambda: lambda text: len(text.encode())
    return DataRoot(folder, mirror=True)


def shorten(text: str) -> str:
    """Return the start and the end of a text, without characters that are not whole."""
    data = text.encode()
    if len(data) <= HEAD + TAIL:
        return text
    return (
        f"{data[:HEAD].decode(errors='ignore')}\n{data[-TAIL:].decode(errors='ignore')}"
    )


def request(task: Task, settings: Settings, prompt: RenderedPrompt) -> Request:
    """Return the request for a prompt in the task's style, with a short prompt and a short answer."""
    chat = task.chat or not prompt.has_one_turn
    earlier = [dict(message) for message in prompt.messages[-MESSAGES:-1]]
    return Request(
        model="local/smollm2",
        model_deployment="local/smollm2",
        prompt=shorten(prompt.text("chat" if chat else "completion")),
        messages=[
            {**message, "content": shorten(message["content"])} for message in earlier
        ]
        if chat
        else None,
        temperature=0.0,
        max_tokens=TOKENS,
        stop_sequences=[] if chat else [*stop_sequences(task, settings)],
    )


def records(
    client: LongContextHuggingFaceClient, root: DataRoot, text: str
) -> Iterator[dict[str, Any]]:
    """Yield the scored records of an entry's first examples (see `tasks/task.py`)."""
    entry = parse_entry(BENCHMARKS, text)
    (task,), settings = entry.tasks, settings_with_tokenizer(entry, root)
    for example in islice(load_examples(task, settings, root), EXAMPLES):
        prompt = task.prompt(example)
        asked = request(task, settings, prompt)
        answer = client.make_request(asked).completions[0].text
        prefix = (
            prompt.answer_prefix
            if asked.messages is None and task.prefix_scored
            else ""
        )
        yield record(example, remove_reasoning(prefix + answer))


def record(example: Example, prediction: str) -> dict[str, Any]:
    """Return a scored record, with the example's name."""
    return {
        "id": example.id,
        **example.record,
        "prediction": prediction,
        "references": example.references,
    }


def main() -> None:
    """Ask the model, and write the records after each entry."""
    config = BlackHoleCacheConfig()
    client = LongContextHuggingFaceClient(
        config, PackagedTokenizer(config, "local/smollm2", SMOLLM2), SMOLLM2
    )
    answers = (
        json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    )
    with tempfile.TemporaryDirectory() as name:
        root = build(Path(name))
        for text in ENTRIES:
            if text not in answers:
                answers[text] = [*records(client, root, text)]
                kept = {text: answers[text] for text in ENTRIES if text in answers}
                ANSWERS.write_text(
                    json.dumps(kept, ensure_ascii=False, indent=0) + "\n",
                    encoding="utf-8",
                )
                print(
                    text,
                    *(row["prediction"] for row in answers[text]),
                    sep="\n    ",
                    flush=True,
                )


if __name__ == "__main__":
    main()
