"""SCBench's tasks in both modes: the turns of a conversation, and requests on the same context; and their metrics.

Functions that a model repeats from a repository are scored as RepoQA does. Source: microsoft/MInference at fb56c91,
scbench/eval_utils.py (`create_multiturn_prompt`, `create_scdq_prompt`, `get_ground_truth`), run_scbench.py,
compute_scores.py and repo_qa_utils.py (`needle_evaluator`, `compute_score`), after evalplus/repoqa; the hub data set
microsoft/SCBench. A record has the `subtask` that a question belongs to, the official `answer`, and the `turn` of a
conversation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from helm_longctx.benchmarks.scbench.prompts import (
    ANSWER_STARTS,
    BUDGETS,
    FIRST,
    MATH_QUESTION,
    QUESTIONS,
    SHARED,
)
from helm_longctx.data.jsonl import Row
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import (
    NO_TEMPLATE,
    TEXT,
    TEXTS,
    Baseline,
    Category,
    DataRoot,
    Example,
    HubDataset,
    JsonLines,
    Message,
    Metric,
    MetricValues,
    ScorerInput,
    Settings,
    Shape,
    Task,
    are_all,
    is_number,
    is_text,
    is_whole,
    read_benchmark,
)
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.words import best_character_f1, find_choice, rouge_l_sum

if TYPE_CHECKING:
    from tree_sitter import Parser, Query

_THRESHOLD = 0.8
"""The least similarity of an answer to the function."""
_QUERIES = {
    "python": "(function_definition name: (_)) @fdef",
    "java": "(method_declaration name: (_)) @fdef",
    "typescript": "(function_declaration name: (_)) @fdef",
    "rust": "(function_item name: (_)) @fdef",
    "cpp": "(function_definition declarator: (function_declarator declarator: (identifier))) @fdef",
    "go": "(function_declaration name: (_)) @fdef",
}
"""The tree-sitter query that finds functions, by language."""

_PAIRS = are_all(
    lambda pair: are_all(is_text)(pair) and len(pair) == len(("name", "code"))
)
_OPENING = re.compile(r"^```\w*(\s*)", re.MULTILINE)
_CLOSING = re.compile(r"^```", re.MULTILINE)


_FUNCTION = Shape(
    "a function's `name`, `lang` and all `functions` of its repository, pairs of name and code",
    lambda value: (
        isinstance(value, dict)
        and value.get("lang") in [*_QUERIES]
        and _PAIRS(value.get("functions"))
    ),
)


def is_right_function(output: str, answer: Mapping[str, Any]) -> bool:
    """Return whether the right function is the most similar one, with a similarity of at least `_THRESHOLD`.

    Args:
        answer: an object of the kind `_FUNCTION`. Its `functions` are all that the questions on the repository ask for.
    """
    function = find_function(output.strip(), answer["lang"])
    similarities = (
        (compare_functions(function, code), name) for name, code in answer["functions"]
    )
    best, name = max(similarities, key=itemgetter(0), default=(0.0, None))
    return name == answer.get("name") and best >= _THRESHOLD


def find_function(output: str, language: str) -> str:
    """Return the first function in a code block of the output; the first block, or the output, if there is none."""
    from tree_sitter import QueryCursor

    blocks = list(find_blocks(output))
    for block in blocks:
        parser, query = _grammar(language)
        # A lone surrogate ends the search in a block of the official code; here it is replaced.
        code = block.encode(errors="replace")
        if (
            nodes := QueryCursor(query)
            .captures(parser.parse(code).root_node)
            .get("fdef")
        ):
            return code[nodes[0].start_byte : nodes[0].end_byte].decode(
                errors="replace"
            )
    return str(blocks[0]) if blocks else output


def find_blocks(output: str) -> Iterator[str]:
    r"""Yield the text of each block of code.

    It is what the official pattern "^```(?:\w+)?\s*\n(.*?)(?=^```)```" finds, but that one's time is quadratic in a
    text of empty lines or of fences that do not close.
    """
    position = 0
    while opening := _OPENING.search(output, position):
        position = opening.end()
        lines = opening[1].rfind("\n")
        if lines < 0:
            continue
        start = opening.start(1) + lines + 1
        closing = _CLOSING.search(output, start)
        if closing is None:
            return  # No later block has an end, either.
        yield output[start : closing.start()]
        position = closing.end()


def compare_functions(function: str, other: str) -> float:
    """Return the BLEU of the words of two functions, with NLTK's smoothing method 4."""
    from nltk.translate.bleu_score import (
        SmoothingFunction,
        sentence_bleu,
    )  # late, because nltk takes a second

    words, wanted = (re.split(r"\s+", text.strip()) for text in (function, other))
    return float(
        sentence_bleu([wanted], words, smoothing_function=SmoothingFunction().method4)
    )


@cache
def _grammar(language: str) -> tuple[Parser, Query]:
    from tree_sitter import Language, Parser, Query

    module = import_module(f"tree_sitter_{language}")
    # The package of TypeScript has two languages.
    if language == "typescript":
        pointer = module.language_typescript()
    else:
        pointer = module.language()
    grammar = Language(pointer)
    return Parser(grammar), Query(grammar, _QUERIES[language])


_BY_TURN = tuple(f"turn_{number}" for number in range(1, 6))
_SHAPES = {"subtask": TEXT, "turn": Shape("a whole number", is_whole)}
"""The shapes of a record's fields. The shape of the answer depends on the subtask."""

_LETTERS = Shape(
    "text or a list of texts, not empty",
    lambda v: bool(v) and (is_text(v) or are_all(is_text)(v)),
)


def _share_of_answers(output: str, answers: Sequence[str]) -> float:
    """Return the share of the answers that the output contains, ignoring case, rounded to two decimals."""
    return round(
        sum(text.lower() in output.lower() for text in answers) / len(answers), 2
    )


def _has_any_answer(output: str, answers: Sequence[str]) -> bool:
    """Return whether the output contains an answer, ignoring case. Of a text, each character is an answer."""
    return any(text.upper() in output.strip().upper() for text in answers)


def _equals_number(output: str, answer: float) -> bool:
    """Return whether the first number of the output is the answer. If the answer is whole, decimals do not count."""
    match = re.search(r"\d+\.\d+|\d+", output)
    if match is None:
        return False
    number = float(match[0])
    return (number // 1 if isinstance(answer, int) else number) == answer


def _has_first_digits(output: str, answer: str) -> bool:
    """Return whether the first digits of the output are the answer; without digits, whether the answer is empty."""
    return (re.findall("[0-9]+", output) or [""])[0] == answer


class _Measure(NamedTuple):
    """How a kind of question is scored: the metric's name, the kind of its answer, and (output, answer) → 0…1."""

    metric: str
    answer: Shape
    compare: Callable[..., float]


_HAS_ANSWER = _Measure("accuracy", TEXT, lambda output, answer: answer in output)

MEASURES = {
    "scbench_kv": _HAS_ANSWER,
    "scbench_prefix_suffix": _HAS_ANSWER,
    "scbench_vt": _Measure("string_match_all", _LETTERS, _share_of_answers),
    "scbench_repoqa": _Measure("pass@1", _FUNCTION, is_right_function),
    "scbench_qa_eng": _Measure("accuracy", TEXTS, _has_any_answer),
    "scbench_qa_chn": _Measure("f1", _LETTERS, best_character_f1),
    "scbench_choice_eng": _Measure("accuracy", TEXTS, find_choice),
    "scbench_many_shot": _Measure("accuracy", _LETTERS, _has_any_answer),
    "scbench_mf": _Measure("accuracy", Shape("a number", is_number), _equals_number),
    "scbench_summary": _Measure(
        "rougeLsum", TEXT, lambda output, answer: rouge_l_sum(output, [answer])
    ),
    "scbench_passkey": _Measure("accuracy", TEXT, _has_first_digits),
}


def score(record: ScorerInput, subtask: str, by_turn: bool) -> MetricValues:
    """Return the score of an answer, if it can be computed.

    Args:
        subtask: the kind of question, if the record does not say it.
        by_turn: whether the score also counts in one of `_BY_TURN`.
    """
    measure = MEASURES.get(record.get("subtask") or subtask)
    if measure is None or not measure.answer.fits(record.get("answer")):
        return {}
    value = float(measure.compare(record["prediction"], record["answer"]))
    turn = f"turn_{record.get('turn')}"
    return {measure.metric: value} | (
        {turn: value} if by_turn and turn in _BY_TURN else {}
    )


_TURNS = 5
"""The largest number of questions on a context (`--max_turns`), if the first context of the file has more."""


_CONTEXT = Shape(
    "text or a list of whole numbers",
    # A context has up to 100,000 numbers. Their types are compared at once: that is several times faster.
    lambda value: (
        is_text(value) or (isinstance(value, list) and {*map(type, value)} <= {int})
    ),
)
_TARGET = re.compile(r"(The .+) is")

_Fields = Mapping[str, str]


def _ask_in_turn(
    name: str,
    context: str,
    questions: Sequence[_Fields],
) -> Iterator[tuple[list[Message], int]]:
    """Yield the turns of one conversation. It has the official answers instead of the model's.

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
        turn = QUESTIONS[name].format(
            **{**question, "prefix": questions[-1].get("prefix")}
        )
        answer = start + before["answer"]
        messages = [
            *messages,
            {"role": "assistant", "content": answer},
            {"role": "user", "content": turn},
        ]
        yield messages, len(first)
        start = ANSWER_STARTS.get(name, "")


def _ask_apart(
    name: str,
    context: str,
    questions: Sequence[_Fields],
) -> Iterator[tuple[list[Message], int]]:
    """Yield a request for each question, and how many of its characters may be cut."""
    # For `mf`, the whole first question stands before the context.
    shared = SHARED[name].format(context=context, prefix=questions[0]["input"])
    for question in questions:
        yield (
            [{"role": "user", "content": shared + QUESTIONS[name].format(**question)}],
            len(shared),
        )


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    name: str,
    apart: bool,
) -> Iterator[Example]:
    """Load the questions context by context, so that prompts on the same context follow each other.

    Args:
        apart: whether each question is a request of its own, and not the turn of a conversation.
    """
    rows = JsonLines(task.only_file(settings, root), {"multi_turns": list})
    # As in the official code, the first context decides whether the number of questions is limited for all contexts.
    first = len(next(iter(rows))["multi_turns"])
    most = _TURNS if first > _TURNS else None
    budgets = BUDGETS[name]
    reserved = sum(budgets.values()) * min(first, _TURNS) // len(budgets) + (
        1000 if apart else 0
    )
    if "scbench_repoqa" in budgets:
        needles = _find_needles(rows, most)
    else:
        needles = {}
    for number, row in enumerate(rows, 1):
        if "context" in row:
            context = row["context"]
        else:
            context = row["input"]
        _CONTEXT.check(f"{row}: context", context)
        turns = row["multi_turns"][:most]
        fields = [_fields(row, turn) for turn in turns]
        ask = _ask_apart if apart else _ask_in_turn
        prompts = ask(name, str(context), fields)
        for index, (turn, (messages, shared)) in enumerate(
            zip(turns, prompts, strict=True), 1
        ):
            record = _record(row, turn, name, needles)
            if isinstance(turn["answer"], list):
                answers = turn["answer"]
            else:
                answers = [turn["answer"]]
            yield Example(
                id=f"{number}-{index}",
                fields={"question": turn["input"]},
                references=[str(answer) for answer in answers],
                source="hub",
                record={**record, "turn": index},
                messages=messages,
                group=f"context {number}",
                max_tokens=budgets[record["subtask"]],
                context=(0, shared),
                reserved=reserved,
            )


def _fields(row: Row, turn: Row) -> _Fields:
    """Return the values of the placeholders, and the answer as it stands in a conversation."""
    TEXT.check(f"{row}: input", turn["input"])
    fields = {
        "input": turn["input"],
        "question": turn["input"],
        "answer": str(turn["answer"]),
    }
    if target := _TARGET.search(turn["input"]):
        fields["prefix"] = MATH_QUESTION.format(target=target[1].lower())
    options = zip("ABCD", turn.get("options") or (), strict=False)
    return fields | {f"OPTION_{letter}": text for letter, text in options}


def _record(
    row: Row,
    turn: Row,
    name: str,
    needles: Mapping[str, Any],
) -> dict[str, Any]:
    if len(BUDGETS[name]) > 1:
        subtask = turn["task"]
    else:
        subtask = f"scbench_{name}"
    record = {"answer": turn["answer"], "subtask": subtask}
    if name == "choice_eng":
        record["answer"] = [
            turn["answer"],
            "ABCD"[turn["options"].index(turn["answer"])],
        ]
    elif name == "qa_eng":
        record["answer"] = [turn["answer"]]
    elif subtask == "scbench_repoqa":
        record["answer"] = {
            "name": turn["name"],
            "lang": row["lang"],
            "functions": needles[row["repo"]],
        }
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


_COMMIT = "283310bb8c5ba6909dd9a6b1be087d2937f76f6d"
"""The commit of the hub data set microsoft/SCBench."""

_PASSAGE = 300
"""Number of characters that the baseline repeats."""

_ROWS = {row["name"]: row for row in read_table(__package__, "tasks.csv")}
"""The title of each data set, and its numbers of contexts and questions."""
_INSTRUCTIONS = tuple(
    filter(None, (text.partition("{")[0] for text in SHARED.values()))
)


def _repeat_passage(messages: Sequence[Message]) -> str | None:
    """Repeat what follows the question's rarest word in the context.

    Returns None if the prompt does not start with one of SCBench's instructions.
    """
    first = messages[0]["content"]
    question = messages[-1]["content"][-_PASSAGE:]
    if not first.startswith(_INSTRUCTIONS):
        return None
    context = first.removesuffix(question)
    starts = {}
    for word in question.split():
        if word in context:
            starts[context.count(word)] = context.find(word)
    if starts:
        return context[starts[min(starts)] :][:_PASSAGE]
    return ""


def _task(name: str, apart: bool) -> Task:
    row = _ROWS[name]
    headline = tuple(MEASURES[subtask].metric for subtask in BUDGETS[name])
    by_turn = not apart and len(headline) == 1
    source = HubDataset(
        "microsoft/SCBench",
        {"test": int(row["contexts"])},
        f"scbench_{name}",
        labelled=False,
        commit=_COMMIT,
    )
    return Task(
        name=f"{name}_apart" if apart else name,
        alias=name,
        title=row["title"],
        template=NO_TEMPLATE,
        load=partial(load, name=name, apart=apart),
        score=partial(score, subtask=f"scbench_{name}", by_turn=by_turn),
        headline=headline,
        metrics=(*headline, *(_BY_TURN if by_turn else ())),
        max_tokens=max(BUDGETS[name].values()),
        num_samples=int(row["questions"]),
        sources=lambda length: (source,),
        chat=True,
        cut="context_middle",
        record_shapes=_SHAPES,
        extras=("code",) if "scbench_repoqa" in BUDGETS[name] else (),
        baseline=Baseline(_repeat_passage, "B"),
    )


_MULTI_TURN, _MULTI_REQUEST = (
    tuple(_task(name, apart) for name in _ROWS) for apart in (False, True)
)

SCBENCH = read_benchmark(
    __package__,
    (
        Category("multi_turn", "Multi-turn", _MULTI_TURN),
        Category("multi_request", "Multi-request", _MULTI_REQUEST),
    ),
    metrics=[
        Metric(
            name,
            name.replace("_", " ").title(),
            "The score of the questions of this turn.",
        )
        for name in _BY_TURN
    ],
)
