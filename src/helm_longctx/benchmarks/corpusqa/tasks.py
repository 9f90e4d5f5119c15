"""CorpusQA's four domains at four lengths. Each question has its whole request, and a judge compares the answers.

Source: Tongyi-Zhiwen/CorpusQA at f5b5764, src/infer.py (`read_prompt_jsonl`, temperature), src/eval.py
(`get_domain_from_id`, `extract_answer`, `evaluate_one`) and CorpusQA_paper.pdf (Tables 2 and 3: lengths, numbers of
questions). A record has the reply of a judge in `judge`, or the replies of several in `jury`.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from helm_longctx.benchmarks.corpusqa import prompts
from helm_longctx.data.download import UnpublishedFile
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks import (
    NO_TEMPLATE,
    Baseline,
    Category,
    DataRoot,
    Example,
    FileRow,
    HubFile,
    JsonLines,
    Judgement,
    Message,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Types,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, judge_scores
from helm_longctx.tasks.judgement import score_silence
from helm_longctx.tasks.lengths import length_label, parse_length
from helm_longctx.tasks.prompt import read_messages
from helm_longctx.tasks.sampling import take_sample
from helm_longctx.tasks.task import TEXT_GROUP

REPOSITORY = "Tongyi-Zhiwen/CorpusQA"
COLUMNS: Types = {
    "id": str,
    "prompt": list,
    "question": str,
    "answer": (str, int, float, list),
}
QUESTION = "# Question:\n"
"""What stands between the documents and the question."""


_PUBLISHED = ("128k", "1m")
"""The lengths whose files the hub has."""


def source_of(length: int) -> HubFile | UnpublishedFile:
    """Return the file with the questions of a length."""
    label = length_label(length)
    name = f"{label}_4domains.jsonl"
    path = f"hub/{REPOSITORY.replace('/', '__')}/{name}"
    if label not in _PUBLISHED:
        return UnpublishedFile(path, f"the hub data set {REPOSITORY}")
    return HubFile(REPOSITORY, name, path)


class DomainQuestions:
    """The questions of a file by domain. One pass finds them, and only those that are asked for are kept.

    Args:
        domains: the domains, with which the ids of their questions begin.

    Attributes:
        corpora: the digests of the sets of documents that the questions of each domain are about.
    """

    def __init__(self, path: Path, domains: tuple[str, ...]):
        self._rows = JsonLines(path, COLUMNS)
        self._places: dict[str, list[int]] = defaultdict(list)
        self.corpora: dict[str, set[str]] = defaultdict(set)
        for index, row in enumerate(self._rows):
            if domain := next(
                (domain for domain in domains if row["id"].startswith(domain)), None
            ):
                self._places[domain].append(index)
                self.corpora[domain].add(_digest_documents(_messages(row)))

    def select(self, domain: str) -> Iterator[FileRow]:
        """Yield the questions of a domain in file order."""
        return self._rows.rows(self._places.get(domain, []))


_read = lru_cache(maxsize=1)(
    lambda path, domains, modified: DomainQuestions(path, domains)
)


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    domains: tuple[str, ...],
) -> Iterator[Example]:
    """Load the questions of a task's domain in file order."""
    path = root / source_of(settings.level).path
    # All domains are in one file of up to gigabytes, so it is searched once for all of them.
    questions = _read(path, domains, path.stat().st_mtime_ns if path.is_file() else 0)
    # Questions about the only set of documents are a sample of the questions about it. Their scores vary independently.
    shares = len(questions.corpora[task.name]) > 1
    for row in questions.select(task.name):
        messages = _messages(row)
        fields = {"question": row["question"]}
        if shares:
            group = f"{TEXT_GROUP}{_digest_documents(messages)[:12]}"
        else:
            group = ""
        # The official code inserts the answer into the judge's prompt with `str.format`.
        yield Example(
            id=row["id"],
            fields=fields,
            references=[str(row["answer"])],
            source="hub",
            messages=messages,
            group=group,
        )


def _digest_documents(messages: list[Message]) -> str:
    """Return a digest of the text before the question."""
    return digest(messages[-1]["content"].rpartition(QUESTION)[0])


def _messages(row: FileRow) -> list[Message]:
    return [*read_messages(f"{row}: column 'prompt'", row["prompt"])]


JUDGE = "together/deepseek-v3"
"""The official judge: `deepseek-v3` of DashScope. HELM does not have it. This is HELM's deployment of the model."""

_ANSWER = re.compile(r"The answer is: (.*)")


def find_answer(output: str) -> str:
    """Return the rest of the line after the first `The answer is: `, or else the whole output."""
    match = _ANSWER.search(output.strip())
    return match[1].strip() if match else output.strip()


def judge_prompt(record: ScorerInput) -> str:
    """Make the user turn of the judge's prompt."""
    answer = find_answer(record["prediction"])
    return prompts.JUDGE.format(
        problem=record["question"],
        answer_1=answer,
        answer_2=record["references"][0],
    )


def _read_verdict(reply: Any) -> MetricValues:
    """Return whether a reply has [[YES]] and no [[NO]]. What is no text has no score."""
    if not isinstance(reply, str):
        return {}
    return {"judge_score": float("[[YES]]" in reply and "[[NO]]" not in reply)}


score = partial(judge_scores, headline="judge_score", score=_read_verdict)
"""Computes the verdict, or the mean of a jury's verdicts. Without verdicts there is no score."""

_JUDGEMENT = Judgement(
    judge_prompt,
    lambda reply, record: _read_verdict(reply),
    prompts.SYSTEM + prompts.JUDGE,
    # The official code sets no budgets.
    max_tokens=4096,
    system=prompts.SYSTEM,
    silence_reply="[[NO]]",
)


SIZES = {
    parse_length(label): tokens
    for label, tokens in {
        "128k": 92_500,
        "1m": 905_000,
        "4m": 3_710_000,
        "10m": 7_840_000,
    }.items()
}
"""The mean number of tokens of the documents at each length."""

DOMAINS = {
    "financial_zh": ("Finance, Chinese", 83),
    "financial_en": ("Finance, English", 83),
    "education_en": ("Education", 82),
    "real_estate_en": ("Real Estate", 81),
}
"""Title and number of questions of each domain."""

_WORD = re.compile(r"[^\W\d_]{4,}|[\u4e00-\u9fff]{2}")


def answer_line(messages: Sequence[Message]) -> str | None:
    """Answer with the line that shares most words with the question, or None if the prompt is not one of CorpusQA's."""
    documents, _, asked = messages[-1]["content"].rpartition(QUESTION)
    if not documents or "The answer is:" not in asked:
        return None
    words = set(_WORD.findall(asked.partition("\n")[0].lower()))

    def count_shared(line: str) -> int:
        return len(words.intersection(_WORD.findall(line.lower())))

    best = max(documents.split("\n"), key=count_shared)
    return f"The answer is: {best.strip()[:200]}"


def _task(name: str) -> Task:
    title, questions = DOMAINS[name]
    return Task(
        name=name,
        title=title,
        template=NO_TEMPLATE,
        load=partial(load, domains=tuple(DOMAINS)),
        score=score,
        scorers=score_silence(score),
        metrics=JUDGED,
        sizes=SIZES,
        num_samples=questions,
        sources=lambda length: (source_of(length),),
        official_judge=JUDGE,
        judgement=_JUDGEMENT,
        record_shapes=REPLIES,
        baseline=Baseline(answer_line, "The answer is: []"),
        **task_fields(__package__),
    )


CORPUSQA = read_benchmark(
    __package__,
    (
        Category(
            "",
            "",
            tuple(map(_task, DOMAINS)),
            judge=f"{__package__}.judge.EquivalenceAnnotator",
        ),
    ),
)
