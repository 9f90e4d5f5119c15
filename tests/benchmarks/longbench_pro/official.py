"""Prompts and scores of the official code (golden_makers/longbench_pro.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from helm_longctx.benchmarks.longbench_pro import BENCHMARK
from helm_longctx.benchmarks.longbench_pro.tasks import SIZES, TASKS, name_of, normalize
from helm_longctx.data.root import DataRoot
from helm_longctx.helm.scenario import to_instance
from helm_longctx.helm.truncation import CHAT_BUFFER, Truncator
from helm_longctx.tasks.cutting.cutters import RESERVED
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import Settings
from tests.benchmarks.longbench_pro.fabricate import (
    LIMITS,
    build_longbench_pro,
    fake_similarity,
    make_rows,
    score_cases,
)
from tests.benchmarks.longbench_v2.fabricate import tokenizer
from tests.support.golden_cases import Comparison, GoldenCases, ScoredOutput
from tests.support.official import digest, read_golden

GOLDEN = read_golden(__file__)


def make_prompts(root: DataRoot, case: str, suffix: str) -> dict[str, tuple[str, bool]]:
    """Return the prompt of each question by id, and whether it was cut, as the adapter makes them."""
    prompts = {}
    loaded = tokenizer(case.split()[0])
    for secondary in TASKS:
        task = BENCHMARK.task(name_of(secondary) + suffix)
        for length in SIZES:
            settings = Settings(length)
            budget = task.output_tokens(settings)
            # The question stays in the prompt only if it fits; here it may be cut, as in the official code.
            truncator = Truncator(
                LIMITS[case] + max(RESERVED, budget + CHAT_BUFFER), lambda: loaded
            )
            for example in load_examples(task, settings, root):
                instance = to_instance(BENCHMARK, task, settings, example, budget)
                sample = Sample.from_json({**instance.extra_data, "question": None})
                fitted = truncator.fit(instance.input.text, sample, budget, "chat")
                prompts[example.id] = fitted.prompt, fitted.cut
    return prompts


def digest_prompts(case: str, suffix: str) -> Callable[[DataRoot], str]:
    """Return a function that returns a digest of all prompts."""

    def compute(root: DataRoot) -> str:
        prompts = make_prompts(root, case, suffix)
        rows = make_rows()
        assert len(prompts) == len(rows) == len(TASKS) * (len(SIZES) + 1)
        was_cut = any(cut for _, cut in prompts.values())
        assert was_cut == ("99999" not in case)
        texts = []
        for row in rows:
            prompt, _ = prompts[row["id"]]
            texts += ["user", prompt]
        return digest(texts)

    return compute


def compare_prompts() -> Iterator[Comparison]:
    """Yield the prompts of all tasks, whole or cut in their middle."""
    for suffix in ("", "_thinking"):
        for case in LIMITS:
            name = f"{case} {suffix.removeprefix('_')}"
            official = GOLDEN["prompts"][name]
            yield Comparison(name, digest_prompts(case, suffix), official)


def list_outputs(root: DataRoot) -> Iterator[ScoredOutput]:
    """Yield odd outputs of all tasks."""
    for case, official in zip(score_cases(), GOLDEN["scores"], strict=True):
        answers = case["answers"]
        normalized = [normalize(answer) for answer in answers]
        similarity = fake_similarity(normalized, normalize(case["output"]))
        record = {
            "prediction": case["output"],
            "references": answers,
            "language": case["language"],
            "similarity": {"value": similarity},
        }
        yield ScoredOutput(name_of(case["task"]), record, {"longctx_score": official})


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_longbench_pro,
    comparisons=tuple(compare_prompts()),
    list_outputs=list_outputs,
)
