"""Write golden.json, which has the official code's requests and scores on the fabricated data.

    python -m tests.golden_makers longbench_v2 --official FOLDER

FOLDER: a checkout of THUDM/LongBench at 2e00731. Its pred.py and result.py run in processes of their own; there the
client, the tokenizers, the limits and the data are the fabricated ones.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

PRED = """
import io, json, os, sys, types
from tests.benchmarks.longbench_v2.fabricate import LIMITS, SEEDS, answer, fingerprint, rows, tokenizer

asked = []
def create(model, messages, temperature, max_tokens):
    (message,) = messages
    asked.append(fingerprint(message["role"], message["content"], temperature, max_tokens))
    return types.SimpleNamespace(choices=[types.SimpleNamespace(
        message=types.SimpleNamespace(content=answer(message["content"])))])
client = types.SimpleNamespace(chat=types.SimpleNamespace(completions=types.SimpleNamespace(create=create)))
for name, values in {
    "openai": {"OpenAI": lambda base_url, api_key: client}, "datasets": {"load_dataset": None},
    "transformers": {"AutoTokenizer": types.SimpleNamespace(from_pretrained=lambda name, **options: tokenizer(name))},
    "tiktoken": {"encoding_for_model": lambda name: tokenizer("tiktoken")},
    "torch": {}, "torch.multiprocessing": {},
}.items():
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(values)
sys.modules["torch"].multiprocessing = sys.modules["torch.multiprocessing"]
os.chdir(sys.argv[1])
sys.path.insert(0, ".")
import pred, tqdm
pred.tqdm = lambda data: data
golden = {}
for case, limit in LIMITS.items():
    kind = case.split()[0]
    model = "gpt" if kind == "tiktoken" else kind
    pred.maxlen_map = {model: limit}
    pred.model_map = {} if kind == "tiktoken" else {kind: kind}
    for mode in ("0shot", "cot", "no_context"):
        for seed in SEEDS:
            asked.clear()
            out = io.StringIO()
            args = types.SimpleNamespace(model=model, rag=0, cot=mode == "cot", no_context=mode == "no_context")
            pred.get_pred(rows(seed), args, out)
            found = [json.loads(line) for line in out.getvalue().splitlines()]
            golden[f"{case} {mode} {seed}"] = {
                "asked": list(asked), "pred": [row["pred"] for row in found], "rows": found}
print("GOLDEN" + json.dumps(golden))
"""

RESULT = """
import json, os, sys
script = open(sys.argv[1] + "/result.py", encoding="utf-8").read()
golden = json.load(sys.stdin)
for case, facts in golden.items():
    os.makedirs("results", exist_ok=True)
    with open("results/x.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\\n" for row in facts["rows"])
    facts["tables"] = []
    for text in (script, script.replace("compensated = False", "compensated = True")):
        exec(compile(text, "result.py", "exec"), {})
        facts["tables"].append(open("result.txt", encoding="utf-8").read().splitlines()[1].split("\\t")[1:])
    del facts["rows"]
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    write_golden(
        "benchmarks/longbench_v2",
        run_official(RESULT, official, data=run_official(PRED, official)),
    )


if __name__ == "__main__":
    main()
