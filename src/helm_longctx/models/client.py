"""HELM clients of the baseline models. They keep no cache: answering again is cheaper than storing a long prompt."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence

from helm.clients.client import Client
from helm.common.request import GeneratedOutput, Request, RequestResult

from helm_longctx.models import lexical
from helm_longctx.models.forms import recognise, recognise_conversation
from helm_longctx.protocol.prompt import Message


class BaselineClient(Client):
    """Answers a request from its prompt's text, or from its messages."""

    @abstractmethod
    def answer(self, prompt: str) -> str:
        """The answer to a prompt, deterministic."""

    @abstractmethod
    def reply(self, messages: Sequence[Message]) -> str:
        """The answer to a conversation, deterministic."""

    def make_request(self, request: Request) -> RequestResult:
        """One completion, the same for every sample, cut at the first stop sequence."""
        begun, start = time.time(), time.perf_counter()
        text = self.reply(request.messages) if request.messages else self.answer(request.prompt)
        for stop in request.stop_sequences:
            text = text.split(stop, 1)[0]
        return RequestResult(
            success=True,
            embedding=[],
            completions=[GeneratedOutput(text=text, logprob=0, tokens=[])] * request.num_completions,
            cached=False,
            request_time=time.perf_counter() - start,
            request_datetime=int(begun),
        )


class LexicalClient(BaselineClient):
    """Finds the best place in the prompt for the question's words."""

    def answer(self, prompt: str) -> str:
        """What the words lead to."""
        return lexical.answer(prompt)

    def reply(self, messages: Sequence[Message]) -> str:
        """What the task's strategy finds; empty for an unknown conversation."""
        found = recognise_conversation(messages)
        return found.answer if found else ""


class NullClient(BaselineClient):
    """The same answer whatever the prompt says: what a metric gives away for free."""

    def answer(self, prompt: str) -> str:
        """The task's constant; empty for a prompt of no known form."""
        found = recognise(prompt)
        return found.baseline.constant if found else ""

    def reply(self, messages: Sequence[Message]) -> str:
        """The task's constant; empty for an unknown conversation."""
        found = recognise_conversation(messages)
        return found.baseline.constant if found else ""
