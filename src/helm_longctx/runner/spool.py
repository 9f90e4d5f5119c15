"""Makes the requests of runs, with their prompts on disk. HELM's objects have no texts, so few prompts are in memory.

Runs can also be of HELM's own long-context scenarios. HELM's scenario and adapter make their requests, and their files
have these requests with the results, as HELM's runner writes them.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

from helm.benchmark import runner
from helm.benchmark.adaptation.adapters.adapter import Adapter
from helm.benchmark.annotation.annotator import Annotator
from helm.benchmark.annotation_executor import (
    AnnotationExecutor,
    AnnotationExecutorError,
)
from helm.benchmark.run_spec import get_run_spec_function
from helm.benchmark.scenarios.scenario import (
    EVAL_SPLITS,
    create_scenario,
    with_instance_ids,
)

from helm_longctx.errors import InputError
from helm_longctx.failures import Failure
from helm_longctx.helm.adapter import TooLongError
from helm_longctx.helm_api import (
    AdapterSpec,
    Instance,
    Request,
    RequestResult,
    RequestState,
    RunSpec,
    Scenario,
)
from helm_longctx.models.results import failure_of
from helm_longctx.redaction.abbreviation import describe_error, digest
from helm_longctx.runs.prompts import (
    elide_texts,
    evidence_of,
    instance_names,
    request_text,
    with_text,
    without_text,
    write_prompts,
)
from helm_longctx.tasks.entry import ADAPTER_METHOD
from helm_longctx.tasks.run_names import read_run_name
from helm_longctx.tasks.sample import Sample
from helm_longctx.writing import DISK_FULL

Select = Callable[[int, Iterable[str]], Sequence[int]]
"""(number of prompts, prompts) → the numbers of those that are wanted. Prompts are read once, one at a time."""

_PLACE = "full_prompt"
"""The field of a sample that names the text in the spool."""

_log = logging.getLogger(__name__)

_HELMS_ENTRIES = "helm.benchmark.run_specs.long_context_run_specs"
"""HELM's module with the run entries of its long-context scenarios."""


class Spool:
    """An unnamed file on a folder's disk that holds each text once. The system removes it when the process ends.

    Args:
        keeps_instances: whether the instances of a scenario, without their texts, are kept for further runs of it.
    """

    def __init__(self, folder: Path, keeps_instances: bool = False):
        # There is no buffer: what a full disk did not take must not move the texts that are added later.
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  # closed by __exit__
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._lock = Lock()
        self._keeps_instances = keeps_instances
        self._scenarios: dict[str, list[Instance]] = {}

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the texts up."""
        self._file.close()

    def add(self, text: str) -> str:
        """Store a text and return its digest."""
        name = digest(text)
        with self._lock:
            if name not in self._places:
                size = self._write(memoryview(text.encode("utf-8", "surrogatepass")))
                self._places[name] = (self._end, size)
                self._end += size
        return name

    def _write(self, data: memoryview) -> int:
        """Write data behind the texts, and return its size."""
        written = 0
        # A call of the system writes only a part if the disk becomes full. The next call fails.
        while written < len(data):
            written += os.pwrite(
                self._file.fileno(), data[written:], self._end + written
            )
        return written

    def get(self, name: str) -> str:
        """Return the text with a digest. Raises a `KeyError` if the text was never added."""
        # Entries are never removed, and `pread` does not move the file's position, so no lock is needed.
        start, size = self._places[name]
        return os.pread(self._file.fileno(), size, start).decode(
            "utf-8", "surrogatepass"
        )

    def load(self, scenario: str, instances: Iterable[Instance]) -> list[Instance]:
        """Return the instances of a scenario, whose prompts are in the spool.

        Args:
            scenario: identifies it; see `scenario_key`.
            instances: they are read only if the spool does not have this scenario.
        """
        stored = self._scenarios.get(scenario)
        if stored is None:
            stored = _store_instances(instances, self)
            if self._keeps_instances:
                self._scenarios[scenario] = stored
        return stored


@dataclass(frozen=True)
class StoredRequest:
    """A request whose prompt is in the spool.

    Args:
        state: HELM's state without a result. Its input and its prompt are empty if `shown` names them.
        request: the request without its prompt. Of a conversation it has the system message.
        sample: the sample of the instance, which names the whole prompt.
        spool: the spool that has the prompt.
        shown: the names of the elided input and the elided prompt, which the run's files have; None for a state that
            has its texts.
        first: the answer to the first of two requests, if an earlier run has it.
    """

    state: RequestState
    request: Request
    sample: Sample
    spool: Spool = field(repr=False)
    shown: tuple[str, str] | None = None
    first: RequestResult | None = None

    @property
    def digest(self) -> str:
        """The SHA-256 of the whole prompt or conversation."""
        return str(self._pointer["sha256"])

    @property
    def characters(self) -> int:
        """The length of the whole prompt or conversation."""
        return int(self._pointer["characters"])

    @property
    def _pointer(self) -> Mapping[str, Any]:
        assert self.sample.full_prompt is not None
        return self.sample.full_prompt

    def text(self) -> str:
        """Return the whole prompt or conversation as one text."""
        return self.spool.get(self.digest)

    def context_digest(self) -> str:
        """Return the SHA-256 of the prompt without what follows its context; of the whole prompt if it has none."""
        if self.sample.rest is None:
            return self.digest
        request = self.whole()
        if request.messages:
            text = request.messages[-1]["content"]
        else:
            text = request.prompt
        return digest(text[: len(text) - self.sample.rest])

    def whole(self) -> Request:
        """Return the request with its whole prompt or conversation."""
        return with_text(self.request, self.text())

    def to_file_state(self, state: RequestState) -> RequestState:
        """Return the state of this request, with or without a result, as the run's files have it."""
        if self.shown is None:
            return state
        text, prompt = map(self.spool.get, self.shown)
        instance = replace(state.instance, input=with_text(state.instance.input, text))
        return replace(
            state, instance=instance, request=with_text(state.request, prompt)
        )


def scenario_key(spec: RunSpec) -> str:
    """Return what runs have in common whose scenarios have the same instances."""
    return repr(spec.scenario_spec)


class RunSpools:
    """Gives runs their spools. Runs of one scenario that follow each other can share one.

    The scenario's data is then read or generated once, and there is one copy of each prompt. There is never more than
    one scenario on the disk.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._shares = False
        self._kept: tuple[str, Spool] | None = None

    @contextmanager
    def share_between(self, specs: Sequence[RunSpec]) -> Iterator[None]:
        """Let the runs in the block share spools, if several of them have one scenario. Blocks can be in each other."""
        if self._shares:
            yield
            return
        keys = {scenario_key(spec) for spec in specs}
        self._shares = len(keys) < len(specs)
        try:
            yield
        finally:
            self._shares = False
            self._give_up()

    @contextmanager
    def open(self, spec: RunSpec) -> Iterator[Spool]:
        """Yield the spool of a run."""
        key = scenario_key(spec)
        spool = self._take(key)
        if spool is None:
            spool = Spool(self._folder, keeps_instances=self._shares)
        try:
            yield spool
        finally:
            self._give_up()
            if self._shares:
                self._kept = key, spool
            else:
                spool.close()

    def _take(self, key: str) -> Spool | None:
        """Return the spool that is kept, if it has the scenario. Another one is given up."""
        if self._kept is None:
            return None
        kept_key, spool = self._kept
        if kept_key != key:
            self._give_up()
            return None
        self._kept = None
        return spool

    def _give_up(self) -> None:
        if self._kept is not None:
            self._kept[1].close()
        self._kept = None


def adapt(
    stored: list[Instance],
    adapter: Adapter,
    parallelism: int,
    spool: Spool,
    select: Select,
) -> list[StoredRequest]:
    """Make the requests of the selected instances in HELM's order, with their prompts in the spool.

    Args:
        stored: the instances, whose prompts are in the spool.

    Raises a `TooLongError` if prompts are too long, and the run entry has `truncation=error`.
    """
    stored = _draw_instances(stored, adapter.adapter_spec)
    prompts = (spool.get(_name(instance)) for instance in stored)
    stored = [stored[number] for number in select(len(stored), prompts)]
    requests: list[StoredRequest] = []
    excess: list[tuple[str, int]] = []
    # Only one batch of whole prompts is in memory at a time.
    for start in range(0, len(stored), parallelism):
        batch = stored[start : start + parallelism]
        whole = [_read_instance(instance, spool) for instance in batch]
        try:
            requests += _store(adapter.adapt(whole, parallelism), spool)
        except (
            TooLongError
        ) as error:  # one error later names the prompts of all batches
            excess += error.excess
    if excess:
        raise TooLongError(excess)
    # The requests are ordered by batch and then by trial, but HELM's order is by trial.
    return sorted(requests, key=lambda request: request.state.train_trial_index)


def _store_instances(instances: Iterable[Instance], spool: Spool) -> list[Instance]:
    """Put the prompts of instances into the spool, one at a time, and return the instances without them."""
    stored = []
    for instance in instances:
        extra = {
            **(instance.extra_data or {}),
            _PLACE: point_to(request_text(instance.input), spool),
        }
        stored.append(
            replace(instance, input=without_text(instance.input), extra_data=extra)
        )
    return stored


def _read_instance(instance: Instance, spool: Spool) -> Instance:
    return replace(
        instance, input=with_text(instance.input, spool.get(_name(instance)))
    )


def _draw_instances(instances: list[Instance], spec: AdapterSpec) -> list[Instance]:
    """Return the instances that HELM's runner draws: at most `max_eval_instances` for evaluation."""
    if spec.max_eval_instances is None:
        return instances
    splits = spec.eval_splits or EVAL_SPLITS
    drawn: list[Instance] = runner.downsample_eval_instances(
        instances, spec.max_eval_instances, splits
    )
    return drawn


def store_prompts(
    folder: Path,
    requests: Sequence[StoredRequest],
    order: Iterable[int],
) -> None:
    """Write the whole prompts to a run's folder."""
    about = (
        (request.state.instance.id, request.state.instance.sub_split, request.digest)
        for request in requests
    )
    names = instance_names(about)
    write_prompts(
        folder, ((names[number], requests[number].text()) for number in order)
    )


def whole_request(state: RequestState, spool: Spool) -> Request:
    """Return a state's request with its whole prompt or conversation, for annotators."""
    return with_text(state.request, spool.get(_name(state.instance)))


class WholePromptAnnotations(AnnotationExecutor):
    """HELM's annotation executor for states with elided prompts: annotators get whole prompts."""

    def __init__(
        self,
        base: AnnotationExecutor,
        whole_request: Callable[[RequestState], Request],
    ):
        self.execution_spec = base.execution_spec
        self.factory = base.factory
        self._whole_request = whole_request

    def process(self, annotators: list[Annotator], state: RequestState) -> RequestState:
        """Annotate a state with its whole prompt, and return it with the short one."""
        with _own_errors():
            annotated = super().process(annotators, self._with_whole_request(state))
        return replace(state, annotations=annotated.annotations)

    def process_all(
        self,
        annotators: list[Annotator],
        states: list[RequestState],
    ) -> list[RequestState]:
        """Annotate all states at once, with all whole prompts in memory. HELM calls it for annotators that need it."""
        whole_states = [self._with_whole_request(state) for state in states]
        with _own_errors():
            annotated = super().process_all(annotators, whole_states)
        judged = []
        for state, new in zip(states, annotated, strict=True):
            judged.append(replace(state, annotations=new.annotations))
        return judged

    def _with_whole_request(self, state: RequestState) -> RequestState:
        return replace(state, request=self._whole_request(state))


@contextmanager
def _own_errors() -> Iterator[None]:
    """Raise an `InputError` of an annotator as it is. HELM's own error has all prompts in its text."""
    try:
        yield
    except AnnotationExecutorError as error:
        if isinstance(error.__cause__, InputError):
            raise error.__cause__ from None
        raise


def _name(instance: Instance) -> str:
    return str((instance.extra_data or {})[_PLACE]["sha256"])


def point_to(text: str, spool: Spool) -> dict[str, Any]:
    """Put a whole prompt into the spool, and return the field `full_prompt` of its sample."""
    return {"sha256": spool.add(text), "characters": len(text)}


def _store(states: list[RequestState], spool: Spool) -> list[StoredRequest]:
    """Put prompts into the spool. HELM's metrics rely on one object for all trials of an instance."""
    instances: dict[int, Instance] = {}
    requests = []
    for state in states:
        instance = state.instance
        sample = Sample.from_json(instance.extra_data)
        evidence = evidence_of(
            [reference.output.text for reference in instance.references], sample
        )
        text = request_text(instance.input)
        prompt = request_text(state.request)
        # The sample names the input, which a chat is.
        if prompt != text:
            sample = sample.extend(full_prompt=point_to(prompt, spool))
        shown = [spool.add(request_text(elide_texts(state.request, evidence)))] * 2
        if text != prompt:
            shown[0] = spool.add(request_text(elide_texts(instance.input, evidence)))
        empty = replace(
            instance, input=without_text(instance.input), extra_data=sample.to_json()
        )
        request = without_text(state.request)
        state = replace(
            state, instance=instances.setdefault(id(instance), empty), request=request
        )
        requests.append(
            StoredRequest(
                state=state,
                request=request,
                sample=sample,
                spool=spool,
                shown=(shown[0], shown[1]),
            )
        )
    return requests


def is_long_context(spec: RunSpec) -> bool:
    """Whether the runner can make the requests of a run: it is ours, or of one of HELM's long-context scenarios."""
    if spec.adapter_spec.method == ADAPTER_METHOD:
        return True
    # Annotators would get the stand-ins, and perturbations need HELM's own runner. None of HELM's entries has any.
    if spec.annotators or spec.data_augmenter_spec.perturbation_specs:
        return False
    make = get_run_spec_function(read_run_name(spec.name).entry)
    return getattr(make, "__module__", None) == _HELMS_ENTRIES


def make_scenario(spec: RunSpec) -> Scenario:
    """Make the scenario of a run. Raises an `InputError` if an argument is wrong, or HELM's scenario fails."""
    with wrap_helm_errors(spec):
        return create_scenario(spec.scenario_spec)


def adapt_for_helm(
    instances: list[Instance],
    adapter: Adapter,
    parallelism: int,
    spool: Spool,
    select: Select,
) -> list[StoredRequest]:
    """Make the requests that HELM's runner makes, in the same order, and return the selected ones."""
    if any(instance.id is None for instance in instances):
        instances = with_instance_ids(instances)
    instances = _draw_instances(instances, adapter.adapter_spec)
    with _without_prompts_in_log():
        states = adapter.adapt(instances, parallelism)
    requests = []
    for state in states:
        tokens = state.request.max_tokens
        references = state.instance.references
        prompt = point_to(request_text(state.request), spool)
        sample = Sample(
            source="HELM",
            max_tokens=tokens,
            run_max_tokens=tokens,
            full_prompt=prompt,
        )
        evidence = evidence_of(
            [reference.output.text for reference in references], sample
        )
        requests.append(
            StoredRequest(
                state=state,
                request=elide_texts(state.request, evidence),
                sample=sample,
                spool=spool,
            )
        )
    texts = (request.text() for request in requests)
    return [requests[number] for number in select(len(requests), texts)]


def check_answers(states: Sequence[RequestState], kept: str) -> None:
    """Raise an `InputError` if requests failed. HELM's metrics would score them as empty answers, as refused ones."""
    results = []
    for state in states:
        if state.result:
            results.append(state.result)
    if failed := sum(
        failure_of(result) not in (None, Failure.REFUSED) for result in results
    ):
        raise InputError(
            f"{failed} of {len(states)} requests failed, and HELM's metrics need all"
            f" answers; {kept}"
        )


@contextmanager
def wrap_helm_errors(spec: RunSpec) -> Iterator[None]:
    """Raise an error of HELM's code for a run as an `InputError` of one line. The log level DEBUG has its traceback."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # HELM's scenarios and adapters raise any type
        is_full = isinstance(error, OSError) and error.errno in DISK_FULL
        if is_full or spec.adapter_spec.method == ADAPTER_METHOD:
            raise
        _log.debug("error in HELM's code", exc_info=True)
        reason = f"{type(error).__name__}: {describe_error(error)}"
        raise InputError(
            f"{spec.scenario_spec.class_name} cannot make the requests: {reason}"
        ) from error


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
