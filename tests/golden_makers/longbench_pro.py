"""Write golden.json, which has the official code's prompts and scores on the fabricated data.

    python -m tests.golden_makers longbench_pro --official FOLDER

FOLDER: a checkout of caskcsg/longcontext at 88fbeb8. Its modules run in a process of their own; there the client, the
tokenizer, the embedding model and the data are the fabricated ones.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

CODE = """
import json, logging, os, sys, types
from pathlib import Path
from tests.benchmarks.longbench_pro.fabricate import LIMITS, fake_similarity, make_rows, score_cases
from tests.benchmarks.longbench_v2.fabricate import tokenizer

class Embedding:
    def __init__(self, *a, **k): pass
    encode = staticmethod(lambda texts: texts)
    def similarity(self, answers, predictions):
        value = fake_similarity(answers, predictions[0])
        same = types.SimpleNamespace(numpy=lambda: value)
        return types.SimpleNamespace(max=lambda: types.SimpleNamespace(cpu=lambda: same))

asked = []
def create(messages, **options):
    ((message,)) = messages
    asked.append([message["role"], message["content"]])
    answer = types.SimpleNamespace(content="a")
    return types.SimpleNamespace(choices=[types.SimpleNamespace(message=answer)])
client = types.SimpleNamespace(chat=types.SimpleNamespace(completions=types.SimpleNamespace(create=create)))
for name, values in {
    "openai": {"OpenAI": lambda **options: client}, "datasets": {"Dataset": None, "load_dataset": None},
    "sentence_transformers": {"SentenceTransformer": Embedding},
    "transformers": {"AutoTokenizer": types.SimpleNamespace(
        from_pretrained=lambda path, **options: tokenizer(os.path.basename(path)))},
    "torch": {}, "torch.multiprocessing": {"Lock": None, "Process": None},
}.items():
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(values)
sys.modules["torch"].multiprocessing = sys.modules["torch.multiprocessing"]
sys.path.insert(0, sys.argv[1] + "/LongBench-Pro")
from modules.evaluation import Evaluator
from modules.inference import InferenceEngine
from modules.model_manager import ModelManagerOpenAI
logging.disable()

prompts = {}
for case, limit in LIMITS.items():
    kind = case.split()[0]
    Path(kind).touch()
    for thinks in (False, True):
        asked.clear()
        engine = InferenceEngine(ModelManagerOpenAI("m", kind, limit, time_sleep=0), thinks)
        for row in make_rows():
            engine.process_single_item(row)
        prompts[f"{case} {'thinking' if thinks else ''}"] = list(asked)

def main():  # the same number of frames as in the official main.py, so that the recursion of rouge fails as there
    evaluator.evaluate(["inference.jsonl"], "scores.jsonl")

items = [dict(id=number, secondary_task=case["task"], language=case["language"], answer=case["answers"],
              prediction=case["output"].strip()) for number, case in enumerate(score_cases())]
Path("inference.jsonl").write_text("".join(json.dumps(item) + "\\n" for item in items))
evaluator = Evaluator(len(items))
main()
scores = [json.loads(line)["metric"] for line in open("scores.jsonl", encoding="utf-8")]
print("GOLDEN" + json.dumps({"prompts": prompts, "scores": scores}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    golden = run_official(CODE, official)
    golden["prompts"] = {
        case: digest(text for message in messages for text in message)
        for case, messages in golden["prompts"].items()
    }
    write_golden("benchmarks/longbench_pro", golden)


if __name__ == "__main__":
    main()
