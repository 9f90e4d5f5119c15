"""Write golden.json, which has the official code's prompts and scores on the fabricated rows.

    python -m tests.golden_makers flenqa --official FOLDER

FOLDER: a checkout of alonj/Same-Task-More-Tokens at 5a1691c. The cells of its notebook that define the prompts and the
scores run in a process of their own.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

OFFICIAL = """
import json, re, string, sys
from pathlib import Path
import numpy as np
from tests.benchmarks.flenqa.fabricate import answers, rows
from tests.support.official import digest
notebook = json.loads((Path(sys.argv[1]) / "FLenQA analysis.ipynb").read_text(encoding="utf-8"))
cells = ["".join(cell["source"]) for cell in notebook["cells"]]
for start in ("prompt_structures = {", "def normalize_answer(s):"):
    exec(next(cell for cell in cells if cell.startswith(start)))
golden = {}
for reasoned in (False, True):
    for row in rows():
        asked = []
        get_response(row, asked.append, chain_of_thought=reasoned)
        case = golden.setdefault(f"{row['dataset']} {row['ctx_size']} {reasoned}", {"prompts": [], "scores": []})
        case["prompts"] += asked
        for answer in answers(row):
            found = response_analysis(row, answer, chain_of_thought=reasoned)
            case["scores"].append([int(found[name]) for name in ("correct", "cot_coverage", "early_response")])
print("GOLDEN" + json.dumps({name: {**case, "prompts": digest(case["prompts"])} for name, case in golden.items()}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    write_golden(
        "benchmarks/flenqa", run_official(OFFICIAL, *parse_folders("official"))
    )


if __name__ == "__main__":
    main()
