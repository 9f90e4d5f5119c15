"""RULER v2's twelve tasks, and their metrics. They give the official scores for any output.

The samples are those that the official scripts draw with the same tokenizer and seed. Source: NVIDIA-NeMo/Gym at
07d6b0d, benchmarks/ruler2/sources (prepare_niah.py, prepare_mmlu.py, prepare_qa.py), benchmarks/ruler2/prepare.py
(parameters, number of samples, metrics) and resources_servers/ruler2/app.py; NVIDIA/RULER at 4809570 (branch
rulerv2-ns), README.md (output budget, temperature).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from random import Random
from typing import NamedTuple

from helm_longctx.benchmarks.ruler2 import prompts
from helm_longctx.tasks import (
    TEXTS,
    Baseline,
    DataRoot,
    Example,
    FileRow,
    HubDataset,
    InputError,
    JsonLines,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    Types,
    are_all,
    generation,
    is_text,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.generation import (
    Draw,
    Script,
    cut_ends,
    hide,
    join_texts,
    write_needles,
)
from helm_longctx.tasks.task import (
    TEXT_GROUP,
    AnswerKind,
    AnswerReader,
    Scorer,
    has_text,
)

_MMLU_COLUMNS: Types = {
    "question": str,
    "choices": list,
    "answer": int,
}
_CONTEXT_COLUMNS: Types = {"context": dict}
_QUESTION_COLUMNS: Types = {
    **_CONTEXT_COLUMNS,
    "question": str,
    "answer": str,
    "supporting_facts": dict,
}

MMLU = HubDataset(
    "cais/mmlu",
    {"test": 14042, "auxiliary_train": 99842},
    config="all",
    columns={split: tuple(_MMLU_COLUMNS) for split in ("test", "auxiliary_train")},
    labelled=False,
    commit="c30699e8356da336a370243923dbaf21066bb9fe",
)
HOTPOTQA = HubDataset(
    "hotpotqa/hotpot_qa",
    {"validation": 7405, "train": 90447},
    config="distractor",
    columns={"validation": tuple(_QUESTION_COLUMNS), "train": tuple(_CONTEXT_COLUMNS)},
    labelled=False,
    commit="1908d6afbbead072334abe2965f91bd2709910ab",
)

LETTERS = "ABCD"


class OptionsQuestion(NamedTuple):
    """A question of MMLU with its options, and the letter of the right one."""

    text: str
    letter: str


class _Asked(NamedTuple):
    """A question of HotpotQA, its answer, the paragraphs that support it, and those that come with it."""

    text: str
    answer: str
    documents: list[str]
    related: list[str]


def read_mmlu(root: DataRoot) -> tuple[list[OptionsQuestion], list[OptionsQuestion]]:
    """Read the questions that are asked, and those that surround them."""
    test, train = (
        [*map(_read_question, JsonLines(root / path, _MMLU_COLUMNS))]
        for path in MMLU.paths
    )
    return test, train


def _read_question(row: FileRow) -> OptionsQuestion:
    choices = row["choices"]
    is_list = are_all(is_text)(choices) and len(choices) == len(LETTERS)
    if not is_list or row["answer"] not in range(len(LETTERS)):
        raise InputError(
            f"{row}: column 'choices' must be a list of four texts, and 'answer' the"
            " number of one, from 0"
        )
    pairs = zip(LETTERS, choices, strict=True)
    options = "\n".join(f"{letter}. {choice}" for letter, choice in pairs)
    return OptionsQuestion(
        re.sub(r"\s+", " ", f"{row['question']}\n{options}"), LETTERS[row["answer"]]
    )


def read_hotpotqa(root: DataRoot) -> tuple[list[_Asked], list[str]]:
    """Read the questions, and the paragraphs that surround them, each once in the order of the file."""
    questions, context = (root / path for path in HOTPOTQA.paths)
    texts: dict[str, None] = {}
    for row in JsonLines(context, _CONTEXT_COLUMNS):
        texts |= dict.fromkeys(text for _, text in _read_paragraphs(row))
    asked = []
    for row in JsonLines(questions, _QUESTION_COLUMNS):
        titles = row["supporting_facts"].get("title")
        TEXTS.check(f"{row}: the titles of 'supporting_facts'", titles)
        paragraphs = [*_read_paragraphs(row)]
        own = []
        for title, text in paragraphs:
            if title in titles:
                own.append(text)
        related = []
        for title, text in paragraphs:
            if title not in titles:
                related.append(text)
        if not own:
            raise InputError(f"{row}: 'supporting_facts' names no title of 'context'")
        asked.append(
            _Asked(
                text=row["question"],
                answer=row["answer"],
                documents=own,
                related=related,
            )
        )
    return asked, [*texts]


def _read_paragraphs(row: FileRow) -> Iterator[tuple[str, str]]:
    titles = row["context"].get("title")
    sentences = row["context"].get("sentences")
    if not (
        are_all(is_text)(titles)
        and are_all(are_all(is_text))(sentences)
        and len(titles) == len(sentences)
    ):
        raise InputError(
            f"{row}: column 'context' must have as many lists of 'sentences' as texts in 'title'"
        )
    for title, parts in zip(titles, sentences, strict=True):
        yield title, f"{title}\n{''.join(parts)}"


_Samples = Callable[[Script, int], Iterator[Draw]]
"""(script, number of samples) → the samples of a task in the official order."""

_DIGITS = 10
_KEY_DIGITS = 7
"""Number of digits in the numbers of needles, and in the numbers of questions and documents."""

EXAMPLES = 5


def _draw_number(rng: Random, digits: int = _KEY_DIGITS) -> str:
    """Draw a number with so many digits."""
    least = 10 ** (digits - 1)
    return str(least + generation.draw_below(rng, 9 * least))


def _draw_needles(script: Script, count: int, values: int) -> Iterator[Draw]:
    """Yield needles among other needles.

    Args:
        values: number of values of each key.
    """
    rng = Random(script.seed)
    words = generation.key_words()

    def draw(number: int, size: int) -> Draw:
        key = words.draw(rng)
        answers = []
        for _ in range(values):
            answers.append(_draw_number(rng, _DIGITS))
        needles = [(key, answer) for answer in answers]
        rng.shuffle(needles)
        if values == 1:
            lines = []
            for _ in range(size):
                lines.append((words.draw(rng), _draw_number(rng, _DIGITS)))
        else:
            numbers = []
            for _ in range(size):
                numbers.append(_draw_number(rng, _DIGITS))
            keys = [words.draw(rng) for _ in range(-(-size // values))] * values
            lines = [*zip(keys, numbers, strict=False)]
            rng.shuffle(lines)
        # The first needle gets the last position.
        lines = hide(lines, needles[::-1], rng)
        # The official script draws the key that is asked for, though there is only one.
        rng.sample(range(1), 1)
        kind = "numbers" if values > 1 else "number"
        return Draw(
            fields={"type_needle_v": kind, "query": key},
            context=write_needles(lines, prompts.NEEDLE),
            answers=answers,
        )

    return islice(script.draw_all(draw, 5), count)


def _number_questions(
    script: Script,
    count: int,
    wanted: str,
    repeats: int = 1,
    problem: str = "",
    ending: str = "",
) -> Iterator[Draw]:
    """Yield numbered questions, of which the text or the answer is asked for.

    Args:
        wanted: "text", "texts" (of all questions with the number) or "letter".
        repeats: how many questions have the same number.
        problem: the task of an example before a question, if there are examples.
        ending: what an example has after it.
    """
    rng = Random(script.seed)
    asked, haystack = read_mmlu(script.root)
    parts = cache(lambda index: cut_ends(haystack[index].text))

    def draw(number: int, size: int) -> Draw:
        often = -(-size // len(haystack))
        drawn = rng.sample(range(len(haystack) * often), size)
        indices = [number // often for number in drawn]
        numbers = [
            _draw_number(rng) for _ in range(-(-(size + 1) // repeats))
        ] * repeats
        rng.shuffle(numbers)
        *numbers, own = numbers[: size + 1]
        lines = [*zip(numbers, indices, strict=True)]
        rng.shuffle(lines)
        examples = rng.sample(lines, EXAMPLES) if problem else []
        position = rng.randint(0, len(lines))
        # The question that is asked for has the index -1.
        lines.insert(position, (own, -1))
        question = asked[number]
        of_number = []
        for query, index in lines:
            if query == own:
                of_number.append(index)
        questions = []
        for index in of_number:
            questions.append(question if index < 0 else haystack[index])
        order = 0
        if repeats > 1:
            order = sum(query == own for query, _ in lines[: position + 1])
        texts = []
        for query, index in lines:
            if index >= 0:
                words = parts(index)
            else:
                words = cut_ends(question.text)
            texts.append(_write(prompts.QUESTION, query, words))
        write = (problem + ending).format
        solved = []
        for query, index in examples:
            example = haystack[index]
            solved.append(
                write(
                    query=query,
                    question=example.text,
                    letter=example.letter,
                )
            )
        fields = {
            "query": own,
            "order": prompts.ORDER.format(ordinal=write_ordinal(order))
            if order
            else "",
            "example": prompts.EXAMPLES.format(examples="\n\n".join(solved))
            if solved
            else "",
        }
        answers = {
            "text": [question.text],
            "texts": [other.text for other in questions],
            "letter": [question.letter],
        }
        return Draw(
            fields=fields,
            context=join_texts(texts, "\n\n"),
            answers=answers[wanted],
        )

    size = script.search_size(draw, 10)
    # The official script draws the questions after its search, and another number of samples gives other questions.
    for number in rng.sample(range(len(asked)), min(len(asked), count)):
        yield script.draw_fitting(draw, number, size, 10)


def write_ordinal(number: int) -> str:
    """Write a number as `1st`, as the package inflect does."""
    last = number % 100
    return f"{number}{'th' if 10 < last < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(last % 10, 'th')}"


def _number_documents(script: Script, count: int, wanted: str) -> Iterator[Draw]:
    """Yield numbered paragraphs with a question. There are no more samples than questions.

    Args:
        wanted: "text" (the number of a paragraph that is repeated), "documents" (the numbers of the paragraphs that
            support the answer) or "answer".
    """
    rng = Random(script.seed)
    asked, haystack = read_hotpotqa(script.root)
    parts = cache(lambda index: cut_ends(haystack[index]))
    known = {}
    for index, text in enumerate(haystack):
        known[text] = index

    def draw(number: int, size: int) -> Draw:
        question = asked[number]
        own = []
        for text in question.documents:
            own.append((_draw_number(rng), text))
        related = []
        for text in question.related:
            related.append((_draw_number(rng), text))
        # The official code subtracts all of the question's paragraphs, also those that the haystack lacks.
        others = len(haystack) - len({*question.documents, *question.related})
        if others < 1:
            raise ValueError("there are too few paragraphs")
        often = -(-size // others)
        indices = []
        for index in rng.sample(range(len(haystack) * often), size):
            indices.append(index // often)
        documents = (
            [(_draw_number(rng), haystack[index]) for index in indices] + own + related
        )
        rng.shuffle(documents)
        texts = []
        for query, text in documents:
            if text in known:
                words = parts(known[text])
            else:
                words = cut_ends(text)
            texts.append(_write(prompts.DOCUMENT, query, words))
        answers = {
            "text": [own[0][0]],
            "documents": [n for n, _ in own],
            "answer": [question.answer],
        }
        if wanted == "text":
            asked_for = own[0][1]
        else:
            asked_for = question.text
        return Draw(
            fields={"query": asked_for},
            context=join_texts(texts, "\n\n"),
            answers=answers[wanted],
        )

    return islice(script.draw_all(draw, 5), min(count, len(asked)))


def _write(template: str, number: str, parts: Sequence[str]) -> list[str]:
    """Write a numbered text, as parts that spaces join. The parts stay the same objects, so they are looked up fast."""
    start, *rest = parts
    return [*template.format(number=number, text=start).split(" ", 1), *rest]


_HEADING = re.compile(r"Document \d+:")

_FINAL_ANSWER = re.compile(r"The final answer is (.+)$", re.MULTILINE)
_ANSWER = re.compile(
    r"(?i)[*_]{0,2}Answer[*_]{0,2}\s*:[\s*_]{0,2}\s*([A-Z])(?![a-zA-Z0-9])"
)
_LETTER = re.compile(r"\b[A-Z]\b")
_BOX = "\\boxed{"

_LETTERS = str.maketrans(
    {letter: f" {'ABCD'[n % 4]}" for n, letter in enumerate("أبجدঅবডঢＡＢＣＤ")}
)
"""Letters of other scripts that stand for A to D."""


def match_all(output: str, references: Sequence[str]) -> float:
    """Return the mean match of the references."""
    return sum(match(output, reference) for reference in references) / len(references)


def match_part(output: str, references: Sequence[str]) -> float:
    """Return the best match of a reference with the output without copied documents."""
    output = drop_copied_documents(output)
    return max(match(output, reference) for reference in references)


def drop_copied_documents(output: str) -> str:
    r"""Return an output without the documents that it copies, each to its first empty line.

    It is what is left by the official pattern "Document \d+:(?:.*\n)+?\n", but that one's time is quadratic in a
    text of headings without an empty line.
    """
    kept = []
    position = 0
    while heading := _HEADING.search(output, position):
        end = output.find("\n\n", heading.end())
        if end < 0:
            break
        kept.append(output[position : heading.start()])
        position = end + len("\n\n")
    return "".join([*kept, output[position:]])


def match_last(output: str, references: Sequence[str]) -> float:
    """Return the mean match of the references with the last paragraph."""
    return match_all(output.split("\n\n")[-1], references)


def match(output: str, reference: str) -> float:
    """Return 1 if the output contains the reference, ignoring case, or else 1 minus the word error rate, at least 0."""
    output = output.lower()
    reference = reference.lower()
    if reference in output:
        return 1.0
    words = reference.split()
    # A reference that is blank, but not empty, has no error rate.
    if words:
        return max(0.0, 1.0 - count_edits(output.split(), words) / len(words))
    return 0.0


def count_edits(words: Sequence[str], reference: Sequence[str]) -> int:
    """Return the least number of words to insert, delete or replace (Levenshtein distance).

    All differences of a column are bits of whole numbers (Myers 1999, in the form of Hyyrö 2003), so outputs of
    thousands of words take milliseconds.
    """
    if not reference:
        return len(words)
    occurrences: dict[str, int] = defaultdict(int)
    for number, word in enumerate(reference):
        occurrences[word] |= 1 << number
    every = (1 << len(reference)) - 1
    last = 1 << (len(reference) - 1)
    more = every
    less = 0
    edits = len(reference)
    for word in words:
        equal = occurrences.get(word, 0)
        vertical = equal | less
        horizontal = (((equal & more) + more) ^ more) | equal
        rises = less | (every & ~(horizontal | more))
        falls = more & horizontal
        edits += bool(rises & last) - bool(falls & last)
        rises = rises << 1 | 1
        falls = falls << 1
        more = every & (falls | ~(vertical | rises))
        less = every & rises & vertical
    return edits


def read_letter(output: str) -> str | None:
    """Return the letter that an output gives as its answer, or None if it gives none."""
    final = _FINAL_ANSWER.findall(output)
    text = final[-1] if final else _read_box(output)
    if text is not None:
        text = text.translate(_LETTERS).strip()
        if len(text) == 1:
            letters = [text]
        else:
            letters = _LETTER.findall(text)
        if letters:
            return str(letters[-1]).upper()
    answers = _ANSWER.findall(output)
    return answers[-1].upper() if answers else None


def _read_box(output: str) -> str | None:
    """Return what is in the last box, or None if the box does not end."""
    start = output.rfind("\\boxed")
    depth = 0
    for position, character in enumerate(output[start:] if start >= 0 else "", start):
        depth += (character == "{") - (character == "}")
        if character == "}" and depth == 0:
            box = output[start : position + 1]
            if box.startswith(_BOX):
                return box[len(_BOX) : -1]
            return None
    return None


def _score_match(
    record: ScorerInput,
    combine: Callable[[str, Sequence[str]], float],
) -> MetricValues:
    """Return the match of the references, if there are any."""
    references = record["references"]
    if references:
        return {"match": combine(record["prediction"], references)}
    return {}


def _can_read_letter(record: ScorerInput) -> bool:
    """Whether an output gives a letter as its answer."""
    return read_letter(record["prediction"]) is not None


def _score_letter(record: ScorerInput) -> MetricValues:
    """Return whether the output gives the right letter, if there is a reference."""
    references = record["references"]
    if not references:
        return {}
    return {"accuracy": float(read_letter(record["prediction"]) == references[0])}


_COPY_ALL, _COPY_STEPS, _COPY_ONE = (
    Template.whole(text)
    for text in (prompts.COPY_ALL, prompts.COPY_STEPS, prompts.COPY_ONE)
)
_SOLVE = tuple(
    Template.whole(prompts.SOLVE_CONTEXT + text)
    for text in (prompts.SOLVE, prompts.SOLVE_STEPS)
)
_FIND = tuple(Template.whole(text) for text in (prompts.FIND_TEXT, prompts.FIND_ANSWER))

_DOCUMENT = re.compile(r"^Document (\d+):\n(.*(?:\n.+)*)", re.MULTILINE)
_WORD = re.compile(r"\w+")


def copy_question(messages: Sequence[Message]) -> str | None:
    """Copy the questions with a number, or return None if the conversation asks for none."""
    prompt = messages[-1]["content"]
    for template in (_COPY_ALL, _COPY_STEPS, _COPY_ONE):
        fields = template.parse(prompt)
        if fields is None:
            continue
        pattern = rf"^Question {re.escape(fields['query'])}: (.*)$"
        questions = re.findall(pattern, fields["context"], re.MULTILINE)
        if template is _COPY_ALL:
            return "\n\n".join(questions)
        order = re.match(r"\d+", fields.get("order", ""))
        index = int(order[0]) - 1 if order else 0
        one = questions[index:][:1]
        return "\n\n".join([*questions, *one] if template is _COPY_STEPS else one)
    return None


def _choose_letter(messages: Sequence[Message]) -> str | None:
    """Choose the first option, or return None if the conversation asks for none."""
    prompt = messages[-1]["content"]
    if any(template.parse(prompt) for template in _SOLVE):
        return "\\boxed{A}"
    return None


def _find_document(messages: Sequence[Message]) -> str | None:
    """Find the document with the most words of a text or a question, or return None if none is asked for."""
    for template in _FIND:
        fields = template.parse(messages[-1]["content"])
        if fields is None:
            continue
        asked = {*_WORD.findall(fields["query"].lower())}
        best = ""
        largest = -1.0
        for number, text in _DOCUMENT.findall(fields["context"]):
            words = {*_WORD.findall(text.lower())}
            # A long document must share more words.
            share = len(words & asked) / (len(words) + 10)
            if share > largest:
                best = number
                largest = share
        return best
    return None


_ALL = partial(_score_match, combine=match_all)
_PART = partial(_score_match, combine=match_part)
_LAST = partial(_score_match, combine=match_last)


def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    samples: _Samples,
    evidence: str,
) -> Iterator[Example]:
    """Draw the samples of a task.

    Args:
        evidence: the start of the only piece of evidence, with placeholders for the first answer and the question.
            It is empty if there are several pieces.
    """
    # The length counts the prompt alone.
    script = generation.make_script(task, settings, root, output=0)
    for number, draw in enumerate(samples(script, task.sample(settings))):
        start = None
        if evidence:
            start = evidence.format(answer=draw.answers[0], query=draw.fields["query"])
        group = ""
        # All tasks ask the same questions of HotpotQA.
        if HOTPOTQA in task.sources(settings.length):
            group = f"{TEXT_GROUP}hotpotqa {number}"
        yield generation.make_example(task, number, draw, start, group)


def _task(
    name: str,
    title: str,
    template: str,
    samples: _Samples,
    score: Scorer,
    kind: AnswerKind | AnswerReader,
    constant: str = "0",
    evidence: str = "",
    sources: tuple[HubDataset, ...] = (MMLU,),
) -> Task:
    if score is _score_letter:
        metric = "accuracy"
    else:
        metric = "match"
    return Task(
        name=name,
        title=title,
        template=Template.whole(template),
        sizes=sizes_in_tokens(),
        load=partial(load, samples=samples, evidence=evidence),
        score=score,
        can_read=_can_read_letter if score is _score_letter else has_text,
        headline=(metric,),
        metrics=(metric,),
        sources=lambda length: sources,
        baseline=Baseline(kind, constant),
        **task_fields(__package__),
    )


def _solve(
    name: str,
    title: str,
    problem: str,
    ending: str,
) -> Task:
    samples = partial(
        _number_questions,
        wanted="letter",
        problem=problem,
        ending=ending,
    )
    return _task(
        f"mk_niah_{name}",
        f"Multi-key NIAH, {title}",
        prompts.SOLVE_CONTEXT + problem,
        samples,
        _score_letter,
        _choose_letter,
        "\\boxed{A}",
        evidence="Question {query}: ",
    )


def _copy(
    name: str,
    title: str,
    template: str,
    samples: _Samples,
    score: Scorer = _ALL,
    evidence: str = "",
) -> Task:
    return _task(
        name, title, template, samples, score, copy_question, evidence=evidence
    )


def _ask(
    name: str,
    title: str,
    template: str,
    wanted: str,
    kind: AnswerKind | AnswerReader,
    evidence: str = "",
) -> Task:
    samples = partial(_number_documents, wanted=wanted)
    return _task(
        f"qa_{name}",
        f"QA, {title}",
        template,
        samples,
        _PART,
        kind,
        evidence=evidence,
        sources=(HOTPOTQA,),
    )


_one_value, _four_values = (partial(_draw_needles, values=values) for values in (1, 4))
_all_questions = partial(_number_questions, wanted="texts", repeats=4)
_questions = partial(_number_questions, wanted="text")
_ordered = partial(_number_questions, wanted="text", repeats=4)

_TASKS = (
    _task(
        "mk_niah_basic",
        "Multi-key NIAH, Basic",
        prompts.NEEDLE_ONE,
        _one_value,
        _ALL,
        "lookup",
        evidence="{answer}",
        sources=(),
    ),
    _copy(
        "mk_niah_easy",
        "Multi-key NIAH, Easy",
        prompts.COPY_ONE,
        _questions,
        evidence="Question {query}: ",
    ),
    _solve("medium", "Medium", prompts.SOLVE_STEPS, prompts.COPIED + prompts.SOLUTION),
    _solve("hard", "Hard", prompts.SOLVE, prompts.SOLUTION),
    _task(
        "mv_niah_basic",
        "Multi-value NIAH, Basic",
        prompts.NEEDLE_ALL,
        _four_values,
        _ALL,
        "lookup",
        sources=(),
    ),
    _copy("mv_niah_easy", "Multi-value NIAH, Easy", prompts.COPY_ALL, _all_questions),
    _copy(
        "mv_niah_medium",
        "Multi-value NIAH, Medium",
        prompts.COPY_STEPS,
        _ordered,
        _LAST,
    ),
    _copy("mv_niah_hard", "Multi-value NIAH, Hard", prompts.COPY_ONE, _ordered),
    _ask(
        "basic",
        "Basic",
        prompts.FIND_TEXT,
        "text",
        _find_document,
        evidence="Document {answer}:",
    ),
    _ask("easy", "Easy", prompts.FIND_ANSWER, "documents", _find_document),
    _ask("medium", "Medium", prompts.ANSWER_STEPS, "answer", "span"),
    _ask("hard", "Hard", prompts.ANSWER, "answer", "span"),
)

RULER2 = read_benchmark(__package__, _TASKS)
