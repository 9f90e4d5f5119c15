"""Write golden.json, which has the official code's requests and scores on the fabricated patients.

    python -m tests.golden_makers longhealth --official FOLDER

FOLDER: a checkout of TIO-IKIM/CLUE at 2de4314. Its eval/eval_LongHealth.py runs as a whole in a process of its own; the
model, the tokenizers and the patients are the fabricated ones, and the draws are seeded before each of its two loops.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

OFFICIAL = """
import json, os, random, shutil, sys, types
from pathlib import Path
from types import SimpleNamespace as Space
from tests.benchmarks.longhealth.fabricate import LIMITS, SEEDS, SOURCE, answer, build_longhealth, fingerprint, tokenizer

asked, parameters = [], []
class LLM:
    def __init__(self, model, download_dir):
        self.llm_engine = Space(model_config=Space(max_model_len=LIMITS[case]))
    def chat(self, messages, sampling_params):
        pairs = [(system["content"], user["content"]) for system, user in messages]
        asked.append(fingerprint(pairs))
        random.seed(42)  # the loop of the tasks 2 and 3 comes after the first call
        return [Space(outputs=[Space(text=answer(prompt))]) for _, prompt in pairs]
for name, values in {
    "vllm": {"LLM": LLM, "SamplingParams": lambda **given: parameters.append(given)},
    "huggingface_hub": {"login": None}, "utils": {"build_first_turn": None},
    "transformers": {"AutoTokenizer": Space(from_pretrained=lambda name, token: tokenizer(case.split()[0]))},
}.items():
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(values)
sys.path.insert(0, os.path.join(sys.argv[1], "eval"))
import eval_LongHealth as official
official.print = lambda *texts: None
golden = {}
for case, limit in LIMITS.items():
    for seed in SEEDS:
        asked.clear()
        path = build_longhealth(Path("."), seed)
        shutil.rmtree("log", ignore_errors=True)
        sys.argv[1:] = ["--model", "x", "--max_len", str(limit), "--data_path", str(path), "--log_path", "log"]
        random.seed(42)
        official.main()
        scores = json.load(open("log/results.json"))
        golden[f"{case} {seed}"] = {
            f"task{n}": [*asked[n - 1], scores[f"Task{n}_Accuracy"]] for n in (1, 2, 3)}
assert all(given == {"max_tokens": 50} for given in parameters)
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    write_golden(
        "benchmarks/longhealth", run_official(OFFICIAL, *parse_folders("official"))
    )


if __name__ == "__main__":
    main()
