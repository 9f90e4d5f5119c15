"""The metrics of the five kinds. Each is a share in 0…1 of what was asked for, found in the answer."""

import re
from itertools import takewhile

from helm_longctx.tasks.task import Record, Scores
from helm_longctx.tasks.words import f1

PLACES = ("at_start", "at_quarter", "at_middle", "at_three_quarters", "at_end")
"""Metrics of recall by the depth of the number."""

_SEPARATOR = re.compile(r"[,;\n]|\band\b")
_NUMBER = re.compile(r"\d+")


def score_recall(record: Record) -> Scores:
    """Compute the share of the codes that the answer has, and whether it has the code at each depth."""
    numbers = set(_NUMBER.findall(record["prediction"]))
    found = [float(code in numbers) for code in record["references"]]
    return {"found": sum(found) / len(found), **dict(zip(PLACES, found, strict=False))}


def score_person(record: Record) -> Scores:
    """Compute whether the answer names the person."""
    return {"found": float(record["references"][0].casefold() in record["prediction"].casefold())}


def score_path(record: Record) -> Scores:
    """Compute the share of the arrows that the answer follows without a mistake, from the first right number on."""
    numbers, path = _NUMBER.findall(record["prediction"]), record["references"]
    numbers = numbers[numbers.index(path[0]) :] if path[0] in numbers else []
    pairs = zip(numbers, path, strict=False)
    return {"found": len([*takewhile(lambda pair: pair[0] == pair[1], pairs)]) / len(path)}


def score_towns(record: Record) -> Scores:
    """Compute the F1 of the towns in the answer, and whether the last number in it is their number."""
    parts = (part.strip(" .:-*").casefold() for part in _SEPARATOR.split(record["prediction"]))
    towns = {part for part in parts if part and not _NUMBER.search(part)}
    numbers, expected = _NUMBER.findall(record["prediction"]), {town.casefold() for town in record["references"]}
    return {"found": f1(towns, expected), "number": float(numbers[-1:] == [str(len(expected))])}


def score_items(record: Record) -> Scores:
    """Compute the share of the things that stand at their place in the answer's list."""
    items = [part.strip(" .-*").casefold() for part in record["prediction"].split(",")]
    pairs = zip(items, (item.casefold() for item in record["references"]), strict=False)
    return {"found": sum(one == other for one, other in pairs) / len(record["references"])}
