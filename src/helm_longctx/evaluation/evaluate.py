"""`evaluate`: make runs of tasks with models that are names, addresses or Python objects, and return their results."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from helm_longctx.errors import InputError, bad_argument, shorten
from helm_longctx.process_state import giving_back, lending_process

_ANYWAY: Literal["anyway"] = "anyway"
"""The value of `resume` that goes on with another version of a model."""

if TYPE_CHECKING:
    from helm_longctx.config.options import Options
    from helm_longctx.evaluation.models import GivenModel
    from helm_longctx.evaluation.result import EvaluationResult


def evaluate(
    model: Any,
    tasks: str | Sequence[str],
    lengths: str | int | Sequence[str | int] | None = None,
    *,
    name: str | Sequence[str] | None = None,
    tokenizer: Any = None,
    context: str | int | None = None,
    num_samples: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    suite: str = "evaluate",
    batch_size: int | None = None,
    parallelism: int | None = None,
    judge: str | Sequence[str] | None = None,
    max_cost: float | None = None,
    prices: str | PathLike[str] | None = None,
    resume: bool | Literal["anyway"] = False,
    quiet: bool = False,
    verbose: bool = False,
    output_path: str | PathLike[str] = "benchmark_output",
    local_path: str | PathLike[str] = "prod_env",
) -> EvaluationResult:
    """Make the runs of tasks with a model, and return the results. Everything is checked before anything is sent.

    It makes the same runs as `helm-longctx run`: same files, journal, limits and judges. Answers of a
    function or a model object never come from the request cache, because its code may have changed.

    Args:
        model: a function, plain or async, of a prompt (`helm_longctx.Prompt`) that returns a text, or with `batch_size`
            of a list of prompts that returns a list of texts; an object with `reset()`, `feed(text, role)` and
            `ask(text, prompt)`, which reads a context once for all of its questions; a transformers model, with
            `tokenizer`, or a pair of both; a pipeline; an engine of vLLM or SGLang; the name of a deployment; the
            address of a server; or a list of these, to compare them in one suite.
        tasks: run entries such as `helmet_recall` or `ruler:task=vt`, or names of benchmarks.
        lengths: lengths of the tasks, such as `8k`, or None for tasks without lengths.
        name: the model's name in tables, or a list with a name for each model. By default, the name of the function, or
            the last part of the model's folder or hub name.
        tokenizer: tokenizer of transformers, or its hub name or folder. Without it, prompts are not cut.
        context: the model's window in tokens, to which prompts are cut. Default: the window of a transformers model.
        num_samples: number of questions of each task, or None for the official sample.
        arguments: further arguments of all tasks, such as `{"style": "chat"}`.
        suite: name of the suite. HELM's server, the report and `helm-longctx compare` show it.
        batch_size: most prompts of a list that the function takes, or None for a function of a single prompt. Of a
            transformers model, a folder or an engine: most prompts that are answered together. Not for servers.
        parallelism: prompts that are asked at once. By default `batch_size`, 4 for servers and for async functions, and
            1 for other functions and models.
        judge: judges of answers, as in run entries.
        max_cost: most dollars for all requests.
        prices: YAML file with prices of deployments.
        resume: whether to go on with the journal of a call that was interrupted, and to keep complete runs. Otherwise
            an object is asked again. `True` refuses an object that has changed, by its code or its weights; `"anyway"`
            goes on with it, and its scores have a mark.
        quiet, verbose: whether to log only errors, or everything.
        output_path: HELM's output folder.
        local_path: folder with HELM's YAML files and credentials.

    Raises:
        InputError: an argument is wrong, a task or a model is unknown, a function returned something else than a text,
            or a run could not be made. Answers that arrived are kept.
        KeyboardInterrupt: of Ctrl-C, and of SIGTERM if the caller does not handle it. Answers are kept, too.
    """
    given_arguments = dict(locals())
    # HELM is imported when a function is called, so that `import helm_longctx` stays fast.
    from helm_longctx.config.shared import set_log_levels, show_log
    from helm_longctx.environment import check_encoding
    from helm_longctx.evaluation.turns import take_turn
    from helm_longctx.interruptions import interruptible

    check_encoding()
    if resume not in (True, False, _ANYWAY):
        raise bad_argument(
            "evaluate", "resume", resume, ("True", "False", repr(_ANYWAY))
        )
    with interruptible(lambda: "answers are kept; resume=True continues"), take_turn():
        given = _describe_models(model, name, tokenizer, context, batch_size)
        options = _read_options(given_arguments, given)
        with (
            lending_process(),
            giving_back(),
            show_log(),
            set_log_levels(quiet, verbose),
        ):
            return _make_runs(options, given, resume)


def _describe_models(
    model: Any,
    name: str | Sequence[str] | None,
    tokenizer: Any,
    context: str | int | None,
    batch_size: int | None,
) -> list[GivenModel]:
    """Return what each model is. Takes the arguments of `evaluate`."""
    from helm_longctx.evaluation.models import describe_given
    from helm_longctx.tasks.lengths import parse_length

    models = model if isinstance(model, list) else [model]
    if isinstance(name, str):
        names: list[str | None] = [name]
    elif name:
        names = list(name)
    else:
        names = [None] * len(models)
    if not models or len(names) != len(models):
        raise bad_argument(
            "evaluate",
            "name" if models else "model",
            name if models else model,
            "one for each model",
        )
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
        raise bad_argument(
            "evaluate", "batch_size", batch_size, "a whole number from 1"
        )
    window = None if context is None else parse_length(context, "evaluate: context")
    given = []
    for one_model, one_name in zip(models, names, strict=True):
        described = describe_given(one_model, one_name, tokenizer, window, batch_size)
        given.append(described)
    for argument, value in (
        ("tokenizer", tokenizer),
        ("context", context),
        ("batch_size", batch_size),
    ):
        # In a list, an argument can be meant for another model.
        if value is not None and all(argument in model.ignored for model in given):
            raise InputError(
                f"evaluate: {argument}={shorten(value)} has no effect; {given[0].ignored[argument]}"
            )
    taken = [model.name for model in given]
    if twice := [name for name in taken if taken.count(name) > 1]:
        raise InputError(
            f"evaluate: two models have the name {twice[0]!r}; give name= with one name"
            " for each model"
        )
    return given


def _read_options(arguments: Mapping[str, Any], given: Sequence[GivenModel]) -> Options:
    """Return the arguments of `evaluate` as options of `helm-longctx run`, without those that are not given."""
    from helm_longctx.config.options import Options

    def as_list(value: Any) -> Any:
        if isinstance(value, str | int):
            return [value]
        return value and list(value)

    parallelism = arguments["parallelism"]
    samples = arguments["num_samples"]
    values: dict[str, Any] = {
        "models": [model.entry for model in given],
        "tasks": as_list(arguments["tasks"]),
        "lengths": as_list(arguments["lengths"]),
        "arguments": {
            **(arguments["arguments"] or {}),
            **({} if samples is None else {"num_samples": samples}),
        },
        "parallelism": max(model.parallelism for model in given)
        if parallelism is None
        else parallelism,
        "judge": {"judges": as_list(arguments["judge"])},
        "limits": {
            "max_cost": arguments["max_cost"],
            "prices": arguments["prices"] and str(arguments["prices"]),
        },
        **{key: str(arguments[key]) for key in ("suite", "output_path", "local_path")},
    }

    def without_none(value: Any) -> Any:
        if isinstance(value, dict):
            present = {}
            for key, part in value.items():
                kept = without_none(part)
                if kept not in (None, {}):
                    present[key] = kept
            return present
        return value

    values = without_none(values)
    names: dict[tuple[str | int, ...], str] = {}
    for key in values:
        names[(key,)] = f"evaluate: {key}"
    names |= {("limits", key): f"evaluate: {key}" for key in values.get("limits", {})}
    return Options(values, names)


def _make_runs(
    options: Options,
    given: Sequence[GivenModel],
    resume: bool | str,
) -> EvaluationResult:
    """Make the runs, and return their results."""
    import helm_longctx.plugin  # noqa: F401 - what it registers once stays registered
    from helm_longctx.config.load import load_config
    from helm_longctx.config.plan import make_plan, make_runner
    from helm_longctx.config.settings import make_settings
    from helm_longctx.config.shared import fill_registries
    from helm_longctx.evaluation.models import AskObjects, register
    from helm_longctx.evaluation.result import EvaluationResult
    from helm_longctx.helm_api import RunnerError
    from helm_longctx.results.reading import read_results
    from helm_longctx.results.suite import suite_path
    from helm_longctx.tasks.registry import BENCHMARKS

    config = load_config(None, options)
    objects = {model.name: model for model in given if model.answer is not None}
    with ExitStack() as stack:
        stack.enter_context(make_settings(config).use())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fill_registries(config.local_path)
        for model in objects.values():
            stack.enter_context(register(model, folder))
        specs = list(make_plan(config).specs)
        identities = {name: model.identity for name, model in objects.items()}
        runner = make_runner(config, AskObjects(identities, resume))
        runner.owns_process = False
        try:
            runner.run_all(specs)
        except RunnerError as error:
            raise InputError(str(error)) from error
    suite = suite_path(config.output_path, config.suite)
    names = {spec.name for spec in specs}
    results = read_results(suite, BENCHMARKS)
    return EvaluationResult(
        suite,
        tuple(
            result for result in results if result.run and result.run.path.name in names
        ),
    )
