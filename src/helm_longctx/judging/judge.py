"""A language model that is asked for verdicts, through HELM and its request cache."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.extras import require
from helm_longctx.helm.patches import apply_seed_patch
from helm_longctx.judging.calls import call, text_of
from helm_longctx.judging.settings import READINGS, setting

if TYPE_CHECKING:
    from helm.clients.auto_client import AutoClient
    from helm.clients.client import Client

Verdict = Mapping[str, Any]
"""What a reply says, by name."""


@dataclass(frozen=True)
class Question:
    """What a judge is asked, and how.

    Args:
        read: from the reply to the verdict; None if the reply has none.
        seed: for judges that take one (OpenAI's protocol); None sends none.
        readings: how many replies may have no verdict; None for the environment's setting.
    """

    prompt: str
    read: Callable[[str], Verdict | None]
    max_tokens: int
    temperature: float
    top_p: float
    seed: int | None
    readings: int | None = None


@dataclass(frozen=True)
class Reply:
    """What came of a question.

    Args:
        text: the last reply; None if it had no text.
        verdict: None if no reply could be read.
        error: why there is no verdict; without the prompt.
        paid_calls: replies that did not come from the cache.
    """

    text: str | None
    verdict: Verdict | None
    error: str | None
    paid_calls: int


@dataclass(frozen=True)
class SeededRequest(Request):
    """A request with OpenAI's `seed`, which HELM's own has no place for."""

    seed: int | None = None


class Judge:
    """A HELM deployment that is asked.

    Args:
        deployment: its name.
        model: the model behind it.
        client: HELM's, for that deployment.
    """

    def __init__(self, deployment: str, model: str, client: Client):
        self.name, self.model, self._client = deployment, model, client
        self._readings = int(setting(READINGS))
        self._asking: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def ask(self, question: Question, repeat: int = 0) -> Reply:
        """The first reply that can be read. Never raises.

        A reply that cannot be read stays in HELM's cache, so the next one is asked for under another number; a call
        that left nothing there is made again under its own. So no run asks what another was told.

        Args:
            repeat: asks the same question again, beside what HELM's cache holds of the other times.
        """
        try:
            with self._asking[question.prompt]:  # equal questions are answered by the cache, one after the other
                return self._asked(question, repeat)
        except Exception as error:  # whatever it is, other questions have answers
            return Reply(None, None, f"the reply cannot be used: {type(error).__name__}", 0)

    def _asked(self, question: Question, repeat: int) -> Reply:
        text, error, paid = None, None, 0
        for number in range(question.readings or self._readings):
            result = self._result(question, number, repeat)
            if isinstance(result, str):
                return Reply(text, None, result, paid)
            paid += result.success and not result.cached
            text, error = text_of(result)
            verdict = question.read(text) if text else None
            if verdict is not None:
                return Reply(text, verdict, None, paid)
        return Reply(text, None, error, paid)

    def _result(self, question: Question, number: int, repeat: int) -> RequestResult | str:
        """The answer to a call, which is made again while it fails; else what went wrong."""
        request = SeededRequest(
            model=self.model,
            model_deployment=self.name,
            prompt=question.prompt,
            temperature=question.temperature,
            top_p=question.top_p,
            max_tokens=question.max_tokens,
            # A judge that is asked again must be able to answer something else.
            seed=None if question.seed is None else question.seed + number + repeat,
            # HELM's cache knows a reply by what was sent, and two deployments can be sent the same.
            random=f"{self.name}#{repeat}.{number}",
        )
        return call(self._client, request)


def check_judges(judge: str) -> list[str]:
    """The deployments that `judge=a+b` names.

    Raises:
        InputError: one is unknown to HELM, or named twice, or the extra `judges` is not installed.
    """
    require("judges", f"judge={judge!r}")
    from helm.benchmark.model_deployment_registry import DEPLOYMENT_NAME_TO_MODEL_DEPLOYMENT as DEPLOYMENTS

    names = judge.split("+")
    for name in names:
        if name not in DEPLOYMENTS:
            raise InputError(
                f"judge={judge!r}: HELM has no deployment {name!r}; see `helm-longctx models` and HELM's"
                " model_deployments.yaml; run entries also know auto and none"
            )
    if len(set(names)) < len(names):
        raise InputError(f"judge={judge!r} names a judge twice")
    return names


def find_judges(judge: str, client: AutoClient) -> list[Judge]:
    """The judges that an argument names, `a+b` two.

    Args:
        client: HELM's, for any deployment.

    Raises:
        InputError: one is unknown to HELM, or named twice, or there is no key for it.
    """
    from helm.benchmark.model_deployment_registry import get_model_deployment

    from helm_longctx.judging.keys.client import judge_client

    apply_seed_patch()
    return [
        Judge(name, get_model_deployment(name).model_name or name, judge_client(name, client))
        for name in check_judges(judge)
    ]
