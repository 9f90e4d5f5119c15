"""Annotators see whole prompts, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.annotation.annotator import Annotator
from helm.benchmark.annotation_executor import AnnotationExecutor


class WholePromptAnnotations(AnnotationExecutor):
    """HELM's executor of annotators on states whose prompts are elided.

    Args:
        theirs: whose settings it has.
        prompt_of: the whole prompt of a state.
    """

    def __init__(self, theirs: AnnotationExecutor, prompt_of: Callable[[RequestState], str]):
        self.execution_spec, self.factory = theirs.execution_spec, theirs.factory
        self._prompt_of = prompt_of

    def process(self, annotators: list[Annotator], state: RequestState) -> RequestState:
        """The state with its annotations."""
        annotated = super().process(annotators, self._whole(state))
        return replace(state, annotations=annotated.annotations)

    def process_all(self, annotators: list[Annotator], states: list[RequestState]) -> list[RequestState]:
        """For annotators that want all states at once, and so all prompts."""
        annotated = super().process_all(annotators, [self._whole(state) for state in states])
        return [replace(state, annotations=new.annotations) for state, new in zip(states, annotated, strict=True)]

    def _whole(self, state: RequestState) -> RequestState:
        return replace(state, request=replace(state.request, prompt=self._prompt_of(state)))
