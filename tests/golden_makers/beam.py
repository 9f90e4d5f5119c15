"""Write golden.json, which has the official code's requests and scores on the fabricated rows.

    python -m tests.golden_makers beam --official FOLDER

FOLDER: the scripts of mohammadtavakoli78/BEAM at 2e44c8d, with `download_dataset.py` of b2a3ee8 under src/beam/. They run in a
process of their own. Stand-ins take the place of the official texts, and of the libraries that are not used.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

CODE = """
import ast, json, math, os, sys, types
from pathlib import Path
from unittest.mock import MagicMock
from types import SimpleNamespace

official = Path(sys.argv[1])
from tests.benchmarks.beam.fabricate import *
from helm_longctx.benchmarks.beam import tasks as ours
from tests.support.official import digest
from scipy.stats import kendalltau
import numpy
sys.path.insert(0, str(official))
class Embeddings: pass
kept = {*sys.stdlib_module_names, "numpy", "scipy", "prompts"}
for path in ("evaluation.py", "long_term_methods.py"):
    for node in ast.walk(ast.parse((official / path).read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            parts = name.split(".")
            for end in range(1, len(parts) + 1) if parts[0] not in kept else ():
                module = types.ModuleType(".".join(parts[:end]))
                module.__path__ = []
                module.__getattr__ = lambda name: Embeddings if name == "Embeddings" else [] if name == "__all__" else MagicMock()
                sys.modules[module.__name__] = module
import evaluation, long_term_methods
del sys.modules["torch"]  # SciPy asks whether arrays are torch's

# The texts that are read from the real files are those that the functions use.
class RealRoot:
    path = Path("real")
Path("real").mkdir()
(Path("real") / "beam").symlink_to(official)
real = ours.read_texts(RealRoot)
assert real.judge == evaluation.unified_llm_judge_base_prompt
evaluation.unified_llm_judge_base_prompt = JUDGE
evaluation.break_paragraph_to_facts_detailed_prompt = "FACTS"

def repair_json(text):
    raise ValueError
evaluation.repair_json = repair_json
items, pairs, asked = [], [], []

class Judge:
    def invoke(self, messages):
        if messages == "FACTS":
            return SimpleNamespace(content="")
        if isinstance(messages, str):
            items.append(messages)
            return SimpleNamespace(content=reply(messages))
        system, user = messages
        start, middle, end = real.same
        assert system == {"role": "system", "content": real.system} and user["role"] == "user"
        assert user["content"].startswith(start) and user["content"].endswith(end)
        one, two = user["content"].removeprefix(start).removesuffix(end).split(middle)
        pairs.append(SAME[0] + one + SAME[1] + two + SAME[2])
        return SimpleNamespace(content=reply(pairs[-1]))

class Model:
    def invoke(self, messages):
        assert messages[-1]["role"] == "user" and messages[-1]["content"].startswith(real.question)
        asked.append(json.dumps([
            {**each, "content": QUESTION + each["content"].removeprefix(real.question)}
            if each["content"].startswith(real.question) else each
            for each in messages
        ]))
        return SimpleNamespace(content="answer")

encoder = SimpleNamespace(encode=lambda text: [0] * len(text))
long_term_methods.get_encoder = lambda **arguments: encoder
config = dict.fromkeys(("model_provider", "temperature", "api_key", "request_timeout"))
# Functions of the script that makes chats of the hub's rows; the script itself would download them.
tree = ast.parse((official / "src" / "beam" / "download_dataset.py").read_text())
chats = {}
exec(compile(ast.Module([node for node in tree.body if isinstance(node, ast.FunctionDef)], []), "chats", "exec"), chats)

def ask(row, length, questions):
    if length == LONGEST:
        chat = chats["combine_10m_chats"]([chats["convert_chats_pickle_to_json"](plan["chat"]) for plan in row["plans"]])
    else:
        chat = chats["convert_chats_pickle_to_json"](row["chat"])
    Path("chat.json").write_text(json.dumps(chat))
    saved = None
    for question in questions:
        _, messages = long_term_methods.probing_question_evaluation(
            query=question["question"], chat_directory="", chat_address="chat.json", chat_size=CHATS[length][0],
            evaluation_type="long-context", gpt_llm=None, qwen_llm=None, model=Model(),
            model_config={**config, "model_name": "m", "max_tokens": 10**9}, saved_messages=saved)
        saved = saved or messages

def evaluate(ability, question, number):
    found = getattr(evaluation, "evaluate_" + ability)
    answer = make_answer(number, question["rubric"])
    before = len(items)
    try:
        result = found(rubric=question["rubric"], llm_response=answer, probing_question=question["question"], model=Judge())
    except Exception:
        del items[before:]  # it ends at the first reply that it cannot read
        return None
    if ability != "event_ordering":
        return [result["llm_judge_score"]]
    scores = [result["tau_norm"], result["f1"], result["final_score"], result["llm_judge_score"]]
    return [None if math.isnan(score) else float(score) for score in scores]

golden = {}
for length in CHATS:
    for texts in (items, pairs, asked):
        texts.clear()
    scores, number = [], 0
    for row in rows(length):
        questions = ast.literal_eval(row["probing_questions"])
        ask(row, length, [question for each in questions.values() for question in each])
        for ability, each in questions.items():
            for question in each:
                scores.append(evaluate(ability, question, number))
                number += 1
    golden[length] = {"prompts": digest(asked), "items": digest(items), "pairs": digest(pairs), "scores": scores, "counts": [len(asked), len(items), len(pairs)]}
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    write_golden("benchmarks/beam", run_official(CODE, *parse_folders("official")))


if __name__ == "__main__":
    main()
