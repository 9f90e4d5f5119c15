"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers longbench_write --official FOLDER

FOLDER: a checkout of THUDM/LongWriter at 3fcfdff. Its scripts pred.py, eval_length.py and eval_quality.py run in processes of
their own, with the fabricated data in place of theirs, a model with fabricated answers in place of torch's, and a module
`requests` that gives the judge's replies.
"""

from __future__ import annotations

from tests.benchmarks.longbench_write.fabricate import (
    TEMPLATE,
    odd_replies,
    replies,
    responses,
    rows,
)
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

OFFICIAL = """
import contextlib, io, json, os, pathlib, runpy, sys, types
from unittest.mock import MagicMock
task = json.load(sys.stdin)
official, task_rows = pathlib.Path(sys.argv[1]) / "evaluation", task["rows"]
folder = pathlib.Path("models/LongWriter-glm4-9b")
folder.mkdir(parents=True)
pathlib.Path("judge.txt").write_text(task["template"], encoding="utf-8")
for name in ("torch", "torch.distributed", "torch.multiprocessing", "transformers", "matplotlib", "matplotlib.pyplot"):
    sys.modules[name] = MagicMock()

pred, prompts = runpy.run_path(str(official / "pred.py")), []
def chat(tokenizer, prompt, **options):
    prompts.append(prompt)
    return task["responses"][len(prompts) - 1], []
model = pred["get_pred"].__globals__["AutoModelForCausalLM"].from_pretrained.return_value.to.return_value
model.eval.return_value.chat = chat
with contextlib.redirect_stdout(io.StringIO()), (folder / "pred.jsonl").open("w", encoding="utf-8") as file:
    pred["get_pred"](0, 1, task_rows, "THUDM/LongWriter-glm4-9b", 32768, 0.5, None, file)
    predictions = [dict(row) for row in task_rows]
with contextlib.redirect_stdout(io.StringIO()):
    length_scores = runpy.run_path(str(official / "eval_length.py"))["scores"]

requests = types.ModuleType("requests")
sys.modules["requests"] = requests

def judge(rows, replies):
    # The script's processes are forks, so what they ask is passed on in files.
    with (folder / "pred.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\\n" for row in rows)
    asked = {}
    def post(url, json=None, **options):
        prompt = json["messages"][0]["content"]
        number = next(n for n, row in enumerate(rows) if row["prompt"].split(":")[0] + ":" in prompt.split("<request>")[1][:9])
        pathlib.Path(f"asked-{number}").write_text(prompt, encoding="utf-8")
        asked[number] = asked.get(number, 0) + 1
        text = replies[number][min(asked[number], len(replies[number])) - 1]
        answer = {"choices": [{"message": {"content": text}}]}
        return types.SimpleNamespace(status_code=200, json=lambda: answer)
    requests.post = post
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return runpy.run_path(str(official / "eval_quality.py"))["total_score"]
    except Exception:
        return None

total = judge(predictions, task["replies"])
judge_prompts = [pathlib.Path(f"asked-{n}").read_text(encoding="utf-8") for n in range(len(predictions))]
odd = [judge(predictions[:1], [[reply] * 5]) for reply in task["odd"]]
print(json.dumps({"prompts": prompts, "words": [row["response_length"] for row in predictions],
                  "length_scores": length_scores, "judge_prompts": judge_prompts, "total": total, "odd": odd}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    data = {
        "rows": rows("requests"),
        "responses": responses(),
        "replies": replies(),
        "odd": odd_replies(),
    }
    golden = run_official(
        OFFICIAL, *parse_folders("official"), data={"template": TEMPLATE, **data}
    )
    write_golden(
        "benchmarks/longbench_write",
        golden | {name: digest(golden[name]) for name in ("prompts", "judge_prompts")},
    )


if __name__ == "__main__":
    main()
