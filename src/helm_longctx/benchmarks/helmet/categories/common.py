"""What the categories share: sizes by length, and arguments of tasks.

Source of sizes, output budgets and sample sizes in all categories: princeton-nlp/HELMET at 4526dfb,
scripts/generate_configs.py (4k to 128k). Beyond 128k the sizes grow in proportion, as far as there is data. There are
no published numbers for those lengths.
"""

from functools import partial

from helm_longctx.benchmarks.helmet.release import release_file
from helm_longctx.data.hub import HubFile
from helm_longctx.data.release import ReleaseFile
from helm_longctx.tasks.lengths import STANDARD
from helm_longctx.tasks.task import ProtocolArgument, Task, Variant

STOP_VARIANTS: dict[ProtocolArgument, Variant] = {"paper": Variant(), "current": Variant(stop=("\n",))}
"""The published completions have no stop sequence. Since 2025-08 the official code stops them at a newline."""

MOST_GENERATED = 10_000
"""Most examples of a generated task: a hundred times the official sample."""

make_task = partial(Task, prefix_scored=True)
"""Makes a task of HELMET, which puts the answer prefix before a completion's output when it scores it (eval.py:101)."""

OFFICIAL = [STANDARD[label] for label in ("4k", "8k", "16k", "32k", "64k", "128k")]


def sizes(*official: int, most: int | None = None) -> dict[int, int]:
    """Return the sizes for all lengths: the official ones for 4k, 8k, … 128k, then in proportion up to 1m.

    Args:
        most: number of units that the data has. Lengths that need more are left out.
    """
    beyond = [length for length in STANDARD.values() if length > OFFICIAL[-1]]
    # HELMET has no configuration beyond 128k at this commit, so there is nothing official to follow.
    further = {length: official[-1] * length // OFFICIAL[-1] for length in beyond}
    sizes_to_128k = dict(zip(OFFICIAL, official, strict=True))
    return sizes_to_128k | {length: units for length, units in further.items() if most is None or units <= most}


def text_sizes(max_tokens: int, around: int = 200) -> dict[int, int]:
    """Return the number of tokens of text at each length.

    `around` tokens are left for the rest of the prompt. There is no length above 128k, because the texts need not be
    longer.
    """
    return {length: length - around - max_tokens for length in OFFICIAL}


def official_file(length: int, path: str) -> tuple[ReleaseFile, ...]:
    """Return the source of a file of the release; none at lengths that the release does not have."""
    return (release_file(path),) if length in OFFICIAL else ()


def infbench_file(split: str) -> HubFile:
    """Return the source of a split of InfiniteBench."""
    path = f"hub/xinrongzhang2022__infinitebench/{split}.jsonl"
    return HubFile("xinrongzhang2022/InfiniteBench", f"{split}.jsonl", path)
