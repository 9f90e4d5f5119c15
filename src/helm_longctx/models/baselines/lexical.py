"""The lexical baseline: answers by BM25-like matching of the question's words against the prompt's context."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from helm_longctx.models.baselines.forms import recognise
from helm_longctx.models.baselines.units import Units, best, words
from helm_longctx.tasks.prompt import Message
from helm_longctx.tasks.task import AnswerKind
from helm_longctx.tasks.template import CONTEXT

DEMONSTRATIONS = {"demos", "demo", "demo_text", "example"}
"""Template fields with solved examples."""

NO_QUESTION = {CONTEXT, *DEMONSTRATIONS, "instruction", "options", "num_v"}
"""Template fields that are not part of the question."""

NEIGHBOURS = 40
"""Number of different demonstrations that vote on a label, weighted by similarity."""

SPAN_WORDS = 12
"""Most words of a short answer."""

RANKED = 40
"""Number of passages in a ranking."""

PASSAGES = 3
"""Number of passages in which names are searched, or which are cited."""

PARTS, PART_WORDS = 8, 25
"""Number of places that a summary quotes, and most words of each quotation."""

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
_NUMBERS = re.compile(r"(?:[A-Z][a-z]+ \d{1,2}, |\d{1,2} [A-Z][a-z]+ |[A-Z][a-z]+ )?\d+(?:[.,]\d+)*")
_ASKS_A_NUMBER = re.compile(r"\b(when|how (many|much|old|long|far)|what (year|date|day|number|age))\b")
# The options of a multiple choice, one in a line: `A. text`.
_OPTION = re.compile(r"^([A-D])\. (.*)$", re.MULTILINE)
# A sentence: from its first word, after the end of another or at the start of a line, to the next end mark.
_SENTENCE = re.compile(r"(?:(?<=[.!?])\s+|\n|\A)(\w[^.!?]*[.!?]?)")
# RULER's task of common words is a numbered list; the one of frequent words is not.
_LIST = re.compile(r"\s*\d+\. ")
_LETTERS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
# RULER's variable tracking: `VAR X1 = 12345` or `VAR X2 = VAR X1`.
_ASSIGNMENT = re.compile(r"VAR (\w+) = (?:VAR )?(\w+)")


def answer(prompt: str) -> str:
    """Answer a prompt in its task's format. The answer to an unknown prompt is empty."""
    recognition = recognise(prompt)
    if recognition is None:
        return ""
    fields, template, kind = recognition.fields, recognition.template, recognition.baseline.kind
    if template is None:
        return recognition.answer
    assert isinstance(kind, str)
    context, question = fields[CONTEXT], " ".join(text for name, text in fields.items() if name not in NO_QUESTION)
    if any(not fields[name] for name in DEMONSTRATIONS & fields.keys()):
        context = _without_demonstrations(context, template.prefix)
    if kind == "choice":
        return option(context, question, fields["options"])
    return _STRATEGIES[kind](context, question)


def answer_last_turn(messages: Sequence[Message]) -> str:
    """Answer the last turn of a conversation with a span of the turns before it."""
    *earlier, last = (message["content"] for message in messages)
    return span(_BLOCK_END.join(earlier), last)


def _without_demonstrations(context: str, prefix: str) -> str:
    """Remove solved examples from the start of the context.

    If an example stands directly before the context, the template cannot separate the two.
    """
    _, prefix_before_answer, rest = context.rpartition(f"\n{prefix} ")
    return _ANNOUNCEMENT.sub("", rest.partition(_BLOCK_END)[2], count=1) if prefix_before_answer else context


def value_after(context: str, question: str) -> str:
    """Find the value after the question's words: the last token of each line or sentence with most of these words."""
    terms = words(question)
    units = Units(context, _UNIT_ENDS)
    # Whole tokens are searched as well: another hyphenated key can have the same words in another order.
    scores = units.scores([*terms, *question.lower().split()])
    if not scores:
        return ""
    best = max(scores.values())
    values = (_last_value(units.texts[n], terms) for n in sorted(scores) if math.isclose(scores[n], best))
    return ", ".join(dict.fromkeys(value for value in values if value))


def _last_value(unit: str, terms: list[str]) -> str:
    """Return the last token of a unit; empty if it only repeats the question."""
    value = unit.split()[-1].strip("\"'.,;:!?()[]{}")
    return "" if set(words(value)).issubset(terms) else value


def nearest_label(context: str, question: str) -> str:
    """Find the label that the most similar demonstrations vote for. A demonstration ends with a line `label: X`."""
    # Labels with few texts repeat them. A dictionary gives each text one vote, so repetition adds no votes.
    # If a text contains an empty line, only the part after it has a label, so only that part counts.
    matches = {block: _LABEL.search(block) for block in context.split(_BLOCK_END)}
    blocks = [(block, match[1].strip()) for block, match in matches.items() if match]
    units = Units(_BLOCK_END.join(block for block, _ in blocks), re.compile(_BLOCK_END))
    scores = units.scores(words(question))
    # A longer demonstration shares more words by chance.
    similar = {n: score / math.sqrt(len(blocks[n][0])) for n, score in scores.items()}
    votes: dict[str, float] = defaultdict(float)
    for number in sorted(similar, key=lambda n: (-similar[n], n))[:NEIGHBOURS]:
        # The third power, so that few close demonstrations outvote many distant ones.
        votes[blocks[number][1]] += similar[number] ** 3
    if votes:
        return max(votes, key=lambda label: votes[label])
    return blocks[0][1] if blocks else ""


def span(context: str, question: str) -> str:
    """Find names and numbers in the passages that share words with the question. Returns a few words."""
    question_words, wants_number = {*words(question), *_MARKUP}, bool(_ASKS_A_NUMBER.search(question.lower()))
    passages = _passages(context)
    scores = _by_length(passages, question)
    top = best(scores, PASSAGES)
    # The fourth power makes the best passage count far more than the next.
    texts = [(_PASSAGE_HEAD.sub("", passages.texts[n][:_LONG], count=1), scores[n] ** 4) for n in top]
    chances: dict[str, float] = defaultdict(float)
    for text, chance in texts:
        for name in _NAMES.findall(text):
            chances[_without_common_start(name, context)] += chance * (0.15 if wants_number else 1)
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
    return (nearest_label if _LABEL.search(context) else span)(context, question)


def _without_common_start(name: str, context: str) -> str:
    """Drop the first word of a name if it also occurs in lower case, because it then only starts a sentence."""
    first, _, rest = name.partition(" ")
    return rest if f" {first.lower()} " in context else name


def ranking(context: str, question: str) -> str:
    """Rank the passages that share words with the question, as `3 > 1 > 2`."""
    passages = Units(context, _PARAGRAPH_END)
    ids = (_PASSAGE_ID.match(passages.texts[number]) for number in best(_by_length(passages, question), RANKED))
    return " > ".join(match[1] for match in ids if match)


def citation(context: str, question: str) -> str:
    """Quote a sentence of each of the best passages, with the passage's number."""
    passages, sentences = Units(context, _PARAGRAPH_END), []
    for number in best(_by_length(passages, question), PASSAGES):
        match = _PASSAGE_NUMBER.match(passages.texts[number])
        if match:
            text = passages.texts[number][match.end() :]
            sentences.append(f"{_sentence(text, question).rstrip('.')} [{match[1]}].")
    return " ".join(sentences)


def option(context: str, question: str, options: str) -> str:
    """Choose the option whose words stand near the question's words. Returns its letter."""
    units = Units(context, _UNIT_ENDS)
    nearness: dict[int, float] = defaultdict(float)
    for number, score in units.scores(words(question)).items():
        for near in range(-3, 4):
            nearness[number + near] += score / 2 ** abs(near)
    chances: dict[str, float] = {}
    for letter, text in _OPTION.findall(options):
        scores = units.scores(words(text))
        together = sum(score * nearness.get(number, 0) for number, score in scores.items())
        # A longer option has more words that can match.
        chances[letter] = together / max(1, len(words(text)))
    return max(chances, key=lambda letter: chances[letter]) if chances else ""


def lead(context: str, question: str) -> str:
    """Quote the first sentence of several parts of the text."""
    starts = (len(context) * part // PARTS for part in range(PARTS))
    matches = (_SENTENCE.search(context, start, start + 2000) for start in starts)
    return " ".join(" ".join(match[1].split()[:PART_WORDS]) for match in matches if match)


def frequent(context: str, question: str) -> str:
    """Return the ten most frequent words of a numbered list, or the three most frequent of a coded text."""
    counts = Counter(_LETTERS.findall(context))
    return ", ".join(word for word, _ in counts.most_common(10 if _LIST.match(context) else 3))


def chain(context: str, question: str) -> str:
    """Find the variables that are assigned the value, directly or from another variable."""
    # A dictionary keeps the order in which variables got the value; the value itself comes first and is left out.
    holders = dict.fromkeys(question.split()[:1])
    for name, value in _ASSIGNMENT.findall(context):
        if value in holders:
            holders[name] = None
    return ", ".join([*holders][1:])


def _passages(context: str) -> Units:
    """Split a context into paragraphs, or into sentences if it has no paragraphs."""
    paragraphs = context.count(_BLOCK_END) + 1
    return Units(context, _PARAGRAPH_END if paragraphs * _LONG > len(context) else _UNIT_ENDS)


def _by_length(passages: Units, question: str) -> dict[int, float]:
    """Score passages by the question's words relative to their length, so that long passages have no advantage."""
    scores = passages.scores(words(question))
    # The constant keeps very short passages from winning by a single word.
    return {number: score / (1000 + len(passages.texts[number])) for number, score in scores.items()}


def _sentence(text: str, question: str) -> str:
    sentences = Units(text, _UNIT_ENDS)
    numbers = best(sentences.scores(words(question)), 1)
    return sentences.texts[numbers[0]] if numbers else sentences.texts[0]


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
