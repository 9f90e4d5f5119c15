"""Annotators see whole prompts, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.annotation.annotator import Annotator
from helm.benchmark.annotation_executor import AnnotationExecutor
from helm.common.request import Request


class WholePromptAnnotations(AnnotationExecutor):
    """HELM's executor of annotators on states whose prompts are elided.

    Args:
        theirs: whose settings it has.
        whole_request: the request of a state with all that it asks.
    """

    def __init__(self, theirs: AnnotationExecutor, whole_request: Callable[[RequestState], Request]):
        self.execution_spec, self.factory = theirs.execution_spec, theirs.factory
        self._whole_request = whole_request

    def process(self, annotators: list[Annotator], state: RequestState) -> RequestState:
        """The state with its annotations."""
        annotated = super().process(annotators, self._whole(state))
        return replace(state, annotations=annotated.annotations)

    def process_all(self, annotators: list[Annotator], states: list[RequestState]) -> list[RequestState]:
        """For annotators that want all states at once, and so all prompts."""
        annotated = super().process_all(annotators, [self._whole(state) for state in states])
        return [replace(state, annotations=new.annotations) for state, new in zip(states, annotated, strict=True)]

    def _whole(self, state: RequestState) -> RequestState:
        return replace(state, request=self._whole_request(state))
