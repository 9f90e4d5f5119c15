"""A model that finds words: BM25-like matching of the question against the prompt's own context."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from helm_longctx.models.forms import recognise
from helm_longctx.models.units import Units, best, words
from helm_longctx.protocol.baseline import AnswerKind
from helm_longctx.protocol.template import CONTEXT

DEMONSTRATIONS = {"demos", "demo", "demo_text", "example"}
"""Fields of a template that show solved examples."""

NO_QUESTION = {CONTEXT, *DEMONSTRATIONS, "instruction", "options", "num_v"}
"""Fields of a template in which nothing is asked."""

NEIGHBOURS = 40
"""Different demonstrations that vote on a label, by their similarity."""

SPAN_WORDS = 12
"""The longest answer, in words, where a short one is asked for."""

RANKED = 40
"""Passages that a ranking names."""

PASSAGES = 3
"""Passages that are read for names, or cited."""

PARTS, PART_WORDS = 8, 25
"""Places of a text that a summary quotes, and words of each."""

_LONG = 4000  # characters: no passage is longer
_MARKUP = ("document", "title")
_UNIT_ENDS = re.compile(r"\n|(?<=[.!?]) ")
_BLOCK_END = "\n\n"
_LABEL = re.compile(r"\nlabel:(.*)\s*\Z")
_PARAGRAPH_END = re.compile(_BLOCK_END)
_PASSAGE_ID = re.compile(r"\[ID: ([^\]]*)\]")
_PASSAGE_NUMBER = re.compile(r"Document \[(\d+)\]\(Title: [^\n]*?\): ")
_ANNOUNCEMENT = re.compile(r"\A\s*(?:[^\n]*:\n\n)?")
_PASSAGE_HEAD = re.compile(r"Document \d+:\n")
_NAMES = re.compile(r"[A-ZÀ-ÖØ-Þ][\w-]*(?:[ .'’]{1,2}[A-ZÀ-ÖØ-Þ][\w-]*)*")
_NUMBERS = re.compile(r"(?:[A-Z][a-z]+ \d{1,2}, |\d{1,2} [A-Z][a-z]+ |[A-Z][a-z]+ )?\d+(?:[.,]\d+)*")
_ASKS_A_NUMBER = re.compile(r"\b(when|how (many|much|old|long|far)|what (year|date|day|number|age))\b")
_OPTION = re.compile(r"^([A-D])\. (.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"(?:(?<=[.!?])\s+|\n|\A)(\w[^.!?]*[.!?]?)")
_LIST = re.compile(r"\s*\d+\. ")
_LETTERS = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ASSIGNMENT = re.compile(r"VAR (\w+) = (?:VAR )?(\w+)")


def answer(prompt: str) -> str:
    """The answer in the task's format; empty for a prompt of no known form."""
    found = recognise(prompt)
    if found is None:
        return ""
    fields, template = found.fields, found.template
    if template is None:
        return found.answer
    assert isinstance(found.baseline.kind, str)
    context, question = fields[CONTEXT], " ".join(text for name, text in fields.items() if name not in NO_QUESTION)
    if any(not fields[name] for name in DEMONSTRATIONS & fields.keys()):
        context = _without_demonstrations(context, template.prefix)
    if found.baseline.kind == "choice":
        return option(context, question, fields["options"])
    return _STRATEGIES[found.baseline.kind](context, question)


def _without_demonstrations(context: str, prefix: str) -> str:
    """What follows the last solved example: where one stands right before the context, it is taken for a part of it."""
    _, found, rest = context.rpartition(f"\n{prefix} ")
    return _ANNOUNCEMENT.sub("", rest.partition(_BLOCK_END)[2], count=1) if found else context


def value_after(context: str, question: str) -> str:
    """What follows the question's words where most of them stand: the last token of each such line or sentence."""
    terms = words(question)
    units = Units(context, _UNIT_ENDS)
    # Whole tokens too: the words of a hyphenated key can stand in another order in another key.
    scores = units.scores([*terms, *question.lower().split()])
    if not scores:
        return ""
    best = max(scores.values())
    values = (_last_value(units.texts[n], terms) for n in sorted(scores) if math.isclose(scores[n], best))
    return ", ".join(dict.fromkeys(value for value in values if value))


def _last_value(unit: str, terms: list[str]) -> str:
    """The last token; empty if it is but a part of the question."""
    value = unit.split()[-1].strip("\"'.,;:!?()[]{}")
    return "" if set(words(value)).issubset(terms) else value


def nearest_label(context: str, question: str) -> str:
    """The label on which the most similar demonstrations agree; a demonstration is a text, then a line `label: X`."""
    # Labels with few texts repeat them: each text has one vote, or they would crowd out the others.
    # A text with an empty line in it counts from there on: what is before has no label.
    found = {block: _LABEL.search(block) for block in context.split(_BLOCK_END)}
    blocks = [(block, match[1].strip()) for block, match in found.items() if match]
    units = Units(_BLOCK_END.join(block for block, _ in blocks), re.compile(_BLOCK_END))
    scores = units.scores(words(question))
    similar = {n: score / math.sqrt(len(blocks[n][0])) for n, score in scores.items()}
    votes: dict[str, float] = defaultdict(float)
    for number in sorted(similar, key=lambda n: (-similar[n], n))[:NEIGHBOURS]:
        votes[blocks[number][1]] += similar[number] ** 3
    if votes:
        return max(votes, key=lambda label: votes[label])
    return blocks[0][1] if blocks else ""


def span(context: str, question: str) -> str:
    """Names and numbers of the passages that share words with the question, a few words in all."""
    asked, wants_number = {*words(question), *_MARKUP}, bool(_ASKS_A_NUMBER.search(question.lower()))
    passages = _passages(context)
    scores = _by_length(passages, question)
    top = best(scores, PASSAGES)
    # The best passage counts far more than the next.
    texts = [(_PASSAGE_HEAD.sub("", passages.texts[n][:_LONG], count=1), scores[n] ** 4) for n in top]
    chances: dict[str, float] = defaultdict(float)
    for text, chance in texts:
        for name in _NAMES.findall(text):
            chances[_without_common_start(name, context)] += chance * (0.15 if wants_number else 1)
        for number in _NUMBERS.findall(text):
            chances[number] += chance * (1 if wants_number else 0.15)
    said: dict[str, None] = {}
    for text in sorted(chances, key=lambda text: -chances[text]):
        if not {*words(text)} <= {*asked, *words(" ".join(said))}:
            said[text] = None
    return " ".join(" ".join(said).split()[:SPAN_WORDS])


def _without_common_start(name: str, context: str) -> str:
    """A name without a first word that is a capital's only because a sentence begins there."""
    first, _, rest = name.partition(" ")
    return rest if f" {first.lower()} " in context else name


def ranking(context: str, question: str) -> str:
    """Passages that share words with the question, as `3 > 1 > 2`."""
    passages = Units(context, _PARAGRAPH_END)
    ids = (_PASSAGE_ID.match(passages.texts[number]) for number in best(_by_length(passages, question), RANKED))
    return " > ".join(match[1] for match in ids if match)


def citation(context: str, question: str) -> str:
    """A sentence of each of the best passages, with the passage's number."""
    passages, said = Units(context, _PARAGRAPH_END), []
    for number in best(_by_length(passages, question), PASSAGES):
        marked = _PASSAGE_NUMBER.match(passages.texts[number])
        if marked:
            text = passages.texts[number][marked.end() :]
            said.append(f"{_sentence(text, question).rstrip('.')} [{marked[1]}].")
    return " ".join(said)


def option(context: str, question: str, options: str) -> str:
    """The letter of the option whose words stand where the question's words stand."""
    units = Units(context, _UNIT_ENDS)
    asked: dict[int, float] = defaultdict(float)
    for number, score in units.scores(words(question)).items():
        for near in range(-3, 4):
            asked[number + near] += score / 2 ** abs(near)
    chances: dict[str, float] = {}
    for letter, text in _OPTION.findall(options):
        found = units.scores(words(text))
        together = sum(score * asked.get(number, 0) for number, score in found.items())
        chances[letter] = together / max(1, len(words(text)))
    return max(chances, key=lambda letter: chances[letter]) if chances else ""


def lead(context: str, question: str) -> str:
    """The sentences that begin first in several parts of the text."""
    starts = (len(context) * part // PARTS for part in range(PARTS))
    found = (_SENTENCE.search(context, start, start + 2000) for start in starts)
    return " ".join(" ".join(match[1].split()[:PART_WORDS]) for match in found if match)


def frequent(context: str, question: str) -> str:
    """The ten most frequent words of a numbered list, else the three of a coded text."""
    counts = Counter(_LETTERS.findall(context))
    return ", ".join(word for word, _ in counts.most_common(10 if _LIST.match(context) else 3))


def chain(context: str, question: str) -> str:
    """Variables that get the value, or get it from one that has it."""
    holders = dict.fromkeys(question.split()[:1])
    for name, value in _ASSIGNMENT.findall(context):
        if value in holders:
            holders[name] = None
    return ", ".join([*holders][1:])


def _passages(context: str) -> Units:
    """Paragraphs, or sentences of a text without any."""
    paragraphs = context.count(_BLOCK_END) + 1
    return Units(context, _PARAGRAPH_END if paragraphs * _LONG > len(context) else _UNIT_ENDS)


def _by_length(passages: Units, question: str) -> dict[int, float]:
    """Scores of units in which a long one does not win by its length alone."""
    scores = passages.scores(words(question))
    return {number: score / (1000 + len(passages.texts[number])) for number, score in scores.items()}


def _sentence(text: str, question: str) -> str:
    sentences = Units(text, _UNIT_ENDS)
    found = best(sentences.scores(words(question)), 1)
    return sentences.texts[found[0]] if found else sentences.texts[0]


_STRATEGIES: Mapping[AnswerKind, Callable[[str, str], str]] = {
    "lookup": value_after,
    "label": nearest_label,
    "span": span,
    "ranking": ranking,
    "citation": citation,
    "summary": lead,
    "frequency": frequent,
    "chain": chain,
}
