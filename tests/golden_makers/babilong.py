"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers babilong --official FOLDER

FOLDER: a checkout of booydar/babilong at 7a6efee.
"""

from __future__ import annotations

from helm_longctx.benchmarks.babilong.tasks import BABILONG, LABELS
from helm_longctx.tasks.lengths import length_label
from tests.benchmarks.babilong.fabricate import PROTOCOLS, make_rows, score_cases
from tests.golden_makers.running import parse_folders, run_official, write_golden

OFFICIAL = """
import json, sys
sys.path.insert(0, sys.argv[1])
from babilong.metrics import TASK_LABELS, compare_answers
from babilong.prompts import DEFAULT_PROMPTS, get_formatted_input
from tests.support.official import digest

data = json.load(sys.stdin)
prompts = {}
for task, lengths in data["rows"].items():
    for name, sent in data["protocols"].items():
        parts = [DEFAULT_PROMPTS[task][part] if yes == "yes" else ""
                 for part, yes in zip(("instruction", "examples", "post_prompt"), sent)]
        instruction, examples, post_prompt = parts
        for length, rows in lengths.items():
            prompts[f"{task} {length} {name}"] = digest(
                get_formatted_input(row["input"], row["question"], examples, instruction, post_prompt) for row in rows
            )
scores = "".join(
    str(int(compare_answers(case["target"], case["output"], case["question"], TASK_LABELS[case["task"]])))
    for case in data["cases"]
)
print("GOLDEN" + json.dumps({"prompts": prompts, "scores": scores}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    rows = {
        name: {
            length_label(length): make_rows(name, length_label(length))
            for length in BABILONG.task(name).sizes
        }
        for name in LABELS
    }
    data = {"rows": rows, "protocols": PROTOCOLS, "cases": score_cases()}
    write_golden(
        "benchmarks/babilong",
        run_official(OFFICIAL, *parse_folders("official"), data=data),
        indent=0,
    )


if __name__ == "__main__":
    main()
