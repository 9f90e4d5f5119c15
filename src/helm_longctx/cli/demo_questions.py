"""Makes two sets of questions for the demo from SQuAD's passages: a conversation, and in-context learning.

All official sets of these kinds must be downloaded from the hub, so the demo makes its own. They have the format of a
user's own questions (`any_jsonl`), show what such tasks look like, and are not published benchmarks.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, cycle, zip_longest
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import orjson

from helm_longctx.errors import InputError, is_format_error
from helm_longctx.tasks.metric_names import DEPTHS
from helm_longctx.tasks.token_estimate import estimate_tokens

FILE = "questions.jsonl"
COUNT = 20
"""Number of questions in a set."""

FILLED = 0.85
"""Share of a length that a prompt fills by our estimate of tokens. The rest is for the answer and the estimate's error.
"""

SEED = 42

_tokens = cache(estimate_tokens)

TASK = "Each text above has a label, a number for its topic. Reply with the label of the following text alone."


class Passage(NamedTuple):
    """A passage of SQuAD."""

    topic: str
    text: str
    questions: list[tuple[str, list[str]]]


def write_questions(squad: Path, kind: str, length: int, folder: Path) -> None:
    """Write a set of questions of at most `length` tokens, answer included, or raise an `InputError`."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = KINDS[kind](_read_passages(squad), round(FILLED * length), Random(SEED))
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_conversations(passages: Sequence[Passage], tokens: int, rng: Random) -> Iterator[dict[str, Any]]:
    """Yield conversations: the user sends passages, each with a question, and at last asks again about one of them."""
    passages = [passage for passage in passages if len(passage.questions) > 1]
    for number in range(COUNT):
        chosen = _fill(tokens, rng.sample(passages, len(passages)), lambda passage: "\n".join(_exchange(passage)))
        place = round(DEPTHS[number % len(DEPTHS)] / 100 * (len(chosen) - 1))
        turns = [turn for passage in chosen for turn in _exchange(passage)]
        messages = [{"role": role, "content": turn} for role, turn in zip(cycle(("user", "assistant")), turns)]
        question, answers = rng.choice(chosen[place].questions[1:])
        last = {"role": "user", "content": f"Back to a passage that I sent before. {question}"}
        yield {"id": f"conversation-{number}", "messages": [*messages, last], "answers": answers}


def _exchange(passage: Passage) -> tuple[str, str]:
    """Return a user's turn with a passage and its first question, and the answer."""
    question, answers = passage.questions[0]
    return f"{passage.text}\n\n{question}", answers[0]


def make_demonstrations(passages: Sequence[Passage], tokens: int, rng: Random) -> Iterator[dict[str, Any]]:
    """Yield questions for the label of a text, a random number for its topic, after a context of labelled texts."""
    topics = list(dict.fromkeys(passage.topic for passage in passages))
    labels = rng.sample(range(len(topics)), len(topics))
    texts: dict[str, list[tuple[str, int]]] = {topic: [] for topic in rng.sample(topics, len(topics))}
    for passage in rng.sample(passages, len(passages)):
        texts[passage.topic].append((passage.text.partition(". ")[0], labels[topics.index(passage.topic)]))
    # The topics take turns, so that all labels have about the same number of demonstrations.
    in_turn = [text for text in chain.from_iterable(zip_longest(*texts.values())) if text]
    shots = _fill(tokens, [f"{text}\nlabel: {label}" for text, label in in_turn[COUNT:]], str)
    context = "\n\n".join(rng.sample(shots, len(shots)))
    for number, (text, label) in enumerate(in_turn[:COUNT]):
        question = f"{TASK}\n\n{text}\nlabel:"
        yield {"id": f"icl-{number}", "context": context, "question": question, "answers": [str(label)]}


KINDS: Mapping[str, Callable[[Sequence[Passage], int, Random], Iterable[dict[str, Any]]]] = {
    "conversation": make_conversations,
    "icl": make_demonstrations,
}
"""Functions that make the questions of each kind: (passages, tokens, source of randomness) → rows."""


def _fill(tokens: int, items: Iterable[Any], text_of: Callable[[Any], str]) -> list[Any]:
    """Return the first items whose texts together have at most this number of tokens."""
    chosen = []
    for item in items:
        tokens -= _tokens(text_of(item))
        if tokens < 0:
            break
        chosen.append(item)
    return chosen


@cache
def _read_passages(path: Path) -> list[Passage]:
    try:
        articles = orjson.loads(path.read_bytes())["data"]
        passages = []
        for article, paragraph in ((one, each) for one in articles for each in one["paragraphs"]):
            # Only questions that have answers. Several annotators often gave the same one.
            questions = [
                (row["question"], list(dict.fromkeys(answer["text"] for answer in row["answers"])))
                for row in paragraph["qas"]
                if row["answers"]
            ]
            passages.append(Passage(article["title"], paragraph["context"], questions))
        return passages
    except Exception as error:
        if not (isinstance(error, OSError) or is_format_error(error)):
            raise
        raise InputError(
            f"{path} is not SQuAD's file ({type(error).__name__}); remove it, and run demo again"
        ) from error
