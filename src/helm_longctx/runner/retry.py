"""Asks again for answers that the token limit cut (`retry_cut=4x`), with a larger output budget.

The results of all other requests are those of the earlier run, which has the same run entry without `retry_cut`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dacite
from helm.benchmark.run_spec import RunSpec
from helm.common.request import Request, RequestResult

from helm_longctx.errors import InputError
from helm_longctx.failures import failure_of
from helm_longctx.helm.truncation import CHAT_BUFFER, deployment_window
from helm_longctx.models.apis.usage import output_truncated
from helm_longctx.runner.follow_up import split_answers
from helm_longctx.runner.spool import StoredRequest
from helm_longctx.runs.files import STATES, find_incomplete_files, find_sample, read_states, reading
from helm_longctx.runs.journal import request_name
from helm_longctx.tasks.entry import read_times
from helm_longctx.tasks.token_estimate import estimate_tokens

ARGUMENT = "retry_cut"
"""The argument of run entries."""

COUNTED = 1.02
"""Largest expected ratio of a prompt's real number of tokens to the number that is known here."""


def retry_factor(spec: RunSpec) -> int | None:
    """Return by which number the output budget of cut answers is multiplied; None for a run that asks none again."""
    return read_times(spec.name, ARGUMENT, spec.scenario_spec.args.get(ARGUMENT))


def earlier_name(name: str) -> str:
    """Return the name of the run whose cut answers a run asks for again."""
    entry, _, rest = name.partition(":")
    parts = [part for part in rest.split(",") if not part.startswith(f"{ARGUMENT}=")]
    return f"{entry}:{','.join(parts)}" if parts else entry


def is_outdated(run: Path, earlier: Path) -> bool:
    """Whether the earlier run was made again after a run that asks for its cut answers."""
    files = [folder / STATES for folder in (earlier, run)]
    return all(path.is_file() for path in files) and files[0].stat().st_mtime_ns > files[1].stat().st_mtime_ns


def without_answers(requests: Sequence[StoredRequest]) -> list[StoredRequest]:
    """Return the requests that still have to be sent, because no earlier run has a result for them."""
    return [each for each in requests if each.state.result is None]


def retry_cut(
    requests: Sequence[StoredRequest], spec: RunSpec, run: Path, earlier: Path, factor: int
) -> list[StoredRequest]:
    """Return the requests of a run, each with the earlier run's result, or with a larger budget if that was cut.

    Args:
        run: the run's folder. If it has results of an earlier command, they are used.
        earlier: the folder of the earlier run.
        factor: the number by which the output budget is multiplied.

    Raises:
        InputError: the earlier run is not finished, is damaged, or has no result for a request.
    """
    if find_incomplete_files(earlier):
        raise InputError(
            f"{ARGUMENT}={factor}x asks again for the cut answers of {earlier.name}, which is not finished in"
            f" {earlier.parent}; make that run first, or give helm-longctx run --retry-cut {factor}x, which makes both"
        )
    results = dict(_results(earlier))
    if missing := sum(_name(each) not in results for each in requests):
        raise InputError(
            f"{earlier} has no result for {missing} of {len(requests)} requests of {spec.name}; give both runs the same"
            " data and the same --max-eval-instances"
        )
    again = dict(_results(run)) if not find_incomplete_files(run) else {}
    window = deployment_window(spec.adapter_spec.model_deployment)
    return [_with_answer(_retry(each, results[_name(each)], factor, window), again) for each in requests]


def _results(run: Path) -> Iterator[tuple[str, RequestResult]]:
    """Yield the results in a finished run's files, by the names of their requests."""
    with reading(run / STATES):
        for state in read_states(run / STATES):
            sample = find_sample(state["instance"])
            if sample and sample.full_prompt and state.get("result"):
                request: Request = _parse(Request, state["request"])
                yield request_name(request, sample.full_prompt["sha256"]), _parse(RequestResult, state["result"])


def _parse(kind: type[Any], content: dict[str, Any]) -> Any:
    # HELM's clients return whole numbers where floats are declared.
    return dacite.from_dict(kind, content, dacite.Config(check_types=False))


def _name(each: StoredRequest) -> str:
    return request_name(each.request, each.digest)


def _retry(each: StoredRequest, result: RequestResult, factor: int, window: int | None) -> StoredRequest:
    """Return a request with its result, or with a larger budget if the result was cut and there is room."""
    budget = _budget(each, factor, window) if failure_of(result) is None and output_truncated(result) else 0
    if budget <= each.request.max_tokens:
        return replace(each, state=replace(each.state, result=result))
    request = replace(each.request, max_tokens=budget)
    first = split_answers(result)[0] if each.sample.follow_up and len(result.completions) > 1 else None
    # Of two requests, only the one whose answer was cut is sent again.
    first = first if first and not output_truncated(first) else None
    return replace(each, state=replace(each.state, request=request), request=request, first=first)


def _budget(each: StoredRequest, factor: int, window: int | None) -> int:
    """Return the larger output budget: as much of it as the window has room for."""
    budget = factor * each.request.max_tokens
    if window is None:
        return budget
    tokens = each.sample.prompt_tokens or estimate_tokens(each.text())
    return min(budget, window - int(COUNTED * tokens) - CHAT_BUFFER)


def _with_answer(each: StoredRequest, again: dict[str, RequestResult]) -> StoredRequest:
    """Return a request with the answer to it that an earlier command got."""
    result = again.get(_name(each)) if each.state.result is None else None
    return replace(each, state=replace(each.state, result=result)) if result and failure_of(result) is None else each
