"""Write golden.json, which has the official code's requests and scores on the fabricated data.

    python -m tests.golden_makers leval --official FOLDER

FOLDER: a checkout of OpenLMLab/LEval at cd34b05. Its scripts run in a process of their own, without OpenAI's client and the
package datasets.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

START = """
import builtins, io, json, os, re, sys
from types import ModuleType, SimpleNamespace as Space
import rouge_score.rouge_scorer
datasets = ModuleType("datasets")
datasets.load_dataset, datasets.Metric = None, object
tokens = ModuleType("tiktoken")
tokens.encoding_for_model = lambda name: Space(encode=lambda text: [])
openai, asked = ModuleType("openai"), []
def create(**options):
    asked.append(json.loads(json.dumps(options)))
    return {"choices": [{"message": {"content": "x"}}]}
openai.ChatCompletion = Space(create=create)
sys.modules |= {"datasets": datasets, "tiktoken": tokens, "openai": openai}
sys.path[:0] = ["Evaluation", "Baselines"]
builtins.input, builtins.print = (lambda *texts: ""), (lambda *texts: None)
import time
time.sleep = lambda seconds: None
import auto_eval, em, f1, LEval_config
turbo = {"__name__": "turbo"}
exec(open("Baselines/turbo16k-test.py", encoding="utf-8").read(), turbo)
scorer = rouge_score.rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"])

def ask(name, rows):
    asked.clear()
    metric = "exam_eval" if name in LEval_config.datasets_closed_ended else "ngram_eval"
    turbo.update(key_data_pairs={f"/tmp/{name}.pred.jsonl": rows}, args=Space(metric=metric), max_length=10**9,
                 openai_model="m", open=lambda *arguments: io.StringIO(), max_new_tokens=512, tqdm=lambda rows: rows)
    exec("main()", turbo)
    return [[each["messages"], each["max_tokens"], each["temperature"]] for each in asked]

def measure(name, answer, output):
    auto_eval.args = Space(pred_file=name)
    exact = lambda prediction, reference: em.compute_exact_match([prediction], [[reference]]) / 100
    if name in LEval_config.with_option_tasks:
        return exact(auto_eval.process_output_mc(output), auto_eval.process_gt_mc(answer))
    if name == "gsm100":
        return exact(auto_eval.process_math(output), auto_eval.process_math(answer))
    if name == "codeU":
        return exact(auto_eval.process_output_code(output, answer), auto_eval.process_gt_code(answer))
    if name == "sci_fi":
        pairs = zip(auto_eval.process_output_judge(output), auto_eval.process_gt_judge(answer), strict=True)
        return [exact(*pair) for pair in pairs]
    if name in LEval_config.datasets_closed_ended:
        return exact(output, answer)
    if name.endswith("_summ") or name == "paper_assistant":
        return [score.fmeasure for score in scorer.score(answer, output).values()]
    return f1.f1_score(output, answer)
"""

CODE = """
from tests.benchmarks.leval.fabricate import DATASETS, MEASURES, outputs, rows
from tests.support.official import digest
golden = {"asked": {}, "scores": []}
for dataset in DATASETS:
    kept = [row for row in rows(dataset) if row["evaluation"] in MEASURES.values()]
    golden["asked"][dataset.name] = digest(map(json.dumps, ask(dataset.name, kept)))
for name, answer, output in outputs():
    output = output.strip()
    golden["scores"].append(measure(name, answer, f"{output} [fact: {output}]" if name == "sci_fi" else output))
sys.stdout.write("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    write_golden("benchmarks/leval", run_official(START + CODE, folder=official))


if __name__ == "__main__":
    main()
