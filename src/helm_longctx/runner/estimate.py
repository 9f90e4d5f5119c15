"""Estimates the requests and the cost of a run before anything is sent. The runner's own code makes the prompts."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.model_deployment_registry import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT as DEPLOYMENTS
from helm.benchmark.model_deployment_registry import ModelDeployment, get_model_deployment
from helm.benchmark.run_spec import RunSpec
from helm.common.object_spec import get_class_by_name
from helm.common.request import GeneratedOutput, Request, RequestResult

from helm_longctx.apis.prices import Prices, find_prices
from helm_longctx.apis.usage import Usage
from helm_longctx.errors import InputError
from helm_longctx.helm.answer_judge import judge_names, judge_requests, typical_answer
from helm_longctx.helm.counting import with_deployments_tokenizer
from helm_longctx.helm.truncation import load_deployment_counter
from helm_longctx.protocol.sample import Sample
from helm_longctx.protocol.token_estimate import estimate_tokens, splits_digits
from helm_longctx.running.follow_up import most_follow_up_tokens
from helm_longctx.running.prefixes import Beginning, cacheable_beginnings, order_by_prefix, prefix_keys
from helm_longctx.running.runner import LongContextRunner
from helm_longctx.running.spool import Spool, prompt_text, whole_request
from helm_longctx.running.stand_ins import is_long_context, make_scenario, restore, store_prompts
from helm_longctx.runs.files import STATES, write_json

COUNTED_PROMPTS = 16
"""Number of prompts of each task that are tokenized if the run itself tokenizes none. The other prompts are estimated
from the text, with the same ratio of counted to estimated tokens."""

SHORTEST_ANSWER = 20
"""Tokens of the shortest typical answer."""

LONGER_THAN_REFERENCE = 1.5
"""Ratio of the length of a typical answer to that of the longest reference."""

JUDGE_REPLY = 200
"""Largest number of tokens of a judge's reply, which is a short explanation and a grade."""

RESULT_BYTES = 9_000
"""Bytes of a request's statistics and result in the run's files, without texts (measured)."""

TOKEN_BYTES = 4
"""Bytes of a token of an answer in the run's files."""


@dataclass(frozen=True)
class PromptTokens:
    """Tokens of a run's prompts.

    Args:
        total: number of tokens of all prompts.
        counted_by: the tokenizer's name; None if the number is estimated from the text.
        cached, cache_writes: number of tokens that are read from the provider's cache, and that are written to it; 0 if
            the client cannot use the cache.
    """

    total: int
    counted_by: str | None
    cached: int
    cache_writes: int


@dataclass(frozen=True)
class OutputTokens:
    """Tokens of a run's answers: `typical` if they are a little longer than the references, `most` at their limits."""

    typical: int
    most: int


@dataclass(frozen=True)
class JudgeTokens:
    """Calls and tokens of judges, if no question is repeated."""

    calls: int
    prompt: int
    output: int


@dataclass(frozen=True)
class Dollars:
    """Prices of a run; None for a price that is not known.

    Args:
        typical: the price for answers of typical length, without the provider's cache.
        cached: the same with the provider's cache.
        batch: the price for answers of typical length in a batch, without the cache.
        most: the price if each answer reaches its limit, without the cache.
        judges: the price of the judges.
        source: the source of the prices.
    """

    typical: float | None
    cached: float | None
    batch: float | None
    most: float | None
    judges: float | None
    source: str | None


@dataclass(frozen=True)
class Estimate:
    """The requests and the cost of one run.

    Args:
        run: the run's name.
        deployment: the deployment that is asked.
        requests: number of requests, repeats included.
        disk_bytes: size of the run's files.
        minutes: the duration of the run at the given rate; None without a rate.
    """

    run: str
    deployment: str
    requests: int
    prompt_tokens: PromptTokens
    output_tokens: OutputTokens
    judge_tokens: JudgeTokens
    dollars: Dollars
    disk_bytes: int
    minutes: float | None


@dataclass(frozen=True)
class Rate:
    """Limits on the speed of sending; None for no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def minutes(self, requests: int, tokens: int) -> float | None:
        """Return the shortest time that requests take, in minutes; None without a limit."""
        limits = ((requests, self.requests_per_minute), (tokens, self.tokens_per_minute))
        return max((amount / limit for amount, limit in limits if limit), default=None)


def estimate_run(runner: LongContextRunner, spec: RunSpec, own: Mapping[str, Any], rate: Rate) -> Estimate:
    """Estimate a run.

    Args:
        runner: makes the prompts.
        own: the user's prices; see `find_prices`.
        rate: limits on the speed of sending.

    Raises:
        InputError: the run is of another scenario of HELM, data is missing or malformed, or prompts do not fit.
    """
    if not is_long_context(spec):
        raise InputError(f"{spec.name}: only run entries of this package and HELM's long-context ones can be estimated")
    deployment = get_model_deployment(spec.adapter_spec.model_deployment)
    prices = find_prices(deployment.name, own)
    spec = with_deployments_tokenizer(spec)
    with tempfile.TemporaryDirectory() as folder, Spool(Path(folder)) as spool:
        states = runner.adapt(spec, make_scenario(spec), spool)
        keys = prefix_keys(prompt_text(state, spool) for state in states)
        disk_bytes = _disk_bytes(states, order_by_prefix(keys), spool, Path(folder))
        counter = load_deployment_counter(deployment.name)
        tokens = count_prompts(states, partial(whole_request, spool=spool), counter, _splits_digits(deployment))
    beginnings = cacheable_beginnings(states, keys if _is_cached(deployment) else [[]] * len(keys), prices)
    usages = list(_usages(states, tokens, beginnings))
    typical, most = [_typical_output(state) for state in states], [state.request.max_tokens for state in states]
    judges = list(_judge_usages(spec, states, typical))
    _add_follow_ups(states, tokens, usages, (typical, most))
    thinking = len(usages) * int(deployment.client_spec.args.get("thinking_tokens") or 0)
    return Estimate(
        run=spec.name,
        deployment=deployment.name,
        requests=len(usages),
        prompt_tokens=PromptTokens(
            total=sum(tokens),
            counted_by=deployment.tokenizer_name if counter else None,
            cached=sum(usage.cached_tokens for usage in usages),
            cache_writes=sum(usage.cache_write_tokens for usage in usages),
        ),
        output_tokens=OutputTokens(sum(typical) + thinking, sum(most) + thinking),
        judge_tokens=_judge_tokens(usage for _, usage in judges),
        dollars=_dollars(prices, usages, typical, most, _judge_dollars(judges, own)),
        disk_bytes=disk_bytes + TOKEN_BYTES * sum(typical),
        minutes=rate.minutes(len(usages), sum(tokens) + sum(typical)),
    )


def count_prompts(
    states: Sequence[RequestState],
    whole: Callable[[RequestState], Request],
    counter: Callable[[str], int] | None,
    single_digits: bool,
) -> list[int]:
    """Return the number of tokens of each prompt: counted when it was made, or by a tokenizer, or estimated.

    Args:
        whole: returns a state's request with its whole prompt.
        counter: counts by the deployment's tokenizer; None if there is none.
        single_digits: whether the tokenizer makes a token of each digit.
    """
    estimates = [estimate_tokens(_text(whole(state)), single_digits) for state in states]
    counts = {number: count for number, state in enumerate(states) if (count := _prompt_tokens(state))}
    by_task: dict[str, list[int]] = defaultdict(list)
    for number, state in enumerate(states):
        by_task[str(state.instance.sub_split)].append(number)
    for numbers in by_task.values():
        sample = [number for number in numbers if number in counts]
        if counter and not sample:
            # The prompts are evenly spaced, because neighbouring instances often have the same context.
            sample = numbers[:: max(len(numbers) // COUNTED_PROMPTS, 1)]
            counts |= {number: counter(_text(whole(states[number]))) for number in sample}
        if sample:
            ratio = sum(counts[number] for number in sample) / sum(estimates[number] for number in sample)
            for number in set(numbers) - set(counts):
                estimates[number] = round(estimates[number] * ratio)
    return [counts.get(number, estimate) for number, estimate in enumerate(estimates)]


def _prompt_tokens(state: RequestState) -> int | None:
    return Sample.from_json(state.instance.extra_data).prompt_tokens


def _text(request: Request) -> str:
    return "\n".join(message["content"] for message in request.messages) if request.messages else request.prompt


def _splits_digits(deployment: ModelDeployment) -> bool:
    return splits_digits(f"{deployment.model_name} {deployment.client_spec.args.get('model', '')}")


def _is_cached(deployment: ModelDeployment) -> bool:
    return getattr(get_class_by_name(deployment.client_spec.class_name), "caches_prompts", False)


def _usages(
    states: Sequence[RequestState], tokens: Sequence[int], beginnings: Sequence[Beginning | None]
) -> Iterator[Usage]:
    """Yield the tokens of each request. One request of a group writes the beginning to the cache, others read it."""
    written = set()
    for state, count, beginning in zip(states, tokens, beginnings, strict=True):
        if beginning is None:
            yield Usage(count)
            continue
        pointer = Sample.from_json(state.instance.extra_data).full_prompt
        assert pointer is not None
        shared = round(count * min(beginning.characters / pointer["characters"], 1))
        if beginning.group in written:
            yield Usage(count, cached_tokens=shared)
        else:
            yield Usage(count, cache_write_tokens=shared)
        written.add(beginning.group)


def _add_follow_ups(
    states: Sequence[RequestState], tokens: list[int], usages: list[Usage], outputs: Iterable[list[int]]
) -> None:
    """Add the second requests to the tokens and the usages of the prompts, and to the sizes of the answers."""
    seconds = [usage for state in states if (usage := most_follow_up_tokens(state)) != Usage()]
    tokens += [usage.input_tokens for usage in seconds]
    usages += [Usage(usage.input_tokens) for usage in seconds]
    for sizes in outputs:
        sizes += [usage.output_tokens for usage in seconds]


def _typical_output(state: RequestState) -> int:
    """Return the typical number of output tokens of a request.

    It is a little more than the longest reference, or else the loader's number, or else half of the limit.
    """
    sample, limit = Sample.from_json(state.instance.extra_data), state.request.max_tokens
    # With a second request, the first answer is reasoning, which is not similar to the references.
    references = [] if sample.follow_up else state.instance.references
    sizes = [estimate_tokens(reference.output.text) for reference in references]
    otherwise = sample.answer_tokens or (limit - sample.thinking_tokens) / 2
    answer = LONGER_THAN_REFERENCE * max(sizes) if sizes else otherwise
    return min(limit, sample.thinking_tokens + max(SHORTEST_ANSWER, round(answer)))


def _judge_usages(spec: RunSpec, states: Sequence[RequestState], typical: Sequence[int]) -> Iterator[tuple[str, Usage]]:
    """Yield each question to a judge about an answer of typical length: the judge's deployment and the tokens."""
    for annotator in spec.annotators or []:
        for state, tokens in zip(states, typical, strict=True):
            answer = GeneratedOutput(text=typical_answer(annotator, state, tokens), logprob=0, tokens=[])
            answered = replace(state, result=RequestResult(True, [], [answer], False))
            for judge, request in product(judge_names(annotator), judge_requests(annotator, answered)):
                size = min(request.max_tokens, JUDGE_REPLY)
                yield judge, Usage(estimate_tokens(request.prompt), output_tokens=size)


def _judge_tokens(usages: Iterable[Usage]) -> JudgeTokens:
    found = list(usages)
    return JudgeTokens(
        len(found), sum(usage.input_tokens for usage in found), sum(usage.output_tokens for usage in found)
    )


def _judge_dollars(judges: Sequence[tuple[str, Usage]], own: Mapping[str, Any]) -> float | None:
    names = {judge for judge, _ in judges}
    prices = {name: find_prices(name, own) if name in DEPLOYMENTS else None for name in names}
    return _sum(price.dollars(usage) if (price := prices[judge]) else None for judge, usage in judges)


def _dollars(
    prices: Prices | None, usages: Sequence[Usage], typical: Sequence[int], most: Sequence[int], judges: float | None
) -> Dollars:
    if prices is None:
        return Dollars(None, None, None, None, judges, None)

    def total(usages: Iterable[Usage], output: Sequence[int], batch: bool = False) -> float | None:
        requests = (replace(usage, output_tokens=size) for usage, size in zip(usages, output, strict=True))
        return _sum(prices.dollars(usage, batch) for usage in requests)

    uncached = [Usage(usage.input_tokens) for usage in usages]
    return Dollars(
        typical=total(uncached, typical),
        cached=total(usages, typical),
        batch=total(uncached, typical, batch=True),
        most=total(uncached, most),
        judges=judges,
        source=prices.source,
    )


def _sum(amounts: Iterable[float | None]) -> float | None:
    """Return the sum; None if an amount is not known."""
    found = list(amounts)
    known = [amount for amount in found if amount is not None]
    return sum(known) if len(known) == len(found) else None


def _disk_bytes(states: Sequence[RequestState], order: Sequence[int], spool: Spool, folder: Path) -> int:
    """Return the size of the files of a run without answers, which are written to a temporary folder."""
    store_prompts(folder, states, order, spool)
    write_json(folder / STATES, restore(states))
    return sum(path.stat().st_size for path in folder.iterdir()) + RESULT_BYTES * len(states)
