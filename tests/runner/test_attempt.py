"""Tests that the reply and the cache of one attempt decide whether there is an answer."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from helm.common.cache import (
    BlackHoleCacheConfig,
    Cache,
    CacheConfig,
    SqliteCacheConfig,
)
from helm.common.request import (
    GeneratedOutput,
    Request,
    RequestResult,
    wrap_request_time,
)
from helm.proxy.retry import NonRetriableException

from helm_longctx.helm.patches import apply_patches
from helm_longctx.models.apis.sending import try_once
from helm_longctx.models.results import describe_failure
from helm_longctx.runner.cache import DigestCacheConfig, DigestStore

REQUEST = Request(prompt="p")


@pytest.fixture(params=["ours", "helm's", "none"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Cache:
    """Return a cache of each kind."""
    apply_patches()
    path = str(tmp_path / "a.sqlite")
    configs: dict[str, CacheConfig] = {
        "ours": DigestCacheConfig(path, "server"),
        "helm's": SqliteCacheConfig(path),
        "none": BlackHoleCacheConfig(),
    }
    return Cache(configs[request.param])


def client(
    cache: Cache, reply: dict[str, Any], times: int = 1
) -> Callable[[Request], RequestResult]:
    """Return a client like HELM's, which caches the reply, removes its time, and calls it an answer."""

    def send(request: Request) -> RequestResult:
        for _ in range(times):
            got, cached = cache.get(
                {"prompt": request.prompt}, wrap_request_time(lambda: dict(reply))
            )
            seconds = got.pop("request_time")
        return RequestResult(
            True, [], [GeneratedOutput(got.get("text", "Half"), 0, [])], cached, seconds
        )

    return send


class FinishReason(str, Enum):
    """A finish reason like Google's."""

    SAFETY = "SAFETY"


ODD = [
    ({"type": "message", "stop_reason": "refusal"}, "refused: "),
    ({"candidates": [{"finish_reason": FinishReason.SAFETY}]}, "refused: "),
    ({"choices": [{"finish_reason": "content_filter"}]}, "refused: "),
    (
        {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
        "refused: ",
    ),
    ({"stopReason": "guardrail_intervened"}, "refused: "),
    (
        {
            "choices": [{"message": {"content": None, "refusal": "I cannot."}}],
            "text": None,
        },
        "refused: ",
    ),
    (
        {"choices": [{"message": {"content": None}}], "text": None},
        "malformed: the server's answer has no text",
    ),
    (
        {"error": {"message": "Slow down", "code": 429}, "text": None},
        "temporary: the server answered with an error",
    ),
    (
        {"error": {"message": "Odd"}, "text": None},
        "malformed: the server answered with an error",
    ),
]


@pytest.mark.parametrize(("reply", "error"), ODD)
def test_replies_that_are_no_answers(
    reply: dict[str, Any], error: str, cache: Cache
) -> None:
    """A reply that is not an answer fails and is not cached, even if the client calls it an answer."""
    made = try_once(client(cache, reply), REQUEST)
    assert not made.result.success
    assert describe_failure(made.result).startswith(error)
    assert (
        try_once(client(cache, {"text": "x"}), REQUEST).result.completions[0].text
        == "x"
    )


def test_replies_are_kept_whole_when_told(tmp_path: Path) -> None:
    """Replies are kept whole only when requested, also if the client asks its cache twice and takes parts out."""
    apply_patches()
    cache = Cache(DigestCacheConfig(str(tmp_path / "a.sqlite"), "server"))
    made = try_once(client(cache, {"text": "x"}, times=2), REQUEST)
    assert made.result.cached
    other = try_once(client(cache, {"text": "y"}), REQUEST)
    assert other.result.completions[0].text == "y"
    made.cache_replies()
    again = try_once(client(cache, {"text": "z"}), REQUEST).result
    assert again.cached
    assert again.completions[0].text == "x"
    assert again.request_time is not None


def test_causes_that_clients_leave_out(cache: Cache) -> None:
    """The causes of an error, which HELM's results leave out, classify the failure."""

    def fail() -> dict[str, Any]:
        raise ConnectionError("Connection error.") from ConnectionRefusedError(
            111, "Connection refused"
        )

    def send(request: Request) -> RequestResult:
        try:
            cache.get({"prompt": request.prompt}, fail)
        except ConnectionError as error:
            return RequestResult(False, [], [], False, error=f"OpenAI error: {error}")
        raise AssertionError

    assert (
        describe_failure(try_once(send, REQUEST).result)
        == "unreachable: OpenAI error: Connection error."
    )


def test_exceptions_of_clients() -> None:
    """An exception of a client becomes a result."""

    def send(request: Request) -> RequestResult:
        raise NonRetriableException("not so")

    assert (
        describe_failure(try_once(send, REQUEST).result)
        == "bad_request: NonRetriableException: not so"
    )


def test_a_cache_that_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the cache cannot be written, the answer is still returned, and the log says so."""

    def put(self: DigestStore, key: object, value: object) -> None:
        raise OSError(28, "No space left on device")

    apply_patches()
    monkeypatch.setattr(DigestStore, "put", put)
    made = try_once(
        client(Cache(DigestCacheConfig(str(tmp_path / "a.sqlite"), "")), {"text": "x"}),
        REQUEST,
    )
    made.cache_replies()
    assert made.result.success
    assert (
        "an answer is not in the request cache (OSError: [Errno 28] No space left on device)"
        in caplog.text
    )
