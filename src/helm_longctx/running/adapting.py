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

from helm_longctx.helm.adapter import TooLongError
from helm_longctx.runs.elision import elided, evidence_of
from helm_longctx.runs.spool import Spool


def adapted(
    instances: Iterator[Instance], adapter: Adapter, max_instances: int | None, parallelism: int, spool: Spool
) -> list[RequestState]:
    """The requests of a run, in HELM's order; `prompt_of` gives back what their prompts were.

    Raises:
        TooLongError: prompts do not fit, and `truncation=error`.
    """
    kept = [_with_text(instance, spool.add(instance.input.text)) for instance in instances]
    if max_instances is not None:
        kept = runner.downsample_eval_instances(kept, max_instances, adapter.adapter_spec.eval_splits or EVAL_SPLITS)
    states: list[RequestState] = []
    excess: list[tuple[str, int]] = []
    for batch in _batches(kept, parallelism):
        whole = [_with_text(instance, spool.read(instance.input.text)) for instance in batch]
        try:
            states += _lean(adapter.adapt(whole, parallelism), spool)
        except TooLongError as error:  # it is said of all batches at once
            excess += error.excess
    if excess:
        raise TooLongError(excess)
    # HELM has one trial after the other, and so has a batch.
    trials = list(dict.fromkeys(state.request.random for state in states))
    return sorted(states, key=lambda state: trials.index(state.request.random))


def prompt_of(state: RequestState, spool: Spool) -> str:
    """The whole prompt of a state."""
    return spool.read(state.instance.extra_data["full_prompt"]["sha256"])


def _with_text(instance: Instance, text: str) -> Instance:
    return replace(instance, input=replace(instance.input, text=text))


def _lean(states: list[RequestState], spool: Spool) -> list[RequestState]:
    """The states with elided texts. Trials of an instance go on sharing it, as HELM's metrics need."""
    instances = {id(state.instance): _lean_instance(state, spool) for state in states}
    return [
        replace(
            state,
            instance=instances[id(state.instance)],
            request=replace(state.request, prompt=elided(state.request.prompt, _evidence(state.instance))),
        )
        for state in states
    ]


def _lean_instance(state: RequestState, spool: Spool) -> Instance:
    instance, prompt = state.instance, state.request.prompt
    pointer: dict[str, Any] = {"sha256": spool.add(prompt), "characters": len(prompt)}
    lean = _with_text(instance, elided(instance.input.text, _evidence(instance)))
    return replace(lean, extra_data={**(instance.extra_data or {}), "full_prompt": pointer})


def _evidence(instance: Instance) -> list[str]:
    answers = [reference.output.text for reference in instance.references]
    return evidence_of(answers, (instance.extra_data or {}).get("record", {}))


def _batches(instances: list[Instance], size: int) -> Iterator[list[Instance]]:
    left = iter(instances)
    while batch := list(islice(left, size)):
        yield batch
