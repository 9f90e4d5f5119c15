"""Reads the questions of a comparison of distributions, and asks both arms about them."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from helm.benchmark.run_spec import RunSpec
from helm.common.local_context import LocalContext
from helm.common.request import Request, RequestResult

from helm_longctx.apps.gate.distributions import (
    ANSWER_TOKENS,
    ANSWERS,
    NOISY,
    TEXTS,
    TWICE,
    Asked,
    Point,
    Send,
    Way,
    compare,
)
from helm_longctx.errors import InputError
from helm_longctx.failures import FailureError, check_result
from helm_longctx.helm.style import deployment_style
from helm_longctx.helm.truncation import with_deployments_tokenizer
from helm_longctx.models.apis.prices import find_prices
from helm_longctx.models.apis.sending import Sender, ask_again
from helm_longctx.models.apis.usage import Usage
from helm_longctx.models.scoring import AnswerRequest, ScoringRequest, distributions_of
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runner.sending import make_sender
from helm_longctx.runner.spool import Spool, make_scenario
from helm_longctx.runs.journal import SealedLines
from helm_longctx.tasks.entry import arguments_of_method, method_for
from helm_longctx.tasks.task import LIKELIHOOD


def find_way(deployments: tuple[str, str]) -> Way:
    """Return how two deployments are compared, without a request: chats only by their answers.

    Raises:
        InputError: only one of them sends chats.
    """
    styles = [deployment_style(name) for name in deployments]
    if "chat" not in styles:
        return TEXTS
    if "completion" in styles:
        names = [deployments[styles.index(style)] for style in ("chat", "completion")]
        raise InputError(
            f"gate: --logprobs: {names[0]} gets chats and {names[1]} completions; give both the same type"
        )
    return ANSWERS


def read_questions(
    runner: LongContextRunner, spec: RunSpec, most: int, way: Way
) -> Iterator[Asked]:
    """Yield questions of a run with their first gold answers, evenly spaced.

    Args:
        spec: the run of the base.
        most: number of questions.
        way: with `TEXTS`, the questions are completions; otherwise chats.

    Raises:
        InputError: the data is missing, or a question has no gold answer.
    """
    arguments = arguments_of_method(spec.adapter_spec.method)
    style = arguments.get("style", "auto" if way is TEXTS else "chat")
    method = method_for(style, arguments.get("truncation", "auto"), LIKELIHOOD)
    spec = replace(
        with_deployments_tokenizer(spec),
        adapter_spec=replace(spec.adapter_spec, method=method, num_trials=1),
    )
    length = spec.scenario_spec.args.get("length")
    with tempfile.TemporaryDirectory() as folder, Spool(Path(folder)) as spool:
        requests = runner.adapt(spec, make_scenario(spec), spool)
        count = min(most, len(requests))
        for each in (requests[place * len(requests) // count] for place in range(count)):
            request = each.whole()
            assert isinstance(request, ScoringRequest)
            if request.messages is not None and way is TEXTS:
                raise InputError(
                    "gate: --logprobs compares completions of these deployments; leave out style=chat"
                )
            # Without a list of messages, a deployment that takes both forms would get a completion.
            messages = None if way is TEXTS else request.messages or []
            group = f"{each.state.instance.sub_split} {each.sample.group or each.state.instance.id}"
            yield Asked(length, request.prompt, request.answers[0], group, messages)


def make_arms(
    runner: LongContextRunner, deployments: tuple[str, str], way: Way
) -> tuple[list[Send], Way]:
    """Return what sends requests to both arms, and how they are compared: by texts, if both can read them.

    Raises:
        InputError: one cannot be made, or gives no log-probabilities.
    """
    context = runner.executor.context
    if not isinstance(context, LocalContext):
        raise InputError("gate: --logprobs needs clients in this process, not a HELM server")
    senders = [make_sender(context, name) for name in deployments]
    clients: list[Any] = [each.client for each in senders]
    for client, name in zip(clients, deployments, strict=True):
        if not getattr(client, "gives_distributions", False):
            raise InputError(
                f"gate: --logprobs: {name} ({type(client).__name__}) gives no log-probabilities; use a local model, or"
                " a server with OpenAI's protocol"
            )
    pairs = list(zip(clients, deployments, strict=True))
    reasons = [(name, client.score_support()) for client, name in pairs if way is TEXTS]
    refusals = [
        f", and {name} gives none of given texts: {reason}" for name, reason in reasons if reason
    ]
    if refusals or way is ANSWERS:
        messages: list[Any] | None = None if way is TEXTS else []
        way = ANSWERS
        for client, name in pairs:
            try:
                probe = AnswerRequest(
                    name, name, prompt=PROBE, messages=messages, max_tokens=4, temperature=0
                )
                distributions_of(check_result(ask_again(client.make_request, probe)))
            except FailureError as error:
                what = f"{name} gives no log-probabilities of answers ({error})"
                raise InputError(f"gate: --logprobs: {what}{next(iter(refusals), '')}") from error
    return [partial(_send, sender) for sender in senders], way


PROBE = "One, two, three, four,"


def _send(sender: Sender, request: Request) -> RequestResult:
    return check_result(sender(request).result)


def force_answers(
    arms: Sequence[Send],
    deployments: tuple[str, str],
    asked: Sequence[Asked],
    path: Path,
    margin: float,
    way: Way,
    most_dollars: float | None = None,
) -> tuple[list[Point], int]:
    """Return what was compared of all questions, and the number of requests.

    Questions that an earlier command has compared are not asked again. The base reads the first questions twice, and
    all others, too, if it differs from itself, or if the margin is 0.

    Args:
        arms, way: see `make_arms`.
        path: the file that keeps what was compared.
        margin: the divergence that is accepted, in nats.
        most_dollars: the limit on the cost of all requests, which is checked before each question.

    Raises:
        InputError: a request failed, or the next question can cost more than is left. What was compared is kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    found: list[Point] = []
    spent = 0.0
    requests = 0
    with SealedLines(path, "remove this line, and its question is asked again") as lines:
        kept = {line[0]: line[1] for line in lines.read()}
        for number, each in enumerate(asked):
            is_noisy = any((point.noise or 0) > NOISY * margin for point in found)
            reads_twice = not margin or number < TWICE or is_noisy
            requests += way.count(reads_twice)
            name = digest(
                "\0".join(
                    (*deployments, each.text, each.gold, *(("answers",) if way is ANSWERS else ()))
                )
            )
            # A margin of 0 needs the noise of each question, which a command with another one leaves out.
            if name not in kept or (
                not margin and any(Point(*point).noise is None for point in kept[name])
            ):
                # No tokenizer makes more tokens than a text has bytes.
                most_tokens = len(f"{each.text} {each.gold}".encode()) + ANSWER_TOKENS
                dollars = cost_of_question(most_tokens, deployments, way, reads_twice)
                if most_dollars is not None and spent + dollars > most_dollars:
                    raise InputError(
                        f"gate: the next question can cost ${dollars:.4f}, and --max-cost={most_dollars:g} allows"
                        f" ${most_dollars - spent:.4f} more; what was compared is kept in {path}"
                    )
                try:
                    points, usage = compare(each, arms, deployments, way, reads_twice)
                except FailureError as error:
                    raise InputError(
                        f"gate: {error}; what was compared is kept in {path}"
                    ) from error
                read = usage.input_tokens + ANSWER_TOKENS if usage else 0
                spent += cost_of_question(read, deployments, way, reads_twice) if read else dollars
                kept[name] = [list(point) for point in points]
                lines.append([name, kept[name]])
            found += [Point(*point) for point in kept[name]]
    return found, requests


def cost_of_question(
    tokens: int, deployments: tuple[str, str], way: Way, reads_twice: bool = False
) -> float:
    """Return the dollars of all requests about a question; 0 for a deployment whose prices are not known.

    Args:
        tokens: the tokens of each text.
        reads_twice: whether the base reads its texts again.
    """
    prices = [find_prices(name) for name in deployments]
    usage = Usage(input_tokens=tokens, output_tokens=ANSWER_TOKENS)
    pairs = zip(prices, (way.base + way.again * reads_twice, way.candidate), strict=True)
    return sum(requests * (each.dollars(usage) or 0.0) for each, requests in pairs if each)
