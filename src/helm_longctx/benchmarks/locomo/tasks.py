"""LoCoMo's questions on ten conversations: the official F1, and five judges' prompts for the same answers.

Sources: snap-research/locomo at 3eb6f2c, task_eval/gpt_utils.py (`get_gpt_answers` with a batch of one question,
`get_input_context`, `get_cat_5_answer`) and task_eval/evaluation.py (`eval_question_answering`). A record has the
question's `category`, and for adversarial questions the `options` a and b. A judged record also has the reply of a judge
in `judge`, or the replies of several in `jury`. The known errors in `audit.csv` are those of dial481/locomo-audit at
9493fb4.
"""

import json
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import regex

from helm_longctx.benchmarks.locomo import prompts
from helm_longctx.data.jsonl import Row
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import (
    Baseline,
    Category,
    DataRoot,
    Example,
    FileRow,
    InputError,
    JsonArray,
    Judgement,
    MetricValues,
    PinnedFile,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Template,
    Types,
    are_all,
    is_text,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, judge_scores
from helm_longctx.tasks.judgement import score_silence
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.words import f1

SOURCE = PinnedFile.of_repository(
    "snap-research/locomo/3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376",
    "data/locomo10.json",
    "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
    target="locomo",
)
_COLUMNS: Types = {"sample_id": str, "conversation": dict, "qa": list}

CATEGORIES = {
    1: "multi_hop",
    2: "temporal",
    3: "open_domain",
    4: "single_hop",
    5: "adversarial",
}
"""The kinds of questions by the numbers in the data."""
_ADVERSARIAL = "adversarial"
_JUDGED_KINDS = tuple(kind for kind in CATEGORIES.values() if kind != _ADVERSARIAL)
"""No published judge reads the adversarial questions, because most of them have no expected answer."""


_is_texts = are_all(is_text)


class _Conversation(NamedTuple):
    """A conversation as the official code writes it.

    Args:
        starts: the start of each turn in the text, by the turn's id.
        marks: the start of each session, with its date.
    """

    text: str
    speakers: tuple[str, str]
    starts: Mapping[str, int]
    marks: Sequence[tuple[int, Mapping[str, Any]]]


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    *,
    kinds: Sequence[str],
) -> Iterator[Example]:
    """Yield the questions of some kinds in file order."""
    errata = _read_audit()
    for row in JsonArray(task.only_file(settings, root), _COLUMNS):
        conversation = _read_conversation(row)
        for number, question in enumerate(row["qa"]):
            _QUESTION.check(f"{row}: qa", question)
            if CATEGORIES[question["category"]] in kinds:
                name = f"{row['sample_id']}-{number}"
                yield _make_example(name, conversation, question, errata.get(name, ()))


def _is_question(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and is_text(value.get("question"))
        and value.get("category") in CATEGORIES
        and isinstance(_find_answer(value), str | int | float)
        and _is_texts(value.get("evidence", []))
    )


def _find_answer(question: Row) -> Any:
    """Return the answer; for most adversarial questions it is the wrong one that the question suggests."""
    if CATEGORIES[question["category"]] == _ADVERSARIAL:
        return question.get("answer", question.get("adversarial_answer"))
    return question.get("answer")


_QUESTION = Shape(
    "a list of objects with a text 'question', a 'category' from 1 to 5, an 'answer'"
    " and a list 'evidence'",
    _is_question,
)


def _make_example(
    name: str,
    conversation: _Conversation,
    question: Row,
    errata: tuple[str, ...],
) -> Example:
    kind = CATEGORIES[question["category"]]
    answer = str(_find_answer(question))
    asked = question["question"]
    record: dict[str, Any] = {"category": kind}
    if kind == "temporal":
        asked += prompts.DATES
    if kind == _ADVERSARIAL:
        options = order_options(name, answer)
        record["options"] = options
        asked += prompts.CHOICE.format(a=options[0], b=options[1])
        answer = prompts.NOT_MENTIONED
    depth = None
    evidence = question.get("evidence", [])
    if len(evidence) == 1 and evidence[0] in conversation.starts:
        depth = conversation.starts[evidence[0]] / len(conversation.text)
    is_choice = kind == _ADVERSARIAL
    first, second = conversation.speakers
    return Example(
        id=name,
        fields={
            "context": conversation.text,
            "first": first,
            "second": second,
            "instruction": prompts.OPTIONS if is_choice else prompts.SHORT_PHRASE,
            "question": asked,
        },
        references=[answer],
        source="official",
        depth=depth,
        record=record,
        group=f"conversation {name.rpartition('-')[0]}",
        marks=conversation.marks,
        errata=errata,
    )


def order_options(name: str, answer: str) -> list[str]:
    """Return the options a and b of an adversarial question. The official code draws their order without a seed."""
    options = [prompts.NOT_MENTIONED, answer]
    if random.Random(name).random() < 0.5:
        return options
    return options[::-1]


@cache
def _read_audit() -> Mapping[str, tuple[str, ...]]:
    """Return the rules of `errata.jsonl` by the names of questions."""
    errata = {}
    for row in read_table(__package__, "audit.csv"):
        errata[row["question"]] = (row["rule"],)
    return errata


def _is_turn(value: Any) -> bool:
    names = ("speaker", "dia_id", "text")
    return (
        isinstance(value, dict)
        and all(is_text(value.get(name)) for name in names)
        and is_text(value.get("blip_caption", ""))
    )


_TURNS = Shape(
    "a list of turns with the texts 'speaker', 'dia_id' and 'text'", are_all(_is_turn)
)
_SESSION = re.compile(r"session_(\d+)")


def _read_conversation(row: FileRow) -> _Conversation:
    """Write a conversation with its last session first, as the official code does."""
    source = row["conversation"]
    numbers = []
    for name in source:
        if match := _SESSION.fullmatch(name):
            numbers.append(int(match[1]))
    if not numbers:
        raise InputError(f"{row}: conversation has no session")
    numbers.sort(reverse=True)
    pieces = []
    length = 0
    starts = {}
    marks = []
    for number in numbers:
        turns = source[f"session_{number}"]
        date = source.get(f"session_{number}_date_time")
        _TURNS.check(f"{row}: session_{number}", turns)
        if not is_text(date):
            raise InputError(f"{row}: session_{number}_date_time must be a text")
        marks.append((length, {"date": date}))
        pieces.append(f"DATE: {date}\nCONVERSATION:\n")
        length += len(pieces[-1])
        for turn in turns:
            starts[turn["dia_id"]] = length
            pieces.append(_write_turn(turn))
            length += len(pieces[-1])
    pieces.append("\n\n" * len(numbers))
    return _Conversation(
        text="".join(pieces),
        speakers=_find_speakers(row, source[f"session_{numbers[-1]}"]),
        starts=starts,
        marks=marks,
    )


def _write_turn(turn: Row) -> str:
    text = f'{turn["speaker"]} said, "{turn["text"]}"\n'
    if "blip_caption" in turn:
        text += f" and shared {turn['blip_caption']}."
    return f"{text}\n"


def _find_speakers(row: FileRow, turns: Sequence[Row]) -> tuple[str, str]:
    """Return the two names in the order of the first session. The official code has the order of a Python set."""
    names = dict.fromkeys(turn["speaker"] for turn in turns)
    if len(names) < 2:
        raise InputError(f"{row}: session_1 must have turns of two speakers")
    first, second, *_ = names
    return first, second


_ARTICLES = regex.compile(r"\b(a|an|the|and)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LONGEST_STEMMED = 200
"""Longer words keep their endings, because NLTK's stemmer takes the square of a word's length."""


@lru_cache(maxsize=2**16)
def _stem(word: str) -> str:
    return word if len(word) > _LONGEST_STEMMED else _make_stemmer().stem(word)


@cache
def _make_stemmer() -> Any:
    # Imported late: it loads much of NLTK.
    from nltk.stem import PorterStemmer

    return PorterStemmer()


def _find_stems(text: str) -> list[str]:
    text = text.lower().translate(_NO_PUNCTUATION)
    return [_stem(word) for word in _ARTICLES.sub(" ", text).split()]


def _compare_parts(prediction: str, reference: str) -> float:
    """Return the mean over the reference's parts between commas of the best F1 of a part of the prediction."""
    # A model in a loop repeats one part many times.
    distinct = dict.fromkeys(prediction.split(","))
    parts = [_find_stems(part) for part in distinct]
    best = []
    for expected in reference.split(","):
        stems = _find_stems(expected)
        best.append(max(f1(part, stems) for part in parts))
    return float(np.mean(best))


_ABSTENTIONS = ("no information available", "not mentioned")


def _read_choice(prediction: str, options: Sequence[str]) -> str:
    """Return the option that an answer of one or three characters means, or else the answer."""
    text = prediction.strip().lower()
    mark = {1: "a", 3: "(a)"}.get(len(text))
    if mark is None:
        return text
    return options[0 if mark in text else 1].lower()


def compute_f1(record: ScorerInput) -> float:
    """Return the official score of an answer, which depends on the kind of the question."""
    kind = record.get("category")
    prediction = record["prediction"]
    reference = record["references"][0]
    if kind == _ADVERSARIAL:
        answer = _read_choice(prediction, record.get("options", ("", "")))
        return float(any(phrase in answer for phrase in _ABSTENTIONS))
    if kind == "multi_hop":
        return _compare_parts(prediction, reference)
    if kind == "open_domain":
        reference = reference.split(";")[0]
    return f1(_find_stems(prediction), _find_stems(reference))


def score(record: ScorerInput) -> MetricValues:
    """Return the official score, for all questions and for those of the question's kind."""
    value = compute_f1(record)
    if not record.get("category"):
        return {"f1": value}
    return {"f1": value, f"f1_{record['category']}": value}


_CODE_BLOCK = re.compile(r"```(?:json)?(.*?)```", re.DOTALL)
# A gap has a limit, so that the time is linear.
_LABEL = re.compile(
    r'"?label"?\s{0,9}[:=]?\s{0,9}"?\s{0,9}(CORRECT|WRONG)', re.IGNORECASE
)


def _find_object(text: str) -> str:
    """Return the text from the first opening brace to the last closing one, or the whole text without them."""
    start = text.find("{")
    end = text.rfind("}")
    return text[start : end + 1] if -1 < start < end else text


def _read_fields(text: str) -> Mapping[str, Any]:
    """Return the fields of a JSON object; none if the text is no such object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text_of(reply: object) -> str:
    return reply if isinstance(reply, str) else ""


def read_mem0(reply: str | None) -> float | None:
    """Read Mem0's label: CORRECT is 1, any other label 0."""
    text = _text_of(reply).strip()
    block = _CODE_BLOCK.search(text)
    fields = _read_fields(block[1].strip() if block else _find_object(text))
    if "label" not in fields:
        return None
    return float(fields["label"] == "CORRECT")


def read_zep(reply: str | None) -> float | None:
    """Read Zep's label, which its code gets as the field `is_correct` of a structured reply."""
    fields = _read_fields(_find_object(_text_of(reply)))
    label = fields.get("is_correct", fields.get("label"))
    if not isinstance(label, str):
        return None
    return float(label.strip().lower() == "correct")


def read_label_or_word(reply: str | None) -> float | None:
    """Read the label of the paper on judges: of a JSON object, or else after the word label, or else any such word."""
    reply = _text_of(reply)
    label = str(_read_fields(_find_object(reply)).get("label", "")).upper()
    if "WRONG" in label:
        return 0.0
    if "CORRECT" in label:
        return 1.0
    if named := _LABEL.search(reply):
        return float(named[1].upper() == "CORRECT")
    text = reply.upper()
    if "WRONG" in text:
        return 0.0
    return 1.0 if "CORRECT" in text else None


def read_yes(reply: str | None) -> float | None:
    """Read LongMemEval's label: 1 if a reply contains "yes", 0 for any other text."""
    text = _text_of(reply)
    return float("yes" in text.lower()) if text else None


class JudgePrompt(NamedTuple):
    """A published way to judge answers.

    Args:
        templates: the prompt by the kind of question; the one under "" is for all others.
        silence: the reply that stands for a judge's about an empty answer.
    """

    title: str
    judge: str
    templates: Mapping[str, str]
    read: Callable[[str | None], float | None]
    silence: str
    system: str = ""

    def write(self, record: ScorerInput) -> str:
        """Make the user turn of the prompt on an answer."""
        kind = str(record.get("category", ""))
        return self.templates.get(kind, self.templates[""]).format(
            question=record["question"].removesuffix(prompts.DATES),
            answer=record["references"][0],
            response=record["prediction"],
        )


_GPT_5 = "openai/gpt-5-2025-08-07"
_WRONG = '{"label": "WRONG"}'
JUDGES = {
    "mem0": JudgePrompt(
        title="Mem0",
        judge="openai/gpt-4o-mini-2024-07-18",
        templates={"": prompts.MEM0},
        read=read_mem0,
        silence=_WRONG,
    ),
    "mem0_2026": JudgePrompt(
        title="Mem0 2026",
        judge=_GPT_5,
        templates={"": prompts.MEM0_2026},
        read=read_label_or_word,
        silence=_WRONG,
        system=prompts.MEM0_2026_SYSTEM,
    ),
    "zep": JudgePrompt(
        title="Zep",
        judge="openai/gpt-4o-mini-2024-07-18",
        templates={"": prompts.ZEP},
        read=read_zep,
        silence=_WRONG,
        system=prompts.ZEP_SYSTEM,
    ),
    "longmemeval": JudgePrompt(
        title="LongMemEval",
        judge="openai/gpt-4o-2024-08-06",
        templates={
            "": prompts.LONGMEMEVAL,
            "temporal": prompts.LONGMEMEVAL_TIMES,
        },
        read=read_yes,
        silence="no",
    ),
    "strict": JudgePrompt(
        title="Strict",
        judge=_GPT_5,
        templates={"": prompts.STRICT},
        read=read_label_or_word,
        silence=_WRONG,
        system=prompts.STRICT_SYSTEM,
    ),
}
"""The judges by the last part of the run entry."""


def _read_verdict(
    reply: Any,
    *,
    read: Callable[[str | None], float | None],
) -> MetricValues:
    value = read(reply) if isinstance(reply, str) else None
    return {} if value is None else {"judge_score": value}


def score_judged(
    record: ScorerInput,
    *,
    read: Callable[[str | None], float | None],
) -> MetricValues:
    """Return the judge's verdict, for all questions and for those of the question's kind."""
    scores = judge_scores(record, "judge_score", partial(_read_verdict, read=read))
    if "judge_score" in scores and record.get("category") in _JUDGED_KINDS:
        scores[f"judge_score_{record['category']}"] = scores["judge_score"]
    return scores


_SHAPES = {
    "category": Shape(
        f"one of {', '.join(CATEGORIES.values())}",
        lambda value: value in CATEGORIES.values(),
    ),
    "options": Shape(
        "a list of two texts", lambda value: _is_texts(value) and len(value) == 2
    ),
}
_COMMON: dict[str, Any] = {
    "alias": "qa",
    "template": Template.whole(prompts.PROMPT),
    "sources": lambda length: (SOURCE,),
    "baseline": Baseline("span", "Not mentioned in the conversation."),
    **task_fields(__package__),
}
_QA = Task(
    name="qa",
    title="Questions",
    load=partial(load, kinds=tuple(CATEGORIES.values())),
    score=score,
    headline=("f1",),
    metrics=("f1", *(f"f1_{kind}" for kind in CATEGORIES.values())),
    num_samples=1986,
    record_shapes=_SHAPES,
    **{**_COMMON, "alias": ""},
)


def _make_judged(name: str, judge: JudgePrompt) -> Category:
    score_one = partial(score_judged, read=judge.read)
    task = Task(
        name=f"judged_{name}",
        title=f"Judged, {judge.title}",
        load=partial(load, kinds=_JUDGED_KINDS),
        score=score_one,
        scorers=score_silence(score_one),
        headline=("judge_score",),
        metrics=(*JUDGED, *(f"judge_score_{kind}" for kind in _JUDGED_KINDS)),
        num_samples=1540,
        record_shapes={"category": _SHAPES["category"], **REPLIES},
        official_judge=judge.judge,
        judge_prompt=judge.title,
        # The official codes set no budget and ask once.
        judgement=Judgement(
            judge.write,
            lambda reply, record: _read_verdict(reply, read=judge.read),
            json.dumps([judge.system, dict(judge.templates)]),
            max_tokens=512 if judge.judge != _GPT_5 else 2000,
            readings=1,
            system=judge.system,
            silence_reply=judge.silence,
        ),
        **_COMMON,
    )
    annotators = {
        "mem0": "Mem0Annotator",
        "mem0_2026": "Mem02026Annotator",
        "zep": "ZepAnnotator",
        "longmemeval": "LongMemEvalAnnotator",
        "strict": "StrictAnnotator",
    }
    return Category(
        name,
        f"Judged, {judge.title}",
        (task,),
        averaged=False,
        judge=f"{__package__}.judge.{annotators[name]}",
    )


LOCOMO = read_benchmark(
    __package__,
    [
        Category("", "", (_QA,)),
        *(_make_judged(name, judge) for name, judge in JUDGES.items()),
    ],
)
