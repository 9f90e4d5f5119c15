"""Requests and scores of the official code (golden_makers/longbench.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from helm_longctx.benchmarks.longbench import BENCHMARK
from helm_longctx.benchmarks.longbench.tasks import BY_LENGTH
from helm_longctx.data.root import DataRoot
from helm_longctx.helm.scenario import to_instance
from helm_longctx.helm.truncation import CHAT_BUFFER, Truncator
from helm_longctx.tasks.cutting.cutters import RESERVED
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import Settings, Task
from tests.benchmarks.longbench.fabricate import (
    LIMITS,
    build_longbench,
    dataset_of,
    deep_records,
    fingerprint,
    records,
    tokenizer,
)
from tests.support.golden_cases import (
    Comparison,
    GoldenCases,
    ScoredOutput,
    join_comparisons,
)
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)


def digest_requests(case: str, task: Task) -> Callable[[DataRoot], list[str]]:
    """Return a function that makes a task's prompts, whole or cut, and returns the short form of each request."""
    settings = Settings(None)
    budget = task.output_tokens(settings)

    def compute(root: DataRoot) -> list[str]:
        own_tokenizer = tokenizer(case)
        truncator = Truncator(
            LIMITS[case] + max(RESERVED, budget + CHAT_BUFFER), lambda: own_tokenizer
        )
        requests = []
        cuts = 0
        for example in load_examples(task, settings, root):
            instance = to_instance(BENCHMARK, task, settings, example, budget)
            # The sample has no question, because a long question is refused, and fabricated ones are too long.
            sample = Sample.from_json(instance.extra_data).extend(question=None)
            style = "chat" if task.chat else "completion"
            fitted = truncator.fit(instance.input.text, sample, budget, style)
            sent = f"[INST]{fitted.prompt}[/INST]" if task.chat else fitted.prompt
            requests.append(fingerprint(sent, budget, sample.stop == ["\n"]))
            cuts += fitted.cut
        assert bool(cuts) == (case == "metaspace")
        return requests

    return compute


def compare_requests() -> Iterator[Comparison]:
    """Yield the requests of all tasks with both tokenizers."""
    for case in LIMITS:
        for task in BENCHMARK.tasks:
            name = f"{case} {task.name}"
            yield Comparison(name, digest_requests(case, task), GOLDEN["asked"][name])


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs. Those of LongBench-E also count for the official column of their length."""
    cases = zip([*records(), *deep_records()], GOLDEN["scores"], strict=True)
    for record, (whole, columns) in cases:
        dataset = dataset_of(record["dataset"])
        scored = {**record, "references": record["answers"]}
        official = {dataset.metric: whole}
        yield ScoredOutput(dataset.name, scored, official, scale=100)
        if "extended" in dataset.traits:
            of_length = dict.fromkeys(BY_LENGTH)
            for column in columns:
                of_length[BY_LENGTH[column]] = whole
            yield ScoredOutput(
                f"{dataset.name}_e", scored, {**official, **of_length}, scale=100
            )


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longbench,
    comparisons=join_comparisons(compare_requests(), words=1),
    list_outputs=list_outputs,
)
