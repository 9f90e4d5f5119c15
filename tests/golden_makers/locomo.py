"""Write golden.json, which has the official codes' results on the fabricated data.

    python -m tests.golden_makers locomo --official FOLDER --mem0 FOLDER --zep FOLDER

The folders are checkouts of snap-research/locomo at 3eb6f2c, mem0ai/mem0 at aae5989 and getzep/zep-papers at 4b7f26c.
`get_gpt_answers` makes the prompts with a batch of one question, with a tokenizer that cuts nothing, the speakers in the
order of the conversation, and our order of the options, because its own orders are different each time. Adversarial
questions get the field `answer`, without which it ends in an error. `eval_question_answering` scores.
"""

from __future__ import annotations

from helm_longctx.benchmarks.locomo import prompts
from helm_longctx.benchmarks.locomo.tasks import order_options
from tests.benchmarks.locomo.fabricate import (
    ODD_REPLIES,
    make_answers,
    make_conversations,
)
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

OFFICIAL = """
import ast, asyncio, json, re, runpy, sys, types
data, out = json.load(sys.stdin), sys.stdout
sys.stdout = sys.stderr
official, mem0, zep = sys.argv[1:4]
sys.path.insert(0, official)

class Stub(types.ModuleType):
    def __getattr__(self, name):
        return lambda *arguments, **options: None

for name in ("global_methods", "tiktoken", "bert_score", "task_eval.rag_utils", "mem0", "mem0.memory", "mem0.memory.utils",
             "zep_cloud", "zep_cloud.client", "dotenv", "openai", "pandas", "requests"):
    sys.modules[name] = Stub(name)
from task_eval import evaluation, gpt_utils

class Encoding:
    def encode(self, text):
        return []

sent = []
flips = iter(data["flips"])
gpt_utils.tiktoken = types.SimpleNamespace(encoding_for_model=lambda name: Encoding())
gpt_utils.random = types.SimpleNamespace(random=lambda: next(flips))
gpt_utils.set = lambda items: list(dict.fromkeys(items))
gpt_utils.tqdm = lambda rows, desc: rows
gpt_utils.time = types.SimpleNamespace(sleep=lambda seconds: None)
gpt_utils.run_chatgpt = lambda query, **options: sent.append([query, options]) or "text"
arguments = types.SimpleNamespace(model="gpt-4-turbo", batch_size=1, use_rag=False, overwrite=True)
for row in data["rows"]:
    gpt_utils.get_gpt_answers(row, {"qa": [{} for _ in row["qa"]]}, "prediction", arguments)

scored = []
for record in data["records"]:
    prediction = record["prediction"]
    if record["number"] == 5:
        a, b = record["options"]
        prediction = gpt_utils.get_cat_5_answer(prediction, {"a": a, "b": b})
    scored.append({"category": record["number"], "answer": record["references"][0], "prediction": prediction.strip()})
scores = evaluation.eval_question_answering(scored)[0]

tree = ast.parse(open(mem0 + "/mem0/memory/utils.py").read())
parts = [node for node in tree.body if getattr(node, "name", "") == "extract_json"]
exec(compile(ast.Module(parts, []), "utils", "exec"), {"re": re}, sys.modules["mem0.memory.utils"].__dict__)
sys.modules["mem0.memory.utils"].extract_json.__globals__["re"] = re
judge = runpy.run_path(mem0 + "/evaluation/metrics/llm_judge.py")
asked = []

def create(**request):
    asked.append(request)
    reply = data["replies"][(len(asked) - 1) % len(data["replies"])]
    return types.SimpleNamespace(choices=[types.SimpleNamespace(message=types.SimpleNamespace(content=reply))])

completions = types.SimpleNamespace(create=create)
judge["evaluate_llm_judge"].__globals__["client"] = types.SimpleNamespace(chat=types.SimpleNamespace(completions=completions))
labels = [judge["evaluate_llm_judge"](*asking) for asking in data["judged"]]

grader = runpy.run_path(zep + "/kg_architecture_agent_memory/locomo_eval/zep_locomo_eval.py")["locomo_grader"]
graded = []

async def parse(**request):
    graded.append(request)
    message = types.SimpleNamespace(parsed=types.SimpleNamespace(is_correct=" Correct"))
    return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)])

client = types.SimpleNamespace(beta=types.SimpleNamespace(chat=types.SimpleNamespace(completions=types.SimpleNamespace(parse=parse))))
assert all([asyncio.run(grader(client, *asking)) for asking in data["judged"]])
sys.stdout = out
print("GOLDEN" + json.dumps({
    "prompts": [query for query, _ in sent],
    "options": sent[0][1],
    "scores": [float(score) for score in scores],
    "labels": labels,
    "mem0": [request["messages"] for request in asked],
    "zep": [request["messages"] for request in graded],
}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    rows = make_conversations()
    flips = []
    for row in rows:
        for number, question in enumerate(row["qa"]):
            if question["category"] != 5:
                continue
            question["answer"] = question["adversarial_answer"]
            name = f"{row['sample_id']}-{number}"
            first, _ = order_options(name, str(question["answer"]))
            flips.append(0.0 if first == prompts.NOT_MENTIONED else 0.9)
    records = make_answers(3000)
    judged = []
    for record in records[: len(ODD_REPLIES)]:
        judged.append(["What {x}?", record["references"][0], record["prediction"]])
    data = {
        "rows": rows,
        "flips": flips,
        "records": records,
        "replies": ODD_REPLIES,
        "judged": judged,
    }
    golden = run_official(
        OFFICIAL, *parse_folders("official", "mem0", "zep"), data=data
    )
    golden["prompts"] = digest(golden["prompts"])
    for name in ("mem0", "zep"):
        texts = []
        for messages in golden[name]:
            texts += [message["content"] for message in messages]
        golden[name] = digest(texts)
    write_golden("benchmarks/locomo", golden)


if __name__ == "__main__":
    main()
