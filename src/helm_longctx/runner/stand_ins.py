"""Lets the runner make runs of HELM's own long-context scenarios.

HELM's scenario and adapter make the requests. The runner needs elided requests with a sample, so each request gets a
stand-in, which is sent. The run's files have HELM's own requests with the results, as HELM's runner writes them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from helm.benchmark import runner
from helm.benchmark.adaptation.adapters.adapter import Adapter
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.run_spec import RunSpec, get_run_spec_function
from helm.benchmark.scenarios.scenario import EVAL_SPLITS, Instance, Scenario, create_scenario, with_instance_ids

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of
from helm_longctx.protocol.entry import is_our_method
from helm_longctx.protocol.sample import Sample
from helm_longctx.redaction.abbreviation import abbreviate
from helm_longctx.redaction.text import redact
from helm_longctx.running.interruptions import DISK_FULL
from helm_longctx.running.spool import Spool, elide_states, prompt_digest, prompt_text
from helm_longctx.runs.prompts import instance_names, write_prompts

_log = logging.getLogger(__name__)

HELMS_ENTRIES = "helm.benchmark.run_specs.long_context_run_specs"
"""HELM's module with the run entries of its long-context scenarios."""


@dataclass(frozen=True, kw_only=True)
class StandIn(RequestState):
    """A state that is sent in place of one of HELM's, with the same prompt.

    Args:
        original: HELM's state, with the whole prompt and without a result.
    """

    original: RequestState


def is_long_context(spec: RunSpec) -> bool:
    """Whether the runner can make the requests of a run: it is ours, or of one of HELM's long-context scenarios."""
    return is_our_method(spec.adapter_spec.method) or _is_helms(spec)


def make_scenario(spec: RunSpec) -> Scenario:
    """Make the scenario of a run.

    Raises:
        InputError: an argument is wrong, or HELM's scenario fails.
    """
    with name_helms_errors(spec):
        return create_scenario(spec.scenario_spec)


def adapt_for_helm(
    instances: list[Instance],
    adapter: Adapter,
    max_instances: int | None,
    parallelism: int,
    spool: Spool,
    select: Callable[[Sequence[str]], Sequence[int]] | None = None,
) -> list[RequestState]:
    """Make the requests that HELM's runner makes, and return stand-ins for them, in the same order.

    Args:
        select: (digests of all prompts in the spool) → the numbers of the requests that are wanted; None for all.
    """
    if any(instance.id is None for instance in instances):
        instances = with_instance_ids(instances)
    if max_instances is not None:
        splits = adapter.adapter_spec.eval_splits or EVAL_SPLITS
        instances = runner.downsample_eval_instances(instances, max_instances, splits)
    with _without_prompts_in_log():
        originals = adapter.adapt(instances, parallelism)
    states = [_stand_in(state, spool) for state in originals]
    return [states[number] for number in select([prompt_digest(state) for state in states])] if select else states


def restore(states: Sequence[RequestState]) -> list[RequestState]:
    """Return the states as the run's files have them: HELM's own in place of stand-ins, with the results."""
    return [replace(state.original, result=state.result) if isinstance(state, StandIn) else state for state in states]


def check_answers(states: Sequence[RequestState], kept: str) -> None:
    """Check that HELM's metrics can score a run, because they would score a failed request as an empty answer.

    Args:
        states: the states with their results.
        kept: which answers are kept, for the error.

    Raises:
        InputError: requests of HELM's adapter failed. Refused requests count as empty answers, as in HELM's runner.
    """
    results = [state.result for state in states if isinstance(state, StandIn) and state.result]
    if failed := sum(failure_of(result) not in (None, Failure.REFUSED) for result in results):
        raise InputError(f"{failed} of {len(states)} requests failed, and HELM's metrics need all answers; {kept}")


@contextmanager
def name_helms_errors(spec: RunSpec) -> Iterator[None]:
    """Convert an error of HELM's code for a run to one line. With log level DEBUG its traceback is logged.

    Raises:
        InputError: HELM's scenario or adapter failed in the block. Other errors are raised unchanged.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # HELM's scenarios and adapters raise any type
        is_full = isinstance(error, OSError) and error.errno in DISK_FULL
        if is_full or is_our_method(spec.adapter_spec.method):
            raise
        _log.debug("error in HELM's code", exc_info=True)
        reason = f"{type(error).__name__}: {abbreviate(redact(str(error)))}"
        raise InputError(f"{spec.scenario_spec.class_name} cannot make the requests: {reason}") from error


def store_prompts(folder: Path, states: Sequence[RequestState], order: Sequence[int], spool: Spool) -> None:
    """Write the whole prompts of elided states. The file of restored states has those of stand-ins.

    Args:
        order: the numbers of the states in the order in which their prompts are written.
    """
    if any(isinstance(state, StandIn) for state in states):
        return
    names = instance_names((state.instance.id, state.instance.sub_split, prompt_digest(state)) for state in states)
    write_prompts(folder, ((names[number], prompt_text(states[number], spool)) for number in order))


def _is_helms(spec: RunSpec) -> bool:
    # Annotators would get the stand-ins, and perturbations need HELM's own runner. None of these entries has any.
    if spec.annotators or spec.data_augmenter_spec.perturbation_specs:
        return False
    make = get_run_spec_function(spec.name.partition(":")[0])
    return getattr(make, "__module__", None) == HELMS_ENTRIES


@contextmanager
def _without_prompts_in_log() -> Iterator[None]:
    """Log only HELM's warnings in the block, because its adapters log the prompt of an instance line by line."""
    log = logging.getLogger("helm")
    level = log.level
    log.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        log.setLevel(level)


def _stand_in(state: RequestState, spool: Spool) -> StandIn:
    tokens = state.request.max_tokens
    sample = Sample(source="HELM", max_tokens=tokens, run_max_tokens=tokens)
    sampled = replace(state, instance=replace(state.instance, extra_data=sample.to_json()))
    (elided,) = elide_states([sampled], spool)
    return StandIn(**vars(elided), original=state)
