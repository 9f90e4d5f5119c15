"""Reads the questions of a comparison of distributions, and asks both arms about them."""

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from helm_longctx.apps.gate.distributions import (
    ANSWER_TOKENS,
    ANSWERS,
    TEXTS,
    Asked,
    Compared,
    Point,
    Send,
    Way,
    Written,
    compare,
)
from helm_longctx.apps.gate.divergences import NOISY, count_twice
from helm_longctx.errors import InputError
from helm_longctx.failures import FailureError
from helm_longctx.helm.scenario import LongContextScenario
from helm_longctx.helm.style import deployment_style
from helm_longctx.helm.truncation import with_deployments_tokenizer
from helm_longctx.helm_api import LocalContext, Request, RequestResult, RunSpec
from helm_longctx.interruptions import describe_kept, stoppable
from helm_longctx.models.apis.calls import call_all
from helm_longctx.models.apis.prices import find_prices
from helm_longctx.models.apis.sending import Sender, ask_again
from helm_longctx.models.results import check_result
from helm_longctx.models.scoring import AnswerRequest, ScoringRequest, distributions_of
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runner.runner import LongContextRunner
from helm_longctx.runner.sending import make_sender
from helm_longctx.runner.spending import Limit
from helm_longctx.runner.spool import Spool, make_scenario
from helm_longctx.runs.journal import KeptValues
from helm_longctx.tasks.answer import Usage
from helm_longctx.tasks.request_settings import LIKELIHOOD, RequestSettings
from helm_longctx.tasks.stored_entry import replace_request


def find_way(deployments: tuple[str, str]) -> Way:
    """Return how two deployments are compared, without a request: chats only by their answers.

    Raises:
        InputError: only one of them sends chats.
    """
    styles = []
    for name in deployments:
        styles.append(deployment_style(name))
    if "chat" not in styles:
        return TEXTS
    if "completion" in styles:
        names = []
        for style in ("chat", "completion"):
            names.append(deployments[styles.index(style)])
        raise InputError(
            f"gate: --logprobs: {names[0]} gets chats and {names[1]} completions; give"
            " both the same type"
        )
    return ANSWERS


def read_questions(
    runner: LongContextRunner,
    spec: RunSpec,
    most: int,
    way: Way,
) -> Iterator[Asked]:
    """Yield questions of a run with their first gold answers, about evenly spaced.

    More questions begin with the same ones, so that a larger sample continues a smaller one.

    Args:
        spec: the run of the base.
        most: number of questions.
        way: with `TEXTS`, the questions are completions; otherwise chats.

    Raises:
        InputError: the data is missing, or a question has no gold answer.
    """
    spec = replace(
        with_deployments_tokenizer(spec),
        adapter_spec=replace(spec.adapter_spec, num_trials=1),
    )
    scenario = make_scenario(spec)
    assert isinstance(scenario, LongContextScenario)
    asked = scenario.entry.settings.request
    style = asked.style
    if style == "auto" and way is not TEXTS:
        style = "chat"
    # The model draws no tokens.
    request = RequestSettings(
        style=style,
        truncation=asked.truncation,
        metric=LIKELIHOOD,
    )
    scenario.entry = replace_request(scenario.entry, request)
    length = scenario.entry.settings.length
    with tempfile.TemporaryDirectory() as folder, Spool(Path(folder)) as spool:
        requests = runner.adapt(spec, scenario, spool)
        for number in spread_numbers(len(requests))[:most]:
            prepared = requests[number]
            request = prepared.whole()
            assert isinstance(request, ScoringRequest)
            if request.messages is not None and way is TEXTS:
                raise InputError(
                    "gate: --logprobs compares completions of these deployments; leave"
                    " out style=chat"
                )
            # Without a list of messages, a deployment that takes both forms would get a completion.
            if way is TEXTS:
                messages = None
            else:
                messages = request.messages or []
            group = f"{prepared.state.instance.sub_split} {prepared.sample.group or prepared.state.instance.id}"
            yield Asked(
                length=length,
                prompt=request.prompt,
                gold=request.answers[0],
                group=group,
                messages=messages,
            )


def spread_numbers(count: int) -> list[int]:
    """Return the numbers from 0 to `count` - 1 in an order whose beginnings are about evenly spaced.

    It is the sequence of van der Corput: the digits of a number in base 2, mirrored at the point.
    """
    digits = max(count - 1, 0).bit_length()
    numbers = []
    for number in range(2**digits):
        if digits:
            mirrored = int(f"{number:0{digits}b}"[::-1], 2)
        else:
            mirrored = 0
        if mirrored < count:
            numbers.append(mirrored)
    return numbers


def make_arms(
    runner: LongContextRunner,
    deployments: tuple[str, str],
    way: Way,
) -> tuple[list[Send], Way]:
    """Return what sends requests to both arms, and how they are compared: by texts, if both can read them.

    Raises:
        InputError: one cannot be made, or gives no log-probabilities.
    """
    context = runner.executor.context
    if not isinstance(context, LocalContext):
        raise InputError(
            "gate: --logprobs needs clients in this process, not a HELM server"
        )
    senders = []
    for name in deployments:
        senders.append(make_sender(context, name, runner.settings))
    clients: list[Any] = [sender.client for sender in senders]
    for client, name in zip(clients, deployments, strict=True):
        if not getattr(client, "gives_distributions", False):
            raise InputError(
                f"gate: --logprobs: {name} ({type(client).__name__}) gives no"
                " log-probabilities; use a local model, or a server with OpenAI's"
                " protocol"
            )
    pairs = list(zip(clients, deployments, strict=True))
    refusals = []
    for client, name in pairs if way is TEXTS else ():
        reason = client.score_support()
        if reason:
            refusals.append(f", and {name} gives none of given texts: {reason}")
    if refusals or way is ANSWERS:
        messages: list[Any] | None = None if way is TEXTS else []
        way = ANSWERS
        for client, name in pairs:
            try:
                probe = AnswerRequest(
                    name,
                    name,
                    prompt=PROBE,
                    messages=messages,
                    max_tokens=4,
                    temperature=0,
                )
                distributions_of(check_result(ask_again(client, probe)))
            except FailureError as error:
                what = f"{name} gives no log-probabilities of answers ({error})"
                raise InputError(
                    f"gate: --logprobs: {what}{next(iter(refusals), '')}"
                ) from error
    return [partial(_send, sender) for sender in senders], way


PROBE = "One, two, three, four,"


def _send(sender: Sender, request: Request) -> RequestResult:
    return check_result(sender(request).result)


class TextComparison:
    """Asks both sides about questions, and keeps what was compared.

    Questions that an earlier command has compared are not asked again. Both read the first questions twice, and all
    others, too, if the base differs from itself, or if the margin is 0. The sides take turns in being asked first.

    Args:
        sides, way: see `make_arms`.
        path: the file that keeps what was compared.
        margin: the divergence that is accepted, in nats.
        most_dollars: the limit on the cost of all requests. It is checked before each question.

    Attributes:
        points, written: what was compared.
        requests: the number of requests that this takes.
    """

    def __init__(
        self,
        sides: Sequence[Send],
        deployments: tuple[str, str],
        path: Path,
        margin: float,
        way: Way,
        most_dollars: float | None = None,
    ):
        self._sides = sides
        self._deployments = deployments
        self._path = path
        self._margin = margin
        self.way = way
        self._limit = Limit(most_dollars)
        self.points: list[Point] = []
        self.written: list[Written] = []
        self.requests = 0

    def ask(self, questions: Sequence[Asked], lengths: int) -> None:
        """Compare further questions.

        Args:
            lengths: the number of lengths of all questions.

        Raises:
            InputError: a request failed, or the next question can cost more than is left. What was compared is kept.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        twice: dict[int | None, set[str]] = defaultdict(set)
        for point in self.points:
            if point.noise is not None:
                twice[point.length].add(point.group)
        with (
            _open_comparisons(self._path) as kept,
            stoppable(lambda: describe_kept(self._path)),
        ):

            def ask(question: Asked) -> None:
                is_noisy = any(
                    (point.noise or 0) > NOISY * self._margin for point in self.points
                )
                is_first = len(twice[question.length]) < count_twice(lengths)
                is_twice = not self._margin or is_first or is_noisy
                twice[question.length].add(question.group)
                self.requests += self.way.count(is_twice)
                name = self._name(question)
                compared = _read_comparison(kept.get(name))
                if compared is None or (is_twice and not _is_twice(compared)):
                    compared = self._compare(question, is_twice)
                    content = {
                        "points": [list(point) for point in compared.points],
                        "written": [list(row) for row in compared.written],
                    }
                    kept.add(name, content)
                self.points += compared.points
                self.written += compared.written

            # One after the other, but not in this thread: after Ctrl-C the question in flight is waited for and kept.
            call_all(ask, questions, parallelism=1)

    def _name(self, question: Asked) -> str:
        way = ("answers",) if self.way is ANSWERS else ()
        return digest(
            "\0".join((*self._deployments, question.text, question.gold, *way))
        )

    def _compare(self, question: Asked, is_twice: bool) -> Compared:
        # No tokenizer makes more tokens than a text has bytes.
        most_tokens = len(f"{question.text} {question.gold}".encode()) + ANSWER_TOKENS
        dollars = cost_of_question(most_tokens, self._deployments, self.way, is_twice)
        limit = self._limit
        if not limit.has_room(dollars):
            raise InputError(
                f"gate: the next question can cost ${dollars:.4f}, and"
                f" --max-cost={limit.dollars:g} allows ${limit.dollars_left:.4f} more; what was"
                f" compared is kept in {self._path}"
            )
        is_base_first = int(self._name(question)[:8], 16) % 2 == 0
        try:
            compared = compare(
                question,
                self._sides,
                self._deployments,
                self.way,
                is_twice,
                is_base_first,
            )
        except FailureError as error:
            raise InputError(
                f"gate: {error}; what was compared is kept in {self._path}"
            ) from error
        if compared.usage:
            read = compared.usage.input_tokens + ANSWER_TOKENS
        else:
            read = 0
        if read:
            dollars = cost_of_question(read, self._deployments, self.way, is_twice)
        self._limit.spent += dollars
        return compared


def read_points(path: Path) -> list[Point]:
    """Return what an earlier command has compared, of all questions in a file."""
    if not path.exists():
        return []
    points: list[Point] = []
    with _open_comparisons(path) as kept:
        for content in kept.values():
            compared = _read_comparison(content)
            if compared:
                points += compared.points
    return points


def _open_comparisons(path: Path) -> KeptValues:
    return KeptValues(path, "remove this line, and its question is asked again")


def _read_comparison(content: Any) -> Compared | None:
    if not isinstance(content, dict):
        return None
    points = []
    for fields in content["points"]:
        points.append(Point._make(fields))
    written = []
    for fields in content["written"]:
        written.append(Written._make(fields))
    return Compared(points=points, written=written)


def _is_twice(compared: Compared) -> bool:
    if any(point.noise is None for point in compared.points):
        return False
    return all(row.noise is not None for row in compared.written)


def cost_of_question(
    tokens: int,
    deployments: tuple[str, str],
    way: Way,
    is_twice: bool = False,
) -> float:
    """Return the dollars of all requests about a question; 0 for a deployment whose prices are not known.

    Args:
        tokens: the tokens of each text.
        is_twice: whether both read their texts again.
    """
    usage = Usage(input_tokens=tokens, output_tokens=ANSWER_TOKENS)
    counts = (
        way.base + way.base_again * is_twice,
        way.candidate + way.candidate_again * is_twice,
    )
    dollars = 0.0
    for name, requests in zip(deployments, counts, strict=True):
        prices = find_prices(name)
        if prices:
            dollars += requests * (prices.dollars(usage) or 0.0)
    return dollars
