"""HELM clients for the baseline models. They use no cache, because answering is cheaper than storing a long prompt."""

import time
from abc import abstractmethod
from typing import ClassVar

from helm_longctx.helm_api import Client, Request, RequestResult
from helm_longctx.models.apis.protocol import cut_at_stop
from helm_longctx.models.baselines.lexical import (
    answer,
    answer_conversation,
    recognise,
    recognise_conversation,
)
from helm_longctx.models.results import make_text_result


class BaselineClient(Client):
    """Answers a request from the text of its prompt, or from its messages.

    Attributes:
        sends_messages: tells the adapter that conversations can be sent.
    """

    sends_messages: ClassVar[bool] = True

    @abstractmethod
    def answer(self, request: Request) -> str:
        """Answer a request. The same prompt, or the same messages, always get the same answer."""

    def make_request(self, request: Request) -> RequestResult:
        """Answer a request. All completions are the same, cut at the first stop sequence."""
        started_at = time.time()
        start = time.perf_counter()
        text = cut_at_stop(self.answer(request), request.stop_sequences)
        return make_text_result(
            text,
            started_at=started_at,
            seconds=time.perf_counter() - start,
            copies=request.num_completions,
        )


class LexicalClient(BaselineClient):
    """Answers with the text near the question's words in the prompt."""

    def answer(self, request: Request) -> str:
        """Return the answer that word matching finds, in earlier turns if the task of a conversation is unknown."""
        if request.messages:
            return answer_conversation(request.messages)
        return answer(request.prompt)


class NullClient(BaselineClient):
    """Gives one constant answer to all questions of a task. Its score is what the metric gives without knowledge."""

    def answer(self, request: Request) -> str:
        """Return the task's constant answer, or an empty text if the task is unknown."""
        if request.messages:
            recognition = recognise_conversation(request.messages)
        else:
            recognition = recognise(request.prompt)
        if recognition:
            return recognition.baseline.constant
        return ""
