"""Write golden.json, which has what the official code draws, selects, asks and scores.

    python -m tests.golden_makers gsm_infinite --official FOLDER

FOLDER: a checkout of Infini-AI-Lab/gsm_infinite at caa5388. Its scripts run in a process of their own, with lists in place
of the package datasets.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

CODE = """
import json, os, runpy, sys, types
from unittest import mock
os.chdir("gsm-infinite")
sys.path[:0] = ["data/symbolic", "pred"]
from tests.benchmarks.gsm_infinite.fabricate import CASES, SEEDS, extractions, numbers, rows
from tests.support.official import digest

class Rows(list):
    def filter(self, keep):
        return Rows(filter(keep, self))
    def select(self, places):
        return Rows(self[place] for place in places)
    def push_to_hub(self, name, split, private):
        drawn.extend(self)
Rows.from_list = lambda rows: Rows(rows)
Rows.from_generator = lambda generator, gen_kwargs: Rows(generator(**gen_kwargs))
datasets = types.ModuleType("datasets")
datasets.Dataset, datasets.DatasetDict, datasets.load_from_disk = Rows, dict, None
datasets.concatenate_datasets = lambda parts: Rows(row for part in parts for row in part)
datasets.load_dataset = lambda name: {split: Rows(rows(split)) for split in ("ops_2", "ops_3", "ops_4")}
tqdm = types.ModuleType("tqdm")
tqdm.tqdm = lambda items, **options: items
handler = types.ModuleType("model_handler")
handler.ModelHandler = mock.MagicMock()
sys.modules |= {"datasets": datasets, "tqdm": tqdm, "model_handler": handler}

golden = {"drawn": {}}
source = open("data/symbolic/generate_symbolic.py", encoding="utf-8").read()
for seed in SEEDS:
    for length, (_, most, each) in CASES.items():
        drawn = []
        sys.argv = ["x", "--dataset-name", "d", "--max-op", str(most + 1), "--examples-per-op", str(each), "--length", length]
        exec(compile(source.replace("seed = 42", f"seed = {seed}"), "generate_symbolic", "exec"), {"__name__": "__main__"})
        golden["drawn"][f"{length} {seed}"] = digest(
            json.dumps([row["op"], row["messages"][0]["content"], row["answer_q"], row["answer_list"]]) for row in drawn)
import eval_symbolic, eval_realistic, no_rag_pipeline
shares = json.loads(open("config.sh", encoding="utf-8").read().partition("filter_config='")[2].partition("'")[0])
asked = []
no_rag_pipeline.NoRAGPipeline.process_batch = lambda self, queries, max_workers: asked.extend(queries) or [""] * len(queries)
sys.argv = ["x", "--model-name", "m", "--dataset-name", "d", "--op-range", "2,3,4", "--limit", "200",
            "--filter-config", json.dumps(shares)]
folder = os.getcwd()
import tempfile
os.chdir(tempfile.mkdtemp())
runpy.run_path(f"{folder}/pred/pred.py", run_name="__main__")
golden["selected"] = digest(map(json.dumps, asked))
golden["scores"] = []
for output, number in numbers():
    try:
        golden["scores"].append(eval_realistic.criteriaoutput([output], {"solution": f"Answer: {number}."})[0])
    except IndexError:
        golden["scores"].append(None)
golden["extraction"] = digest(eval_symbolic.get_prompt(output, value) for output, value, *_ in extractions())
golden["verdicts"] = [
    eval_symbolic.postprocess_line({"replies": [], "answer_list": variables}, [reply])["correct_num"]
    for _, _, variables, reply in extractions()]
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    write_golden("benchmarks/gsm_infinite", run_official(CODE, folder=official))


if __name__ == "__main__":
    main()
