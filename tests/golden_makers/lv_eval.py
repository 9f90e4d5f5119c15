"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers lv_eval --official FOLDER

FOLDER: a checkout of infinigence/LVEval at 63e7ae9. Besides the test requirements, its utils.py needs `datasets`. The
official code runs in a process of its own, called from a script's top level as evaluation.py calls it, because the
depth of the stack decides where ROUGE's recursion ends.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from helm_longctx.benchmarks.lv_eval.tasks import DATASETS
from tests.benchmarks.lv_eval.fabricate import (
    WINDOWS,
    build_lv_eval,
    score_records,
    tokenizers,
    truncation_prompts,
)
from tests.golden_makers.running import parse_folders, run_official, write_golden

OFFICIAL = """
import json, sys
sys.path.insert(0, sys.argv[1])
import config, evaluation, metrics, utils
from tests.support.official import digest
from transformers import PreTrainedTokenizerFast

def plain(dataset, prediction, reference):
    name = config.DATASET_METRIC[dataset].__name__
    other = {"rouge_zh_score_blacklist": metrics.rouge_zh_score}.get(
        name, metrics.qa_f1_zh_score if "zh" in name else metrics.qa_f1_score)
    return other(prediction, reference)

task = json.load(sys.stdin)
golden = {"prompts": {}, "scores": [], "cuts": {}}
for name, folder in task["files"].items():
    for length in config.DATASET_LENGTH_LEVEL:
        rows = utils.load_LVEval_dataset(f"{name}_{length}", folder)
        golden["prompts"][f"{name} {length}"] = {
            "max_tokens": config.DATASET_MAXGEN[name],
            "prompts": digest(config.DATASET_PROMPT[name].format(**row) for row in rows),
            "references": digest(json.dumps(row["answers"], ensure_ascii=False) for row in rows),
            "keywords": digest(row["answer_keywords"] or "" for row in rows),
        }
for record in task["records"]:
    dataset, prediction, references = record["dataset"], record["prediction"], record["references"]
    try:
        _, scores = evaluation.scorer(dataset + "_16k", [prediction], [references], [record["answer_keywords"]])
        headline = scores.popitem()[1][0]
    except ZeroDivisionError:
        headline = None
    golden["scores"].append([headline, plain(dataset, prediction, references[0])])
for name, text in task["tokenizers"].items():
    with open(name + ".json", "w", encoding="utf-8") as file:
        file.write(text)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=name + ".json")
    for window in task["windows"]:
        cut = [utils.truncate_prompt(tokenizer, prompt, window) for prompt in task["prompts"]]
        golden["cuts"][f"{name} {window}"] = [digest(cut), sum(a != b for a, b in zip(cut, task["prompts"]))]
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    with tempfile.TemporaryDirectory() as folder:
        root = build_lv_eval(Path(folder))
        task = {
            "files": {
                dataset.name: str(root / "lveval" / dataset.name)
                for dataset in DATASETS
            },
            "records": score_records(),
            "tokenizers": {
                name: tokenizer.to_str() for name, tokenizer in tokenizers().items()
            },
            "windows": WINDOWS,
            "prompts": truncation_prompts(),
        }
        golden = run_official(OFFICIAL, *parse_folders("official"), data=task)
    golden["scores"] = [json.dumps(row) for row in golden["scores"]]  # one line each
    write_golden("benchmarks/lv_eval", golden, indent=0)


if __name__ == "__main__":
    main()
