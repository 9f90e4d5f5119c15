"""Reads the runs of a gate's two arms, and decides whether the candidate is worse than the base."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np

from helm_longctx.apps.gate.answers import (
    EQUAL,
    Agreement,
    AnswerPair,
    agreements,
    pair_answers,
    part_name,
)
from helm_longctx.apps.gate.findings import Finding, find_differences
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

ALL = "all"
ANSWERS = "answers"
"""The names of the part with all lengths, and of the part that counts which requests have a scored answer."""

DEPTHS = {"beginning": (0, 20), "middle": (40, 60), "end": (80, 100)}
"""The parts of prompts in which evidence can be, and their depths in percent."""


@dataclass(frozen=True)
class Question:
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
class Part:
    """The scores of both arms in a part, and the decision.

    Args:
        base, candidate: the mean scores.
        drop: the decision. The difference is the candidate's score minus the base's.
    """

    base: float
    candidate: float
    drop: Drop


@dataclass(frozen=True)
class Gate:
    """The results of a gate.

    Args:
        parts: each length, all lengths if there are several, the depths if evidence is at several of them, and the
            requests with a scored answer if only one deployment has some.
        tasks: each task, with tests of their own, which decide nothing.
        lengths, orders: how far the answers agree, by length, and by the arm that was asked first.
        findings: what was found in the requests.
        pairs: the answers of both arms to each request.
        boards: the scores of both arms; the models are named like the arms.
        outside: the tasks that do not decide, because the benchmark's means leave them out.
    """

    question: Question
    parts: Mapping[str, Part]
    tasks: Mapping[str, Part]
    lengths: Sequence[Agreement]
    orders: Sequence[Agreement]
    findings: Sequence[Finding]
    pairs: Sequence[AnswerPair]
    boards: Sequence[Board]
    outside: Sequence[str]

    @cached_property
    def verdict(self) -> Verdict:
        """The decision on all lengths and findings."""
        return decide({name: part.drop for name, part in self.parts.items()}, self.findings)

    @property
    def missing(self) -> dict[str, int]:
        """The number of instances that each undecided length, or suspect depth, still needs."""
        return {
            name: part.drop.more
            for name, part in self.parts.items()
            if part.drop.more and name != ALL
        }

    @property
    def visible_drop(self) -> float | None:
        """The smallest drop at one depth that the sample finds with the wanted power; None if there are no depths."""
        depths = [
            self.parts[name].drop.comparison.effect.n for name in DEPTHS if name in self.parts
        ]
        return (
            visible_drop(min(depths), self.difference_share, len(depths), self.question.power)
            if depths
            else None
        )

    @property
    def difference_share(self) -> float:
        """The share of the requests with a score in both arms whose scores differ."""
        return fmean(
            abs(pair.difference) >= EQUAL for pair in self.pairs if pair.difference is not None
        )


def decide(drops: Mapping[str, Drop], findings: Sequence[Finding]) -> Verdict:
    """Return the verdict on the drops in each part and on what was found in the requests."""
    found = [Verdict.WORSE for finding in findings if finding.decides_worse]
    still_open = [Verdict.UNDECIDED for finding in findings if finding.leaves_open]
    return combine_verdicts(
        [
            *found,
            *still_open,
            *(drop.verdict for name, drop in drops.items() if is_counted(name, drop)),
        ]
    )


def is_counted(name: str, drop: Drop) -> bool:
    """Whether the verdict on a part is part of the whole verdict."""
    # Over all lengths "worse" counts, but "no worse" says nothing about a single length. A depth has few instances, so
    # it need not be shown to be no worse, unless it has a drop.
    return drop.is_worse or drop.is_suspect or name not in (ALL, *DEPTHS)


def read_gate(folder: GateFolder, question: Question, benchmarks: Sequence[Benchmark]) -> Gate:
    """Read the runs of both arms, and decide.

    Raises:
        InputError: a file of a run is missing or damaged, or no request has a scored answer in both arms.
    """
    pairs = pair_answers(folder, question.runs, benchmarks)
    boards = make_boards(_read_arms(folder, question, benchmarks), benchmarks)
    if not any(pair.difference is not None for pair in pairs):
        raise InputError(
            f"gate: no request has a scored answer of both; the runs are in {folder.output_path / 'runs'}"
        )
    table = SharedTable(boards, [BASE, CANDIDATE])
    if table.refusals:
        raise InputError(f"gate: {table.refusals[0]}")
    by_length, by_order = agreements(pairs)
    return Gate(
        question,
        _decide(
            {name: table.pair_scores(CANDIDATE, BASE, part) for name, part in _split(table).items()}
            | _pair_missing(pairs),
            question,
        ),
        _decide(
            {
                name: table.pair_scores(CANDIDATE, BASE, part)
                for name, part in _split_tasks(table).items()
            },
            question,
        ),
        by_length,
        by_order,
        find_differences(pairs),
        pairs,
        boards,
        # Among themselves, tasks that are in no mean have equal weights.
        table.outside if any(table.weights) else (),
    )


def _read_arms(
    folder: GateFolder, question: Question, benchmarks: Sequence[Benchmark]
) -> list[Result]:
    """Return the results of the gate's runs, with the arm as the model, because both can be one model."""
    return [
        replace(result, model=ShownModel(arm))
        for place, arm in enumerate((BASE, CANDIDATE))
        for result in read_results(folder.suite_folder(arm), benchmarks)
        if result.run and result.run.path.name in {names[place] for names in question.runs}
    ]


def _split(table: SharedTable) -> dict[str, list[int]]:
    """Return the places of the instances by length, of all if there are several lengths, and by depth."""
    lengths: dict[int | None, list[int]] = defaultdict(list)
    depths: dict[str, list[int]] = {name: [] for name in DEPTHS}
    for place, item in enumerate(table.items):
        lengths[item.length].append(place)
        depth = table.depth(place)
        if depth is not None:
            depths[next(name for name, percents in DEPTHS.items() if depth in percents)].append(
                place
            )
    parts = {
        part_name(length): lengths[length] for length in sorted(lengths, key=lambda each: each or 0)
    }
    if len(parts) > 1:
        parts[ALL] = list(range(len(table.items)))
    found = {name: places for name, places in depths.items() if places}
    return parts | (found if len(found) > 1 else {})


def _pair_missing(pairs: Sequence[AnswerPair]) -> dict[str, list[Pairs]]:
    """Return which requests have a scored answer, as scores of a part, if one of both arms lacks some.

    A request that one side refuses whenever it is sent has no score, but its number decides. A failure that can pass,
    such as a limit of the provider, says nothing about the model.
    """
    lasting = [pair for pair in pairs if not pair.may_pass]
    has_score = [
        [score.score is not None for score in (pair.candidate, pair.base)] for pair in lasting
    ]
    rows = [
        (found, pair.base.group)
        for found, pair in zip(has_score, lasting, strict=True)
        if any(found)
    ]
    if all(all(found) for found, _ in rows):
        return {}
    candidate, base = ([float(found[side]) for found, _ in rows] for side in (0, 1))
    return {ANSWERS: [Pairs(candidate, base, [group for _, group in rows], 1.0)]}


def _split_tasks(table: SharedTable) -> dict[str, list[int]]:
    tasks: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(table.items):
        tasks[f"{item.task or item.entry} {part_name(item.length)}"].append(place)
    return tasks


def _decide(pairs: Mapping[str, Sequence[Pairs]], question: Question) -> dict[str, Part]:
    depths = [name for name in DEPTHS if name in pairs]
    drops = decide_drops(pairs, question.margin, question.power, question.looks, depths)
    return {
        name: Part(_mean(pairs[name], "b"), _mean(pairs[name], "a"), drop)
        for name, drop in drops.items()
    }


def _mean(pairs: Sequence[Pairs], side: str) -> float:
    means = [float(np.mean(getattr(pair, side))) for pair in pairs]
    return float(np.average(means, weights=[pair.weight for pair in pairs]))


def read_looks(folder: GateFolder, base: str, candidate: str) -> dict[str, list[int]]:
    """Return the numbers of instances at all earlier looks at a gate, by the part's name.

    Args:
        base, candidate: the names of both deployments. A gate of others has had no look.

    Raises:
        InputError: the file with the results of the last look is damaged.
    """
    if not folder.json_path.exists():
        return {}
    found = read_json(folder.json_path)
    with reading(folder.json_path):
        if (found["base"], found["candidate"]) != (base, candidate):
            return {}
        # A file of an earlier version has only its own look.
        return dict(found.get("looks") or _sizes([*found["parts"], *found["tasks"]]))


def _sizes(parts: Iterable[Mapping[str, Any]]) -> dict[str, list[int]]:
    return {part["part"]: [int(part["instances"])] for part in parts}


def gate_json(gate: Gate) -> dict[str, Any]:
    """Return the results as plain data. Scores and differences are in 0…1."""
    question = gate.question
    parts, tasks = (
        [_part_json(name, part) for name, part in each.items()] for each in (gate.parts, gate.tasks)
    )
    now = _sizes([*parts, *tasks])
    earlier = question.looks
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
        "looks": {
            name: sorted({*earlier.get(name, ()), *now.get(name, ())})
            for name in {**earlier, **now}
        },
        "visible_drop": gate.visible_drop,
        "answers": [vars(length) for length in gate.lengths],
        "orders": [vars(order) for order in gate.orders],
        "findings": [vars(finding) for finding in gate.findings],
        "outside": list(gate.outside),
        "runs": [list(names) for names in question.runs],
    }


def _part_json(name: str, part: Part) -> dict[str, Any]:
    found = part.drop.comparison
    return {
        "part": name,
        "base": part.base,
        "candidate": part.candidate,
        "difference": found.effect.mean,
        "low": found.effect.low,
        "high": found.effect.high,
        "instances": found.effect.n,
        "better": found.wins,
        "worse": found.losses,
        "equal": found.ties,
        "p_worse": part.drop.p_worse,
        "verdict": part.drop.verdict.name.lower(),
        "suspect": part.drop.is_suspect,
        "missing_instances": part.drop.more,
    }
