"""FLenQA's tasks: loader, scorer and table.

Source: alonj/Same-Task-More-Tokens at 5a1691c, FLenQA analysis.ipynb (`prompt_structures`, `gpt_wrapper`,
`response_analysis`); the hub data set alonj/FLenQA, split `eval`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from helm_longctx.benchmarks.flenqa import prompts
from helm_longctx.tasks import (
    TEXT,
    TEXTS,
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
    Template,
    Types,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.sampling import take_sample

LENGTHS = (250, 500, 1000, 2000, 3000)
PROMPTS = 800
"""Prompts of a task at a length: 100 questions with two kinds of padding and four positions of the facts."""
SOURCE = HubDataset(
    "alonj/FLenQA",
    {"eval": 3 * PROMPTS * len(LENGTHS)},
    labelled=False,
    commit="d3ac83afb4dd5bcf1aad4fbfd2c85c13c1d97941",
    files={"eval": ("data/eval-00000-of-00001-e3c7225e84e4d34b.parquet",)},
)
_COLUMNS: Types = {
    "dataset": str,
    "global_sample_id": int,
    "assertion/question": str,
    "mixin": str,
    "label": str,
    "padding_type": str,
    "dispersion": str,
    "ctx_size": int,
}

_DEPTHS = {
    "first": 0.0,
    "middle": 0.5,
    "last": 1.0,
}
"""The depth of the facts by the column `dispersion`, whose fourth value is `random`."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WORD = re.compile(r"\w{4,}")
_EARLY = 10
"""Number of characters in which an answer counts as given before the reasoning."""


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    dataset: str,
) -> Iterator[Example]:
    """Yield the prompts of a data set at a length, in file order."""
    ruled = dataset == "Simplified RuleTaker"
    for row in JsonLines(root / SOURCE.paths[0], _COLUMNS):
        if row["dataset"] != dataset or row["ctx_size"] != settings.level:
            continue
        facts = row.get("statement" if ruled else "facts")
        if not TEXTS.fits(facts) or (ruled and row.get("rule") is None):
            raise InputError(
                f"{row}: a row of {dataset} needs {'statement and rule' if ruled else 'facts'}"
            )
        fields = {"context": row["mixin"], "question": row["assertion/question"]}
        yield Example(
            id=f"{row['global_sample_id']}-{row['padding_type']}-{row['dispersion']}",
            # The official prompt shows a list of rules as Python prints it.
            fields={**fields, "rule": str(row["rule"])} if ruled else fields,
            references=[row["label"]],
            source="hub",
            # The shortest texts have no padding.
            depth=_DEPTHS.get(row["dispersion"])
            if settings.level > LENGTHS[0]
            else None,
            record={"dispersion": row["dispersion"], "facts": facts},
            group=str(row["global_sample_id"]),
        )


def _normalize(text: str) -> str:
    """Return a text in lower case without articles. Punctuation stays, because the official code does not remove it."""
    return " ".join(_ARTICLES.sub(" ", text.lower()).split())


def _find_word(output: str) -> str | None:
    """Return the last `true` or `false` of an answer, or None if it has neither."""
    answer = _normalize(_normalize(output)).replace("not true", "false")
    starts = {}
    for word in ("true", "false"):
        starts[word] = answer.rfind(word)
    last = max(starts, key=starts.__getitem__)
    return last if starts[last] >= 0 else None


def score(record: ScorerInput, reasoned: bool) -> MetricValues:
    """Return whether the last `true` or `false` of an answer is right, and for reasoning how it uses the facts."""
    text = _normalize(record["prediction"])
    named = _find_word(record["prediction"])
    right = float(
        named is not None
        and any(named in label.lower() for label in record["references"])
    )
    scores = {"accuracy": right}
    if record.get("dispersion") == "random":
        scores["accuracy_random"] = right
    if reasoned and record.get("facts") is not None:
        scores["cot_coverage"] = float(
            sum(_normalize(fact) in text for fact in record["facts"])
        )
        scores["early_response"] = float(named is not None and named in text[:_EARLY])
    return scores


def _find_words(template: Template, messages: Sequence[Message]) -> str | None:
    """Answer true if one paragraph has all words of the question, or return None for another prompt."""
    fields = template.parse(messages[-1]["content"])
    if fields is None:
        return None
    words = set(_WORD.findall(fields["question"].lower()))
    paragraphs = fields["context"].split("\n")
    return str(any(words.issubset(_WORD.findall(part.lower())) for part in paragraphs))


def _task(name: str, dataset: str, reasoned: bool) -> Task:
    template = Template.whole(
        (prompts.REASONED if reasoned else prompts.DIRECT)[dataset]
    )
    return Task(
        name=f"{name}_cot" if reasoned else name,
        alias=name if reasoned else "",
        title=f"{dataset}, CoT" if reasoned else dataset,
        template=template,
        load=partial(load, dataset=dataset),
        score=partial(score, reasoned=reasoned),
        can_read=lambda record: _find_word(record["prediction"]) is not None,
        metrics=(
            "accuracy",
            "accuracy_random",
            *(("cot_coverage", "early_response") if reasoned else ()),
        ),
        sizes=sizes_in_tokens(LENGTHS),
        num_samples=PROMPTS,
        sources=lambda length: (SOURCE,),
        record_shapes={"dispersion": TEXT, "facts": TEXTS},
        baseline=Baseline(partial(_find_words, template), "True"),
        **task_fields(__package__),
    )


DATASETS = {
    "ruletaker": "Simplified RuleTaker",
    "monorel": "MonoRel",
    "pir": "PIR",
}
"""The official names of the tasks."""

FLENQA = read_benchmark(
    __package__,
    [
        Category(
            name,
            title,
            tuple(
                _task(task, dataset, bool(name)) for task, dataset in DATASETS.items()
            ),
        )
        for name, title in (("", ""), ("cot", "CoT"))
    ],
)
