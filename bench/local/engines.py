"""Compares servers that have the weights of `local/smollm2-135m-instruct` with our client: answers, and scores of runs.

    python -m bench.local.engines http://localhost:8102/v1=/path/to/folder 'http://localhost:8101/v1=NAME;{"repeat_penalty":1}'

Each argument is an address, the model's name on the server, and fields that are added to each request. First, three
short prompts are sent greedily, each as a chat and as a completion; the script prints the answers, and the numbers of
prompt tokens. Then `helm-longctx run` asks questions about short texts, as chats and as completions, through our client
and each server, and the script prints the scores of `helm-longctx summarize`, and how many answers are our client's.
docs/models.md explains the differences.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

PROMPTS = (
    "The colour of room 12 is red. The colour of room 31 is blue. What is the colour of room 31?",
    "What is the capital of France?",
    "List three animals:\n\n1.",
)
FORMS = ("chat", "completion")
TOKENS = 12

COMMAND = (sys.executable, "-m", "helm_longctx")
OURS = "local/smollm2-135m-instruct"
ENTRY = "any_jsonl:path={form},style={form},length=4k,count_with=longctx/words,num_output_tokens=24"
COLOURS = (
    "red",
    "blue",
    "green",
    "white",
    "black",
    "yellow",
    "brown",
    "pink",
    "orange",
    "purple",
    "grey",
    "golden",
)
"""The colours of the rooms in a text; one question is asked about each room of a text of its own."""

QUESTIONS = {
    "chat": "What is the colour of room {room}?",
    "completion": "The colour of room {room} is",
}


class Server(NamedTuple):
    """Args: the address, the model's name on the server, and fields that are added to each request."""

    address: str
    model: str
    fields: dict[str, Any]

    @staticmethod
    def read(argument: str) -> Server:
        """Read an argument of the command line."""
        address, _, rest = argument.partition("=")
        model, _, fields = rest.partition(";")
        return Server(address, model, json.loads(fields or "{}"))


def ask_server(server: Server, form: str, prompt: str) -> tuple[str, int]:
    """Return a server's answer, and the number of prompt tokens that it counts."""
    body: dict[str, Any] = {
        "model": server.model,
        "max_tokens": TOKENS,
        "temperature": 0,
        **server.fields,
    }
    body |= (
        {"messages": [{"role": "user", "content": prompt}]}
        if form == "chat"
        else {"prompt": prompt}
    )
    url = f"{server.address}/{'chat/completions' if form == 'chat' else 'completions'}"
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        reply = json.load(response)
    choice = reply["choices"][0]
    return choice["message"]["content"] if form == "chat" else choice["text"], reply[
        "usage"
    ]["prompt_tokens"]


def ask_ours() -> dict[tuple[str, str], tuple[str, int]]:
    """Return our client's answers and numbers of prompt tokens, by form and prompt."""
    from helm.common.cache import BlackHoleCacheConfig
    from helm.common.request import Request

    from helm_longctx.models.local.huggingface import LongContextHuggingFaceClient
    from helm_longctx.models.local.packaged import SMOLLM2, PackagedTokenizer
    from helm_longctx.models.results import usage_of

    config = BlackHoleCacheConfig()
    client = LongContextHuggingFaceClient(
        config, PackagedTokenizer(config, "bench/smollm2", SMOLLM2), SMOLLM2
    )
    answers = {}
    for prompt in PROMPTS:
        for form in FORMS:
            chat: dict[str, Any] = {"messages": []} if form == "chat" else {}
            request = Request(
                "bench/m",
                "bench/m",
                prompt=prompt,
                temperature=0,
                max_tokens=TOKENS,
                stop_sequences=[],
                **chat,
            )
            result = client.make_request(request)
            usage = usage_of(result)
            answers[form, prompt] = (
                result.completions[0].text,
                usage.input_tokens if usage else 0,
            )
    return answers


def write_questions(folder: Path) -> None:
    """Write a question about each room, for completions as the start of an answer.

    Its text says the colours of all rooms, in an order of its own.
    """
    folder.mkdir()
    rows = []
    for room in range(len(COLOURS)):
        colours = [
            COLOURS[(room + 5 * number) % len(COLOURS)]
            for number in range(len(COLOURS))
        ]
        text = " ".join(
            f"The colour of room {number} is {colour}."
            for number, colour in enumerate(colours, 1)
        )
        question = QUESTIONS[folder.name].format(room=room + 1)
        rows.append(
            {
                "id": str(room),
                "context": text,
                "question": question,
                "answers": [colours[room]],
            }
        )
    (folder / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )


def add_server(folder: Path, name: str, server: Server, kind: str = "both") -> None:
    """Make a deployment of a server with the command, and add the server's fields to its requests."""
    add = [
        "models",
        "add",
        name,
        "--url",
        server.address,
        "--model",
        server.model,
        "--type",
        kind,
    ]
    subprocess.run(
        [*COMMAND, *add, "--context", "8192"],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    path = folder / "prod_env/model_deployments.yaml"
    table = yaml.safe_load(path.read_text(encoding="utf-8"))
    (deployment,) = (row for row in table["model_deployments"] if row["name"] == name)
    deployment["client_spec"]["args"]["extra_body"] = server.fields
    path.write_text(yaml.safe_dump(table), encoding="utf-8")


def run(folder: Path, model: str, form: str) -> tuple[dict[str, float], dict[str, str]]:
    """Return the scores and the answers of a run with the command, in a folder with the questions."""
    suite = f"{form}-{model.replace('/', '-')}"
    ask = [
        "run",
        "--entry",
        ENTRY.format(form=form),
        "--suite",
        suite,
        "--model",
        model,
        "-n",
        "1",
        "-q",
    ]
    subprocess.run([*COMMAND, *ask], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    summarize = [*COMMAND, "summarize", "--suite", suite, "--json"]
    done = subprocess.run(summarize, cwd=folder, check=True, stdout=subprocess.PIPE)
    scores = {
        name: score
        for row in json.loads(done.stdout)
        for name, score in row["scores"].items()
    }
    (path,) = (folder / "benchmark_output/runs" / suite).glob(
        "any_jsonl*/scenario_state.json"
    )
    states = json.loads(path.read_text(encoding="utf-8"))["request_states"]
    return scores, {
        state["instance"]["id"]: state["result"]["completions"][0]["text"]
        for state in states
    }


def print_runs(servers: Sequence[Server]) -> None:
    """Run the questions with our client and each server, and print scores and equal answers side by side."""
    engines = {OURS: "ours"} | {
        f"server/{n}": f"{server.address} {server.fields}"
        for n, server in enumerate(servers)
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model, server in zip([*engines][1:], servers, strict=True):
            add_server(folder, model, server)
        for form in FORMS:
            write_questions(folder / form)
            ours: dict[str, str] = {}
            for model, engine in engines.items():
                scores, answers = run(folder, model, form)
                ours = ours or answers
                print_run(f"{form:10} {engine}", scores, answers, ours)


def print_run(
    name: str, scores: dict[str, float], answers: dict[str, str], ours: dict[str, str]
) -> None:
    """Print a run's scores, and its answers that are not ours."""
    listed = ", ".join(
        f"{metric} {100 * score:.1f}" for metric, score in scores.items()
    )
    others = [key for key, text in ours.items() if answers[key] != text]
    print(
        f"{name}: {listed}; {len(ours) - len(others)} of {len(ours)} answers are ours",
        flush=True,
    )
    for key in others:
        print(f"    {key}: ours {ours[key]!r}, theirs {answers[key]!r}", flush=True)


def print_answers(servers: Sequence[Server]) -> None:
    """Print our answers, and for each server which of its answers differ."""
    ours = ask_ours()
    for (form, _), (text, tokens) in ours.items():
        print(f"ours  {form:10} {tokens:3} prompt tokens  {text!r}", flush=True)
    for server in servers:
        for (form, prompt), (text, tokens) in ours.items():
            theirs, counted = ask_server(server, form, prompt)
            verdict = "equal" if theirs == text else "differs"
            where = f"{server.address} {server.fields}  {form:10} {counted:3} ({counted - tokens:+}) prompt tokens"
            print(f"{where}  {verdict}  {theirs!r}", flush=True)


def main() -> None:
    """Compare answers, then runs."""
    servers = [Server.read(argument) for argument in sys.argv[1:]]
    print_answers(servers)
    print_runs(servers)


if __name__ == "__main__":
    main()
