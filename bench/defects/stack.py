"""Counts how often `doctor` finds faults of the stack around a model; a part of `bench.defects`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from random import Random
from statistics import fmean
from typing import Any

from bench.defects.faults import FAILING, FLAKY, SHORT_TIMEOUT, SPREAD, LoopbackClient
from helm.common.cache import BlackHoleCacheConfig
from tests.support.servers.real_cache import Build, Model, RealCachedServer
from tests.support.servers.real_proxy import NAME, FaultyProxy, Upstream

from helm_longctx.models.endpoints.probe import ProbedEndpoint
from helm_longctx.models.endpoints.stack import Stack

WORSE = Build(weight_bits=5)


def list_stack_faults(
    worse: Mapping[str, Build | Upstream],
) -> dict[str, tuple[dict[str, Any], str]]:
    """Return for each fault the arguments of the server, and the text of the finding that names it.

    Args:
        worse: the builds that get each fifth request.
    """
    routers = {
        f"router, each fifth request to {name}": ({"worse": build}, "each 5th")
        for name, build in worse.items()
    }
    return {
        "middle dropped": ({"drops_middle": True}, "the server cuts prompts"),
        "template without the system turn": (
            {"drops_system": True},
            "a system turn of about",
        ),
        **routers,
        "none": ({}, ""),
        "none, a tenth of requests fails": ({"failing": FAILING}, ""),
        f"none, noise of {SPREAD} nats": ({"spread": SPREAD}, ""),
    }


def check_stack(
    model: Model, upstream: Upstream | None, arguments: Mapping[str, Any], seed: int
) -> tuple[list[str], int]:
    """Return what `doctor` finds broken, and the number of requests.

    Args:
        upstream: the server that answers; None for the model in this process.
    """
    given = dict(arguments)
    client = LoopbackClient(
        BlackHoleCacheConfig(), base_url="http://127.0.0.1:9/v1", model=NAME
    )
    client.failing = given.pop("failing", 0.0)
    client.spread = given.pop("spread", 0.0)
    client.chance = Random(seed)
    if upstream:
        worse = given.pop("worse", None)
        client.server = FaultyProxy(RealCachedServer(model, **given), upstream, worse)
    else:
        client.server = RealCachedServer(model, **given)
    client.server.requests = seed  # the phase of a router, and the noise
    stack = Stack(
        ProbedEndpoint("http://127.0.0.1:9/v1", "openai", NAME, ("chat",), context=1024)
    )
    stack.client = client
    findings = list(stack.find_faults())
    return [
        text for fine, text in findings if fine is False
    ], client.server.requests - seed


def check_flaky_stack(model: Model, upstream: Upstream, seed: int) -> list[str]:
    """Return what `doctor` finds broken over HTTP, through a proxy without a fault that is slow and flaky."""
    os.environ["HELM_LONGCTX_TIMEOUT"] = str(SHORT_TIMEOUT)
    proxy = FaultyProxy(RealCachedServer(model), upstream, late=2 * SHORT_TIMEOUT)
    proxy.chance.seed(seed)
    with proxy.serve() as address:
        stack = Stack(ProbedEndpoint(address, "openai", NAME, ("chat",), context=1024))
        return [text for fine, text in stack.find_faults() if fine is False]


def count_stack(
    model: Model,
    upstream: Upstream | None,
    worse: Mapping[str, Build | Upstream],
    seeds: int,
) -> None:
    """Print how often `doctor` finds each fault, and names it."""
    for name, (arguments, line) in list_stack_faults(worse).items():
        outcomes = [
            check_stack(model, upstream, arguments, seed) for seed in range(seeds)
        ]
        broken = sum(bool(lines) for lines, _ in outcomes)
        right = (
            sum(any(line in text for text in lines) for lines, _ in outcomes)
            if line
            else 0
        )
        print(
            f"{name:45} found {broken:3}, named right {right:3}, {fmean(n for _, n in outcomes):.0f} requests",
            flush=True,
        )
    if upstream:
        alarms = [check_flaky_stack(model, upstream, seed) for seed in range(seeds)]
        print(
            f"{FLAKY}: found {sum(map(bool, alarms))}: {sorted({text for alarm in alarms for text in alarm})}",
            flush=True,
        )
