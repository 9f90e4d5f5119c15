"""Write golden.json, which has the official code's prompts and scores, and NeMo Gym's, on the fabricated files.

    python -m tests.golden_makers longcodebench --official FOLDER --gym FOLDER

The folders: checkouts of Zteefano/long-code-bench at c403924 and NVIDIA-NeMo/Gym at 07d6b0d. The official evaluator runs
with a model that records its prompts. It ends with an error, because it reads `text` of records that have `response`; its
scores are those of records with both names.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden

CODE = r"""
import ast, json, re, sys, tempfile, types
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional
from tests.benchmarks.longcodebench.fabricate import SAMPLES, answers, rows
from tests.support.official import digest
official, gym = map(Path, sys.argv[1:])
sys.modules["src.long_code_bench.models"] = SimpleNamespace(Model=object)
sys.modules["tqdm"] = SimpleNamespace(auto=None)
sys.modules["tqdm.auto"] = SimpleNamespace(tqdm=lambda **options: SimpleNamespace(update=print, close=print))
space = {}
exec((official / "src/long_code_bench/inference/codeqa_eval.py").read_text(), space)
asked, golden = [], {}
model = SimpleNamespace(generate=lambda prompt, *limits: asked.append(prompt) or "A")
for length in SAMPLES:
    asked.clear()
    evaluator = space["LongCodeQAEvaluator"](model, rows(length), "prompt", "results.json", 1_048_576, None, None)
    try:
        evaluator.run()
    except KeyError as error:
        assert str(error) == "'text'"
    scores = [
        "".join(
            str(evaluator._evaluate_predictions([{"text": text, "correct_letter": row["correct_letter"]}])["correct"])
            for text in answers(row["correct_letter"], False)
        )
        for row in rows(length)
    ]
    golden[f"qa {length}"] = {"prompts": digest(asked), "scores": scores}
server = ast.parse((gym / "resources_servers/mcqa/app.py").read_text())
kept = [part for part in server.body if isinstance(part, (ast.FunctionDef, ast.Assign))]
for part in kept:
    part.returns = None if isinstance(part, ast.FunctionDef) else getattr(part, "returns", None)
    for argument in getattr(getattr(part, "args", None), "args", []):
        argument.annotation = None
names = {"re": re, "Optional": Optional, "Any": Any}
exec(compile(ast.Module(kept, []), "app.py", "exec"), names)
sys.modules["tiktoken"] = SimpleNamespace(
    get_encoding=lambda name: SimpleNamespace(encode=lambda text, **options: [])
)
for length in SAMPLES:
    sys.modules["datasets"] = SimpleNamespace(load_dataset=lambda *names, **options: {"train": rows(length)})
    prepared = {"__name__": "prepare", "__file__": "prepare.py"}
    exec((gym / "benchmarks/longcodebench/prepare.py").read_text(), prepared)
    made = prepared["prepare"](output_fpath=Path("made.jsonl"))
    lines = [json.loads(line) for line in made.open(encoding="utf-8")]
    scores = []
    for line in lines:
        allowed = names["_get_allowed_letters_from_options"](line["options"])
        gold = line["expected_answer"].strip().upper()
        found = [
            names["_parse_answer_letter_strict_boxed"](text.strip(), allowed)[0] if text.strip() else None
            for text in answers(line["expected_answer"], True)
        ]
        scores.append("".join(str(int(letter is not None and letter == gold)) for letter in found))
    golden[f"qa_gym {length}"] = {"prompts": digest(line["question"] for line in lines), "scores": scores}
print("GOLDEN" + json.dumps(golden))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    write_golden(
        "benchmarks/longcodebench",
        run_official(CODE, *parse_folders("official", "gym")),
    )


if __name__ == "__main__":
    main()
