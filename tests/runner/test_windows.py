"""Tests that a window that is too small for some prompts gives a score with a mark, in whatever words a server refuses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helm.common.request import RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.models.baselines import lexical
from helm_longctx.models.results import failure_of, make_failure
from helm_longctx.results.reading import read_run
from helm_longctx.runner.windows import WaitingPrompts, name_window
from helm_longctx.runs.files import RUN_SPEC, read_json
from helm_longctx.tasks.registry import BENCHMARKS
from tests.runner.making import answered, make_run, means
from tests.support.json_http import JsonHandler, serve_handler
from tests.support.judges import deploy

ENTRY = "helmet_recall:length=4k,num_samples=4,model=longctx/lexical,model_deployment="
"""Sixteen requests."""

REFUSALS: dict[str, tuple[int, Any]] = {
    "a code": (
        400,
        {"error": {"message": "Too much.", "code": "context_length_exceeded"}},
    ),
    "words": (
        400,
        {"error": {"message": "Prompt length 9000 exceeds max_kv_size 4096"}},
    ),
    "a room below zero": (
        400,
        {
            "error": {
                "message": "max_tokens must be at least 1, got -5004.",
                "code": 400,
            }
        },
    ),
    "status 500": (
        500,
        {"error": "prompt too long; exceeded max context length by 5 tokens"},
    ),
    "status 413": (413, {"error": "Payload Too Large"}),
    "words that nobody knows": (
        400,
        {"error": {"message": "Das passt nicht hinein: 9000"}},
    ),
    "no words": (400, {}),
}


@contextmanager
def serve_window(
    fits: Callable[[str], bool], refusal: tuple[int, Any]
) -> Iterator[tuple[str, list[str]]]:
    """Serve a model that refuses the prompts that do not fit. Yield its address and the prompts that it got."""
    prompts: list[str] = []

    class Handler(JsonHandler):
        def do_POST(self) -> None:  # noqa: N802
            prompt = self.read_body()["messages"][-1]["content"]
            prompts.append(prompt)
            if not fits(prompt):
                self.send_json(*refusal)
                return
            message = {"role": "assistant", "content": lexical.answer(prompt)}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            self.send_json(200, {"model": "m", "choices": [choice]})

    with serve_handler(Handler) as address:
        yield address, prompts


@pytest.fixture(scope="module")
def limit(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Return the characters that four of the sixteen prompts have at most."""
    with serve_window(lambda prompt: True, (400, {})) as (address, prompts):
        name = deploy(
            "window/all", "OpenAIClient", base_url=address, api_key="k", model="m"
        )
        make_run(tmp_path_factory.mktemp("all"), ENTRY + name)
    assert len(prompts) == 16
    return sorted(map(len, prompts))[3]


@pytest.mark.parametrize("name", REFUSALS)
def test_most_prompts_do_not_fit(name: str, limit: int, tmp_path: Path) -> None:
    """The answered prompts have a score, a mark counts those that do not fit, and nothing waits."""
    start = time.monotonic()
    with serve_window(lambda prompt: len(prompt) <= limit, REFUSALS[name]) as (
        address,
        prompts,
    ):
        deployment = deploy(
            "window/small", "OpenAIClient", base_url=address, api_key="k", model="m"
        )
        run = make_run(tmp_path, ENTRY + deployment)
    assert time.monotonic() - start < 60
    refused = sum(len(prompt) > limit for prompt in set(prompts))
    shares = [
        mean
        for (statistic, *_), mean in means(run).items()
        if statistic == "request_too_long"
    ]
    assert shares
    results = read_run(run, read_json(run / RUN_SPEC), BENCHMARKS)
    assert sum(result.failed for result in results) == refused == 12
    assert any(result.has_score for result in results)
    kinds = {caveat.kind for result in results for caveat in result.caveats}
    assert "request_too_long" in kinds
    assert "request_failed" not in kinds


def test_a_window_for_no_prompt(tmp_path: Path) -> None:
    """If no prompt fits, the run ends with the server's words."""
    with serve_window(lambda prompt: False, REFUSALS["words"]) as (address, _):
        deployment = deploy(
            "window/none", "OpenAIClient", base_url=address, api_key="k", model="m"
        )
        with pytest.raises(InputError, match=r"too_long.*max_kv_size"):
            make_run(tmp_path, ENTRY + deployment)


def refused(words: str) -> RequestResult:
    return make_failure(Failure.BAD_REQUEST, words)


def test_only_lengths_name_a_window() -> None:
    """Bad requests are too long only if they are the longest, several, and refused in the same words."""
    yes = answered("x", cached=False)
    sizes = [*range(100, 108), 208, 209, 210, 300]
    short = [yes] * 8
    long = [refused(f"no {size}") for size in sizes[8:11]]
    named = name_window(sizes[:11], [*short, *long])
    assert [*named] == [8, 9, 10]
    assert {failure_of(result) for result in named.values()} == {Failure.TOO_LONG}
    assert name_window(sizes[8:11], long) == {}
    assert name_window(sizes[:9], [*short, long[0]]) == {}
    assert name_window(sizes, [*short, *long, yes]) == {}
    assert name_window(sizes, [*short, *long, refused("another word")]) == {}


def test_waiting_prompts() -> None:
    """A prompt may fit that waits and is shorter than all that were refused."""
    waiting = WaitingPrompts({0: 10, 1: 20})
    assert waiting.has_shorter
    waiting.refuse(15)
    assert waiting.has_shorter
    waiting.take(0)
    assert not waiting.has_shorter
