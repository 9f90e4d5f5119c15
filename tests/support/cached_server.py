"""A server of a scripted model with a real prefix cache of blocks, into which faults can be put."""

from __future__ import annotations

import json
import re
import threading
from collections import ChainMap, Counter, OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from helm_longctx.apps.cache_check.prompts import TEXTS
from tests.support.json_http import JsonHandler, ModelServer

_TOKEN = re.compile(r"\s*(?:\d{1,3}|[^\W\d]+|[^\w\s])|\s+")
_LINES = [
    re.compile(
        re.escape(line).replace(r"\{key\}", r"(\d+)").replace(r"\{value\}", r"(\d+)")
    )
    for _, line, _ in TEXTS.values()
]
"""A key and its value in a line of a register, for each kind of text."""

FAULTS = ("wrong block", "overwritten", "dropped", "stale", "aborted", "mixed")
"""
- wrong block: a partial hit reads one wrong block at its end;
- overwritten: a partial hit writes its next block over the last shared one;
- dropped: a hit loses its last block, which is neither read nor computed;
- stale: a block that was evicted keeps its key, and has the content of another one;
- aborted: an aborted stream leaves half of the blocks empty;
- mixed: requests at the same time read each other's questions.
"""


@dataclass
class CachedServer(ModelServer):
    """A model that looks keys up in what it sees of a prompt.

    Args:
        block: tokens of a block of the cache.
        capacity: number of blocks in the cache.
        fault: one of `FAULTS`; empty for none.
        slip: probability that an answer has a wrong value, drawn anew when a prompt is sent again, as by a server that is
            not deterministic. The draws do not depend on the order in which requests arrive.
        fails: probability that a request ends with the status 500.
        shortest: fewest tokens of a prompt with which the fault shows.
        only: the fault shows only in prompts with this text.
        first_hit: fewest blocks of a partial hit with which a fault of it shows.
        worse_every: a router sends each so many-th request to a second build, which loses a value in half of its
            answers; 0 for one build.
        load_noise: how far a log-probability moves at most if the server has several requests at the same time.
        has_logprobs, has_counts: whether replies have log-probabilities, and counts of cached tokens.
        has_zeros: whether a count of cached tokens can be 0. vLLM leaves it out.
    """

    block: int = 16
    capacity: int = 100_000
    fault: str = ""
    slip: float = 0.0
    fails: float = 0.0
    shortest: int = 0
    only: str = ""
    first_hit: int = 3
    worse_every: int = 0
    load_noise: float = 0.0
    has_logprobs: bool = False
    has_counts: bool = True
    has_zeros: bool = True
    seed: int = 0
    requests: int = 0
    _blocks: OrderedDict[int, list[str]] = field(default_factory=OrderedDict)
    _stale: dict[int, list[str]] = field(default_factory=dict)
    _sent: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _active: list[list[str]] = field(default_factory=list)
    _busy: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def see(
        self, text: str, is_aborted: bool = False, salt: str = ""
    ) -> tuple[str, int, int]:
        """Return what the model sees of a prompt, its tokens, and how many of them were cached; fill the cache."""
        tokens = _TOKEN.findall(text)
        blocks = [
            tokens[start : start + self.block]
            for start in range(0, len(tokens), self.block)
        ]
        keys = []
        key = hash(salt)
        for block in blocks:
            key = hash((key, *block))
            keys.append(key)
        full = len(tokens) // self.block
        known = ChainMap(self._blocks, self._stale)
        hits = next(
            (position for position in range(full) if keys[position] not in known), full
        )
        seen = [
            known[keys[number]] if number < hits else block
            for number, block in enumerate(blocks)
        ]
        partial = self.first_hit <= hits < full - 1
        fault = self.fault if len(tokens) >= self.shortest and self.only in text else ""
        for number in range(full):
            self._blocks[keys[number]] = seen[number]
            self._blocks.move_to_end(keys[number])
        if fault == "wrong block" and partial:
            seen[hits - 1] = seen[hits - 3 if hits > 2 else -1]
        if fault == "dropped" and hits > 2:
            del seen[hits - 1]
        if fault == "overwritten" and partial:
            self._blocks[keys[hits - 1]] = blocks[hits]
        if fault == "aborted" and is_aborted:
            self._blocks.update({key: [] for key in keys[full // 2 : full]})
        while len(self._blocks) > self.capacity:
            evicted, _ = self._blocks.popitem(last=False)
            if fault == "stale":
                # The key stays, and its memory now has what was written last.
                self._stale[evicted] = blocks[-2]
        return (
            "".join(token for block in seen for token in block),
            len(tokens),
            hits * self.block,
        )

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a chat."""
        text = body["messages"][-1]["content"]
        with self._lock:
            self.requests += 1
            self._sent[text] += 1
            is_second = bool(self.worse_every) and self.requests % self.worse_every == 0
            draws = Random(f"{self.seed} {self._sent[text]} {text}")
            salt = body.get(
                "cache_salt", ""
            )  # as in vLLM, prompts with other salts share nothing
            seen, count, cached = self.see(text, bool(body.get("stream")), salt)
        question = re.findall(r"\d+", text.rpartition("\n\n")[2])
        if not question:
            return self._reply(body, "ready", count, cached)
        if self.fault == "mixed":
            self._active.append(question)
            threading.Event().wait(0.02)
            other = next(
                (block for block in self._active if block != question), question
            )
            self._active.remove(question)
            question = other
        is_alone = not self.load_noise or self._wait_alone()
        values = dict(pair for line in _LINES for pair in line.findall(seen))
        digits = [values.get(key, "0") for key in question]
        if draws.random() < self.slip or (is_second and draws.random() < 0.5):
            digits[draws.randrange(len(digits))] = "1"
        reply = self._reply(body, ", ".join(digits), count, cached, is_alone)
        return (
            {**reply, "system_fingerprint": f"fp-{1 + is_second}"}
            if self.worse_every
            else reply
        )

    def _wait_alone(self) -> bool:
        """Wait a moment, and return whether no other request came or was there."""
        with self._lock:
            self._busy += 1
            most = self._busy
        for _ in range(10):
            threading.Event().wait(0.001)
            most = max(most, self._busy)
        with self._lock:
            self._busy -= 1
        return most == 1

    def _reply(
        self,
        body: dict[str, Any],
        text: str,
        count: int,
        cached: int,
        is_alone: bool = True,
    ) -> dict[str, Any]:
        usage: dict[str, Any] = {"prompt_tokens": count, "completion_tokens": 9}
        if self.has_counts and (cached or self.has_zeros):
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
        if self.has_logprobs and body.get("logprobs"):
            most = 0.01 if is_alone else 0.01 + self.load_noise
            noise = lambda: -most * self.random.random()  # noqa: E731
            content = [
                {"token": word, "logprob": noise(), "top_logprobs": []}
                for word in text.split()
            ]
            choice["logprobs"] = {"content": content}
        return self.reply(choice, usage)

    def handle(self, handler: JsonHandler) -> None:
        """Answer a chat, sometimes with an error."""
        body = handler.read_body()
        if not handler.path.endswith("/chat/completions"):
            handler.send_json(
                404, {"error": {"message": "not found", "code": "not_found"}}
            )
        elif self.random.random() < self.fails:
            handler.send_json(500, {"error": {"message": "out of order"}})
        elif body.get("stream"):
            _stream(handler, self.answer(body))
        else:
            handler.send_json(200, self.answer(body))


def _stream(handler: JsonHandler, reply: dict[str, Any]) -> None:
    """Send a reply word by word, more and more slowly."""
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.end_headers()
    text = reply["choices"][0]["message"]["content"]
    with suppress(ConnectionError):
        for number, word in enumerate(text.split(" ")):
            delta = {
                "index": 0,
                "delta": {"content": word + " "},
                "finish_reason": None,
            }
            event = {"id": "x", "object": "chat.completion.chunk", "choices": [delta]}
            handler.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            handler.wfile.flush()
            threading.Event().wait(0.002 * number)
        handler.wfile.write(b"data: [DONE]\n\n")
    handler.close_connection = True
