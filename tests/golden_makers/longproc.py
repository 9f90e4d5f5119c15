"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers longproc --official FOLDER

FOLDER: a checkout of princeton-pli/LongProc at 78e873a. Its requirements are pandas, PyYAML, tqdm and g++. The official
code runs in a process of its own. Its evaluator of C++ compiles and runs only the fabricated programs, and is replaced for
other outputs. Its evaluator of countdown calls `eval` on parts of the outputs, which are fabricated, too.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from helm_longctx.benchmarks.longproc.data import TASKS
from tests.benchmarks.longproc.fabricate import PROGRAMS, build_longproc, cases
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

OFFICIAL = """
import contextlib, io, json, sys
sys.path.insert(0, sys.argv[1])
from longproc import longproc_data

task = json.load(sys.stdin)
programs = {
    name: longproc_data.eval_pseudo_to_code(output, {"item": {"testcases": tests}})[0]
    for name, (output, tests) in task["programs"].items()
}
longproc_data.evaluate_spoc_code = lambda code, tests: (True, "")
loaded = {}
for name in task["names"]:
    loaded[name] = longproc_data.load_longproc_data(name, task["root"])
scores = []
for name, number, output in task["cases"]:
    data, evaluate = loaded[name]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            found, _ = evaluate(output, data[number])
        scores.append({key: float(value) for key, value in found.items()})
    except Exception as error:
        scores.append(type(error).__name__)
print(json.dumps({"data": {name: data for name, (data, _) in loaded.items()}, "scores": scores, "programs": programs}))
"""


def item_text(item: object) -> str:
    """Return an official item as text, whatever the order of its fields."""
    return json.dumps(item, sort_keys=True)


def main() -> None:
    """Run the official code and write its results beside the tests."""
    with tempfile.TemporaryDirectory() as folder:
        root = build_longproc(Path(folder))
        task = {
            "root": str(root),
            "programs": PROGRAMS,
            "names": [
                f"{name}_{level}"
                for name, files in TASKS.items()
                for level in files.levels
            ],
            "cases": [
                (f"{name}_{level}", number, output)
                for name, level, number, output in cases(root)
            ],
        }
        official_results = run_official(OFFICIAL, *parse_folders("official"), data=task)
    golden = {
        "prompts": {
            name: digest(row["input_prompt"] for row in rows)
            for name, rows in official_results["data"].items()
        },
        "items": {
            name: digest(item_text(row["item"]) for row in rows)
            for name, rows in official_results["data"].items()
        },
        "programs": {
            name: json.dumps(scores)
            for name, scores in official_results["programs"].items()
        },
        "scores": [
            json.dumps(scores) for scores in official_results["scores"]
        ],  # one line each
    }
    write_golden("benchmarks/longproc", golden, indent=0)


if __name__ == "__main__":
    main()
