"""Reads the runs of a gate's two arms, and decides whether the candidate is worse than the base."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from helm_longctx.apps.gate.answers import (
    EQUAL,
    AnswerPair,
    ArmAgreement,
    agreements,
    pair_answers,
    part_name,
)
from helm_longctx.apps.gate.findings import Finding, describe_floor, find_differences
from helm_longctx.apps.gate.folder import BASE, CANDIDATE, GateFolder
from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, make_boards
from helm_longctx.results.comparison import SharedTable
from helm_longctx.results.reading import Result, read_results
from helm_longctx.results.statistics.comparison import Pairs
from helm_longctx.results.statistics.noninferiority import (
    Drop,
    Verdict,
    combine_verdicts,
    decide_drops,
    visible_drop,
)
from helm_longctx.runs.files import read_json, reading
from helm_longctx.runs.shown_models import ShownModel
from helm_longctx.tasks.benchmark import Benchmark
from helm_longctx.tasks.lengths import sort_lengths

ALL = "all"
ANSWERS = "answers"
"""The names of the part with all lengths, and of the part that counts which requests have a scored answer."""

DEPTHS = {
    "beginning": (0, 20),
    "middle": (40, 60),
    "end": (80, 100),
}
"""The parts of prompts in which evidence can be, and their depths in percent."""


@dataclass(frozen=True)
class GateQuestion:
    """What a gate decides.

    Args:
        base, candidate: the names of both deployments.
        margin: the largest drop that is accepted, 0 to 1.
        power: the wanted probability of a decision.
        runs: the names of the folders of each run of the base and of the candidate.
        looks: the numbers of instances at earlier looks, by the part's name; see `read_looks`.
    """

    base: str
    candidate: str
    margin: float
    power: float
    runs: Sequence[tuple[str, str]]
    looks: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Gate:
    """The results of a gate.

    Args:
        parts: the decision on each length, on all lengths if there are several, on the depths if evidence is at
            several of them, and on the requests with a scored answer if only one deployment has some.
        tasks: each task, with tests of their own. They decide nothing.
        lengths, orders: how far the answers agree, by length, and by the arm that was asked first.
        findings: what the requests show.
        pairs: the answers of both arms to each request.
        boards: the scores of both arms; the models are named like the arms.
        outside: the tasks that do not decide, because the benchmark's means leave them out.
    """

    question: GateQuestion
    parts: Mapping[str, Drop]
    tasks: Mapping[str, Drop]
    lengths: Sequence[ArmAgreement]
    orders: Sequence[ArmAgreement]
    findings: Sequence[Finding]
    pairs: Sequence[AnswerPair]
    boards: Sequence[Board]
    outside: Sequence[str]

    @cached_property
    def verdict(self) -> Verdict:
        """The decision on all lengths and findings."""
        return decide(self.parts, self.findings)

    @property
    def missing(self) -> dict[str, int]:
        """The number of instances that each undecided length, or suspect depth, still needs."""
        missing = {}
        for name, drop in self.parts.items():
            if drop.more and name != ALL:
                missing[name] = drop.more
        return missing

    @property
    def visible_drop(self) -> float | None:
        """The smallest drop at one depth that the sample shows with the wanted power, if there are depths."""
        drops = []
        for name in DEPTHS:
            if name in self.parts:
                drops.append(self.parts[name])
        if not drops:
            return None
        fewest = min(drop.comparison.effect.n for drop in drops)
        return visible_drop(
            fewest, self.difference_share, len(drops), self.question.power
        )

    @property
    def difference_share(self) -> float:
        """The share of the requests with a score in both arms whose scores differ."""
        differences = []
        for pair in self.pairs:
            if pair.difference is not None:
                differences.append(pair.difference)
        return fmean(abs(difference) >= EQUAL for difference in differences)


def decide(drops: Mapping[str, Drop], findings: Sequence[Finding]) -> Verdict:
    """Return the verdict on the drops in each part and on what the requests show."""
    verdicts = []
    for name, drop in drops.items():
        if is_counted(name, drop):
            verdicts.append(drop.verdict)
    for finding in findings:
        if finding.decides_worse:
            verdicts.append(Verdict.WORSE)
        if finding.leaves_open:
            verdicts.append(Verdict.UNDECIDED)
    return combine_verdicts(verdicts)


def is_counted(name: str, drop: Drop) -> bool:
    """Whether the verdict on a part is part of the whole verdict."""
    # Over all lengths "worse" counts, but "no worse" says nothing about a single length. A depth has few instances, so
    # it need not be shown to be no worse, unless it has a drop.
    return drop.is_worse or drop.is_suspect or name not in (ALL, *DEPTHS)


def read_gate(
    folder: GateFolder,
    question: GateQuestion,
    benchmarks: Sequence[Benchmark],
) -> Gate:
    """Read the runs of both arms, and decide.

    Raises:
        InputError: a file of a run is missing or damaged, or no request has a scored answer in both arms.
    """
    pairs = pair_answers(folder, question.runs, benchmarks)
    boards = make_boards(_read_arms(folder, question, benchmarks), benchmarks)
    if not any(pair.difference is not None for pair in pairs):
        raise InputError(
            "gate: no request has a scored answer of both; the runs are in"
            f" {folder.output_path / 'runs'}"
        )
    table = SharedTable(boards, [BASE, CANDIDATE])
    if table.refusals:
        raise InputError(f"gate: {table.refusals[0]}")
    by_length, by_order = agreements(pairs)
    paired = _pair_parts(table, _split(table)) | _pair_missing(pairs)
    parts = _decide(paired, question)
    tasks = _pair_parts(table, _split_tasks(table))
    return Gate(
        question=question,
        parts=parts,
        tasks=_decide(tasks, question),
        lengths=by_length,
        orders=by_order,
        findings=[*_find_floors(parts), *find_differences(pairs)],
        pairs=pairs,
        boards=boards,
        # Among themselves, tasks that are in no mean have equal weights.
        outside=table.outside if table.weighted_indices else (),
    )


def _find_floors(parts: Mapping[str, Drop]) -> list[Finding]:
    """Return a finding for each length at which no drop could be seen."""
    findings = []
    for name, drop in parts.items():
        if drop.is_at_floor and name != ALL:
            findings.append(describe_floor(name, drop))
    return findings


def _pair_parts(
    table: SharedTable,
    parts: Mapping[str, Sequence[int]],
) -> dict[str, Sequence[Pairs]]:
    """Return the scores of both arms in each part."""
    pairs: dict[str, Sequence[Pairs]] = {}
    for name, indices in parts.items():
        pairs[name] = table.pair_scores(CANDIDATE, BASE, indices)
    return pairs


def _read_arms(
    folder: GateFolder,
    question: GateQuestion,
    benchmarks: Sequence[Benchmark],
) -> list[Result]:
    """Return the results of the gate's runs, with the arm as the model, because both can be one model."""
    results = []
    for index, arm in enumerate((BASE, CANDIDATE)):
        runs = {names[index] for names in question.runs}
        for result in read_results(folder.suite_folder(arm), benchmarks):
            if result.run and result.run.path.name in runs:
                results.append(replace(result, model=ShownModel(arm)))
    return results


def _split(table: SharedTable) -> dict[str, list[int]]:
    """Return the indices of the instances by length, of all if there are several lengths, and by depth."""
    lengths: dict[int | None, list[int]] = defaultdict(list)
    depths: dict[str, list[int]] = {name: [] for name in DEPTHS}
    for index, item in enumerate(table.items):
        lengths[item.length].append(index)
        depth = table.depth(index)
        if depth is not None:
            name = next(name for name, percents in DEPTHS.items() if depth in percents)
            depths[name].append(index)
    parts = {}
    for length in sort_lengths(lengths):
        parts[part_name(length)] = lengths[length]
    if len(parts) > 1:
        parts[ALL] = list(range(len(table.items)))
    present = {name: indices for name, indices in depths.items() if indices}
    return parts | (present if len(present) > 1 else {})


def _pair_missing(pairs: Sequence[AnswerPair]) -> dict[str, list[Pairs]]:
    """Return which requests have a scored answer, as scores of a part, if one of both arms lacks some.

    A request that one side refuses whenever it is sent has no score, but its number decides. A failure that can pass,
    such as a limit of the provider, says nothing about the model.
    """
    candidate = []
    base = []
    groups = []
    for pair in pairs:
        has_scores = (pair.candidate.score is not None, pair.base.score is not None)
        if not pair.may_pass and any(has_scores):
            candidate.append(float(has_scores[0]))
            base.append(float(has_scores[1]))
            groups.append(pair.base.group)
    if all(candidate) and all(base):
        return {}
    return {
        ANSWERS: [
            Pairs(
                a=candidate,
                b=base,
                groups=groups,
                weight=1.0,
            )
        ]
    }


def _split_tasks(table: SharedTable) -> dict[str, list[int]]:
    tasks: dict[str, list[int]] = defaultdict(list)
    for index, item in enumerate(table.items):
        tasks[f"{item.task or item.entry} {part_name(item.length)}"].append(index)
    return tasks


def _decide(
    pairs: Mapping[str, Sequence[Pairs]],
    question: GateQuestion,
) -> dict[str, Drop]:
    depths = [name for name in DEPTHS if name in pairs]
    return decide_drops(pairs, question.margin, question.power, question.looks, depths)


def read_looks(path: Path, compared: Mapping[str, Any]) -> Any:
    """Return the field `looks` of a gate's file: the numbers of questions at all earlier looks. None without such looks.

    Args:
        path: the file with the results of the last look.
        compared: the fields that say what is compared, such as the names of both deployments. A gate with other values
            has had no look.

    Raises:
        InputError: the file is damaged.
    """
    if not path.exists():
        return None
    earlier = read_json(path)
    with reading(path):
        if any(earlier[name] != value for name, value in compared.items()):
            return None
        return earlier["looks"]


def _sizes(parts: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    sizes = {}
    for part in parts:
        sizes[part["part"]] = [int(part["instances"])]
    return sizes


def gate_json(gate: Gate) -> dict[str, Any]:
    """Return the results as plain data. Scores and differences are in 0…1."""
    question = gate.question
    parts = []
    for name, drop in gate.parts.items():
        parts.append(_drop_json(name, drop))
    tasks = []
    for name, drop in gate.tasks.items():
        tasks.append(_drop_json(name, drop))
    now = _sizes([*parts, *tasks])
    earlier = question.looks
    looks = {}
    for name in {**earlier, **now}:
        looks[name] = sorted({*earlier.get(name, ()), *now.get(name, ())})
    return {
        "verdict": gate.verdict.name.lower(),
        "exit_status": int(gate.verdict),
        "base": question.base,
        "candidate": question.candidate,
        "max_drop": question.margin,
        "power": question.power,
        "changed": gate.difference_share,
        "missing_instances": gate.missing,
        "parts": parts,
        "tasks": tasks,
        "looks": looks,
        "visible_drop": gate.visible_drop,
        "answers": [vars(length) for length in gate.lengths],
        "orders": [vars(order) for order in gate.orders],
        "findings": [vars(finding) for finding in gate.findings],
        "outside": list(gate.outside),
        "runs": [list(names) for names in question.runs],
    }


def _drop_json(name: str, drop: Drop) -> dict[str, Any]:
    comparison = drop.comparison
    return {
        "part": name,
        "base": drop.base,
        "candidate": drop.candidate,
        "difference": comparison.effect.mean,
        "low": comparison.effect.low,
        "high": comparison.effect.high,
        "instances": comparison.effect.n,
        "better": comparison.wins,
        "worse": comparison.losses,
        "equal": comparison.ties,
        "p_worse": drop.p_worse,
        "verdict": drop.verdict.name.lower(),
        "suspect": drop.is_suspect,
        "missing_instances": drop.more,
    }
