"""Loads key-value and needle tasks from HELMET's release, or generates them if the files are missing.

Source of the official order: princeton-nlp/HELMET at 4526dfb, data.py load_json_kv, load_ruler, load_data.

Rows that are generated fit a length. The format is the same as in HELMET's files, made with the scripts of
hsiehjackson/RULER. The texts are our own (`texts.yaml`). A row has the official columns, and `depth` if its evidence
stands at one position. Word lists and chains are spread over the text, so they have none.
"""

import json
import logging
import math
import random
import string
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from wonderwords import RandomWord

from helm_longctx.benchmarks.helmet import prompts
from helm_longctx.benchmarks.helmet.prompts import (
    CWE_PREFIX,
    CWE_USER,
    NIAH_NEEDLE,
    VT_PREFIX,
    VT_USER,
)
from helm_longctx.benchmarks.helmet.release import find_llama2_counter
from helm_longctx.data.jsonl import Row
from helm_longctx.data.yaml_files import read_yaml
from helm_longctx.errors import PreconditionError
from helm_longctx.tasks import (
    DataRoot,
    Example,
    InputError,
    JsonLines,
    Settings,
    Task,
    Types,
)
from helm_longctx.tasks.counting import ESTIMATE
from helm_longctx.tasks.generation import number_words, write_query
from helm_longctx.tasks.prompt import CONTEXT
from helm_longctx.tasks.sampling import shuffle_order

_DEPTHS = 6
"""Number of depths, evenly spaced from start to end. Rows take turns, so that all depths have equally many rows."""

Maker = Callable[[int, random.Random, float], Row]
"""(units, random generator, depth from 0 to 1) → a row with that many units."""

_PROBE = 64


def fit_rows(
    make: Maker,
    count: int,
    seed: int,
    budget: int,
    measure: Callable[[list[Row]], list[int]],
    at_most: int | None = None,
) -> tuple[list[Row], list[int]]:
    """Generate `count` rows with as many units as fit a budget of tokens. All rows have the same number of units."""

    def rows_of(units: int, number: int) -> list[Row]:
        rows = []
        for index in range(number):
            # Each row has its own generator, so that it does not depend on the number of rows.
            rng = random.Random(f"{seed}:{index}")
            rows.append(make(units, rng, index % _DEPTHS / (_DEPTHS - 1)))
        return rows

    # Two probes give the tokens per unit and the tokens of the rest of the prompt. Units differ in length, so the
    # estimate can be too high; it is then lowered until all rows fit.
    one, two = (measure(rows_of(probe, 1))[0] for probe in (_PROBE, 2 * _PROBE))
    units = _PROBE + (budget - one) * _PROBE // max(1, two - one)
    units = max(1, units if at_most is None else min(units, at_most))
    while True:
        rows = rows_of(units, count)
        lengths = measure(rows)
        if max(lengths) <= budget or units == 1:
            return rows, lengths
        # At least one unit fewer each time, so the loop ends.
        units = max(1, min(units - 1, units * budget // max(lengths)))


def json_kv(pairs: int, rng: random.Random, depth: float) -> Row:
    """Generate a JSON object of UUID pairs, a key to look up, and two demonstrations from the same object."""
    items = []
    for _ in range(max(3, pairs)):
        items.append((uuid(rng), uuid(rng)))
    at = round(depth * (len(items) - 1))
    # The demonstrations come from the same object, as in the official files, but never include the pair that is asked
    # for.
    demos = rng.sample(items[:at] + items[at + 1 :], 2)
    return {
        CONTEXT: "JSON data:\n" + json.dumps(dict(items), indent=1),
        "question": items[at][0],
        "answer": items[at][1],
        "demos": demos,
        "num_kvs": len(items),
        "depth": depth,
    }


def uuid(rng: random.Random) -> str:
    """Draw random hexadecimal digits in the format of a UUID, 8-4-4-4-12."""
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_COMMON_WORDS = 10
_COMMON_REPEATS = 30
_UNCOMMON_REPEATS = 3
"""How often common and uncommon words are repeated: RULER's freq_cw and freq_ucw."""

_EXAMPLE_UNCOMMON_WORDS = 30
_EXAMPLE_COMMON_REPEATS = 10
_EXAMPLE_UNCOMMON_REPEATS = 3

_FREQUENT_WORDS = 3
NOISE_WORD = "..."
_CODE_LENGTH = 6
_ZETA_2 = math.pi**2 / 6

_HOPS = 4
_EXAMPLE_LINES = 10
_EXAMPLE_VALUE = (
    99_999  # never drawn for a row, so that the example cannot contain a row's value
)


@cache
def texts() -> dict[str, Any]:
    """Return the texts of which rows are made."""
    content: dict[str, Any] = read_yaml(Path(__file__).with_name("texts.yaml"))
    return content


def hide_needles(
    units: int,
    rng: random.Random,
    depth: float,
    haystack: Literal["noise", "prose", "needles"],
    keys: int = 1,
    values: int = 1,
    queries: int = 1,
    kind: Literal["numbers", "uuids"] = "numbers",
) -> Row:
    """Make a row of a needle task. The needle that is asked for, or the first of them, is at `depth`.

    Args:
        units: passages, sentences or needles of the haystack. The keys of other needles are of the kind of the values.
        keys, values, queries: number of keys, of values of each key, and of keys that are asked for.
    """
    if haystack == "needles":
        pairs = []
        if kind == "numbers":
            for word in _word_keys(units, rng):
                pairs.append((word, _number(rng)))
        else:
            for _ in range(units):
                pairs.append((uuid(rng), uuid(rng)))
        asked = [pairs[round(depth * (len(pairs) - 1))]]
    elif keys > 1:
        drawn = _word_keys(keys, rng)
        numbers = rng.sample(range(1_000_000, 10_000_000), keys)
        pairs = [(key, str(number)) for key, number in zip(drawn, numbers, strict=True)]
        asked = pairs[:queries]
    else:
        (key,) = _word_keys(1, rng)
        pairs = []
        for _ in range(values):
            pairs.append((key, _number(rng) if kind == "numbers" else uuid(rng)))
        asked = pairs
    lines = [
        NIAH_NEEDLE.format(
            type_needle_v=kind,
            key=key,
            value=value,
        )
        for key, value in pairs
    ]
    if haystack == "needles":
        context = "\n".join(lines)
    elif haystack == "prose":
        sentences = []
        for _ in range(max(values, units)):
            sentences.append(_sentence(rng))
        context = " ".join(_insert(lines, sentences, rng, depth))
    else:
        context = "\n".join(_insert(lines, [texts()["noise"]] * units, rng, depth))
    return {
        CONTEXT: context,
        "query": write_query([*dict.fromkeys(key for key, _ in asked)]),
        "type_needle_v": kind if len(asked) > 1 else kind[:-1],
        "answer": [value for _, value in asked],
        "depth": depth,
    }


def _word_keys(count: int, rng: random.Random) -> list[str]:
    """Draw distinct keys such as `quick-hedgehog`; all of them if there are fewer than `count`."""
    adjectives = _words("adjective")
    nouns = _words("noun")
    keys = len(adjectives) * len(nouns)
    # The numbers of pairs are drawn, because a list of all pairs would have millions of texts.
    numbers = rng.sample(range(keys), min(count, keys))
    pairs = []
    for n in numbers:
        pairs.append(f"{adjectives[n % len(adjectives)]}-{nouns[n // len(adjectives)]}")
    return pairs


@cache
def _words(*kinds: str) -> list[str]:
    # The words are sorted, because a draw from a set would differ from process to process.
    words = RandomWord().filter(include_categories=kinds)
    return sorted({word.lower() for word in words if word.isascii() and word.isalpha()})


def _number(rng: random.Random) -> str:
    return str(rng.randrange(1_000_000, 10_000_000))


def _sentence(rng: random.Random) -> str:
    """Make a sentence of about sixteen words."""
    opening, subject, verb, thing, ending = map(rng.choice, texts()["sentence"])
    return f"{opening}, {subject} {verb} {thing} {ending}."


def _insert(
    needles: list[str],
    lines: list[str],
    rng: random.Random,
    depth: float,
) -> list[str]:
    """Put the first needle at `depth` between lines, and the others at random positions."""
    positions = [
        round(depth * len(lines)),
        *(rng.randrange(len(lines) + 1) for _ in needles[1:]),
    ]
    # Needles are inserted from the back, so that an insertion does not move the positions before it.
    for position, needle in sorted(zip(positions, needles, strict=True), reverse=True):
        lines.insert(position, needle)
    return lines


def common_words(uncommon: int, rng: random.Random, depth: float) -> Row:
    """Make a row of cwe: a numbered list of ten frequent words and `uncommon` rare words."""
    example_size = _COMMON_WORDS + _EXAMPLE_UNCOMMON_WORDS
    count = example_size + _COMMON_WORDS + uncommon
    listed = _words("adjective", "noun", "verb")
    # Compounds are drawn as well if the list has too few words.
    words = rng.sample([*listed, *_word_keys(max(0, count - len(listed)), rng)], count)
    example, example_answer = _word_list(
        words[:example_size], _EXAMPLE_COMMON_REPEATS, _EXAMPLE_UNCOMMON_REPEATS, rng
    )
    context, answer = _word_list(
        words[example_size:], _COMMON_REPEATS, _UNCOMMON_REPEATS, rng
    )
    solution = " ".join(number_words(example_answer))
    worked = f"{CWE_USER.format(example='', context=example)}\n{CWE_PREFIX} {solution}"
    return {
        CONTEXT: context,
        "example": worked,
        "answer": answer,
    }


def frequent_words(words: int, rng: random.Random, depth: float) -> Row:
    """Make a row of fwe: about `words` coded words. Their frequencies follow Zipf's law with exponent 2.

    The most frequent word is noise. As in RULER, the frequencies are the expected ones and not drawn, so that chance
    cannot change their order.
    """
    share = words / _ZETA_2
    # Ranks at which a word would appear less than once are left out.
    counts = []
    for rank in range(1, math.isqrt(int(share)) + 1):
        counts.append(int(share / rank**2))
    # In a short text the first ranks would have the same frequency. These minima keep them apart.
    least = range(_FREQUENT_WORDS + 2, 1, -1)
    counts = [max(pair) for pair in zip_longest(counts, least, fillvalue=0)]
    # The noise is the most frequent "word": the question asks to ignore it (RULER's fwe).
    codes = [
        NOISE_WORD,
        *_codes(len(counts) - 1, string.ascii_lowercase, _CODE_LENGTH, rng),
    ]
    text: list[str] = []
    for code, count in zip(codes, counts, strict=True):
        text += [code] * count
    rng.shuffle(text)
    return {CONTEXT: " ".join(text), "answer": codes[1 : _FREQUENT_WORDS + 1]}


def variable_tracking(lines: int, rng: random.Random, depth: float) -> Row:
    """Make a row of vt: a chain of assignments, in order, at random positions in a repeated passage."""
    value = rng.randrange(10_000, _EXAMPLE_VALUE)
    context, names = _chain(lines, value, 5, rng)
    row = {
        CONTEXT: context,
        "query": str(value),
        "num_v": len(names),
        "example": _chain_example(),
    }
    return {**row, "answer": names}


def one_hop_questions(documents: int, rng: random.Random, depth: float) -> Row:
    """Make a row of qa_1, in SQuAD's format: paragraphs without titles. The question is about the one at `depth`."""
    # Linked documents share names. Only one of each pair is used, so that an answer stands in one document.
    linked = _stories(max(1, documents), rng)
    target, *others = (rng.choice((near, far)) for near, far, _ in linked)
    texts_of_others = [document.text for document in others]
    return _questions(
        texts_of_others, target.text, target.question, target.answer, depth
    )


def two_hop_questions(documents: int, rng: random.Random, depth: float) -> Row:
    """Make a row of qa_2, in HotpotQA's format: titled paragraphs.

    One paragraph, at a random position, leads to the one at `depth`, which has the answer.
    """
    others = max(1, documents - 1)
    (first, second, question), *stories = _stories(1 + others // 2, rng)
    rest = [first]
    for near, far, _ in stories:
        rest += [near, far]
    # The first one is not counted among the others.
    paragraphs = []
    for document in rest[:others]:
        paragraphs.append(f"{document.title}\n{document.text}")
    rng.shuffle(paragraphs)
    return _questions(
        paragraphs, f"{second.title}\n{second.text}", question, second.answer, depth
    )


def _word_list(
    words: list[str],
    often: int,
    rarely: int,
    rng: random.Random,
) -> tuple[str, list[str]]:
    """Make a numbered list, and return it with its common words."""
    common = words[:_COMMON_WORDS]
    entries = common * often + words[_COMMON_WORDS:] * rarely
    rng.shuffle(entries)
    return " ".join(number_words(entries)), common


def _codes(
    count: int,
    letters: str,
    length: int,
    rng: random.Random,
) -> list[str]:
    """Draw distinct strings of random letters."""
    codes: dict[str, None] = {}  # a set would have another order in each run
    while len(codes) < count:
        codes["".join(rng.choices(letters, k=length))] = None
    return list(codes)


def _chain(
    lines: int,
    value: int,
    length: int,
    rng: random.Random,
) -> tuple[str, list[str]]:
    """Make a chain in noise, and return it with the names of its variables, of `length` letters each."""
    names = _codes(_HOPS + 1, string.ascii_uppercase, length, rng)
    values = [str(value), *(f"VAR {name}" for name in names)]
    noise = texts()["noise"]
    text = [noise] * max(len(names), lines)
    positions = sorted(rng.sample(range(len(text)), len(names)))
    # `values` has one element more, the name after the last link.
    for position, name, assigned in zip(positions, names, values, strict=False):
        text[position] = f"VAR {name} = {assigned} {noise}"
    return "\n".join(text), names


@cache
def _chain_example() -> str:
    """Return the worked example, the same in all rows, as in RULER. No row has its names: they are shorter."""
    context, names = _chain(_EXAMPLE_LINES, _EXAMPLE_VALUE, 3, random.Random("example"))
    fields = {
        "context": context,
        "query": str(_EXAMPLE_VALUE),
        "num_v": len(names),
    }
    return f"{VT_USER.format(example='', **fields)}\n{VT_PREFIX.format(**fields)} {' '.join(names)}"


class _Document(NamedTuple):
    title: str
    text: str
    question: str
    answer: str


def _stories(count: int, rng: random.Random) -> list[tuple[_Document, _Document, str]]:
    """Make pairs of linked documents, each with the question that needs both. A name appears in only one pair."""
    named = texts()["named"]
    letters = texts()["name_letters"]
    # Numbers of names are drawn without repetition, so that no two stories share a name.
    numbers = iter(rng.sample(range(math.prod(map(len, letters))), count * len(named)))
    stories = []
    for _ in range(count):
        facts = {}
        for kind, form in named.items():
            facts[kind] = form.format(_name(next(numbers), letters))
        year = rng.randrange(1700, 1900)
        facts["person"] = f"{rng.choice(texts()['first_names'])} {facts['person']}"
        facts |= {
            "year": str(year),
            "later": str(year + rng.randrange(20, 60)),
            "number": str(rng.randrange(14, 40)),
        }
        for name in ("trade", "good", "habit"):
            facts[name] = rng.choice(texts()[f"{name}s"])
        story = rng.choice(texts()["stories"])
        documents = (texts()["documents"][name] for name in story["documents"])
        first, second = (
            _Document(
                **{part: text.format_map(facts) for part, text in document.items()}
            )
            for document in documents
        )
        stories.append((first, second, story["question"].format_map(facts)))
    return stories


def _name(number: int, letters: list[str]) -> str:
    """Return the name with this number. All names have the same length, so that none contains another."""
    name = ""
    for alphabet in letters:
        number, index = divmod(number, len(alphabet))
        name += alphabet[index]
    return name


def _questions(
    others: list[str],
    target: str,
    question: str,
    answer: str,
    depth: float,
) -> Row:
    position = round(depth * len(others))
    documents = enumerate([*others[:position], target, *others[position:]], 1)
    context = "\n\n".join(f"Document {number}:\n{text}" for number, text in documents)
    return {
        CONTEXT: context,
        "question": question,
        "answer": [answer],
        "depth": depth,
    }


_TEXTS = (str, list)
_log = logging.getLogger(__name__)


def load_json_kv(task: Task, settings: Settings, root: DataRoot) -> Iterable[Example]:
    """Load JSON KV: a key to look up in a JSON object of `sizes[length]` pairs, after two demonstrations."""
    types: Types = {
        CONTEXT: str,
        "question": str,
        "answer": _TEXTS,
        "demos": list,
        "num_kvs": int,
    }
    shots = task.demonstrations(settings)
    convert = partial(_json_kv, shots=shots, at_least=settings.shots or 0)
    if rows := _official_rows(task, settings, root, types):
        return _read_official(task, settings, rows, convert)
    # The number of pairs for any length, by linear interpolation between the official sizes.
    points = sorted(task.sizes)
    length = settings.level
    if not points[0] <= length <= points[-1]:
        raise InputError(
            f"{task.name}: length={length} is invalid; give {points[0]} to {points[-1]}"
        )
    low, high = next(
        (low, high) for low, high in pairwise(points) if low <= length <= high
    )
    pairs = task.sizes[low] + (task.sizes[high] - task.sizes[low]) * (length - low) // (
        high - low
    )
    return _generate(
        task, settings, root, partial(fit_rows, json_kv, at_most=pairs), convert
    )


def load_ruler(
    task: Task,
    settings: Settings,
    root: DataRoot,
    make: Maker,
    has_depth: bool,
) -> Iterable[Example]:
    """Load one of RULER's tasks. They have no demonstrations."""
    convert = partial(_ruler, names=task.template.names)
    if rows := _official_rows(task, settings, root, {CONTEXT: str}):
        return _read_official(task, settings, rows, convert, has_depth)
    return _generate(task, settings, root, partial(fit_rows, make), convert)


@cache
def _tell_error_of_estimate() -> None:
    """Warn that lengths are estimated. docs/data.md says how the error was measured."""
    _log.warning(
        "Llama 2's tokenizer is not here, so lengths of generated recall prompts are"
        " estimated: json_kv and ruler_niah_mk_2 are within 1 % of the length,"
        " ruler_niah_mk_3 is 5 % longer, ruler_niah_mv 6 % shorter"
    )


_Convert = Callable[[Row, str], tuple[dict[str, str], list[str]]]
"""(row, file and row number for errors) → template fields and references."""


def _official_rows(
    task: Task,
    settings: Settings,
    root: DataRoot,
    types: Types,
) -> JsonLines | None:
    for path in task.paths(settings.length):
        if root.has(path):
            return JsonLines(root / path, types)
    _warn_of_generation(str(root.path))
    return None


@cache  # one line for all tasks, lengths and models of a command; the scores name the tasks
def _warn_of_generation(root: str) -> None:
    _log.warning(
        "%s lacks official files of recall tasks; their examples are generated", root
    )


def _read_official(
    task: Task,
    settings: Settings,
    rows: JsonLines,
    convert: _Convert,
    has_depth: bool = True,
) -> Iterator[Example]:
    # Rows are shuffled and then cut (HELMET data.py:141 and 515), so a smaller sample is the start of a larger one.
    numbers = shuffle_order(len(rows), settings.seed)[: task.sample(settings)]
    for position, (number, row) in enumerate(
        zip(numbers, rows.rows(numbers), strict=True)
    ):
        fields, references = convert(row, f"{rows.path}: row {number + 1}")
        depth = row.get("depth") if has_depth else None
        # The depth in the file counts if it is a share of the context, and else the mean position of the answers.
        if has_depth and not (isinstance(depth, float | int) and 0 <= depth <= 1):
            depth = evidence_depth(row[CONTEXT], references)
        yield Example(
            id=f"{task.name}-{position}",
            fields=fields,
            references=references,
            source="official",
            depth=depth,
        )


def _generate(
    task: Task,
    settings: Settings,
    root: DataRoot,
    fit_rows: Callable[..., Any],
    convert: _Convert,
) -> Iterator[Example]:
    counter = find_llama2_counter(root)
    if counter is ESTIMATE:
        _tell_error_of_estimate()

    def measure(rows: list[Row]) -> list[int]:
        fields = (convert(row, task.name)[0] for row in rows)
        return counter.count(
            [task.template.render(f).text("completion") for f in fields]
        )

    count = task.sample(settings)
    # The prompt and its output together must fit the length.
    rows, lengths = fit_rows(
        count, settings.seed, settings.level - task.output_tokens(settings), measure
    )
    for position, (row, tokens) in enumerate(zip(rows, lengths, strict=True)):
        fields, references = convert(row, task.name)
        yield Example(
            id=f"{task.name}-{position}",
            fields=fields,
            references=references,
            source="generated",
            depth=row.get("depth"),
            input_tokens=tokens,
            counter=counter.name,
        )


def evidence_depth(context: str, answers: Iterable[str]) -> float | None:
    """Return the mean relative position of the answers in the context, or None if it contains none of them."""
    starts = []
    for start in map(context.find, answers):
        if start >= 0:
            starts.append(start)
    if not starts:
        return None
    return sum(start / max(1, len(context)) for start in starts) / len(starts)


def _json_kv(
    row: Row,
    where: str,
    shots: int,
    at_least: int,
) -> tuple[dict[str, str], list[str]]:
    if at_least > len(row["demos"]):
        raise PreconditionError(
            f"{where}: shots={at_least}, but there are only {len(row['demos'])}"
            " demonstrations; give fewer shots"
        )
    try:
        pairs = row["demos"][:shots]
        demos = []
        for key, value in pairs:
            demos.append(prompts.JSON_KV_DEMO.format(key=key, value=value))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where}: column 'demos' must be a list of [key, value]"
        ) from error
    fields = {
        CONTEXT: row[CONTEXT],
        "question": row["question"],
        # The blank line depends on the number of shots asked for, not on the number in the file (HELMET data.py:136).
        "demos": "\n\n".join(demos) + ("\n\n" if shots > 0 else ""),
    }
    return fields, _texts(row["answer"], "answer", where)


def _ruler(
    row: Row,
    where: str,
    names: frozenset[str],
) -> tuple[dict[str, str], list[str]]:
    values = {
        **row,
        # NIAH's files have the column `query`, and files of RULER's questions have `question` (HELMET data.py:500).
        "question": row.get("query", row.get("question", "")),
        "example": f"{row['example']}\n\n" if row.get("example") else "",
    }
    if absent := sorted(
        names - {name for name, value in values.items() if value is not None}
    ):
        raise InputError(f"{where}: columns are missing: {', '.join(absent)}")
    # RULER's own scripts name the column `outputs` (HELMET data.py:502).
    column = "answer" if "answer" in row else "outputs"
    return {name: str(values[name]) for name in names}, _texts(
        row.get(column), column, where
    )


def _texts(value: object, column: str, where: str) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not (
        isinstance(texts, list)
        and texts
        and all(isinstance(text, str) for text in texts)
    ):
        raise InputError(
            f"{where}: column {column!r} must be a string or a list of strings, and not empty"
        )
    return texts
