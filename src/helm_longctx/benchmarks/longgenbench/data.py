"""Reads LongGenBench's prompts and checks.

Source: mozhu621/LongGenBench at 62c0e86, Dataset/ and Evalution/Run_*.sh (output budgets).
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from statistics import fmean

from helm_longctx.tasks import DataRoot, Example, JsonArray, PinnedFile, Settings, Task, Types
from helm_longctx.tasks.task import TEXT, Shape, is_number, is_text, is_whole

REPOSITORY = "mozhu621/LongGenBench"
COMMIT = "62c0e869219c225671a0b8f50217b0cd836b882b"
BUDGETS = {16384: 16000, 32768: 32000}
"""The output budget at each level, in tokens."""
KINDS = ("once", "range", "periodic")
"""The kinds of instructions: for one entry, for consecutive entries, and for entries at regular intervals."""
CHECKS = tuple(f"checks_{kind}" for kind in KINDS)
COLUMNS: Types = {"prefix": str, "type": str, "number": int, **dict.fromkeys(CHECKS, dict)}
"""The columns that the scorer reads."""


_pinned_file = partial(PinnedFile.of_repository, f"{REPOSITORY}/{COMMIT}/Dataset", place="longgenbench")
FILES = {
    16384: _pinned_file("Dataset_short.json", "3cf98c4badc330a93d1010f57f6658b09f2ebc2e6428a3df083b652d902d96e8"),
    32768: _pinned_file("Dataset_long.json", "f61048da5ecfb1b717584af8b2dc5999198459e9b95aceedde2dcc6f5cdd35e7"),
}


_CHECKS = Shape(
    "an object of texts by the numbers of entries",
    # Entries have shorter numbers, and Python refuses to convert a number of thousands of digits.
    lambda value: (
        isinstance(value, dict) and all(k.isdecimal() and len(k) < 10 and is_text(v) for k, v in value.items())
    ),
)
RECORD_SHAPES = {
    "prefix": TEXT,
    "type": TEXT,
    "number": Shape("a whole number from 1 to 9999", lambda value: is_whole(value) and 0 < value < 10_000),
    "average_checks": Shape("a number above 0", lambda value: is_number(value) and value > 0),
    **dict.fromkeys(CHECKS, _CHECKS),
}


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the prompts in file order, or only the first `num_samples` if that is given."""
    rows = JsonArray(root / FILES[settings.level].path, {"prompt": str, **COLUMNS})
    sample = list(islice(rows, task.sample(settings)))
    average = fmean(sum(len(row[name]) for name in CHECKS) for row in sample)
    for number, row in enumerate(sample):
        yield Example(
            id=f"{task.name}-{number}",
            fields={"input": row["prompt"]},
            references=[],
            source="official",
            record={**{name: row[name] for name in COLUMNS}, "average_checks": average},
            answer_tokens=task.output_tokens(settings),
        )
