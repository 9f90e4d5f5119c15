"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers hellobench --official FOLDER

FOLDER: a checkout of Quehry/HelloBench at d403282. `gpt4o_ckwise_evaluation` of llm_judge.py asks a judge with fabricated
replies, and results/scripts/compute.py scores what it writes. The outcome of a reply is its score, null if the reply is
asked for again or left out, or the name of the error that ends the script.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.benchmarks.hellobench.fabricate import (
    CATEGORIES,
    make_answers,
    make_rows,
    odd_replies,
)
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support import punkt
from tests.support.official import digest

OFFICIAL = """
import json, os, runpy, sys, time, types
import nltk
nltk.data.path.insert(0, sys.argv[2])
data, out = json.load(sys.stdin), sys.stdout
sys.stdout = sys.stderr
time.sleep = lambda seconds: None
asked, replies = [], []

def create(**request):
    asked.append(request)
    message = types.SimpleNamespace(content=replies[0])
    return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)])

completions = types.SimpleNamespace(create=create)
client = types.SimpleNamespace(chat=types.SimpleNamespace(completions=completions))
sys.modules["openai"] = types.SimpleNamespace(Client=lambda api_key: client)
judge = runpy.run_path(sys.argv[1] + "/llm_judge.py")["gpt4o_ckwise_evaluation"]
compute = runpy.run_path(sys.argv[1] + "/results/scripts/compute.py")["compute_score_and_length_single"]
compute.__globals__["WEIGHT_DICT"] = data["weights"]

def write(path, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\\n" for row in rows)

def run(rows, answers, reply):
    replies[:] = [reply]
    asked.clear()
    write("HelloBench/chat.jsonl", rows)
    pairs = zip(rows, answers)
    write("results/m/chat_results.jsonl",
          [{"id": row["id"], "instruction": row["instruction"], "response": answer} for row, answer in pairs])
    judged = "ckwise_results/m/chat_results.jsonl"
    if os.path.exists(judged):
        os.remove(judged)
    judge(["chat"], "m")
    os.makedirs("main_exp/m", exist_ok=True)
    os.replace(judged, "main_exp/m/chat_results.jsonl")
    categories = {row["id"]: row["category"] for row in rows}
    return [compute("chat", "m", ".", id_category_dict=categories, rescale=rescale) for rescale in (False, True)]

def outcome(reply):
    try:
        return run(data["rows"][:1], data["answers"][:1], reply)[0][0]
    except ZeroDivisionError:  # the mean of none
        return None
    except Exception as error:
        return type(error).__name__

plain, rescaled = run(data["rows"], data["answers"], data["odd"][0])
requests = list(asked)
odd = [outcome(reply) for reply in data["odd"]]
sys.stdout = out
print("GOLDEN" + json.dumps({
    "prompts": [message["content"] for request in requests for message in request["messages"]],
    "options": {name: requests[0][name] for name in ("max_tokens", "temperature", "seed")},
    "score": plain[0], "words": plain[1], "rescaled": rescaled[0], "odd": odd,
}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    data = {
        "rows": make_rows("chat"),
        "answers": make_answers(),
        "odd": odd_replies(),
        "weights": CATEGORIES,
    }
    with tempfile.TemporaryDirectory() as folder, punkt.installed(Path(folder)):
        golden = run_official(
            OFFICIAL, *parse_folders("official"), Path(folder), data=data
        )
    write_golden(
        "benchmarks/hellobench",
        golden | {"prompts": digest(golden["prompts"])},
        indent=0,
    )


if __name__ == "__main__":
    main()
