"""The method `recursive`: the context is a variable of an interpreter, and the model writes code that reads it.

It follows recursive language models (Zhang, Kraska and Khattab, 2025, arXiv 2512.24601; alexzhang13/rlm at 72d6940):
names of variables and functions, blocks of code marked `repl`, one message with the outputs of a reply, outputs cut at
20,000 characters, 30 turns, and a last request for the answer after these are the official ones. The wording of the
prompts is ours. Where it differs: the interpreter is our sandbox without a network, instead of the user's own process;
sub-calls are limited by number (`calls`), because the official code limits them only in dollars; requests to the model
have a budget of `output` tokens; and the last request is a turn of the user, because not all models continue a turn of
their own.

`depth=1`, the official default, means that code can ask the model about texts, and `depth=2` that it can also start a
further interpreter for a part.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from helm_longctx.tasks.interpreter import Interpreter
from helm_longctx.tasks.methods.method import Method, Question

_MOST_OUTPUT = 20_000
"""Characters of the output of a block that the model sees."""

_MOST_BLOCKS = 20
"""Blocks of a reply that are run. The official code has no limit, so a reply of 20,000 blocks would be one turn."""

_OPENING = "```repl"
_CLOSING = "\n```"

SYSTEM = """You answer a task about a long context that you cannot see directly. It is the variable `context` (a string)
of a Python REPL, and you look at it by code. Each reply can have blocks of code between ```repl and ```. They are run,
and you get what they print. Variables stay from turn to turn. Only printed output is shown, and no more than 20,000
characters of it, so print slices.

The REPL has these functions:
- `llm_query(prompt)`: asks a language model once and returns its reply. It sees only the prompt, so put the slice of
  the context into it. Use it for what code cannot do: to classify, to extract, to summarize.
- `llm_query_batched(prompts)`: the same for a list of prompts at the same time.
- `rlm_query(prompt)` and `rlm_query_batched(prompts)`: as these, but the model that is asked can write code, with the
  prompt as its `context`, where recursion is allowed.
- `SHOW_VARS()`: returns the names of your variables.

Start by printing the length and a few parts of the context. Then plan how to divide the work, do it step by step, and
check what you print. Search and count with code where that is enough.

When you know the answer, set it in a block of code:
```repl
answer["content"] = "the answer, in the form that the task asks for"
answer["ready"] = True
```"""
_ASKED = "The task:\n{task}\n\nThe variable `context` has {size} characters."
_FIRST = (
    "You have not looked at the context yet. Do that first, and do not answer yet.\n\n"
)
_TURN = "Turn {turn} of {turns}:"
_LAST = "Give the final answer to the task now, from what you have found. Write only the answer, without code."


@dataclass
class _Calls:
    """Counts the calls of sub-models that are left for a question."""

    left: int

    def take(self, prompts: object) -> list[str]:
        """Return the prompts that code gave, of as many calls."""
        if not isinstance(prompts, list) or not all(
            isinstance(prompt, str) for prompt in prompts
        ):
            raise ValueError("give a list of texts")
        if len(prompts) > self.left:
            raise ValueError(
                "no more calls of language models are allowed; give the answer"
            )
        self.left -= len(prompts)
        return prompts


def answer(question: Question) -> str:
    """Answer by code that the model writes."""
    calls = _Calls(int(question.arguments["calls"]))
    depth = int(question.arguments["depth"])
    text, turns = _solve(
        question, question.task, question.context, calls, depth, "root"
    )
    question.note(turns=turns, sub_calls=int(question.arguments["calls"]) - calls.left)
    return text


def _solve(
    question: Question,
    task: str,
    context: str,
    calls: _Calls,
    depth: int,
    label: str,
) -> tuple[str, int]:
    """Return the answer to a task about a context, and the number of turns."""
    turns = int(question.arguments["turns"])
    budget = int(question.arguments["output"])
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": _ASKED.format(task=task, size=len(context))},
    ]
    variables = {"context": context, "answer": {"content": "", "ready": False}}
    with Interpreter(
        variables, _functions(question, calls, depth), exports=("answer",)
    ) as interpreter:
        for turn in range(1, turns + 1):
            shown = (_FIRST if turn == 1 else "") + _TURN.format(turn=turn, turns=turns)
            messages = _add(messages, "user", shown)
            reply = question.converse(
                messages, budget, label=f"{label} turn {turn}"
            ).answer
            outputs = []
            blocks = [*find_blocks(reply)]
            for code in blocks[:_MOST_BLOCKS]:
                outputs.append(interpreter.run(code.strip()))
                final = outputs[-1].values.get("answer")
                if isinstance(final, dict) and final.get("ready"):
                    return str(final.get("content", "")), turn
            messages = _add(messages, "assistant", reply or "(nothing)")
            for number, output in enumerate(outputs, 1):
                text = (
                    "\n".join(filter(None, (output.text, output.error))) or "No output"
                )
                if len(text) > _MOST_OUTPUT:
                    more = f"... + [{len(text) - _MOST_OUTPUT} chars...]"
                else:
                    more = ""
                if len(outputs) > 1:
                    head = f"REPL output (block {number}):"
                else:
                    head = "REPL output:"
                messages = _add(
                    messages, "user", f"{head}\n{text[:_MOST_OUTPUT]}{more}"
                )
            if len(blocks) > _MOST_BLOCKS:
                left = len(blocks) - _MOST_BLOCKS
                messages = _add(
                    messages, "user", f"The last {left} blocks were not run."
                )
        messages = _add(messages, "user", _LAST)
        return question.converse(
            messages, max(budget, question.max_tokens), label=f"{label} answer"
        ).answer, turns


def find_blocks(reply: str) -> Iterator[str]:
    r"""Yield the code of each block, as the official pattern "```repl\s*\n(.*?)\n```" finds it, in linear time."""
    start = reply.find(_OPENING)
    while start >= 0:
        after = start + len(_OPENING)
        first = after
        while first < len(reply) and reply[first].isspace():
            first += 1
        begin = reply.rfind("\n", after, first) + 1
        end = reply.find(_CLOSING, begin) if begin else -1
        if begin and end < 0:
            # The last line break before the end mark can be the one that ends an empty block.
            if reply.startswith(_CLOSING, begin - 1):
                end = begin - 1
            else:
                end = -1
            if end >= 0:
                begin = reply.rfind("\n", after, max(after, end)) + 1
            else:
                begin = 0
            if not begin:
                return
        if begin:
            yield reply[begin:end]
            first = end + len(_CLOSING)
        start = reply.find(_OPENING, first)


def _add(messages: list[dict[str, Any]], role: str, text: str) -> list[dict[str, Any]]:
    """Add a text to a conversation, to its last message if that has the same role: some models need turns in order."""
    *before, last = messages
    if last["role"] == role:
        return [*before, {"role": role, "content": f"{last['content']}\n\n{text}"}]
    return [*messages, {"role": role, "content": text}]


def _functions(
    question: Question,
    calls: _Calls,
    depth: int,
) -> dict[str, Callable[..., Any]]:
    def ask_all(prompts: object, model: object = None) -> list[str]:
        # An empty prompt is refused by servers.
        texts = [prompt or " " for prompt in calls.take(prompts)]
        return question.ask_all(texts, int(question.arguments["output"]), "sub-call")

    def solve_all(prompts: object, model: object = None) -> list[str]:
        if depth < 2:
            return ask_all(prompts)
        task = "Do what the context says."
        texts = []
        for prompt in calls.take(prompts):
            text, _ = _solve(question, task, prompt, calls, depth - 1, "sub-model")
            texts.append(text)
        return texts

    return {
        "llm_query": lambda prompt, model=None: ask_all([prompt])[0],
        "llm_query_batched": ask_all,
        "rlm_query": lambda prompt, model=None: solve_all([prompt])[0],
        "rlm_query_batched": solve_all,
    }


RECURSIVE = Method(
    "recursive",
    "Gives the model the context as a variable of an interpreter in the sandbox, and"
    " lets it call itself on parts.",
    answer=answer,
    arguments={"depth": 1, "turns": 30, "calls": 200, "output": 4096},
    needs_sandbox=True,
)
