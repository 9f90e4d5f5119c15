"""The official scorers of each suite, as code that scores one record.

Each code runs in a process of its own, whose first argument is the checkout. It defines `score(row)`, which returns the
official scores by our names, as fractions of 1. A row is a scored record with the names of its task, as run entries
(`argument`) and results (`task`) have them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """A suite's official scorer.

    Args:
        checkout: the name of the repository, and the folder of its checkout.
        commit: the start of the commit.
        code: what defines `score`.
        folder: the folder in the checkout in which the code runs; empty for an empty folder.
    """

    checkout: str
    commit: str
    code: str
    folder: str = ""


HARNESS = """
import contextlib, io, json, sys
rows, out = json.load(sys.stdin), sys.stdout
{code}
found = []
with contextlib.redirect_stdout(io.StringIO()):
    for row in rows:
        found.append(score(row))
print("GOLDEN" + json.dumps(found, default=float))
"""

ADA_LEVAL = """
import os, types
from pathlib import Path
import numpy as np
import pandas as pd
from tests.benchmarks.ada_leval.fabricate import build_ada_leval

helpers = types.ModuleType("ada_leval.smp")
vars(helpers).update(json=json, np=np, pd=pd, load=lambda path: json.load(open(path, encoding="utf-8")))
sys.modules["ada_leval.smp"] = helpers
sys.path.insert(0, sys.argv[1])
from ada_leval import dataset as official
build_ada_leval(Path("."))
os.symlink("ada_leval", "data")
official.print = lambda *texts: None
kinds = {"stackselect": official.StackSelect("2k"), "textsort": official.TextSort("2k")}

def score(row):
    record = {"prediction": row["prediction"], "answer": row.get("order") or row["references"][0]}
    if "num_choice" in row:
        record["num_choice"] = row["num_choice"]
    try:
        accuracy = kinds[row["task"]].evaluate(pd.DataFrame({name: [value] for name, value in record.items()})) / 100
    except TypeError:
        accuracy = 0.0  # it ends in an error
    return {"accuracy": accuracy}
"""

BABILONG = """
sys.path.insert(0, sys.argv[1])
from babilong.metrics import TASK_LABELS, compare_answers

def score(row):
    labels = TASK_LABELS[row["argument"]]
    return {"accuracy": compare_answers(row["references"][0], row["prediction"], row["question"], labels)}
"""

GRAPHWALKS = """
import ast
from pathlib import Path

tree = ast.parse(Path(sys.argv[1], "resources_servers/graphwalks/app.py").read_text(encoding="utf-8"))
names = {}
exec("import re\\nfrom typing import *", names)
kept = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.Assign))]
exec(compile(ast.Module(kept, []), "app.py", "exec"), names)

def score(row):
    found, failed = names["_parse_node_list"](row["prediction"])
    return {"f1": names["_f1_score"](set(found), set(row["references"]), failed)}
"""

LONGBENCH = """
import warnings
warnings.simplefilter("ignore")
sys.path.insert(0, ".")
import eval as official
official.round = lambda value, digits: value

def score(row):
    metric = official.dataset2metric[row["argument"]].__name__
    value = official.scorer(row["argument"], [row["prediction"]], [row["references"]], row.get("all_classes"))
    return {metric: value / 100}
"""

LONGBENCH_V2 = """
import os, types
for name in ("openai", "datasets", "transformers", "tiktoken", "torch", "torch.multiprocessing"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["openai"].OpenAI = sys.modules["transformers"].AutoTokenizer = sys.modules["datasets"].load_dataset = None
sys.modules["torch"].multiprocessing = sys.modules["torch.multiprocessing"]
os.chdir(sys.argv[1])
sys.path.insert(0, ".")
import pred

def score(row):
    letter = pred.extract_answer(row["prediction"].strip())
    return {"accuracy": letter == row["references"][0]}
"""

LONGBENCH_WRITE = """
import pathlib, runpy
from unittest.mock import MagicMock
for name in ("torch", "torch.distributed", "torch.multiprocessing", "transformers", "matplotlib", "matplotlib.pyplot"):
    sys.modules[name] = MagicMock()
official = pathlib.Path(sys.argv[1]) / "evaluation"
pred, folder = runpy.run_path(str(official / "pred.py")), pathlib.Path("models/LongWriter-glm4-9b")
folder.mkdir(parents=True)

def score(row):
    written = pred["count_words"](row["prediction"])
    text = json.dumps({"length": row["length"], "response_length": written})
    (folder / "pred.jsonl").write_text(text, encoding="utf-8")
    (value,) = runpy.run_path(str(official / "eval_length.py"))["scores"]
    return {"output_words": written, "length_score": value / 100}
"""

LONGHEALTH = """
import os, types
for name, values in {"vllm": ("LLM", "SamplingParams"), "huggingface_hub": ("login",), "utils": ("build_first_turn",),
                     "transformers": ("AutoTokenizer",)}.items():
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(dict.fromkeys(values))
sys.path.insert(0, os.path.join(sys.argv[1], "eval"))
import eval_LongHealth as official

def score(row):
    third = row["argument"] == "task3"
    return {"accuracy": official.compute_metrics(row["prediction"], row["references"][0], third)}
"""

LONGPROC = """
sys.path.insert(0, sys.argv[1])
from longproc import longproc_data as official

def score(row):
    # The official loader puts the reference beside the item, too.
    example = {"item": row["item"], "reference_output": row["item"]["reference_output"]}
    return getattr(official, "eval_" + row["argument"])(row["prediction"], example)[0]
"""

LV_EVAL = """
sys.path.insert(0, sys.argv[1])
import config, evaluation

NAMES = {"qa_f1_score_with_gold_ans": "f1_gated", "qa_f1_zh_score_with_gold_ans": "f1_gated",
         "rouge_zh_score_blacklist": "rouge_l"}

def score(row):
    metric = config.DATASET_METRIC[row["argument"]].__name__
    given = [row["prediction"]], [row["references"]], [row.get("answer_keywords")]
    try:
        _, scores = evaluation.scorer(row["argument"] + "_16k", *given)
    except ZeroDivisionError:
        return {}
    return {NAMES.get(metric, "f1"): scores.popitem()[1][0]}
"""

MRCR = """
from types import SimpleNamespace
from helm.benchmark.metrics.openai_mrcr_metrics import OpenAIMRCRMetric
from helm.benchmark.scenarios.scenario import CORRECT_TAG

def score(row):
    reference = SimpleNamespace(output=SimpleNamespace(text=row["answer"]), tags=[CORRECT_TAG])
    state = SimpleNamespace(
        result=SimpleNamespace(completions=[SimpleNamespace(text=row["prediction"])]),
        instance=SimpleNamespace(
            references=[reference], extra_data={"random_string_to_prepend": row["random_string_to_prepend"]}))
    (stat,) = OpenAIMRCRMetric().evaluate_generation(None, state, None, "")
    return {"score": stat.mean}
"""

MRCR_V2 = """
import os
from unittest import mock
google = mock.MagicMock()
sys.modules |= {"google": google, "google.genai": google.genai}
sys.path.insert(0, os.path.join(sys.argv[1], "eval_hub", "mrcr_v2"))
import run_evaluation as official

def score(row):
    return {"score": official.mrcr_v2_metric(row["prediction"], row["answer"])}
"""

ONERULER = """
import os
from pathlib import Path
sys.path.insert(0, os.path.join(sys.argv[1], "OneRuler", "eval"))
import evaluate as official

def score(row):
    code = row["entry"].removeprefix("oneruler_")
    text = json.dumps({"index": 1, "outputs": row["references"], "response-m": row["prediction"]})
    Path("case.jsonl").write_text(text, encoding="utf-8")
    # Only for names with "deepseek" the official code scores what is in <Answer>.
    models = {"accuracy": "m", "accuracy_in_answer": "deepseek"}
    return {name: official.evaluate_jsonl("case.jsonl", row["argument"], code, model)["avg_acc"]
            for name, model in models.items()}
"""

RULER = """
import os
sys.path.insert(0, os.path.join(sys.argv[1], "scripts", "eval", "synthetic"))
import constants as official
official.round = lambda value, digits: value

def score(row):
    metric = official.string_match_part if row["argument"].startswith("qa") else official.string_match_all
    return {metric.__name__: metric([row["prediction"]], [row["references"]]) / 100}
"""

SCBENCH = """
from unittest.mock import MagicMock
sys.path[:0] = [sys.argv[1] + "/scbench", sys.argv[2]]
for name in ("torch", "torch.profiler", "transformers", "transformers.cache_utils", "transformers.modeling_outputs",
             "transformers.utils", "transformers.utils.import_utils", "minference", "datasets", "vllm", "evaluate"):
    sys.modules[name] = MagicMock()
sys.modules["torch"].Tensor = type("Tensor", (), {})

class Rouge:
    def compute(self, predictions, references, use_aggregator):
        from rouge_score.rouge_scorer import RougeScorer
        scorer = RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=False, tokenizer=None)
        (output,), (answer,) = predictions, references
        return {key: [score.fmeasure] for key, score in scorer.score(answer, output).items()}
sys.modules["evaluate"].load = lambda name: Rouge()
import compute_scores, repo_qa_utils

def function(row):
    needles = [{"name": name, "needle": code} for name, code in row["answer"]["functions"]]
    needle = {"func_name": row["answer"]["name"]}
    verdict, _, similarity = repo_qa_utils.needle_evaluator(
        row["prediction"], needle, needles, row["answer"]["lang"], False)
    return {"pass@1": verdict.value == "best_match" and similarity >= 0.8}

METRICS = {"scbench_summary": "rougeLsum", "scbench_vt": "string_match_all", "scbench_qa_chn": "f1"}

def score(row):
    kind = row.get("subtask") or "scbench_" + row["argument"]
    if kind == "scbench_repoqa":
        return function(row)
    name = compute_scores.Multiturnbench_to_Infinitebench.get(kind, kind)
    return {METRICS.get(kind, "accuracy"): compute_scores.get_score_one(row["prediction"], row["answer"], name, "m")}
"""

SUITES = {
    "ada_leval": Suite("Ada-LEval", "2154258", ADA_LEVAL),
    "babilong": Suite("babilong", "7a6efee", BABILONG),
    "graphwalks": Suite("Gym", "07d6b0d", GRAPHWALKS),
    "longbench": Suite("LongBench", "2e00731", LONGBENCH, "LongBench"),
    "longbench_v2": Suite("LongBench", "2e00731", LONGBENCH_V2),
    "longbench_write": Suite("LongWriter", "3fcfdff", LONGBENCH_WRITE),
    "longhealth": Suite("CLUE", "2de4314", LONGHEALTH),
    "longproc": Suite("LongProc", "78e873a", LONGPROC),
    "lv_eval": Suite("LVEval", "63e7ae9", LV_EVAL),
    "mrcr": Suite(".", "", MRCR),
    "mrcr_v2": Suite("eval_hub", "67b7fd2", MRCR_V2),
    "oneruler": Suite("OneRuler", "a3fe6af", ONERULER),
    "ruler": Suite("RULER", "c3f5e3b", RULER),
    "scbench": Suite("MInference", "fb56c91", SCBENCH),
}
"""The suites whose scorers need no data of their own, by benchmark. HELMET's scorers come with its data loaders."""
