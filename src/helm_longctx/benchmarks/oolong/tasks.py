"""OOLONG's tasks: ten data sets of classified texts, with and without labels, transcripts of games, and OOLONG-Pairs.

Source: abertsch72/oolong at adbf1cb, src/eval/eval_helpers.py (`synth_process_response`, `dnd_process_response`); arXiv
2511.02817, tables 1 and 4; arXiv 2512.24601v2, appendix D.1. Where the official code raises an error, the answer is
wrong. The baselines answer without understanding: they count users and dates, and labels if the text has them.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import combinations

from helm_longctx.benchmarks.oolong import data
from helm_longctx.benchmarks.oolong.data import LabelledLine, read_entries
from helm_longctx.benchmarks.oolong.prompts import INPUT, PAIR_CONDITIONS
from helm_longctx.tasks import (
    TEXT,
    Baseline,
    Category,
    Message,
    MetricValues,
    ScorerInput,
    Task,
    Template,
    Variant,
    read_benchmark,
    task_fields,
)

_FORM = re.compile(r"Give your final answer in the form '(\w+)")
_USERS = re.compile(r"\bIDs ([\d, ]+)\.")
_MONTH = re.compile(r"that occur in (\w{3})")
_OPTIONS = re.compile(r"one of the labels: (.*)\.$")
_NAMED_LABEL = re.compile(r"label '?([^'?:]+?)'?(?=[?: ]| more common)")
_COMPARED = re.compile(r"label '([^']+)' more common, .* as label '([^']+)'\?")
_TIMES = re.compile(r"exactly (\d+) times")
_PAIRED_USERS = 40
_EPISODE = "[START OF EPISODE]"


def answer_synth(messages: Sequence[Message]) -> str | None:
    """Answer a question on classified texts, or return None if the conversation has none."""
    question = messages[-1]["content"].rpartition("\n")[2]
    form = _FORM.search(question)
    if form is None:
        return None
    entries: list[LabelledLine] = []
    for message in messages:
        entries += read_entries(message["content"])
    if not entries:
        return None
    if match := _USERS.search(question):
        entries = [entry for entry in entries if entry.user in match[1].split(", ")]
    if match := _MONTH.search(question):
        entries = [entry for entry in entries if entry.date.startswith(match[1])]
    return f"{form[1]}: {_ANSWERS.get(form[1], _answer_other)(question, entries)}"


def _answer_real(messages: Sequence[Message]) -> str | None:
    """Answer a question on transcripts by a number of lines, or return None if the conversation has none."""
    lines: list[str] = []
    for message in messages:
        lines += message["content"].split("\n")
    if not any(line.startswith(_EPISODE) for line in lines):
        return None
    word = "roll" if "roll" in lines[-1] else "cast"
    return f"\\boxed{{{sum(word in line for line in lines[:-1])}}}"


def _answer_pairs(messages: Sequence[Message]) -> str | None:
    """Pair the users with the most lines, or return None if the conversation asks for no pairs."""
    text = messages[-1]["content"]
    if "list all pairs of user IDs" not in text:
        return None
    users = Counter(entry.user for entry in read_entries(text)).most_common(
        _PAIRED_USERS
    )
    return "\n".join(
        f"({one}, {other})" for (one, _), (other, _) in combinations(users, 2)
    )


def _answer_user(question: str, entries: Sequence[LabelledLine]) -> str:
    label = _NAMED_LABEL.search(question)
    users = []
    for entry in entries:
        if not (label and entry.label) or entry.label == label[1]:
            users.append(entry.user)
    return _find_most(users, "second most" in question)


def _answer_date(question: str, entries: Sequence[LabelledLine]) -> str:
    date = _find_most([entry.date for entry in entries], "second most" in question)
    if date:
        return datetime.strptime(date, "%b %d, %Y").strftime("%m/%d/%Y")
    return ""


def _answer_label(question: str, entries: Sequence[LabelledLine]) -> str:
    options = _OPTIONS.search(question)
    counts = Counter(dict.fromkeys(options[1].split(", ") if options else [], 0))
    counts.update(entry.label for entry in entries if entry.label)
    ordered = [label for label, _ in counts.most_common()] or [""]
    return ordered[-1 if "least" in question else 0]


def _answer_other(question: str, entries: Sequence[LabelledLine]) -> str:
    labels = Counter(entry.label for entry in entries)
    if match := _TIMES.search(question):
        return str(
            list(Counter(entry.date for entry in entries).values()).count(int(match[1]))
        )
    if match := _COMPARED.search(question):
        difference = labels[match[1]] - labels[match[2]]
        word = "same frequency as"
        if difference:
            if difference > 0:
                word = "more common than"
            else:
                word = "less common than"
        return f"{match[1]} is {word} {match[2]}"
    label = _NAMED_LABEL.search(question)
    # Without labels, half of the lines is the guess.
    return str(len(entries) // 2 if "" in labels else labels[label[1] if label else ""])


def _find_most(values: Sequence[str], second: bool) -> str:
    ordered = [value for value, _ in Counter(values).most_common(2)] or [""]
    return ordered[-1 if second else 0]


_ANSWERS = {
    "User": _answer_user,
    "Date": _answer_date,
    "Label": _answer_label,
}


_COMPARISONS = ("more common", "less common", "same frequency")
_MOST_WORDS = 6
"""Largest number of words of a label, a user or a date."""

_SHORT = 20
"""Number of characters from which on an answer is not taken whole."""

_TEXT_BOX = re.compile(r"\\boxed\{\\text\{")
_PLAIN_BOX = re.compile(r"\\boxed\{+([^}]*)\}")

_MISSING = (datetime(1996, 1, 1), datetime(1997, 2, 2))
"""Two days from which dates take what they lack. The official code takes it from the day on which it runs."""

_MARKUP = re.compile(r"[*_`\[\]\"']")
_NAMED_ANSWER = re.compile(
    r"\b(?:final answer|answer|label|user|date)\b(?: is)?[ \t]*[:=][ \t]*(\S[^\n]*)",
    re.IGNORECASE,
)
_REMARK = re.compile(r"(?<!\s)\s{1,9}\([^()]{0,400}\)\W{0,9}$")
_INTEGER = re.compile(r"\b\d+\b")

_Credit = Callable[[ScorerInput], float]
"""(record) → 0…1"""


def credit_synth(record: ScorerInput) -> float:
    """Return the credit of an answer to a question on classified texts."""
    return _credit_synth(_read_synth(record["prediction"]), record)


def _credit_synth(answer: str, record: ScorerInput) -> float:
    gold = record["references"][0]
    kind = record.get("answer_type")
    if answer == gold:
        return 1
    if answer in _COMPARISONS:
        return answer in gold
    if kind == "ANSWER_TYPE.NUMERIC":
        return _credit_number(int(answer), int(gold))
    return kind == "ANSWER_TYPE.DATE" and is_date(answer, gold)


def _read_synth(output: str) -> str:
    """Return the answer in an output: the text after its last colon; without a colon a short output, or its last word.

    Raises:
        IndexError: the output is long and blank.
    """
    if ":" not in output:
        if len(output) < _SHORT:
            return output
        return output.split()[-1]
    answer = re.sub(r"[*\[\]]", "", output.rpartition(":")[2].strip())
    if len(answer) < _SHORT:
        return answer
    for comparison in _COMPARISONS:
        if comparison in answer:
            return comparison
    return answer


def _can_read_synth(record: ScorerInput) -> bool:
    """Whether the answer in an output is of the kind that is asked for: a number, date, comparison, or a few words."""
    output = record["prediction"]
    if not output.strip():
        return False
    answer = _read_synth(output)
    match record.get("answer_type"):
        case "ANSWER_TYPE.NUMERIC":
            return isinstance(_read_value(answer), int)
        case "ANSWER_TYPE.COMPARISON":
            return any(comparison in answer for comparison in _COMPARISONS)
    # The labels are not in the record, and no label has more words. A long output without a colon is read by its last
    # word, so only a right one is known to be an answer.
    has_place = ":" in output or len(output) < _SHORT
    is_short = 0 < len(answer.split()) <= _MOST_WORDS
    return (has_place and is_short) or _try_credit(credit_synth, record) > 0


def _credit_synth_lenient(record: ScorerInput) -> float:
    """Return the better credit of the official reading and of a reading of plain forms."""
    answer = read_plainly(record["prediction"])
    lower = {**record, "references": [record["references"][0].lower()]}
    forms = [answer, *_INTEGER.findall(answer)[-1:]]
    for comparison in _COMPARISONS:
        if comparison in answer.lower():
            forms.append(comparison)
    return max(
        _try_credit(credit_synth, record),
        _try_credit(partial(_credit_synth, answer.lower()), lower),
        *(_try_credit(partial(_credit_synth, form), record) for form in forms),
    )


def read_plainly(output: str) -> str:
    """Return what stands after the last "Answer:" or a similar word on any line, or else the last line.

    Marks of Markdown, quotation marks, a remark in brackets at the end, and a full stop are removed.
    """
    text = _MARKUP.sub("", output).strip()
    named = _NAMED_ANSWER.findall(text)
    line = named[-1] if named else text.rpartition("\n")[2]
    return _REMARK.sub("", line).strip().strip(".").strip()


def credit_real(record: ScorerInput) -> float:
    """Return the credit of an answer to a question on transcripts."""
    gold = _read_value(record["references"][0])
    answer = read_real(record["prediction"])
    if isinstance(gold, int) and isinstance(answer, int):
        return _credit_number(answer, gold)
    if isinstance(gold, str) and isinstance(answer, str):
        return gold.strip().lower() == answer.strip().lower()
    if isinstance(gold, list) and isinstance(answer, list):
        return len({*gold} & {*answer}) / len(gold)
    return 0


def read_real(output: str) -> int | str | list[str]:
    """Return the answer in an output: what is in the first box, or the whole output without a box."""
    content = find_box(output)
    if content is None:
        return output
    return _read_value(content)


def find_box(output: str) -> str | None:
    r"""Return what is in the first `\boxed{\text{…}}`, or else in the first `\boxed{…}`.

    The official code has a pattern for each. They take time that is quadratic in an output of boxes that never end.
    """
    end = -1
    for opening in _TEXT_BOX.finditer(output):
        start = opening.end()
        if end < start:
            end = output.find("}", start)
        if end < 0:
            break
        if output.startswith("}", end + 1):
            return output[start:end]
    # Up to the last brace, the first box has an end.
    match = _PLAIN_BOX.search(output[: output.rfind("}") + 1])
    return match[1] if match else None


def _can_read_real(record: ScorerInput) -> bool:
    """Whether an output has a box; without one only a text that is the whole output can be right."""
    output = record["prediction"]
    is_boxed = find_box(output) is not None
    is_text_asked = isinstance(_read_value((record.get("references") or [""])[0]), str)
    return is_boxed or (
        is_text_asked and bool(output.strip()) and "\n" not in output.strip()
    )


def _read_value(text: str) -> int | str | list[str]:
    """Read a number, a list if there is a comma, or a text."""
    try:
        return int(text)
    except ValueError:
        if "," in text:
            items = []
            for item in text.split(","):
                if item.strip():
                    items.append(item.strip())
            return items
        return text


def _credit_number(answer: int, gold: int) -> float:
    """Return 0.75 to the power of the difference."""
    return float(0.75 ** abs(gold - answer))


def is_date(answer: str, gold: str) -> bool:
    """Return whether a text is the date. A text without a year, a month or a day is none.

    Raises:
        ValueError, OverflowError: the text cannot be read.
    """
    from dateutil.parser import (
        parse,
    )  # late, because commands that score nothing do not need it

    return [parse(answer, default=day) for day in _MISSING] == [
        datetime.fromisoformat(gold)
    ] * len(_MISSING)


def score(
    record: ScorerInput,
    credit: _Credit,
    lenient: _Credit | None = None,
) -> MetricValues:
    """Return the metrics of an answer, with the lenient credit if there is one. Without a reference there are none."""
    if not record.get("references"):
        return {}
    points = _try_credit(credit, record)
    scores = {"credit": points, "exact": float(points == 1)}
    if lenient:
        scores["credit_lenient"] = _try_credit(lenient, record)
    return scores


def _try_credit(credit: _Credit, record: ScorerInput) -> float:
    """Return a credit, 0 if the answer cannot be read."""
    try:
        return float(credit(record))
    # The official code ignores all errors of reading, and the errors that dateutil raises depend on its version.
    except Exception:
        return 0.0


TEST = {
    "agnews": "AGNews",
    "app_reviews": "App Reviews",
    "formality": "Formality",
    "imdb": "IMDB",
    "metaphors": "Metaphors",
    "multinli": "MultiNLI",
    "negation": "Negation",
    "yahoo": "Yahoo Topics",
}
"""The data sets whose questions are the published score."""

VALIDATION = {"spam": "Spam", "trec_coarse": "TREC"}

_LENGTHS = {1 << power: 1 << power for power in range(10, 23)}
"""1k to 4m."""

_EPISODES = {
    number * data.EPISODE_TOKENS: number
    for number in (1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 24)
}

_REAL_SAMPLES = 1000
"""No length has as many questions on transcripts, so all of them are asked."""

_task = partial(
    Task,
    template=Template.whole(INPUT),
    # The official code sends no temperature, and the default of most APIs is 1.
    variants={"paper": Variant(temperature=1.0), "api": Variant(temperature=1.0)},
    **task_fields(__package__),
)


def _synth_task(name: str, column: str) -> Task:
    split = "test" if name in TEST else "validation"
    return _task(
        name=name if column == data.TEXT else f"{name}_labels",
        alias=name,
        title={**TEST, **VALIDATION}[name]
        + ("" if column == data.TEXT else ", labels given"),
        load=partial(data.load_synth, column=column),
        score=partial(score, credit=credit_synth, lenient=_credit_synth_lenient),
        can_read=_can_read_synth,
        metrics=("credit", "exact", "credit_lenient"),
        record_shapes={"answer_type": TEXT},
        sizes=_LENGTHS,
        unit="tokens",
        num_samples=data.QUESTIONS,
        sources=lambda length: (data.find_synth_rows(length, split, column),),
        baseline=Baseline(answer_synth, "Label: spam"),
    )


def _synth_category(name: str, title: str, column: str) -> Category:
    tasks = tuple(_synth_task(dataset, column) for dataset in TEST)
    variants = tuple(_synth_task(dataset, column) for dataset in VALIDATION)
    return Category(
        name=name,
        title=title,
        tasks=tasks,
        variants=variants,
        averaged=not name,
    )


_DND = _task(
    name="dnd",
    title="Critical Role",
    load=data.load_real,
    score=partial(score, credit=credit_real),
    can_read=_can_read_real,
    metrics=("credit", "exact"),
    sizes=_EPISODES,
    unit="episodes",
    num_samples=_REAL_SAMPLES,
    sources=lambda length: (data.find_real_rows(length),),
    baseline=Baseline(_answer_real, "\\boxed{0}"),
)

_PAIRS = _task(
    name="user_pairs",
    title="Pairs of users",
    load=data.load_pairs,
    score=data.score_pairs,
    can_read=data.can_read_pairs,
    headline=("f1",),
    metrics=("f1", "exact"),
    sizes={length: length for length in _LENGTHS if length <= 1 << 20},
    unit="tokens",
    num_samples=len(PAIR_CONDITIONS),
    variants={"paper": Variant(temperature=1.0)},
    sources=lambda length: tuple(
        data.find_synth_rows(length, "validation", column)
        for column in (data.TEXT, data.LABELLED_TEXT)
    ),
    baseline=Baseline(_answer_pairs, "(1, 2)"),
)

_CATEGORIES = (
    _synth_category("", "OOLONG-synth", data.TEXT),
    Category("real", "OOLONG-real", (_DND,)),
    Category("pairs", "OOLONG-Pairs", (_PAIRS,)),
    _synth_category("labels", "OOLONG-synth with Labels", data.LABELLED_TEXT),
)

OOLONG = read_benchmark(__package__, _CATEGORIES)
