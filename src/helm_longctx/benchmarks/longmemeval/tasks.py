"""LongMemEval's three files of chats, written in several forms, and the judge's prompt and label.

Source: xiaowu0162/LongMemEval at 9e0b455, src/generation/run_generation.py (`prepare_prompt`), run_generation.sh,
src/evaluation/evaluate_qa.py and print_qa_metrics.py; the hub data set xiaowu0162/longmemeval-cleaned. A record has the
`question_type`, whether the question is an `abstention` question, and the reply of a judge in `judge`, or the
replies of several in `jury`.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from helm_longctx.benchmarks.longmemeval import prompts
from helm_longctx.data.jsonl import Row
from helm_longctx.tasks import (
    TEXTS,
    Baseline,
    Category,
    DataRoot,
    Example,
    FileRow,
    HubFile,
    InputError,
    JsonArray,
    Judgement,
    MetricValues,
    ScorerInput,
    Settings,
    Shape,
    Task,
    Template,
    Types,
    are_all,
    is_text,
    read_benchmark,
    task_fields,
)
from helm_longctx.tasks.judge_scores import JUDGED, REPLIES, judge_scores
from helm_longctx.tasks.judgement import score_silence
from helm_longctx.tasks.sampling import take_sample

REPO = "xiaowu0162/longmemeval-cleaned"
_COMMIT = "98d7416c24c778c2fee6e6f3006e7a073259d48f"
_DIGESTS = {
    "s": "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
    "m": "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f",
    "oracle": "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c",
}
"""The SHA-256 of the files at that commit."""
FILES = {
    "s": "longmemeval_s_cleaned",
    "oracle": "longmemeval_oracle",
    "m": "longmemeval_m_cleaned",
}
COLUMNS: Types = {
    "question_id": str,
    "question_type": str,
    "question": str,
    "question_date": str,
    "answer": (str, int, float),
    "haystack_dates": list,
    "haystack_session_ids": list,
    "haystack_sessions": list,
    "answer_session_ids": list,
}
_ABSTENTION = "_abs"
"""The official code takes a question with this in its id for one that the chats do not answer."""

_Turn = Mapping[str, Any]


class Form(NamedTuple):
    """How chats are written: as JSON or as text, and whether with the user's turns alone."""

    json: bool = True
    user_only: bool = False


def find_source(name: str) -> HubFile:
    """Return the file of a task."""
    file = f"{FILES[name]}.json"
    path = f"hub/{REPO.replace('/', '__')}/{file}"
    return HubFile(REPO, file, path, commit=_COMMIT, sha256=_DIGESTS[name])


@take_sample
def load(
    task: Task,
    settings: Settings,
    root: DataRoot,
    *,
    form: Form,
    kinds: Sequence[str],
) -> Iterator[Example]:
    """Yield a task's questions in file order."""
    for row in JsonArray(task.only_file(settings, root), COLUMNS):
        if row["question_type"] not in kinds:
            raise InputError(
                f"{row}: question_type must be one of {', '.join(kinds)}, found"
                f" {row['question_type']!r}"
            )
        if not _is_answer(row["answer"]):
            reason = f"answer must be a text that is not empty or a number, found {row['answer']!r}"
            raise InputError(f"{row}: {reason}")
        sessions = _sort_sessions(row)
        texts = [*_write_sessions(sessions, form)]
        starts = accumulate(map(len, texts[:-1]), initial=0)
        marks = []
        for start, (_, date, _) in zip(starts, sessions, strict=True):
            marks.append((start, {"date": date}))
        # Only a single session with evidence has a depth.
        ids = [session for session, _, _ in sessions]
        evidence = row["answer_session_ids"]
        is_known = len(evidence) == 1 and len(ids) > 1 and evidence[0] in ids
        if is_known:
            depth = ids.index(evidence[0]) / (len(ids) - 1)
        else:
            depth = None
        yield Example(
            id=row["question_id"],
            fields={
                "context": "".join(texts),
                "date": row["question_date"],
                "question": row["question"],
            },
            references=[str(row["answer"])],
            source="hub",
            depth=depth,
            record=make_record(row),
            group=name_cluster(row),
            marks=marks,
        )


def _is_answer(answer: str | float) -> bool:
    if isinstance(answer, str):
        return bool(answer.strip())
    return math.isfinite(answer)


def make_record(row: Row) -> dict[str, Any]:
    """Return the fields of a question's record."""
    return {
        "question_type": row["question_type"],
        "abstention": _ABSTENTION in row["question_id"],
    }


def name_cluster(row: Row) -> str:
    """Return the cluster of a question. A question without an answer in the chats is made from one with an answer."""
    return f"question {row['question_id'].removesuffix(_ABSTENTION)}"


_Session = tuple[Any, str, Sequence[_Turn]]
"""The session's id, its date and its turns."""


def _sort_sessions(row: FileRow) -> list[_Session]:
    """Return the sessions in the order of their dates, compared as texts."""
    names = ("haystack_session_ids", "haystack_dates", "haystack_sessions")
    ids, dates, sessions = (row[name] for name in names)
    if not len(ids) == len(dates) == len(sessions) > 0:
        raise InputError(
            f"{row}: {', '.join(names)} must be lists of the same length, with at least one session"
        )
    TEXTS.check(f"{row}: haystack_dates", dates)
    for session in sessions:
        _TURNS.check(f"{row}: a session", session)
    return sorted(
        zip(ids, dates, sessions, strict=True), key=lambda session: session[1]
    )


_TURNS = Shape(
    "a list of turns with the texts 'role' and 'content'",
    are_all(
        lambda turn: (
            isinstance(turn, dict)
            and is_text(turn.get("role"))
            and is_text(turn.get("content"))
        )
    ),
)


def _write_sessions(sessions: Sequence[_Session], form: Form) -> Iterator[str]:
    """Write each session. Joined they are the context."""
    for number, (_, date, turns) in enumerate(sessions, 1):
        kept = []
        for turn in turns:
            if turn["role"] == "user" or not form.user_only:
                kept.append(turn)
        text = "".join(
            f"\n\n{turn['role']}: {turn['content'].strip()}" for turn in kept
        )
        if form.json:
            # The column `has_answer` would tell the answer.
            shown = []
            for turn in kept:
                shown.append(
                    {
                        name: value
                        for name, value in turn.items()
                        if name != "has_answer"
                    }
                )
            text = "\n" + json.dumps(shown)
        yield f"\n### Session {number}:\nSession Date: {date}\nSession Content:\n{text}\n"


JUDGE = "openai/gpt-4o-2024-08-06"
KINDS = tuple(prompts.JUDGE)
BY_KIND = {kind: f"judge_score_{kind.replace('-', '_')}" for kind in KINDS}
_ABSTAINED = "judge_score_abstention"


def judge_prompt(record: ScorerInput) -> str:
    """Make the judge's prompt on an answer, without the white space around the answer."""
    if record.get("question_type") not in KINDS:
        raise InputError(f"the record has no question_type of {', '.join(KINDS)}")
    template = prompts.JUDGE[record["question_type"]]
    if record.get("abstention"):
        template = prompts.JUDGE_ABSTENTION
    response = record["prediction"].strip()
    return template.format(
        question=record["question"],
        answer=record["references"][0],
        response=response,
    )


def read_label(reply: Any) -> MetricValues:
    """Return 1 if a reply contains "yes" and 0 for any other text. A reply without text has no score."""
    if not isinstance(reply, str) or not reply:
        return {}
    return {"judge_score": float("yes" in reply.lower())}


def score(record: ScorerInput) -> MetricValues:
    """Return the judge's label: for all questions, for questions of this type, and for abstention questions."""
    scores = judge_scores(record, "judge_score", read_label)
    if "judge_score" not in scores:
        return scores
    names = [
        BY_KIND.get(record.get("question_type") or ""),
        _ABSTAINED if record.get("abstention") else None,
    ]
    return scores | {name: scores["judge_score"] for name in names if name}


# The official code asks once, and takes any reply without "yes" as no.
_JUDGEMENT = Judgement(
    judge_prompt,
    lambda reply, record: read_label(reply),
    json.dumps([prompts.JUDGE, prompts.JUDGE_ABSTENTION]),
    max_tokens=10,
    readings=1,
    silence_reply="no",
)


_TITLES = {
    "s": "LongMemEval-S",
    "oracle": "Evidence Sessions",
    "m": "LongMemEval-M",
}


class Reading(NamedTuple):
    """A way in which the official code reads the chats.

    Args:
        notes: whether the prompt asks for the relevant information before the answer (`con`), or for the answer alone
            (`direct`).
    """

    title: str
    notes: bool
    form: Form


READINGS = {
    "": Reading("", True, Form()),
    "direct": Reading("Direct", False, Form()),
    "nl": Reading("Text", True, Form(json=False)),
    "nl_direct": Reading("Text, Direct", False, Form(json=False)),
    "user_only": Reading("User's Turns", True, Form(user_only=True)),
}

_SHAPES = {
    "question_type": Shape(f"one of {', '.join(KINDS)}", lambda value: value in KINDS),
    "abstention": Shape("true or false", lambda value: isinstance(value, bool)),
    **REPLIES,
}


def _task(name: str, category: str) -> Task:
    reading = READINGS[category]
    return Task(
        name=f"{name}_{category}" if category else name,
        alias=name if category else "",
        title=_TITLES[name],
        template=Template.whole(prompts.CON if reading.notes else prompts.DIRECT),
        load=partial(load, form=reading.form, kinds=KINDS),
        score=score,
        scorers=score_silence(score),
        metrics=(*JUDGED, *BY_KIND.values(), _ABSTAINED),
        max_tokens=800 if reading.notes else 500,
        sources=lambda length: (find_source(name),),
        official_judge=JUDGE,
        judgement=_JUDGEMENT,
        record_shapes=_SHAPES,
        baseline=Baseline("span", "You did not mention this."),
        **task_fields(__package__),
    )


_ANNOTATOR = f"{__package__}.judge.LabelAnnotator"

LONGMEMEVAL = read_benchmark(
    __package__,
    [
        Category(
            name,
            reading.title,
            (main,),
            tuple(others),
            averaged=not name,
            judge=_ANNOTATOR,
        )
        for name, reading in READINGS.items()
        for main, *others in [[_task(file, name) for file in _TITLES]]
    ],
)
