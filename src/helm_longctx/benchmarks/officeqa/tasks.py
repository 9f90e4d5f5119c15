"""OfficeQA's questions with pages of the issues that they are about.

Source: databricks/officeqa at 7b9a3c1, README.md (columns, and how addresses name files) and reward.py; the hub data set
databricks/officeqa at 8ecbf18. A record has the right answer in `references`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from helm_longctx.benchmarks.officeqa import prompts
from helm_longctx.benchmarks.officeqa.documents import (
    PagedDocument,
    make_context,
    read_pages,
)
from helm_longctx.benchmarks.officeqa.scoring import find_answer, is_right
from helm_longctx.data.hub import HubFiles
from helm_longctx.data.tables import read_csv, read_table
from helm_longctx.tasks import (
    STANDARD,
    Baseline,
    Category,
    DataRoot,
    Example,
    HubFile,
    InputError,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    Variant,
    read_benchmark,
    sizes_in_tokens,
    task_fields,
)
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import text_group
from helm_longctx.tasks.token_estimate import estimate_tokens

_REPO = "databricks/officeqa"
_COMMIT = "8ecbf18d3833daf4750a903d14963e4c4c1d4cd8"
_SETTING = "HELM_LONGCTX_OFFICEQA_REPO"

QUESTIONS = HubFile(
    repo=_REPO,
    name="officeqa_full.csv",
    path="officeqa/officeqa_full.csv",
    setting=_SETTING,
    commit=_COMMIT,
    sha256="b0b270d15acdd04dcdc6ca389f089010ffe2b8453dbb400343229ea73b66c6d7",
)
"""The questions of OfficeQA Full. Those that are hard are OfficeQA Pro."""
_COLUMNS = ("uid", "question", "answer", "source_docs", "source_files", "difficulty")
_HARD = "hard"

_FOLDER = "treasury_bulletins_parsed/jsons"


def _list_documents(kinds: tuple[str, ...]) -> HubFiles:
    """Return the parsed issues that the questions of some kinds are about."""
    names = []
    for row in read_table(__package__, "documents.csv"):
        if row["benchmark"] in kinds:
            names.append(f"{_FOLDER}/treasury_bulletin_{row['document']}.json")
    return HubFiles(
        repo=_REPO,
        names=tuple(names),
        path=f"officeqa/{_FOLDER}",
        setting=_SETTING,
        commit=_COMMIT,
    )


DOCUMENTS = {
    "pro": _list_documents(("pro",)),
    "full": _list_documents(("pro", "full")),
}
"""The issues by benchmark."""

_MONTHS = {
    name: number
    for number, name in enumerate(
        (
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
        ),
        1,
    )
}
_ADDRESS = re.compile(
    r"/(?P<month>[a-z]+)-(?P<year>\d{4})-\d+\?(?:[^?\s]*&)?page=(?P<page>\d+)"
)
_FILE = re.compile(r"treasury_bulletin_\d{4}_\d{2}\.txt")

_FILL = 0.95
"""Share of the length that a prompt fills, by the estimate of tokens."""
_LENGTHS = (
    0,
    *(STANDARD[label] for label in ("32k", "64k", "128k", "256k", "512k", "1m")),
    2 * STANDARD["1m"],
)

TOLERANCES = {
    "accuracy": 0.0,
    "accuracy_0_1": 0.001,
    "accuracy_1": 0.01,
    "accuracy_5": 0.05,
}
"""The metrics with their relative tolerances. The numbers in the names are percentages."""


class _Asked(NamedTuple):
    """What a question is about.

    Args:
        pages: the numbers of the pages by file.
    """

    files: list[str]
    pages: Mapping[str, frozenset[int]]


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    *,
    is_hard: bool,
) -> Iterator[Example]:
    """Yield the questions in file order, those of OfficeQA Pro or all."""
    rows = read_csv(root / QUESTIONS.path, _COLUMNS)
    for number, row in enumerate(rows, 1):
        if is_hard and row["difficulty"] != _HARD:
            continue
        where = f"{root / QUESTIONS.path}: row {number}"
        yield _make_example(settings, root, row, _read_sources(where, row))


def _read_sources(where: str, row: Mapping[str, str]) -> _Asked:
    files = row["source_files"].split()
    pages: dict[str, set[int]] = {file: set() for file in files}
    for file in files:
        if not _FILE.fullmatch(file):
            raise InputError(f"{where}: source_files has no name of an issue: {file!r}")
    for address in row["source_docs"].split():
        match = _ADDRESS.search(address)
        file = _name_file(match) if match else ""
        if match is None or file not in pages:
            raise InputError(
                f"{where}: source_docs must name pages of the source files, found {address!r}"
            )
        pages[file].add(int(match["page"]))
    return _Asked(
        files=files,
        pages={file: frozenset(numbers) for file, numbers in pages.items()},
    )


def _name_file(address: re.Match[str]) -> str:
    """Return the name of the issue that an address of the archive names."""
    month = _MONTHS.get(address["month"], 0)
    return f"treasury_bulletin_{address['year']}_{month:02}.txt"


def _make_example(
    settings: Settings,
    root: DataRoot,
    row: Mapping[str, str],
    asked: _Asked,
) -> Example:
    sources = []
    for file in asked.files:
        path = root / f"officeqa/{_FOLDER}/{file.removesuffix('.txt')}.json"
        source = PagedDocument(file, read_pages(path), asked.pages[file])
        if lacking := source.wanted - {page.number for page in source.pages}:
            raise InputError(f"{path}: it has no page {min(lacking)}")
        sources.append(source)
    around = estimate_tokens(prompts.SYSTEM + prompts.PROMPT + row["question"])
    context = make_context(sources, _FILL * settings.level - around)
    depth = None
    if context.start is not None:
        depth = context.start / len(context.text)
    return Example(
        id=row["uid"],
        fields={"context": context.text, "question": row["question"]},
        references=[row["answer"]],
        source="hub",
        depth=depth,
        group=text_group(" ".join(asked.files)),
    )


def score(record: ScorerInput) -> MetricValues:
    """Return whether an answer is right, with each tolerance."""
    gold = record["references"][0]
    scores = {}
    for name, tolerance in TOLERANCES.items():
        scores[name] = float(is_right(gold, record["prediction"], tolerance))
    return scores


def _can_read(record: ScorerInput) -> bool:
    """Whether an answer has a text between tags, or is one without them."""
    return bool(find_answer(record["prediction"]).strip())


def _make_task(benchmark: str, title: str, questions: int) -> Task:
    documents = DOCUMENTS[benchmark]
    return Task(
        name=f"{benchmark}_questions",
        title=title,
        template=Template.whole(prompts.PROMPT),
        load=partial(load, is_hard=benchmark == "pro"),
        score=score,
        can_read=_can_read,
        sizes=sizes_in_tokens(_LENGTHS),
        sources=lambda length: (QUESTIONS, documents),
        num_samples=questions,
        variants={"paper": Variant(system=prompts.SYSTEM)},
        baseline=Baseline(
            "span", "<FINAL_ANSWER>\nUnable to determine\n</FINAL_ANSWER>"
        ),
        **task_fields(__package__),
    )


OFFICEQA = read_benchmark(
    __package__,
    [
        Category("", "", (_make_task("pro", "OfficeQA Pro", 133),)),
        Category(
            "full", "Full", (_make_task("full", "OfficeQA Full", 246),), averaged=False
        ),
    ],
)
