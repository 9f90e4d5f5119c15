"""MRCR v2's tasks, its score and the floors that its README gives.

Source: google-deepmind/eval_hub at 67b7fd2, eval_hub/mrcr_v2: run_evaluation.py (`mrcr_v2_metric`), README.md (floors),
and analysis_utils.py (how the lexical baseline finds the answer).
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from helm_longctx.benchmarks.mrcr_v2.data import CUMULATIVE, LENGTHS, NEEDLES, file_of, load
from helm_longctx.tasks import NO_TEMPLATE, TEXT, Baseline, Category, Message, Published, read_benchmark
from helm_longctx.tasks.task import Record, Scores, Task, Variant

HASH = 12
"""Characters of the random string before an answer."""
BUDGET = 4096
"""The output budget in tokens; the official code sets none."""
MAX_SAMPLES = 10_000
"""A limit on the number of rows, larger than any file needs."""
FLOORS = {
    "Floor: any reply of the transcript": dict.fromkeys(NEEDLES, 0.01),
    "Floor: any reply to the same request": {2: 0.51, 4: 0.27, 8: 0.15},
}
"""Scores of repeating a reply at random, at every length, by number of needles."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_REQUEST = re.compile(r"User: Prepend (\w+) to the (\w+) (.+?) about (.+?) in an? (.+?) style\. Do not include")
_REPLY = re.compile(r"\s*Assistant:(.*?)(?=\n\nUser:|\Z)", re.DOTALL)


def score(record: Record) -> Scores:
    """Return the matching ratio of the texts after the random string; 0 if the output does not have that string.

    The last occurrence of the string in the output counts. The result is empty if the record has no answer.
    """
    if record.get("answer") is None:
        return {}
    answer, output = record["answer"].strip(), record["prediction"].strip()
    place = output.rfind(answer[:HASH])
    if not output or len(answer) < HASH or place < 0:
        return {"score": 0.0}
    # SequenceMatcher is not symmetric: the official code gives it the answer first.
    return {"score": SequenceMatcher(a=answer[HASH:].strip(), b=output[place + HASH :].strip()).ratio()}


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
    places = [match.end() for match in re.finditer(re.escape(asked), prompt)]
    number = _ORDINALS.index(ordinal)
    reply = _REPLY.match(prompt, places[number]) if number < len(places) else None
    return random_string + reply[1].strip() if reply else ""


def _task(needles: int, cumulative: bool = False) -> Task:
    lengths = [CUMULATIVE] if cumulative else list(LENGTHS.values())
    return Task(
        name=f"{needles}needle_upto" if cumulative else f"{needles}needle",
        alias=f"{needles}_upto" if cumulative else str(needles),
        title=f"{needles} needles, up to the length" if cumulative else f"{needles} needles",
        template=NO_TEMPLATE,
        sizes={length: length for length in lengths},
        unit="tokens",
        load=load,
        score=score,
        headline=("score",),
        metrics=("score",),
        max_tokens=BUDGET,
        num_samples=MAX_SAMPLES,
        sources=lambda length: (file_of(needles, length, cumulative),),
        chat=True,
        variants={"paper": Variant(temperature=1.0)},
        cut="nothing",
        record_shapes={"answer": TEXT},
        baseline=Baseline(find_answer, "I do not know."),
    )


_TASKS = tuple(map(_task, NEEDLES))
_CUMULATIVE = tuple(_task(needles, cumulative=True) for needles in NEEDLES)


def published_floors() -> tuple[Published, ...]:
    """Return the floors in the form of models' results, at each length."""
    return tuple(
        Published(model, "", length, {f"{needles}needle": floor for needles, floor in floors.items()})
        for model, floors in FLOORS.items()
        for length in LENGTHS.values()
    )


MRCR_V2 = read_benchmark(
    __package__, (Category("", "", _TASKS, variants=_CUMULATIVE),), published=published_floors, floors=tuple(FLOORS)
)
