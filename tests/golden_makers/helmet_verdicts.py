"""Write golden_verdicts.json, which has the official scripts' results on the fabricated replies.

    python -m tests.golden_makers helmet_verdicts FOLDER

FOLDER: a checkout of princeton-nlp/HELMET at 4526dfb. Its scripts read fabricated files and ask a model with fabricated
replies. An outcome is a list of numbers, null if the reply has no score, or the name of the error that ends the script.
The means are over the last replies that end no script.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.helmet.fabricate_replies import (
    LAST,
    answer_replies,
    summary_replies,
)
from tests.golden_makers.running import find_room

OFFICIAL = """
import contextlib, importlib, io, json, os, sys, types
sys.modules["model_utils"] = types.SimpleNamespace(OpenAIModel=None)
sys.path.insert(0, sys.argv[1] + "/scripts")
longqa, summ = importlib.import_module("eval_gpt4_longqa"), importlib.import_module("eval_gpt4_summ")
os.makedirs("data/infbench")

class Model:
    def __init__(self, replies):
        self.replies = replies

    def generate_batch(self, prompt, batch_file):
        return [{"output": reply} for reply in self.replies]

def outcome(script, rows, replies, names):
    with open("infbench.json", "w") as file:
        json.dump({"data": rows, "averaged_metrics": {}}, file)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            script.check_metrics(Model(replies), "infbench.json", "out.json")
    except ZeroDivisionError:  # the mean of none
        return None
    except Exception as error:
        return None if str(error) == "No scores found" else type(error).__name__
    with open("out.json") as file:
        found = json.load(file)["averaged_metrics"]
    return [float(found[name]) for name in names]

def judge_answers(replies):
    rows = [{"question": "q", "answer": ["a"], "output": "o"} for _ in replies]
    return outcome(longqa, rows, replies, ["gpt-4-score"])

def judge_summaries(cases):
    with open("data/infbench/longbook_sum_eng_keypoints.jsonl", "w") as file:
        for number, case in enumerate(cases):
            file.write(json.dumps({"id": number, "keypoints": ["point"] * case["keypoints"]}) + "\\n")
    rows = [{"id": number, "answer": ["a"], "output": "o"} for number in range(len(cases))]
    replies = [case[name] for case in cases for name in ("fluency", "recall", "precision")]
    return outcome(summ, rows, replies, ["gpt-4-f1", "gpt-4-recall", "gpt-4-precision", "gpt-4-fluency"])

task = json.load(sys.stdin)
golden = {}
for name, judge in (("answers", judge_answers), ("summaries", judge_summaries)):
    golden[name] = [judge([item]) for item in task[name]]
    last = zip(task[name][-task["last"]:], golden[name][-task["last"]:])
    golden["mean of last " + name] = judge([item for item, found in last if not isinstance(found, str)])
json.dump(golden, sys.stdout)
"""


def main(helmet: str) -> None:
    """Run the official scripts in a folder of their own."""
    task = {
        "answers": answer_replies(),
        "summaries": [asdict(case) for case in summary_replies()],
        "last": LAST,
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", OFFICIAL, str(Path(helmet).resolve())]
        made = subprocess.run(
            command,
            cwd=folder,
            input=json.dumps(task),
            capture_output=True,
            text=True,
            check=True,
        )
    golden = json.loads(made.stdout)
    lines = [
        f"{json.dumps(name)}: {json.dumps(outcomes)}"
        for name, outcomes in golden.items()
    ]
    (find_room("benchmarks/helmet") / "golden_verdicts.json").write_text(
        "{" + ",\n".join(lines) + "}\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main(sys.argv[1])
