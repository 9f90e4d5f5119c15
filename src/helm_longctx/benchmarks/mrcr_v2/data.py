"""Reads MRCR v2's files: one CSV file for each number of needles and bin, with transcripts as single texts.

Source: google-deepmind/eval_hub at 67b7fd2, eval_hub/mrcr_v2/download.sh (addresses), mrcr_utils.py (columns) and
run_evaluation.py (prompt).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helm_longctx.errors import InputError
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.sources.bucket import BucketFile
from helm_longctx.sources.tables import read_csv

BUCKET = "mrcr_v2"
NEEDLES = (2, 4, 8)
LABELS = ("8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m", "2m", "4m", "8m")
LENGTHS = {label: 8192 << power for power, label in enumerate(LABELS)}
"""The most tokens of a transcript, by the length's label. Google DeepMind counts them with its own tokenizer."""
CUMULATIVE = LENGTHS["128k"]
"""The length of the files that have transcripts of all bins up to it."""
COLUMNS = ("queries", "answer", "view_ops", "context_len", "answer_context_position")

_START = re.compile(r"\(\s*(\d+)\s*,")


@dataclass(frozen=True)
class Transcript:
    """A row of a file.

    Args:
        number: its place in the file, from 0.
        prompt: the transcript, which ends with the request.
        answer: the expected output: twelve random characters, and the text.
        request: the last turn.
        tokens: number of tokens according to the file.
        depth: the position of the text that is asked for, 0 (start) to 1 (end).
    """

    number: int
    prompt: str
    answer: str
    request: str
    tokens: int
    depth: float

    @property
    def group(self) -> str:
        """A digest of the transcript without its request, which rows on the same transcript share."""
        return digest(self.prompt.removesuffix(self.request))[:12]


def file_of(needles: int, length: int, cumulative: bool = False) -> BucketFile:
    """Return the file of a number of needles and a length.

    Args:
        cumulative: whether it has the transcripts of all bins up to the length.
    """
    which = "upto_128K" if cumulative else f"in_({length // 2},{length})"
    name = f"mrcr_v2p1_{needles}needle_{which}_dynamic_fewshot_text_style_fast.csv"
    return BucketFile(BUCKET, name, f"mrcr_v2/{name}")


def transcripts(path: Path) -> Iterator[Transcript]:
    """Yield the rows in file order; only a few are in memory at a time.

    Raises:
        InputError: there is no such file, or it is malformed.
    """
    for number, row in enumerate(read_csv(path, COLUMNS)):
        yield _transcript(number, row, f"{path}: row {number + 1}")


def _transcript(number: int, row: dict[str, str], where: str) -> Transcript:
    start = _START.match(row["answer_context_position"].strip())
    if not row["context_len"].isdecimal() or int(row["context_len"]) < 1 or start is None:
        raise InputError(f"{where}: 'context_len' and 'answer_context_position' must be a number and a pair of numbers")
    tokens = int(row["context_len"])
    depth = min(int(start[1]) / tokens, 1.0)
    return Transcript(number, row["queries"], row["answer"], row["view_ops"], tokens, depth)
