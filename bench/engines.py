"""Compares servers that have the weights of `local/smollm2-135m-instruct` with our client, answer by answer.

    python bench/engines.py llama.cpp=http://localhost:8101/v1 transformers=http://localhost:8102/v1,/path/to/folder

Each argument is a label, an address, and perhaps the model's name on the server. Twelve short questions about a text
are asked in chats and in completions by `helm-run`. For each engine and form the script prints the score and
how many answers are equal to our client's. docs/models.md explains the differences.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

DEPLOYMENT = "local/smollm2-135m-instruct"
ENTRY = "any_jsonl:path=questions,metric=contains,length=4k,count_with=longctx/words,max_tokens=16"
COUNT, LINES = 12, 16
STYLES = ("chat", "completion")
COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "grey")


def write_questions(folder: Path) -> None:
    """Write questions about the colours of rooms."""
    rng = random.Random(7)
    rows = []
    for _ in range(COUNT):
        rooms = rng.sample(range(10, 100), LINES)
        colours = {room: rng.choice(COLOURS) for room in rooms}
        context = " ".join(f"The colour of room {room} is {colour}." for room, colour in colours.items())
        room = rng.choice(rooms)
        rows.append({"context": context, "question": f"What is the colour of room {room}?", "answers": [colours[room]]})
    folder.mkdir()
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def ask(folder: Path, label: str, server: str) -> None:
    """Run the questions in both forms with one engine."""
    address, _, name = server.partition(",")
    model = f"engine/{label}" if address else DEPLOYMENT
    if address:
        options = ["--model", name] if name else []
        call(folder, "helm-longctx", "models", "add", model, "--url", address, "--context", "8k", *options)
    entries = [f"{ENTRY},style={style},model={model}" for style in STYLES]
    runner = ["--runner-class-name", "helm_longctx.runner.LongContextRunner", "--local-path", "prod_env", "-n", "1"]
    call(folder, "helm-run", "--run-entries", *entries, "--suite", label, "-m", "100", *runner)


def call(folder: Path, command: str, *arguments: str) -> None:
    """Run an installed command, and end this script if it fails."""
    line = [str(Path(sys.executable).parent / command), *arguments]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments[:3])}: {done.stderr[-1500:]}")


def read_answers(folder: Path, label: str, style: str) -> list[tuple[str, int, float]]:
    """Return text, prompt tokens and score of each answer, in the order of the questions."""
    (path,) = folder.glob(f"benchmark_output/runs/{label}/*style={style}*/scenario_state.json")
    states = json.loads(path.read_text(encoding="utf-8"))["request_states"]
    rows = json.loads((path.parent / "per_instance_stats.json").read_text(encoding="utf-8"))
    scores = {
        row["instance_id"]: stat["mean"]
        for row in rows
        for stat in row["stats"]
        if stat["name"]["name"] == "longctx_score"
    }
    found = []
    for state in states:
        answer = state["result"]["completions"][0]
        usage = answer["finish_reason"].get("usage", {})
        number = state["instance"]["id"]
        found.append((answer["text"], usage.get("input_tokens", 0), scores[number]))
    return found


def main() -> None:
    """Ask all engines, and print a line for each engine and form."""
    servers = {"ours": "", **dict(argument.split("=", 1) for argument in sys.argv[1:])}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_questions(folder / "questions")
        for label, server in servers.items():
            ask(folder, label, server)
            for style in STYLES:
                ours, theirs = (read_answers(folder, each, style) for each in ("ours", label))
                equal = sum(a[0].strip() == b[0].strip() for a, b in zip(ours, theirs, strict=True))
                tokens = sum(a[1] == b[1] for a, b in zip(ours, theirs, strict=True))
                score = 100 * sum(answer[2] for answer in theirs) / COUNT
                print(f"{label:14} {style:10}  score {score:5.1f}  equal answers {equal} of {COUNT}", end="")
                print(f"  equal prompt tokens {tokens} of {COUNT}", flush=True)
                for mine, other in zip(ours, theirs, strict=True):
                    if mine[0].strip() != other[0].strip():
                        print(f"    ours {mine[:2]}  {label} {other[:2]}")


if __name__ == "__main__":
    main()
