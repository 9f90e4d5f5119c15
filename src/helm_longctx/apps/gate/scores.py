"""Makes a gate by scores: plans the sample, asks both deployments in both orders, decides, and writes the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TextIO

import orjson

from helm_longctx.apps.gate.asking import (
    DepthPlan,
    Goal,
    LengthPlan,
    ask_in_both_orders,
    check_samples,
    limit_specs,
    make_arms,
    overall_power,
    plan_depths,
    plan_lengths,
)
from helm_longctx.apps.gate.folder import BASE, CANDIDATE, GateFolder
from helm_longctx.apps.gate.gate import (
    Gate,
    GateQuestion,
    gate_json,
    read_gate,
    read_looks,
)
from helm_longctx.apps.gate.sections import explain, gate_sections, write_gate_page
from helm_longctx.config.estimates import print_estimates
from helm_longctx.config.plan import Plan, make_plan, make_runner
from helm_longctx.config.schema import RunConfig
from helm_longctx.config.settings import make_settings
from helm_longctx.config.shared import fill_registries
from helm_longctx.documents.document import text_table
from helm_longctx.documents.numbers import format_points
from helm_longctx.documents.terminal import print_blocks, print_table
from helm_longctx.errors import InputError
from helm_longctx.runner.estimate import Estimate, Rate, TaskSample, estimate_run
from helm_longctx.runner.runner import runner_arguments
from helm_longctx.runner.spool import Spool
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.writing import replace_file


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


def run_gate(
    models: tuple[str, str],
    configs: Sequence[RunConfig],
    goal: Goal,
    has_size: bool,
    prints: TextIO,
) -> int:
    """Make the gate, and return its exit status.

    Args:
        models: the names of both deployments.
        has_size: whether the user gives the number of instances.
    """
    config = configs[0]
    folder = GateFolder(config.output_path, config.suite)
    base, candidate = models
    compared = {"base": base, "candidate": candidate}
    looks = read_looks(folder.json_path, compared) or {}
    with replace(make_settings(config), draws_samples=True).use():
        with redirect_stdout(prints):  # HELM prints where it looks for credentials
            fill_registries(config.local_path)
            sample = _plan_sample(configs, goal, has_size)
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
    runner = make_runner(plan.config)
    estimates = []
    for spec in plan.specs:
        estimates.append(estimate_run(runner, spec, {}, Rate(), spool))
    return estimates


def _print_sample(sample: _Sample, goal: Goal) -> None:
    """Print the price of both arms, and the sample with its power."""
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
