"""Resumes runs: says which of them are complete, what answers are kept, and what requests are sent again.

An interrupted run has its answers in the journal. A run with `retry_cut=4x` asks again for those answers of an earlier
run that the token limit cut, with a larger output budget. It copies the results of all other requests from the
earlier run. That run has the same run entry without `retry_cut`.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from helm_longctx.errors import InputError
from helm_longctx.helm.truncation import CHAT_BUFFER, deployment_window
from helm_longctx.helm_api import Request, RequestResult, RunSpec
from helm_longctx.helm_log import helm_log
from helm_longctx.models.results import answer_of, parse_result
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.runner.follow_up import follow_up, join_answers, split_answers
from helm_longctx.runner.spool import StoredRequest
from helm_longctx.runs.files import (
    FILES,
    STATES,
    find_incomplete_files,
    read_run_spec,
    reading,
)
from helm_longctx.runs.journal import Journal, answer_files, parse_object, request_name
from helm_longctx.runs.prompts import request_text
from helm_longctx.runs.records import read_records
from helm_longctx.tasks.entry import read_times
from helm_longctx.tasks.run_names import read_run_name
from helm_longctx.tasks.token_estimate import estimate_tokens

_ARGUMENT = "retry_cut"
"""The argument of run entries."""

COUNTED = 1.02
"""Largest expected ratio of a prompt's real number of tokens to the number that is known here."""


def is_complete(run: Path) -> bool:
    """Whether no answers of a run are missing, and no file is missing or cut off."""
    if answer_files(run) or not all((run / name).is_file() for name in FILES):
        return False
    if incomplete := find_incomplete_files(run):
        helm_log.info(
            f"{run} is made again, because files are incomplete: {', '.join(incomplete)}"
        )
    return not incomplete


def is_made(run: Path, spec: RunSpec) -> bool:
    """Whether a run is complete, and has the requested number of instances and the user's files as they are now.

    Neither is in a run's name. A run that asks again for cut answers is made again after the earlier run.
    """
    if not is_complete(run):
        return False
    earlier = run.with_name(earlier_name(run.name)) / STATES
    if (
        retry_factor(spec)
        and earlier.is_file()
        and earlier.stat().st_mtime_ns > (run / STATES).stat().st_mtime_ns
    ):
        return False
    made = read_run_spec(run)
    return (
        made["adapter_spec"].get("max_eval_instances"),
        made["scenario_spec"].get("args", {}).get("files"),
    ) == (
        spec.adapter_spec.max_eval_instances,
        spec.scenario_spec.args.get("files"),
    )


def find_first_answer(
    asked: StoredRequest,
    journal: Journal,
    name: str = "",
) -> RequestResult | None:
    """Return the kept result of a request, or of the first of two requests, or None if it has to be sent.

    Args:
        name: the request's name in the journal, if it is known.
    """
    kept = asked.state.result or asked.first
    if kept:
        return kept
    return journal.get(name or journal.name(asked.request, asked.digest))


def find_answer(
    asked: StoredRequest,
    journal: Journal,
    name: str = "",
) -> RequestResult | None:
    """Return the kept result of a request and of the one that follows it, or None if one has to be sent.

    Args:
        name: the request's name in the journal, if it is known.
    """
    if asked.state.result is not None:
        return asked.state.result
    # Without answers, the name of the request need not be computed.
    result = find_first_answer(asked, journal, name) if journal else None
    if result is not None and (
        second := follow_up(asked.request, asked.sample, result)
    ):
        last = journal.get(journal.name(second, digest(request_text(second))))
        return last and join_answers(result, last)
    return result


def retry_factor(spec: RunSpec) -> int | None:
    """Return by which number the output budget of cut answers is multiplied, if a run asks any again."""
    return read_times(spec.name, _ARGUMENT, spec.scenario_spec.args.get(_ARGUMENT))


def earlier_name(name: str) -> str:
    """Return the name of the run whose cut answers a run asks for again."""
    return str(read_run_name(name).without(_ARGUMENT))


def retry_cut(
    requests: list[StoredRequest],
    spec: RunSpec,
    run: Path,
) -> list[StoredRequest]:
    """Return the requests of a run, each with the earlier run's result, or with a larger budget if that was cut.

    Args:
        requests: they are returned unchanged if the run entry has no `retry_cut`.
        run: the run's folder. If it has results of an earlier command, they are used.

    Raises:
        InputError: the earlier run is not finished, is damaged, or has no result for a request.
    """
    factor = retry_factor(spec)
    earlier = run.with_name(earlier_name(run.name))
    if not factor:
        return requests
    if find_incomplete_files(earlier):
        raise InputError(
            f"{_ARGUMENT}={factor}x asks again for the cut answers of {earlier.name},"
            f" which is not finished in {earlier.parent}; make that run first, or give"
            f" helm-longctx run --retry-cut {factor}x, which makes both"
        )
    names = [request_name(asked.request, asked.digest) for asked in requests]
    results = dict(_results(earlier))
    if missing := sum(name not in results for name in names):
        raise InputError(
            f"{earlier} has no result for {missing} of {len(requests)} requests of"
            f" {spec.name}; give both runs the same data and the same"
            " --max-eval-instances"
        )
    again = dict(_results(run)) if not find_incomplete_files(run) else {}
    window = deployment_window(spec.adapter_spec.model_deployment)
    retried = []
    for earlier_request, name in zip(requests, names, strict=True):
        asked = _retry(earlier_request, results[name], factor, window)
        if asked.state.result is None:
            result = again.get(request_name(asked.request, asked.digest))
            if result and answer_of(result).is_answered:
                asked = replace(asked, state=replace(asked.state, result=result))
        retried.append(asked)
    return retried


def _results(run: Path) -> Iterator[tuple[str, RequestResult]]:
    """Yield the results of a finished run, by the names of their requests."""
    for record in read_records(run):
        result = record.to_state().get("result")
        if record.sample and record.sample.full_prompt and result:
            with reading(run / STATES):
                request = parse_object(Request, record.request)
                name = request_name(request, record.prompt_digest)
                yield name, parse_result(result)


def _retry(
    asked: StoredRequest,
    result: RequestResult,
    factor: int,
    window: int | None,
) -> StoredRequest:
    """Return a request with its result, or with a larger budget if the result was cut and there is room."""
    budget = 0
    answer = answer_of(result)
    if answer.is_answered and answer.is_any_cut:
        budget = factor * asked.request.max_tokens
        if window is not None:  # the budget is as large as the window has room for
            tokens = asked.sample.prompt_tokens or estimate_tokens(asked.text())
            budget = min(budget, window - int(COUNTED * tokens) - CHAT_BUFFER)
    if budget <= asked.request.max_tokens:
        return replace(asked, state=replace(asked.state, result=result))
    request = replace(asked.request, max_tokens=budget)
    first = None
    # Of two requests, only the one whose answer was cut is sent again.
    if answer.first is not None and not answer.first.is_cut:
        first = split_answers(result)[0]
    return replace(
        asked,
        state=replace(asked.state, request=request),
        request=request,
        first=first,
    )
