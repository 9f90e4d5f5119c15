"""The lexical baseline: answers by BM25-like matching of the question's words against the prompt's context.

It recognises the task of a prompt by the task's template, and searches the context for words without tokenizing all of
it.
"""

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from helm_longctx.tasks.prompt import (
    CONTEXT,
    NO_TEMPLATE,
    Message,
    Template,
    message_text,
)
from helm_longctx.tasks.registry import BENCHMARKS
from helm_longctx.tasks.task import AnswerKind, Baseline

_DEMONSTRATIONS = {"demos", "demo", "demo_text", "example"}
"""Template fields with solved examples."""

_NO_QUESTION = {CONTEXT, *_DEMONSTRATIONS, "instruction", "options", "num_v", "words"}
"""Template fields that are not part of the question."""

_NEIGHBOURS = 40
"""Number of different demonstrations that vote on a label, weighted by similarity."""

SPAN_WORDS = 12
"""Most words of a short answer."""

RANKED = 40
"""Number of passages in a ranking."""

_PASSAGES = 3
"""Number of passages in which names are searched, or which are cited."""

PARTS = 8
_PART_WORDS = 25
"""Number of passages that a summary quotes, and most words of each quotation."""

_LONG = 4000
"""Most characters of a passage."""

_MARKUP = ("document", "title")
# A line break, or the space after the end of a sentence.
_UNIT_ENDS = re.compile(r"\n|(?<=[.!?]) ")
_BLOCK_END = "\n\n"
# The last line `label: X` of a demonstration.
_LABEL = re.compile(r"\nlabel:(.*)\s*\Z")
_PARAGRAPH_END = re.compile(_BLOCK_END)
# The start of a passage in HELMET's re-ranking tasks, and in the next line in its citation tasks.
_PASSAGE_ID = re.compile(r"\[ID: ([^\]]*)\]")
_PASSAGE_NUMBER = re.compile(r"Document \[(\d+)\]\(Title: [^\n]*?\): ")
# Blank text, and perhaps a line that ends in a colon and an empty line, such as an announcement of the documents.
_ANNOUNCEMENT = re.compile(r"\A\s*(?:[^\n]*:\n\n)?")
_PASSAGE_HEAD = re.compile(r"Document \d+:\n")
# One or several capitalized words, joined by spaces, points or apostrophes.
_NAMES = re.compile(r"[A-ZÀ-ÖØ-Þ][\w-]*(?:[ .'’]{1,2}[A-ZÀ-ÖØ-Þ][\w-]*)*")
# A number, with a month and a day before it if it is a date.
_NUMBERS = re.compile(
    r"(?:[A-Z][a-z]+ \d{1,2}, |\d{1,2} [A-Z][a-z]+ |[A-Z][a-z]+ )?\d+(?:[.,]\d+)*"
)
_ASKS_A_NUMBER = re.compile(
    r"\b(when|how (many|much|old|long|far)|what (year|date|day|number|age))\b"
)
# The options of a multiple choice, one in a line: `A. text`.
_OPTION = re.compile(r"^([A-D])\. (.*)$", re.MULTILINE)
# A sentence: from its first word, after the end of another or at the start of a line, to the next end mark.
_SENTENCE = re.compile(r"(?:(?<=[.!?])\s+|\n|\A)(\w[^.!?]*[.!?]?)")
# RULER's task of common words is a numbered list; the one of frequent words is not.
_LIST = re.compile(r"\s*\d+\. ")
_LETTERS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
# RULER's variable tracking: `VAR X1 = 12345` or `VAR X2 = VAR X1`.
_ASSIGNMENT = re.compile(r"VAR (\w+) = (?:VAR )?(\w+)")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _Recognition:
    """The task that a prompt was recognised as.

    Args:
        answer: for a task without a template, the answer of its strategy.
    """

    baseline: Baseline
    template: Template | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""


def recognise(prompt: str) -> _Recognition | None:
    """Recognise a prompt by the first template that fits it, or else by a strategy. Return None if none fits."""
    for template, baseline in _templates():
        fields = template.parse(prompt)
        if fields is None:
            continue
        if isinstance(baseline.kind, str):
            return _Recognition(
                baseline=baseline,
                template=template,
                fields=fields,
            )
        own = baseline.kind([{"role": "user", "content": prompt}])
        if own is not None:
            return _Recognition(baseline, answer=own)
    return recognise_conversation([{"role": "user", "content": prompt}])


def recognise_conversation(messages: Sequence[Message]) -> _Recognition | None:
    """Recognise a conversation by the first strategy that answers it. Return None if none does."""
    # A turn that only calls tools has no content.
    turns = [{**message, "content": message["content"] or ""} for message in messages]
    for benchmark in BENCHMARKS:
        # Tasks can share a strategy. A dictionary has each of them once.
        for baseline in dict.fromkeys(
            task.baseline for task in benchmark.tasks if task.baseline
        ):
            if isinstance(baseline.kind, str):
                answer = None
            else:
                answer = baseline.kind(turns)
            if answer is not None:
                return _Recognition(baseline, answer=answer)
    return None


@cache
def _templates() -> tuple[tuple[Template, Baseline], ...]:
    """Return the templates by which prompts are recognised, each once.

    Those of tasks with a strategy of their own are among them if they start with a literal, because the strategies of
    others would take their prompts otherwise. Templates that start with a literal come first, because they are checked
    fastest.
    """
    baselines: dict[Template, Baseline] = {}
    for benchmark in BENCHMARKS:
        # Tasks can share a template. The order is reversed, so that the dictionary keeps the first of these tasks.
        for task in reversed(benchmark.tasks):
            if task.baseline and _is_recognisable(task.template, task.baseline):
                baselines[task.template] = task.baseline
    return tuple(
        sorted(baselines.items(), key=lambda item: item[0].user.startswith("{"))
    )


def _is_recognisable(template: Template, baseline: Baseline) -> bool:
    if template is NO_TEMPLATE:
        return False
    if isinstance(baseline.kind, str):
        return True
    return bool(template.user) and not template.user.startswith("{")


@dataclass(frozen=True)
class _Units:
    """A text in units such as lines, sentences or paragraphs that can be searched for words.

    Only the searched words are looked up. Splitting a context of a million tokens into words would take too long.
    """

    text: str
    ends: re.Pattern[str]

    @cached_property
    def texts(self) -> list[str]:
        """The units, in order, without the text between them."""
        return self.ends.split(self.text)

    @cached_property
    def starts(self) -> list[int]:
        """The start of each unit in the lower-case text, ascending. Lower case can change the length of a text."""
        # The ends are searched in the lower-case text, because terms are searched there, too.
        return [0, *(match.end() for match in self.ends.finditer(self.lower))]

    @cached_property
    def lower(self) -> str:
        """The text in lower case."""
        return self.text.lower()

    def scores(self, terms: Iterable[str]) -> dict[int, float]:
        """Score the units that contain a term by the sum of their terms' weights. Rare terms weigh more."""
        scores: dict[int, float] = defaultdict(float)
        for term in dict.fromkeys(terms):
            units = set()
            for start in _find_whole(self.lower, term):
                units.add(bisect_right(self.starts, start) - 1)
            # BM25's weight of a term by the number of units that have it; log1p keeps it above 0.
            weight = math.log1p(
                (len(self.starts) - len(units) + 0.5) / (len(units) + 0.5)
            )
            for unit in units:
                scores[unit] += weight
        return scores


def _find_whole(text: str, term: str) -> Iterator[int]:
    """Yield the starts of a term in a text where no character of a word stands before or after it."""
    # A pattern that looks behind would be tried at each character; this one begins with what can be searched for.
    pattern = re.compile(rf"{re.escape(term)}(?!\w)")
    match = pattern.search(text)
    while match:
        start = match.start()
        is_whole = not start or not _WORD.match(text, start - 1, start)
        if is_whole:
            yield start
        match = pattern.search(text, match.end() if is_whole else start + 1)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in order."""
    return _WORD.findall(text.lower())


def best(scores: dict[int, float], count: int) -> list[int]:
    """Return the units with the highest scores, best first. Among equal scores the first unit in the text wins."""
    return sorted(scores, key=lambda number: (-scores[number], number))[:count]


def answer(prompt: str) -> str:
    """Answer a prompt in its task's format. The answer to an unknown prompt is empty."""
    recognition = recognise(prompt)
    if recognition is None:
        return ""
    fields = recognition.fields
    template = recognition.template
    kind = recognition.baseline.kind
    if template is None:
        return recognition.answer
    assert isinstance(kind, str)
    context = fields[CONTEXT]
    question = " ".join(
        text for name, text in fields.items() if name not in _NO_QUESTION
    )
    if any(not fields[name] for name in _DEMONSTRATIONS & fields.keys()):
        context = _without_demonstrations(context, template.prefix)
    if kind == "choice":
        return option(context, question, fields["options"])
    return _STRATEGIES[kind](context, question)


def answer_conversation(messages: Sequence[Message]) -> str:
    """Answer by the strategy of the conversation's task, or else with a span of the turns before the last one."""
    if recognition := recognise_conversation(messages):
        return recognition.answer
    *earlier, last = map(message_text, messages)
    return span(_BLOCK_END.join(earlier), last)


def _without_demonstrations(context: str, prefix: str) -> str:
    """Remove solved examples that stand directly before the context, from which the template cannot separate them."""
    _, separator, rest = context.rpartition(f"\n{prefix} ")
    if separator:
        return _ANNOUNCEMENT.sub("", rest.partition(_BLOCK_END)[2], count=1)
    return context


def value_after(context: str, question: str) -> str:
    """Find the value after the question's words: the last token of each line or sentence with most of these words."""
    terms = words(question)
    units = _Units(context, _UNIT_ENDS)
    # Whole tokens are searched as well: another hyphenated key can have the same words in another order.
    scores = units.scores([*terms, *question.lower().split()])
    if not scores:
        return ""
    highest = max(scores.values())
    best = (units.texts[n] for n in sorted(scores) if math.isclose(scores[n], highest))
    values = (unit.split()[-1].strip("\"'.,;:!?()[]{}") for unit in best)
    # A value that only repeats the question is none.
    return ", ".join(
        dict.fromkeys(value for value in values if not set(words(value)) <= set(terms))
    )


def nearest_label(context: str, question: str) -> str:
    """Find the label that the most similar demonstrations vote for. A demonstration ends with a line `label: X`."""
    # Labels with few texts repeat them. A dictionary gives each text one vote, so repetition adds no votes.
    # If a text contains an empty line, only the part after it has a label, so only that part counts.
    matches = {}
    for block in context.split(_BLOCK_END):
        matches[block] = _LABEL.search(block)
    blocks = []
    for block, match in matches.items():
        if match:
            blocks.append((block, match[1].strip()))
    units = _Units(
        _BLOCK_END.join(block for block, _ in blocks), re.compile(_BLOCK_END)
    )
    scores = units.scores(words(question))
    # A longer demonstration shares more words by chance.
    similar = {}
    for n, score in scores.items():
        similar[n] = score / math.sqrt(len(blocks[n][0]))
    votes: dict[str, float] = defaultdict(float)
    for number in sorted(similar, key=lambda n: (-similar[n], n))[:_NEIGHBOURS]:
        # The third power, so that few close demonstrations outvote many distant ones.
        votes[blocks[number][1]] += similar[number] ** 3
    if votes:
        return max(votes, key=lambda label: votes[label])
    return blocks[0][1] if blocks else ""


def span(context: str, question: str) -> str:
    """Find names and numbers in the passages that share words with the question. Returns a few words."""
    question_words = {*words(question), *_MARKUP}
    wants_number = bool(_ASKS_A_NUMBER.search(question.lower()))
    # A context that has no paragraphs is split into sentences.
    has_paragraphs = (context.count(_BLOCK_END) + 1) * _LONG > len(context)
    passages = _Units(context, _PARAGRAPH_END if has_paragraphs else _UNIT_ENDS)
    scores = _by_length(passages, question)
    top = best(scores, _PASSAGES)
    # The fourth power makes the best passage count far more than the next.
    texts = []
    for n in top:
        texts.append(
            (_PASSAGE_HEAD.sub("", passages.texts[n][:_LONG], count=1), scores[n] ** 4)
        )
    chances: dict[str, float] = defaultdict(float)
    for text, chance in texts:
        for name in _NAMES.findall(text):
            first, _, rest = name.partition(" ")
            # A first word that also occurs in lower case only starts a sentence.
            name = rest if f" {first.lower()} " in context else name
            chances[name] += chance * (0.15 if wants_number else 1)
        for number in _NUMBERS.findall(text):
            chances[number] += chance * (1 if wants_number else 0.15)
    spans: dict[str, None] = {}
    for text in sorted(chances, key=lambda text: -chances[text]):
        # A span that repeats the question or an earlier span adds nothing to the answer.
        if not {*words(text)} <= {*question_words, *words(" ".join(spans))}:
            spans[text] = None
    return " ".join(" ".join(spans).split()[:SPAN_WORDS])


def label_or_span(context: str, question: str) -> str:
    """Find a label if the context ends in a demonstration, otherwise a span."""
    if _LABEL.search(context):
        return nearest_label(context, question)
    return span(context, question)


def ranking(context: str, question: str) -> str:
    """Rank the passages that share words with the question, as `3 > 1 > 2`."""
    passages = _Units(context, _PARAGRAPH_END)
    ids = (
        _PASSAGE_ID.match(passages.texts[number])
        for number in best(_by_length(passages, question), RANKED)
    )
    return " > ".join(match[1] for match in ids if match)


def citation(context: str, question: str) -> str:
    """Quote a sentence of each of the best passages, with the passage's number."""
    passages = _Units(context, _PARAGRAPH_END)
    sentences = []
    for number in best(_by_length(passages, question), _PASSAGES):
        if match := _PASSAGE_NUMBER.match(passages.texts[number]):
            parts = _Units(passages.texts[number][match.end() :], _UNIT_ENDS)
            numbers = best(parts.scores(words(question)), 1)
            sentences.append(
                f"{parts.texts[numbers[0] if numbers else 0].rstrip('.')} [{match[1]}]."
            )
    return " ".join(sentences)


def option(context: str, question: str, options: str) -> str:
    """Choose the option whose words stand near the question's words. Returns its letter."""
    units = _Units(context, _UNIT_ENDS)
    nearness: dict[int, float] = defaultdict(float)
    for number, score in units.scores(words(question)).items():
        for near in range(-3, 4):
            nearness[number + near] += score / 2 ** abs(near)
    chances: dict[str, float] = {}
    for letter, text in _OPTION.findall(options):
        scores = units.scores(words(text))
        together = 0.0
        for number, score in scores.items():
            together += score * nearness.get(number, 0)
        # A longer option has more words that can match.
        chances[letter] = together / max(1, len(words(text)))
    if chances:
        return max(chances, key=lambda letter: chances[letter])
    return ""


def lead(context: str, question: str) -> str:
    """Quote the first sentence of several parts of the text."""
    starts = (len(context) * part // PARTS for part in range(PARTS))
    matches = (_SENTENCE.search(context, start, start + 2000) for start in starts)
    return " ".join(
        " ".join(match[1].split()[:_PART_WORDS]) for match in matches if match
    )


def frequent(context: str, question: str) -> str:
    """Return the ten most frequent words of a numbered list, or the three most frequent of a coded text."""
    most = 10 if _LIST.match(context) else 3
    counts = Counter(_LETTERS.findall(context))
    return ", ".join(word for word, _ in counts.most_common(most))


def chain(context: str, question: str) -> str:
    """Find the variables that are assigned the value, directly or from another variable."""
    # A dictionary keeps the order in which variables got the value; the value itself comes first and is left out.
    holders = dict.fromkeys(question.split()[:1])
    for name, value in _ASSIGNMENT.findall(context):
        if value in holders:
            holders[name] = None
    return ", ".join([*holders][1:])


def _by_length(passages: _Units, question: str) -> dict[int, float]:
    """Score passages by the question's words relative to their length, so that long passages have no advantage."""
    scores = passages.scores(words(question))
    # The constant keeps very short passages from winning by a single word.
    lines = {}
    for number, score in scores.items():
        lines[number] = score / (1000 + len(passages.texts[number]))
    return lines


_STRATEGIES: Mapping[AnswerKind, Callable[[str, str], str]] = {
    "lookup": value_after,
    "label": nearest_label,
    "span": span,
    "label_or_span": label_or_span,
    "ranking": ranking,
    "citation": citation,
    "summary": lead,
    "frequency": frequent,
    "chain": chain,
}
