"""Stores whole prompts on disk during a run. HELM's objects have elided texts, so few whole prompts are in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType

from helm.benchmark import runner
from helm.benchmark.adaptation.adapters.adapter import Adapter
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.annotation.annotator import Annotator
from helm.benchmark.annotation_executor import AnnotationExecutor
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, Instance
from helm.common.request import Request

from helm_longctx.helm.adapter import TooLongError
from helm_longctx.protocol.sample import Sample
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runs.conversation import elide_texts, text_of, with_text
from helm_longctx.runs.elision import evidence_of


class Spool:
    """An unnamed temporary file that holds each text once. The system removes it when the process ends.

    Args:
        folder: the folder of the file, which selects the disk.
    """

    def __init__(self, folder: Path):
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed by __exit__
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._lock = Lock()

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, text: str) -> str:
        """Store a text and return its digest."""
        name = digest(text)
        with self._lock:
            if name not in self._places:
                size = self._file.write(text.encode("utf-8", "surrogatepass"))
                self._file.flush()
                self._places[name] = (self._end, size)
                self._end += size
        return name

    def get(self, name: str) -> str:
        """Return the text with a digest.

        Raises:
            KeyError: the text was never added.
        """
        # Entries are never removed, and `pread` does not move the file's position, so no lock is needed.
        start, size = self._places[name]
        return os.pread(self._file.fileno(), size, start).decode("utf-8", "surrogatepass")


def adapt(
    instances: Iterator[Instance],
    adapter: Adapter,
    max_instances: int | None,
    parallelism: int,
    spool: Spool,
    select: Callable[[Sequence[str]], Sequence[int]] | None = None,
) -> list[RequestState]:
    """Make a run's requests in HELM's order and with elided texts. `whole_request` restores them.

    Args:
        select: (digests of all inputs in the spool) → the numbers of the instances whose requests are made; None for
            all instances.

    Raises:
        TooLongError: prompts are too long, and the run entry has `truncation=error`.
    """
    # From here on only one batch of whole prompts is in memory at a time.
    stubs = [_move_out(instance, spool) for instance in instances]
    if max_instances is not None:
        # HELM's own function draws the same instances as in HELM's runner.
        stubs = runner.downsample_eval_instances(stubs, max_instances, adapter.adapter_spec.eval_splits or EVAL_SPLITS)
    if select:
        stubs = [stubs[number] for number in select([stub.input.text for stub in stubs])]
    states: list[RequestState] = []
    excess: list[tuple[str, int]] = []
    for batch in _split_into_batches(stubs, parallelism):
        whole = [_move_in(instance, spool) for instance in batch]
        try:
            states += elide_states(adapter.adapt(whole, parallelism), spool)
        except TooLongError as error:  # one error later names the prompts of all batches
            excess += error.excess
    if excess:
        raise TooLongError(excess)
    # The states are ordered by batch and then by trial, but HELM's order is by trial.
    return sorted(states, key=lambda state: state.train_trial_index)


def prompt_digest(state: RequestState) -> str:
    """Return the SHA-256 of a state's whole prompt."""
    pointer = Sample.from_json(state.instance.extra_data).full_prompt
    assert pointer is not None
    return str(pointer["sha256"])


def prompt_text(state: RequestState, spool: Spool) -> str:
    """Return a state's whole prompt or conversation as one text."""
    return spool.get(prompt_digest(state))


def whole_request(state: RequestState, spool: Spool) -> Request:
    """Return a state's request with its whole prompt or conversation."""
    return with_text(state.request, prompt_text(state, spool))


class WholePromptAnnotations(AnnotationExecutor):
    """HELM's annotation executor for states with elided prompts: annotators get whole prompts.

    Args:
        base: HELM's executor, whose settings are used.
        whole_request: returns a state's request with its whole prompt.
    """

    def __init__(self, base: AnnotationExecutor, whole_request: Callable[[RequestState], Request]):
        self.execution_spec, self.factory = base.execution_spec, base.factory
        self._whole_request = whole_request

    def process(self, annotators: list[Annotator], state: RequestState) -> RequestState:
        """Annotate one state."""
        annotated = super().process(annotators, self._with_whole_request(state))
        return replace(state, annotations=annotated.annotations)

    def process_all(self, annotators: list[Annotator], states: list[RequestState]) -> list[RequestState]:
        """Annotate all states at once, with all whole prompts in memory. HELM calls it for annotators that need it."""
        annotated = super().process_all(annotators, [self._with_whole_request(state) for state in states])
        return [replace(state, annotations=new.annotations) for state, new in zip(states, annotated, strict=True)]

    def _with_whole_request(self, state: RequestState) -> RequestState:
        return replace(state, request=self._whole_request(state))


_IN_SPOOL = [{"role": "in spool", "content": ""}]
"""Placeholder for a conversation in the spool. The input's text is then the digest of the conversation."""


def _move_out(instance: Instance, spool: Spool) -> Instance:
    """Put an instance's input into the spool and its digest in the input's place."""
    name = spool.add(text_of(instance.input))
    messages = _IN_SPOOL if instance.input.messages else None
    return replace(instance, input=replace(instance.input, text=name, messages=messages))


def _move_in(instance: Instance, spool: Spool) -> Instance:
    """Undo `_move_out`."""
    text = spool.get(instance.input.text)
    return replace(instance, input=with_text(replace(instance.input, text=""), text))


def elide_states(states: list[RequestState], spool: Spool) -> list[RequestState]:
    """Elide the texts of states. The trials of an instance still share one object, which HELM's metrics rely on."""
    instances = {id(state.instance): _elide_instance(state, spool) for state in states}
    return [
        replace(
            state,
            instance=instances[id(state.instance)],
            request=elide_texts(state.request, _evidence(state.instance)),
        )
        for state in states
    ]


def _elide_instance(state: RequestState, spool: Spool) -> Instance:
    """Put the whole prompt into the spool and a pointer to it into the sample."""
    instance, text = state.instance, text_of(state.request)
    sample = Sample.from_json(instance.extra_data)
    sample = sample.extend(full_prompt={"sha256": spool.add(text), "characters": len(text)})
    return replace(instance, input=elide_texts(instance.input, _evidence(instance)), extra_data=sample.to_json())


def _evidence(instance: Instance) -> list[str]:
    references = [reference.output.text for reference in instance.references]
    return evidence_of(references, Sample.from_json(instance.extra_data))


def _split_into_batches(instances: list[Instance], size: int) -> Iterator[list[Instance]]:
    iterator = iter(instances)
    while batch := list(islice(iterator, size)):
        yield batch
