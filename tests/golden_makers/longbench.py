"""Write golden.json, which has the official code's requests and scores on the fabricated data.

    python -m tests.golden_makers longbench --official FOLDER

FOLDER: a checkout of THUDM/LongBench at 2e00731. Its requirements are jieba, rouge 1.0.1 and fuzzywuzzy 0.18.0 without
python-Levenshtein. Its LongBench/pred.py and eval.py run in processes of their own, with the fabricated data in place of
the hub's, and with a model that records its prompts in place of torch's.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

PRED = """
import json, os, sys, types
from unittest import mock
sys.path.insert(0, ".")
from tests.benchmarks.longbench.fabricate import DATASETS, LIMITS, MODEL, fingerprint, rows, tokenizer
for name in ("torch", "torch.distributed", "torch.multiprocessing", "datasets", "transformers",
             "llama_flash_attn_monkey_patch"):
    sys.modules[name] = mock.MagicMock()
import pred
asked = []

class Ids(list):
    shape = property(lambda ids: (len(ids),))
    def __getitem__(self, key):
        return Ids(list.__getitem__(self, key)) if isinstance(key, slice) else list.__getitem__(self, key)

class Batch(dict):
    def to(self, device):
        return self
    input_ids = property(lambda batch: batch["input_ids"])

class Tokenizer:
    eos_token_id = 0
    def __init__(self, case):
        self.inner = tokenizer(case)
    def __call__(self, text, truncation, return_tensors):
        self.text = text
        ids = Ids(self.inner(text, truncation=False, verbose=False)["input_ids"])
        return Batch(input_ids=Rows([ids]))
    def decode(self, ids, skip_special_tokens):
        return self.inner.decode(ids, skip_special_tokens=True)
    def encode(self, text, add_special_tokens):
        return [1]

class Rows(list):
    shape = property(lambda rows: (1, len(rows[0])))

class Model:
    def generate(self, **arguments):
        newline = isinstance(arguments.get("eos_token_id"), list)
        asked.append(fingerprint(current.text, arguments["max_new_tokens"], newline))
        return [Ids(arguments["input_ids"][0])]

golden = {}
with open("config/dataset2prompt.json", encoding="utf-8") as file:
    prompts = json.load(file)
with open("config/dataset2maxlen.json", encoding="utf-8") as file:
    budgets = json.load(file)
pred.tqdm = lambda data: data
for case, limit in LIMITS.items():
    current = Tokenizer(case)
    pred.load_model_and_tokenizer = lambda path, name, device: (Model(), current)
    for dataset in DATASETS:
        for suffix in ("", "_e") if "extended" in dataset.traits else ("",):
            asked.clear()
            pred.get_pred(0, 1, rows(dataset, dataset.name + suffix), limit, budgets[dataset.name],
                          prompts[dataset.name], dataset.name, 0, MODEL, {MODEL: ""}, os.devnull)
            golden[f"{case} {dataset.name}{suffix}"] = list(asked)
print("GOLDEN" + json.dumps(golden))
"""

EVAL = """
import json, math, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, ".")
from tests.benchmarks.longbench.fabricate import deep_records, records
import eval as official
official.round = lambda value, digits: value
golden = []
for record in [*records(), *deep_records()]:
    one = [record["prediction"]], [record["answers"]]
    whole = official.scorer(record["dataset"], *one, record["all_classes"])
    by_length = official.scorer_e(record["dataset"], *one, [record["length"]], record["all_classes"])
    golden.append([whole, [place for place, value in enumerate(by_length.values()) if not math.isnan(value)]])
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    parts = {"asked": PRED, "scores": EVAL}
    write_golden(
        "benchmarks/longbench",
        {
            name: run_official(code, folder=official / "LongBench")
            for name, code in parts.items()
        },
    )


if __name__ == "__main__":
    main()
