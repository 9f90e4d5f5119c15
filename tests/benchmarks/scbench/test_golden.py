"""Requests and scores equal the official code's, which was run on the same data (golden_makers/scbench.py)."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import pytest

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
from helm_longctx.tasks.sample import Sample
from helm_longctx.tasks.task import Settings, Task
from tests.benchmarks.scbench.fabricate import (
    CASES,
    MODES,
    NAMES,
    WHOLE,
    Replies,
    fingerprint,
    function_cases,
    render,
    rows,
    score_cases,
    tokenizer,
)
from tests.support.fabricate_words import write

GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


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
    for example in task.load(task, Settings(None), DataRoot(folder, mirror=True)):
        sample = Sample.from_json(
            to_instance(
                BENCHMARK, task, Settings(None), example, task.max_tokens
            ).extra_data
        )
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


def official_scores(task: Task, asked: list[Asked]) -> list[str]:
    """Return the numbers of the official summary, for each turn in order or for all requests."""
    turns: dict[int, list[Asked]] = defaultdict(list)
    for each in asked:
        turns[each.turn if task.name == task.alias else 0].append(each)
    names = task.headline
    means = [
        fmean([each.scores[name] for each in group if name in each.scores] or [0.0])
        for group in turns.values()
        for name in names
    ]
    return [f"{mean * 100:.3f}" for mean in means]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", MODES)
def test_requests_and_scores(mode: str, name: str, tmp_path: Path) -> None:
    """The requests of all questions, whole and cut, and the summary are the official ones."""
    task = next(
        task for task in BENCHMARK.categories[MODES[mode]].tasks if task.alias == name
    )
    for length, seed in CASES:
        golden = GOLDEN["runs"][f"{name} {mode} {length} {seed}"]
        asked = list(ask(task, seed, length, tmp_path))
        assert len(asked) == len(golden["asked"])
        for each, official in zip(asked, golden["asked"], strict=True):
            # If the official code reserves too few tokens, it sends a request that is too long.
            assert each.request == official or (each.was_cut and not each.has_room)
        assert (
            all(each.was_cut for each in asked)
            == any(each.was_cut for each in asked)
            == (length != WHOLE)
        )
        assert sum(each.has_room for each in asked) >= len(asked) / 5
        found = official_scores(task, asked)
        wanted = golden["scores"]
        if task.name == "repoqa_and_kv_apart":
            # Here the official code looks for the value among the names of a record's fields, so it never finds it.
            assert wanted.pop() == "0.000"
            assert float(found.pop()) > 0
        assert found == wanted


def test_scores_by_turn(tmp_path: Path) -> None:
    """An answer's score also counts for its turn, unless each question is a request of its own or the kinds are
    mixed."""
    of = {
        task.name: list(ask(task, 1, WHOLE, tmp_path))
        for task in BENCHMARK.tasks
        if task.name.startswith(("kv", "repoqa_"))
    }
    assert {
        each.scores[f"turn_{each.turn}"] == each.scores["accuracy"] for each in of["kv"]
    } == {True}
    assert not any(
        key.startswith("turn")
        for name in of
        if name != "kv"
        for each in of[name]
        for key in each.scores
    )


def test_odd_outputs() -> None:
    """The scores of all kinds of questions are the official ones, and a number that is too large for the official code
    is wrong."""
    found = [
        float(MEASURES[kind].compare(output, answer))
        for kind, answer, output in score_cases()
    ]
    wanted = [0.0 if score == "OverflowError" else score for score in GOLDEN["scores"]]
    assert found == wanted
    assert len(found) > 1000
    assert {0.0, 1.0} < set(found)


def test_functions() -> None:
    """The right function and the largest similarity are the official ones in six languages."""
    for (lang, name, functions, output), (is_right, similarity) in zip(
        function_cases(), GOLDEN["functions"], strict=True
    ):
        answer = {"lang": lang, "name": name, "functions": functions}
        assert is_right_function(output, answer) == is_right
        function = find_function(output.strip(), lang)
        assert (
            max([0, *(compare_functions(function, code) for _, code in functions)])
            == similarity
        )
    assert {is_right for is_right, _ in GOLDEN["functions"]} == {True, False}
    assert not math.isnan(sum(similarity for _, similarity in GOLDEN["functions"]))
