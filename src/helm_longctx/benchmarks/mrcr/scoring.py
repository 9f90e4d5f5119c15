"""Computes MRCR's score, the similarity of the output to the answer.

Source: the card of the hub data set openai/mrcr (`grade`), which princeton-nlp/HELMET at 5dde2de (data_module/mrcr.py,
`_grade`) and crfm-helm's metric `openai_mrcr_accuracy` repeat. A record has `prediction`, `answer` and
`random_string_to_prepend`.
"""

from difflib import SequenceMatcher

from helm_longctx.tasks.task import Record, Scores


def score(record: Record) -> Scores:
    """Return the matching ratio of the texts after the random string; 0 if the output does not begin with that string.

    The result is empty if the record has no answer or no random string.
    """
    if record.get("answer") is None or record.get("random_string_to_prepend") is None:
        return {}
    output, prefix = record["prediction"], record["random_string_to_prepend"]
    # Even a perfect answer scores 0 without the string, which shows that the model follows the last turn (the card's
    # `grade`).
    if not output.startswith(prefix):
        return {"score": 0.0}
    answer = record["answer"].removeprefix(prefix)
    # SequenceMatcher is not symmetric: the official code gives it the output first.
    return {"score": float(SequenceMatcher(None, output.removeprefix(prefix), answer).ratio())}
