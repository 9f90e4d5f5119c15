"""Compares servers that have the weights of `local/smollm2-135m-instruct` with our client: answers, and scores of runs.

    python bench/engines.py http://localhost:8101/v1=NAME http://localhost:8102/v1=/path/to/folder

Each argument is an address and the model's name on the server. First, three short prompts are sent greedily, each as a
chat and as a completion; the script prints the answers, and the numbers of prompt tokens. Then `helm-longctx run` asks
questions about short texts, as chats and as completions, through our client and each server, and the script prints the
scores of `helm-longctx summarize`, and how many answers are our client's. docs/models.md explains the differences.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROMPTS = (
    "The colour of room 12 is red. The colour of room 31 is blue. What is the colour of room 31?",
    "What is the capital of France?",
    "List three animals:\n\n1.",
)
FORMS = ("chat", "completion")
TOKENS = 12

OURS = "local/smollm2-135m-instruct"
ENTRY = "any_jsonl:path=questions,length=4k,count_with=longctx/words,num_output_tokens=24"
COLOURS = ("red", "blue", "green", "white", "black", "yellow", "brown", "pink", "orange", "purple", "grey", "golden")
"""The colours of the rooms in a text; one question is asked about each room of a text of its own."""


def ask_server(address: str, model: str, form: str, prompt: str) -> tuple[str, int]:
    """Return a server's answer, and the number of prompt tokens that it counts."""
    body: dict[str, Any] = {"model": model, "max_tokens": TOKENS, "temperature": 0}
    body |= {"messages": [{"role": "user", "content": prompt}]} if form == "chat" else {"prompt": prompt}
    url = f"{address}/{'chat/completions' if form == 'chat' else 'completions'}"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as response:
        reply = json.load(response)
    choice = reply["choices"][0]
    return choice["message"]["content"] if form == "chat" else choice["text"], reply["usage"]["prompt_tokens"]


def ask_ours() -> dict[tuple[str, str], tuple[str, int]]:
    """Return our client's answers and numbers of prompt tokens, by form and prompt."""
    from helm.common.cache import BlackHoleCacheConfig
    from helm.common.request import Request

    from helm_longctx.models.apis.usage import usage_of
    from helm_longctx.models.local.huggingface import LongContextHuggingFaceClient
    from helm_longctx.models.local.packaged import SMOLLM2, PackagedTokenizer

    config = BlackHoleCacheConfig()
    client = LongContextHuggingFaceClient(config, PackagedTokenizer(config, "bench/smollm2", SMOLLM2), SMOLLM2)
    found = {}
    for prompt in PROMPTS:
        for form in FORMS:
            chat: dict[str, Any] = {"messages": []} if form == "chat" else {}
            request = Request(
                "bench/m", "bench/m", prompt=prompt, temperature=0, max_tokens=TOKENS, stop_sequences=[], **chat
            )
            result = client.make_request(request)
            usage = usage_of(result)
            found[form, prompt] = result.completions[0].text, usage.input_tokens if usage else 0
    return found


def write_questions(folder: Path) -> None:
    """Write a question about each room. Its text says the colours of all rooms, in an order of its own."""
    folder.mkdir()
    rows = []
    for room in range(len(COLOURS)):
        colours = [COLOURS[(room + 5 * number) % len(COLOURS)] for number in range(len(COLOURS))]
        text = " ".join(f"The colour of room {number} is {colour}." for number, colour in enumerate(colours, 1))
        # A model can continue this text as a completion, too.
        question = f"The colour of room {room + 1} is"
        rows.append({"id": str(room), "context": text, "question": question, "answers": [colours[room]]})
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def run(folder: Path, suite: str, form: str, model: Sequence[str]) -> tuple[dict[str, float], dict[str, str]]:
    """Return the scores and the answers of a run with the command, in a folder with the questions."""
    command = [sys.executable, "-m", "helm_longctx"]
    entry = ["--entry", f"{ENTRY},style={form}", "--suite", suite, "-n", "1", "-q"]
    subprocess.run([*command, "run", *entry, *model], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    summarize = [*command, "summarize", "--suite", suite, "--json"]
    done = subprocess.run(summarize, cwd=folder, check=True, stdout=subprocess.PIPE)
    scores = {name: score for row in json.loads(done.stdout) for name, score in row["scores"].items()}
    (path,) = (folder / "benchmark_output/runs" / suite).glob("any_jsonl*/scenario_state.json")
    states = json.loads(path.read_text(encoding="utf-8"))["request_states"]
    return scores, {state["instance"]["id"]: state["result"]["completions"][0]["text"] for state in states}


def print_runs(servers: Sequence[tuple[str, str]]) -> None:
    """Run the questions with our client and each server, and print scores and equal answers side by side."""
    models = {"ours": ["--model", OURS]}
    for address, name in servers:
        server = ["--model-url", address, "--model-name", name, "--model-type", "both", "--context", "8192"]
        models[address] = server
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_questions(folder / "questions")
        for form in FORMS:
            ours: dict[str, str] = {}
            for number, (engine, model) in enumerate(models.items()):
                scores, answers = run(folder, f"{form}{number}", form, model)
                ours = ours or answers
                equal = sum(answers[key] == text for key, text in ours.items())
                listed = ", ".join(f"{name} {100 * score:.1f}" for name, score in scores.items())
                print(f"{form:10} {engine}: {listed}; {equal} of {len(ours)} answers are ours", flush=True)
                for key in (key for key, text in ours.items() if answers[key] != text):
                    print(f"    {key}: ours {ours[key]!r}, theirs {answers[key]!r}", flush=True)


def print_answers(servers: Sequence[tuple[str, str]]) -> None:
    """Print our answers, and for each server which of its answers differ."""
    ours = ask_ours()
    for (form, _), (text, tokens) in ours.items():
        print(f"ours  {form:10} {tokens:3} prompt tokens  {text!r}", flush=True)
    for address, model in servers:
        for (form, prompt), (text, tokens) in ours.items():
            theirs, counted = ask_server(address, model, form, prompt)
            verdict = "equal" if theirs == text else "differs"
            print(
                f"{address}  {form:10} {counted:3} ({counted - tokens:+}) prompt tokens  {verdict}  {theirs!r}",
                flush=True,
            )


def main() -> None:
    """Compare answers, then runs."""
    servers = [(address, model) for address, _, model in (argument.partition("=") for argument in sys.argv[1:])]
    print_answers(servers)
    print_runs(servers)


if __name__ == "__main__":
    main()
