"""Write golden.json, which has the official code's requests, the judge's requests and grades on the fabricated rows.

    python -m tests.golden_makers cl_bench --official FOLDER

FOLDER: a checkout of Tencent-Hunyuan/CL-bench at 360d60f. Its scripts run in a process of their own, with a client that
records requests in place of OpenAI's, and without waiting.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

START = """
import json, sys
from types import SimpleNamespace
sys.modules["openai"] = SimpleNamespace(OpenAI=None)
sys.modules["tqdm"] = SimpleNamespace(tqdm=None)
sys.path.insert(0, sys.argv[1])
import eval as grading, infer
for module in (grading, infer):
    module.time = SimpleNamespace(sleep=lambda seconds: None)
    module.log = lambda text: None
asked, replies = [], []
def create(model, messages):
    asked.append(messages)
    return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=replies[0]))])
client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))

def grade(row, answer, reply):
    asked.clear()
    replies[:] = [reply]
    try:
        _, result, error = grading.process_single_item(({**row, "model_output": answer}, client, "judge", 3))
    except (TypeError, AttributeError):  # a reply that is no object
        result, error = None, "no object"
    prompts = {message["content"] for messages in asked for message in messages}
    # A failed grade is in no file, and every other score than 1 counts as 0.
    return [*prompts], None if error else int(result["score"] == 1)
"""

CODE = """
from tests.benchmarks.cl_bench.fabricate import ROWS, answers, rows
from tests.support.official import digest
golden = {}
for path in ROWS:
    asked_of_models, asked_of_judges, grades = [], [], []
    for row, (answer, reply) in zip(rows(path), answers()):
        asked.clear()
        replies[:] = ["answer"]
        infer.process_single_case((0, row, client, "model"))
        asked_of_models.append(json.dumps(asked[0]))
        prompts, found = grade(row, answer, reply)
        asked_of_judges += prompts
        grades.append("-" if found is None else str(found))
    golden[path] = {"prompts": digest(asked_of_models), "judge": digest(asked_of_judges), "grades": "".join(grades)}
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    write_golden(
        "benchmarks/cl_bench",
        run_official(START + CODE, *parse_folders("official")),
        indent=1,
    )


if __name__ == "__main__":
    main()
