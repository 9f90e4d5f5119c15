"""Measures the lexical baseline's time for prompts of generated tasks, with their scores, and of each way to answer."""

from __future__ import annotations

import logging
import random
import time
from pathlib import Path

from helm_longctx.benchmarks.helmet.tasks import HELMET
from helm_longctx.data.root import DataRoot
from helm_longctx.models.baselines import lexical
from helm_longctx.tasks.entry import parse_entry
from helm_longctx.tasks.prompt import CONTEXT
from helm_longctx.tasks.task import MAIN_METRIC, Task

NOWHERE = DataRoot(Path("nowhere"), mirror=False)
PASSAGE = "[ID: {n}] Document [{n}](Title: Item {n}): {text}\nlabel: {label}"
WORDS = "the of river town north built king year first school house water council bridge 1901 Kiri Vel."
FIELDS = {
    "question": "When was the north bridge built?",
    "instruction": "Answer.",
    "options": "A. 1\nB. 2\nC. 3\nD. 4",
}


def main() -> None:
    """Print a line for each generated task and length, then one for each way to answer."""
    logging.disable()
    for task in (task for task in HELMET.tasks if task.any_length):
        for length in ("128k", "256k", "1m"):
            measure_generated(task, length)
    for kind, task in {
        task.baseline.kind: task for task in HELMET.tasks if task.baseline
    }.items():
        measure_passages(str(kind), task)


def measure_generated(task: Task, length: str) -> None:
    """Print time and score of generated prompts, which need no data."""
    entry = next(
        name for name, category in HELMET.entries.items() if task in category.tasks
    )
    settings = parse_entry(
        [HELMET], f"{entry}:task={task.name},length={length},num_samples=6"
    ).settings
    start = time.perf_counter()
    examples = list(task.load(task, settings, NOWHERE))
    built = time.perf_counter() - start
    prompts = [task.prompt(example).user_turn for example in examples]
    start = time.perf_counter()
    answers = [lexical.answer(prompt) for prompt in prompts]
    answered = (time.perf_counter() - start) / len(prompts)
    scores = [
        task.scores({"prediction": answer, "references": example.references})[
            MAIN_METRIC
        ]
        for answer, example in zip(answers, examples, strict=True)
    ]
    print(
        f"{task.name} {length}: {len(prompts[0]) / 1e6:.2f} M characters,"
        f" built in {built / len(prompts):.2f} s,"
        f" answered in {1000 * answered:.0f} ms, score {sum(scores) / len(scores):.2f}"
    )


def measure_passages(kind: str, task: Task, passages: int = 900) -> None:
    """Print the time of a prompt of passages with about 128k tokens."""
    rng = random.Random(1)
    texts = (" ".join(rng.choices(WORDS.split(), k=100)) for _ in range(passages))
    made = "\n\n".join(
        PASSAGE.format(n=n, text=text, label=n % 9) for n, text in enumerate(texts, 1)
    )
    prompt = task.template.render(
        {**dict.fromkeys(task.template.names, "12"), **FIELDS, CONTEXT: made}
    ).user_turn
    start = time.perf_counter()
    lexical.answer(prompt)
    print(
        f"{kind}: {len(prompt) / 1e6:.2f} M characters, answered in {1000 * (time.perf_counter() - start):.0f} ms"
    )


if __name__ == "__main__":
    main()
