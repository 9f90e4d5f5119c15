"""Reads the runs of a gate's two arms, and decides whether the candidate is worse than the base."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np

from helm_longctx.errors import InputError
from helm_longctx.results.boards import Board, make_boards
from helm_longctx.results.comparison import Table
from helm_longctx.results.gates.answers import EQUAL, Agreement, AnswerPair, agreements, pair_answers, part_name
from helm_longctx.results.gates.findings import Finding, find_differences
from helm_longctx.results.gates.folder import BASE, CANDIDATE, GateFolder
from helm_longctx.results.reading import Result, read_results
from helm_longctx.results.statistics.comparison import Pairs
from helm_longctx.results.statistics.noninferiority import Drop, Verdict, combine_verdicts, decide_drops
from helm_longctx.tasks.benchmark import Benchmark

ALL = "all"
"""The name of the part with all lengths."""


@dataclass(frozen=True)
class Question:
    """What a gate decides.

    Args:
        base, candidate: the names of both deployments.
        margin: the largest drop that is accepted, 0 to 1.
        power: the wanted probability of a decision.
        runs: the names of the folders of each run of the base and of the candidate.
    """

    base: str
    candidate: str
    margin: float
    power: float
    runs: Sequence[tuple[str, str]]


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
        parts: each length, and all lengths if there are several.
        tasks: each task, with tests of their own, which decide nothing.
        lengths, orders: how far the answers agree, by length, and by the arm that was asked first.
        findings: what was found in the requests.
        pairs: the answers of both arms to each request.
        boards: the scores of both arms; the models' names are those of the arms.
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
        """The number of instances that each undecided length still needs."""
        return {name: part.drop.more for name, part in self.parts.items() if part.drop.more and name != ALL}

    @property
    def changed(self) -> float:
        """The share of the requests with a score in both arms whose scores differ."""
        return fmean(abs(pair.difference) >= EQUAL for pair in self.pairs if pair.difference is not None)


def points(margin: float) -> str:
    """Return a margin for readers, such as "2 points"."""
    return f"{100 * margin:g} point{'' if margin == 0.01 else 's'}"


def decide(drops: Mapping[str, Drop], findings: Sequence[Finding]) -> Verdict:
    """Return the verdict on the drops at each length and on what was found in the requests."""
    found = [Verdict.WORSE for each in findings if each.decides_worse]
    found += [Verdict.UNDECIDED for each in findings if each.kind == "unanswered"]
    # Over all lengths "worse" counts, but "no worse" says nothing about a single length.
    scores = [drop.verdict for name, drop in drops.items() if name != ALL or drop.is_worse]
    return combine_verdicts([*found, *scores])


def read_gate(folder: GateFolder, question: Question, benchmarks: Sequence[Benchmark]) -> Gate:
    """Read the runs of both arms, and decide.

    Raises:
        InputError: a file of a run is missing or damaged, or no request has a scored answer in both arms.
    """
    pairs = pair_answers(folder, question.runs, benchmarks)
    boards = make_boards(_read_arms(folder, question, benchmarks), benchmarks)
    if not any(pair.difference is not None for pair in pairs):
        raise InputError(f"gate: no request has a scored answer of both; the runs are in {folder.output_path / 'runs'}")
    table = Table(boards, [BASE, CANDIDATE])
    by_length, by_order = agreements(pairs)
    return Gate(
        question,
        _decide(table, _split_lengths(table), question),
        _decide(table, _split_tasks(table), question),
        by_length,
        by_order,
        find_differences(pairs),
        pairs,
        boards,
        # Among themselves, tasks that are in no mean have equal weights.
        table.outside if any(table.weights) else (),
    )


def _read_arms(folder: GateFolder, question: Question, benchmarks: Sequence[Benchmark]) -> list[Result]:
    """Return the results of the gate's runs, with the arm as the model, because both can be one model."""
    return [
        replace(result, model=arm)
        for place, arm in enumerate((BASE, CANDIDATE))
        for result in read_results(folder.suite_folder(arm), benchmarks)
        if result.run and result.run.path.name in {names[place] for names in question.runs}
    ]


def _split_lengths(table: Table) -> dict[str, list[int]]:
    """Return the places of the instances by length, and of all if there are several lengths."""
    lengths: dict[int | None, list[int]] = defaultdict(list)
    for place, item in enumerate(table.items):
        lengths[item.length].append(place)
    parts = {part_name(length): lengths[length] for length in sorted(lengths, key=lambda each: each or 0)}
    return parts if len(parts) == 1 else {**parts, ALL: list(range(len(table.items)))}


def _split_tasks(table: Table) -> dict[str, list[int]]:
    tasks: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(table.items):
        tasks[f"{item.task or item.entry} {part_name(item.length)}"].append(place)
    return tasks


def _decide(table: Table, places: Mapping[str, list[int]], question: Question) -> dict[str, Part]:
    pairs = {name: table.pair_scores(CANDIDATE, BASE, part) for name, part in places.items()}
    drops = decide_drops(pairs, question.margin, question.power)
    return {name: Part(_mean(pairs[name], "b"), _mean(pairs[name], "a"), drop) for name, drop in drops.items()}


def _mean(pairs: Sequence[Pairs], side: str) -> float:
    means = [float(np.mean(getattr(pair, side))) for pair in pairs]
    return float(np.average(means, weights=[pair.weight for pair in pairs]))


def gate_json(gate: Gate) -> dict[str, Any]:
    """Return the results as plain data. Scores and differences are in 0…1."""
    question = gate.question
    return {
        "verdict": gate.verdict.name.lower(),
        "exit_status": int(gate.verdict),
        "base": question.base,
        "candidate": question.candidate,
        "max_drop": question.margin,
        "power": question.power,
        "changed": gate.changed,
        "missing_instances": gate.missing,
        "parts": [_part_json(name, part) for name, part in gate.parts.items()],
        "tasks": [_part_json(name, part) for name, part in gate.tasks.items()],
        "answers": [vars(each) for each in gate.lengths],
        "orders": [vars(each) for each in gate.orders],
        "findings": [vars(each) for each in gate.findings],
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
        "missing_instances": part.drop.more,
    }
