"""LongHealth's three tasks: questions on patients, among documents that are put together.

Source: TIO-IKIM/CLUE at 2de4314, eval/eval_LongHealth.py (`create_prompt`, `sample_distractions` and `main`).
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Literal, NamedTuple

from helm_longctx.benchmarks.longhealth import prompts
from helm_longctx.data.jsonl import read_object
from helm_longctx.errors import PreconditionError
from helm_longctx.tasks import (
    Baseline,
    DataRoot,
    Example,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    Variant,
    WebFile,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.counting import Codec
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.words import find_plain_letter

SOURCE = WebFile(
    "https://raw.githubusercontent.com/kbressem/LongHealth/513ab3088a5ecf91b3967f8c47ae373d1b87378f"
    "/data/benchmark_v5.json",
    "longhealth/benchmark_v5.json",
    blob="76bf80d37f321408a0e3f421a2e2d7ef59e97c1e",
)
"""The released file. Its content has the same id as the copy in MedARC-AI/med-lm-envs."""

_MOST_TOKENS = 16_000
"""Limit on the tokens of system message, documents, question, options and template. These are tokenized separately."""
PROMPTS = 5
_PAIRS = 5
"""Numbers for each question: prompts in the first task, and pairs, without and with the answer, in the others."""
_DISTRACTORS = 10

_Setting = Literal["own", "mixed", "unanswerable"]
"""The documents in a prompt: the patient's own; those with the answer and other patients'; or only other patients'."""


class _Draw(NamedTuple):
    """The random documents of a prompt."""

    setting: _Setting
    documents: list[str]


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    setting: _Setting,
) -> Iterator[Example]:
    """Load the prompts in the official order: all prompts of a question follow each other."""
    if settings.codec is None:
        raise PreconditionError(
            f"{task.name}: no tokenizer measures the documents; give count_with="
        )
    patients = read_object(root / SOURCE.path)
    rng = random.Random(settings.seed)
    selection = _Selection(settings.codec)
    letters, draws = (
        ("abcde", _draw_own) if setting == "own" else ("abcdef", _draw_pairs)
    )
    for patient in patients:
        for number, asked in enumerate(patients[patient]["questions"]):
            if setting != "own":
                question = {**asked, "answer_f": prompts.UNKNOWN}
            else:
                question = asked
            options = []
            for letter in letters:
                options.append(f"{letter.upper()}: {question[f'answer_{letter}']}")
            shown = "\n".join(options)
            select = partial(
                selection.select, selection.room(question["question"], shown)
            )
            drawn = draws(patients, patient, question, select, rng)
            of_setting = [draw for draw in drawn if draw.setting == setting]
            for repeat, draw in enumerate(of_setting):
                context = prompts.SEPARATOR.join(draw.documents)
                fields = {
                    "question": question["question"],
                    "options": shown,
                    "context": context,
                }
                if setting == "unanswerable":
                    references = ["F"]
                else:
                    references = find_letters(question)
                yield Example(
                    id=f"{patient}-{number}-{repeat}",
                    fields=fields,
                    references=references,
                    source="official",
                    group=patient,
                )


SelectDocuments = Callable[[Iterable[str], Iterable[str]], list[str]]
"""(documents with the answer, other documents) → as many of them as fit, the last one cut."""


def _draw_own(
    patients: Mapping[str, Any],
    patient: str,
    question: Mapping[str, Any],
    select: SelectDocuments,
    rng: random.Random,
) -> Iterator[_Draw]:
    texts = patients[patient]["texts"]
    others = []
    for name, text in texts.items():
        if name not in question["answer_location"]:
            others.append(text)
    for _ in range(PROMPTS):
        yield _Draw(
            "own", _shuffle(select(_answer_texts(texts, question), others), rng)
        )


def _draw_pairs(
    patients: Mapping[str, Any],
    patient: str,
    question: Mapping[str, Any],
    select: SelectDocuments,
    rng: random.Random,
) -> Iterator[_Draw]:
    others: list[str] = []
    for name in patients:
        if name != patient:
            others += patients[name]["texts"].values()
    for _ in range(_PAIRS):
        # The prompts of both tasks come from one sequence of random numbers, so each task draws both.
        distractors = rng.sample(others, min(_DISTRACTORS, len(others)))
        yield _Draw("unanswerable", _shuffle(select([], distractors), rng))
        distractors = rng.sample(others, min(_DISTRACTORS, len(others)))
        answers = _answer_texts(patients[patient]["texts"], question)
        yield _Draw("mixed", _shuffle(select(answers, distractors), rng))


def _answer_texts(texts: Mapping[str, str], question: Mapping[str, Any]) -> list[str]:
    return [texts[name] for name in question["answer_location"]]


def _shuffle(documents: list[str], rng: random.Random) -> list[str]:
    rng.shuffle(documents)
    return documents


class _Selection:
    """Selects documents that fit into a prompt. Each text is tokenized once."""

    def __init__(self, codec: Codec):
        self._encode: Callable[[str], Sequence[int]] = cache(codec.encode)
        self._decode = codec.decode
        # As in the official code, the template is counted with its placeholders, and another separator is counted
        # than the prompts have.
        self._separator = len(codec.encode(prompts.COUNTED_SEPARATOR))
        fixed = (prompts.SYSTEM, prompts.TEMPLATE)
        self._room = _MOST_TOKENS - sum(len(codec.encode(text)) for text in fixed)

    def room(self, question: str, options: str) -> int:
        """Return how many tokens of documents fit into the prompt of a question."""
        return self._room - len(self._encode(question)) - len(self._encode(options))

    def select(
        self,
        room: int,
        answering: Iterable[str],
        others: Iterable[str],
    ) -> list[str]:
        """Return the documents that fit: first those with the answer, then others. The last one is cut."""
        selected = []
        for documents in (answering, others):
            for document in documents:
                tokens = self._encode(document)
                if len(tokens) > room:
                    selected.append(self._decode(tokens[: max(room, 0)]))
                    room = 0
                    break
                selected.append(document)
                room -= len(tokens) + self._separator
        return selected


def find_letters(question: Mapping[str, Any]) -> list[str]:
    """Return a list with the letter of the first option that contains the right answer, or an empty list if none does."""
    for name in question:
        is_option = name.startswith("answer") and not name.endswith("location")
        if is_option and question["correct"] in question[name]:
            return [name[-1].upper()]
    return []


_TEMPLATE = Template.whole(
    prompts.TEMPLATE.replace("{documents}", "{context}").replace(
        "{question_text}", "{question}"
    )
)

_CHOICE = re.compile(r"The correct answer is (\w):")
_OPTION = re.compile(r"^([A-F]): (.*)$", re.MULTILINE)
_WORD = re.compile(r"\w{4,}")


def score(record: ScorerInput) -> MetricValues:
    """Return whether the first letter in the required form is the right one."""
    letter = _find_letter(record["prediction"])
    named = letter or find_plain_letter(record["prediction"], "ABCDEF")
    return {
        "accuracy": float(letter in record["references"]),
        "accuracy_lenient": float(named in record["references"]),
    }


def _find_letter(output: str) -> str | None:
    """Return the first letter in the required form, before a colon, or None if there is none."""
    choice = _CHOICE.search(output)
    return choice[1] if choice else None


def choose_option(messages: Sequence[Message]) -> str | None:
    """Choose the option with the largest share of words from the documents, or None if the prompt is not LongHealth's."""
    fields = _TEMPLATE.parse(messages[-1]["content"])
    if fields:
        options = _OPTION.findall(fields["options"])
    else:
        options = []
    if not fields or not options:
        return None
    context_words = set(_WORD.findall(fields["context"].lower()))

    def share(option: tuple[str, str]) -> float:
        words = _WORD.findall(option[1].lower())
        return sum(word in context_words for word in words) / max(len(words), 1)

    letter, text = max(options, key=share)
    return f"The correct answer is {letter}: {text}"


def _task(name: str, title: str, setting: _Setting) -> Task:
    return Task(
        name=name,
        title=title,
        template=_TEMPLATE,
        load=partial(load, setting=setting),
        score=score,
        can_read=lambda record: _find_letter(record["prediction"]) is not None,
        num_samples=400 * PROMPTS,
        sources=lambda length: (SOURCE,),
        # The official code sets no temperature, so vLLM's default applies.
        variants={"paper": Variant(system=prompts.SYSTEM, temperature=1.0)},
        baseline=Baseline(choose_option, "The correct answer is A: "),
        **task_fields(__package__),
    )


_TASKS = (
    _task("task1", "Own documents", "own"),
    _task("task2", "Among others' documents", "mixed"),
    _task("task3", "Without the answer", "unanswerable"),
)

LONGHEALTH = read_benchmark(__package__, _TASKS)
