"""LongCodeQA's questions: loader, scorers and table.

Source: Zteefano/long-code-bench at c403924, src/long_code_bench/inference/codeqa_eval.py (`_parse_final_answer`); its
branch codeQA at d7a9f2d, codeqa.py and divide_into_buckets.py (columns, lengths); the hub data set Steefano/LCB at
989d5ef.
NeMo Gym's form: NVIDIA-NeMo/Gym at 07d6b0d, benchmarks/longcodebench/prepare.py and resources_servers/mcqa/app.py.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from helm_longctx.benchmarks.longcodebench.prompts import POSTFIX
from helm_longctx.errors import ShapeError
from helm_longctx.tasks import (
    Baseline,
    Category,
    DataRoot,
    Example,
    HubZip,
    JsonArray,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    Types,
    Variant,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.lengths import length_label, parse_length
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import text_group
from helm_longctx.tasks.words import nearest_choice

_COMMIT = "989d5eff750d65a72c522e47f8f745ef2e22906b"
COLUMNS: Types = dict.fromkeys(("prompt", "repo_text", "correct_letter"), str)
FILES = {
    "32k": 113,
    "64k": 76,
    "128k": 92,
    "256k": 65,
    "512k": 47,
    "1m": 50,
}
"""The number of questions at each length."""
SAMPLES = {parse_length(label): count for label, count in FILES.items()}

_FINAL = re.compile(r"Final Answer:\s*([ABCD])", re.IGNORECASE)
_LAST = re.compile(r"\b([ABCD])\s*$", re.IGNORECASE)
_TEXT = "\\text{"
_BOXED = (
    re.compile(r"[^A-Za-z]*([A-Z])[^A-Za-z]*$"),
    re.compile(r"\s*([A-Z])\s*[:).\-]"),
)
_CHOICES = re.compile(
    r"Question:\n.*\nA\) (.*)\nB\) (.*)\nC\) (.*)\nD\) ([^\n]*)", re.DOTALL
)


def source_of(length: int) -> HubZip:
    """Return the member of the archive that has the questions at a length."""
    name = f"{length_label(length).upper()}.json"
    return HubZip(
        "Steefano/LCB",
        "LongCodeQA.zip",
        f"LQA/{name}",
        f"longcodebench/{name}",
        commit=_COMMIT,
        sha256="0b31cf93a744d659e059056e6cd03bc7bb8d2601bad11e28d6b97dbfddf8d41a",
    )


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    boxed: bool,
) -> Iterator[Example]:
    """Yield the questions at a length in file order, with their own prompts.

    Args:
        boxed: whether the prompt is NeMo Gym's.
    """
    for number, row in enumerate(JsonArray(task.only_file(settings, root), COLUMNS)):
        if boxed:
            prompt = row["prompt"].strip()
        else:
            prompt = row["prompt"]
        context = row["repo_text"].strip()
        if not context or context not in prompt:
            raise ShapeError(
                f"{row}: column 'prompt' must contain the text of column 'repo_text'"
            )
        before, _, after = prompt.partition(context)
        fields = {
            "goal": before,
            "context": context,
            "question": after + POSTFIX * boxed,
        }
        yield Example(
            id=str(number),
            fields=fields,
            references=[row["correct_letter"]],
            source="hub",
            group=text_group(context),
        )


def _find_letter(answer: str) -> str | None:
    """Return the letter after `Final Answer:`, or else the one at the end, or None if there is none."""
    match = _FINAL.search(answer) or _LAST.search(answer.strip())
    return match[1].upper() if match else None


def find_boxed_letter(answer: str) -> str | None:
    r"""Return the letter from A to D in the last `\boxed{…}`, alone or before a text, or None if there is none."""
    _, box, rest = answer.strip().rpartition("\\boxed{")
    depth = 1
    for end, character in enumerate(rest if box else ""):
        depth += (character == "{") - (character == "}")
        if not depth:
            inner = _unwrap(rest[:end])
            for pattern in _BOXED:
                match = pattern.match(inner)
                if match:
                    return match[1] if match[1] in "ABCD" else None
            return None
    return None


def _unwrap(text: str) -> str:
    r"""Return a text without white space at its ends and without each `\text{…}` around the whole of it."""
    start = 0
    end = len(text)
    while True:
        while start < end and text[start].isspace():
            start += 1
        while start < end and text[end - 1].isspace():
            end -= 1
        if end - start <= len(_TEXT) or not text.startswith(_TEXT, start, end):
            return text[start:end]
        if text[end - 1] != "}":
            return text[start:end]
        start += len(_TEXT)
        end -= 1


def score(record: ScorerInput, boxed: bool) -> MetricValues:
    """Return whether the answer's letter is the right one."""
    letter = _find(record, boxed)
    gold = [
        letter.strip().upper() if boxed else letter for letter in record["references"]
    ]
    return {"accuracy": float(letter is not None and letter in gold)}


def can_read(record: ScorerInput, boxed: bool) -> bool:
    """Whether an answer has a letter in the required form."""
    return _find(record, boxed) is not None


def _find(record: ScorerInput, boxed: bool) -> str | None:
    if boxed:
        return find_boxed_letter(record["prediction"])
    return _find_letter(record["prediction"])


def _answer_choice(messages: Sequence[Message], boxed: bool) -> str | None:
    """Answer with the choice whose long words are most in the repository, or None if the prompt is not LongCodeQA's."""
    prompt = messages[-1]["content"]
    choices = next(_CHOICES.finditer(prompt, max(prompt.rfind("Question:\n"), 0)), None)
    is_own = (
        "ONLY the letter associated to the question" in prompt
        and prompt.endswith(POSTFIX) == boxed
    )
    if choices is None or not is_own:
        return None
    letter = "ABCD"[nearest_choice(prompt[: choices.start()], choices.groups())]
    if boxed:
        return f"Answer: \\boxed{{{letter}}}"
    return f"Final Answer: {letter}"


def _task(name: str, title: str, boxed: bool) -> Task:
    return Task(
        name=name,
        title=title,
        template=Template.whole("{goal}{context}{question}"),
        load=partial(load, boxed=boxed),
        score=partial(score, boxed=boxed),
        can_read=partial(can_read, boxed=boxed),
        sizes=sizes_in_tokens(SAMPLES),
        num_samples=SAMPLES,
        sources=lambda length: (source_of(length),),
        variants={"paper": Variant() if boxed else Variant(temperature=0.1)},
        baseline=Baseline(
            partial(_answer_choice, boxed=boxed), r"Answer: \boxed{A}" if boxed else "A"
        ),
        **task_fields(__package__),
    )


LONGCODEBENCH = read_benchmark(
    __package__,
    [
        Category("", "", (_task("qa", "LongCodeQA", boxed=False),)),
        Category(
            "gym",
            "NeMo Gym",
            (_task("qa_gym", "LongCodeQA, NeMo Gym", boxed=True),),
            averaged=False,
        ),
    ],
)
