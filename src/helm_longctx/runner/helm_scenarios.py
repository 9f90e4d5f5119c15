"""Lets the runner make runs of HELM's own long-context scenarios.

HELM's scenario and adapter make the requests, and the run's files have these requests with the results, as HELM's
runner writes them.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from helm.benchmark.adaptation.adapters.adapter import Adapter
from helm.benchmark.adaptation.request_state import RequestState
from helm.benchmark.run_spec import RunSpec, get_run_spec_function
from helm.benchmark.scenarios.scenario import Instance, Scenario, create_scenario, with_instance_ids

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure, failure_of
from helm_longctx.redaction.abbreviation import describe_error
from helm_longctx.runner.interruptions import DISK_FULL
from helm_longctx.runner.spool import Select, Spool, StoredRequest, draw_instances, point_to
from helm_longctx.runs.prompts import elide_texts, evidence_of, request_text
from helm_longctx.tasks.entry import is_our_method
from helm_longctx.tasks.sample import Sample

_log = logging.getLogger(__name__)

HELMS_ENTRIES = "helm.benchmark.run_specs.long_context_run_specs"
"""HELM's module with the run entries of its long-context scenarios."""


def is_long_context(spec: RunSpec) -> bool:
    """Whether the runner can make the requests of a run: it is ours, or of one of HELM's long-context scenarios."""
    if is_our_method(spec.adapter_spec.method):
        return True
    # Annotators would get the stand-ins, and perturbations need HELM's own runner. None of HELM's entries has any.
    if spec.annotators or spec.data_augmenter_spec.perturbation_specs:
        return False
    make = get_run_spec_function(spec.name.partition(":")[0])
    return getattr(make, "__module__", None) == HELMS_ENTRIES


def make_scenario(spec: RunSpec) -> Scenario:
    """Make the scenario of a run. Raises an `InputError` if an argument is wrong, or HELM's scenario fails."""
    with wrap_helm_errors(spec):
        return create_scenario(spec.scenario_spec)


def adapt_for_helm(
    instances: list[Instance],
    adapter: Adapter,
    max_instances: int | None,
    parallelism: int,
    spool: Spool,
    select: Select | None = None,
) -> list[StoredRequest]:
    """Make the requests that HELM's runner makes, in the same order."""
    if any(instance.id is None for instance in instances):
        instances = with_instance_ids(instances)
    instances = draw_instances(instances, adapter, max_instances)
    with _without_prompts_in_log():
        states = adapter.adapt(instances, parallelism)
    requests = []
    for state in states:
        tokens, references = state.request.max_tokens, state.instance.references
        place = point_to(request_text(state.request), spool)
        sample = Sample(source="HELM", max_tokens=tokens, run_max_tokens=tokens, full_prompt=place)
        evidence = evidence_of([reference.output.text for reference in references], sample)
        requests.append(StoredRequest(state, elide_texts(state.request, evidence), sample, spool))
    wanted = select(len(requests), (each.text() for each in requests)) if select else range(len(requests))
    return [requests[number] for number in wanted]


def check_answers(states: Sequence[RequestState], kept: str) -> None:
    """Check that HELM's metrics can score a run, because they would score a failed request as an empty answer.

    Raises:
        InputError: requests of HELM's adapter failed. Refused requests count as empty answers, as in HELM's runner.
    """
    results = [state.result for state in states if state.result]
    if failed := sum(failure_of(result) not in (None, Failure.REFUSED) for result in results):
        raise InputError(f"{failed} of {len(states)} requests failed, and HELM's metrics need all answers; {kept}")


@contextmanager
def wrap_helm_errors(spec: RunSpec) -> Iterator[None]:
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
        reason = f"{type(error).__name__}: {describe_error(error)}"
        raise InputError(f"{spec.scenario_spec.class_name} cannot make the requests: {reason}") from error


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
