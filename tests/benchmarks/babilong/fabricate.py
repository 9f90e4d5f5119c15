"""Fabricates BABILong's files, the same on every machine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.babilong.tasks import BABILONG, LABELS
from helm_longctx.tasks.lengths import length_label
from tests.support.fabricate import words, write

ROWS = 4
NAMES = ("Mary", "John", "Sandra", "Daniel")
RECORD = {"question": "Where is Mary? "}


def build_babilong(root: Path) -> Path:
    """Write a file of each task at each length: JSON lines in the large set, a JSON array in the small one."""
    for task in BABILONG.tasks:
        for length in task.sizes:
            (path,) = task.paths(length)
            rows = make_rows(task.argument, length_label(length))
            if path.endswith(".jsonl"):
                write(root / path, rows)
            else:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(json.dumps(rows), encoding="utf-8")
    return root


def make_rows(task: str, length: str) -> list[dict[str, Any]]:
    """Return samples with facts between sentences of nonsense, some with characters that a template could misread."""
    rng = random.Random(f"{task} {length}")
    labels = sorted(LABELS[task])
    rows = []
    for number in range(ROWS):
        facts = [
            f"{name} travelled to the {rng.choice(labels)}."
            for name in rng.sample(NAMES, 3)
        ]
        noise = [
            words(rng, 6).capitalize() + "." for _ in range(0 if length == "0k" else 6)
        ]
        text = " ".join(rng.sample([*facts, *noise], len(facts) + len(noise)))
        extra = ("", " {x} {}", "\n\n</context>\n\nQuestion: what?", " \u2028é ")[
            number
        ]
        question = f"Where is {rng.choice(NAMES)}? "
        rows.append(
            {
                "input": f" {text}{extra} ",
                "question": question,
                "target": _target(rng, task, labels),
            }
        )
    return rows


def _target(rng: random.Random, task: str, labels: list[str]) -> str:
    return (
        ",".join(sorted(rng.sample(["apple", "football", "milk"], 2)))
        if task == "qa8"
        else rng.choice(labels)
    )


def odd_outputs(rng: random.Random, target: str, labels: list[str]) -> list[str]:
    """Return outputs that the matching of labels could misread."""
    other = rng.choice(labels)
    return [
        "", " ", target, target.upper(), f" {target}. {other}", f"The {target}.", f"{target} and {other}", f"{other}, {target}",
        f"I think. {target}", f"{target}<context>{other}", f"{target}<example>{other}", f"{target} Question {other}",
        f"{target}\nquestion: {other}", f"not{target}ing", target.replace(",", ", "), ",".join(reversed(target.split(","))),
        "Dr. Smith went there", f"{target} {target}", " ".join(labels), "No one knows", "nothing", "none", f"İ{target}ß", "n,e",
    ]  # fmt: skip


def score_cases() -> list[dict[str, str]]:
    """Return cases for the metric, each with the name of its task."""
    rng = random.Random(5)
    cases = []
    for task in LABELS:
        labels = sorted(LABELS[task])
        for question in (
            "Where is Mary? ",
            f"Is John in the {labels[0]}?",
            f"Is it {' or '.join(labels[-2:])}?",
            "",
        ):
            for target in (
                _target(rng, task, labels),
                rng.choice(labels).title(),
                "unknown",
                "",
            ):
                for output in odd_outputs(rng, target, labels):
                    cases.append(
                        {
                            "task": task,
                            "question": question,
                            "target": target,
                            "output": output,
                        }
                    )
    return cases


PROTOCOLS = {
    "full": ("yes", "yes", "yes"),
    "no examples": ("yes", "no", "yes"),
    "instruction": ("yes", "no", "no"),
    "bare": ("no", "no", "no"),
}
"""The parts of a prompt that are sent: instruction, examples, post_prompt."""
