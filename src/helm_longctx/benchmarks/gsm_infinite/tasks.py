"""GSM-Infinite's three subsets and their scores. Symbolic problems are generated, the others are on the hub.

Source: Infini-AI-Lab/gsm_infinite at caa5388, gsm-infinite/config.sh and run.sh (budget, temperatures, numbers),
data/symbolic/generate_payload.py and generate_symbolic.py, pred/pred.py (`filter_config`), pred/eval_realistic.py
(`criteriaoutput`) and pred/eval_symbolic.py (`get_prompt`, `postprocess_line`).
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from helm_longctx.benchmarks.gsm_infinite import prompts
from helm_longctx.tasks import (
    NO_TEMPLATE,
    STANDARD,
    Baseline,
    Category,
    DataRoot,
    Example,
    HubDataset,
    InputError,
    JsonLines,
    Judgement,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Template,
    Types,
    Variant,
    is_whole,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, judge_scores
from helm_longctx.tasks.judgement import score_silence
from helm_longctx.tasks.lengths import length_label

NAMES = 1_000_000
"""Number of names of variables, V000000 and so on."""
_SIGNS = {
    "": 0,
    " + 1": 1,
    " - 1": -1,
}
"""What is added to a parent's value, as a statement writes it."""
_STATEMENTS = 828
_TOKENS = 9668
"""Number of statements in a text of so many tokens."""
_SYMBOLIC_OPERATIONS = {
    0: 50,
    8192: 30,
    16384: 20,
}
"""The largest number of operations of symbolic problems by length; 10 at other lengths."""
_MOST_OPERATIONS = 10
_OPERATIONS = range(2, 31)
"""The numbers of operations of the other problems."""
_SYMBOLIC_LIMIT = 100
_LIMIT = 200
"""The numbers of problems with each number of operations."""

_FIRST = "normalforward"
_SECOND = "forwardreverse"
SHARES = {
    (template, mode): share
    for mode in (_FIRST, _SECOND)
    for template, share in {
        "crazy_zootopia": 0.4,
        "movie_festival_awards": 0.05,
        "teachers_in_school": 0.05,
    }.items()
}
"""The share of each kind of problem, in the official order."""
COLUMNS: Types = {
    "messages": list,
    "solution": str,
    "op": int,
    "template": str,
    "mode": str,
}
_KEPT = (*COLUMNS, "id")


class _Problem(NamedTuple):
    """A symbolic problem: its statements, the value that is asked for, and the variables that have it."""

    statements: list[str]
    value: int
    variables: list[str]


def _draw_problem(rng: random.Random, operations: int, size: int) -> _Problem:
    """Draw a problem with `operations` variables that have values, and `size` variables in all."""
    names = []
    for number in rng.sample(range(NAMES), k=size):
        names.append(f"V{number:06d}")
    nodes, edges = _draw_tree(rng, names[:operations])
    children = [child for _, child in edges]
    signs = dict(zip(children, rng.choices([*_SIGNS], k=len(edges)), strict=True))
    values = {nodes[0]: rng.randint(0, 10)}
    statements = [f"assign {nodes[0]} = {values[nodes[0]]}"]
    # A parent stands before its children in the list, so one pass finds all values.
    for parent, child in edges:
        values[child] = values[parent] + _SIGNS[signs[child]]
        statements.append(f"assign {child} = {parent}{signs[child]}")
    # The official code draws from the values in the order of the nodes.
    value = rng.choice([values[node] for node in nodes])
    variables = [node for node in nodes if values[node] == value]
    if size > operations:
        _, edges = _draw_tree(rng, names[operations:])
        further = rng.choices([*_SIGNS], k=len(edges))
        for (parent, child), sign in zip(edges, further, strict=True):
            statements.append(f"assign {child} = {parent}{sign}")
    rng.shuffle(statements)
    return _Problem(statements, value, variables)


def _draw_tree(
    rng: random.Random,
    nodes: list[str],
) -> tuple[list[str], list[tuple[str, str]]]:
    """Shuffle nodes, and give each but the first a parent before it."""
    rng.shuffle(nodes)
    edges = []
    for index in range(1, len(nodes)):
        edges.append((nodes[rng.randint(0, index - 1)], nodes[index]))
    return nodes, edges


def official_tokens(length: int) -> int:
    """Return the number that the official script gets for a length: 8000 for 8k."""
    if length % 1024 == 0:
        return length // 1024 * 1000
    return length


def generate(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Draw symbolic problems as the official script with the same seed does, with few operations first."""
    rng = random.Random(settings.seed)
    noise = int(official_tokens(settings.level) * _STATEMENTS / _TOKENS * 1.0)
    most = _SYMBOLIC_OPERATIONS.get(settings.level, _MOST_OPERATIONS)
    sample = task.sample(settings)
    of_each = -(-sample // most)
    names = []
    for operations in range(1, most + 1):
        for number in range(of_each):
            names.append((operations, number))
    for operations, number in names[:sample]:
        problem = _draw_problem(rng, operations, operations + noise)
        fields = {
            "context": " ".join(f"{text}." for text in problem.statements),
            "question": str(problem.value),
        }
        yield Example(
            id=f"{operations}-{number}",
            fields=fields,
            references=problem.variables,
            source="official",
            record={"value": problem.value},
        )


_COMMITS = {"hard_16k": "5e15e6eb9b76b8642894210b677bbd79825e48d4"}
"""The commits of hub data sets that public material names, by the end of the name of the repository."""


def find_source(name: str, length: int) -> HubDataset:
    """Return the hub data set of medium or hard problems of a length. It has a split for each number of operations."""
    splits = {}
    for operations in _OPERATIONS:
        splits[f"ops_{operations}"] = 0
    end = f"{name}_{length_label(length) if length else 0}"
    return HubDataset(
        f"InfiniAILab/gsm_infinite_{end}",
        splits,
        columns=dict.fromkeys(splits, _KEPT),
        labelled=False,
        commit=_COMMITS.get(end, ""),
    )


def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield medium or hard problems, with few operations first, and of each kind its official share."""
    of_each = -(-task.sample(settings) // len(_OPERATIONS))
    left = task.sample(settings)
    for path in task.paths(settings.length):
        if not left:
            return
        for example in islice(
            _select(JsonLines(root / path, COLUMNS)), min(of_each, left)
        ):
            yield example
            left -= 1


def _select(rows: JsonLines) -> Iterator[Example]:
    """Yield the first problems of each kind in a file."""
    total = min(_LIMIT, len(rows))
    wanted = {kind: int(total * share) for kind, share in SHARES.items()}
    kinds: Mapping[tuple[str, str], list[Example]] = {kind: [] for kind in SHARES}
    for number, row in enumerate(rows):
        kind = (row["template"], row["mode"])
        if kind not in kinds or len(kinds[kind]) == wanted[kind]:
            continue
        answer = row["solution"].partition("Answer: ")[2].partition(".")[0]
        try:
            reference = str(int(answer.lower()))
        except ValueError as error:
            raise InputError(
                f"{row}: column 'solution' has no number after 'Answer: '"
            ) from error
        messages = []
        for turn in row["messages"]:
            messages.append({"role": turn["role"], "content": turn["content"]})
        kinds[kind].append(
            Example(
                id=f"{row['op']}-{number}",
                fields={},
                references=[reference],
                source="hub",
                messages=messages,
            )
        )
        if all(len(of_kind) == wanted[name] for name, of_kind in kinds.items()):
            break
    for of_kind in kinds.values():
        yield from of_kind


JUDGE = "together/qwen2.5-7b-instruct-turbo"
"""The official extractor is Qwen/Qwen2.5-7B-Instruct; this is HELM's deployment of it."""

_ENDS = (
    ("answer: ", "."),
    ("solution: ", "."),
    ("oxed{", "}"),
    ("**answer:** ", "."),
    ("**answer: ", "**"),
    ("final answer: answer: ", "."),
    ("\nanswer: ", "."),
    (r"\text{answer: } ", ""),
    ("is ", "."),
    ("answer: ", "\n"),
)
"""What stands before and after a number, in the order of the search; nothing after it ends the number's digits."""
_SEARCHED_FROM_END = frozenset({"oxed{", "is "})
_BACKSPACED = re.compile(".\x08")
_DIGITS = re.compile(r"\d*")
_VARIABLE = re.compile(r"\bV\d+\b")


def _find_number(output: str) -> int | None:
    """Return the number of an answer: the first in one of the official forms, or None if there is none."""
    text = _BACKSPACED.sub("b", output).lower()
    for start, end in _ENDS:
        if start in _SEARCHED_FROM_END:
            start_of_form = text.rfind(start)
        else:
            start_of_form = text.find(start)
        if start_of_form < 0:
            continue
        first = start_of_form + len(start)
        last = text.find(end, first) if end else _DIGITS.match(text, first).end()  # type: ignore[union-attr]
        try:
            return int(text[first : last if last >= 0 else len(text)])
        except ValueError:
            continue
    return None


def score_number(record: ScorerInput) -> MetricValues:
    """Return whether the answer has the right number."""
    number = _find_number(record["prediction"])
    return {
        "accuracy": float(number is not None and str(number) in record["references"])
    }


def read_verdict(reply: Any, record: ScorerInput) -> MetricValues:
    """Return whether exactly the right variables were extracted, in any order. What is no text has no score."""
    if not isinstance(reply, str):
        return {}
    return {
        "judge_score": float(set(_VARIABLE.findall(reply)) == set(record["references"]))
    }


def _score_variables(record: ScorerInput) -> MetricValues:
    """Return whether the variables that the judge extracted, and the variables in the last line, are right."""
    lines = record["prediction"].strip().splitlines()
    last = read_verdict(lines[-1] if lines else "", record)["judge_score"]
    return {
        **judge_scores(record, "judge_score", partial(read_verdict, record=record)),
        "last_line_accuracy": last,
    }


def judge_prompt(record: ScorerInput) -> str:
    """Make the extractor's prompt. The braces of its examples are filled in, too, as in the official code."""
    return prompts.EXTRACTION.format(value=record["value"], answer=record["prediction"])


JUDGEMENT = Judgement(
    judge_prompt,
    read_verdict,
    prompts.EXTRACTION,
    max_tokens=2048,
    readings=1,
    silence_reply="None",
)


_LENGTHS = {
    0: 0,
    **{STANDARD[label]: STANDARD[label] for label in ("8k", "16k", "32k")},
}
"""The lengths of the published tables."""
_SYMBOLIC_LENGTHS = sizes_in_tokens((0, *STANDARD.values()))

_TEMPLATE = Template.whole(prompts.SYMBOLIC)
_NUMBER = re.compile(r"\d+")


def name_variables(messages: Sequence[Message]) -> str | None:
    """Answer with the variables that have the value itself, or None if the prompt is not a symbolic problem."""
    fields = _TEMPLATE.parse(messages[-1]["content"])
    if fields is None:
        return None
    names = re.findall(
        rf"assign (V\d+) = {re.escape(fields['question'])}\.", fields["context"]
    )
    return f"The variables are {', '.join(names) or 'None'}."


def _last_number(messages: Sequence[Message]) -> str | None:
    """Answer with the last number of a problem, or None if the last turn asks for no answer."""
    text = messages[-1]["content"]
    if "Solution:" not in text:
        return None
    numbers = _NUMBER.findall(text) or ["0"]
    return f"Answer: {numbers[-1]}."


def _hub_task(name: str) -> Task:
    return Task(
        name=name,
        title=name.title(),
        template=NO_TEMPLATE,
        load=load,
        score=score_number,
        can_read=lambda record: _find_number(record["prediction"]) is not None,
        headline=("accuracy",),
        metrics=("accuracy",),
        sizes=_LENGTHS,
        num_samples=_LIMIT * len(_OPERATIONS),
        sources=lambda length: (find_source(name, length),),
        baseline=Baseline(_last_number, "Answer: 2."),
        **task_fields(__package__),
    )


_SYMBOLIC = Task(
    name="symbolic",
    title="Symbolic",
    template=_TEMPLATE,
    load=generate,
    score=_score_variables,
    scorers=score_silence(_score_variables),
    headline=("judge_score",),
    metrics=(*JUDGED, "last_line_accuracy"),
    sizes=_SYMBOLIC_LENGTHS,
    num_samples={
        n: _SYMBOLIC_LIMIT * _SYMBOLIC_OPERATIONS.get(n, _MOST_OPERATIONS)
        for n in _SYMBOLIC_LENGTHS
    },
    any_length=True,
    arguments=("seed",),
    most_samples=10_000,
    variants={"paper": Variant(temperature=1.0)},
    official_judge=JUDGE,
    judgement=JUDGEMENT,
    record_shapes={**REPLIES, "value": Shape("a whole number", is_whole)},
    baseline=Baseline(name_variables, "V000000"),
    **task_fields(__package__),
)

_TASKS = (_SYMBOLIC, _hub_task("medium"), _hub_task("hard"))
GSM_INFINITE = read_benchmark(
    __package__,
    [Category("", "", _TASKS, judge=f"{__package__}.judge.ExtractionAnnotator")],
)
