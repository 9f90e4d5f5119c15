"""The metrics of HELMET's new tasks, as pure functions.

Source: princeton-nlp/HELMET at 5dde2de, the `post_process` functions of data_module/json_kv.py, graphwalk.py and
longbenchv2.py.
"""

import re

from helm_longctx.benchmarks.helmet.helmet2.prompts import CHOICE_PREFIX
from helm_longctx.benchmarks.helmet.scoring import answer_metrics, parse_output
from helm_longctx.tasks.task import Record, Scores

_FINAL_LIST = re.compile(r"final answer: ?\[([^\]]*)\]?", re.IGNORECASE)
_ANY_LIST = re.compile(r"\[([^\]]*)\]?")


def score_json_kv(record: Record) -> Scores:
    """Score the whole output; the published task also scores the line after its prefix."""
    return answer_metrics(record["prediction"], record["references"])


def score_graphwalk(record: Record) -> Scores:
    """Compute F1 of the nodes in the list after "Final Answer:", or else in the first list.

    A repeated node lowers the precision.
    """
    output, answer = record["prediction"], record["references"]
    match = _FINAL_LIST.search(output) or _ANY_LIST.search(output)
    found = [item.strip() for item in match[1].split(",") if item.strip()] if match else []
    if not answer:
        return {"f1": float(not found)}
    shared = len({*found} & {*answer})
    recall, precision = shared / len(answer), shared / len(found) if found else 0.0
    return {"f1": 2 * (recall * precision) / (recall + precision) if shared else 0.0}


def score_choice(record: Record) -> Scores:
    """Return the better score of the whole output and of the line after the prefix.

    The substring match is for the whole output.
    """
    whole = answer_metrics(record["prediction"], record["references"])
    parsed = answer_metrics(parse_output(record["prediction"], CHOICE_PREFIX), record["references"])
    # The official code raises a KeyError here: it drops this metric from the scores of the parsed line and then reads
    # it.
    return {
        name: value if name == "substring_exact_match" else max(value, parsed[name]) for name, value in whole.items()
    }
