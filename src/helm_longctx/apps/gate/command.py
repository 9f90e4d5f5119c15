"""`gate`: decide whether a candidate deployment is worse than a base, on identical requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import orjson
import typer

from helm_longctx.apps.gate.folder import BASE, CANDIDATE, GateFolder
from helm_longctx.apps.gate.gate import (
    Gate,
    GateQuestion,
    gate_json,
    read_gate,
    read_looks,
)
from helm_longctx.config.estimates import print_estimates
from helm_longctx.config.options import (
    FOLDERS,
    LIMITS,
    SELECTION,
    read_options,
    takes_options,
)
from helm_longctx.config.shared import Quiet, Verbose, fill_registries, set_log_levels
from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.documents.document import text_table
from helm_longctx.documents.numbers import format_points
from helm_longctx.documents.terminal import print_blocks, print_table
from helm_longctx.environment import require
from helm_longctx.errors import InputError, bad_argument
from helm_longctx.results.statistics.noninferiority import Verdict
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.token_estimate import estimate_tokens
from helm_longctx.writing import replace_file

if TYPE_CHECKING:
    from helm_longctx.apps.gate.asking import DepthPlan, Goal, LengthPlan
    from helm_longctx.apps.gate.distributions import Asked, Way
    from helm_longctx.apps.gate.divergences import DivergenceDecision
    from helm_longctx.apps.gate.teacher_forcing import TextComparison
    from helm_longctx.config.plan import Plan
    from helm_longctx.config.schema import RunConfig
    from helm_longctx.runner.estimate import Estimate, TaskSample
    from helm_longctx.runner.spool import Spool

_MAX_DROP = 2.0
"""Default of `--max-drop`, in points."""


@dataclass(frozen=True)
class _Subset:
    """A named choice of run entries.

    Args:
        entries: the run entries.
        max_drop: the default of `--max-drop`, in points: the sample can show it.
    """

    entries: Sequence[str]
    max_drop: float


_SUBSETS = {
    name: _Subset(**subset)
    for name, subset in read_yaml(
        Path(str(resources.files(__package__) / "gate.yaml"))
    ).items()
}
"""The named subsets. docs/gate.md has their power."""


_Base = Annotated[
    str,
    typer.Argument(
        metavar="BASE", help="Deployment that is trusted, as HELM knows it."
    ),
]
_Candidate = Annotated[
    str,
    typer.Argument(
        metavar="CANDIDATE",
        help="Deployment to check. BASE again measures run-to-run noise.",
    ),
]
_MaxDrop = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        max=99,
        help="Largest drop that is accepted, in points. [default: 2]",
    ),
]
_Power = Annotated[
    float,
    typer.Option(
        min=0.5,
        max=0.99,
        help="Probability with which a candidate without a drop must pass.",
    ),
]
_Noise = Annotated[
    float,
    typer.Option(
        min=0,
        max=100,
        help="Expected share of scores that differ without a drop, in percent.",
    ),
]


@takes_options(
    [
        *SELECTION[:-1],
        "judge",
        "judge_key",
        "max_eval_instances",
        *LIMITS,
        "suite",
        *FOLDERS,
    ],
    suite="Name of the gate. Another name asks everything again. [default: gate]",
    max_eval_instances="Maximum instances per run. [default: as --power needs]",
    dry_run="Only print the price, the sample and its power.",
)
def gate(
    base: _Base,
    candidate: _Candidate,
    subset: Annotated[
        str | None,
        typer.Option(help="Named sample instead of run entries: ci or ci-long."),
    ] = None,
    max_drop: _MaxDrop = None,
    power: _Power = 0.8,
    noise: _Noise = 5.0,
    logprobs: Annotated[
        bool,
        typer.Option("--logprobs", help="Compare distributions of tokens, not scores."),
    ] = False,
    max_divergence: Annotated[
        float,
        typer.Option(
            min=0,
            help="With --logprobs: largest mean divergence that is accepted, in nats."
            " 0: none beyond the noise of both.",
        ),
    ] = 0.05,
    *,
    quiet: Quiet = False,
    verbose: Verbose = False,
    **options: Any,
) -> None:
    r"""Decide whether CANDIDATE is worse than BASE, on identical requests in both orders.

    The exit status is 0 if it is no worse at each length, 1 if it is worse, and 3 if the sample cannot tell. It can be
    interrupted and repeated: no answer is paid for twice. With --logprobs a few questions are enough, and both must
    give log-probabilities of given texts or of their answers. Needs an extra: pip install 'helm-longctx\[report]'.
    """
    require("report", "gate")
    arguments = {
        "suite": "gate",
        **{name: value for name, value in options.items() if value is not None},
    }
    if chosen := _choose_subset(
        subset, arguments.keys() & {"tasks", "entry", "conf_path"}
    ):
        arguments["entry"] = list(chosen.entries)
    from helm_longctx.apps.gate.asking import Goal

    goal = Goal(
        margin=(max_drop or (chosen.max_drop if chosen else _MAX_DROP)) / 100,
        power=power,
        noise=noise / 100,
    )
    with set_log_levels(quiet, verbose) as prints:
        if logprobs:
            raise typer.Exit(
                _compare_distributions(
                    (base, candidate), arguments, goal, max_divergence, prints
                )
            )
        raise typer.Exit(_run_gate((base, candidate), arguments, goal, prints))


def _choose_subset(name: str | None, others: set[str]) -> _Subset | None:
    if name is None:
        return None
    if name not in _SUBSETS:
        raise bad_argument("gate", "subset", name, list(_SUBSETS))
    if others:
        other = f"--{min(others).replace('_', '-')}"
        raise InputError(
            f"gate: --subset {name} cannot be used together with {other}; give one of them"
        )
    return _SUBSETS[name]


@dataclass(frozen=True)
class _Sample:
    """What a gate asks.

    Args:
        plans: the plan of each arm's runs, whose specs have as many instances as the goal needs.
        estimates: the estimates of each arm's runs.
        lengths: the sample at each length.
        needed: the sample at each length if all instances of the entries are asked.
        depths: what the tests of depths show, if there are any.
    """

    plans: tuple[Plan, Plan]
    estimates: tuple[list[Estimate], list[Estimate]]
    lengths: list[LengthPlan]
    needed: list[LengthPlan]
    depths: DepthPlan | None


def _run_gate(
    models: tuple[str, str],
    arguments: Mapping[str, Any],
    goal: Goal,
    prints: TextIO,
) -> int:
    """Make the gate, and return its exit status."""
    from helm_longctx.config.settings import make_settings

    configs = _load_configs(models, arguments)
    config = configs[0]
    folder = GateFolder(config.output_path, config.suite)
    base, candidate = models
    compared = {"base": base, "candidate": candidate}
    looks = read_looks(folder.json_path, compared) or {}
    with make_settings(config).use():
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            fill_registries(config.local_path)
            sample = _plan_sample(configs, goal, "max_eval_instances" in arguments)
        _print_sample(sample, goal)
        if config.dry_run:
            return 0
        with redirect_stdout(prints):
            runs, is_new = _ask(sample, folder)
    question = GateQuestion(
        base=base,
        candidate=candidate,
        margin=goal.margin,
        power=goal.power,
        runs=runs,
        looks=looks,
    )
    decided = read_gate(folder, question, BENCHMARKS)
    _show(decided, folder, is_new)
    return int(decided.verdict)


def _load_configs(
    models: tuple[str, str], arguments: Mapping[str, Any]
) -> list[RunConfig]:
    from helm_longctx.config.load import load_config

    configs = []
    for model, name in zip(models, ("BASE", "CANDIDATE"), strict=True):
        options = read_options({**arguments, "model": [model]})
        names = {**options.names, ("models", 0): name}
        configs.append(load_config(None, replace(options, names=names)))
    return configs


def _compare_distributions(
    models: tuple[str, str],
    arguments: Mapping[str, Any],
    goal: Goal,
    margin: float,
    prints: TextIO,
) -> int:
    """Compare the distributions of both sides, and return the exit status."""
    from helm_longctx.apps.gate import divergences
    from helm_longctx.apps.gate.teacher_forcing import (
        TextComparison,
        find_way,
        make_arms,
        read_points,
        read_questions,
    )
    from helm_longctx.config.plan import make_plan, make_runner
    from helm_longctx.config.settings import make_settings

    configs = _load_configs(models, arguments)
    config = configs[0]
    folder = GateFolder(config.output_path, config.suite)
    kept = folder.path / "logprobs.jsonl"
    if margin:
        default = divergences.QUESTIONS
    else:
        default = divergences.QUESTIONS_OF_ANY
    most = int(arguments.get("max_eval_instances") or default)
    with make_settings(config).use():
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            fill_registries(config.local_path)
            plans = []
            for config_of_side in configs:
                plans.append(make_plan(config_of_side))
            runner = make_runner(config)
            way = find_way(models)
            runs = []
            for spec in plans[0].specs:
                runs.append(list(read_questions(runner, spec, most, way)))
        asked = []
        for run in runs:
            asked += run
        lengths = max(len({question.length for question in asked}), 1)
        earlier = read_points(kept)
        print(divergences.describe_sample(asked, margin, goal.power, way, earlier))
        dollars = _price_questions(asked, models, way, margin, lengths)
        if dollars:
            print(f"They cost about ${dollars:.4f}.")
        if config.dry_run:
            return 0
        with redirect_stdout(prints):
            sides, found_way = make_arms(runner, models, way)
        if found_way is not way:
            way = found_way
            print("One of them reads no given texts, so answers are compared:")
            print(divergences.describe_sample(asked, margin, goal.power, way, earlier))
        comparison = TextComparison(
            sides, models, kept, margin, way, config.limits.max_cost
        )
        path = folder.path / "logprobs.json"
        compared = {
            "base": models[0],
            "candidate": models[1],
            "max_divergence": margin,
        }
        looks = read_looks(path, compared) or ()
        with redirect_stdout(prints):
            decision = _ask_until_worse(comparison, runs, margin, looks, lengths)
    _show_distributions(comparison, decision, models, looks, path)
    return int(decision.verdict)


def _price_questions(
    asked: Sequence[Asked],
    models: tuple[str, str],
    way: Way,
    margin: float,
    lengths: int,
) -> float:
    """Return what the questions cost on both sides, in dollars; 0 without prices."""
    from helm_longctx.apps.gate.divergences import count_twice
    from helm_longctx.apps.gate.teacher_forcing import cost_of_question

    twice = count_twice(lengths) * lengths
    dollars = 0.0
    for number, question in enumerate(asked):
        is_twice = not margin or number < twice
        tokens = estimate_tokens(question.text)
        dollars += cost_of_question(tokens, models, way, is_twice)
    return dollars


def _show_distributions(
    comparison: TextComparison,
    decision: DivergenceDecision,
    models: tuple[str, str],
    looks: Iterable[int],
    path: Path,
) -> None:
    """Write the JSON file, and print the result.

    Args:
        looks: the numbers of questions at the looks of earlier commands.
    """
    from helm_longctx.apps.gate import divergences
    from helm_longctx.apps.gate.kinds import find_main_kind

    kind = find_main_kind(comparison.points) if decision.differences else None
    results = divergences.decision_json(decision, comparison.requests)
    results |= {
        "base": models[0],
        "candidate": models[1],
        "looks": sorted({*looks, *decision.looks}),
        "kind": kind and kind._asdict(),
    }
    replace_file(path, orjson.dumps(results, option=orjson.OPT_INDENT_2))
    print(
        f"{models[1]} (candidate) against {models[0]} (base): distributions at the same tokens"
    )
    print_table(divergences.parts_table(decision, comparison.way))
    if decision.answers:
        print_table(divergences.answers_table(decision))
    if decision.differences:
        print(divergences.explain_differences(decision), kind.text if kind else "")
    print(
        f"{divergences.explain(decision)} It took {comparison.requests} requests.\nThe"
        f" results: {path}"
    )


def _ask_until_worse(
    comparison: TextComparison,
    runs: Sequence[Sequence[Asked]],
    margin: float,
    earlier: Sequence[int],
    lengths: int,
) -> DivergenceDecision:
    """Ask the questions of all runs, and stop before the last one if the candidate is certainly worse.

    Args:
        earlier: the numbers of questions at the looks of earlier commands.
        lengths: the number of lengths.
    """
    from helm_longctx.apps.gate.divergences import FIRST_LOOKS, decide
    from helm_longctx.results.statistics.comparison import next_looks

    most = max(map(len, runs), default=0)
    sizes = [*(size for size in FIRST_LOOKS if size < most), most]
    done = 0
    known = set(earlier)
    for size in sizes:
        further: list[Asked] = []
        for run in runs:
            further += run[done:size]
        comparison.ask(further, lengths)
        done = size
        asked = sum(min(size, len(run)) for run in runs)
        looks = next_looks(known, asked)
        known.add(asked)
        decision = decide(comparison.points, comparison.written, margin, looks)
        if decision.verdict is Verdict.WORSE:
            break
    return decision


def _list_samples(estimates: Iterable[Estimate]) -> list[TaskSample]:
    samples: list[TaskSample] = []
    for estimate in estimates:
        samples += estimate.samples
    return samples


def _plan_sample(configs: Sequence[RunConfig], goal: Goal, has_size: bool) -> _Sample:
    """Plan the runs of both arms.

    Args:
        has_size: whether the user gives the number of instances.
    """
    from helm_longctx.apps.gate.asking import (
        check_samples,
        limit_specs,
        plan_depths,
        plan_lengths,
    )
    from helm_longctx.config.plan import make_plan
    from helm_longctx.runner.spool import Spool

    base, candidate = (make_plan(config) for config in configs)
    if named := [entry.model for entry in base.entries if entry.model]:
        raise InputError(
            f"gate: model={named[0]} is in a run entry; give the deployments only as"
            " BASE and CANDIDATE"
        )
    # The questions of all estimates are the same, so their texts are made once.
    with (
        TemporaryDirectory(prefix="gate-") as folder,
        Spool(Path(folder), keeps_instances=True) as spool,
    ):
        every = _estimate(base, spool)
        needed = plan_lengths(_list_samples(every), goal)
        chosen = every
        if not has_size:
            base = replace(base, specs=limit_specs(base.specs, every, needed))
            candidate = replace(
                candidate, specs=limit_specs(candidate.specs, every, needed)
            )
            chosen = _estimate(base, spool)
        # Of one deployment twice, the requests are the same.
        if base.specs == candidate.specs:
            others = chosen
        else:
            others = _estimate(candidate, spool)
    check_samples(chosen, others)
    lengths = plan_lengths(_list_samples(chosen), goal)
    depths = plan_depths(_list_samples(chosen), goal)
    return _Sample(
        plans=(base, candidate),
        estimates=(chosen, others),
        lengths=lengths,
        needed=needed,
        depths=depths,
    )


def _estimate(plan: Plan, spool: Spool) -> list[Estimate]:
    from helm_longctx.config.plan import make_runner
    from helm_longctx.runner.estimate import Rate, estimate_run

    runner = make_runner(plan.config)
    estimates = []
    for spec in plan.specs:
        estimates.append(estimate_run(runner, spec, {}, Rate(), spool))
    return estimates


def _print_sample(sample: _Sample, goal: Goal) -> None:
    """Print the price of both arms, and the sample with its power."""
    from helm_longctx.apps.gate.asking import overall_power

    print_estimates([*sample.estimates[0], *sample.estimates[1]], "give --prices")
    numbers = ("instances", "clusters", "needed", "power", "worse from")
    rows = []
    for plan in sample.lengths:
        cells = (
            plan.part,
            f"{plan.questions:,}",
            f"{plan.clusters:,}",
            f"{plan.needed:,}",
            f"{plan.power:.0%}",
            f"{100 * plan.worse_from:.1f} points",
        )
        rows.append(cells)
    title = f"Sample for each arm, to show that a drop is smaller than {format_points(goal.margin)}"
    print_table(text_table(title, ("length", *numbers), rows, right=numbers))
    power = overall_power(sample.lengths, sample.depths)
    print(
        "A candidate without a drop passes at all lengths with a probability of at"
        f" least {power:.0%} (wanted: {goal.power:.0%}), if {100 * goal.noise:g} % of"
        " the scores differ by chance (--noise).\nA drop at one length as large as the"
        f" last column says is called worse with a probability of {goal.power:.0%}."
    )
    if sample.depths:
        drop = 100 * sample.depths.visible_drop
        print(
            f"A drop of {drop:.1f} points at one depth is found with the same probability."
        )
    if power < goal.power:
        print(
            "To reach the wanted power, add run entries or instances, or give a larger --max-drop.",
            flush=True,
        )


def _ask(sample: _Sample, folder: GateFolder) -> tuple[list[tuple[str, str]], bool]:
    """Make the runs, and return the names of their folders, and whether something was asked."""
    from helm_longctx.apps.gate.asking import ask_in_both_orders, make_arms
    from helm_longctx.runner.runner import runner_arguments

    arguments = []
    for plan, arm in zip(sample.plans, (BASE, CANDIDATE), strict=True):
        config = plan.config
        arguments.append(
            runner_arguments(
                config.output_path,
                folder.suite(arm),
                config.local_path,
                config.parallelism,
                skip_completed_runs=True,
            )
        )
    arms = make_arms(folder, arguments[0], arguments[1])
    base, candidate = sample.plans
    runs = ask_in_both_orders(arms, zip(base.specs, candidate.specs, strict=True))
    return runs, any(arm.has_asked for arm in arms)


def _show(gate: Gate, folder: GateFolder, is_new: bool) -> None:
    """Write the page and the JSON file, and print the result."""
    from helm_longctx.apps.gate.sections import explain, gate_sections, write_gate_page

    sections = gate_sections(gate)
    page = write_gate_page(gate, sections, folder.name, folder.path)
    content = orjson.dumps(gate_json(gate), option=orjson.OPT_INDENT_2)
    # A later look reads it, so it is never incomplete.
    replace_file(folder.json_path, content)
    print(
        f"{gate.question.candidate} (candidate) minus {gate.question.base} (base), in points"
    )
    for section in sections:
        if section.name in ("scores", "answers", "findings"):
            print_blocks(section.blocks)
    if gate.outside:
        print(
            "Not in the verdict, because the benchmark's means leave them out:"
            f" {', '.join(gate.outside)}"
        )
    if not is_new:
        print(
            "All answers are from an earlier command; another --suite asks everything again."
        )
    print(explain(gate))
    print(f"The page: {page}\nThe results: {folder.json_path}")
