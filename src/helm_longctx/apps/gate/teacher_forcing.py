"""Reads the questions of a comparison of distributions, and asks both arms about them."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from helm.benchmark.run_spec import RunSpec
from helm.common.local_context import LocalContext

from helm_longctx.apps.gate.distributions import (
    ANSWER_TOKENS,
    NOISY,
    READS,
    REQUESTS,
    REQUESTS_OF_ARMS,
    TWICE,
    Asked,
    Point,
    compare,
    write_answer,
)
from helm_longctx.errors import InputError
from helm_longctx.failures import FailureError
from helm_longctx.helm.truncation import with_deployments_tokenizer
from helm_longctx.models.apis.prices import find_prices
from helm_longctx.models.apis.usage import Usage, usage_of
from helm_longctx.models.scoring import ScoringRequest, check_scoring
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runner.sending import find_client
from helm_longctx.runner.spool import Spool, make_scenario
from helm_longctx.runs.journal import SealedLines
from helm_longctx.tasks.entry import arguments_of_method, method_for
from helm_longctx.tasks.task import LIKELIHOOD


def read_questions(runner: LongContextRunner, spec: RunSpec, most: int) -> Iterator[Asked]:
    """Yield questions of a run with their first gold answers, evenly spaced, as completions.

    Args:
        spec: the run of the base.
        most: number of questions.

    Raises:
        InputError: the data is missing, or a question has no gold answer.
    """
    arguments = arguments_of_method(spec.adapter_spec.method)
    method = method_for(arguments.get("style", "auto"), arguments.get("truncation", "auto"), LIKELIHOOD)
    spec = replace(
        with_deployments_tokenizer(spec), adapter_spec=replace(spec.adapter_spec, method=method, num_trials=1)
    )
    length = spec.scenario_spec.args.get("length")
    with tempfile.TemporaryDirectory() as folder, Spool(Path(folder)) as spool:
        requests = runner.adapt(spec, make_scenario(spec), spool)
        count = min(most, len(requests))
        for each in (requests[place * len(requests) // count] for place in range(count)):
            request = each.whole()
            assert isinstance(request, ScoringRequest)
            if request.messages is not None:
                raise InputError("gate: --logprobs compares completions; leave out style=chat")
            group = str(each.sample.group or each.state.instance.id)
            yield Asked(length, request.prompt, request.answers[0], f"{each.state.instance.sub_split} {group}")


def check_arms(runner: LongContextRunner, deployments: tuple[str, str]) -> list[Any]:
    """Return the clients of both arms.

    Raises:
        InputError: one cannot be made, or gives no log-probabilities of texts.
    """
    context = runner.executor.context
    if not isinstance(context, LocalContext):
        raise InputError("gate: --logprobs needs clients in this process, not a HELM server")
    clients = [find_client(context, name) for name in deployments]
    for client, name in zip(clients, deployments, strict=True):
        check_scoring(client, name, "gate: --logprobs")
    return clients


def force_answers(
    clients: Sequence[Any],
    deployments: tuple[str, str],
    asked: Sequence[Asked],
    path: Path,
    margin: float,
    most_dollars: float | None = None,
) -> tuple[list[Point], int]:
    """Return what was compared of all questions, and the number of requests.

    Questions that an earlier command has compared are not asked again. The base reads the first questions twice, and
    all others, too, if it differs from itself, or if the margin is 0.

    Args:
        path: the file that keeps what was compared.
        margin: the divergence that is accepted, in nats.
        most_dollars: the limit on the cost of all requests, which is checked before each question.

    Raises:
        InputError: a request failed, or the next question can cost more than is left. What was compared is kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    found: list[Point] = []
    spent, requests = 0.0, 0
    with SealedLines(path, "remove this line, and its question is asked again") as lines:
        kept = {line[0]: line[1] for line in lines.read()}
        for number, each in enumerate(asked):
            is_noisy = any((point.noise or 0) > NOISY * margin for point in found)
            reads_twice = not margin or number < TWICE or is_noisy
            requests += REQUESTS + READS * reads_twice
            name = digest("\0".join((*deployments, each.prompt, each.gold)))
            # A margin of 0 needs the noise of each question, which a command with another one leaves out.
            if name not in kept or (not margin and any(Point(*point).noise is None for point in kept[name])):
                # No tokenizer makes more tokens than a text has bytes.
                most_tokens = len(f"{each.prompt} {each.gold}".encode()) + ANSWER_TOKENS
                dollars = cost_of_question(most_tokens, deployments, reads_twice)
                if most_dollars is not None and spent + dollars > most_dollars:
                    raise InputError(
                        f"gate: the next question can cost ${dollars:.4f}, and --max-cost={most_dollars:g} allows"
                        f" ${most_dollars - spent:.4f} more; what was compared is kept in {path}"
                    )
                try:
                    answer = write_answer(each, clients[0], deployments[0])
                    points = compare(each, answer.completions[0].text, clients, deployments, reads_twice)
                    kept[name] = [list(point) for point in points]
                except FailureError as error:
                    raise InputError(f"gate: {error}; what was compared is kept in {path}") from error
                usage = usage_of(answer)
                read = usage.input_tokens + ANSWER_TOKENS if usage else 0
                spent += cost_of_question(read, deployments, reads_twice) if read else dollars
                lines.append([name, kept[name]])
            found += [Point(*point) for point in kept[name]]
    return found, requests


def cost_of_question(tokens: int, deployments: tuple[str, str], reads_twice: bool = False) -> float:
    """Return the dollars of all requests about a question; 0 for a deployment whose prices are not known.

    Args:
        tokens: the tokens of each text.
        reads_twice: whether the base reads its texts again.
    """
    prices = [find_prices(name) for name in deployments]
    usage = Usage(input_tokens=tokens, output_tokens=ANSWER_TOKENS)
    base, candidate = REQUESTS_OF_ARMS
    pairs = zip(prices, (base + READS * reads_twice, candidate), strict=True)
    return sum(requests * (each.dollars(usage) or 0.0) for each, requests in pairs if each)
