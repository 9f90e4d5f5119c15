"""`estimate`: estimate the requests and the cost of runs before anything is sent."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from helm_longctx.config.estimates import print_estimates, print_plans
from helm_longctx.config.options import SELECTION, split_names, takes_options
from helm_longctx.config.schema import MOST_INSTANCES
from helm_longctx.config.shared import (
    Entries,
    JsonPath,
    LocalPath,
    MostInstances,
    OutputPath,
    check_folder,
    hide_chatter,
    make_specs,
)
from helm_longctx.errors import InputError
from helm_longctx.writing import write_json

_RequestsPerMinute = Annotated[
    float | None,
    typer.Option(
        help="Requests per minute that the provider allows, to estimate the time."
    ),
]


@takes_options([*SELECTION, "prices"])
def estimate(
    entries: Entries = None,
    *,
    most: MostInstances = MOST_INSTANCES,
    price_input: Annotated[
        float | None, typer.Option(help="Dollars per million prompt tokens of --model.")
    ] = None,
    price_output: Annotated[
        float | None, typer.Option(help="Dollars per million output tokens of --model.")
    ] = None,
    requests_per_minute: _RequestsPerMinute = None,
    tokens_per_minute: Annotated[
        float | None,
        typer.Option(
            help="Tokens per minute that the provider allows, to estimate the time."
        ),
    ] = None,
    detect: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=100,
            help="Difference of two models, in points, for which to show the sample size.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            help="Suite of earlier runs whose variances and clusters are used."
        ),
    ] = None,
    as_json: JsonPath = None,
    output_path: OutputPath = Path("benchmark_output"),
    local_path: LocalPath = Path("prod_env"),
    **options: Any,
) -> None:
    """Estimate requests, tokens, judge calls, disk space, cost and time of runs, and the difference that they detect.

    Nothing is sent.
    """
    check_folder("json", as_json)
    with hide_chatter():
        specs = make_specs(entries, options, "estimate", most, output_path, local_path)
    from helm_longctx.models.apis.prices import read_prices
    from helm_longctx.runner.estimate import Rate, estimate_runs
    from helm_longctx.runner.planning import make_plans, read_spreads
    from helm_longctx.runner.runner import LongContextRunner, runner_arguments

    known = read_spreads(output_path / "runs" / like) if like else {}
    if options["prices"]:
        own: dict[str, Any] = read_prices(Path(options["prices"]))
    else:
        own = {}
    models = split_names(options["model"] or [])
    if (price_input is None) != (price_output is None):
        raise InputError("--price-input and --price-output must be given together")
    if price_input is not None:
        if not models:
            raise InputError(
                "--price-input and --price-output need --model, because they are the"
                " prices of its models"
            )
        own = {
            **own,
            **{name: {"input": price_input, "output": price_output} for name in models},
        }
    with hide_chatter():
        runner = LongContextRunner(
            **runner_arguments(output_path, "estimate", local_path, parallelism=2)
        )
        rate = Rate(requests_per_minute, tokens_per_minute)
        estimates = estimate_runs(runner, specs, own, rate)
    print_estimates(estimates, "give --prices, or --price-input and --price-output")
    plans = make_plans(estimates, known, detect / 100 if detect else None)
    print_plans(plans, known, detect)
    if as_json:
        rows = []
        for run_estimate in estimates:
            of_run = []
            for plan in plans:
                if plan.run == run_estimate.run:
                    of_run.append(asdict(plan))
            rows.append({**asdict(run_estimate), "plans": of_run})
        write_json(as_json, rows)
