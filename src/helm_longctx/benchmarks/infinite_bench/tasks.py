"""∞Bench's twelve tasks with the prompts of three families of models. Each task has a file of JSON lines.

The metrics give the official results for any output. Where the official code raises an error, the answer is wrong.
Source: OpenBMB/InfiniteBench at 88b3daa, src/eval_gpt4.py, src/eval_yarn_mistral.py, src/eval_utils.py
(`create_prompt`, `create_msgs`, `get_answer`); src/compute_scores.py at 88b3daa (2024-06-13) for `scorer=2024-06`, and at
ae04ef1 (2024-08-25) for `scorer=2024-08`; the hub data set xinrongzhang2022/InfiniteBench.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from helm_longctx.benchmarks.infinite_bench import prompts
from helm_longctx.tasks import (
    NO_TEMPLATE,
    Baseline,
    Category,
    DataRoot,
    Example,
    FileRow,
    HubFile,
    InputError,
    JsonLines,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    Types,
    Variant,
    are_all,
    is_number,
    is_text,
    read_benchmark,
    words,
)
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import AnswerKind, has_text, text_group
from helm_longctx.tasks.words import (
    english_words,
    f1,
    find_choice,
    find_plain_letter,
    follows_start,
    tidy,
)

_WORD_ENDS = re.compile(r"""[\n:"'.,?!{}]""")
_CODE_RUN_ENDS = re.compile(r"""[\n.`'":]""")
DEBUG_MARKS = re.compile(r"""[\n`'"*-]|[Oo]ption""")
DEBUG_STARTS = ("answer is:", "is:", "answer:", "correct option is:")
_FUNCTION_LETTER = re.compile(r"\b[A-J]\b")
_OPTION_LETTER = re.compile(r"\b[A-D]\b")
_DIGITS = re.compile("[0-9]+")
_NUMBER = re.compile(r"\d+\.\d+|\d+")

_Compare = Callable[[str, Sequence[str]], float]
"""(output, references) → 0…1"""


def _has_word(output: str, answers: Sequence[str]) -> bool:
    """Return whether a word of the output is the answer, with the same case."""
    return answers[0] in _WORD_ENDS.sub(" ", output).split()


def _has_name(output: str, answers: Sequence[str]) -> bool:
    """Return whether a word of the output in upper case is the first of the names."""
    return answers[0] in (word.upper() for word in _WORD_ENDS.sub(" ", output).split())


def _has_any_name(output: str, answers: Sequence[str]) -> bool:
    """Return whether the output in upper case contains one of the names."""
    text = output.strip().upper()
    return any(answer.upper() in text for answer in answers)


def _has_first_digits(output: str, answers: Sequence[str]) -> bool:
    """Return whether the first digits of the output are the answer."""
    match = _DIGITS.search(output)
    return answers[0] == (match[0] if match else "")


def _has_last_number(output: str, answers: Sequence[str]) -> bool:
    """Return whether the last word of the output is the number."""
    words = _CODE_RUN_ENDS.sub(" ", output).split()
    try:
        return int(words[-1]) == int(answers[0])
    except (IndexError, ValueError):
        return False


def _has_first_number(output: str, answers: Sequence[str]) -> bool:
    """Return whether the first number of the output is the answer. To a whole answer, decimals are no answer."""
    answer = answers[0]
    match = _NUMBER.search(output)
    if match is None:
        return False
    try:
        kind = int if answer.lstrip("-").isdecimal() else float
        return kind(match[0]) == kind(answer)
    except ValueError:
        return False


def _find_function(output: str, answers: Sequence[str]) -> bool:
    """Return whether the output names the right function; `answers` are its name and its letter."""
    name, letter = answers
    text = output.strip()
    if text[:2] in (f"{letter}.", f"{letter}:"):
        return True
    return bool(follows_start(tidy(DEBUG_MARKS, text), DEBUG_STARTS, (letter, name)))


def _find_letter(letters: re.Pattern[str], text: str) -> str | None:
    """Return the last letter that stands alone on the first line with one, or None if no line has one."""
    # Lines end at line feeds only, because the official pattern's dot stops only there.
    for line in text.split("\n"):
        if matches := letters.findall(line):
            return str(matches[-1])
    return None


def _find_function_or_letter(output: str, answers: Sequence[str]) -> bool:
    """Return whether the output names the right function; `answers` are its name and its letter."""
    name, letter = answers
    text = output.strip()
    if _find_letter(_FUNCTION_LETTER, text) == letter:
        return True
    text = tidy(DEBUG_MARKS, text)
    if text.startswith((letter, name)):
        return True
    return bool(follows_start(text, DEBUG_STARTS, (letter, name)))


def _find_choice_or_letter(output: str, answers: Sequence[str]) -> bool:
    """Return whether the output names the right option; `answers` are its text and its letter."""
    return _find_letter(_OPTION_LETTER, output.strip()) in answers or find_choice(
        output, answers
    )


def _best_english_f1(output: str, answers: Sequence[str]) -> float:
    """Return the F1 of the words with the best answer."""
    words = english_words(output)
    return max(f1(words, english_words(answer)) for answer in answers)


def _count_values(output: str, answers: Sequence[str], skipped: int = 0) -> float:
    """Return the share of the intermediate values before the first wrong one. Signs are not read.

    Args:
        answers: the values as a list in JSON.
        skipped: how many numbers of the output stand before the first value.
    """
    values = json.loads(answers[0])
    # Digits are compared, because Python does not read numbers of thousands of digits.
    numbers = []
    for digits in _DIGITS.findall(output)[skipped:]:
        numbers.append(digits.lstrip("0") or "0")
    right = 0
    for value, number in zip(values, numbers, strict=False):
        if str(value) != number:
            break
        right += 1
    return right / len(values)


def _has_digits(output: str, answers: Sequence[str]) -> bool:
    """Whether an output has a digit."""
    return _DIGITS.search(output) is not None


def _ends_with_number(output: str, answers: Sequence[str]) -> bool:
    """Whether the last word of an output is a number."""
    words = _CODE_RUN_ENDS.sub(" ", output).split()
    return bool(words) and words[-1].lstrip("+-").isdecimal()


def _names_function(output: str, answers: Sequence[str]) -> bool:
    """Whether an output has the letter of a function, the start of an answer, or begins with the function's name."""
    text = output.strip()
    return (
        text.startswith((*_LETTERS, *answers))
        or _find_letter(_FUNCTION_LETTER, text) is not None
        or any(start in tidy(DEBUG_MARKS, text) for start in DEBUG_STARTS)
    )


def _names_option(output: str, answers: Sequence[str]) -> bool:
    """Whether an output has the letter of an option, or the start of an answer."""
    text = output.strip()
    is_option = find_choice(output, answers) or text.startswith((*_LETTERS, *answers))
    return is_option or _find_letter(_OPTION_LETTER, text) is not None


def _find_function_plainly(output: str, answers: Sequence[str]) -> bool:
    """Return whether an output names the right function in the official or in a plain form.

    Plain forms are those of `find_plain_letter`, and the function's name alone among the words of the last line.
    """
    name, letter = answers
    if (
        _find_function_or_letter(output, answers)
        or find_plain_letter(output, _LETTERS) == letter
    ):
        return True
    last_line = output.strip().rpartition("\n")[2]
    return name in re.findall(r"\w+", last_line)


def _score_debug(record: ScorerInput, compare: _Compare) -> MetricValues:
    """Return the official and the lenient accuracy of Code.Debug."""
    official = score(record, "accuracy", compare)
    lenient = score(record, "accuracy_lenient", _find_function_plainly)
    return {**official, **lenient} if official else {}


def score(record: ScorerInput, metric: str, compare: _Compare) -> MetricValues:
    """Return the score of an answer, if the record has a usable reference."""
    try:
        return {metric: float(compare(record["prediction"], record["references"]))}
    except (IndexError, ValueError, TypeError, ZeroDivisionError):
        return {}


REPO = "xinrongzhang2022/InfiniteBench"
_COMMIT = "90f0394333616266d9fe85824ceaf505093cbaa5"

COLUMNS: Types = {
    "context": str,
    "input": str,
    "answer": (str, int, float, list),
}
CHOICES = frozenset({"code_debug", "longbook_choice_eng"})

_LETTERS = "ABCD"
_REAL_TEXTS = re.compile("longbook_|longdialogue_|code_debug")
"""The tasks on books, scripts and repositories."""

_BEGINNING = 2000
"""Number of characters at the start of a text that identify a book, script or repository. In `code_debug`, texts on the
same repository differ in one function."""

_CALL = re.compile(r"func_[0-9]+\(\-?[0-9]+\)")
_TARGET = re.compile(r"The .+ of")


def find_source(name: str) -> HubFile:
    """Return the file of a task."""
    path = f"hub/xinrongzhang2022__infinitebench/{name}.jsonl"
    return HubFile(REPO, f"{name}.jsonl", path, commit=_COMMIT)


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Yield a task's examples in file order."""
    name = task.argument
    for number, row in enumerate(JsonLines(task.only_file(settings, root), COLUMNS)):
        text = row["context"]
        asked = row["input"]
        fields = {
            "context": text,
            "input": asked,
            "question": asked,
        }
        if name in CHOICES:
            pairs = zip(_LETTERS, _options(row), strict=True)
            fields["options"] = "\n".join(
                f"{letter}. {option}" for letter, option in pairs
            )
        elif name == "code_run":
            fields["func_call"] = _find(_CALL, row)
            fields["func"] = fields["func_call"].partition("(")[0]
        elif name == "math_find":
            fields["target"] = _find(_TARGET, row).lower()[: -len(" of")]
        references = read_answers(name, _official_answer(name, row), str(row))
        messages = () if task.template.names else _make_calculation(text)
        group = text_group(text[:_BEGINNING] if _REAL_TEXTS.match(name) else text)
        yield Example(
            id=f"{name}-{number}",
            fields=fields,
            references=references,
            source="hub",
            messages=messages,
            group=group,
        )


def _make_calculation(expression: str) -> tuple[Message, ...]:
    """Return GPT-4's conversation of `math_calc`."""
    question, answer = prompts.CALCULATION
    roles = ("system", "user", "system", "user")
    texts = (prompts.CALCULATOR, question, answer, expression)
    return tuple(
        {"role": role, "content": text} for role, text in zip(roles, texts, strict=True)
    )


def read_answers(name: str, answer: Any, where: str) -> list[str]:
    """Return the references of an official answer (`ground_truth`) for the task's scorer.

    Args:
        answer: a text or number, or a list of them. In `math_calc` it is a list of whole numbers, possibly in a
            list. It becomes one reference in JSON.

    Raises:
        InputError: the answer is of another kind.
    """
    values = answer if isinstance(answer, list) else [answer]
    if name == "math_calc" and values:
        values = [json.dumps(values[0] if isinstance(values[0], list) else values)]
    if not values or not are_all(lambda value: is_text(value) or is_number(value))(
        values
    ):
        raise InputError(
            f"{where}: the answer must be text, a number, or a list of them that is not empty"
        )
    return [str(value) for value in values]


def _official_answer(name: str, row: FileRow) -> Any:
    """Return the answer as the official code stores it: of a choice, the option and its letter."""
    answer = row["answer"]
    if name not in CHOICES:
        return answer
    if isinstance(answer, list) and len(answer) == 2 and answer[1] in tuple(_LETTERS):
        return answer
    if isinstance(answer, list) and len(answer) == 1:
        option = answer[0]
    else:
        option = answer
    return [option, _LETTERS[_options(row).index(option)]]


def _options(row: FileRow) -> list[str]:
    options = row.get("options")
    if not are_all(is_text)(options) or len(options) != len(_LETTERS):  # type: ignore[arg-type]
        raise InputError(f"{row}: column 'options' must be a list of four texts")
    return list(options)  # type: ignore[arg-type]


def _find(pattern: re.Pattern[str], row: FileRow) -> str:
    match = pattern.search(row["input"])
    if match is None:
        raise InputError(
            f"{row}: column 'input' has no text of the form {pattern.pattern!r}"
        )
    return match[0]


class InfiniteBenchTask(NamedTuple):
    """A task: its published title, number of examples, output budget of base models, metric and baseline answers.

    `compare` scores an output with the scorer of 2024-06. `later` does with the scorer of 2024-08, where that differs.
    Retrieve.Number has none: the baselines cannot tell its prompts from HELMET's needles.
    """

    title: str
    samples: int
    max_tokens: int
    metric: str
    compare: _Compare
    kind: AnswerKind | None
    constant: str
    later: _Compare | None = None


_READS: Mapping[str, _Compare] = {
    **dict.fromkeys(
        ("passkey", "number_string", "math_calc", "math_find"), _has_digits
    ),
    "code_run": _ends_with_number,
    "code_debug": _names_function,
    "longbook_choice_eng": _names_option,
}
"""(output, references) → whether a scorer finds something to compare. The scorers of other tasks read every text."""


def can_read(record: ScorerInput, name: str) -> bool:
    """Whether a task's scorer finds something to compare in an output."""
    if name not in _READS or not record["references"]:
        return has_text(record)
    return bool(_READS[name](record["prediction"], record["references"]))


ROWS = {
    "passkey": InfiniteBenchTask(
        "Retrieve.PassKey", 590, 6, "accuracy", _has_first_digits, "span", "12345"
    ),
    "number_string": InfiniteBenchTask(
        "Retrieve.Number", 590, 12, "accuracy", _has_first_digits, None, ""
    ),
    "kv_retrieval": InfiniteBenchTask(
        "Retrieve.KV", 500, 50, "accuracy", _has_word, "lookup", "0"
    ),
    "longbook_sum_eng": InfiniteBenchTask(
        "En.Sum",
        103,
        1200,
        "rougeLsum",
        words.rouge_l_sum,
        "summary",
        "It is a long book.",
    ),
    "longbook_qa_eng": InfiniteBenchTask(
        "En.QA", 351, 40, "f1", _best_english_f1, "span", "the"
    ),
    "longbook_choice_eng": InfiniteBenchTask(
        "En.MC", 229, 40, "accuracy", find_choice, "choice", "A", _find_choice_or_letter
    ),
    "longdialogue_qa_eng": InfiniteBenchTask(
        "En.Dia", 200, 40, "accuracy", _has_name, "frequency", "JOHN", _has_any_name
    ),
    "longbook_qa_chn": InfiniteBenchTask(
        "Zh.QA", 189, 40, "f1", words.best_character_f1, "span", "的"
    ),
    "code_debug": InfiniteBenchTask(
        "Code.Debug",
        394,
        5,
        "accuracy",
        _find_function,
        "choice",
        "A.",
        _find_function_or_letter,
    ),
    "code_run": InfiniteBenchTask(
        "Code.Run", 400, 5, "accuracy", _has_last_number, "span", "0"
    ),
    "math_calc": InfiniteBenchTask(
        "Math.Calc", 50, 30000, "value_share", _count_values, "span", "0"
    ),
    "math_find": InfiniteBenchTask(
        "Math.Find", 350, 3, "accuracy", _has_first_number, "span", "0"
    ),
}

_API_TOKENS = 4096
"""Output budget of chats. The official code sets none. It asks GPT-4 Turbo, and that writes at most this many tokens."""


def _task(
    name: str,
    suffix: str,
    templates: Mapping[str, str],
    variant: Variant,
    chat: bool,
) -> Task:
    row = ROWS[name]
    compare = row.compare
    conversation = name not in templates
    if conversation:
        # GPT-4 repeats the first number of the expression before the values (`get_score_one_math_calc`).
        compare = partial(_count_values, skipped=1)
    apply: Callable[..., MetricValues] = partial(score, metric=row.metric)
    metrics: tuple[str, ...] = (row.metric,)
    if name == "code_debug":
        apply = _score_debug
        metrics = ("accuracy", "accuracy_lenient")
    earlier = partial(apply, compare=compare)
    if row.later:
        latest = partial(apply, compare=row.later)
    else:
        latest = earlier
    return Task(
        name=name + suffix,
        alias=name if suffix else "",
        # Users leave out the language, because the task has only one.
        short_name="longdialogue_qa" if name == "longdialogue_qa_eng" else "",
        title=row.title,
        template=NO_TEMPLATE if conversation else Template.whole(templates[name]),
        load=load,
        score=latest,
        scorers={"2024-08": latest, "2024-06": earlier},
        headline=(row.metric,),
        metrics=metrics,
        can_read=partial(can_read, name=name),
        max_tokens=_API_TOKENS if chat else row.max_tokens,
        num_samples=row.samples,
        sources=lambda length: (find_source(name),),
        chat=chat,
        variants={
            "paper": Variant(temperature=variant.temperature)
            if conversation
            else variant
        },
        # The expression stands in the last turn, and only a first turn can be cut.
        cut="nothing" if conversation else "middle_joined",
        baseline=Baseline(row.kind, row.constant)
        if row.kind and not conversation
        else None,
    )


def _category(
    name: str,
    title: str,
    templates: Mapping[str, str],
    variant: Variant,
    chat: bool,
) -> Category:
    tasks = (
        _task(task, f"_{name}" if name else "", templates, variant, chat)
        for task in ROWS
    )
    return Category(
        name=name,
        title=title,
        tasks=tuple(tasks),
        averaged=not name,
    )


_CATEGORIES = (
    _category(
        "", "", prompts.CHAT, Variant(system=prompts.SYSTEM, temperature=1.0), chat=True
    ),
    _category("base", "Base Models", prompts.BASE, Variant(), chat=False),
    _category("claude", "Claude", prompts.CLAUDE, Variant(temperature=1.0), chat=True),
)

INFINITE_BENCH = read_benchmark(__package__, _CATEGORIES)
