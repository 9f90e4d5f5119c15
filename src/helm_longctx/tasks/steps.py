"""Steps of training in the names of checkpoints."""

import re
from typing import NamedTuple

_STEP = re.compile(
    r"(?:^|(?<=[^a-z]))(?:global[_-]?step|checkpoint|step|iter|iteration)[_-]?(\d+)(k?)(?![\d.])|-(\d+)(k?)$",
    re.IGNORECASE,
)


class _Step(NamedTuple):
    """A step of training.

    Args:
        family: the name without the number. The checkpoints of one training share it.
        number: the step.
        is_named: whether the name has a word for a step before the number. A number alone can also be that of a run.
    """

    family: str
    number: int
    is_named: bool = False


def find_step(name: str, given: int | None = None) -> _Step | None:
    """Return the step in a model's name, such as `step-1000`, `checkpoint-500`, `global_step20` or `run-1000`.

    Args:
        name: the name of a model, a folder or a revision. The last number that says a step counts.
        given: the step if the user has given it; then the name need not have one.
    """
    matches = list(_STEP.finditer(name))
    if not matches:
        if given is None:
            return None
        return _Step(name.rpartition("/")[0] or name, given)
    last = matches[-1]
    group = 1 if last[1] else 3
    number = int(last[group]) * (1000 if last[group + 1] else 1)
    return _Step(
        family=f"{name[: last.start(group)]}*{name[last.end(group + 1) :]}",
        number=number if given is None else given,
        is_named=group == 1,
    )
