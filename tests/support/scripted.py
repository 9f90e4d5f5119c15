"""Models that answer by a script: they know only what stands in the prompt that they get.

They answer questions of `helmet_recall:task=json_kv`, whose context has pairs of keys and values.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from helm_longctx.tasks.methods import reading
from helm_longctx.tasks.methods.method import Question, Reply, Step
from helm_longctx.tasks.methods.registry import METHODS
from tests.support.servers.tools import Turn

PAIR = re.compile(r'"([0-9a-f-]{36})": "([0-9a-f-]{36})"')
ASKED = re.compile(r"Key: \"?([0-9a-f-]{36})\"?")


def pairs_of(text: str) -> dict[str, str]:
    """Return the pairs in a text."""
    return dict(PAIR.findall(text))


def write(pairs: dict[str, str]) -> str:
    """Return pairs as they stand in a context."""
    return (
        "\n".join(f'"{key}": "{value}"' for key, value in pairs.items())
        or reading.NOTHING
    )


_PHRASES = {
    reading.SUMMARIZE: "is too long to keep",
    reading.EXTRACT: "Copy from it, word for word",
    reading.REWRITE: "Write the notes anew",
    reading.GIST: "Summarize it in a few sentences",
    reading.READ_AGAIN: "for a second reading",
}
"""A phrase of each prompt, which no other has."""
assert all(
    phrase.replace(" reading", "") in " ".join(prompt.split())
    for prompt, phrase in _PHRASES.items()
)


def answer(prompt: str, keep: Callable[[str], bool] = lambda key: True) -> str:
    """Answer any prompt of the built-in methods from its pairs.

    Args:
        keep: whether a summary keeps a key that it has.
    """
    pairs = pairs_of(prompt)
    asked = ASKED.findall(prompt)
    (kind, *_) = [
        kind for kind, phrase in _PHRASES.items() if phrase in prompt[:600]
    ] or [None]
    if kind == reading.SUMMARIZE:
        return write({key: value for key, value in pairs.items() if keep(key)})
    if kind == reading.GIST:
        return f"{len(pairs)} pairs."
    if kind:
        return write({key: value for key, value in pairs.items() if key == asked[-1]})
    return pairs.get(asked[-1], "I do not know.") if asked else "I do not know."


def lose(share: float, seed: int) -> Callable[[str], bool]:
    """Return a rule by which each key is lost with a probability, the same for a key whenever it is asked about."""
    return lambda key: random.Random(f"{seed} {key}").random() >= share


def make_question(
    pairs: int, seed: int, depth: float, method: str, **arguments: object
) -> tuple[Question, str]:
    """Return a question about random pairs for a method's program, without a model, and the value that is right."""
    rng = random.Random(f"{seed} {pairs} {depth}")

    def name() -> str:
        sizes = (8, 4, 4, 4, 12)
        return "-".join(f"{rng.getrandbits(4 * size):0{size}x}" for size in sizes)

    known = {name(): name() for _ in range(pairs)}
    key = [*known][min(pairs - 1, int(depth * pairs))]
    context = "\n".join(f'"{one}": "{other}",' for one, other in known.items())
    text = f"JSON data:\n{context}\n\nKey: {key}\nCorresponding value:"
    start = text.index(context)
    own = {**METHODS[method].arguments, **arguments}
    question = Question(
        f"{seed}",
        text,
        (start, start + len(context)),
        key,
        own,
        100,
        send=lambda steps: [],
    )
    return question, known[key]


def ask(
    question: Question, method: str, keep: Callable[[str], bool] = lambda key: True
) -> tuple[str, int]:
    """Return the answer of a method's program with this model, without a server, and the characters of all prompts."""
    seen = 0

    def send(steps: Sequence[Step]) -> list[Reply]:
        nonlocal seen
        prompts = [
            "\n".join(message["content"] for message in step.messages) for step in steps
        ]
        seen += sum(map(len, prompts))
        return [Reply(answer(prompt, keep)) for prompt in prompts]

    question.send = send
    program = METHODS[method].answer
    assert program
    return program(question), seen


def coder(prompt: str) -> str:
    """Look at the context by code, ask a sub-model for each half of it, and answer with what one of them finds."""
    if prompt.startswith("FIND "):
        _, key, text = prompt.split(" ", 2)
        match = re.search(f'"{key}": "([^"]+)"', text)
        return match[1] if match else "none"
    (key, *_) = ASKED.findall(prompt)[-1:]
    if "REPL output" not in prompt:
        return "I look first.\n```repl\nprint(len(context))\n```"
    code = f"""halves = context[: len(context) // 2], context[len(context) // 2 - 100 :]
found = llm_query_batched(["FIND {key} " + part for part in halves])
answer["content"] = next(each for each in found if each != "none")
answer["ready"] = True"""
    return f"Now I ask.\n```repl\n{code}\n```"


def reader(task: str, results: Sequence[str]) -> Turn:
    """Look for the key, open its place, call a tool that is not there, and answer."""
    (key, *_) = re.findall(r"Key: ([0-9a-f-]{36})", task)[-1:]
    if not results:
        return Turn(tool="find_next", arguments={"text": key, "position": -1})
    if len(results) == 1:
        match = re.findall(r"position (\d+)", results[0])[0]
        return Turn("I open it.", "open", {"position": int(match)})
    if len(results) == 2:
        return Turn(tool="read_all", arguments={"everything": True})
    assert "There is no tool 'read_all'" in results[2]
    return Turn(re.findall(f'{key}": "([^"]+)"', results[1])[0])
