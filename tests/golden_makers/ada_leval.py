"""Write golden.json, which has the official code's requests and scores on the fabricated data.

    python -m tests.golden_makers ada_leval --official FOLDER

FOLDER: a checkout of open-compass/Ada-LEval at 2154258. Its ada_leval/dataset.py runs in a process of its own; a small
module replaces its helpers, which import libraries that are not needed.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

OFFICIAL = """
import json, os, sys, types
from pathlib import Path
import numpy as np
import pandas as pd
from helm_longctx.tasks.lengths import length_label
from tests.benchmarks.ada_leval.fabricate import ROWS, SEEDS, build_ada_leval, choice_records, fingerprint, order_records

helpers = types.ModuleType("ada_leval.smp")
vars(helpers).update(json=json, np=np, pd=pd, load=lambda path: json.load(open(path, encoding="utf-8")))
sys.modules["ada_leval.smp"] = helpers
sys.path.insert(0, sys.argv[1])
from ada_leval import dataset as official
official.print = lambda *texts: None

golden = {"rows": {}}
for seed in SEEDS:
    build_ada_leval(Path("."), seed)
    if not os.path.exists("data"):
        os.symlink("ada_leval", "data")
    for name, kind in {"stackselect": official.StackSelect, "textsort": official.TextSort}.items():
        for length in ROWS:
            for mode in ("normal", "less"):
                data = kind(setting=length_label(length), mode=mode)
                meta = data.get_meta()
                rows = [(meta["index"][i], data.build_prompt(i), meta["answer"][i]) for i in range(len(data))]
                golden["rows"][f"{name} {length_label(length)} {mode} {seed}"] = fingerprint(rows)

def score(data, record):
    try:
        return data.evaluate(pd.DataFrame({name: [value] for name, value in record.items()})) / 100
    except TypeError:
        return None  # it ends in an error

select, sort = official.StackSelect("2k"), official.TextSort("2k")
golden["choices"] = [score(select, record) for record in choice_records()]
golden["orders"] = [score(sort, record) for record in order_records()]
print("GOLDEN" + json.dumps(golden, default=float))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    write_golden(
        "benchmarks/ada_leval", run_official(OFFICIAL, *parse_folders("official"))
    )


if __name__ == "__main__":
    main()
