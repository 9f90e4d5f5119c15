"""LongBench's tasks, made from its data sets: LongBench, and LongBench-E with scores by length.

The metrics give the official results for any output. Source: THUDM/LongBench at 2e00731, LongBench/metrics.py, eval.py
(`scorer`, `scorer_e`), pred.py (LongBench-E, chats), config/dataset2maxlen.json and task.md (rows); for code the
package fuzzywuzzy 0.18.0 without python-Levenshtein, as its requirements.txt has it. A record has `all_classes` if
classes are asked for, and in LongBench-E the `length` of the row.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from helm_longctx.benchmarks.longbench.prompts import PROMPTS
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import (
    TEXTS,
    Baseline,
    Category,
    DataRoot,
    Example,
    HubZip,
    JsonLines,
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
)
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.words import chinese_words, cut, english_words, f1, rouge_l

BY_LENGTH = ("score_0_4k", "score_4_8k", "score_8k_up")
"""The metrics for LongBench-E's columns. They group rows by their number of words."""

_STEPS = 990
_STEPS_ZH = 989
"""Steps after which the recursion of the package rouge fails in eval.py, for English and, one call deeper, Chinese."""

_NUMBER = re.compile(r"\d+")
_NO_CODE = ("`", "#", "//")

_Compare = Callable[[str, str, Sequence[str]], float]
"""(output, reference, all classes) → the score of one reference."""


def score(
    record: ScorerInput,
    metric: str,
    first_line: bool,
    by_length: bool,
) -> MetricValues:
    """Return the score of the best reference, or nothing if it cannot be computed.

    Args:
        first_line: whether only the output's first line counts.
        by_length: whether the score also counts in one of `BY_LENGTH`.
    """
    output = record["prediction"]
    classes = record.get("all_classes") or ()
    if metric == "classification_score" and not classes:
        return {}
    if first_line:
        output = output.lstrip("\n").split("\n")[0]
    compare = _COMPARE[metric]
    values = []
    for reference in record["references"]:
        values.append(compare(output, reference, classes))
    value = max([0.0, *values])
    scores = {metric: value}
    length = record.get("length") if by_length else None
    if length is not None:
        scores[BY_LENGTH[(length >= 4000) + (length >= 8000)]] = value
    return scores


def compare_numbers(pattern: str) -> _Compare:
    """Make a metric: the share of the output's numbers that equal the one that the pattern finds in the reference."""
    wanted = re.compile(pattern)

    def compare(output: str, reference: str, classes: Sequence[str]) -> float:
        numbers = _NUMBER.findall(output)
        right = wanted.search(reference)
        if not numbers or not right:
            return 0.0
        return sum(number == right[1] for number in numbers) / len(numbers)

    return compare


def _compare_code(output: str, reference: str, classes: Sequence[str]) -> float:
    """Return the similarity, in steps of 0.01, of the reference and the first line without a comment or a backtick."""
    lines = output.lstrip("\n").split("\n")
    line = next(
        (line for line in lines if not any(mark in line for mark in _NO_CODE)), ""
    )
    if line == reference:
        return 1.0
    if not line or not reference:
        return 0.0
    return round(100 * SequenceMatcher(None, line, reference).ratio()) / 100


def _compare_classes(output: str, reference: str, classes: Sequence[str]) -> float:
    """Return 1 for the right class, less if the output names several."""
    named = [name for name in classes if name in output]
    index = 0
    # Parts of the right class's name do not count. The official loop removes from the list that it goes through, and so
    # skips the name after a removed one.
    while index < len(named):
        if named[index] in reference and named[index] != reference:
            named.remove(named[index])
        index += 1
    return 1.0 / len(named) if reference in named else 0.0


_COMPARE: dict[str, _Compare] = {
    "qa_f1_score": lambda output, reference, _: f1(
        english_words(output), english_words(reference)
    ),
    "qa_f1_zh_score": lambda output, reference, _: f1(
        chinese_words(output), chinese_words(reference)
    ),
    "rouge_score": lambda output, reference, _: rouge_l(output, reference, _STEPS),
    "rouge_zh_score": lambda output, reference, _: rouge_l(
        " ".join(cut(output)), " ".join(cut(reference)), _STEPS_ZH
    ),
    "classification_score": _compare_classes,
    "retrieval_score": compare_numbers(r"Paragraph (\d+)"),
    "retrieval_zh_score": compare_numbers(r"段落(\d+)"),
    "count_score": compare_numbers(r"\A([\s\S]*)\Z"),
    "code_sim_score": _compare_code,
}


class LongBenchTask(NamedTuple):
    """A data set.

    Args:
        name, title, metric: its official name, its name on web pages and in tables, and its official metric.
        traits: `chinese` texts; `extended`: LongBench-E has it, too; `few_shot`: its prompt has solved examples, and
            only the first line of an answer is scored; `code` is to be completed.
    """

    name: str
    title: str
    metric: str
    max_tokens: int
    rows: int
    traits: Sequence[str]


DATASETS = tuple(
    LongBenchTask(
        row["name"],
        row["title"],
        row["metric"],
        int(row["max_tokens"]),
        int(row["rows"]),
        row["traits"].split(),
    )
    for row in read_table(__package__, "datasets.csv")
)
COLUMNS: dict[str, type] = {
    "_id": str,
    "input": str,
    "context": str,
    "answers": list,
    "length": int,
}
_SHAPES = {"length": Shape("a whole number", is_whole)}
_MOST_EXTENDED = 500
"""No file of LongBench-E has more rows."""

_CODE_START = "Please complete the code given below. \n"
_CODE_END = "Next line of code:\n"


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    columns: Types,
) -> Iterator[Example]:
    """Load the questions in file order."""
    for row in JsonLines(task.only_file(settings, root), columns):
        fields = {"context": row["context"], "input": row["input"]}
        record = {}
        for name in task.record_shapes:
            record[name] = row[name]
        yield Example(
            id=row["_id"],
            fields=fields,
            references=row["answers"],
            source="official",
            record=record,
        )


def _repeat_line(messages: Sequence[Message]) -> str | None:
    """Complete code with the line after an earlier copy of the last line, or None if the prompt asks for no code."""
    prompt = messages[-1]["content"]
    if not (prompt.startswith(_CODE_START) and prompt.endswith(_CODE_END)):
        return None
    code = prompt[len(_CODE_START) : -len(_CODE_END)]
    lines = [line for line in code.split("\n") if line.strip()]
    if not lines:
        return ""
    return dict(pairwise(lines)).get(lines[-1], lines[-1])


def _find_constant(dataset: LongBenchTask) -> str:
    """Return the answer of a model that has not read the prompt."""
    match dataset.metric:
        case "count_score":
            return "1"
        case "retrieval_score":
            return "Paragraph 1"
        case "retrieval_zh_score":
            return "段落1"
    return "的" if "chinese" in dataset.traits else "the"


def _task(dataset: LongBenchTask, extended: bool = False) -> Task:
    name = f"{dataset.name}_e" if extended else dataset.name
    source = HubZip(
        # The organization THUDM is called zai-org now.
        "zai-org/LongBench",
        "data.zip",
        f"data/{name}.jsonl",
        f"hub/THUDM__LongBench/{name}/test.jsonl",
        commit="5e628be450b7e67fb7ae6e201bd6d8f7056f7672",
        sha256="cb45b11a4133c6bc1d6a44b0f8e701335ff1e543195db1103472e575857f7f64",
    )
    has_classes = dataset.metric == "classification_score"
    # The official code (pred.py) ends SAMSum's answers at a newline, as a stop sequence does.
    if dataset.name == "samsum":
        variant = Variant(stop=("\n",))
    else:
        variant = Variant()
    baseline: Baseline
    if "code" in dataset.traits:
        baseline = Baseline(_repeat_line, "return")
    else:
        is_summary = (
            dataset.metric == "rouge_score" and "few_shot" not in dataset.traits
        )
        baseline = Baseline(
            "summary" if is_summary else "span", _find_constant(dataset)
        )
    return Task(
        name=name,
        alias=dataset.name,
        title=f"{dataset.title} (E)" if extended else dataset.title,
        template=Template.whole(PROMPTS[dataset.name]),
        load=partial(
            load, columns=COLUMNS | {"all_classes": list} if has_classes else COLUMNS
        ),
        score=partial(
            score,
            metric=dataset.metric,
            first_line="few_shot" in dataset.traits,
            by_length=extended,
        ),
        headline=(dataset.metric,),
        metrics=(dataset.metric, *(BY_LENGTH if extended else ())),
        max_tokens=dataset.max_tokens,
        num_samples=_MOST_EXTENDED if extended else dataset.rows,
        sources=lambda length: (source,),
        # The official code sends neither examples nor code as chats.
        chat=not ("few_shot" in dataset.traits or "code" in dataset.traits),
        variants={"paper": variant},
        cut="middle",
        trait="Chinese" if "chinese" in dataset.traits else "",
        record_shapes=_SHAPES | {"all_classes": TEXTS} if has_classes else _SHAPES,
        baseline=baseline,
    )


LONGBENCH = read_benchmark(
    __package__,
    (
        Category("", "", tuple(map(_task, DATASETS))),
        Category(
            "e",
            "E",
            tuple(
                _task(dataset, extended=True)
                for dataset in DATASETS
                if "extended" in dataset.traits
            ),
        ),
    ),
)
