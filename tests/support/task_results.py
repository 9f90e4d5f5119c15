"""Describes what each task makes of fabricated data: its examples, the answers of its baseline, and scores of many outputs.

Official code gave none of this. It shows a change that nobody meant.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from helm_longctx.data.root import DataRoot
from helm_longctx.errors import InputError
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.counting import Codec
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import Example, Settings, Task
from tests.support.fabricated import fabricated
from tests.support.golden_cases import load_cases

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results.json"
"""What the tasks of all benchmarks made of fabricated data when somebody last looked at a change."""

_BUILDERS = fabricated("build_{name}")
_CASES = load_cases()

LEFT_OUT = {
    "any_jsonl": "has no data of its own",
    "helmet2_mrcr": "needs a tokenizer of the network",
    "mrcr": "needs a tokenizer of the network",
    "ppl": "has no questions",
}
"""Benchmarks whose tasks are not described, and why."""

_TASKS = 30
"""The most tasks of a benchmark that are described. They are spread over its table."""

_CODEC = Codec(
    encode=lambda text: [ord(letter) for letter in text],
    decode=lambda tokens: "".join(map(chr, tokens)),
)
_RECORDS: dict[str, dict[str, Any]] = fabricated("RECORD")

_EXAMPLES = 3
"""Examples of a task that are described."""

_SAMPLE = 6
"""Examples that a task is asked for, so that what it draws is drawn."""

_DIGITS = 9
"""Decimal digits of scores. Sums of floats can differ in later ones."""

_FORMS = (
    "{}", "The answer is {}.", "**Answer:** {}", "Answer: {}\n\nBecause.", "\\boxed{{{}}}", "<answer>{}</answer>",
    "{} and more", "not {}", "({})", '["{}"]', "[[{}]]", "Final Answer: {}", "{}\n{}", "So {}, or x.", "[{}]", "`{}`",
)  # fmt: skip

_OUTPUTS = (
    "", " \n", "A", "(B)", "Answer: C", "D.", "yes", "No.", "True", "false", "0", "3", "12.5", "1,234", "-7", "50%",
    "I do not know.", "The correct answer is (A).", "[1, 2, 3]", "{\"answer\": \"A\"}", "1. a\n2. b\n3. c", "7 May",
    "None", "[]", "a, b; c", "Ranking: 2 > 1 > 3", "文字。", "ABCD", "A B", "unanswerable",
)  # fmt: skip

_NUMBER = re.compile(r"\d+")


def list_described() -> list[Benchmark]:
    """Return the benchmarks whose tasks are described."""
    return [benchmark for benchmark in BENCHMARKS if benchmark.name not in LEFT_OUT]


def build_data(benchmark: Benchmark, folder: Path) -> bool:
    """Write a benchmark's fabricated data, and return whether it has data besides those of the mirror."""
    build = _BUILDERS.get(benchmark.name)
    if build is None and benchmark.name in _CASES:
        build = _CASES[benchmark.name].build
    if build is None:
        return False
    build(folder)
    return True


def describe_results(benchmark: Benchmark, root: DataRoot) -> dict[str, str]:
    """Return a digest of examples, baseline and scores of tasks, by name. Tasks without fabricated data are left out."""
    digests = {}
    step = -(-len(benchmark.tasks) // _TASKS)
    for task in benchmark.tasks[::step]:
        rows = _describe_task(benchmark, task, root)
        if rows:
            text = json.dumps(rows, ensure_ascii=False, sort_keys=True)
            # Some records name a file.
            text = text.replace(str(root.path), "")
            data = text.encode("utf-8", "replace")
            digests[task.name] = hashlib.sha256(data).hexdigest()[:16]
    return digests


def _describe_task(benchmark: Benchmark, task: Task, root: DataRoot) -> list[Any]:
    """Return what the task makes of the data of its first length that has some."""
    for length in sorted(task.sizes) or [None]:
        settings = Settings(
            length, num_samples=_SAMPLE, counter=_count_words, codec=_CODEC
        )
        try:
            examples = list(islice(load_examples(task, settings, root), _EXAMPLES))
        except InputError:
            continue
        if examples:
            return list(_describe_examples(benchmark, task, examples))
    return []


def _count_words(*texts: str) -> int:
    return sum(len(text.split()) for text in texts)


def _describe_examples(
    benchmark: Benchmark, task: Task, examples: list[Example]
) -> Iterator[Any]:
    others = [example.references for example in examples]
    for position, example in enumerate(examples):
        prompt = task.prompt(example)
        answer = None
        if task.baseline and callable(task.baseline.kind):
            answer = task.baseline.kind(prompt.messages)
        yield {
            "prompt": prompt.messages,
            "references": example.references,
            "record": example.record,
            "depth": example.depth,
            "group": example.group,
            "source": example.source,
            "tokens": [example.input_tokens, example.max_tokens, example.answer_tokens],
            "context": [example.context, example.reserved],
            "marks": list(example.marks),
            "errata": example.errata,
            "baseline": answer,
        }
        rng = random.Random(position)
        outputs = [
            *_OUTPUTS,
            *([answer] if answer else []),
            *_make_outputs(example.references, rng),
            *others[position - 1][:1],
        ]
        common = {**_RECORDS.get(benchmark.name, {}), **example.record}
        for output in outputs:
            record = {
                **common,
                "references": example.references,
                "prediction": output,
            }
            yield output[:99], _score(task, record)


def _make_outputs(references: list[str], rng: random.Random) -> Iterator[str]:
    """Yield outputs that are right, nearly right, in another form or in part."""
    first = references[0] if references else "x"
    for form in _FORMS:
        yield form.format(first, first)
    yield ", ".join(references)
    yield "\n".join(reversed(references))
    yield " and ".join(references[: len(references) // 2 + 1])
    yield first.upper()
    yield first[: len(first) // 2]
    yield f" {first}  "
    yield first.replace(" ", "")
    yield _NUMBER.sub(lambda match: str(int(match[0]) + 1), first)
    words = first.split()
    for _ in range(4):
        rng.shuffle(words)
        yield " ".join(words[: rng.randint(1, len(words) or 1)])
    for kept in (0.3, 0.6, 0.9):
        yield " ".join(word for word in first.split() if rng.random() < kept)


def _score(task: Task, record: Mapping[str, Any]) -> Any:
    """Return the scores of a record, by all scorers of the task, and whether it can be read."""
    scores = {}
    for scorer in ("", *task.scorers):
        given = {**record, "scorer": scorer} if scorer else record
        for name, value in task.scores(given).items():
            scores[f"{scorer} {name}"] = round(value, _DIGITS)
    return [scores, task.can_read(record)]
