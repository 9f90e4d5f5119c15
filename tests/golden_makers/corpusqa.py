"""Write golden.json, which has the official code's requests and verdicts on the fabricated data.

    python -m tests.golden_makers corpusqa --official FOLDER

FOLDER: a checkout of Tongyi-Zhiwen/CorpusQA at f5b5764. Its scripts run in a process of their own; there the clients
are replaced by functions that record the requests.
"""

from __future__ import annotations

from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

CODE = """
import asyncio, json, os, runpy, sys, types
from pathlib import Path
from tests.benchmarks.corpusqa.fabricate import judged, make_rows, reply_of

asked, judge = [], []
def answer(text):
    message = types.SimpleNamespace(message=types.SimpleNamespace(content=text))
    return types.SimpleNamespace(choices=[message])
async def infer(**options):
    asked.append(options)
    return answer("x")
def grade(**options):
    judge.append(options)
    return answer(reply_of(options["messages"][-1]["content"]))
def client(create):
    return lambda **options: types.SimpleNamespace(
        chat=types.SimpleNamespace(completions=types.SimpleNamespace(create=create)))
sys.modules["openai"] = types.SimpleNamespace(AsyncOpenAI=client(infer), OpenAI=client(grade))
sys.modules["tqdm"] = types.SimpleNamespace(tqdm=lambda items, **options: items)
os.environ["DASHSCOPE_API_KEY"] = "x"
def write(path, rows):
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("".join(json.dumps(row) + "\\n" for row in rows), encoding="utf-8")

write("data/set.jsonl", make_rows())
sys.argv = ["infer.py", "--prompt_file", "data/set.jsonl", "--model", "m"]
runpy.run_path(os.environ["OFFICIAL"] + "/src/infer.py", run_name="__main__")
# infer.py strips the responses.
write("runs/m_set.jsonl", [{**row, "response": row["response"].strip()} for row in judged()])
sys.argv = ["eval.py", "--input_file", "m_set.jsonl", "--model", "deepseek-v3"]
runpy.run_path(os.environ["OFFICIAL"] + "/src/eval.py", run_name="__main__")
correct = {}
for line in open("evals/m_set_eval.jsonl", encoding="utf-8"):
    row = json.loads(line)
    correct[row["id"]] = row["correct"]
print("GOLDEN" + json.dumps({"asked": asked, "judge": judge, "correct": correct}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    golden = run_official(
        f"import os; os.environ['OFFICIAL'] = {str(official)!r}\n{CODE}", official
    )
    settings = {name: golden["asked"][0][name] for name in ("temperature", "stream")}
    # infer.py and eval.py ask in parallel, so their requests have no order.
    prompts = sorted(
        digest(
            text
            for message in asked["messages"]
            for text in (message["role"], message["content"])
        )
        for asked in golden["asked"]
    )
    judge = sorted(
        message["content"] for asked in golden["judge"] for message in asked["messages"]
    )
    write_golden(
        "benchmarks/corpusqa",
        {
            "settings": settings,
            "prompts": digest(prompts),
            "judge_temperatures": sorted(
                {asked["temperature"] for asked in golden["judge"]}
            ),
            "judge": digest(judge),
            "correct": golden["correct"],
        },
        indent=1,
    )


if __name__ == "__main__":
    main()
