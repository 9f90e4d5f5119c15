"""Translates a request of NeMo Evaluator into a configuration of `helm-longctx run`."""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core_evals.helm_longctx.medical import MEDICAL, MedicalTask
from helm_longctx.config.load import load_config
from helm_longctx.config.options import Options
from helm_longctx.config.schema import RunConfig
from helm_longctx.errors import InputError, bad_argument, list_choices
from helm_longctx.judging.keys.client import FAMILIES, family_of
from helm_longctx.models.apis.oauth import find_tokens
from helm_longctx.tasks.groups import shorten_name
from helm_longctx.tasks.registry import BENCHMARKS

EvaluationRequest = Mapping[str, Any]
"""A request, as the command in `framework.yml` passes it: `output_dir`, `params`, `extra` and `target`."""

OURS = {name: benchmark for benchmark in BENCHMARKS for name in benchmark.entries}

CONFIGS = "model_configs"
"""The folder of the configuration and of HELM's YAML files, in the output folder."""

JURY = "judges.yaml"
RUN = "run.yaml"

DIRECT = ("caching", "endpoint", "nvcf", "response_stats")
"""Interceptors of NeMo Evaluator's adapter that can be left out, because our clients cache, send, poll and count."""

_NAMES = {
    ("models",): "target.api_endpoint",
    ("models", 0, "url"): "target.api_endpoint.url",
    ("models", 0, "type"): "target.api_endpoint.type",
    ("models", 0, "model"): "target.api_endpoint.model_id",
    ("models", 0, "api_key_env"): "target.api_endpoint.api_key",
    ("models", 0, "context"): "config.params.extra.max_length",
    ("models", 0, "tokenizer"): "config.params.extra.tokenizer",
    ("judge", "judges"): "config.params.extra.judge",
    ("limits", "max_eval_instances"): "config.params.limit_samples",
    ("limits", "request_timeout"): "config.params.request_timeout",
    ("limits", "max_retries"): "config.params.max_retries",
    ("parallelism",): "config.params.parallelism",
    ("entries",): "config.params",
}
"""NeMo Evaluator's names of the keys of a configuration, for errors."""


def make_configuration(request: EvaluationRequest) -> RunConfig:
    """Return the configuration of `helm-longctx run` for a request of NeMo Evaluator.

    Raises:
        InputError: a parameter is invalid; the error names it as NeMo Evaluator does.
    """
    params = request["params"]
    target = request["target"]
    folder = Path(request["output_dir"])
    _check_adapter(target, request)
    model = _model(request)
    judges = list(list_judges(request))
    entries = list(_entries(request))
    tasks = re.sub(r"\w+=[^,]*/[^,]*,?|\w+=", "", "_".join(entries))
    models = [
        model["name"],
        *(
            str(judge.get("name") if isinstance(judge, dict) else judge)
            for judge in judges
        ),
    ]
    values = {
        # The name depends on tasks, lengths, models and judges, so that other results are in other suites.
        "suite": shorten_name(re.sub(r"[^\w.-]+", "_", "_".join([tasks, *models])), 80),
        "output_path": str(folder),
        "local_path": str(folder / CONFIGS),
        "entries": entries,
        "models": [model],
        "judge": _without_none(judges=judges or None, keys=_keys(request) or None),
        "limits": _without_none(
            max_eval_instances=params["limit_samples"],
            request_timeout=params["request_timeout"],
            max_retries=params["max_retries"],
        ),
        **_without_none(parallelism=params["parallelism"]),
    }
    return load_config(None, Options(values, _NAMES))


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _check_adapter(target: Mapping[str, Any], request: EvaluationRequest) -> None:
    """Check that the request uses only those parts of NeMo Evaluator's adapter that work with this command."""
    ignored = [name for name in target["interceptors"] if name not in DIRECT]
    if target["mode"] == "client" and ignored:
        raise bad_argument(
            "target.api_endpoint.adapter_config",
            "mode",
            "client",
            [f"server with {', '.join(ignored)}"],
        )
    if (
        target["mode"] != "client"
        and target["reuses_responses"]
        and (request["extra"]["num_train_trials"] or 1) > 1
    ):
        raise InputError(
            "target.api_endpoint.adapter_config: with mode=server and use_caching, all repeats of a question get the"
            " same answer; set use_caching=false or mode=client"
        )


def _model(request: EvaluationRequest) -> dict[str, Any]:
    params = request["params"]
    target = request["target"]
    extra = request["extra"]
    body = _without_none(temperature=params["temperature"], top_p=params["top_p"])
    task = MEDICAL.get(params["task"])
    takes_length = task is not None and task.takes_length
    return {
        "name": name_model(str(target["model_id"])),
        "url": target["url"],
        "nvcf": "nvcf" in target["interceptors"] and target["mode"] == "client",
        **_without_none(
            model=target["model_id"],
            type=target["type"],
            api_key_env=target["api_key"],
            context=None if takes_length else extra["max_length"],
            tokenizer=extra["tokenizer"],
            extra_body=body or None,
        ),
    }


def name_model(served: str) -> str:
    """Return a model's name in HELM, `ORGANIZATION/NAME`, from its name on the server."""
    organization, slash, name = served.strip("/").partition("/")
    parts = (organization, name) if slash else ("endpoint", organization)
    return "/".join(re.sub(r"[^\w.-]", "-", part, flags=re.ASCII) for part in parts)


def _entries(request: EvaluationRequest) -> Iterator[str]:
    task = request["params"]["task"]
    extra = request["extra"]
    tokens = _only_one(
        extra["num_output_tokens"],
        request["params"]["max_new_tokens"],
        "extra.num_output_tokens",
        "max_new_tokens",
    )
    if task in OURS:
        for name in ("subset", "condition"):
            if extra[name] is not None:
                raise bad_argument(
                    "config.params.extra",
                    name,
                    extra[name],
                    "subject, for tasks of this package",
                )
        subject = _only_one(
            extra["subject"], extra["task"], "extra.subject", "extra.task"
        )
        arguments = {
            OURS[task].task_argument: subject,
            "style": extra["style"],
            "repeats": extra["num_train_trials"],
        }
        own = (
            _without_none(**arguments)
            | dict(extra["arguments"] or {})
            | _without_none(num_output_tokens=tokens)
        )
        for length in _as_list(extra["length"]) or [None]:
            yield _entry(task, {**_without_none(length=length), **own})
    elif task in MEDICAL:
        yield from _medical_entries(request, _without_none(num_output_tokens=tokens))
    else:
        raise bad_argument("config.params", "task", task, [*OURS, *MEDICAL])


def _medical_entries(
    request: EvaluationRequest, further: Mapping[str, Any]
) -> Iterator[str]:
    extra = request["extra"]
    task = MEDICAL[request["params"]["task"]]
    _check_medical_parameters(task, extra)
    if (extra["num_train_trials"] or 1) > 1:
        note = f"num_train_trials={extra['num_train_trials']} has no effect: {task.entry} has no demonstrations"
        print(
            f"helm-longctx: {note}, and HELM asks each of its questions once",
            file=sys.stderr,
        )
    arguments: dict[str, Any] = {}
    if task.is_judged:
        arguments["jury_config_path"] = Path(request["output_dir"]) / CONFIGS / JURY
    if task.takes_length:
        arguments |= _without_none(max_length=extra["max_length"])
    arguments |= {**further, **(extra["arguments"] or {})}
    if task.data is None:
        for subset in _as_list(extra["subset"]) or task.subsets or [None]:
            yield _entry(task.entry, {**_without_none(subset=subset), **arguments})
        return
    subjects = _subjects(task, extra)
    folder = _licensed_folder(task, extra["data_path"], subjects)
    arguments = {"data_path": folder, **arguments}
    if task.subjects is None:
        yield _entry(task.entry, arguments)
    else:
        for subject in subjects:
            chosen = {task.subjects.argument: subject}
            yield _entry(task.entry, chosen | arguments)


def _check_medical_parameters(task: MedicalTask, extra: Mapping[str, Any]) -> None:
    """Check that a request has no parameter that HELM's run entry does not take."""
    refused = ["length", "task", "style"]
    if task.data is None:
        refused.append("data_path")
    else:
        refused.append("subset")
    argument = task.subjects.argument if task.subjects else None
    if argument is None:
        refused.append("subject")
    if argument != "condition":
        refused.append("condition")
    for name in refused:
        if extra[name] is not None:
            raise InputError(
                f"config.params.extra.{name}={extra[name]!r}: HELM's {task.entry} does not take it; leave it out"
            )


def _subjects(task: MedicalTask, extra: Mapping[str, Any]) -> list[str]:
    """Return the subjects that a request names, which are conditions in CLEAR."""
    if task.subjects is None:
        return []
    given = extra["subject"]
    if task.subjects.argument == "condition":
        given = _only_one(extra["condition"], given, "extra.condition", "extra.subject")
    known = task.subjects.load()
    subjects = _as_list(given)
    if not subjects:
        choices = list_choices("", known)
        raise InputError(
            f"config.params.extra.{task.subjects.argument} is missing; {choices}"
        )
    for subject in subjects:
        if subject not in known:
            raise bad_argument(
                "config.params.extra", task.subjects.argument, subject, known
            )
    return subjects


def _licensed_folder(
    task: MedicalTask, data_path: str | None, subjects: Sequence[str]
) -> Path:
    """Return the folder with a task's data, or raise an `InputError` that says who gives them."""
    assert task.data is not None
    licence = f"the data need a licence: {task.data.access}"
    if data_path is None:
        raise InputError(
            f"config.params.extra.data_path is missing: {task.entry} reads it, and {licence}"
        )
    folder = Path(data_path).expanduser().resolve()
    if "," in str(folder):
        raise bad_argument(
            "config.params.extra", "data_path", data_path, "a path without commas"
        )
    for file in task.data.files:
        for subject in subjects or [""]:
            path = folder / file.format(subject)
            if not path.exists():
                raise InputError(
                    f"config.params.extra.data_path={data_path!r}: {path.relative_to(folder)} is missing; {licence}"
                )
    return folder


def _entry(name: str, arguments: Mapping[str, Any]) -> str:
    pairs = ",".join(f"{key}={value}" for key, value in arguments.items())
    return f"{name}:{pairs}" if pairs else name


def _only_one(one: Any, other: Any, name: str, other_name: str) -> Any:
    if one is not None and other is not None and one != other:
        raise InputError(
            f"config.params.{name}={one!r} and config.params.{other_name}={other!r} differ; give one of them"
        )
    return other if one is None else one


def _as_list(value: Any) -> list[Any]:
    """Return the items of a list, or of a text with commas."""
    if isinstance(value, str):
        return [item.strip() for item in value.split(",")]
    if isinstance(value, list):
        return list(value)
    if value is None:
        return []
    return [value]


def list_judges(request: EvaluationRequest) -> Iterator[Any]:
    """Yield the judges. One with an address gets the tokens or the key of its family, unless it names its own.

    HELM's annotators of medical tasks know no families, so the deployment names the variables.
    """
    given = request["extra"]["judge"]
    variables = _keys(request)
    judges: list[Any] = given or []
    if isinstance(given, str):
        judges = [*given.split("+")]
    elif isinstance(given, dict):
        judges = [given]
    for judge in judges:
        is_described = isinstance(judge, dict) and "name" in judge
        family = family_name(judge["name"]) if is_described else ""
        prefix = f"{family}_judge".upper()
        if family in variables:
            yield {"api_key_env": variables[family], **judge}
        elif is_described and "api_key_env" not in judge and find_tokens(prefix):
            yield {"token_env": prefix, **judge}
        else:
            yield judge


def family_name(judge: str) -> str:
    """Return the family in a judge's name in lower case; `other` if it is not one of HELM's three families."""
    return (family_of(judge) or "other").lower()


def _keys(request: EvaluationRequest) -> dict[str, str]:
    """Return, for each family, the environment variable that holds its key, if that variable is set.

    A family whose tokens are set has no key, unless the request names another variable than the usual one.
    """
    variables = {
        family.lower(): request["extra"][f"{family.lower()}_judge_api_key"]
        for family in FAMILIES
    }
    usual = {family: f"{family}_judge".upper() for family in variables}
    return {
        family: name
        for family, name in variables.items()
        if name
        and os.environ.get(name)
        and not (name == f"{usual[family]}_API_KEY" and find_tokens(usual[family]))
    }
