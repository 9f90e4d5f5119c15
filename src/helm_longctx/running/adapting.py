"""From a scenario to requests with one batch of whole prompts in memory: they stand in the spool, and in HELM's objects
their ends alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from helm.benchmark import runner
from helm.benchmark.adaptation.adapters.adapter import Adapter
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, Instance
from helm.common.request import Request

from helm_longctx.helm.adapter import TooLongError
from helm_longctx.runs.conversation import elide_asked, text_of, with_text
from helm_longctx.runs.elision import evidence_of
from helm_longctx.runs.spool import Spool


def adapt(
    instances: Iterator[Instance], adapter: Adapter, max_instances: int | None, parallelism: int, spool: Spool
) -> list[RequestState]:
    """The requests of a run, in HELM's order; `whole_request` gives back what they ask.

    Raises:
        TooLongError: prompts do not fit, and `truncation=error`.
    """
    kept = [_move_out(instance, spool) for instance in instances]
    if max_instances is not None:
        kept = runner.downsample_eval_instances(kept, max_instances, adapter.adapter_spec.eval_splits or EVAL_SPLITS)
    states: list[RequestState] = []
    excess: list[tuple[str, int]] = []
    for batch in _batches(kept, parallelism):
        whole = [_move_in(instance, spool) for instance in batch]
        try:
            states += _lean(adapter.adapt(whole, parallelism), spool)
        except TooLongError as error:  # it is said of all batches at once
            excess += error.excess
    if excess:
        raise TooLongError(excess)
    # HELM has one trial after the other, and so has a batch.
    trials = list(dict.fromkeys(state.request.random for state in states))
    return sorted(states, key=lambda state: trials.index(state.request.random))


def prompt_text(state: RequestState, spool: Spool) -> str:
    """What a state asks, as one text."""
    return spool.read(state.instance.extra_data["full_prompt"]["sha256"])


def whole_request(state: RequestState, spool: Spool) -> Request:
    """The request of a state with all that it asks."""
    return with_text(state.request, prompt_text(state, spool))


_IN_SPOOL = [{"role": "in spool", "content": ""}]
"""Stands for the messages of a conversation in the spool; the input's text is their digest."""


def _move_out(instance: Instance, spool: Spool) -> Instance:
    """The instance, its input in the spool."""
    name = spool.add(text_of(instance.input))
    messages = _IN_SPOOL if instance.input.messages else None
    return replace(instance, input=replace(instance.input, text=name, messages=messages))


def _move_in(instance: Instance, spool: Spool) -> Instance:
    """The instance with its input from the spool."""
    text = spool.read(instance.input.text)
    return replace(instance, input=with_text(replace(instance.input, text=""), text))


def _lean(states: list[RequestState], spool: Spool) -> list[RequestState]:
    """The states with elided texts. Trials of an instance go on sharing it, as HELM's metrics need."""
    instances = {id(state.instance): _lean_instance(state, spool) for state in states}
    return [
        replace(
            state,
            instance=instances[id(state.instance)],
            request=elide_asked(state.request, _evidence(state.instance)),
        )
        for state in states
    ]


def _lean_instance(state: RequestState, spool: Spool) -> Instance:
    instance, text = state.instance, text_of(state.request)
    pointer: dict[str, Any] = {"sha256": spool.add(text), "characters": len(text)}
    extra = {**(instance.extra_data or {}), "full_prompt": pointer}
    return replace(instance, input=elide_asked(instance.input, _evidence(instance)), extra_data=extra)


def _evidence(instance: Instance) -> list[str]:
    answers = [reference.output.text for reference in instance.references]
    return evidence_of(answers, (instance.extra_data or {}).get("record", {}))


def _batches(instances: list[Instance], size: int) -> Iterator[list[Instance]]:
    left = iter(instances)
    while batch := list(islice(left, size)):
        yield batch
