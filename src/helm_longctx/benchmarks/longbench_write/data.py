"""Reads LongBench-Write's requests, and the rubric of its judge.

Source: THUDM/LongWriter at 3fcfdff, evaluation/.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice

from helm_longctx.tasks import DataRoot, Example, JsonLines, PinnedFile, Settings, Task

REPOSITORY = "THUDM/LongWriter"
COMMIT = "3fcfdff43deceb49f7936c6bf25ad88d61df0bfa"
TOKENS_OF_A_WORD = 1.5
"""The approximate number of tokens of an English word or a Chinese character."""


_pinned_file = partial(PinnedFile.of_repository, f"{REPOSITORY}/{COMMIT}/evaluation", place="longbench_write")
FILES = {
    "requests": _pinned_file(
        "longbench_write.jsonl", "1f6e99497cc24d65894d65e014062f398ba946ebdd254b7f8b339e48d3ab5779"
    ),
    "english_requests": _pinned_file(
        "longbench_write_en.jsonl", "87800927761f340e48899e4df5d47fb7211ad4936a63420dbfa979660414259f"
    ),
    "longwrite_ruler": _pinned_file(
        "longwrite_ruler.jsonl", "a1d4ebf0df0fa1600567691d11c9a52de3037c4a372970ed2e8f52f2889e0a62"
    ),
}
"""The file of each task."""
RUBRIC = _pinned_file("judge.txt", "2c423ce88a0eb6a61482f427997a3c03c4bc11fe861102895dcac45926ae1d57")
"""The template of the judge's prompt."""


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the requests in file order, or only the first `num_samples` if that is given."""
    # Without a judge the rubric may be absent.
    has_rubric = task.has_judge and root.has(RUBRIC.path)
    rubric = {"rubric": (root / RUBRIC.path).read_text(encoding="utf-8")} if has_rubric else {}
    rows = JsonLines(root / FILES[task.name].path, {"prompt": str, "length": int})
    for number, row in enumerate(islice(rows, task.sample(settings))):
        yield Example(
            id=f"{task.name}-{number}",
            fields={"input": row["prompt"]},
            references=[],
            source="official",
            record={"length": row["length"], **rubric},
            answer_tokens=round(TOKENS_OF_A_WORD * row["length"]),
        )
