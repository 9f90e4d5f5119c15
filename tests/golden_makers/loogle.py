"""Write golden.json, which has the official code's prompts, scores and judge's requests on the fabricated data.

    python -m tests.golden_makers loogle --official FOLDER

FOLDER: a checkout of bigai-nlco/LooGLE at 6734382. Its requirements are nltk and rouge 1.0.1. Its scripts run in a process
of their own, with clients that record requests in place of OpenAI's.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

START = """
import json, os, sys, warnings
from types import SimpleNamespace
from unittest import mock
warnings.simplefilter("ignore")
import nltk.translate.bleu_score, rouge  # SciPy, which nltk imports, must not see a replaced torch
for name in ("torch", "transformers", "datasets", "tiktoken", "bert_score", "openai"):
    sys.modules[name] = mock.MagicMock()
sys.path[:0] = ["Evaluation", "Prediction"]
import openai
import automatic_metrics, llm_score, pred_gpt_models
asked, replies = [], []
def create(**options):
    asked.append(options)
    return {"choices": [{"message": {"content": replies.pop() if replies else ""}}]}
openai.ChatCompletion.create = create
prompts, budgets = (json.load(open(f"config/task2{name}.json")) for name in ("prompt", "maxlen"))
tokenizer = SimpleNamespace(encode=lambda text: [])

def ask(name, rows):
    found = []
    for row in rows:
        asked.clear()
        made = pred_gpt_models.get_pred("m", row, tokenizer, 9, budgets[name], prompts[name])
        for request, answer in zip(asked, made["output"], strict=True):
            found.append([request["messages"][0]["content"], request["max_tokens"], answer])
    return found

def measure(name, question, answer, output):
    if name == "shortdep_cloze":
        exact, count = automatic_metrics.get_exact_match(question, answer, output, name)
        return [exact, automatic_metrics.get_partial_match(question, answer, output, name)[0], count]
    arguments = question, answer, output or "None", name
    return [*automatic_metrics.get_bleu_score(*arguments), *automatic_metrics.get_rouge_score(*arguments)]
"""

CODE = """
from tests.benchmarks.loogle.fabricate import ROWS, judged, records, rows
from tests.support.official import digest
golden = {"prompts": {name: digest(map(json.dumps, ask(name, rows(name)))) for name in ROWS}}
golden["scores"] = [measure(*record) for record in records()]
asked.clear()
golden["verdicts"] = []
for name, question, answer, output, reply in judged():
    replies.append(reply)
    try:
        golden["verdicts"].append(llm_score.get_gpt4_score(question, answer, output, name))
    except ValueError:
        golden["verdicts"].append(None)
golden["judge"] = digest(json.dumps([m["content"] for m in request["messages"]]) for request in asked)
golden["settings"] = [asked[0][name] for name in ("temperature", "top_p", "max_tokens")]
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    write_golden("benchmarks/loogle", run_official(START + CODE, folder=official))


if __name__ == "__main__":
    main()
