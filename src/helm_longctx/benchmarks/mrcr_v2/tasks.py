"""MRCR v2's tasks, their files (one for each number of needles and bin), the score, and the README's floors.

Source: google-deepmind/eval_hub at 67b7fd2, eval_hub/mrcr_v2: download.sh (addresses), mrcr_utils.py (columns),
run_evaluation.py (prompt, `mrcr_v2_metric`), README.md (floors), and analysis_utils.py (how the lexical baseline finds
the answer).
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from helm_longctx.data.tables import read_csv
from helm_longctx.data.web import BucketFile
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks import (
    NO_TEMPLATE,
    TEXT,
    Baseline,
    Category,
    DataRoot,
    Example,
    InputError,
    Message,
    MetricValues,
    Published,
    ScorerInput,
    Settings,
    Task,
    Variant,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.sampling import take_sample

NEEDLES = (2, 4, 8)
LENGTHS = {
    label: 8192 << power
    for power, label in enumerate(
        ("8k", "16k", "32k", "64k", "128k", "256k", "512k", "1m", "2m", "4m", "8m")
    )
}
"""The most tokens of a transcript, by the length's label. Google DeepMind counts them with its own tokenizer."""
CUMULATIVE = LENGTHS["128k"]
"""The length of the files that have transcripts of all bins up to it."""
_COLUMNS = ("queries", "answer", "view_ops", "context_len", "answer_context_position")

_START = re.compile(r"\(\s*(\d+)\s*,")


def file_of(needles: int, length: int, cumulative: bool = False) -> BucketFile:
    """Return the file of a number of needles and a length.

    Args:
        cumulative: whether it has the transcripts of all bins up to the length.
    """
    if cumulative:
        which = "upto_128K"
    else:
        which = f"in_({length // 2},{length})"
    name = f"mrcr_v2p1_{needles}needle_{which}_dynamic_fewshot_text_style_fast.csv"
    return BucketFile("mrcr_v2", name, f"mrcr_v2/{name}")


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the transcripts of a file in its order. Only a few rows are in memory at a time."""
    path = task.only_file(settings, root)
    for number, row in enumerate(read_csv(path, _COLUMNS)):
        prompt = row["queries"]
        answer = row["answer"]
        request = row["view_ops"]
        tokens = row["context_len"]
        position = _START.match(row["answer_context_position"].strip())
        if not tokens.isdecimal() or int(tokens) < 1 or position is None:
            what = "'context_len' and 'answer_context_position' must be a number and a pair of numbers"
            raise InputError(f"{path}: row {number + 1}: {what}")
        yield Example(
            id=f"{task.name}-{number}",
            fields={"question": request},
            references=[answer],
            source="official",
            depth=min(int(position[1]) / int(tokens), 1.0),
            input_tokens=int(tokens),
            counter="Google DeepMind's",
            record={"answer": answer},
            messages=[{"role": "user", "content": prompt}],
            # Rows on the same transcript differ only in the request at its end.
            group=f"transcript {digest(prompt.removesuffix(request))[:12]}",
        )


_HASH = 12
"""Characters of the random string before an answer."""
_FLOORS = {
    "Floor: any reply of the transcript": dict.fromkeys(NEEDLES, 0.01),
    "Floor: any reply to the same request": {
        2: 0.51,
        4: 0.27,
        8: 0.15,
    },
}
"""Scores of repeating a reply at random, at every length, by number of needles."""

_ORDINALS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
)
_REQUEST = re.compile(
    r"User: Prepend (\w+) to the (\w+) (.+?) about (.+?) in an? (.+?) style\. Do not include"
)
_REPLY = re.compile(r"\s*Assistant:(.*?)(?=\n\nUser:|\Z)", re.DOTALL)


def score(record: ScorerInput) -> MetricValues:
    """Return the matching ratio of the texts after the random string; 0 if the output does not have that string.

    The last occurrence of the string in the output counts. The result is empty if the record has no answer.
    """
    if record.get("answer") is None:
        return {}
    answer = record["answer"].strip()
    output = record["prediction"].strip()
    start = output.rfind(answer[:_HASH])
    if not output or len(answer) < _HASH or start < 0:
        return {"score": 0.0}
    # SequenceMatcher is not symmetric: the official code gives it the answer first.
    return {
        "score": SequenceMatcher(
            a=answer[_HASH:].strip(), b=output[start + _HASH :].strip()
        ).ratio()
    }


def can_read(record: ScorerInput) -> bool:
    """Whether an output has the random string, without which every answer scores 0."""
    start = (record.get("answer") or "").strip()[:_HASH]
    return bool(record["prediction"].strip()) and start in record["prediction"]


def find_answer(messages: Sequence[Message]) -> str | None:
    """Find the reply that the last turn asks for, and put the random string before it.

    Returns None if the prompt is not one of MRCR v2's, and an empty text if it has no such reply.
    """
    prompt = messages[-1]["content"]
    requests = list(_REQUEST.finditer(prompt))
    if not requests or requests[-1][2] not in _ORDINALS:
        return None
    random_string, ordinal, kind, topic, style = requests[-1].groups()
    # The examples before the transcript have other topics, so they need not be cut off.
    asked = f"User: Write a {kind} about {topic} in {style} style."
    ends = []
    for match in re.finditer(re.escape(asked), prompt):
        ends.append(match.end())
    number = _ORDINALS.index(ordinal)
    if number < len(ends):
        reply = _REPLY.match(prompt, ends[number])
    else:
        reply = None
    return random_string + reply[1].strip() if reply else ""


def _task(needles: int, cumulative: bool = False) -> Task:
    if cumulative:
        lengths = [CUMULATIVE]
    else:
        lengths = list(LENGTHS.values())
    return Task(
        name=f"{needles}needle_upto" if cumulative else f"{needles}needle",
        alias=f"{needles}_upto" if cumulative else str(needles),
        title=f"{needles} needles, up to the length"
        if cumulative
        else f"{needles} needles",
        template=NO_TEMPLATE,
        sizes=sizes_in_tokens(lengths),
        load=load,
        score=score,
        can_read=can_read,
        sources=lambda length: (file_of(needles, length, cumulative),),
        variants={"paper": Variant(temperature=1.0)},
        record_shapes={"answer": TEXT},
        baseline=Baseline(find_answer, "I do not know."),
        **task_fields(__package__),
    )


_TASKS = tuple(map(_task, NEEDLES))
_CUMULATIVE = tuple(_task(needles, cumulative=True) for needles in NEEDLES)


_PUBLISHED = tuple(
    Published(
        model,
        "",
        length,
        {f"{needles}needle": floor for needles, floor in floors.items()},
    )
    for model, floors in _FLOORS.items()
    for length in LENGTHS.values()
)
MRCR_V2 = read_benchmark(
    __package__,
    (Category("", "", _TASKS, variants=_CUMULATIVE),),
    published=lambda: _PUBLISHED,
    floors=tuple(_FLOORS),
)
