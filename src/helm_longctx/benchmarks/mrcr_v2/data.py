"""Reads MRCR v2's files: one CSV file for each number of needles and bin, with transcripts as single texts.

Source: google-deepmind/eval_hub at 67b7fd2, eval_hub/mrcr_v2/download.sh (addresses), mrcr_utils.py (columns) and
run_evaluation.py (prompt).
"""

import re
from collections.abc import Iterator
from itertools import islice

from helm_longctx.data.tables import read_csv
from helm_longctx.data.web import BucketFile
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks import DataRoot, Example, InputError, Settings, Task

BUCKET = "mrcr_v2"
NEEDLES = (2, 4, 8)
LABELS = ("8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m", "2m", "4m", "8m")
LENGTHS = {label: 8192 << power for power, label in enumerate(LABELS)}
"""The most tokens of a transcript, by the length's label. Google DeepMind counts them with its own tokenizer."""
CUMULATIVE = LENGTHS["128k"]
"""The length of the files that have transcripts of all bins up to it."""
COLUMNS = ("queries", "answer", "view_ops", "context_len", "answer_context_position")

_START = re.compile(r"\(\s*(\d+)\s*,")


def file_of(needles: int, length: int, cumulative: bool = False) -> BucketFile:
    """Return the file of a number of needles and a length.

    Args:
        cumulative: whether it has the transcripts of all bins up to the length.
    """
    which = "upto_128K" if cumulative else f"in_({length // 2},{length})"
    name = f"mrcr_v2p1_{needles}needle_{which}_dynamic_fewshot_text_style_fast.csv"
    return BucketFile(BUCKET, name, f"mrcr_v2/{name}")


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the transcripts of a file in its order, or only the first `num_samples` if that is given.

    Only a few rows are in memory at a time.
    """
    (path,) = task.paths(settings.length)
    for number, row in enumerate(islice(read_csv(root / path, COLUMNS), task.sample(settings))):
        prompt, answer, request = row["queries"], row["answer"], row["view_ops"]
        tokens, place = row["context_len"], _START.match(row["answer_context_position"].strip())
        if not tokens.isdecimal() or int(tokens) < 1 or place is None:
            what = "'context_len' and 'answer_context_position' must be a number and a pair of numbers"
            raise InputError(f"{root / path}: row {number + 1}: {what}")
        yield Example(
            id=f"{task.name}-{number}",
            fields={"question": request},
            references=[answer],
            source="official",
            depth=min(int(place[1]) / int(tokens), 1.0),
            input_tokens=int(tokens),
            counter="Google DeepMind's",
            record={"answer": answer},
            messages=[{"role": "user", "content": prompt}],
            # Rows on the same transcript differ only in the request at its end.
            group=f"transcript {digest(prompt.removesuffix(request))[:12]}",
        )
