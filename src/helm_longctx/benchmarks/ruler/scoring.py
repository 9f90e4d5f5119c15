"""RULER's metrics: the share of the expected answers that the output contains.

Source: NVIDIA/RULER at c3f5e3b, scripts/eval/evaluate.py (`postprocess_pred`), scripts/eval/synthetic/constants.py. The
official result is the mean over samples in percent, rounded to two decimals.
"""

import re

from helm_longctx.tasks.task import Record, Scores

_CONTROL = re.compile(r"[\x00-\x1f]")


def score_all(record: Record) -> Scores:
    """Return the share of the answers that the output contains, ignoring case (`string_match_all`)."""
    hits = _hits(record)
    return {"string_match_all": sum(hits) / len(hits)} if hits else {}


def score_any(record: Record) -> Scores:
    """Return whether the output contains one of the answers, ignoring case (`string_match_part`)."""
    hits = _hits(record)
    return {"string_match_part": float(any(hits))} if hits else {}


def _hits(record: Record) -> list[bool]:
    output = _CONTROL.sub("\n", record["prediction"].strip()).strip().lower()
    return [answer.lower() in output for answer in record["references"]]
