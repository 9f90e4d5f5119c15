"""Write golden.json, which has the official code's messages and scores on the fabricated data.

    python -m tests.golden_makers agentlongbench --official FOLDER

FOLDER: a checkout of euReKa025/AgentLongBench at 57e13e8. `build_prompt`, `parse_response` and `evaluate` run on files in
the official folders; `evaluate` gets one answer at a time. A score is null if it counts no answer, or ends in an error.
"""

from __future__ import annotations

from helm_longctx.benchmarks.agentlongbench.tasks import KINDS, SETTINGS
from tests.benchmarks.agentlongbench.fabricate import make_records, make_rows
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

RECORDS = 150
"""Number of answers to each kind of questions on each kind of log."""

OFFICIAL = """
import json, sys
from pathlib import Path
data = json.load(sys.stdin)
sys.path.insert(0, sys.argv[1])
from eval.common.mapping import infer_context_from_path
from eval.common.question_logic import build_prompt, parse_response
from eval.evaluate import evaluate

messages = {}
for name, rows in data["rows"].items():
    _, knowledge, _, history = infer_context_from_path(Path(name))
    prompts = [build_prompt(row["question_type"], row, history, knowledge) for row in rows]
    messages[name] = [json.dumps(prompt, ensure_ascii=False) for prompt in prompts]

scores = []
for record in data["records"]:
    folder = Path(record["setting"])
    folder.mkdir(exist_ok=True)
    _, _, _, history = infer_context_from_path(folder)
    row = {"id": "x", "question_type": record["question_type"], "answer": record["answer"]}
    value, _ = parse_response(record["question_type"], history, record["prediction"])
    (folder / "data.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (folder / "pred.jsonl").write_text(json.dumps({"id": "x", "pred_answer": value}), encoding="utf-8")
    result = evaluate(folder / "data.jsonl", folder / "pred.jsonl")
    scores.append(result["score"] if result.get("total", 1) else None)
print("GOLDEN" + json.dumps({"messages": messages, "scores": scores}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    (official,) = parse_folders("official")
    rows = {}
    for setting in SETTINGS:
        for name in KINDS:
            rows[f"{setting}/{name}"] = make_rows(setting, name)
    records = []
    for record in make_records(RECORDS):
        records.append({**record, "question_type": KINDS[record["kind"]].official})
    golden = run_official(OFFICIAL, official, data={"rows": rows, "records": records})
    golden["messages"] = {
        name: digest(texts) for name, texts in golden["messages"].items()
    }
    write_golden("benchmarks/agentlongbench", golden)


if __name__ == "__main__":
    main()
