"""`evaluate`: make runs of tasks with models that are names, addresses or Python objects, and return their results."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from helm_longctx.errors import InputError, bad_argument

if TYPE_CHECKING:
    from helm_longctx.cli.config.load import Options
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
    resume: bool = False,
    quiet: bool = False,
    verbose: bool = False,
    output_path: str | PathLike[str] = "benchmark_output",
    local_path: str | PathLike[str] = "prod_env",
) -> EvaluationResult:
    """Make the runs of tasks with a model, and return the results. Everything is checked before anything is sent.

    The runs are those of `helm-longctx run`: in the same files, with the same journal, limits and judges. Answers of a
    function or a model object never come from the request cache, because its code may have changed.

    Args:
        model: the name of a deployment; the address of a server; a function, plain or async, that takes a prompt
            (`helm_longctx.Prompt`) and returns a text, or with `batch_size` takes a list of prompts and returns a list
            of texts; a transformers model, with `tokenizer`, or a pair of both; a text-generation pipeline; an engine
            of vLLM or SGLang; or a list of these, which are compared in one suite.
        tasks: run entries such as `helmet_recall` or `ruler:task=vt`, or names of benchmarks.
        lengths: lengths of the tasks, such as `8k`; None for the tasks' own.
        name: the model's name in tables, or a list with a name for each model. By default, the name of the function, or
            the last part of the model's folder or hub name.
        tokenizer: tokenizer of transformers, or its hub name or folder. Without it, prompts are not cut.
        context: the model's window in tokens, to which prompts are cut. By default, that of a transformers model.
        num_samples: number of questions of each task; None for the official sample.
        arguments: further arguments of all tasks, such as `{"style": "chat"}`.
        suite: name of the suite. HELM's server, the report and `helm-longctx compare` show it.
        batch_size: most prompts of a list that the function takes; None for a function of a single prompt.
        parallelism: prompts that are asked at once. By default `batch_size`, 4 for servers and for async functions, and
            1 for other functions and models.
        judge: judges of answers, as in run entries.
        max_cost: most dollars for all requests.
        prices: YAML file with prices of deployments.
        resume: whether to go on with the journal of a call that was interrupted, and to keep complete runs. Otherwise
            an object is asked again.
        quiet, verbose: whether to log only errors, or everything.
        output_path: HELM's output folder.
        local_path: folder with HELM's YAML files and credentials.

    Raises:
        InputError: an argument is wrong, a task or a model is unknown, a function returned something else than a text,
            or a run could not be made. Answers that arrived are kept.
    """
    models = list(model) if isinstance(model, list) else [model]
    own_names: list[str | None] = [name] if isinstance(name, str) else list(name) if name else [None] * len(models)
    if not models or len(own_names) != len(models):
        raise bad_argument("evaluate", "name" if models else "model", name if models else model, "one for each model")
    for key, number in (("batch_size", batch_size), ("parallelism", parallelism)):
        if number is not None and (not isinstance(number, int) or number < 1):
            raise bad_argument("evaluate", key, number, "a whole number from 1")
    # HELM is imported here, so that `import helm_longctx` stays fast.
    from helm_longctx.cli.logs import set_log_levels, show_log
    from helm_longctx.evaluation.models import describe_given
    from helm_longctx.evaluation.result import EvaluationResult
    from helm_longctx.results.reading import read_results
    from helm_longctx.tasks.lengths import parse_length
    from helm_longctx.tasks.registry import BENCHMARKS

    window = None if context is None else parse_length(context, "evaluate: context")
    given = [
        describe_given(each, own, tokenizer, window, batch_size) for each, own in zip(models, own_names, strict=True)
    ]
    names = [each.name for each in given]
    if twice := [each for each in names if names.count(each) > 1]:
        raise InputError(f"evaluate: two models have the name {twice[0]!r}; give name= with one name for each model")
    values: dict[str, Any] = {
        "models": [each.entry for each in given],
        "tasks": [tasks] if isinstance(tasks, str) else list(tasks),
        "lengths": [lengths] if isinstance(lengths, str | int) else lengths and list(lengths),
        "suite": suite,
        "arguments": {**(arguments or {}), **({} if num_samples is None else {"num_samples": num_samples})},
        "parallelism": parallelism or max(each.parallelism for each in given),
        "output_path": str(output_path),
        "local_path": str(local_path),
        "judge": {"judges": [judge] if isinstance(judge, str) else judge and list(judge)},
        "limits": {"max_cost": max_cost, "prices": None if prices is None else str(prices)},
    }
    with show_log(), set_log_levels(quiet, verbose) as prints:
        folder, runs = _make_runs(_options(values), given, resume, prints)
    results = read_results(folder, BENCHMARKS)
    return EvaluationResult(folder, tuple(each for each in results if each.run and each.run.path.name in runs))


def _options(values: Mapping[str, Any]) -> Options:
    """Return the arguments as options of `helm-longctx run`, without those that are not given."""
    from helm_longctx.cli.config.load import Options

    def without_none(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: kept for key, each in value.items() if (kept := without_none(each)) not in (None, {})}
        return value

    given = without_none(values)
    names: dict[tuple[str | int, ...], str] = {(key,): f"evaluate: {key}" for key in given}
    names |= {("limits", key): f"evaluate: {key}" for key in given.get("limits", {})}
    return Options(given, names)


def _make_runs(options: Options, given: Sequence[GivenModel], resume: bool, prints: TextIO) -> tuple[Path, list[str]]:
    """Make the runs, and return the suite's folder and the runs' names.

    Args:
        prints: the stream for what HELM prints while it gets ready. What functions print goes to the user.
    """
    from helm.benchmark.runner import RunnerError

    from helm_longctx.cli.config.load import load_config
    from helm_longctx.cli.config.plan import make_plan, use_settings
    from helm_longctx.cli.shared import fill_registries
    from helm_longctx.evaluation.models import register
    from helm_longctx.evaluation.runner import ObjectRunner
    from helm_longctx.results.suite import suite_path
    from helm_longctx.runner.runner import runner_arguments

    config = load_config(None, options)
    objects = {each.name: each for each in given if each.answer is not None}
    with use_settings(config), tempfile.TemporaryDirectory() as folder, ExitStack() as registered:
        with redirect_stdout(prints):
            fill_registries(config.local_path)
            for each in objects.values():
                registered.enter_context(register(each, Path(folder)))
            specs = list(make_plan(config).specs)
            runner = ObjectRunner(
                **runner_arguments(
                    config.output_path, config.suite, config.local_path, config.parallelism, skip_completed_runs=True
                )
            )
        runner.identities, runner.resumes = {name: each.identity for name, each in objects.items()}, resume
        try:
            runner.run_all(specs)
        except RunnerError as error:
            raise InputError(str(error)) from error
    return suite_path(config.output_path, config.suite), [spec.name for spec in specs]
