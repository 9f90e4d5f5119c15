"""The lexical baseline's time for a prompt, by task and length."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from helm_longctx.core.entry import parse_entry
from helm_longctx.core.task import MAIN_METRIC
from helm_longctx.helmet.tasks import HELMET, RECALL
from helm_longctx.models import lexical
from helm_longctx.sources.root import DataRoot


def main() -> None:
    """Print a line for each task and length."""
    logging.disable()
    for task in RECALL:
        for length in ("128k", "256k", "1m"):
            entry = parse_entry([HELMET], f"helmet_recall:task={task.name},length={length},num_samples=6")
            start = time.perf_counter()
            examples = list(task.load(task, entry.settings, DataRoot(Path("nowhere"), mirror=False)))
            built = time.perf_counter() - start
            prompts = [task.template.user_turn(example.fields) for example in examples]
            start = time.perf_counter()
            answers = [lexical.answer(prompt) for prompt in prompts]
            answered = (time.perf_counter() - start) / len(prompts)
            scores = [
                task.scores({"prediction": answer, "references": example.references})[MAIN_METRIC]
                for answer, example in zip(answers, examples, strict=True)
            ]
            print(
                f"{task.name} {length}: {len(prompts[0]) / 1e6:.2f} M characters,"
                f" built in {built / len(prompts):.2f} s,"
                f" answered in {1000 * answered:.0f} ms, score {sum(scores) / len(scores):.2f}"
            )


if __name__ == "__main__":
    main()
