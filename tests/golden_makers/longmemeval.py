"""Write golden.json, which has the official code's results on the fabricated data.

    python -m tests.golden_makers longmemeval --official FOLDER

FOLDER: a checkout of xiaowu0162/LongMemEval at 9e0b455. `prepare_prompt` of run_generation.py makes the prompts of each form
of the chats with a tokenizer that cuts nothing. evaluate_qa.py asks a judge with fabricated replies, and print_qa_metrics.py
prints the accuracies.
"""

from __future__ import annotations

from helm_longctx.benchmarks.longmemeval.tasks import READINGS
from tests.benchmarks.longmemeval.fabricate import ODD_REPLIES, make_answers, make_rows
from tests.golden_makers.running import parse_folders, run_official, write_golden
from tests.support.official import digest

OFFICIAL = """
import contextlib, copy, io, json, re, runpy, sys, types
data, out = json.load(sys.stdin), sys.stdout
sys.stdout = sys.stderr
source, asked = sys.argv[1] + "/src/", []

def create(**request):
    reply = data["replies"][len(asked) % len(data["replies"])]
    asked.append(request)
    return types.SimpleNamespace(choices=[types.SimpleNamespace(message=types.SimpleNamespace(content=reply))])

class OpenAI:
    def __init__(self, **options):
        self.chat = types.SimpleNamespace(completions=types.SimpleNamespace(create=create))

keep = lambda *arguments, **options: lambda function: function
sys.modules["backoff"] = types.SimpleNamespace(on_exception=keep, constant=None, expo=None)
sys.modules["openai"] = types.SimpleNamespace(OpenAI=OpenAI, RateLimitError=None, APIError=None)
sys.modules["tqdm"] = types.SimpleNamespace(tqdm=lambda rows: rows)
for name in ("tiktoken", "transformers"):
    sys.modules[name] = types.SimpleNamespace(AutoTokenizer=None)

class Tokenizer:
    def encode(self, text, allowed_special):
        return [text]

prepare = runpy.run_path(source + "generation/run_generation.py")["prepare_prompt"]
prompts = {}
for name, (retriever, form, user_only, notes) in data["readings"].items():
    prompts[name] = [
        prepare(copy.deepcopy(row), retriever, 1000, user_only, form, notes, Tokenizer(), "openai", 128000, "none")
        for row in data["rows"]
    ]

with open("references.json", "w") as file:
    json.dump(data["rows"], file)
# The script of the reader stores answers without white space around them.
with open("answers", "w") as file:
    for row, answer in zip(data["rows"], data["answers"]):
        file.write(json.dumps({"question_id": row["question_id"], "hypothesis": answer.strip()}) + "\\n")

def run(script, *arguments):
    sys.argv[1:] = arguments
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(source + "evaluation/" + script, run_name="__main__")
    return printed.getvalue()

run("evaluate_qa.py", "gpt-4o", "answers", "references.json")
with open("answers.eval-results-gpt-4o") as file:
    labels = [json.loads(line)["autoeval_label"]["label"] for line in file]
printed = run("print_qa_metrics.py", "answers.eval-results-gpt-4o", "references.json")
sys.stdout = out
print("GOLDEN" + json.dumps({
    "prompts": prompts,
    "judge_prompts": [request["messages"] for request in asked],
    "options": {name: asked[0][name] for name in ("model", "temperature", "max_tokens")},
    "labels": labels,
    "printed": dict(re.findall(r"([\\w -]+): ([\\d.]+)", printed)),
}))
"""


def main() -> None:
    """Run the official code and write its results beside the tests."""
    readings = {
        name: (
            "orig-session",
            "json" if reading.form.json else "nl",
            reading.form.user_only,
            reading.notes,
        )
        for name, reading in READINGS.items()
    }
    rows = make_rows("s")
    data = {
        "rows": rows,
        "readings": readings,
        "answers": make_answers(len(rows)),
        "replies": ODD_REPLIES,
    }
    golden = run_official(OFFICIAL, *parse_folders("official"), data=data)
    golden["prompts"] = {
        name: digest(prompts) for name, prompts in golden["prompts"].items()
    }
    judge_prompts = golden["judge_prompts"]
    assert all(
        [message["role"] for message in messages] == ["user"]
        for messages in judge_prompts
    )
    golden["judge_prompts"] = digest(
        message["content"] for messages in judge_prompts for message in messages
    )
    write_golden("benchmarks/longmemeval", golden, indent=0)


if __name__ == "__main__":
    main()
