"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers mrcr --official FOLDER

FOLDER: a checkout of princeton-nlp/HELMET at 5dde2de. Its requirements are `datasets` and tiktoken. Only its
data_module/mrcr.py runs, in a process of its own, with a fabricated data set, encoding and lengths of the bins.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.benchmarks.mrcr.fabricate import BINS, build_split, records
from tests.golden_makers.running import parse_folders, run_official, write_golden

OFFICIAL = """
import importlib.util, json, os, sys, types
import datasets, tiktoken
from tests.benchmarks.mrcr.fabricate import encoding

datasets.disable_progress_bars()
task = json.load(sys.stdin)
with open(task["path"], encoding="utf-8") as file:
    rows = [{**json.loads(line), "number": number} for number, line in enumerate(file)]
datasets.load_dataset = lambda name: {"train": datasets.Dataset.from_list(rows)}
tiktoken.get_encoding = lambda name: encoding()
base = types.ModuleType("data_module.base")
base.register_task = lambda name, **facts: None
sys.modules |= {"data_module": types.ModuleType("data_module"), "data_module.base": base}
spec = importlib.util.spec_from_file_location("mrcr", os.path.join(sys.argv[1], "data_module", "mrcr.py"))
mrcr = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mrcr)
mrcr._MRCR_LENGTHS = task["bins"]
golden = {"rows": {}, "shuffled": {}, "scores": []}
for needles in (2, 4, 8):
    for label in task["bins"]:
        loaded = mrcr.load_mrcr(f"mrcr_{needles}_{label}", None, None)
        golden["rows"][f"{needles} {label}"] = [
            [row["number"], [[message["role"], message["content"]] for message in row["prompt"]]]
            for row in loaded["data"]]
        sample = mrcr.load_mrcr(f"mrcr_{needles}_{label}", None, types.SimpleNamespace(seed=7, max_test_samples=4))
        golden["shuffled"][f"{needles} {label}"] = [row["number"] for row in sample["data"]]
for record in task["records"]:
    scores, _ = loaded["post_process"]({"output": record["prediction"]}, record)
    golden["scores"].append(scores["score"])
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    with tempfile.TemporaryDirectory() as folder:
        task = {
            "path": str(build_split(Path(folder))),
            "bins": BINS,
            "records": records(),
        }
        golden = run_official(OFFICIAL, *parse_folders("official"), data=task)
    golden["rows"] = {
        name: json.dumps(rows, ensure_ascii=False)
        for name, rows in golden["rows"].items()
    }
    write_golden("benchmarks/mrcr", golden, indent=0, ensure_ascii=False)


if __name__ == "__main__":
    main()
