"""RULER v2's twelve tasks, and their metrics. They give the official scores for any output.

Source: NVIDIA-NeMo/Gym at 07d6b0d, benchmarks/ruler2/prepare.py (parameters, number of samples, metrics) and
resources_servers/ruler2/app.py; NVIDIA/RULER at 4809570 (branch rulerv2-ns), README.md (output budget, temperature).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from helm_longctx.benchmarks.ruler2 import generate, prompts
from helm_longctx.benchmarks.ruler2.generate import HOTPOTQA, MMLU, Samples
from helm_longctx.tasks import STANDARD, Baseline, Category, DataRoot, Message, Template, read_benchmark, task_fields
from helm_longctx.tasks.generation import make_example, make_script
from helm_longctx.tasks.task import TEXT_GROUP, AnswerKind, Example, Record, Scorer, Scores, Settings, Strategy, Task

_COPIED_DOCUMENT = re.compile(r"Document \d+:(?:.*\n)+?\n")
"""A document that the output copies, to its first empty line."""

_FINAL_ANSWER = re.compile(r"The final answer is (.+)$", re.MULTILINE)
_ANSWER = re.compile(r"(?i)[*_]{0,2}Answer[*_]{0,2}\s*:[\s*_]{0,2}\s*([A-Z])(?![a-zA-Z0-9])")
_LETTER = re.compile(r"\b[A-Z]\b")
_BOX = "\\boxed{"

_LETTERS = str.maketrans({letter: f" {'ABCD'[n % 4]}" for n, letter in enumerate("أبجدঅবডঢＡＢＣＤ")})
"""Letters of other scripts that stand for A to D."""


def match_all(output: str, references: Sequence[str]) -> float:
    """Return the mean match of the references."""
    return sum(match(output, reference) for reference in references) / len(references)


def match_part(output: str, references: Sequence[str]) -> float:
    """Return the best match of a reference with the output without copied documents."""
    output = _COPIED_DOCUMENT.sub("", output)
    return max(match(output, reference) for reference in references)


def match_last(output: str, references: Sequence[str]) -> float:
    """Return the mean match of the references with the last paragraph."""
    return match_all(output.split("\n\n")[-1], references)


def match(output: str, reference: str) -> float:
    """Return 1 if the output contains the reference, ignoring case, or else 1 minus the word error rate, at least 0."""
    output, reference = output.lower(), reference.lower()
    if reference in output:
        return 1.0
    words = reference.split()
    # A reference that is blank, but not empty, has no error rate.
    return max(0.0, 1.0 - count_edits(output.split(), words) / len(words)) if words else 0.0


def count_edits(words: Sequence[str], reference: Sequence[str]) -> int:
    """Return the least number of words to insert, delete or replace (Levenshtein distance).

    All differences of a column are bits of whole numbers (Myers 1999, in the form of Hyyrö 2003), so outputs of
    thousands of words take milliseconds.
    """
    if not reference:
        return len(words)
    places: dict[str, int] = defaultdict(int)
    for number, word in enumerate(reference):
        places[word] |= 1 << number
    every, last = (1 << len(reference)) - 1, 1 << (len(reference) - 1)
    more, less, edits = every, 0, len(reference)
    for word in words:
        equal = places.get(word, 0)
        vertical = equal | less
        horizontal = (((equal & more) + more) ^ more) | equal
        rises, falls = less | (every & ~(horizontal | more)), more & horizontal
        edits += bool(rises & last) - bool(falls & last)
        rises, falls = rises << 1 | 1, falls << 1
        more, less = every & (falls | ~(vertical | rises)), every & rises & vertical
    return edits


def read_letter(output: str) -> str | None:
    """Return the letter that an output gives as its answer; None if it gives none."""
    final = _FINAL_ANSWER.findall(output)
    text = final[-1] if final else _read_box(output)
    if text is not None:
        text = text.translate(_LETTERS).strip()
        letters = [text] if len(text) == 1 else _LETTER.findall(text)
        if letters:
            return str(letters[-1]).upper()
    answers = _ANSWER.findall(output)
    return answers[-1].upper() if answers else None


def _read_box(output: str) -> str | None:
    """Return what is in the last box; None if the box does not end."""
    start = output.rfind("\\boxed")
    depth = 0
    for place, character in enumerate(output[start:] if start >= 0 else "", start):
        depth += (character == "{") - (character == "}")
        if character == "}" and depth == 0:
            box = output[start : place + 1]
            return box[len(_BOX) : -1] if box.startswith(_BOX) else None
    return None


def score_match(record: Record, combine: Callable[[str, Sequence[str]], float]) -> Scores:
    """Return the match of the references; empty if there are none."""
    references = record["references"]
    return {"match": combine(record["prediction"], references)} if references else {}


def score_letter(record: Record) -> Scores:
    """Return whether the output gives the right letter; empty if there is no reference."""
    references = record["references"]
    return {"accuracy": float(read_letter(record["prediction"]) == references[0])} if references else {}


_COPY_ALL, _COPY_STEPS, _COPY_ONE = (
    Template(text, "", separator="") for text in (prompts.COPY_ALL, prompts.COPY_STEPS, prompts.COPY_ONE)
)
_SOLVE = tuple(
    Template(prompts.SOLVE_CONTEXT + text, "", separator="") for text in (prompts.SOLVE, prompts.SOLVE_STEPS)
)
_FIND = tuple(Template(text, "", separator="") for text in (prompts.FIND_TEXT, prompts.FIND_ANSWER))

_DOCUMENT = re.compile(r"^Document (\d+):\n(.*(?:\n.+)*)", re.MULTILINE)
_WORD = re.compile(r"\w+")


def copy_question(messages: Sequence[Message]) -> str | None:
    """Copy the questions with a number; None if the conversation asks for none."""
    prompt = messages[-1]["content"]
    for template in (_COPY_ALL, _COPY_STEPS, _COPY_ONE):
        fields = template.parse(prompt)
        if fields is not None:
            found = re.findall(rf"^Question {re.escape(fields['query'])}: (.*)$", fields["context"], re.MULTILINE)
            order = re.match(r"\d+", fields.get("order", ""))
            one = found[int(order[0]) - 1 :][:1] if order else found[:1]
            return "\n\n".join(found if template is _COPY_ALL else [*found, *one] if template is _COPY_STEPS else one)
    return None


def choose_letter(messages: Sequence[Message]) -> str | None:
    """Choose the first option; None if the conversation asks for none."""
    return "\\boxed{A}" if any(template.parse(messages[-1]["content"]) for template in _SOLVE) else None


def find_document(messages: Sequence[Message]) -> str | None:
    """Find the document with the most words of a text or a question; None if none is asked for."""
    for template in _FIND:
        fields = template.parse(messages[-1]["content"])
        if fields is not None:
            words = {*_WORD.findall(fields["query"].lower())}
            found = _DOCUMENT.findall(fields["context"])
            documents: list[tuple[str, set[str]]] = [(n, {*_WORD.findall(text.lower())}) for n, text in found]
            # A long document must share more words.
            best = max(documents, key=lambda each: len(each[1] & words) / (len(each[1]) + 10), default=("", {""}))
            return best[0]
    return None


_ALL = partial(score_match, combine=match_all)
_PART = partial(score_match, combine=match_part)
_LAST = partial(score_match, combine=match_last)


def load(task: Task, settings: Settings, root: DataRoot, samples: Samples, evidence: str) -> Iterator[Example]:
    """Draw the samples of a task.

    Args:
        evidence: the start of the only piece of evidence, with placeholders for the first answer and the question;
            empty if there are several pieces.
    """
    # The length counts the prompt alone.
    script = make_script(task, settings, root, output=0)
    for number, draw in enumerate(samples(script, task.sample(settings))):
        start = evidence.format(answer=draw.answers[0], query=draw.fields["query"]) if evidence else None
        # All tasks ask the same questions of HotpotQA.
        group = f"{TEXT_GROUP}hotpotqa {number}" if HOTPOTQA in task.sources(settings.length) else ""
        yield make_example(task, number, draw, start, group)


def _task(
    name: str,
    title: str,
    template: str,
    samples: Samples,
    score: Scorer,
    kind: AnswerKind | Strategy,
    constant: str = "0",
    evidence: str = "",
) -> Task:
    source = {"mk_niah_basic": (), "mv_niah_basic": ()}.get(name, (HOTPOTQA,) if name.startswith("qa") else (MMLU,))
    metric = "accuracy" if score is score_letter else "match"
    return Task(
        name=name,
        title=title,
        template=Template(template, "", separator=""),
        sizes={length: length for length in STANDARD.values()},
        load=partial(load, samples=samples, evidence=evidence),
        score=score,
        headline=(metric,),
        metrics=(metric,),
        sources=lambda length: source,
        baseline=Baseline(kind, constant),
        **task_fields(__package__),
    )


def _solve(name: str, title: str, problem: str, ending: str) -> Task:
    samples = partial(generate.number_questions, wanted="letter", problem=problem, ending=ending)
    return _task(
        f"mk_niah_{name}",
        f"Multi-key NIAH, {title}",
        prompts.SOLVE_CONTEXT + problem,
        samples,
        score_letter,
        choose_letter,
        "\\boxed{A}",
        evidence="Question {query}: ",
    )


def _copy(name: str, title: str, template: str, samples: Samples, score: Scorer = _ALL, evidence: str = "") -> Task:
    return _task(name, title, template, samples, score, copy_question, evidence=evidence)


def _ask(name: str, title: str, template: str, wanted: str, kind: AnswerKind | Strategy, evidence: str = "") -> Task:
    samples = partial(generate.number_documents, wanted=wanted)
    return _task(f"qa_{name}", f"QA, {title}", template, samples, _PART, kind, evidence=evidence)


_one_value, _four_values = (partial(generate.draw_needles, values=values) for values in (1, 4))
_all_questions = partial(generate.number_questions, wanted="texts", repeats=4)
_questions = partial(generate.number_questions, wanted="text")
_ordered = partial(generate.number_questions, wanted="text", repeats=4)

_TASKS = (
    _task("mk_niah_basic", "Multi-key NIAH, Basic", prompts.NEEDLE_ONE, _one_value, _ALL, "lookup", "0", "{answer}"),
    _copy("mk_niah_easy", "Multi-key NIAH, Easy", prompts.COPY_ONE, _questions, evidence="Question {query}: "),
    _solve("medium", "Medium", prompts.SOLVE_STEPS, prompts.COPIED + prompts.SOLUTION),
    _solve("hard", "Hard", prompts.SOLVE, prompts.SOLUTION),
    _task("mv_niah_basic", "Multi-value NIAH, Basic", prompts.NEEDLE_ALL, _four_values, _ALL, "lookup"),
    _copy("mv_niah_easy", "Multi-value NIAH, Easy", prompts.COPY_ALL, _all_questions),
    _copy("mv_niah_medium", "Multi-value NIAH, Medium", prompts.COPY_STEPS, _ordered, _LAST),
    _copy("mv_niah_hard", "Multi-value NIAH, Hard", prompts.COPY_ONE, _ordered),
    _ask("basic", "Basic", prompts.FIND_TEXT, "text", find_document, evidence="Document {answer}:"),
    _ask("easy", "Easy", prompts.FIND_ANSWER, "documents", find_document),
    _ask("medium", "Medium", prompts.ANSWER_STEPS, "answer", "span"),
    _ask("hard", "Hard", prompts.ANSWER, "answer", "span"),
)

RULER2 = read_benchmark(__package__, (Category("", "", _TASKS),))
