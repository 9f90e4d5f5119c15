"""L-Eval's tasks, their loader and metrics.

Source: OpenLMLab/LEval at cd34b05, Baselines/LEval_config.py and turbo16k-test.py, Evaluation/auto_eval.py
(`process_*`), em.py, f1.py and rouge.py; the data is in LEval-data.
"""

import re
import string
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from helm_longctx.benchmarks.leval import prompts
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import (
    NO_TEMPLATE,
    TEXTS,
    Baseline,
    Category,
    DataRoot,
    Example,
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
    WebFile,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import has_text, text_group
from helm_longctx.tasks.words import english_words, f1, make_rouge

_LETTERS = "ABCD"
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LISTED = re.compile(r"[A-Z](?=[\s.)])")
_MATH = re.compile(r"The answer is (\S+)")
_SPACE = re.compile(r"\s+")
_CODE = (
    (",", ""),
    ("'", ""),
    ("\\", ""),
    (".0", ""),
    ("] [", "]["),
    ("[ [", "[["),
    ("] ]", "]]"),
)
_SAID = (
    "will be",
    "of the code",
    "is",
    "would be",
    "the value of",
    "the result of",
    "printed",
)

_Read = Callable[[str, str], tuple[str, str]]
"""(output, reference) → both in the form in which they are compared."""


def _letters(text: str) -> str:
    return "".join(sorted({letter for letter in text if letter in _LETTERS}))


def find_letters(output: str, several: bool) -> str:
    """Return the options that an answer names; A if it names none.

    Args:
        several: whether several options can be right. If not, the first letter counts.
    """
    if not output.strip():
        return "None"
    if output in _LETTERS:
        return output
    if not several and (
        first := next((letter for letter in output if letter in _LETTERS), None)
    ):
        return first
    start = output[: len(output) - len(output.lstrip(_LETTERS))]
    if len(start) > 1:
        return _letters(start)
    rest = output[len(start) :].partition("Question")[0]
    listed = _letters(start + "".join(_LISTED.findall(rest)))
    run = re.search(f"[{_LETTERS}]+", rest)
    return listed or (run[0] if run else "A")


def _read_choice(output: str, reference: str, several: bool = False) -> tuple[str, str]:
    """Return the options that the answer names, and the right ones."""
    right = "".join(letter for letter in reference.split()[0] if letter in _LETTERS)
    return find_letters(output, several), right or "A"


def _find_number(text: str) -> str:
    """Return the digits of the number in an answer, up to a full stop."""
    match = _MATH.search(text)
    if match:
        number = match[1]
    else:
        words = text.split("\n\n")[0].split(" ")
        numbers = [word for word in words if any(map(str.isdigit, word))]
        number = numbers[-1] if numbers else ""
    return "".join(filter(str.isdigit, number.partition(".")[0]))


def _tidy_code(text: str) -> str:
    text = _SPACE.sub(" ", text)
    for old, new in _CODE:
        text = text.replace(old, new)
    return text


def _read_code(output: str, reference: str) -> tuple[str, str]:
    """Return the words in which the value of a program is expected, and the right value."""
    count = len(reference.split()) + 3
    text = _tidy_code(output)
    for said in _SAID:
        text = text.replace(said, "")
    _, after, final = text.rpartition("the final output")
    if after:
        words = _SPACE.split(final)[:count]
    else:
        words = _SPACE.split(text)[-count:]
    return " ".join(words), _tidy_code(reference)


def _read_truth(output: str, reference: str) -> tuple[str, str]:
    """Return the first truth value of an answer, and the right one."""
    words = output.lower().split()
    named = next((word for word in words if "true" in word or "false" in word), None)
    if named is None:
        return "<error>", reference
    return "true" if "true" in named else "false", reference


_READERS: dict[str, _Read] = {
    "tpo": _read_choice,
    "quality": _read_choice,
    "coursera": lambda output, reference: _read_choice(output, reference, several=True),
    "gsm100": lambda output, reference: (_find_number(output), _find_number(reference)),
    "codeU": _read_code,
    "sci_fi": _read_truth,
    "topic_retrieval_longchat": lambda output, reference: (output, reference),
}


def _plain(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", text.translate(_PUNCTUATION)).split())


def compare(output: str, reference: str) -> float:
    """Return 1 for the right answer, and 0.25 for some of several right options.

    An answer without any letter has some of the right options, too, as in the official code.
    """
    if set(_plain(reference)) <= set(_LETTERS):
        if _plain(output) == _plain(reference):
            return 1.0
        if set(_plain(output)) <= set(_plain(reference)):
            return 0.25
        return 0.0
    try:
        return float(float(output) == float(reference))
    except ValueError:
        return float(
            reference.lower().replace(" ", "") in output.lower().replace(" ", "")
        )


def _score_closed(record: ScorerInput, task: str) -> MetricValues:
    """Return the exact match of an answer to a closed question."""
    return {
        "exact_match": compare(
            *_READERS[task](record["prediction"].strip(), record["references"][0])
        )
    }


def _can_read_closed(record: ScorerInput, task: str) -> bool:
    """Whether an answer to a closed question has a capital letter, a digit or a truth value, as the task asks for."""
    output = record["prediction"].strip()
    match task:
        case "tpo" | "quality" | "coursera":
            return any(letter in _LETTERS for letter in output)
        case "gsm100":
            return bool(_find_number(output))
        case "sci_fi":
            return _read_truth(output, "")[0] != "<error>"
    return bool(output)


def _score_words(record: ScorerInput) -> MetricValues:
    """Return the F1 of the words."""
    return {
        "f1": f1(
            english_words(record["prediction"]), english_words(record["references"][0])
        )
    }


def _score_summary(record: ScorerInput) -> MetricValues:
    """Return the F1 of ROUGE."""
    scores = make_rouge("rouge1", "rouge2", "rougeL").score(
        record["references"][0], record["prediction"]
    )
    values = {}
    for name, score in scores.items():
        values[name] = score.fmeasure
    return values


COMMIT = "cd34b050269148aed75acbbe4a599873ad0f37e9"
COLUMNS: Types = {
    "input": str,
    "instructions": list,
    "outputs": list,
    "evaluation": str,
}
MEASURES = {
    "exact_match": "exam",
    "f1": "f1",
    "rougeL": "rouge",
}
"""The value of the column `evaluation` in rows that the metrics score; other rows are for judges and people."""


class LEvalTask(NamedTuple):
    """A task: its official name, its name in the paper, metric, number of requests, and git's id of the file."""

    name: str
    title: str
    metric: str
    rows: int
    blob: str

    @property
    def source(self) -> WebFile:
        """The file of the task."""
        path = f"{'Closed' if self.metric == 'exact_match' else 'Open'}-ended-tasks/{self.name}.jsonl"
        url = f"https://raw.githubusercontent.com/OpenLMLab/LEval/{COMMIT}/LEval-data/{path}"
        return WebFile(url, f"leval/{path}", blob=self.blob)


DATASETS = tuple(
    LEvalTask(row["name"], row["title"], row["metric"], int(row["rows"]), row["blob"])
    for row in read_table(__package__, "datasets.csv")
)


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    measure: str,
) -> Iterator[Example]:
    """Yield the questions on each document, in file order."""
    for number, row in enumerate(JsonLines(task.only_file(settings, root), COLUMNS)):
        if row["evaluation"] != measure:
            continue
        questions = row["instructions"]
        answers = row["outputs"]
        if not (
            TEXTS.fits(questions)
            and TEXTS.fits(answers)
            and len(questions) == len(answers)
        ):
            raise InputError(
                f"{row}: columns 'instructions' and 'outputs' must be lists of as many texts"
            )
        for index, (asked, answer) in enumerate(zip(questions, answers, strict=True)):
            yield from _examples(
                task.name, f"{number}-{index}", row["input"], asked, answer
            )


def _examples(
    name: str,
    number: str,
    document: str,
    asked: str,
    answer: str,
) -> Iterator[Example]:
    """Yield the example of a question; of a science fiction two, about the story and about the real world."""
    group = text_group(document)
    if name != "sci_fi":
        fields = {
            "context": document,
            "question": asked,
            "words": str(len(answer.split())),
        }
        yield Example(
            id=number,
            fields=fields,
            references=[answer],
            source="official",
            group=group,
        )
        return
    start = prompts.CLOSED.index("{context}")
    text = prompts.CLOSED.format(context=document, question=asked)
    story: Message = {"role": "user", "content": text}
    # The official code does not put the first answer between the two questions.
    world: Message = {
        "role": "user",
        "content": asked.replace(prompts.IN_STORY, prompts.IN_WORLD) + prompts.FACT,
    }
    loyal, _, fact = answer.lower().partition("[fact:")
    for kind, turns, right in (
        ("story", (story,), loyal.strip()),
        ("world", (story, world), fact[:-1].strip()),
    ):
        messages = ({"role": "system", "content": prompts.SYSTEM[name]}, *turns)
        context = (start, start + len(document))
        yield Example(
            id=f"{number}-{kind}",
            fields={},
            references=[right],
            source="official",
            messages=messages,
            group=group,
            context=context,
        )


def _task(dataset: LEvalTask) -> Task:
    name = dataset.name
    metric = dataset.metric
    closed = metric == "exact_match"
    user = prompts.CLOSED if closed else prompts.OPEN
    if name in ("gsm100", "codeU"):
        user = prompts.PLAIN
    system = prompts.SYSTEM.get(
        name, prompts.CLOSED_SYSTEM if closed else prompts.OPEN_SYSTEM
    )
    scorers = {"f1": _score_words, "rougeL": _score_summary}
    baseline = None
    # Prompts of the others have no words of the task by which it could be recognised.
    if user in (prompts.CLOSED, prompts.OPEN) and name != "sci_fi":
        baseline = Baseline("span", "A")
    return Task(
        name=name,
        title=dataset.title,
        template=NO_TEMPLATE if name == "sci_fi" else Template.whole(user),
        load=partial(load, measure=MEASURES[metric]),
        score=partial(_score_closed, task=name) if closed else scorers[metric],
        can_read=partial(_can_read_closed, task=name) if closed else has_text,
        headline=(metric,),
        metrics=("rouge1", "rouge2", "rougeL") if metric == "rougeL" else (metric,),
        num_samples=dataset.rows,
        sources=lambda length: (dataset.source,),
        variants={
            "paper": Variant(
                system=None if name == "sci_fi" else system, temperature=0.0001
            )
        },
        baseline=baseline,
        **task_fields(__package__),
    )


_TASKS = tuple(map(_task, DATASETS))
_CLOSED = tuple(task for task in _TASKS if task.headline == ("exact_match",))

LEVAL = read_benchmark(
    __package__,
    [
        Category("", "", _CLOSED),
        Category(
            "open", "Open-ended", tuple(task for task in _TASKS if task not in _CLOSED)
        ),
    ],
)
