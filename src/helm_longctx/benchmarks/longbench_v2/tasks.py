"""LongBench v2's tasks, without reasoning, with reasoning in a first request, and without the text; and their scores.

Source: the hub data set THUDM/LongBench-v2; THUDM/LongBench at 2e00731, pred.py (`get_pred`; `extract_answer` reads the
letter) and result.py. A record has the question's `difficulty` and `length`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from helm_longctx.benchmarks.longbench_v2 import prompts
from helm_longctx.tasks import (
    TEXT,
    Baseline,
    Category,
    DataRoot,
    Example,
    FollowUp,
    HubDataset,
    InputError,
    JsonLines,
    Message,
    MetricValues,
    Reasoning,
    ScorerInput,
    Settings,
    Task,
    Template,
    Types,
    Variant,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import text_group
from helm_longctx.tasks.words import find_plain_letter, nearest_choice

QUESTIONS = 503
SOURCE = HubDataset(
    "THUDM/LongBench-v2",
    {"train": QUESTIONS},
    # The organization THUDM is called zai-org now.
    repo="zai-org/LongBench-v2",
    labelled=False,
    commit="2b48e494f2c7a2f0af81aae178e05c7e1dde0fe9",
    files={"train": ("data.json",)},
    sha256={
        "data.json": "15d61c22d92c96900b3c4948b6aeea218d3214b676a65df48e7b8555604c7fe2"
    },
)
PATH = f"{SOURCE.folder}/train.jsonl"
LETTERS = ("A", "B", "C", "D")
ANSWER_TOKENS = 128
REASONING = "$COT$"
"""What stands for the first answer in the second request."""
COLUMNS: Types = {
    **dict.fromkeys(
        ("_id", "difficulty", "length", "question", "answer", "context"), str
    ),
    **{f"choice_{letter}": str for letter in LETTERS},
}

_PLACEHOLDERS = {"question": "$Q$", **{letter: f"$C_{letter}$" for letter in LETTERS}}


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    follow_up: str | None = None,
) -> Iterator[Example]:
    """Load the questions in file order.

    Args:
        follow_up: the template of the second request.
    """
    for row in JsonLines(root / PATH, COLUMNS):
        if row["answer"] not in LETTERS:
            raise InputError(
                f"question {row['_id']}: column 'answer' must be one of {', '.join(LETTERS)}"
            )
        texts = {"context": row["context"], "question": row["question"]}
        for letter in LETTERS:
            texts[letter] = row[f"choice_{letter}"]
        fields = {}
        for name, text in texts.items():
            fields[name] = text.strip()
        # Texts can contain placeholders, such as the formula `$Q$` in a paper. The official code replaces one after the
        # other in the whole prompt, so also in texts that it has inserted before.
        for index, name in enumerate(fields):
            for later in [*fields][index + 1 :]:
                fields[name] = fields[name].replace(
                    _PLACEHOLDERS[later], texts[later].strip()
                )
        about = {"difficulty": row["difficulty"], "length": row["length"]}
        if follow_up:
            second = _make_follow_up(follow_up, fields)
        else:
            second = None
        group = text_group(fields["context"])
        yield Example(
            id=row["_id"],
            fields=fields,
            references=[row["answer"]],
            source="hub",
            record=about,
            group=group,
            follow_up=second,
        )


def _make_follow_up(template: str, fields: Mapping[str, str]) -> FollowUp:
    """Return the second request of a question: the template with the first answer instead of its reasoning."""
    # The official code replaces this placeholder last, so also in a question or a choice that contains it.
    prompt = template.format(**fields, reasoning=REASONING)
    return FollowUp(prompt.split(REASONING), ANSWER_TOKENS)


_DIFFICULTIES = ("easy", "hard")
_LENGTHS = ("short", "medium", "long")
BY_CLASS = tuple(f"accuracy_{name}" for name in (*_DIFFICULTIES, *_LENGTHS))

_PATTERNS = tuple(
    map(
        re.compile,
        (r"The correct answer is \(([A-D])\)", r"The correct answer is ([A-D])"),
    )
)


def find_letter(answer: str) -> str | None:
    """Return the letter of the first sentence in the required form, with or else without brackets, or None."""
    text = answer.replace("*", "")
    for pattern in _PATTERNS:
        match = pattern.search(text)
        if match:
            return match[1]
    return None


def score(record: ScorerInput) -> MetricValues:
    """Return whether the letter is right: for all questions, and for questions of the same difficulty and length."""
    letter = find_letter(record["prediction"])
    accuracy = float(letter in record["references"])
    named = letter or find_plain_letter(record["prediction"], "".join(LETTERS))
    # As in the official tables, whatever is neither easy nor short or medium is hard and long.
    if record.get("difficulty") == "easy":
        difficulty = "easy"
    else:
        difficulty = "hard"
    if record.get("length") in _LENGTHS:
        length = record.get("length")
    else:
        length = "long"
    return {
        "accuracy": accuracy,
        "accuracy_compensated": 0.25 if letter is None else accuracy,
        "accuracy_lenient": float(named in record["references"]),
        f"accuracy_{difficulty}": accuracy,
        f"accuracy_{length}": accuracy,
    }


_REASONING_TOKENS = 1024

_CHOICES = re.compile(
    r"What is the correct answer to this question: .*\nChoices:\n\(A\) (.*)\n\(B\) (.*)\n\(C\) (.*)\n\(D\) (.*)\n\n",
    re.DOTALL,
)


def _find_choice(messages: Sequence[Message]) -> str | None:
    """Find the choice that the reasoning names, or else the choice with the largest share of long words from the text.

    Returns None if the prompt is not one of LongBench v2's.
    """
    prompt = messages[-1]["content"]
    choices = _CHOICES.search(prompt)
    if choices is None:
        return None
    text = prompt[: choices.start()]
    reasoning = prompt[choices.end() :]
    return f"The correct answer is ({find_letter(reasoning) or LETTERS[nearest_choice(text, choices.groups())]})"


def _ask_to_reason(example: Example) -> Example:
    """Return a question with the prompts of `COT`: for reasoning, and for the answer from it."""
    prompt = COT.prompt(example)
    return replace(
        example,
        messages=prompt.messages,
        context=prompt.context,
        follow_up=_make_follow_up(prompts.COT_ANSWER, example.fields),
        max_tokens=_REASONING_TOKENS,
    )


def _task(
    name: str,
    title: str,
    template: str,
    follow_up: str | None = None,
) -> Task:
    return Task(
        name=name,
        title=title,
        template=Template.whole(template),
        load=partial(load, follow_up=follow_up),
        score=score,
        can_read=lambda record: find_letter(record["prediction"]) is not None,
        metrics=("accuracy", "accuracy_compensated", "accuracy_lenient", *BY_CLASS),
        max_tokens=_REASONING_TOKENS if follow_up else ANSWER_TOKENS,
        num_samples=QUESTIONS,
        sources=lambda length: (SOURCE,),
        variants={"paper": Variant(temperature=0.1)},
        record_shapes={"difficulty": TEXT, "length": TEXT},
        baseline=Baseline(_find_choice, "The correct answer is (A)"),
        **task_fields(__package__),
    )


COT = _task("cot", "With CoT", prompts.COT, prompts.COT_ANSWER)
_ZERO_SHOT = replace(
    _task("0shot", "Zero-shot", prompts.ZERO_SHOT),
    reasoning=Reasoning(_ask_to_reason, _REASONING_TOKENS),
)
_NO_CONTEXT = _task("no_context", "Without the text", prompts.NO_CONTEXT)


LONGBENCH_V2 = read_benchmark(
    __package__, (Category("", "", (_ZERO_SHOT,), variants=(COT, _NO_CONTEXT)),)
)
