"""Write golden.json, which has the official requests of the fabricated rows, and the scores of odd outputs.

    python -m tests.golden_makers oolong --official FOLDER

FOLDER: a checkout of abertsch72/oolong at adbf1cb. Its packages litellm, datasets, jsonlines, tiktoken and transformers are
replaced: the rows are fabricated, and no model is asked. dateutil is the installed one. Of a message in parts, LiteLLM's
`convert_content_list_to_str` joins the texts, and so does this module.
"""

from __future__ import annotations

from typing import Any

from tests.benchmarks.oolong.fabricate import real_rows, score_cases, synth_rows
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

LENGTH = 8192

OFFICIAL = """
import contextlib, io, itertools, json, sys, types
from unittest.mock import MagicMock
import dateutil.parser

official = sys.argv[1]
sys.path.insert(0, official + "/src/eval")
data = json.load(sys.stdin)
requests = []

class Rows(list):
    def sort(self, column):
        return Rows(sorted(self, key=lambda row: row[column]))
    def filter(self, keep):
        return Rows(filter(keep, self))
    def map(self, change, desc):
        return Rows(map(change, self))

class Refused(Exception):
    pass

def batch_completion(messages, **arguments):
    requests.extend(messages)
    return [{"choices": [{"message": {"content": "x"}}]} for _ in messages]

class Lines(list):
    write = list.append
    def __enter__(self):
        return self
    def __exit__(self, *error):
        pass

for name in ("litellm", "datasets", "jsonlines", "tiktoken", "transformers"):
    sys.modules[name] = MagicMock()
sys.modules["litellm"].batch_completion = batch_completion
sys.modules["litellm"].BadRequestError = Refused
sys.modules["datasets"].load_dataset = lambda name, *config: {"test": Rows(data["rows"][name])}
sys.modules["jsonlines"].open = lambda *arguments: Lines()
sys.modules["tiktoken"].get_encoding = lambda name: types.SimpleNamespace(encode=lambda text: text)
def batched(rows, size):
    return ([row] for row in rows)
itertools.batched = batched  # Python 3.12 has it

import eval_helpers
import eval_script_batched
golden = {"requests": {}, "scores": []}
for kind, labels in (("synth", False), ("synth", True), ("real", False)):
    requests.clear()
    with contextlib.redirect_stdout(io.StringIO()):
        eval_script_batched.launch("gpt-5", kind, "", labels, False, 1, 10**9, 0, "", None)
    golden["requests"][kind + ("_labels" if labels else "")] = [
        [[turn["role"], turn["content"] if isinstance(turn["content"], str) else "".join(part["text"] for part in turn["content"])]
         for turn in request] for request in requests]
for case in data["cases"]:
    row = {"id": 1, "context_window_id": 1, "dataset": "x", "answer": case["answer"], "answer_type": case["answer_type"]}
    score = eval_helpers.synth_process_response if case["synth"] else eval_helpers.dnd_process_response
    try:
        golden["scores"].append(float(score(row, case["output"], "m")["score"]))
    except Exception as error:
        golden["scores"].append(type(error).__name__)
print("GOLDEN" + json.dumps(golden))
"""


def fabricated_rows() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each hub data set."""
    return {
        "oolongbench/oolong-synth": synth_rows(LENGTH),
        "oolongbench/oolong-real": list(real_rows()),
    }


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    golden = run_official(
        OFFICIAL, official, data={"rows": fabricated_rows(), "cases": score_cases()}
    )
    golden["requests"] = {
        name: sorted(map(digest_request, requests))
        for name, requests in golden["requests"].items()
    }
    write_golden("benchmarks/oolong", golden)


def digest_request(turns: list[list[str]]) -> str:
    """Return a hash of the roles and texts of a request."""
    return digest([text for turn in turns for text in turn])


if __name__ == "__main__":
    main()
