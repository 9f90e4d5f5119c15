"""Fabricate SCBench's contexts, answers and tokenizer, which are the same on every machine."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from helm_longctx.benchmarks.scbench import BENCHMARK
from tests.benchmarks.lv_eval.fabricate import sentence, tokenizers
from tests.support.fabricate_words import words, write

CONTEXTS = 3
WHOLE = 500_000
"""The official `max_seq_length` at which no context is cut; at the others every context is cut."""
CASES = ((WHOLE, 1), (WHOLE, 2), (9001, 1), (9500, 2))
"""The official `max_seq_length`, and the seed of the data."""
HUGE = 10**19 + 1
"""A factor that makes integers of more than 64 bits, which no float equals; for numbers of the second seed."""
NAMES = tuple(task.name for task in BENCHMARK.categories[0].tasks)
MODES = {"multi_turn": 0, "multi_request": 1}
"""The place of a mode's tasks among the categories."""

_TURNS = {
    "mf": (6, 6, 6),
    "choice_eng": (4, 5, 2),
    "qa_eng": (5, 6, 5),
    "qa_chn": (6, 7, 3),
    "prefix_suffix": (5, 5, 4),
}
_CODE = {
    "python": "def {name}(a, b):\n    # {text}\n    return a + b",
    "java": "public int {name}(int a) {{\n    return a; // {text}\n}}",
    "typescript": "function {name}(a: number): number {{\n  return a; /* {text} */\n}}",
    "rust": "fn {name}(a: i32) -> i32 {{\n    a // {text}\n}}",
    "cpp": "int {name}(int a) {{\n  return a; // {text}\n}}",
    "go": "func {name}(a int) int {{\n\treturn a // {text}\n}}",
}
RECORD = {"answer": "Lake", "turn": 2}


def build_scbench(root: Path, seed: int = 1) -> Path:
    """Write all files of the data set."""
    for task in BENCHMARK.categories[0].tasks:
        (path,) = task.paths(None)
        write(root / path, rows(task.name, seed))
    return root


def rows(name: str, seed: int) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    rng = random.Random(f"{name} {seed}")
    contexts = [_row(rng, name, number) for number in range(CONTEXTS)]
    if name == "mf" and seed > 1:
        for row in contexts:
            row["context"] = [
                number if number % 40 else -HUGE * number for number in row["context"]
            ]
            for turn in row["multi_turns"][::3]:
                turn["answer"] *= HUGE
    return contexts


def _row(rng: random.Random, name: str, number: int) -> dict[str, Any]:
    is_code = "repoqa" in name
    mixed = name in ("summary_with_needles", "repoqa_and_kv")
    lang = list(_CODE)[(rng.randrange(3) * 2 + number) % len(_CODE)]
    turns = [
        _turn(rng, name, lang, turn)
        for turn in range(_TURNS.get(name, (8,) * 3 if mixed else (5,) * 3)[number])
    ]
    context: Any = sentence(rng, "zh", 1400) if name == "qa_chn" else words(rng, 1800)
    if name == "mf":
        context = [rng.randint(100, 999) for _ in range(2600)]
    return {
        "id": number, "input" if name == "vt" else "context": context, "multi_turns": turns,
        **({"lang": lang, "repo": f"org/{lang}"} if is_code else {}),
    }  # fmt: skip


def _turn(rng: random.Random, name: str, lang: str, number: int) -> dict[str, Any]:
    kinds = {
        "summary_with_needles": ("summary", "passkey"),
        "repoqa_and_kv": ("repoqa", "kv"),
    }.get(name)
    kind = kinds[number % 2] if kinds else name
    turn: dict[str, Any] = {
        "input": f"{words(rng, 5)} {rng.getrandbits(30):x}?",
        "answer": words(rng, 3),
    }
    if kinds:
        turn["task"] = f"scbench_{kind}"
    if kind == "repoqa":
        turn["name"] = f"f{rng.getrandbits(20):x}"
        turn["answer"] = _CODE[lang].format(name=turn["name"], text=words(rng, 20))
    elif kind == "vt":
        turn["answer"] = [f"V{rng.randint(1, 99)}", f"W{rng.randint(1, 99)}", "XYZ"]
    elif kind == "choice_eng":
        turn["options"] = [words(rng, 2) + str(position) for position in range(4)]
        turn["answer"] = rng.choice(turn["options"])
    elif kind == "mf":
        turn |= {
            "input": f"The {rng.choice(('Max', 'third is'))} number of {rng.getrandbits(9)} is:",
            "answer": rng.randint(1, 999),
        }
    elif kind == "passkey":
        turn["answer"] = str(rng.randint(1, 99999))
    elif kind == "many_shot":
        turn["answer"] = f"({rng.choice('ABC')})"
    elif kind == "qa_chn":
        turn["answer"] = sentence(rng, "zh", 2)
    return turn


class Replies:
    """The model's replies to the questions of a file, which depend only on the question."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]):
        self._answers = {
            turn["input"]: turn["answer"] for row in rows for turn in row["multi_turns"]
        }

    def reply(self, prompt: str) -> str:
        """Return the reply to the last question of a prompt."""
        question = max(self._answers, key=prompt.rfind)
        answer = self._answers[question]
        rng = random.Random(question)
        text = " and ".join(answer) if isinstance(answer, list) else str(answer)
        return rng.choice(list(outputs(text)))


def outputs(answer: str) -> Iterator[str]:
    """Return odd outputs for an answer."""
    half = answer[: len(answer) // 2]
    yield from (
        answer,
        f"It is {answer}.",
        answer.upper(),
        half,
        "",
        "The answer is: B",
        f" {answer}\n",
    )
    yield from (
        f"Here:\n```python\n{answer}\n```",
        f"```\nx = 1\n```\n```go\n{answer}\n{answer}\n```\n",
        f"```\n{answer}",
    )


def odd_outputs(answer: str) -> list[str]:
    """Return more odd outputs for an answer, which only the scores use."""
    letters = [
        "A",
        "B.",
        "(C)",
        "BC",
        "the answer is C",
        "Answer:",
        "answer:  D",
        "option is B",
        "I, a A",
        "x AB",
        "?",
    ]
    numbers = [
        "12",
        "12.0",
        "12.7 and 3",
        "-12",
        "x12y",
        "1 2",
        ".5",
        "１２",
        "12345678901234567890",
        "9" * 400,
    ]
    texts = [
        "\n",
        "。",
        "the",
        f"{answer} {answer}",
        answer[::-1],
        answer.swapcase(),
        "北京，城市。",
        "A\nB",
        f"{answer}\n\nmore",
    ]
    return [*outputs(answer), *letters, *numbers, *texts]


def score_cases() -> Iterator[tuple[str, Any, str]]:
    """Return the kind of question, the official answer and the output of each case."""
    for name in NAMES:
        rng = random.Random(f"scores {name}")
        for number in range(4):
            turn = _turn(rng, name, "python", number)
            kind = turn.get("task", f"scbench_{name}")
            answer = turn["answer"]
            if kind == "scbench_choice_eng":
                answer = [answer, "ABCD"[turn["options"].index(answer)]]
            if kind == "scbench_qa_eng":
                answer = [answer]
            if kind == "scbench_mf":
                answer = {1: 12.0, 2: 12345678901234567890, 3: 12}.get(number, answer)
            text = (
                answer
                if isinstance(answer, str)
                else str(answer[0] if isinstance(answer, list) else answer)
            )
            if kind != "scbench_repoqa":
                yield from ((kind, answer, output) for output in odd_outputs(text))


def function_cases() -> Iterator[tuple[str, str, list[list[str]], str]]:
    """Return the language, the name, all functions of the repository as pairs of name and code, and the output of each
    case."""
    for lang in _CODE:
        rng = random.Random(lang)
        functions = []
        for _ in range(4):
            turn = _turn(rng, "repoqa", lang, 0)
            functions.append([turn["name"], turn["answer"]])
        name, code = functions[1]
        near = code.replace("a", "b", 1)
        for output in (
            *odd_outputs(code),
            near,
            f"```{lang}\n{near}\n```",
            f"```{lang}\n// x\n{code}\n{functions[0][1]}\n```",
            f"```{lang}\n{functions[2][1]}\n{code}\n```",
            f"```\n{code} }}\n```\n",
            "```\n\n```",
            f"```\n{code[:40]}\n```",
        ):
            yield lang, name, functions, output


def render(
    messages: Sequence[Mapping[str, str]], markup: bool, ends: bool = True
) -> str:
    """Return a conversation in a chat template with a system message of its own, or without any markup.

    Args:
        ends: whether the start of the answer follows.
    """
    if not markup:
        return "".join(message["content"] for message in messages)
    first = (
        []
        if messages[0]["role"] == "system"
        else [{"role": "system", "content": "Be kind."}]
    )
    text = "".join(
        f"<|{message['role']}|>{message['content']}<|end|>"
        for message in [*first, *messages]
    )
    return text + ("<|assistant|>" if ends else "")


class ChatTokenizer:
    """A tokenizer as the official code uses one.

    Args:
        markup: whether its chat template adds any text.
    """

    eos_token_id = 0

    def __init__(self, markup: bool):
        self.markup = markup
        self.tokenizer = tokenizer()

    def apply_chat_template(
        self, messages: Any, add_generation_prompt: bool, tokenize: bool
    ) -> str:
        """Return a conversation as text, with the model's markup if it has one."""
        assert not tokenize
        return render(messages, self.markup, add_generation_prompt)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Return the tokens of a text."""
        return list(self.tokenizer.encode(text, add_special_tokens=add_special_tokens))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """Return a small tokenizer of GPT's kind. What is found out about it is found out once."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizers()["byte_level"],
        clean_up_tokenization_spaces=False,
        model_max_length=10**9,
    )


def fingerprint(prompt: str, max_tokens: int) -> str:
    """Return the short form of a request in the golden file."""
    return f"{max_tokens} {hashlib.sha256(prompt.encode()).hexdigest()[:16]}"
