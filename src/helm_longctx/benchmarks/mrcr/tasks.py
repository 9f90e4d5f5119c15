"""MRCR's tasks, one for each number of needles, and its score: the similarity of the output to the answer.

A row is a conversation whose last turn asks for one of several similar answers. There is no template, because a row's
messages are the prompt. Source: the hub data set openai/mrcr and its card (bins, how tokens are counted, `grade`).
princeton-nlp/HELMET at 5dde2de (data_module/mrcr.py, `_grade`) and crfm-helm's metric `openai_mrcr_accuracy` repeat the
score. A bin is the interval (length/2, length], as in HELMET's data_module/mrcr.py. The output budget and the chat form
are from HELMET's configs/dev_mrcr_v2.yaml.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cache, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from helm_longctx.data.jsonl import Row
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks import (
    NO_TEMPLATE,
    TEXT,
    Baseline,
    Category,
    DataRoot,
    Example,
    HubDataset,
    InputError,
    JsonLines,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Types,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.counting import CountTokens, load_encoding
from helm_longctx.tasks.prompt import read_messages
from helm_longctx.tasks.sampling import shuffle_order, take_sample
from helm_longctx.tasks.task import has_text

# "Prepend X to the 2nd (1 indexed) poem about tapirs. Do not include any other text."
_REQUEST = re.compile(
    r"Prepend (\S+) to the (\d+)(?:st|nd|rd|th) \(1 indexed\) (.+?)\. Do not include",
    re.DOTALL,
)


class _Needles(NamedTuple):
    """What the last turn of a conversation asks for.

    Args:
        random_string: the text to put before the answer.
        number: the number of the wanted answer, from 1.
        answers: the answers of the wanted kind, in order.
    """

    random_string: str
    number: int
    answers: list[str]

    @property
    def wanted_answer(self) -> str:
        """The wanted answer after the random string, or an empty text if the conversation has no such answer."""
        if not 0 < self.number <= len(self.answers):
            return ""
        return self.random_string + self.answers[self.number - 1]


def _find_needles(messages: Sequence[Message]) -> _Needles | None:
    """Find the answers that the last turn is about, or None if it is not one of MRCR's."""
    request = _REQUEST.search(messages[-1]["content"])
    if request is None:
        return None
    random_string, number, wanted = request.groups()
    # Earlier turns ask "write a poem about tapirs".
    asked = f"write a {wanted}".lower()
    answers = []
    for turn, answer in pairwise(messages):
        if turn["role"] == "user" and turn["content"].strip().lower() == asked:
            answers.append(answer["content"])
    return _Needles(random_string, int(number), answers)


def find_answer(messages: Sequence[Message]) -> str | None:
    """Find the answer that the last turn asks for, such as the second poem about tapirs, and add the random string.

    Returns None if the last turn is not one of MRCR's, and an empty text if the conversation has no such answer.
    """
    needles = _find_needles(messages)
    return needles.wanted_answer if needles else None


def _find_errata(
    messages: Sequence[Message],
    answer: str,
    count: int,
) -> tuple[str, ...]:
    """Return the rules of `errata.jsonl` by which a row of the hub is wrong."""
    needles = _find_needles(messages)
    # Without an answer of this kind, nothing is known about the row.
    if needles is None or not needles.wanted_answer:
        return ()
    rules = {
        "wrong_answer": needles.wanted_answer != answer,
        "too_many_needles": len(needles.answers) > count,
    }
    return tuple(rule for rule, is_wrong in rules.items() if is_wrong)


_DIGESTS = {
    "2needle/2needle_0.parquet": "1c297b254bf64a31856b74918cd7db889a214503e0b67daa834e84f20df6aa93",
    "2needle/2needle_1.parquet": "a5a1dc9ccc945623253d04d33c03d89aee2d676c88955ce368da2ab16a0ce94d",
    "4needle/4needle_0.parquet": "4d4fa3d11ce064749de3cd039eef1a621e30a81c2c9b3e64f1df37f8afeaf312",
    "4needle/4needle_1.parquet": "8dfdb94a208cf3eee73c4e7ac6ee8a5ccb7236c6934c13c6c5f67c0a9928cdf3",
    "8needle/8needle_0.parquet": "65df601a2e0ae4a3cfb56920a6ef99f26c0de37c6b1018695e8aed684e6a94c1",
    "8needle/8needle_1.parquet": "c80b19573bff1d38e1c157d6a0bdf9cfd1a8ab6372296174c9a7015e164189e3",
}
"""The files after the repair of 2025-12-05, in the order of the hub's split, with their SHA-256."""
SOURCE = HubDataset(
    "openai/mrcr",
    {"train": 2400},
    labelled=False,
    commit="f4c69fae7cf81f7ca26b9fee34b392a50f6b8a1d",
    files={"train": tuple(_DIGESTS)},
    sha256=_DIGESTS,
)
PATH = f"{SOURCE.folder}/train.jsonl"
NEEDLES = (2, 4, 8)
LENGTHS = {
    label: 8192 << power
    for power, label in enumerate(
        ("8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m")
    )
}
"""The largest number of tokens of all messages and the answer, by the length's label."""
SAMPLE = 100

COLUMNS: Types = {
    "prompt": str,
    "answer": str,
    "random_string_to_prepend": str,
    "n_needles": int,
    "desired_msg_index": int,
    "total_messages": int,
}


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    needles: int,
) -> Iterator[Example]:
    """Load the conversations of the bin in file order."""
    return (example for _, example in _bin_rows(root / PATH, needles, settings.level))


def load_shuffled(
    task: Task,
    settings: Settings,
    root: DataRoot,
    needles: int,
) -> Iterator[Example]:
    """Load the conversations of the bin in HELMET's order."""
    path = root / PATH
    # Only one conversation is in memory at a time, so the conversations of the sample are read a second time.
    tokens = []
    for number, example in _bin_rows(path, needles, settings.level):
        tokens.append((number, example.input_tokens))
    order = shuffle_order(len(tokens), settings.seed)
    chosen = []
    for index in order[: task.sample(settings)]:
        chosen.append(tokens[index])
    rows = JsonLines(path, COLUMNS).rows(number for number, _ in chosen)
    for (number, count), row in zip(chosen, rows, strict=True):
        yield _example(row, number, _messages(row, path, number), count)


def _bin_rows(path: Path, needles: int, length: int) -> Iterator[tuple[int, Example]]:
    """Yield the number and the example of each row of a bin: more than `length` / 2 and at most `length` tokens.

    Only one row is in memory at a time.
    """
    count = o200k_counter()
    for number, row in enumerate(JsonLines(path, COLUMNS)):
        if row["n_needles"] != needles:
            continue
        messages = _messages(row, path, number)
        texts = [*(message["content"] for message in messages), row["answer"]]
        # A token has at least one byte, so a row with so few bytes is too short and need not be tokenized.
        if (
            sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
            <= length // 2
        ):
            continue
        tokens = 0
        for text in texts:
            tokens += count(text)
            if tokens > length:
                break
        if length // 2 < tokens <= length:
            yield number, _example(row, number, messages, tokens)


def _example(
    row: Row,
    number: int,
    messages: Sequence[Message],
    tokens: int | None,
) -> Example:
    return Example(
        id=f"mrcr-{number}",
        fields={"question": messages[-1]["content"]},
        references=[row["answer"]],
        source="hub",
        depth=min(row["desired_msg_index"] / max(len(messages) - 1, 1), 1.0),
        input_tokens=tokens,
        counter="o200k_base",
        record={name: row[name] for name in ("answer", "random_string_to_prepend")},
        messages=messages,
        # Rows on the same conversation share all messages but the last.
        group=f"conversation {digest(''.join(message['content'] for message in messages[:-1]))[:12]}",
        errata=_find_errata(messages, row["answer"], row["n_needles"]),
    )


@cache
def o200k_counter() -> CountTokens:
    """Make a counter of o200k_base tokens. It counts names of special tokens as text; the official code refuses them.

    Raises:
        InputError: tiktoken cannot load the encoding.
    """
    encoding = load_encoding("o200k_base")
    # Conversations of a file share most of their messages, so counts are remembered.
    return lru_cache(1 << 14)(lambda text: len(encoding.encode_ordinary(text)))


def _messages(row: Row, path: Path, number: int) -> tuple[Message, ...]:
    where = f"{path}: row {number + 1}"
    try:
        messages = json.loads(row["prompt"])
    except ValueError as error:
        raise InputError(
            f"{where}: column 'prompt' must be JSON ({type(error).__name__})"
        ) from error
    return read_messages(f"{where}: column 'prompt'", messages)


def score(record: ScorerInput) -> MetricValues:
    """Return the matching ratio of the texts after the random string; 0 if the output does not begin with that string.

    The result is empty if the record has no answer or no random string.
    """
    if record.get("answer") is None or record.get("random_string_to_prepend") is None:
        return {}
    output = record["prediction"]
    prefix = record["random_string_to_prepend"]
    # Even a perfect answer scores 0 without the string: it shows that the model follows the last turn (the card's
    # `grade`).
    if not output.startswith(prefix):
        return {"score": 0.0}
    answer = record["answer"].removeprefix(prefix)
    # SequenceMatcher is not symmetric: the official code gives it the output first.
    return {
        "score": float(
            SequenceMatcher(None, output.removeprefix(prefix), answer).ratio()
        )
    }


def can_read(record: ScorerInput) -> bool:
    """Whether an output begins with the random string, without which every answer scores 0."""
    prefix = record.get("random_string_to_prepend") or ""
    return has_text(record) and record["prediction"].startswith(prefix)


def _task(
    needles: int,
    load: Callable[..., Iterator[Example]] = load,
    *arguments: str,
) -> Task:
    return Task(
        name=f"{needles}needle",
        alias=str(needles),
        title=f"{needles} needles",
        template=NO_TEMPLATE,
        sizes=sizes_in_tokens(LENGTHS.values()),
        load=partial(load, needles=needles),
        score=score,
        can_read=can_read,
        num_samples=SAMPLE,
        sources=lambda length: (SOURCE,),
        record_shapes={"answer": TEXT, "random_string_to_prepend": TEXT},
        arguments=arguments,
        baseline=Baseline(find_answer, "I do not know."),
        **task_fields(__package__),
    )


MRCR = read_benchmark(__package__, tuple(map(_task, NEEDLES)))

HELMET2 = replace(
    MRCR,
    name="helmet2_mrcr",
    title="HELMET's new MRCR",
    description="MRCR as HELMET's repository asks it since 2026: a shuffled sample,"
    " without two needles",
    categories=(
        Category(
            "", "", tuple(_task(needles, load_shuffled, "seed") for needles in (4, 8))
        ),
    ),
    protocols=tuple,
)
