"""SCBench's tasks in both modes: the turns of a conversation, and requests on the same context.

Source: microsoft/MInference at fb56c91, scbench/eval_utils.py (`create_multiturn_prompt`, `create_scdq_prompt`,
`get_ground_truth`) and run_scbench.py; the hub data set microsoft/SCBench.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from helm_longctx.benchmarks.scbench.prompts import ANSWER_STARTS, BUDGETS, FIRST, MATH_QUESTION, QUESTIONS, SHARED
from helm_longctx.benchmarks.scbench.scoring import BY_TURN, MEASURES, SHAPES, score
from helm_longctx.data.jsonl import Row
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import NO_TEMPLATE, Category, DataRoot, HubDataset, JsonLines, Message, Metric, read_benchmark
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import TEXT, Baseline, Example, Settings, Shape, Task, is_text

TURNS = 5
"""The largest number of questions on a context (`--max_turns`), if the first context of the file has more."""


_CONTEXT = Shape(
    "text or a list of whole numbers",
    # A context has up to 100,000 numbers. Their types are compared at once, which is several times faster.
    lambda value: is_text(value) or (isinstance(value, list) and {*map(type, value)} <= {int}),
)
_TARGET = re.compile(r"(The .+) is")

Fields = Mapping[str, str]


def ask_in_turn(name: str, context: str, questions: Sequence[Fields]) -> Iterator[tuple[list[Message], int]]:
    """Yield the turns of one conversation, which has the official answers instead of the model's.

    Returns:
        The messages up to each question, and how many characters of the first one may be cut.
    """
    first = FIRST[name].format(context=context, **questions[0])
    messages: list[Message] = [{"role": "user", "content": first}]
    yield messages, len(first)
    start = ""
    for before, question in pairwise(questions):
        # All later turns of `mf` name the target of the last one, because the official code uses a variable of a loop
        # after the loop.
        turn = QUESTIONS[name].format(**{**question, "prefix": questions[-1].get("prefix")})
        answer = start + before["answer"]
        messages = [*messages, {"role": "assistant", "content": answer}, {"role": "user", "content": turn}]
        yield messages, len(first)
        start = ANSWER_STARTS.get(name, "")


def ask_apart(name: str, context: str, questions: Sequence[Fields]) -> Iterator[tuple[list[Message], int]]:
    """Yield a request for each question, and how many of its characters may be cut."""
    # For `mf`, the whole first question stands before the context.
    shared = SHARED[name].format(context=context, prefix=questions[0]["input"])
    for question in questions:
        yield [{"role": "user", "content": shared + QUESTIONS[name].format(**question)}], len(shared)


@take_sample
def load(task: Task, settings: Settings, root: DataRoot, name: str, apart: bool) -> Iterator[Example]:
    """Load the questions context by context, so that prompts on the same context follow each other.

    Args:
        apart: whether each question is a request of its own, and not the turn of a conversation.
    """
    (path,) = task.paths(settings.length)
    rows = JsonLines(root / path, {"multi_turns": list})
    # As in the official code, the first context decides whether the number of questions is limited for all contexts.
    first = len(next(iter(rows))["multi_turns"])
    most, budgets = TURNS if first > TURNS else None, BUDGETS[name]
    reserved = sum(budgets.values()) * min(first, TURNS) // len(budgets) + (1000 if apart else 0)
    needles = _find_needles(rows, most) if "scbench_repoqa" in budgets else {}
    for number, row in enumerate(rows, 1):
        context = row["context"] if "context" in row else row["input"]
        _CONTEXT.check(f"{row}: context", context)
        turns = row["multi_turns"][:most]
        prompts = (ask_apart if apart else ask_in_turn)(name, str(context), [_fields(row, turn) for turn in turns])
        for place, (turn, (messages, shared)) in enumerate(zip(turns, prompts, strict=True), 1):
            record, answer = _record(row, turn, name, needles), turn["answer"]
            yield Example(
                id=f"{number}-{place}",
                fields={"question": turn["input"]},
                references=[str(text) for text in (answer if isinstance(answer, list) else [answer])],
                source="hub",
                record={**record, "turn": place},
                messages=messages,
                group=f"context {number}",
                max_tokens=budgets[record["subtask"]],
                context=(0, shared),
                reserved=reserved,
            )


def _fields(row: Row, turn: Row) -> Fields:
    """Return the values of the placeholders, and the answer as it stands in a conversation."""
    TEXT.check(f"{row}: input", turn["input"])
    fields = {"input": turn["input"], "question": turn["input"], "answer": str(turn["answer"])}
    if target := _TARGET.search(turn["input"]):
        fields["prefix"] = MATH_QUESTION.format(target=target[1].lower())
    options = zip("ABCD", turn.get("options") or (), strict=False)
    return fields | {f"OPTION_{letter}": text for letter, text in options}


def _record(row: Row, turn: Row, name: str, needles: Mapping[str, Any]) -> dict[str, Any]:
    subtask = turn["task"] if len(BUDGETS[name]) > 1 else f"scbench_{name}"
    record = {"answer": turn["answer"], "subtask": subtask}
    if name == "choice_eng":
        record["answer"] = [turn["answer"], "ABCD"[turn["options"].index(turn["answer"])]]
    elif name == "qa_eng":
        record["answer"] = [turn["answer"]]
    elif subtask == "scbench_repoqa":
        record["answer"] = {"name": turn["name"], "lang": row["lang"], "functions": needles[row["repo"]]}
    MEASURES[subtask].answer.check(f"{row}: answer", record["answer"])
    return record


def _find_needles(rows: JsonLines, most: int | None) -> dict[str, list[list[str]]]:
    """Return the functions that are asked for, by repository. An answer is compared with all of them."""
    needles = defaultdict(list)
    for row in rows:
        for turn in row["multi_turns"][:most]:
            if turn.get("task", "scbench_repoqa") == "scbench_repoqa":
                needles[row["repo"]].append([turn["name"], turn["answer"]])
    return needles


PASSAGE = 300
"""Number of characters that the baseline repeats."""

_ROWS = {row["name"]: row for row in read_table(__package__, "tasks.csv")}
"""The title of each data set, and its numbers of contexts and questions."""
_INSTRUCTIONS = tuple(filter(None, (text.partition("{")[0] for text in SHARED.values())))


def repeat_passage(messages: Sequence[Message]) -> str | None:
    """Repeat what follows the question's rarest word in the context.

    Returns None if the prompt does not start with one of SCBench's instructions.
    """
    first, question = messages[0]["content"], messages[-1]["content"][-PASSAGE:]
    if not first.startswith(_INSTRUCTIONS):
        return None
    context = first.removesuffix(question)
    places = {context.count(word): context.find(word) for word in question.split() if word in context}
    return context[places[min(places)] :][:PASSAGE] if places else ""


def _task(name: str, apart: bool) -> Task:
    row = _ROWS[name]
    headline = tuple(MEASURES[subtask].metric for subtask in BUDGETS[name])
    by_turn = not apart and len(headline) == 1
    source = HubDataset("microsoft/SCBench", {"test": int(row["contexts"])}, f"scbench_{name}", labelled=False)
    return Task(
        name=f"{name}_apart" if apart else name,
        alias=name,
        title=row["title"],
        template=NO_TEMPLATE,
        load=partial(load, name=name, apart=apart),
        score=partial(score, subtask=f"scbench_{name}", by_turn=by_turn),
        headline=headline,
        metrics=(*headline, *(BY_TURN if by_turn else ())),
        max_tokens=max(BUDGETS[name].values()),
        num_samples=int(row["questions"]),
        sources=lambda length: (source,),
        chat=True,
        cut="context_middle",
        record_shapes=SHAPES,
        extras=("code",) if "scbench_repoqa" in BUDGETS[name] else (),
        baseline=Baseline(repeat_passage, "B"),
    )


_MULTI_TURN, _MULTI_REQUEST = (tuple(_task(name, apart) for name in _ROWS) for apart in (False, True))

SCBENCH = read_benchmark(
    __package__,
    (Category("multi_turn", "Multi-turn", _MULTI_TURN), Category("multi_request", "Multi-request", _MULTI_REQUEST)),
    metrics=[
        Metric(name, name.replace("_", " ").title(), "The score of the questions of this turn.") for name in BY_TURN
    ],
)
