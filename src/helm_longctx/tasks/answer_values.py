"""The statistics of one answer, as the metric hands them to the records."""

from collections.abc import Mapping
from typing import NamedTuple


class AnswerValues(NamedTuple):
    """The statistics of an answer that have a value.

    Args:
        instance: the id of the instance.
        repeat: the number of the repeat, from 0.
        values: the value of each statistic, by its name.
    """

    task: str
    instance: str
    repeat: int
    values: Mapping[str, float]
