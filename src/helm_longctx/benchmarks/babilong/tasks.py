"""BABILong's twenty tasks with the official prompt and with less of it: facts of a bAbI story in the text of books.

There are two sets on the hub. RMT-team/babilong-1k-samples has about 1,000 samples for each task and length, and
RMT-team/babilong has 100, up to ten million tokens. The official scripts (scripts/run_*.sh) read the first set up to
32k, and the second one beyond.

Source: booydar/babilong at 7a6efee, scripts/run_model_on_babilong.py (parts of the prompt, output budget) and
babilong/metrics.py (`TASK_LABELS`, `preprocess_output`, `compare_answers`).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from helm_longctx.benchmarks.babilong import prompts
from helm_longctx.data.tables import read_table
from helm_longctx.errors import bad_argument
from helm_longctx.tasks import (
    TEXT,
    Baseline,
    Category,
    DataRoot,
    Example,
    HubDataset,
    HubFile,
    JsonArray,
    JsonLines,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    Types,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.lengths import length_label, parse_length
from helm_longctx.tasks.sampling import take_sample

_LARGE_SET = "RMT-team/babilong-1k-samples"
_LARGE_COMMIT = "fc4d1a584dfc498c37578753bee4cdd91b987ae2"
_SMALL_SET = "RMT-team/babilong"
_SMALL_COMMIT = "ee0d588794c7ac098062ee0d247c733d62e94fe2"

COLUMNS: Types = {
    "input": str,
    "question": str,
    "target": str,
}

_ROWS: dict[str, Mapping[str, int]] = {
    "0k": {"qa1": 1000, **dict.fromkeys(("qa6", "qa7", "qa8", "qa9", "qa10"), 1000)},
    "1k": {
        "qa1": 1000,
        "qa3": 862,
        "qa5": 997,
    },
    "2k": {"qa1": 1000, "qa3": 998},
    **{label: {"qa1": 1000} for label in ("4k", "8k", "16k", "32k")},
}
"""Numbers of samples in the large set by length and task, where they are not 999."""


def _in_large_set(task: str, label: str) -> bool:
    """Whether a task's samples at a length are read from the large set: all at 0k, qa1 to qa5 up to 32k."""
    return label == "0k" or (label in _ROWS and int(task.removeprefix("qa")) <= 5)


def _count_samples(task: str, label: str) -> int:
    """Return the number of samples of a task at a length."""
    if _in_large_set(task, label):
        return _ROWS[label].get(task, 999)
    return 100


def find_source(task: str, length: int) -> tuple[HubDataset | HubFile]:
    """Return the source of a task's samples at a length."""
    label = length_label(length)
    if _in_large_set(task, label):
        return (
            HubDataset(
                _LARGE_SET,
                {task: _count_samples(task, label)},
                config=label,
                labelled=False,
                commit=_LARGE_COMMIT,
            ),
        )
    # The names of the files are 64k.json, 1M.json and so on.
    return (
        HubFile(
            _SMALL_SET,
            f"data/{task}/{label.replace('m', 'M')}.json",
            f"babilong/{task}/{label}.json",
            commit=_SMALL_COMMIT,
        ),
    )


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    name: str,
) -> Iterator[Example]:
    """Yield a task's samples in file order."""
    path = task.only_file(settings, root)
    read = JsonArray if path.suffix == ".json" else JsonLines
    shots = task.demonstrations(settings)
    if shots not in (0, task.shots):
        raise bad_argument(
            task.name, "shots", shots, ["0", str(task.shots)] if task.shots else ["0"]
        )
    examples = prompts.EXAMPLES[name] if shots else ""
    for number, row in enumerate(read(path, COLUMNS)):
        # get_formatted_input strips the context and the whole prompt, whose last part is the question.
        fields = {
            "context": row["input"].strip(),
            "question": row["question"].rstrip(),
            "examples": examples,
        }
        record = {"question": row["question"]}
        yield Example(
            id=f"{task.name}-{number}",
            fields=fields,
            references=[row["target"]],
            source="official",
            record=record,
        )


_ROWS_BY_NAME = {row["name"]: row for row in read_table(__package__, "tasks.csv")}
LABELS = {name: frozenset(row["labels"].split()) for name, row in _ROWS_BY_NAME.items()}
"""The possible answers of each task, in lower case."""

_ENDS = (".", "<context>", "<example>")
"""The scored part of an output ends before these texts."""


def _find_labels(output: str, labels: Collection[str]) -> set[str]:
    """Return the labels in the scored part of an output."""
    text = output.lower()
    for end in _ENDS:
        text = text.partition(end)[0]
    return {label for label in labels if label in text}


def can_read(record: ScorerInput, labels: Collection[str]) -> bool:
    """Whether the scored part of an output has a label of the task."""
    return bool(_find_labels(record["prediction"], labels))


def score_label(record: ScorerInput, labels: Collection[str]) -> MetricValues:
    """Return whether the output has exactly the labels of the target.

    Labels in the question are ignored, because they are never the answer. A target with a comma, as in qa8, has several
    labels, except the routes of qa19: these are labels themselves. Without the question there is no score.
    """
    if "question" not in record:
        return {}
    target = next(iter(record["references"]), "").lower()
    asked = set()
    for label in labels:
        if label in record["question"].lower():
            asked.add(label)
    named = _find_labels(record["prediction"], labels) - asked
    if "," in target and len(target) > len("n,e"):
        parts = target.split(",")
    else:
        parts = [target]
    return {"accuracy": float(len(named) == len(parts) and named.issuperset(parts))}


_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[^.!?\n]+")


def _find_label(
    template: Template,
    labels: Sequence[str],
    messages: Sequence[Message],
) -> str | None:
    """Return a label of the last sentence that has one, and the most words of the question.

    Args:
        labels: the task's labels in lower case. Those in the question are never the answer.
    """
    fields = template.parse(messages[-1]["content"])
    if fields is None:
        return None
    words = set(_WORD.findall(fields["question"].lower()))
    possible = [label for label in labels if label not in words] or list(labels)
    best = ""
    most = -1
    # Of several best sentences, the last one counts.
    for sentence in reversed(_SENTENCE.findall(fields["context"].lower())):
        if any(label in sentence for label in possible):
            shared = len(words.intersection(_WORD.findall(sentence)))
            if shared > most:
                best = sentence
                most = shared
    for label in possible:
        if label in best:
            return label
    return possible[0]


MAIN = tuple(f"qa{number}" for number in range(1, 6))

_TOKENS = {f"{k}k": k * 1000 for k in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)} | {
    "1m": 10**6,
    "10m": 10**7,
}
"""The number of GPT-2's tokens in a sample of each length. At 0k there are only the facts."""


_PARTS = {"instruction": "Instruction Alone", "bare": "Bare Question"}


_USERS = {
    "": "{instruction}\n\n{{examples}}\n\n{post_prompt}\n\n",
    # The parts that are left out are empty, but the official template keeps the line breaks around them.
    "instruction": "{instruction}\n\n\n\n\n\n",
    "bare": "",
}


def _task(name: str, part: str = "") -> Task:
    before = _USERS[part].format(
        instruction=prompts.INSTRUCTIONS[name], post_prompt=prompts.POST_PROMPTS[name]
    )
    template = Template.whole(before + prompts.USER)
    number = int(name.removeprefix("qa"))
    longest = 0
    if number <= 10:
        longest = 10**7 if number <= 5 else 10**6
    sizes = {}
    for label, tokens in _TOKENS.items():
        if tokens <= longest:
            sizes[parse_length(label)] = tokens
    title = f"{name.upper()} {_ROWS_BY_NAME[name]['title']}"
    if part in _PARTS:
        title += f", {_PARTS[part]}"
    return Task(
        name=f"{name}_{part}" if part else name,
        alias=name if part else "",
        title=title,
        template=template,
        load=partial(load, name=name),
        score=partial(score_label, labels=LABELS[name]),
        can_read=partial(can_read, labels=LABELS[name]),
        sizes=sizes,
        num_samples={
            length: _count_samples(name, length_label(length)) for length in sizes
        },
        shots=0 if part else prompts.EXAMPLES[name].count("<example>"),
        sources=partial(find_source, name),
        record_shapes={"question": TEXT},
        baseline=Baseline(
            partial(_find_label, template, sorted(LABELS[name])), min(LABELS[name])
        ),
        **task_fields(__package__),
    )


_FURTHER = tuple(name for name in LABELS if name not in MAIN)
_CATEGORIES = (
    Category("", "", tuple(map(_task, MAIN))),
    Category("more", "Further Tasks", tuple(map(_task, _FURTHER)), averaged=False),
    *(
        Category(part, title, main, further, averaged=False)
        for part, title in _PARTS.items()
        for main, further in [
            [tuple(_task(name, part) for name in names) for names in (MAIN, _FURTHER)]
        ]
    ),
)

BABILONG = read_benchmark(__package__, _CATEGORIES)
