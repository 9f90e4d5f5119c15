"""Simulates models with known curves: they see a part of a prompt, and answer questions about it without a fault."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from helm_longctx.benchmarks.fresh_text.tasks import associations, categories
from helm_longctx.tasks.token_estimate import estimate_tokens
from tests.support.json_http import JsonHandler, serve_handler

Messages = Sequence[Mapping[str, str]]

ORDINALS = ("first", "second", "third")

STARTS = {
    "recall": "What are the codes",
    "paraphrase": "Which of the people",
    "graph": "Start at",
    "count": "In which towns",
    "conversation": "things did your",
}
"""What is in the questions of a kind of fresh text alone."""

_SAID = {asked: said for said, asked in associations()}


@dataclass(frozen=True)
class View:
    """What a server reads of a prompt.

    Args:
        text: the text of all earlier turns, and of the last one without its question, with other characters in the
            places that are not seen.
        counted: the tokens that the server says it has read.
        is_lost: whether the model answers nothing.
    """

    text: str
    counted: int
    is_lost: bool = False


See = Callable[[str, int], View]
"""(text without the question, tokens of the prompt) → what the server reads."""


def honest(text: str, tokens: int) -> View:
    """Return a view of the whole text, whose tokens are counted as they are."""
    return View(text, tokens)


def forgetful(limit: int) -> See:
    """Read everything up to a number of tokens, and nothing of longer prompts."""
    return lambda text, tokens: View(text, tokens, is_lost=tokens > limit)


def cutting(window: int) -> See:
    """Cut the start of longer prompts without an error, and count only the rest."""
    return lambda text, tokens: View(
        _keep_end(text, tokens, window), min(tokens, window)
    )


def short_sighted(window: int) -> See:
    """Use only the end of longer prompts, but count all of their tokens."""
    return lambda text, tokens: View(_keep_end(text, tokens, window), tokens)


def middle_blind(limit: int, start: float = 0.2, end: float = 0.8) -> See:
    """Use both ends of prompts above a number of tokens, but not what is between them."""

    def see(text: str, tokens: int) -> View:
        if tokens <= limit:
            return View(text, tokens)
        first = int(start * len(text))
        last = int(end * len(text))
        return View(f"{text[:first]}\n{'#' * 20}\n{text[last:]}", tokens)

    return see


def _keep_end(text: str, tokens: int, window: int) -> str:
    return text if tokens <= window else text[-int(len(text) * window / tokens) :]


@dataclass(frozen=True)
class SimulatedModel:
    """A model that answers correctly about what it sees, except for a share of its answers, which are nonsense.

    Args:
        see: what the server reads.
        skill: share of right answers about what is seen.
        window: tokens above which prompts are refused with an error; None if none are.
    """

    see: See = honest
    skill: float = 0.97
    window: int | None = None

    def answer(self, messages: Messages) -> tuple[str, int]:
        """Return the answer, and the tokens of the prompt that the server counts."""
        *earlier, last = [
            f"{message['role']}: {message['content']}" for message in messages
        ]
        head, _, question = last.rpartition("\n\n") if not earlier else ("", "", last)
        text = "\n".join([*earlier, head])
        view = self.see(text, estimate_tokens(f"{text}\n{question}"))
        chance = random.Random(f"{question}{len(text)}").random()
        right = (
            "" if view.is_lost or chance > self.skill else solve(view.text, question)
        )
        return right or "I do not know.", view.counted


def solve(text: str, question: str) -> str:
    """Return the answer to a question of fresh text from the text, as far as it is there."""
    solvers: Mapping[str, Callable[[str, str], str]] = {
        "recall": _codes,
        "paraphrase": _person,
        "graph": _path,
        "count": _towns,
        "conversation": _things,
    }
    return next(
        (
            solvers[kind](text, question)
            for kind, start in STARTS.items()
            if start in question
        ),
        "",
    )


def _meant(asked: str) -> str:
    """Return the pattern of what a text calls the thing and owner of a question: the thing is a group's alternative."""
    category, _, owner = asked.strip().partition(" of someone who ")
    if owner not in _SAID or category not in dict(categories()):
        return "(?!)"  # the end of the line was cut
    return (
        rf"(?:{'|'.join(dict(categories())[category])}) of someone who {_SAID[owner]}"
    )


def _codes(text: str, question: str) -> str:
    things = question.partition(":")[2].partition("?")[0].split(";")
    matches = (
        re.search(rf"The {_meant(thing)} has the code (\d+)", text) for thing in things
    )
    return ", ".join(match[1] if match else "unknown" for match in matches)


def _person(text: str, question: str) -> str:
    asked = re.search(r"Which of the people (.*) and owns (.*)\?", question)
    assert asked
    things = "|".join(dict(categories())[asked[2]])
    match = re.search(
        rf"^(\w+ \w+) {_SAID[asked[1]]} and owns the (?:{things})\.$",
        text,
        re.MULTILINE,
    )
    return match[1] if match else ""


def _path(text: str, question: str) -> str:
    node = question.partition("Start at ")[2].partition(" and follow")[0]
    path = list[str]()
    for _ in range(4):
        match = re.search(rf"^(\d{{7}}): {_meant(node)} -> (.*)$", text, re.MULTILINE)
        if match is None:
            break
        path.append(match[1])
        node = match[2]
    return ", ".join(path[1:])


def _towns(text: str, question: str) -> str:
    asked = re.search(r"did someone who (.*) find (.*), and how many", question)
    assert asked
    things = "|".join(dict(categories())[asked[2]])
    pattern = rf"^In (\w+) someone who {_SAID[asked[1]]} found the (?:{things})\.$"
    towns = re.findall(pattern, text, re.MULTILINE)
    return f"{', '.join(towns)}\n{len(towns)}"


def _things(text: str, question: str) -> str:
    asked = re.search(r"your (\w+) answer about (.*) name at its end", question)
    if asked is None:
        return ""
    pattern = rf"user: Tell me about the {_meant(asked[2])}\.\nassistant: .*? It comes with: (.*)\."
    matches = re.findall(pattern, text)
    position = ORDINALS.index(asked[1])
    return matches[position] if position < len(matches) else ""


def reply(model: SimulatedModel, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a chat completion in OpenAI's protocol."""
    text, counted = model.answer(body["messages"])
    usage = {"prompt_tokens": counted, "completion_tokens": estimate_tokens(text)}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    total = {**usage, "total_tokens": sum(usage.values())}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
        "usage": total,
    }


@contextmanager
def serve(model: SimulatedModel) -> Iterator[tuple[str, list[str]]]:
    """Serve a model on the loopback interface until the block ends. Yield its address, and the prompts that it got."""
    asked: list[str] = []

    class Handler(JsonHandler):
        def do_GET(self) -> None:  # noqa: N802 (http.server's name)
            self.send_json(
                200,
                {"object": "list", "data": [{"id": "simulated", "object": "model"}]},
            )

        def do_POST(self) -> None:  # noqa: N802 (http.server's name)
            body = self.read_body()
            if not self.path.endswith("/chat/completions"):
                self.send_json(
                    404, {"error": {"message": "not found", "code": "not_found"}}
                )
                return
            text = "\n".join(message["content"] for message in body["messages"])
            if model.window and estimate_tokens(text) > model.window:
                message = (
                    f"This model's maximum context length is {model.window} tokens."
                )
                self.send_json(
                    400,
                    {"error": {"message": message, "code": "context_length_exceeded"}},
                )
                return
            asked.append(text)
            self.send_json(200, reply(model, body))

    with serve_handler(Handler) as address:
        yield address, asked
