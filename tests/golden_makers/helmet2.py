"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers helmet2 --official FOLDER

FOLDER: a checkout of princeton-nlp/HELMET at 5dde2de. Its requirements are `datasets`, transformers, rouge-score, torch and
pytrec_eval. The tokenizer, the data of the hub and the lengths of LongBench v2's classes are the fabricated ones.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.benchmarks.helmet2.fabricate import CLASSES, build_helmet2, records
from tests.golden_makers.running import parse_folders, run_official, write_golden

OFFICIAL = """
import hashlib, json, os, sys, types
import datasets, transformers
from types import SimpleNamespace

datasets.disable_progress_bars()
datasets.disable_caching()
task = json.load(sys.stdin)
sys.path.insert(0, sys.argv[1])
table = {}
base = types.ModuleType("data_module.base")
base.LENGTH_MAP = {f"{4 << power}k": 4096 << power for power in range(8)} | {"1m": 1 << 20, "2m": 1 << 21}
base.register_task = lambda name, **facts: table.setdefault(name, SimpleNamespace(**facts))
package = types.ModuleType("data_module")
package.__path__ = [os.path.join(sys.argv[1], "data_module")]
sys.modules |= {"data_module": package, "data_module.base": base}
read = datasets.load_dataset
def load_dataset(name, split=None, **options):
    if name == "json":
        return read(name, **options)
    with open("hub/THUDM__LongBench-v2/train.jsonl", encoding="utf-8") as file:
        return datasets.Dataset.from_list([json.loads(line) for line in file])
datasets.load_dataset = load_dataset
saved = os.path.abspath("tokenizers/meta-llama__Llama-3.1-8B/tokenizer.json")
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=saved)
transformers.AutoTokenizer = SimpleNamespace(from_pretrained=lambda name: tokenizer)
apply = datasets.Dataset.map
datasets.Dataset.map = lambda self, *given, num_proc=None, **options: apply(self, *given, **options)
from data_module import graphwalk, json_kv, longbenchv2, ruler
longbenchv2._LENGTH_VARIANTS = task["classes"]

def load(name, options):
    return table[name].loader(dataset=name, task_config=table[name], data_args=options)

golden = {"prompts": {}, "scores": []}
names = [name for name in table if name.endswith("_8k")] + ["json_kv_32k"] + [f"longbenchv2_{n}" for n in task["classes"]]
for name in names:
    if name.startswith("longbenchv2"):
        table[name] = SimpleNamespace(loader=longbenchv2.load_longbenchv2)
    loaded = load(name, SimpleNamespace(seed=5, max_test_samples=4))
    golden["prompts"][name] = [
        hashlib.sha256(json.dumps([
            loaded["user_template"].format(**row), loaded["prompt_template"].format(**row),
            [row["answer"]] if isinstance(row["answer"], str) else row["answer"]
        ]).encode()).hexdigest()[:16] for row in loaded["data"]]
process = {"json_kv": "json_kv_32k", "bfs": "graphwalk_bfs_8k", "ruler_niah_mv": "ruler_niah_mv_8k"}
process = {name: load(official, SimpleNamespace())["post_process"] for name, official in process.items()}
for record in task["records"]:
    scores, _ = process[record["task"]]({"output": record["prediction"]}, {"answer": record["references"]})
    golden["scores"].append({name: float(value) for name, value in scores.items() if name != "primary_metric"})
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    with tempfile.TemporaryDirectory() as folder:
        root = build_helmet2(Path(folder))
        (root / "data").symlink_to(root / "helmet2")
        classes = {str(length): [length, name] for length, name in CLASSES.items()}
        task = {"records": records(), "classes": classes}
        write_golden(
            "benchmarks/helmet2",
            run_official(OFFICIAL, *parse_folders("official"), data=task, folder=root),
            indent=0,
        )


if __name__ == "__main__":
    main()
