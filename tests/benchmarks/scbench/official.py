"""Requests and scores of the official code (golden_makers/scbench.py)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from helm_longctx.benchmarks.scbench import BENCHMARK
from helm_longctx.benchmarks.scbench.prompts import ANSWER_STARTS
from helm_longctx.benchmarks.scbench.tasks import (
    MEASURES,
    compare_functions,
    find_function,
    is_right_function,
)
from helm_longctx.data.root import DataRoot
from helm_longctx.helm.scenario import to_instance
from helm_longctx.helm.truncation import CHAT_BUFFER, Truncator
from helm_longctx.tasks.loading import load_examples
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import Settings, Task
from tests.benchmarks.scbench.fabricate import (
    CASES,
    MODES,
    NAMES,
    WHOLE,
    Replies,
    build_scbench,
    fingerprint,
    function_cases,
    render,
    rows,
    score_cases,
    tokenizer,
)
from tests.support.fabricate_words import write
from tests.support.golden_cases import Comparison, GoldenCases, join_comparisons
from tests.support.official import read_golden

GOLDEN = read_golden(__file__)
APART = "repoqa_and_kv_apart"
"""The task whose last official score is 0: the official code looks for the value among the names of a record's
fields, so it never finds it."""


@dataclass(frozen=True)
class Asked:
    """The request of one question, and the scores of its answer."""

    request: str
    turn: int
    was_cut: bool
    has_room: bool
    scores: dict[str, float]


def ask(task: Task, seed: int, length: int, folder: Path) -> Iterator[Asked]:
    """Send each question in the same way as the adapter."""
    (path,) = task.paths(None)
    data = rows(task.alias, seed)
    write(folder / path, data)
    tokens = tokenizer()
    replies = Replies(data)
    truncator = Truncator(length + CHAT_BUFFER, lambda: tokens)
    start = ANSWER_STARTS.get(task.name, "")
    settings = Settings(None)
    for example in load_examples(task, settings, DataRoot(folder, mirror=True)):
        instance = to_instance(BENCHMARK, task, settings, example, task.max_tokens)
        sample = Sample.from_json(instance.extra_data)
        first, *others = (message["content"] for message in example.messages)
        fitted = truncator.fit(first, sample, sample.max_tokens, "chat", others)
        beside = sum(
            len(tokens.encode(text))
            for text in (first[sample.context_span[1] :], *others)
            if text
        )
        messages = [
            {**example.messages[0], "content": fitted.prompt},
            *example.messages[1:],
        ]
        prompt = render(messages, length == WHOLE) + (start if others else "")
        record = {
            "prediction": replies.reply(prompt),
            "references": example.references,
            **example.record,
        }
        yield Asked(
            request=fingerprint(prompt, sample.max_tokens),
            turn=example.record["turn"],
            was_cut=fitted.cut,
            has_room=beside + sample.max_tokens <= sample.reserved,
            scores=task.scores(record),
        )


def format_scores(task: Task, asked: list[Asked]) -> list[str]:
    """Return the numbers of the official summary, for each turn in order or for all requests."""
    turns: dict[int, list[Asked]] = defaultdict(list)
    for question in asked:
        turns[question.turn if task.name == task.alias else 0].append(question)
    means = []
    for group in turns.values():
        for name in task.headline:
            scores = [own.scores[name] for own in group if name in own.scores]
            means.append(fmean(scores or [0.0]))
    return [f"{mean * 100:.3f}" for mean in means]


def ask_and_score(
    task: Task, seed: int, length: int, official: list[str]
) -> Callable[[DataRoot], dict[str, list[str]]]:
    """Return a function that returns the requests and the summary.

    If the official code reserves too few tokens, it sends a request that is too long. Such a request is returned as
    the official one, and at least a fifth of the requests are others.
    """

    def compute(root: DataRoot) -> dict[str, list[str]]:
        asked = list(ask(task, seed, length, root / f"{task.name} {seed} {length}"))
        requests = []
        for question, official_request in zip(asked, official, strict=True):
            is_too_long = question.was_cut and not question.has_room
            requests.append(official_request if is_too_long else question.request)
            assert question.was_cut == (length != WHOLE)
        assert sum(question.has_room for question in asked) >= len(asked) / 5
        scores = format_scores(task, asked)
        if task.name == APART:
            assert float(scores.pop()) > 0
        return {"asked": requests, "scores": scores}

    return compute


def compare_runs() -> Iterator[Comparison]:
    """Yield the requests of all questions, whole and cut, and the summary of their scores."""
    for mode, index in MODES.items():
        tasks = {task.alias: task for task in BENCHMARK.categories[index].tasks}
        for name in NAMES:
            task = tasks[name]
            for length, seed in CASES:
                case = f"{name} {mode} {length} {seed}"
                official = dict(GOLDEN["runs"][case])
                if task.name == APART:
                    *official["scores"], last = official["scores"]
                    assert last == "0.000"
                compute = ask_and_score(task, seed, length, official["asked"])
                yield Comparison(case, compute, official)


def score_odd_outputs(root: DataRoot) -> list[float]:
    """Return the scores of odd outputs for all kinds of questions."""
    return [
        float(MEASURES[kind].compare(output, answer))
        for kind, answer, output in score_cases()
    ]


def find_functions(root: DataRoot) -> list[list[object]]:
    """Return whether the right function is found, and the largest similarity, in six languages."""
    values: list[list[object]] = []
    for language, name, functions, output in function_cases():
        answer = {"lang": language, "name": name, "functions": functions}
        function = find_function(output.strip(), language)
        similarities = [compare_functions(function, code) for _, code in functions]
        values.append([is_right_function(output, answer), max([0, *similarities])])
    return values


GOLDEN_CASES = GoldenCases(
    benchmark=BENCHMARK,
    build=build_scbench,
    comparisons=(
        *join_comparisons(compare_runs(), words=2),
        Comparison(
            "outputs",
            score_odd_outputs,
            # A number that is too large for the official code is wrong here.
            [0.0 if score == "OverflowError" else score for score in GOLDEN["scores"]],
        ),
        Comparison("functions", find_functions, GOLDEN["functions"]),
    ),
)
