"""What the parts of `bench.defects` share: a client of servers in this process, and the faults that all of them have."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from helm.common.request import Request
from tests.support.servers.real_cache import RealCachedServer
from tests.support.servers.real_proxy import FaultyProxy

from helm_longctx.failures import Failure, FailureError
from helm_longctx.models.apis.providers.openai import OpenAIClient

FLAKY = "slow and flaky"

SPREAD = 0.05
"""Standard deviation of the noise that is added to log-probabilities, in nats."""

FAILING = 0.1
"""Share of requests that fail."""

SHORT_TIMEOUT = 2
"""Seconds after which a request has no answer, where most replies are recorded."""


class LoopbackClient(OpenAIClient):
    """Sends requests to a server in this process, some of which fail, and whose log-probabilities can have noise."""

    server: RealCachedServer | FaultyProxy
    chance: Random
    failing = spread = 0.0

    def _exchange(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        if self.chance.random() < self.failing:
            raise FailureError(Failure.TEMPORARY, "overloaded")
        reply: dict[str, Any] = json.loads(json.dumps(self.server.answer(body)))
        for token in (reply["choices"][0].get("logprobs") or {}).get("content", ()):
            for candidate in token["top_logprobs"]:
                candidate["logprob"] += self.chance.gauss(0, self.spread)
        return reply
