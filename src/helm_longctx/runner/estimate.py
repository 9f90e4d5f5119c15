"""Estimates the requests and the cost of a run before anything is sent. The runner's own code makes the prompts."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from helm_longctx.errors import InputError
from helm_longctx.helm.truncation import (
    load_deployment_counter,
    with_deployments_tokenizer,
)
from helm_longctx.helm_api import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT as DEPLOYMENTS
from helm_longctx.helm_api import (
    GeneratedOutput,
    ModelDeployment,
    Request,
    RequestResult,
    RunSpec,
    get_class_by_name,
    get_model_deployment,
)
from helm_longctx.judging.answer_judge import (
    judge_names,
    judge_requests,
    typical_answer,
)
from helm_longctx.models.apis.prices import Prices, find_prices
from helm_longctx.models.scoring import count_texts, input_tokens
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runner import prefixes
from helm_longctx.runner.follow_up import most_follow_up_tokens
from helm_longctx.runner.programs import has_programs, plan_steps
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runner.spool import (
    Spool,
    StoredRequest,
    is_long_context,
    make_scenario,
    scenario_key,
    store_prompts,
)
from helm_longctx.runs.files import STATES
from helm_longctx.runs.helm_files import write_states
from helm_longctx.runs.records import RECORDS
from helm_longctx.tasks.answer import Usage
from helm_longctx.tasks.entry import ADAPTER_METHOD
from helm_longctx.tasks.metric_names import nearest_depth
from helm_longctx.tasks.prompt import message_text
from helm_longctx.tasks.token_estimate import estimate_tokens, splits_digits

_COUNTED_PROMPTS = 16
"""Number of prompts of each task that are tokenized if the run itself tokenizes none. The other prompts are estimated
from the text, with the same ratio of counted to estimated tokens."""

_SHORTEST_ANSWER = 20
"""Tokens of the shortest typical answer."""

_LONGER_THAN_REFERENCE = 1.5
"""Ratio of the length of a typical answer to the length of the longest reference."""

_JUDGE_REPLY = 200
"""Largest number of tokens of a judge's reply: a short explanation and a grade."""

RESULT_BYTES = 7_000
_TASK_BYTES = 22_000
_RUN_BYTES = 2_000
"""Bytes of a request's statistics and result in the run's files, without texts; of the means of a task's statistics;
and of the files that each run has (measured)."""

TOKEN_BYTES = 4
"""Bytes of a token of an answer in the run's files."""

_WITHOUT_MODEL: dict[str, None] = dict.fromkeys(
    ("model", "model_deployment", "messages")
)
"""Fields of a request that the digest of requests leaves out. The digest of a prompt also covers its messages."""


@dataclass(frozen=True)
class _PromptTokens:
    """Tokens of a run's prompts.

    Args:
        counted_by: the tokenizer's name. It is None where the number is estimated from the text.
        cached, cache_writes: number of tokens that are read from the provider's cache, and that are written to it. Both
            are 0 if the client cannot use the cache.
    """

    total: int
    counted_by: str | None
    cached: int
    cache_writes: int


@dataclass(frozen=True)
class _OutputTokens:
    """Tokens of a run's answers: `typical` if they are a little longer than the references, `most` at their limits."""

    typical: int
    most: int


@dataclass(frozen=True)
class _JudgeTokens:
    """Calls and tokens of judges, if no question is repeated."""

    calls: int
    prompt: int
    output: int


@dataclass(frozen=True)
class Dollars:
    """Prices of a run. A price that is not known is None.

    Args:
        typical: the price for answers of typical length, without the provider's cache.
        cached: the same with the provider's cache.
        batch: the price for answers of typical length in a batch, without the cache.
        batch_cached: the same if the cache is filled before the batch where that pays.
        most: the price if each answer reaches its limit, without the cache.
        judges: the price of the judges.
        source: the source of the prices.
    """

    typical: float | None
    cached: float | None
    batch: float | None
    batch_cached: float | None
    most: float | None
    judges: float | None
    source: str | None


@dataclass(frozen=True)
class TaskSample:
    """The questions of a task in a run.

    Args:
        entry: the run entry's name. HELM's own scenarios have none.
        task: the task's name. HELM's own scenarios have none.
        questions, clusters: numbers of questions, and of the clusters in which they are.
        cluster_size: the mean number of questions in the cluster of a question. Large clusters weigh most.
    """

    entry: str
    task: str
    length: int | None
    questions: int
    clusters: int
    depths: tuple[tuple[int, int], ...] = ()
    cluster_size: float = 1.0


@dataclass(frozen=True)
class Estimate:
    """The requests and the cost of one run.

    Args:
        requests: number of requests, repeats included.
        disk_bytes: size of the run's files.
        minutes: the duration of the run at the given rate, if there is a rate.
        requests_digest: the SHA-256 of all prompts and parameters of the requests, without the model's name.
    """

    run: str
    deployment: str
    requests: int
    prompt_tokens: _PromptTokens
    output_tokens: _OutputTokens
    judge_tokens: _JudgeTokens
    dollars: Dollars
    disk_bytes: int
    minutes: float | None
    samples: tuple[TaskSample, ...]
    requests_digest: str


@dataclass(frozen=True)
class Rate:
    """Limits on the speed of sending. None is no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def minutes(self, requests: int, tokens: int) -> float | None:
        """Return the shortest time that requests take, in minutes. Returns None without a limit."""
        limits = (
            (requests, self.requests_per_minute),
            (tokens, self.tokens_per_minute),
        )
        return max((amount / limit for amount, limit in limits if limit), default=None)


def estimate_runs(
    runner: LongContextRunner,
    specs: Sequence[RunSpec],
    own: Mapping[str, Any],
    rate: Rate,
) -> list[Estimate]:
    """Estimate runs, as `estimate_run` does. The questions of runs that differ only in their models are made once."""
    by_scenario: dict[str, list[int]] = defaultdict(list)
    for number, spec in enumerate(specs):
        by_scenario[scenario_key(spec)].append(number)
    estimates: dict[int, Estimate] = {}
    for numbers in by_scenario.values():
        with (
            tempfile.TemporaryDirectory() as folder,
            Spool(Path(folder), keeps_instances=True) as spool,
        ):
            for number in numbers:
                estimates[number] = estimate_run(
                    runner, specs[number], own, rate, spool
                )
    return [estimates[number] for number in range(len(specs))]


def estimate_run(
    runner: LongContextRunner,
    spec: RunSpec,
    own: Mapping[str, Any],
    rate: Rate,
    spool: Spool,
) -> Estimate:
    """Estimate a run.

    Args:
        spool: gets the prompts. Runs of the same scenario can share it.

    Raises:
        InputError: the run is of one of HELM's other scenarios, its data is bad, or its prompts do not fit.
    """
    if not is_long_context(spec):
        raise InputError(
            f"{spec.name}: only run entries of this package and HELM's long-context"
            " ones can be estimated"
        )
    deployment = get_model_deployment(spec.adapter_spec.model_deployment)
    prices = find_prices(deployment.name, own)
    spec = with_deployments_tokenizer(spec)
    every = runner.adapt(spec, make_scenario(spec), spool)
    with tempfile.TemporaryDirectory() as folder:
        disk_bytes = _disk_bytes(spec, every, Path(folder))
    # A result is of an earlier run.
    questions = [asked for asked in every if asked.state.result is None]
    if has_programs(questions):
        requests = plan_steps(questions, spool)
    else:
        requests = questions
    keys = prefixes.prefix_keys(request.text() for request in requests)
    counter = load_deployment_counter(deployment.name)
    plain = _plain_usages(deployment, requests, counter)
    follow_ups = _follow_up_usages(requests)
    usages = _find_usages(deployment, requests, plain, keys, prices).add(follow_ups)
    judges = list(_judge_usages(spec, questions))
    most = [asked.request.max_tokens for asked in requests]
    most += [usage.output_tokens for usage in follow_ups]
    prompts = sum(usage.input_tokens for usage in usages.plain)
    typical = sum(usage.output_tokens for usage in usages.plain)
    thinking_budget = int(deployment.client_spec.args.get("thinking_tokens") or 0)
    thinking = len(usages.plain) * thinking_budget
    return Estimate(
        run=spec.name,
        deployment=deployment.name,
        requests=len(follow_ups)
        + sum(count_texts(asked.request) for asked in requests),
        prompt_tokens=_PromptTokens(
            total=prompts,
            counted_by=deployment.tokenizer_name if counter else None,
            cached=sum(usage.cached_tokens for usage in usages.direct),
            cache_writes=sum(usage.cache_write_tokens for usage in usages.direct),
        ),
        output_tokens=_OutputTokens(
            typical=typical + thinking, most=sum(most) + thinking
        ),
        judge_tokens=_JudgeTokens(
            calls=len(judges),
            prompt=sum(usage.input_tokens for _, usage in judges),
            output=sum(usage.output_tokens for _, usage in judges),
        ),
        dollars=_dollars(prices, usages, most, judges, own),
        disk_bytes=disk_bytes + TOKEN_BYTES * typical,
        minutes=rate.minutes(len(usages.plain), prompts + typical),
        samples=tuple(_samples(spec, questions)),
        requests_digest=_digest_requests(requests),
    )


def _plain_usages(
    deployment: ModelDeployment,
    requests: Sequence[StoredRequest],
    counter: Callable[[str], int] | None,
) -> list[Usage]:
    """Return the tokens of each request without the provider's cache, with an answer of typical length."""
    names = f"{deployment.model_name} {deployment.client_spec.args.get('model', '')}"
    counts = _count_prompts(requests, counter, splits_digits(names))
    usages = []
    for asked, count in zip(requests, counts, strict=True):
        tokens = input_tokens(asked.request, count, asked.characters)
        usages.append(Usage(tokens, output_tokens=_typical_output(asked)))
    return usages


def _follow_up_usages(requests: Iterable[StoredRequest]) -> list[Usage]:
    """Return the tokens of the second requests that need the answers to the first ones."""
    usages = []
    for asked in requests:
        usage = most_follow_up_tokens(asked.request, asked.sample)
        if usage != Usage():
            usages.append(usage)
    return usages


def _digest_requests(requests: Iterable[StoredRequest]) -> str:
    """Return a digest that is equal for deployments which get the same requests in the same order."""
    lines = []
    for asked in requests:
        fields = {**vars(asked.request), **_WITHOUT_MODEL, "prompt": asked.digest}
        lines.append(json.dumps(fields, sort_keys=True, default=vars))
    return digest("\n".join(lines))


def _samples(spec: RunSpec, requests: Iterable[StoredRequest]) -> Iterator[TaskSample]:
    """Yield the sample of each task. Repeats of a question are one question."""
    groups: dict[str, dict[str | None, str | None]] = defaultdict(dict)
    clusters_at: dict[str, set[tuple[int, str | None]]] = defaultdict(set)
    for request in requests:
        name = request.state.instance.id
        task = request.state.instance.sub_split or ""
        groups[task][name] = request.sample.group or name
        if request.sample.depth is not None:
            clusters_at[task].add(
                (nearest_depth(request.sample.depth), groups[task][name])
            )
    arguments = spec.scenario_spec.args
    for task, by_question in groups.items():
        sizes = Counter(by_question.values())
        depths = Counter(depth for depth, _ in clusters_at[task])
        yield TaskSample(
            entry=arguments.get("entry") or "",
            task=task,
            length=arguments.get("length"),
            questions=len(by_question),
            clusters=len(sizes),
            depths=tuple(sorted(depths.items())),
            cluster_size=sum(size**2 for size in sizes.values()) / len(by_question),
        )


def _count_prompts(
    requests: Sequence[StoredRequest],
    counter: Callable[[str], int] | None,
    single_digits: bool,
) -> list[int]:
    """Return the number of tokens of each prompt: counted when it was made, or by a tokenizer, or estimated.

    Args:
        counter: counts by the deployment's tokenizer, if there is one.
        single_digits: whether the tokenizer makes a token of each digit.
    """
    estimates = []
    for request in requests:
        estimates.append(estimate_tokens(_text(request.whole()), single_digits))
    counts = {}
    by_task: dict[str, list[int]] = defaultdict(list)
    for number, request in enumerate(requests):
        if request.sample.prompt_tokens:
            counts[number] = request.sample.prompt_tokens
        by_task[str(request.state.instance.sub_split)].append(number)
    for numbers in by_task.values():
        sample = [number for number in numbers if number in counts]
        if counter and not sample:
            # The prompts are evenly spaced, because neighbouring instances often have the same context.
            count = min(len(numbers), _COUNTED_PROMPTS)
            sample = [numbers[index * len(numbers) // count] for index in range(count)]
            for number in sample:
                counts[number] = counter(_text(requests[number].whole()))
        if sample:
            counted = sum(counts[number] for number in sample)
            ratio = counted / sum(estimates[number] for number in sample)
            for number in set(numbers) - set(counts):
                estimates[number] = round(estimates[number] * ratio)
    for number, count in counts.items():
        estimates[number] = count
    return estimates


def _text(request: Request) -> str:
    if request.messages:
        return "\n".join(map(message_text, request.messages))
    return request.prompt


class _Usages(NamedTuple):
    """The tokens of requests: without the provider's cache, and with it if they are sent on their own or in a batch.

    Args:
        write_price: see `Provider.batch_write_price`.
    """

    plain: list[Usage]
    direct: list[Usage]
    batched: list[Usage]
    write_price: float

    def add(self, further: list[Usage]) -> _Usages:
        """Return these tokens with those of further requests, which no cache helps."""
        return _Usages(
            plain=self.plain + further,
            direct=self.direct + further,
            batched=self.batched + further,
            write_price=self.write_price,
        )


def _find_usages(
    deployment: ModelDeployment,
    requests: Sequence[StoredRequest],
    plain: list[Usage],
    keys: Sequence[prefixes.PrefixDigests],
    prices: Prices | None,
) -> _Usages:
    client = get_class_by_name(deployment.client_spec.class_name)
    if not getattr(client, "caches_prompts", False):
        keys = [[]] * len(keys)
    # Only our clients have a provider.
    if hasattr(client, "provider"):
        write_price = client.provider.batch_write_price
    else:
        write_price = 1.0
    tokens = [usage.input_tokens for usage in plain]
    caching_pays = prefixes.caching_pays(prices)
    warming_pays = prefixes.warming_pays(prices, write_price, tokens)
    return _Usages(
        plain=plain,
        direct=list(_usages(requests, plain, keys, caching_pays)),
        batched=list(_usages(requests, plain, keys, warming_pays)),
        write_price=write_price,
    )


def _usages(
    requests: Sequence[StoredRequest],
    plain: Sequence[Usage],
    keys: Sequence[prefixes.PrefixDigests],
    pays: prefixes.Pays,
) -> Iterator[Usage]:
    """Yield the tokens of each request. One request of a group writes the beginning to the cache, others read it."""
    beginnings = prefixes.cacheable_beginnings(requests, keys, pays)
    written = set()
    for asked, usage, beginning in zip(requests, plain, beginnings, strict=True):
        if beginning is None:
            yield usage
            continue
        shared = round(
            usage.input_tokens * min(beginning.characters / asked.characters, 1)
        )
        if beginning.group in written:
            yield replace(usage, cached_tokens=shared)
        else:
            yield replace(usage, cache_write_tokens=shared)
            written.add(beginning.group)


def _typical_output(asked: StoredRequest) -> int:
    """Return a little more than the longest reference's tokens, or else the loader's number, or half of the limit."""
    sample = asked.sample
    limit = asked.request.max_tokens
    # With a second request, the first answer is reasoning, which is not similar to the references.
    if sample.follow_up:
        references = []
    else:
        references = asked.state.instance.references
    sizes = [estimate_tokens(reference.output.text) for reference in references]
    otherwise = sample.answer_tokens or (limit - sample.thinking_tokens) / 2
    if sizes:
        answer = _LONGER_THAN_REFERENCE * max(sizes)
    else:
        answer = otherwise
    return min(limit, sample.thinking_tokens + max(_SHORTEST_ANSWER, round(answer)))


def _judge_usages(
    spec: RunSpec,
    requests: Sequence[StoredRequest],
) -> Iterator[tuple[str, Usage]]:
    """Yield each question to a judge about an answer of typical length: the judge's deployment and the tokens."""
    for annotator in spec.annotators or []:
        for asked in requests:
            task = asked.state.instance.sub_split or ""
            tokens = _typical_output(asked)
            text = typical_answer(annotator, task, asked.sample.record, tokens)
            answer = GeneratedOutput(text, logprob=0, tokens=[])
            result = RequestResult(
                success=True,
                embedding=[],
                completions=[answer],
                cached=False,
            )
            answered = replace(asked.state, result=result)
            judges = judge_names(annotator)
            for judge, request in product(judges, judge_requests(annotator, answered)):
                size = min(request.max_tokens, _JUDGE_REPLY)
                yield judge, Usage(estimate_tokens(request.text), output_tokens=size)


def _dollars(
    prices: Prices | None,
    usages: _Usages,
    most: Sequence[int],
    judges: Sequence[tuple[str, Usage]],
    own: Mapping[str, Any],
) -> Dollars:
    of_judges: dict[str, Prices | None] = {}
    for judge in dict(judges):
        of_judges[judge] = find_prices(judge, own) if judge in DEPLOYMENTS else None

    def judge_price(judge: str, usage: Usage) -> float | None:
        judge_prices = of_judges[judge]
        if judge_prices:
            return judge_prices.dollars(usage)
        return None

    judging = _sum(judge_price(judge, usage) for judge, usage in judges)
    if prices is None:
        return Dollars(
            typical=None,
            cached=None,
            batch=None,
            batch_cached=None,
            most=None,
            judges=judging,
            source=None,
        )

    def batch_price(usage: Usage) -> float | None:
        if usage.cache_write_tokens > 0:
            return prices.warming_dollars(usage, usages.write_price)
        return prices.dollars(usage, batch=True)

    longest = (
        replace(usage, output_tokens=size)
        for usage, size in zip(usages.plain, most, strict=True)
    )
    return Dollars(
        typical=_sum(map(prices.dollars, usages.plain)),
        cached=_sum(map(prices.dollars, usages.direct)),
        batch=_sum(prices.dollars(usage, batch=True) for usage in usages.plain),
        batch_cached=_sum(map(batch_price, usages.batched)),
        most=_sum(map(prices.dollars, longest)),
        judges=judging,
        source=prices.source,
    )


def _sum(amounts: Iterable[float | None]) -> float | None:
    """Return the sum. Returns None if an amount is not known."""
    every = list(amounts)
    known = []
    for amount in every:
        if amount is not None:
            known.append(amount)
    return sum(known) if len(known) == len(every) else None


def _disk_bytes(spec: RunSpec, requests: Sequence[StoredRequest], folder: Path) -> int:
    """Return the size of the files of a run without answers. They are written to a temporary folder."""
    if spec.adapter_spec.method == ADAPTER_METHOD:
        keys = prefixes.prefix_keys(request.text() for request in requests)
        store_prompts(folder, requests, prefixes.order_by_prefix(keys))
    states = (request.to_file_state(request.state) for request in requests)
    write_states(folder / STATES, spec.adapter_spec, spec.annotators, states)
    if spec.adapter_spec.method == ADAPTER_METHOD:
        # The records have the same content, compressed.
        with (
            (folder / STATES).open("rb") as file,
            (folder / RECORDS).open("wb") as records,
        ):
            zstandard.ZstdCompressor().copy_stream(file, records)
    tasks = set()
    for request in requests:
        tasks.add(request.state.instance.sub_split)
    results = RESULT_BYTES * len(requests) + _TASK_BYTES * len(tasks) + _RUN_BYTES
    return sum(path.stat().st_size for path in folder.iterdir()) + results
