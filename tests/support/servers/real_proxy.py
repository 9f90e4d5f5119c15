"""A proxy in front of a real server that has the faults of `real_cache`, and can be slow or flaky."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from random import Random
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.support.json_http import JsonHandler, serve_handler
from tests.support.servers.real_cache import RealCachedServer

NAME = "m"
"""The name of the model, whatever the server behind the proxy calls it."""

SLOW = 0.05
"""Share of the replies of a flaky proxy that come too late. As many are cut off, and as many are refused with 503."""


class Upstream(NamedTuple):
    """A server behind a proxy.

    Args:
        fields: fields that are added to each request, or with None are taken from it. A server that does not take
            `cache_prompt` has no cache, so requests for one token, which only fill a cache, are not sent to it.
    """

    address: str
    model: str
    fields: Mapping[str, Any] = {}

    def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a chat; raise an `HTTPError` if the server refuses it."""
        if body["max_tokens"] == 1 and self.fields.get("cache_prompt", True) is None:
            return {
                "model": NAME,
                "choices": [{"message": {"role": "assistant", "content": "."}}],
            }
        fields = {**body, "model": self.model, **self.fields}
        content = json.dumps(
            {name: value for name, value in fields.items() if value is not None}
        ).encode()
        request = Request(
            f"{self.address}/chat/completions",
            content,
            {"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=600) as response:
            return {**json.load(response), "model": NAME}


class FaultyProxy:
    """Passes chats on.

    Its prefix cache has blocks of 16 tokens of the last message. What the cache holds for a prompt is sent as text, so a
    wrong block is a piece of another prompt, and a dropped one is missing.

    Args:
        cache: the cache and its faults; its model has the tokenizer, and the replies that were recorded.
        upstream: the server.
        worse: the server that gets each fifth request; None for none.
        late: seconds that a flaky proxy waits before a late reply; 0 for a proxy that is not flaky. `chance` decides which.
    """

    def __init__(
        self,
        cache: RealCachedServer,
        upstream: Upstream,
        worse: Upstream | None = None,
        late: float = 0.0,
    ):
        self.cache = cache
        self.upstream = upstream
        self.worse = worse
        self.late = late
        self.requests = 0
        self._seen = Counter[str]()
        self.chance = Random(0)

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a chat; equal requests have replies of their own, each of which is recorded once."""
        self.requests += 1
        messages = self.cache.change(body["messages"])
        if body.get("cache_prompt", True):
            tokenizer = self.cache.model.tokenizer
            tokens = tokenizer(messages[-1]["content"], add_special_tokens=False)[
                "input_ids"
            ]
            run, _ = self.cache.see(tokens, self.cache.build)
            known = [
                token
                for part in run.past
                for token in part.run.tokens[part.first : part.last]
            ]
            messages[-1]["content"] = tokenizer.decode([*known, *run.tokens])
        upstream = (
            self.worse if self.worse and self.requests % 5 == 0 else self.upstream
        )
        sent = {**body, "messages": messages}
        text = json.dumps([upstream.model, upstream.address, sent], sort_keys=True)
        name = hashlib.sha256(text.encode()).hexdigest()
        self._seen[name] += 1
        name = f"{self._seen[name]} {name}"
        replies = self.cache.model.replies
        return (
            replies.found[name]
            if name in replies.found
            else replies.add(name, upstream.ask(sent))
        )

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve on the loopback interface until the block ends, and yield the address."""
        proxy = self

        class Handler(JsonHandler):
            def do_GET(self) -> None:  # noqa: N802 (http.server's name)
                self.send_json(
                    200, {"object": "list", "data": [{"id": NAME, "object": "model"}]}
                )

            def do_POST(self) -> None:  # noqa: N802 (http.server's name)
                body = self.read_body()
                chance = proxy.chance.random() if proxy.late else 1.0
                with suppress(ConnectionError):
                    if not self.path.endswith("/chat/completions"):
                        self.send_json(404, {"error": {"message": "not found"}})
                        return
                    if chance < SLOW:
                        self.send_json(503, {"error": {"message": "overloaded"}})
                        return
                    try:
                        reply = proxy.answer(body)
                    except HTTPError as error:
                        self.send_json(error.code, json.load(error))
                        return
                    if chance < 2 * SLOW:
                        self.close_connection = True
                        return
                    if chance < 3 * SLOW:
                        time.sleep(proxy.late)
                    self.send_json(200, reply)

        with serve_handler(Handler) as address:
            yield address
