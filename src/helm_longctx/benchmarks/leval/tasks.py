"""L-Eval's tasks and their loader.

Source: OpenLMLab/LEval at cd34b05, Baselines/LEval_config.py and Baselines/turbo16k-test.py; the data is in LEval-data.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from helm_longctx.benchmarks.leval import prompts, scoring
from helm_longctx.data.tables import read_table
from helm_longctx.tasks import NO_TEMPLATE, Category, DataRoot, InputError, JsonLines, Message, Template, Types, WebFile
from helm_longctx.tasks.benchmark_file import read_benchmark, task_fields
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import TEXTS, Baseline, Example, Settings, Task, Variant, text_group

COMMIT = "cd34b050269148aed75acbbe4a599873ad0f37e9"
COLUMNS: Types = {"input": str, "instructions": list, "outputs": list, "evaluation": str}
MEASURES = {"exact_match": "exam", "f1": "f1", "rougeL": "rouge"}
"""The value of the column `evaluation` in rows that the metrics score; other rows are for judges and people."""


class Dataset(NamedTuple):
    """A task: its official name, its name in the paper, metric, number of requests, and git's id of the file."""

    name: str
    title: str
    metric: str
    rows: int
    blob: str

    @property
    def source(self) -> WebFile:
        """The file of the task."""
        path = f"{'Closed' if self.metric == 'exact_match' else 'Open'}-ended-tasks/{self.name}.jsonl"
        url = f"https://raw.githubusercontent.com/OpenLMLab/LEval/{COMMIT}/LEval-data/{path}"
        return WebFile(url, f"leval/{path}", blob=self.blob)


DATASETS = tuple(
    Dataset(row["name"], row["title"], row["metric"], int(row["rows"]), row["blob"])
    for row in read_table(__package__, "datasets.csv")
)


@take_sample
def load(task: Task, settings: Settings, root: DataRoot, measure: str) -> Iterator[Example]:
    """Yield the questions on each document, in file order."""
    (path,) = task.paths(None)
    for number, row in enumerate(JsonLines(root / path, COLUMNS)):
        if row["evaluation"] != measure:
            continue
        questions, answers = row["instructions"], row["outputs"]
        if not (TEXTS.fits(questions) and TEXTS.fits(answers) and len(questions) == len(answers)):
            raise InputError(f"{row}: columns 'instructions' and 'outputs' must be lists of as many texts")
        for place, (asked, answer) in enumerate(zip(questions, answers, strict=True)):
            yield from _examples(task.name, f"{number}-{place}", row["input"], asked, answer)


def _examples(name: str, number: str, document: str, asked: str, answer: str) -> Iterator[Example]:
    """Yield the example of a question; of a science fiction two, about the story and about the real world."""
    group = text_group(document)
    if name != "sci_fi":
        fields = {"context": document, "question": asked, "words": str(len(answer.split()))}
        yield Example(number, fields, [answer], "official", group=group)
        return
    start = prompts.CLOSED.index("{context}")
    text = prompts.CLOSED.format(context=document, question=asked)
    story: Message = {"role": "user", "content": text}
    # The official code does not put the first answer between the two questions.
    world: Message = {"role": "user", "content": asked.replace(prompts.IN_STORY, prompts.IN_WORLD) + prompts.FACT}
    loyal, _, fact = answer.lower().partition("[fact:")
    for kind, turns, right in (("story", (story,), loyal.strip()), ("world", (story, world), fact[:-1].strip())):
        messages = ({"role": "system", "content": prompts.SYSTEM[name]}, *turns)
        context = (start, start + len(document))
        yield Example(f"{number}-{kind}", {}, [right], "official", messages=messages, group=group, context=context)


def _task(dataset: Dataset) -> Task:
    name, metric = dataset.name, dataset.metric
    closed = metric == "exact_match"
    user = prompts.PLAIN if name in ("gsm100", "codeU") else prompts.CLOSED if closed else prompts.OPEN
    system = prompts.SYSTEM.get(name, prompts.CLOSED_SYSTEM if closed else prompts.OPEN_SYSTEM)
    scorers = {"f1": scoring.score_words, "rougeL": scoring.score_summary}
    return Task(
        name=name,
        title=dataset.title,
        template=NO_TEMPLATE if name == "sci_fi" else Template(user, "", separator=""),
        load=partial(load, measure=MEASURES[metric]),
        score=partial(scoring.score_closed, task=name) if closed else scorers[metric],
        headline=(metric,),
        metrics=("rouge1", "rouge2", "rougeL") if metric == "rougeL" else (metric,),
        num_samples=dataset.rows,
        sources=lambda length: (dataset.source,),
        variants={"paper": Variant(system=None if name == "sci_fi" else system, temperature=0.0001)},
        # Prompts of the others have no words of the task by which it could be recognised.
        baseline=Baseline("span", "A") if user in (prompts.CLOSED, prompts.OPEN) and name != "sci_fi" else None,
        **task_fields(__package__),
    )


_TASKS = tuple(map(_task, DATASETS))
_CLOSED = tuple(task for task in _TASKS if task.headline == ("exact_match",))

LEVAL = read_benchmark(
    __package__,
    [
        Category("", "", _CLOSED),
        Category("open", "Open-ended", tuple(task for task in _TASKS if task not in _CLOSED)),
    ],
)
