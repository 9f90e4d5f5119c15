"""HELM clients for the baseline models. They use no cache, because answering is cheaper than storing a long prompt."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from helm.clients.client import Client
from helm.common.request import GeneratedOutput, Request, RequestResult

from helm_longctx.models.baselines import lexical
from helm_longctx.models.baselines.forms import recognise, recognise_conversation
from helm_longctx.tasks.prompt import Message


class BaselineClient(Client):
    """Answers a request from the text of its prompt, or from its messages.

    Attributes:
        sends_messages: tells the adapter that conversations can be sent.
    """

    sends_messages: ClassVar[bool] = True

    @abstractmethod
    def answer(self, prompt: str) -> str:
        """Answer a prompt. The same prompt always gets the same answer."""

    @abstractmethod
    def reply(self, messages: Sequence[Message]) -> str:
        """Answer a conversation. The same messages always get the same answer."""

    def make_request(self, request: Request) -> RequestResult:
        """Answer a request. All completions are the same, cut at the first stop sequence."""
        started_at, start = time.time(), time.perf_counter()
        text = self.reply(request.messages) if request.messages else self.answer(request.prompt)
        for stop in request.stop_sequences:
            text = text.split(stop, 1)[0]
        return RequestResult(
            success=True,
            embedding=[],
            completions=[GeneratedOutput(text=text, logprob=0, tokens=[])] * request.num_completions,
            cached=False,
            request_time=time.perf_counter() - start,
            request_datetime=int(started_at),
        )


class LexicalClient(BaselineClient):
    """Answers with the text near the question's words in the prompt."""

    def answer(self, prompt: str) -> str:
        """Return the answer that word matching finds."""
        return lexical.answer(prompt)

    def reply(self, messages: Sequence[Message]) -> str:
        """Return the answer of the task's strategy, or a span of the earlier turns if the conversation is unknown."""
        recognition = recognise_conversation(messages)
        return recognition.answer if recognition else lexical.answer_last_turn(messages)


class NullClient(BaselineClient):
    """Gives one constant answer to all questions of a task. Its score is what the metric gives without knowledge."""

    def answer(self, prompt: str) -> str:
        """Return the task's constant answer, or an empty text if the prompt is unknown."""
        recognition = recognise(prompt)
        return recognition.baseline.constant if recognition else ""

    def reply(self, messages: Sequence[Message]) -> str:
        """Return the task's constant answer, or an empty text if the conversation is unknown."""
        recognition = recognise_conversation(messages)
        return recognition.baseline.constant if recognition else ""
