"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers infinite_bench --official FOLDER --later FOLDER

The folders are checkouts of OpenBMB/InfiniteBench at 88b3daa (2024-06-13) and at ae04ef1 (2024-08-25). The hub's metric `rouge` is the package rouge_score, called as that
metric calls it.
"""

from __future__ import annotations

from helm_longctx.benchmarks.infinite_bench.tasks import ROWS
from tests.benchmarks.infinite_bench.fabricate import make_rows, score_cases
from tests.golden_makers.running import parse_folders, run_official, write_golden

START = """
import json, sys, types
class Rouge:
    def compute(self, predictions, references, use_aggregator):
        from rouge_score.rouge_scorer import RougeScorer
        scorer = RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=False, tokenizer=None)
        (output,), (answer,) = predictions, references
        score = (scorer.score_multi if isinstance(answer, list) else scorer.score)(answer, output)
        return {key: [value.fmeasure] for key, value in score.items()}
sys.modules["evaluate"] = types.SimpleNamespace(load=lambda name: Rouge())
sys.path.insert(0, sys.argv[1] + "/src")
import compute_scores
"""
"""Code that imports the official scorers, with a stand-in for the hub's metric."""

SCORES = """
def score_cases(cases):
    scores = []
    for case in cases:
        for model in ("gpt4", "m") if case["task"] == "math_calc" else ("m",):
            try:
                score = float(compute_scores.get_score_one(case["output"], case["label"], case["task"], model))
            except ValueError:
                score = "ValueError"
            scores.append(score)
    return scores
"""
"""Code that scores the cases, those of `math_calc` as GPT-4's outputs and as another model's."""

LATER = (
    START
    + SCORES
    + """
print("GOLDEN" + json.dumps(score_cases(json.load(sys.stdin)["cases"])))
"""
)

OFFICIAL = (
    START
    + SCORES
    + """
import eval_utils
from tests.support.official import digest

class Tokenizer:
    encode, decode = list, "".join

def create_prompt(row, name, model):
    if (name, model) == ("longbook_qa_eng", "claude2"):
        # create_prompt does not fill in the field `input` of this template, so it raises a KeyError.
        return eval_utils.claude2_templates[name].format(context=row["context"], input=row["input"])
    return eval_utils.create_prompt(row, name, model, ".")

data, out = json.load(sys.stdin), sys.stdout
sys.stdout = sys.stderr
golden = {"prompts": {}, "answers": {}}
for name, rows in data["rows"].items():
    golden["answers"][name] = [eval_utils.get_answer(row, name) for row in rows]
    for model in ("gpt4", "yarn-mistral", "claude2"):
        if model == "gpt4":
            asked = [eval_utils.create_msgs(Tokenizer(), row, name, model, ".")[0] for row in rows]
        else:
            prompts = [create_prompt(row, name, model) for row in rows]
            asked = [[{"role": "user", "content": prompt}] for prompt in prompts]
        golden["prompts"][f"{name} {model}"] = digest(text for each in asked for turn in each for text in turn.values())
golden["scores"] = score_cases(data["cases"])
sys.stdout = out
print("GOLDEN" + json.dumps(golden))
"""
)


def main() -> None:
    """Run the official code and write its results beside the tests."""
    data = {"rows": {name: make_rows(name) for name in ROWS}, "cases": score_cases()}
    official, later = parse_folders("official", "later")
    golden = run_official(OFFICIAL, official, data=data)
    golden["scores_later"] = run_official(LATER, later, data=data)
    write_golden("benchmarks/infinite_bench", golden, indent=0)


if __name__ == "__main__":
    main()
